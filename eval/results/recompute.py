"""A run's tables -> everything that follows from them, computed again: scores, intervals, summary, run row, digests.

In: the rows of the four tables, of which only answers and decisions are believed. Out: the rows and the summary that
these give. Comparing is `verify`'s part. What only the journal knew (times, tokens used, sent temperatures, ...) is
taken over from the recorded summary: `KEPT` names it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bedside_bench import PANELS_BY_ID, sha256_json
from eval.calls.call import Call, CaseHead
from eval.judging.graded import RunData
from eval.judging.grading import JudgeReply, Replies, grade_case, reply_states
from eval.judging.protocol import text_sha256
from eval.numbers.panels import score_cases
from eval.numbers.readers import summarise_run
from eval.numbers.summary import dumps_summary
from eval.results.structure import Tables
from eval.results.tables import (
    ANSWERS_SCHEMA,
    KEYS,
    PENDING,
    UNANSWERED,
    Row,
    item_rows,
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
    "certificate",
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
    held = _held(tables)
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
        "decisions": _decisions(held, judge_models(identity)),
        "answers": [_answer(row, with_texts=with_texts) for row in tables["answers"]],
    }
    n_items = sum(len(case.item_ids) for case in run.cases)
    return Recomputed(expected, fresh, digest, rubric_sha256(tables["decisions"]), n_items)


def run_data_from_tables(tables: Tables, *, identity: Mapping[str, Any], summary: Mapping[str, Any]) -> RunData:
    """Return the run that the tables hold, as `grade_journal` gives it from its journal.

    Of the scores table only the order of the cases is read (and the grading method of a panel that is none of ours).
    """
    return _run_data(_held(tables), identity=identity, summary=summary)


@dataclass(frozen=True, slots=True)
class _Held:
    """What the tables say of answers and decisions: rubrics in dataset order, replies, and each judge reply's rows."""

    heads: Sequence[CaseHead]
    replies: Mapping[str, Replies]
    units: Mapping[tuple[str, int, int], Sequence[Row]]


def _held(tables: Tables) -> _Held:
    units = _units(tables["decisions"])
    return _Held(_heads(tables, units), _replies(tables, units), units)


def _run_data(held: _Held, *, identity: Mapping[str, Any], summary: Mapping[str, Any]) -> RunData:
    data = _mapping(summary.get("data"))
    return RunData(
        protocol_version=identity["protocol"],
        cases=tuple(grade_case(head, held.replies[head.case_id], identity) for head in held.heads),
        file_order=(),
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
        certificate=summary.get("certificate"),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    """Return a value that should be a JSON object; of anything else an empty one, which then differs from it."""
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _heads(tables: Tables, units: Mapping[tuple[str, int, int], Sequence[Row]]) -> list[CaseHead]:
    """Return every case's rubric as its first judge reply has it; of its rows' panels the most frequent is believed."""
    heads = []
    for index, row in enumerate(tables["scores"]):
        first = units[row["case_id"], 0, 0]
        panel = _most(item["benchmark"] for item in first)
        method = PANELS_BY_ID[panel].grading_method if panel in PANELS_BY_ID else row["grading_method"]
        rubric = tuple((item["item_id"], _plain(item["points"])) for item in first)
        heads.append(CaseHead(row["case_id"], panel, method, rubric, index))
    return heads


def _most(values: Iterable[str]) -> str:
    return Counter(values).most_common(1)[0][0]


def _plain(points: float) -> int | float:
    return int(points) if points.is_integer() else points


def _units(decisions: Iterable[Row]) -> dict[tuple[str, int, int], list[Row]]:
    """Return the rows of each judge reply, by (case, judge, repeat), in item order."""
    units: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in decisions:
        units[row["case_id"], row["judge"], row["repeat"]].append(row)
    for rows in units.values():
        rows.sort(key=lambda row: row["item_index"])
    return units


def _replies(tables: Tables, units: Mapping[tuple[str, int, int], Sequence[Row]]) -> dict[str, Replies]:
    answers: dict[str, dict[int, Call]] = defaultdict(dict)
    judged: dict[str, dict[tuple[int, int, int], JudgeReply]] = defaultdict(dict)
    for row in tables["answers"]:
        if row["state"] != PENDING:
            answers[row["case_id"]][0] = _call("answer", row["case_id"], row["state"], row["answer_sha256"])
    for (case_id, judge, repeat), rows in units.items():
        state = _most(row["state"] for row in rows)
        if state not in (PENDING, UNANSWERED):
            matched = tuple(row["matched"] for row in rows) if state == "ok" else None
            call = _call("judge", case_id, state, None)
            judged[case_id][0, judge, repeat] = JudgeReply(call, state, matched, None)
    return {row["case_id"]: Replies(answers[row["case_id"]], judged[row["case_id"]]) for row in tables["scores"]}


def _call(role: str, case_id: str, state: str, digest: str | None) -> Call:
    """Return a call as far as its row tells; its text is only known to be there or not."""
    return Call("", role, case_id, 0, state, text=None if digest is None else "")


def _decisions(held: _Held, models: Sequence[str]) -> list[Row]:
    """Return the rows that judge replies must have: one state and digest a reply, one rubric a case."""
    heads = {head.case_id: head for head in held.heads}
    expected = []
    for (case_id, judge, repeat), rows in held.units.items():
        replies = held.replies[case_id]
        reply = replies.judged.get((0, judge, repeat))
        digests = Counter(row["reply_sha256"] for row in rows)
        expected += item_rows(
            heads[case_id],
            [row["matched"] for row in rows],
            judge=judge,
            judge_model=models[judge],
            repeat=repeat,
            state=reply.state if reply else state_before(replies.answers.get(0)),
            reply_sha256=digests.most_common(1)[0][0] if reply else None,
        )
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
