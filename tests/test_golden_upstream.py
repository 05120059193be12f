"""The published runner's numbers, to the last bit, on its synthetic golden file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import F1_WEIGHTED_RUBRIC, dataset_sha256
from eval.numbers.scoring import CaseScore, score_case
from eval.numbers.summary import dumps_summary, summarise
from eval.numbers.upstream import read_upstream

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "upstream_synthetic.json").read_bytes())
PAIRS = list(zip(GOLDEN["cases"], GOLDEN["expected"], strict=True))
IDS = [case["case_id"] for case in GOLDEN["cases"]]


def scored(case: dict[str, Any], expected: dict[str, Any], dialect: str) -> CaseScore:
    """Score a golden case from its decisions."""
    points = [item["points"] for item in case["rubric_items"]]
    return score_case(case["grading_method"], points, [bool(m) for m in expected["matched"]], dialect=dialect)


def components(score: CaseScore, method: str) -> dict[str, float | None]:
    """Return a score's parts under upstream's names."""
    if method == F1_WEIGHTED_RUBRIC:
        return {
            "f1_weighted": score.score,
            "precision_weighted": score.precision,
            "recall_weighted": score.recall,
            "severe_rate": score.severe_rate,
        }
    return {
        "matched_signed_points": score.matched_points,
        "available_positive_points": score.positive_points,
        "raw_score": score.raw_score,
    }


def rows(*, own_scores: bool = True) -> str:
    """Return the golden decisions as a result file of the published runner."""
    lines = []
    for case, expected in PAIRS:
        decided = zip(case["rubric_items"], expected["matched"], strict=True)
        row = {
            "protocol_version": "bedside-bench-grading-v1",
            **{name: case[name] for name in ("case_id", "benchmark", "grading_method")},
            "answer": "Answer line 1\n\nline 2",
            "decisions": [{"item_id": i["item_id"], "points": i["points"], "matched": bool(m)} for i, m in decided],
        }
        if own_scores:
            row |= {"score": expected["score"], "score_components": expected["components"]}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines)


@pytest.mark.parametrize(("case", "expected"), PAIRS, ids=IDS)
def test_case_scores_and_components_are_upstreams(case: dict[str, Any], expected: dict[str, Any]) -> None:
    """Every score and every component, float points included."""
    score = scored(case, expected, "upstream")

    assert score.score == expected["score"]
    assert components(score, case["grading_method"]) == expected["components"]


@pytest.mark.parametrize(
    ("case", "expected"), [pair for pair in PAIRS if "veto" in pair[1]], ids=lambda value: value["case_id"]
)
def test_veto_components_are_upstreams(case: dict[str, Any], expected: dict[str, Any]) -> None:
    """The older revision's scores of the plan cases."""
    assert components(scored(case, expected, "upstream-veto"), F1_WEIGHTED_RUBRIC) == expected["veto"]


def test_summary_of_the_rows_is_upstreams(tmp_path: Path) -> None:
    """Seed 42, 2,000 samples, rows in the order given: all 16 keys, in upstream's order."""
    file = tmp_path / "golden.jsonl"
    file.write_text(rows(), encoding="utf-8", newline="")
    summary = summarise(read_upstream(file), dialect="upstream", samples=2000, seed=42, software={})
    golden = GOLDEN["summary_seed42_2000"]

    assert {name: summary[name] for name in golden} == golden
    assert list(summary)[:16] == list(golden)
    assert not [notice for notice in summary["notices"] if "own score" in notice]
    assert json.loads(dumps_summary(summary)) == summary


def test_scores_are_recomputed_from_the_decisions(tmp_path: Path) -> None:
    """A file without any scores of its own gives the same summary."""
    file = tmp_path / "golden.jsonl"
    file.write_text(rows(own_scores=False), encoding="utf-8", newline="")
    summary = summarise(read_upstream(file), dialect="upstream", samples=2000, seed=42, software={})

    assert {name: summary[name] for name in GOLDEN["summary_seed42_2000"]} == GOLDEN["summary_seed42_2000"]


def test_dataset_digest_is_upstreams() -> None:
    """Float points, typographic characters and quotes give upstream's digest."""
    assert dataset_sha256(GOLDEN["cases"]) == GOLDEN["dataset_sha256"]
