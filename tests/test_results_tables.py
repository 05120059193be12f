"""The tables of a results card: what stands in a cell, and tables that stay narrow however many runs there are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bedside_bench import PANEL_IDS
from builder.cards.results_tables import aligned, panel_tables, score_cell, selection_words

WIDE = 160
"""Characters of a terminal's line that two model names and four scores fit in."""


def panel(name: str, n: int = 25) -> dict[str, Any]:
    """Return a panel of 25 cases as the `run` table has it."""
    return {"panel": name, "n": n, "n_expected": 25, "mean": 0.4116, "ci_low": 0.306, "ci_high": 0.5151}


def run(number: int, *panels: dict[str, Any]) -> dict[str, Any]:
    """Return what the panel tables read of a run."""
    return {"run_id": f"2026-01-02-m-0000000{number}", "answer_model": f"org/model-{number}", "panels": list(panels)}


def cells(line: str) -> list[str]:
    """Return the cells of a table's line."""
    return [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        ((0.4116, 0.306, 0.5151), "0.412 (0.31 to 0.52)"),
        ((0.5, None, None), "0.500 (no interval)"),
        ((None, None, None), "none"),
        ((0.0, 0.0, 0.0), "0.000 (0.00 to 0.00)"),
    ],
)
def test_a_score_is_shown_with_its_interval(score: tuple[float | None, ...], shown: str) -> None:
    """Three digits of the mean, two of the ends; what is not known is said, and 0 is a score."""
    assert shown == score_cell(*score)


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"panels": None, "smoke": False, "limit": None}, "all"),
        ({"panels": ["a", "b"], "smoke": False, "limit": None}, "2 panels"),
        ({"panels": ["a"], "smoke": True, "limit": 5}, "1 panel, one case a panel, first 5"),
    ],
)
def test_which_cases_were_asked_for_is_told(selection: dict[str, Any], words: str) -> None:
    """A run of few cases is told from one of all, though both are complete."""
    assert words == selection_words({"identity_json": json.dumps({"selection": selection})})


def test_few_runs_stand_side_by_side_with_a_line_a_panel() -> None:
    """Of up to three runs one table shows a panel a line, in registry order, others' panels after them."""
    (table,) = panel_tables([run(1, panel("zz"), panel("health_equity")), run(2, panel("drug_safety", 24))])
    header, _, *rows = map(cells, table.split("\n"))

    assert ["panel", "org/model-1 `00000001`", "org/model-2 `00000002`"] == header
    assert [
        ["`drug_safety`", "-", "0.412 (0.31 to 0.52), 24 of 25"],
        ["`health_equity`", "0.412 (0.31 to 0.52)", "-"],
        ["`zz`", "0.412 (0.31 to 0.52)", "-"],
    ] == rows


def test_many_runs_have_a_line_each_and_few_panels_abreast() -> None:
    """Ten panels of four runs or more are three tables, the management plans apart, none wider than a terminal."""
    tables = panel_tables([run(n, *map(panel, PANEL_IDS)) for n in range(9)])
    headers = [cells(table.split("\n")[0]) for table in tables]

    assert [("run", *(f"`{name}`" for name in PANEL_IDS[at : at + 4])) for at in (0, 4, 8)] == [
        tuple(header) for header in headers
    ]
    assert [11, 11, 11] == [len(table.split("\n")) for table in tables]
    assert max(len(line) for table in tables for line in table.split("\n")) < WIDE


def test_a_model_name_cannot_break_a_table() -> None:
    """Bars and line ends in a name stay inside their cell."""
    (table,) = panel_tables([{**run(1, panel("p")), "answer_model": "a|b\nc"}])

    assert "| panel | a\\|b c `00000001`" in table
    assert 3 == len(table.split("\n"))


def test_columns_stand_below_each_other() -> None:
    """Every line of a table is as long as the others, so that it reads in a terminal."""
    assert "| a   | bcde |\n| --- | ---- |\n| 1   | 2    |" == aligned(["a", "bcde"], [["1", "2"]])
