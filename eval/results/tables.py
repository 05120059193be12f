"""The rows of a run's tables (formats.md 7): `run`, `scores`, `decisions`, `answers`, of HealthBench also `examples`.

In: a journal's replies, or what is read back from the tables themselves. Out: Arrow tables, `run_sha256` and `run_id`.
Rows stand in dataset order, so that intervals can be computed again. A score, a verdict and every count follow from
`decisions`; they stand in the other tables for readers and are checked, never trusted (`recompute`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bedside_bench import PANEL_IDS, sha256_json
from eval.calls.call import JUDGED_ANSWERS, Call, CaseHead
from eval.judging.grading import Replies, answer_repeats
from eval.judging.texts import text_sha256
from eval.numbers.panels import ScoredCase
from eval.results.schemas import ALL_SCHEMAS, ANSWERS_SCHEMA

Row: TypeAlias = dict[str, Any]

PENDING: Final = "pending"
"""State of an answer, and of a judge's decision, that was not asked for yet."""
UNANSWERED: Final = "unanswered"
"""State of a judge's decision where the answer failed: there is nothing to judge."""

_OF_THE_SCORE: Final = (
    "score",
    "raw_score",
    "recall",
    "precision",
    "n_matched",
    "negatives_judged",
    "negatives_matched",
    "severe_matched",
    "minus3_matched",
)
_SLUG_CHARS: Final = 48
# What a server says of itself goes into a table only as a name: any other text of it could quote what it was sent.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/@+()\[\]-]{0,127}")


def to_table(rows: Sequence[Row], table: str, *, run_id: str) -> pa.Table:
    """Return rows as the named table, `run_id` put first; a value of another type than its column is an error."""
    return pa.Table.from_pylist([{**row, "run_id": run_id} for row in rows], schema=ALL_SCHEMAS[table])


def answer_rows(
    heads: Iterable[CaseHead], replies: Mapping[str, Replies], *, repeats: int, with_texts: bool
) -> list[Row]:
    """Return one row for each answer that the run asks for to each case; texts only when asked for."""
    return [
        _answer_row(head.case_id, replies[head.case_id].answers.get(n), answer_repeat=n, with_texts=with_texts)
        for head in heads
        for n in range(repeats)
    ]


def _answer_row(case_id: str, call: Call | None, *, answer_repeat: int, with_texts: bool) -> Row:
    if call is None:
        of_row = {"case_id": case_id, "answer_repeat": answer_repeat, "state": PENDING}
        return {**dict.fromkeys(ANSWERS_SCHEMA.names), **of_row}
    tokens = {f"{name}_tokens": call.usage.get(name) for name in ("input", "cached", "output", "reasoning")}
    return {
        "case_id": case_id,
        "answer_repeat": call.answer_repeat,
        "state": call.state,
        "answer_sha256": _sha256(call.text),
        "n_chars": None if call.text is None else len(call.text),
        "finish_reason": _name(call.finish_reason),
        "model_returned": _name(call.model),
        "fingerprint": _name(call.fingerprint),
        **tokens,
        "attempts": call.attempts,
        "latency_ms": call.latency_ms,
        "text": call.text if with_texts else None,
    }


def _sha256(text: str | None) -> str | None:
    return None if text is None else text_sha256(text)


def _name(value: str | None) -> str | None:
    return value if value is not None and _NAME.fullmatch(value) else None


def decision_rows(heads: Iterable[CaseHead], replies: Mapping[str, Replies], identity: Mapping[str, Any]) -> list[Row]:
    """Return one row for each item and each judge reply that the run asks for, whether or not it has come.

    `state` is that reply's (formats.md 5), `pending` before it came, `unanswered` where the answer failed.
    """
    units = [
        {"answer_repeat": answer, "judge": judge, "judge_model": model, "repeat": repeat}
        for answer in range(answer_repeats(identity))
        for judge, model in enumerate(judge_models(identity))
        for repeat in range(identity["repeats"])
    ]
    return [
        row
        for head in heads
        for unit in units
        for row in _unit_rows(head, replies[head.case_id], identity["grouping"], unit)
    ]


def _unit_rows(head: CaseHead, replies: Replies, grouping: str, unit: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the rows of one judge's decisions, at one repeat, on one answer."""
    asked = {name: unit[name] for name in ("answer_repeat", "judge", "repeat")}
    before = state_before(replies.answers.get(unit["answer_repeat"]))
    digests: dict[int, str | None] = {}  # a reply on all items of a case is hashed once
    for index, (reply, matched) in enumerate(replies.of_items(head, grouping=grouping, **asked)):
        digest = None
        if reply is not None:
            if id(reply) not in digests:
                digests[id(reply)] = _sha256(reply.call.text)
            digest = digests[id(reply)]
        state = before if reply is None else reply.state
        yield item_row(head, index, {**unit, "state": state, "matched": matched, "reply_sha256": digest})


def item_row(head: CaseHead, index: int, decided: Mapping[str, Any]) -> Row:
    """Return the row of one decision on an item.

    Args:
        decided: answer_repeat, judge, judge_model, repeat, state, matched and reply_sha256.
    """
    item_id, points = head.items[index]
    return {
        "case_id": head.case_id,
        "benchmark": head.benchmark,
        "item_index": index,
        "item_id": item_id,
        "points": None if points is None else float(points),
        **decided,
    }


def example_rows(heads: Iterable[CaseHead]) -> list[Row]:
    """Return one row for each HealthBench example: tags, the completion's group, physicians' labels."""
    return [
        {
            "case_id": head.case_id,
            "example_tags": list(head.about.tags),
            "item_tags": [list(tags) for tags in head.about.item_tags],
            "completions_group": head.about.group,
            "labels": [{"physician": physician, "label": label} for physician, label in head.about.labels],
        }
        for head in heads
        if head.about is not None
    ]


def state_before(answer: Call | None) -> str:
    """Return the state of a decision that no judge was asked for yet."""
    waiting = answer is None or (answer.state in JUDGED_ANSWERS and answer.text is not None)
    return PENDING if waiting else UNANSWERED


def score_rows(cases: Iterable[ScoredCase]) -> list[Row]:
    """Return one row a case: its score, or without decisions only the bounds of what it could be."""
    return [_score_row(case) for case in cases]


def _score_row(scored: ScoredCase) -> Row:
    case, score = scored.case, scored.score
    # An answer that was cut or refused is judged as it stands; its row says so.
    about = [f"answer-{case.answer_state}"] if score and case.answer_state in ("truncated", "refused") else []
    return {
        "case_id": case.case_id,
        "benchmark": case.benchmark,
        "grading_method": case.grading_method,
        "answer_repeat": case.answer_repeat,
        "state": case.state,
        "worst": scored.bounds.worst,
        "best": scored.bounds.best,
        **{name: getattr(score, name, None) for name in _OF_THE_SCORE},
        "n_items": len(case.item_ids),
        "flags": [*about, *(score.flags if score else ())],
        "n_unresolved": score.unresolved if score else None,
    }


def run_row(
    identity: Mapping[str, Any], summary: Mapping[str, Any], *, case_ids: Iterable[str], **columns: object
) -> Row:
    """Return the row of the `run` table.

    Args:
        case_ids: the selected cases.
        columns: run_sha256, date, with_texts, identity_json and summary_json.
    """
    low, high = summary["overall_ci95"] or (None, None)
    return {
        "identity_sha256": sha256_json(identity),
        "semantics_sha256": summary["semantics_sha256"],
        "dataset_sha256": identity["dataset_sha256"],
        "content_sha256": summary["content_sha256"],
        "cases_sha256": sha256_json(sorted(set(case_ids))),
        **{name: identity[name] for name in ("suite", "protocol", "repeats", "grouping")},
        "dialect": summary["dialect"],
        "answer_model": identity["answer"]["model"],
        "answer_vendor": identity["answer"].get("vendor"),
        "judge_models": judge_models(identity),
        "certificate": summary["certificate"],
        "data_repo": summary["data"]["repo"],
        "data_revision": summary["data"]["revision"],
        **{name: summary[name] for name in ("n_expected", "n_graded", "n_failed", "overall_worst", "overall_best")},
        "overall_mean": summary["overall_macro_mean"],
        "overall_ci_low": low,
        "overall_ci_high": high,
        "panels": [_panel(panel, summary) for panel in summary["panels"]],
        "answer_temperature": _float(summary["answer_temperature"]),
        "judge_temperature": _float(summary["judge_temperature"]),
        **columns,
    }


def _panel(panel: str, summary: Mapping[str, Any]) -> Row:
    scores, about = summary["benchmarks"][panel], summary["panels"][panel]
    low, high = scores["ci95"] or (None, None)
    return {
        "panel": panel,
        "n": scores["n"],
        "n_expected": about["n_expected"],
        "mean": scores["mean"],
        "ci_low": low,
        "ci_high": high,
        "worst": about["worst"],
        "best": about["best"],
    }


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def panel_order(panels: Iterable[str]) -> list[str]:
    """Return panels as they stand in the data, those of the registry first."""
    return sorted(dict.fromkeys(panels), key=lambda panel: panel not in PANEL_IDS)


def judge_models(identity: Mapping[str, Any]) -> list[str]:
    """Return the judges' models in the identity's order."""
    return [judge["model"] for judge in identity["judges"]]


def run_sha256(identity_sha256: str, *, answers: Iterable[Row], decisions: Iterable[Row]) -> str:
    """Return the digest of what was answered and decided (formats.md 6): free of line order, time and latency."""
    answered = _sorted_lists(answers, key=("case_id", "answer_repeat"), values=("state", "answer_sha256"))
    decided = _sorted_lists(
        decisions, key=("case_id", "answer_repeat", "item_id", "judge", "repeat"), values=("matched",)
    )
    return sha256_json({"identity_sha256": identity_sha256, "answers": answered, "decisions": decided})


def _sorted_lists(rows: Iterable[Row], *, key: Sequence[str], values: Sequence[str]) -> list[list[Any]]:
    listed = [[row[name] for name in (*key, *values)] for row in rows]
    return sorted(listed, key=lambda cells: tuple(cells[: len(key)]))


def rubric_sha256(decisions: Iterable[Row]) -> str:
    """Return the digest of the rubrics that were judged: sorted [case_id, item_id, points], each once.

    Nothing else in a run's folder says what an unmatched item's points are.
    """
    items = {(row["case_id"], row["item_id"], row["points"]) for row in decisions}
    return sha256_json(sorted(map(list, items), key=lambda item: item[:2]))


def run_id(date: str, answer_model: str | None, digest: str) -> str:
    """Return the name of a run: the UTC date of its first call, a slug of its answer model, 8 hex of `run_sha256`."""
    slug = re.sub(r"[^a-z0-9._]+", "-", (answer_model or "unnamed").lower())[:_SLUG_CHARS]
    return f"{date}-{slug}-{digest[:8]}"
