"""The stand-ins that need no network: what they answer, what the verbatim judge decides, floors and ceilings."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedside_bench import F1_WEIGHTED_RUBRIC, PANELS_BY_ID, POINTS_RUBRIC
from eval.calls.builtin import POLICIES
from eval.calls.plan import Model
from eval.cases import Case, Item
from eval.judging.judge import parse_decisions, verbatim_reply
from eval.numbers.readers import read_run, summarise_run
from tests.plans import case_set, make_plan, run


def _items(*texts: str) -> tuple[Item, ...]:
    return tuple(Item(f"x_{index}", text, 1) for index, text in enumerate(texts))


def _decisions(answer: str, *texts: str) -> tuple[bool, ...]:
    items = _items(*texts)
    ids = [item.item_id for item in items]
    return parse_decisions(verbatim_reply(answer, items=items, ids=ids), ids)


def test_policies_write_what_they_are_called_after() -> None:
    """One fixed refusal, the prompt, every item a line, the earning items a line."""
    items = (Item("x_0", "give aspirin", 2), Item("x_1", "no aspirin", -1), Item("x_2", "neutral", 0))
    case = Case("c", "safety_diagnostic", F1_WEIGHTED_RUBRIC, (("user", "What now?"),), items)

    assert {
        "builtin:refuse": "I cannot answer this question.",
        "builtin:echo-prompt": "What now?",
        "builtin:all-items": "give aspirin\nno aspirin\nneutral",
        "builtin:positive-items": "give aspirin",
    } == {name: policy(case) for name, policy in POLICIES.items()}


def test_verbatim_matches_whole_lines_only() -> None:
    """Part of a line, another case or a blank more is no match; the first and the last line are lines too."""
    answer = "first item\nsecond item, and more\n third item\nLast item"

    assert (True, False, False, False, True) == _decisions(
        answer, "first item", "second item", "third item", "last item", "Last item"
    )


def test_verbatim_reads_lines_at_newlines_only() -> None:
    """U+2028 inside an item is text, and an item of two lines matches those two lines together."""
    assert (True, True, False) == _decisions("a\u2028b\nc\nd\ne", "a\u2028b", "c\nd", "b")


def test_verbatim_shares_a_line_between_equal_items() -> None:
    """Two items with one text both match its line."""
    assert (True, True) == _decisions("same", "same", "same")


# The trees' rubrics, by hand. Points +2 +1 +1 -1: all items (2+1+1-1)/4 = 0.75. Plans +3 +2 +1 0 -1 -2 -3, weights
# 72 24 3 1 3 24 72: all items R = 1, P = 99/199, F1 = 2(99/199)/(1 + 99/199) = 198/298.
EXPECTED = {
    "builtin:all-items": {POINTS_RUBRIC: 0.75, F1_WEIGHTED_RUBRIC: 198 / 298},
    "builtin:positive-items": {POINTS_RUBRIC: 1.0, F1_WEIGHTED_RUBRIC: 1.0},
    "builtin:refuse": {POINTS_RUBRIC: 0.0, F1_WEIGHTED_RUBRIC: 0.0},
    "builtin:echo-prompt": {POINTS_RUBRIC: 0.0, F1_WEIGHTED_RUBRIC: 0.0},
}


@pytest.mark.parametrize(("policy", "expected"), EXPECTED.items(), ids=EXPECTED.keys())
def test_floors_and_ceilings_of_every_panel(tmp_path: Path, policy: str, expected: dict[str, float]) -> None:
    """Each policy gives each of the ten panels the value that its rubric's weights say."""
    run(make_plan(case_set(2), answer=Model(policy)), tmp_path / "x.jsonl")
    summary = summarise_run(read_run(tmp_path / "x.jsonl"), dialect="spec", samples=50, seed=42, software={})
    means = {panel: scores["mean"] for panel, scores in summary["benchmarks"].items()}

    assert {panel.id: pytest.approx(expected[panel.grading_method]) for panel in PANELS_BY_ID.values()} == means
    assert [notice for notice in summary["notices"] if policy in notice]
