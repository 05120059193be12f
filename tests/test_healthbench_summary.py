"""The summary of a HealthBench run: numbers worked by hand, the notices, the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.healthbench.notices import CLIPPED, NO_SCORE, OTHER_TEMPLATE, OWN_GRADER
from eval.healthbench.summary import LengthRule
from eval.numbers.readers import read_run
from eval.numbers.summary import summarise
from eval.showing.report import score_table
from tests.at_hub import command
from tests.examples import example_id_of, make_criterion, make_example, make_ideal, make_meta
from tests.gradings import example_mirror, graded_example, graded_run, grading_plan
from tests.journals import write_journal
from tests.plans import run
from tests.runs import jury_identity

POLICY = ["--answer-model", "builtin:all-items", "--judge-model", "builtin:verbatim"]
X, Y = ("axis:x",), ("axis:y",)
# By hand: 5/8 = 0.625; (0 - 20)/10 = -2; 2/2 = 1. Their mean is -0.125.
ONE = graded_example("1", (5, 3, -4), (1, 0, 0), tags=("theme:a",), item_tags=(X, Y, X), n_chars=0)
TWO = graded_example("2", (10, -20), (0, 1), tags=("theme:b",), item_tags=(X, Y), n_chars=500)
THREE = graded_example("3", (2,), (1,), tags=("theme:a",), item_tags=(Y,), n_chars=500)
FAILED = graded_example("4", (4, -2), None, decided=(True, None), tags=("theme:a",), item_tags=(X, Y))
HOPELESS = graded_example("5", (-2, -3), (1, 0), tags=("theme:a",), item_tags=(X, Y))


def summary_of(*cases: Any, **options: Any) -> dict[str, Any]:
    """Return the summary of a run of examples."""
    return summarise(graded_run(*cases), software={}, **options)


def brief(metric: dict[str, Any]) -> tuple[Any, ...]:
    """Return a metric's clipped mean, raw mean and n."""
    return pytest.approx(metric["value"]), pytest.approx(metric["raw"]), metric["n"]


# -- numbers by hand


def test_the_mean_is_clipped_after_averaging_with_the_raw_one_beside() -> None:
    """(0.625 - 2 + 1) / 3 = -0.125: shown as 0; clipped example by example it would be 0.54."""
    summary = summary_of(ONE, TWO, THREE)

    assert (0.0, -0.125, 3) == brief(summary["healthbench"]["overall"])
    assert {"n": 3, "mean": 0.0, "ci95": summary["overall_ci95"]} == summary["benchmarks"]["healthbench"]
    assert 0.0 == summary["overall_macro_mean"]


def test_tags_by_hand() -> None:
    """A theme takes its examples' scores; an axis the same formula over its items, skipped where nothing is earned."""
    member = summary_of(ONE, TWO, THREE)["healthbench"]

    assert {"theme:a": (0.8125, 0.8125, 2), "theme:b": (0.0, -2.0, 1)} == {
        tag: brief(found) for tag, found in member["example_tags"].items()
    }
    # x: 5/5 and 0/10 (the -4 was not met); y: 0/3 and 2/2, the second example has nothing to earn there.
    assert {"axis:x": (0.5, 0.5, 2), "axis:y": (0.5, 0.5, 2)} == {
        tag: brief(found) for tag, found in member["rubric_tags"].items()
    }


def test_the_deviation_and_the_interval_are_of_clipped_resamples() -> None:
    """1,000 resamples of default_rng(42), 95% percentiles; the two stand beside every metric."""
    drawn = np.random.default_rng(42).integers(0, 2, (1000, 2))
    means = np.clip(np.array([0.625, -2.0])[drawn].mean(axis=1), 0, 1)
    overall = summary_of(ONE, TWO)["healthbench"]["overall"]

    assert pytest.approx(means.std()) == overall["bootstrap_std"]
    assert pytest.approx(np.percentile(means, [2.5, 97.5])) == overall["ci95"]


def test_the_length_adjusted_score_stands_beside_the_other() -> None:
    """Centre 500, 0.6 for 500 characters: 0.625 + 0.6, -2, 1 give 0.075; the unadjusted 0 stays."""
    member = summary_of(ONE, TWO, THREE, length=LengthRule(500, 0.6))["healthbench"]
    adjusted = member["length_adjusted"]

    assert (500, 0.6) == (adjusted["center"], adjusted["penalty"])
    assert (0.075, 0.075, 3) == brief(adjusted)
    assert -0.125 == member["overall"]["raw"]
    assert "length_adjusted" not in summary_of(ONE)["healthbench"]


def test_answers_are_nested_and_the_worst_of_k_is_shown() -> None:
    """A: 0, 1/2, 1; B: 1, 1, 1. Runs 0.5, 0.75, 1; worst of 2: (1/6 + 1)/2; of 3: (0 + 1)/2."""
    rows = {"A": [(0, 0), (1, 0), (1, 1)], "B": [(1, 1), (1, 1), (1, 1)]}
    cases = [
        graded_example(name, (1, 1), matched, answer_repeat=repeat)
        for name, row in rows.items()
        for repeat, matched in enumerate(row)
    ]
    member = summary_of(*cases)["healthbench"]
    repeats = member["repeats"]

    assert (0.75, 0.75, 2) == brief(member["overall"])
    assert [0.5, 0.75, 1.0] == [found["value"] for found in repeats["runs"]]
    assert (0.75, 0.5, 1.0, 2) == tuple(repeats[name] for name in ("mean", "low", "high", "n_examples"))
    assert {"1": 0.75, "2": pytest.approx(7 / 12), "3": 0.5} == {
        k: found["value"] for k, found in repeats["worst_at_k"].items()
    }


def test_an_example_counts_in_no_number_until_all_its_answers_are_graded() -> None:
    """A mean of two of three answers would be another example's; its bounds say what it could be."""
    half = [graded_example("A", (1,), (1,)), graded_example("A", (1,), None, answer_repeat=1)]
    whole = [graded_example("B", (1, 1), (1, 0), answer_repeat=n) for n in (0, 1)]
    summary = summary_of(*half, *whole)

    assert (1, 2, 0.5) == (summary["n_graded"], summary["n_expected"], summary["overall_macro_mean"])
    assert ((0.5 + 0.5) / 2, (1 + 0.5) / 2) == (summary["overall_worst"], summary["overall_best"])
    assert (0.5, 0.5, 1) == brief(summary["healthbench"]["repeats"]["worst_at_k"]["2"])


def test_a_failed_example_is_counted_and_widens_the_bounds() -> None:
    """4 met of 4, the -2 open: 0.5 to 1. With 0.625 and -2: (-0.875)/3 and (-0.375)/3, clipped 0."""
    summary, alone = summary_of(ONE, TWO, FAILED), summary_of(ONE, FAILED)

    assert (2, 3, 1) == (summary["n_graded"], summary["n_expected"], summary["n_failed"])
    assert (0.0, 0.0) == (summary["overall_worst"], summary["overall_best"])
    assert (0.5625, 0.8125) == (alone["overall_worst"], alone["overall_best"])


def test_an_example_with_nothing_to_earn_has_no_score() -> None:
    """It is counted as failed with its reason, leaves every mean, and opens no bounds."""
    summary = summary_of(ONE, HOPELESS)

    assert (1, 1, 0.625) == (summary["n_graded"], summary["n_failed"], summary["overall_macro_mean"])
    assert [("5", "score", "no-positive-points", "an example without positive points has no score")] == [
        tuple(failed[name] for name in ("case_id", "role", "state", "reason")) for failed in summary["failed_cases"]
    ]
    assert (0.625, 0.625) == (summary["overall_worst"], summary["overall_best"])
    assert 1 == summary["healthbench"]["example_tags"]["theme:a"]["n"]


# -- what is said, and shown


def test_the_notices_say_what_the_numbers_compare_with() -> None:
    """Our wording of the grader's prompt, a user's template, the rule of clipping; no word of 50 cases a panel."""
    own = summary_of(ONE)["notices"]
    asked = {"protocol_version": "healthbench+template-0123abcd", "identity": jury_identity(1)}
    other = summarise(graded_run(ONE, **asked), software={})["notices"]

    assert OWN_GRADER in own
    assert CLIPPED in own
    assert OTHER_TEMPLATE in other
    assert OWN_GRADER not in other
    assert not [notice for notice in own if "50" in notice or "panel" in notice]


def test_a_protocol_that_is_not_the_usual_is_said() -> None:
    """With its name."""
    name = "healthbench+bedside-bench-grader-v1+0123abcd"
    notices = summarise(graded_run(ONE, protocol_version=name), software={})["notices"]

    assert [f"non-standard protocol {name}"] == [n.split(":")[0] for n in notices if n.startswith("non-standard")]


def test_groups_are_those_of_completions_only(tmp_path: Path) -> None:
    """A physicians' group says who wrote a completion; a model's answer to the same conversation is of no group."""
    lines = [make_example(n, ideal_completions_data=make_ideal(n, f"Group {n % 2}")) for n in range(3)]
    mirror = example_mirror(tmp_path, lines)
    run(grading_plan(mirror), tmp_path / "model.jsonl")
    run(grading_plan(mirror, answers="physician"), tmp_path / "physician.jsonl")
    model, physician = (summarise(read_run(tmp_path / f"{name}.jsonl"), software={}) for name in ("model", "physician"))

    assert "groups" not in model["healthbench"]
    assert {"Group 0": 2, "Group 1": 1} == {name: g["n"] for name, g in physician["healthbench"]["groups"].items()}
    assert [n for n in physician["notices"] if n.startswith("answers are the data's own completions (physician)")]


def test_a_meta_run_has_no_score(tmp_path: Path) -> None:
    """It is finished and graded all the same; the summary says where its numbers are."""
    mirror = example_mirror(tmp_path, map(make_meta, range(3)), config="healthbench_meta")
    run(grading_plan(mirror, answers="given"), tmp_path / "x.jsonl")
    summary = summarise(read_run(tmp_path / "x.jsonl"), software={})

    assert (3, 0, None, NO_SCORE) == tuple(
        summary[name] for name in ("n_graded", "n_failed", "overall_macro_mean", "overall_reason")
    )
    assert "healthbench" not in summary
    assert NO_SCORE in summary["notices"]


WIDE: dict[str, Callable[[], dict[str, Any]]] = {
    "usual": lambda: summary_of(ONE, TWO, THREE, FAILED, HOPELESS),
    "nothing graded": lambda: summary_of(FAILED),
    "long tags": lambda: summary_of(
        graded_example(
            "1", (1,), (1,), tags=("physician_agreed_category:" + "many words of " * 9,), item_tags=(("t" * 200,),)
        )
    ),
    "far below 0": lambda: summary_of(graded_example("1", (0.001, -900), (0, 1)), length=LengthRule(2000, 0.0147)),
    "endlessly below 0": lambda: summary_of(graded_example("1", (1e-9, -1e200), (0, 1)), THREE),
    "many answers": lambda: summary_of(*(graded_example("1", (1, 1), (n % 2, 1), answer_repeat=n) for n in range(16))),
}


@pytest.mark.parametrize("make", WIDE.values(), ids=WIDE)
def test_the_table_fits_80_columns(make: Callable[[], dict[str, Any]]) -> None:
    """Whatever tags and scores there are."""
    table = score_table(make())

    assert [] == [line for line in table.splitlines() if len(line) > 80]


def test_the_table_shows_clipped_and_raw() -> None:
    """One row a metric: n, mean, raw, interval."""
    rows = [line.split()[:4] for line in score_table(summary_of(ONE, TWO, THREE)).splitlines()]

    assert ["healthbench", "3", "0.000", "-0.125"] in rows
    assert ["theme:b", "1", "0.000", "-2.000"] in rows
    assert ["axis:x", "2", "0.500", "0.500"] in rows


# -- on the command line


def test_an_example_that_can_have_no_score_ends_a_run_with_1(here: Path) -> None:
    """And the last line says that asking again does not help, and what names it."""
    lines = [make_example(0), make_example(1, rubrics=[make_criterion(points=-1)])]
    code, _, err = command("run", example_mirror(here, lines), *POLICY, "-o", here / "x.jsonl")

    assert 1 == code
    assert f"ungraded: healthbench/{example_id_of(1)}: score no-positive-points: an example without" in err
    assert "1 of them can have no score, whatever is answered: bedside-bench check names them" in err
    assert "repeat the command" not in err


def test_the_length_options_go_together(here: Path) -> None:
    """One alone is wrong usage; both add a row and leave the run's own summary as it was."""
    run(grading_plan(example_mirror(here, [make_example()])), here / "x.jsonl")
    command("score", "x.jsonl")
    own = (here / "x.summary.json").read_bytes()
    code, out, _ = command("score", "x.jsonl", "--length-center", "2000", "--length-penalty", "0.0147")

    assert 2 == command("score", "x.jsonl", "--length-center", "2000")[0]
    assert 2 == command("score", "x.jsonl", "--length-penalty", "0.1")[0]
    assert (0, True, own) == (code, "length-adjusted (2000, 0.0147)" in out, (here / "x.summary.json").read_bytes())


def test_settings_of_the_other_suite_are_refused(here: Path) -> None:
    """A dialect on HealthBench, a length rule on BedsideBench: one line each."""
    run(grading_plan(example_mirror(here, [make_example()])), here / "x.jsonl")
    write_journal(here / "y.jsonl", panels=["drug_safety"])

    assert (1, "error: --dialect upstream: expected spec, the one rule that HealthBench has\n") == command(
        "score", "x.jsonl", "--dialect", "upstream"
    )[::2]
    code, _, err = command("score", "y.jsonl", "--length-center", "1", "--length-penalty", "1")
    assert (1, True) == (code, err.startswith("error: --length-center: expected a HealthBench run"))
