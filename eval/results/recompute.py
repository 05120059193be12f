"""A run's tables -> everything that follows from them, computed again: scores, intervals, summary, run row, digests.

In: the rows of the tables, of which only answers and decisions are believed. Out: the rows and the summary that
these give. Comparing is `verify`'s part. What only the journal knew (times, tokens used, sent temperatures, ...) is
taken over from the recorded summary: `KEPT` names it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from bedside_bench import PANELS_BY_ID, sha256_json
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.calls.call import Call, CaseHead, ExampleFacts
from eval.calls.lines import check_certified
from eval.judging.graded import RunData
from eval.judging.grading import JudgeReply, Replies, Unit, grade_cases, reply_states
from eval.judging.suites import WHOLE_CASE
from eval.judging.texts import text_sha256
from eval.numbers.panels import score_cases
from eval.numbers.readers import summarise_run
from eval.numbers.summary import dumps_summary
from eval.results.schemas import ANSWERS_SCHEMA, EXAMPLES, KEYS
from eval.results.structure import Tables
from eval.results.tables import (
    PENDING,
    UNANSWERED,
    Row,
    example_rows,
    item_row,
    judge_models,
    rubric_sha256,
    run_row,
    run_sha256,
    score_rows,
    state_before,
)

KEPT: Final = (
    "started_at",
    "finished_at",
    "answer_temperature",
    "judge_temperature",
    "content_sha256",
    "data",
    "usage",
    "certified",
    "software",
)
"""Members of a summary that only the journal determines, as it does the last of its notices."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the answers and decisions of a run give: tables by name (but `run_id`), the summary, and three digests."""

    tables: Mapping[str, Sequence[Row]]
    summary: Mapping[str, Any]
    run_sha256: str
    rubric_sha256: str
    n_items: int


def recompute(tables: Tables, *, identity: Mapping[str, Any], summary: Mapping[str, Any]) -> Recomputed:
    """Return what the answers and decisions of a run give.

    Args:
        tables: rows without structure findings.
        summary: the recorded one, for the settings of the bootstrap and what only the journal knew.

    Raises:
        BadInput: a rubric does not fit its grading method.
    """
    held = _held(tables, identity["grouping"])
    run = _run_data(held, identity=identity, summary=summary)
    settings = {"samples": summary["bootstrap_samples"], "seed": summary["bootstrap_seed"]}
    fresh = summarise_run(run, dialect="spec", **settings, software=_mapping(summary.get("software")))
    fresh = json.loads(dumps_summary(fresh))
    recorded = summary.get("notices")
    fresh["notices"] += recorded[len(fresh["notices"]) :] if isinstance(recorded, list) else []
    digest = run_sha256(sha256_json(identity), answers=tables["answers"], decisions=tables["decisions"])
    (recorded_run,) = tables["run"]
    with_texts = any(row["text"] is not None for row in tables["answers"])
    with_texts |= bool(recorded_run["with_texts"]) and all(row["answer_sha256"] is None for row in tables["answers"])
    row = run_row(
        identity,
        fresh,
        case_ids=[case.case_id for case in run.cases],
        run_sha256=digest,
        date=recorded_run["date"],
        with_texts=with_texts,
        identity_json=recorded_run["identity_json"],
        summary_json=recorded_run["summary_json"],
    )
    expected = {
        "run": [row],
        "scores": score_rows(score_cases(run)),
        "decisions": _decisions(held, identity),
        "answers": [_answer(row, with_texts=with_texts) for row in tables["answers"]],
    }
    if EXAMPLES in tables:
        expected[EXAMPLES] = example_rows(held.heads)
    n_items = sum(len(head.items) for head in held.heads)
    return Recomputed(expected, fresh, digest, rubric_sha256(tables["decisions"]), n_items)


def run_data_from_tables(tables: Tables, *, identity: Mapping[str, Any], summary: Mapping[str, Any]) -> RunData:
    """Return the run that the tables hold, as `grade_journal` gives it from its journal.

    Of the scores table only the order of the cases is read (and the grading method of a panel that is none of ours).
    """
    return _run_data(_held(tables, identity["grouping"]), identity=identity, summary=summary)


@dataclass(frozen=True, slots=True)
class _Held:
    """What the tables say of answers and decisions: rubrics in dataset order, replies, and each judge reply's rows.

    A unit is one reply: (case, answer repeat, judge, repeat, group).
    """

    heads: Sequence[CaseHead]
    replies: Mapping[str, Replies]
    units: Mapping[_Unit, Sequence[Row]]
    lengths: Mapping[tuple[str, int], int | None]


_Unit: TypeAlias = tuple[str, int, int, int, str]


def _held(tables: Tables, grouping: str) -> _Held:
    units = _units(tables["decisions"], grouping)
    lengths = {(row["case_id"], row["answer_repeat"]): row["n_chars"] for row in tables["answers"]}
    return _Held(_heads(tables), _replies(tables, units), units, lengths)


def _run_data(held: _Held, *, identity: Mapping[str, Any], summary: Mapping[str, Any]) -> RunData:
    data = _mapping(summary.get("data"))
    cases = grade_cases(held.heads, held.replies, identity)
    return RunData(
        protocol_version=identity["protocol"],
        # An answer's text may not be there; its length is a column of its own.
        cases=tuple(replace(case, n_chars=held.lengths[case.case_id, case.answer_repeat]) for case in cases),
        file_order=(),
        suite=identity["suite"],
        config=identity["config"],
        answer_model=identity["answer"]["model"],
        judge_model=" + ".join(judge_models(identity)),
        answer_temperature=_number(summary.get("answer_temperature")),
        judge_temperature=_number(summary.get("judge_temperature")),
        started_at=summary.get("started_at"),
        finished_at=summary.get("finished_at"),
        dataset_sha256=identity["dataset_sha256"],
        content_sha256=summary.get("content_sha256"),
        identity_sha256=sha256_json(identity),
        semantics_sha256=identity["semantics_sha256"],
        identity=identity,
        data={"repo": data.get("repo"), "revision": data.get("revision"), "n_cases": identity["n_cases"]},
        states=reply_states(held.replies.values()),
        usage={role: _mapping(_mapping(summary.get("usage")).get(role)) for role in ("answer", "judge")},
        certified=_certified(summary.get("certified"), n_judges=len(identity["judges"])),
    )


def _certified(value: object, *, n_judges: int) -> Mapping[str, Any] | None:
    """Return what a summary says of certificates; of anything that no run wrote nothing, which then differs from it."""
    if not isinstance(value, dict):
        return None
    try:
        check_certified(value, n_judges=n_judges)
    except ValueError:
        return None
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a value that should be a JSON object; of anything else an empty one, which then differs from it."""
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _heads(tables: Tables) -> list[CaseHead]:
    """Return every case's rubric as its first judge reply has it; of its rows' panels the most frequent is believed."""
    first: dict[str, list[Row]] = defaultdict(list)
    for row in tables["decisions"]:
        if row["answer_repeat"] == row["judge"] == row["repeat"] == 0:
            first[row["case_id"]].append(row)
    examples = {row["case_id"]: _example(row) for row in tables.get(EXAMPLES, ())}
    methods = {row["case_id"]: row["grading_method"] for row in tables["scores"]}
    return [
        _head(case_id, sorted(first[case_id], key=lambda row: int(row["item_index"])), method, index, examples)
        for index, (case_id, method) in enumerate(methods.items())
    ]


def _head(
    case_id: str, items: Sequence[Row], method: str, index: int, examples: Mapping[str, ExampleFacts]
) -> CaseHead:
    panel = _most(item["benchmark"] for item in items)
    if panel in PANELS_BY_ID:
        method = PANELS_BY_ID[panel].grading_method
    elif case_id in examples:
        method = HEALTHBENCH
    rubric = tuple((item["item_id"], _plain(item["points"])) for item in items)
    return CaseHead(case_id, panel, method, rubric, index, examples.get(case_id))


def _example(row: Row) -> ExampleFacts:
    return ExampleFacts(
        tags=tuple(row["example_tags"]),
        item_tags=tuple(map(tuple, row["item_tags"])),
        group=row["completions_group"],
        labels=tuple((label["physician"], label["label"]) for label in row["labels"]),
    )


def _most(values: Iterable[str]) -> str:
    return Counter(values).most_common(1)[0][0]


def _plain(points: float | None) -> int | float | None:
    return int(points) if points is not None and points.is_integer() else points


def _units(decisions: Iterable[Row], grouping: str) -> dict[_Unit, list[Row]]:
    """Return the rows of each judge reply, by (case, answer repeat, judge, repeat, group), in item order."""
    units: dict[_Unit, list[Row]] = defaultdict(list)
    for row in decisions:
        group = row["item_id"] if grouping == "item" else WHOLE_CASE
        units[row["case_id"], row["answer_repeat"], row["judge"], row["repeat"], group].append(row)
    for rows in units.values():
        rows.sort(key=lambda row: row["item_index"])
    return units


def _replies(tables: Tables, units: Mapping[_Unit, Sequence[Row]]) -> dict[str, Replies]:
    answers: dict[str, dict[int, Call]] = defaultdict(dict)
    judged: dict[str, dict[Unit, JudgeReply]] = defaultdict(dict)
    for row in tables["answers"]:
        if row["state"] != PENDING:
            answers[row["case_id"]][row["answer_repeat"]] = _call("answer", row, row["state"], row["answer_sha256"])
    for (case_id, answer, judge, repeat, group), rows in units.items():
        state = _most(row["state"] for row in rows)
        if state not in (PENDING, UNANSWERED):
            matched = tuple(row["matched"] for row in rows) if state == "ok" else None
            reply = JudgeReply(_call("judge", rows[0], state, None), state, matched, None)
            judged[case_id][answer, judge, repeat, group] = reply
    return {row["case_id"]: Replies(answers[row["case_id"]], judged[row["case_id"]]) for row in tables["scores"]}


def _call(role: str, row: Row, state: str, digest: str | None) -> Call:
    """Return a call as far as its row tells; its text is only known to be there or not."""
    return Call("", role, row["case_id"], row["answer_repeat"], state, text=None if digest is None else "")


def _decisions(held: _Held, identity: Mapping[str, Any]) -> list[Row]:
    """Return the rows that judge replies must have: one state and digest a reply, one rubric a case."""
    heads, models = {head.case_id: head for head in held.heads}, judge_models(identity)
    expected = []
    for (case_id, answer, judge, repeat, group), rows in held.units.items():
        replies = held.replies[case_id]
        reply = replies.judged.get((answer, judge, repeat, group))
        digests = Counter(row["reply_sha256"] for row in rows)
        decided = {
            "answer_repeat": answer,
            "judge": judge,
            "judge_model": models[judge],
            "repeat": repeat,
            "state": reply.state if reply else state_before(replies.answers.get(answer)),
            "reply_sha256": digests.most_common(1)[0][0] if reply else None,
        }
        expected += [
            item_row(heads[case_id], row["item_index"], {**decided, "matched": row["matched"]}) for row in rows
        ]
    return expected


def _answer(row: Row, *, with_texts: bool) -> Row:
    """Return what an answer's row must be: nothing before it came, and digest and length those of its text."""
    if row["state"] == PENDING:
        return {**dict.fromkeys(ANSWERS_SCHEMA.names), **{name: row[name] for name in (*KEYS["answers"], "state")}}
    text = row["text"]
    if not with_texts or row["answer_sha256"] is None:
        return {**row, "text": None, **({"n_chars": None} if row["answer_sha256"] is None else {})}
    if text is None:
        return {**row, "text": "the answer's text"}
    return {**row, "answer_sha256": text_sha256(text), "n_chars": len(text)}
