"""The table a person reads: 80 columns, whole names, bars, flags, and dashes for what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from bedside_bench import PANEL_IDS
from eval.judging.graded import GradedCase
from eval.numbers.summary import summarise
from eval.showing.cells import bar, number
from eval.showing.report import WIDTH, score_table, side_by_side
from tests.runs import full_run, graded_case, jury_identity, run_of

DRUGS, EQUITY = "drug_safety", "health_equity"


def _summary(*cases: GradedCase, dialect: str = "spec", **facts: Any) -> dict[str, Any]:
    run = run_of(*cases, **facts) if cases else full_run(2)
    return summarise(run, dialect=dialect, samples=100, seed=42, software={"bedside-bench": "9.9"})


def _lines(*cases: GradedCase, **facts: Any) -> list[str]:
    return score_table(_summary(*cases, **facts)).split("\n")


def _failed(panel: str, name: str = "f") -> GradedCase:
    return graded_case(name, panel, [1, 1, -1], None)


def test_a_run_reads_as_one_row_a_panel() -> None:
    """Ten panels of the scores 0 and 1: n, mean, interval and bar in one row each, the overall last."""
    lines = _lines()

    assert "drug_safety                   2  0.500  0.000-1.000     ==========o=========" == lines[2]
    assert list(PANEL_IDS) == [line.split()[0] for line in lines[2:12]]
    assert lines[13].startswith("overall (macro mean)         20  0.500  ")


LONG = "organisation/" + "a-very-long-model-name-" * 8
RUNS: dict[str, list[GradedCase]] = {
    "graded": [graded_case(f"{p}-{n}", p, [1, -1], [n, 0]) for p in PANEL_IDS for n in (0, 1)],
    "equal": [graded_case(f"{p}-{n}", p, [1, -1], [1, 0]) for p in PANEL_IDS for n in (0, 1)],
    "failed": [_failed(panel, f"{panel}-{n}") for panel in PANEL_IDS for n in range(11)],
    "panels of mine": [graded_case("a", "mine_" * 8, [1], [1]), graded_case("b", "mine" * 30, [1], [1])],
}


@pytest.mark.parametrize("dialect", ["spec", "upstream"])
@pytest.mark.parametrize("cases", RUNS.values(), ids=RUNS.keys())
def test_no_line_is_wider_than_80_columns(cases: list[GradedCase], dialect: str) -> None:
    """Long model names, long panel names, failures in every panel and every notice fit a terminal of 80 columns."""
    facts = {"answer_model": LONG, "judge_model": LONG.replace("-", ""), "protocol_version": f"v1+{'8' * 90}"}
    lines = _lines(*cases, dialect=dialect, **facts)

    assert [] == [line for line in lines if len(line) > WIDTH]
    assert LONG in "".join(line.strip() for line in lines)


def test_large_counts_keep_the_columns() -> None:
    """1,000 of 1,001 cases take room from the name's column, never from the numbers'."""
    cases = [graded_case(f"c{n}", DRUGS, [1], [n % 2]) for n in range(1000)]
    lines = _lines(*cases, _failed(DRUGS))

    assert "drug_safety           1000/1001  0.500  " == lines[2][:40]


def test_unknown_is_a_dash_and_never_a_zero() -> None:
    """A panel without a graded case has no mean, interval or bar, and neither has the overall."""
    lines = _lines(graded_case("a", DRUGS, [1], [1]), _failed(EQUITY))

    assert "health_equity               0/1      -  -" == lines[3]
    assert "overall (macro mean)        1/2      -  -" == lines[6]
    assert "drug_safety                   1  1.000  -               ...................o" == lines[2]


def test_ungraded_cases_show_what_they_leave_open() -> None:
    """Scores 1 and failed: the row says 1.000 of 1/2, the next what the mean could be, 0.500 to 1.000."""
    lines = _lines(graded_case("a", DRUGS, [1], [1]), _failed(DRUGS))

    assert "drug_safety                 1/2  1.000  -               ...................o" == lines[2]
    assert "  worst to best                         0.500-1.000     ..........==========" == lines[3]
    assert lines[3] == lines[6]


def test_a_complete_run_has_no_bounds() -> None:
    """Nothing is missing, so no row speaks of worst and best."""
    assert not [line for line in _lines() if "worst" in line]


def test_equal_scores_are_flagged_once() -> None:
    """Equal scores give a zero-width interval: the panel and the overall carry a star, its meaning stands once."""
    lines = _lines(*(graded_case(f"c{n}", DRUGS, [1], [1]) for n in range(3)))

    assert "drug_safety                   3  1.000  1.000-1.000*    ...................o" == lines[2]
    assert "overall (macro mean)          3  1.000  1.000-1.000*    ...................o" == lines[4]
    assert "* this width is no certainty: the notes say why" == lines[5]
    assert 1 == sum("all scores are equal" in line for line in lines)


def test_a_panel_of_one_case_flags_the_overall() -> None:
    """Its zero width goes into the overall interval: that one carries the star, the panel has no interval at all."""
    lines = _lines(graded_case("a", DRUGS, [1], [1]), *(graded_case(f"c{n}", EQUITY, [1], [n]) for n in (0, 1)))

    assert "*" not in "".join(lines[2:4])
    assert "*" in lines[5]


def test_the_signature_says_what_the_scores_depend_on() -> None:
    """Models, passes, dialect, protocol, digests, cases, date and version stand under every table."""
    facts = {"dataset_sha256": "d" * 64, "finished_at": "2026-01-02T03:04:05.000000Z", "semantics_sha256": "5" * 64}
    lines = _lines(graded_case("a", DRUGS, [1], [1]), **facts)

    assert [
        "",
        "answers: answer-model",
        "judge: judge-model, 1 pass an answer  |  dialect: spec",
        "protocol: bedside-bench-grading-v1  |  semantics: 555555555555",
        "data: dddddddddddd  |  cases: 1 of 1",
        "finished: 2026-01-02T03:04:05.000000Z  |  bedside-bench 9.9",
    ] == lines[5:11]


def test_names_cannot_write_to_the_terminal() -> None:
    """A model name from somebody's file shows as plain words: no line break, no escape sequence."""
    text = score_table(_summary(graded_case("a", DRUGS, [1], [1]), answer_model="m\n\x1b[2Jn", judge_model=None))

    assert "answers: m [2Jn\njudge: -, 1 pass" in text
    assert "\x1b" not in text


def test_jury_passes_are_counted() -> None:
    """Two judges, three repeats: six passes an answer."""
    identity = jury_identity(2, 3)

    assert "judge: judge-model, 6 passes an answer" in score_table(
        _summary(graded_case("a", DRUGS, [1], [1]), identity=identity)
    )


@pytest.mark.parametrize(
    ("mean", "interval", "cells"),
    [
        (0.5, [0.25, 0.75], ".....=====o====="),
        (0.0, None, "o"),
        (1.0, [1.0, 1.0], "...................o"),
        (None, [0.9, 1.0], "..................=="),
    ],
)
def test_bars_run_from_0_to_1(mean: float | None, interval: list[float] | None, cells: str) -> None:
    """Twenty cells of 0.05: `o` holds the mean, `=` the interval."""
    assert cells.ljust(20, ".") == bar(mean, interval)


def test_bars_and_numbers_of_nothing() -> None:
    """Nothing known, nothing drawn."""
    assert ("", "-", "0.000") == (bar(None, None), number(None), number(0.0))


def test_runs_stand_side_by_side() -> None:
    """Four runs fit 80 columns, their names apart, a dash where a run has no score."""
    one, failed = _summary(), _summary(*(_failed(panel, panel) for panel in PANEL_IDS))
    table = side_by_side({"refuse": one, "echo-prompt": one, "all-items": one, "positive-items": failed}).split("\n")

    assert ["panel", "refuse", "echo-prompt", "all-items", "positive-items"] == table[0].split()
    assert ["drug_safety", ".50", ".00-1.0", ".50", ".00-1.0", ".50", ".00-1.0", "-"] == table[2].split()
    assert ["overall", "(macro", "mean)", ".50"] == table[13].split()[:4]
    assert max(map(len, table)) <= WIDTH
