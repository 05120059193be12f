"""The variance budget: components, the variance of the mean, what more calls buy, and flips of items."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from builder.errors import BadInput
from eval.audits.components import TERMS, Cells, components, design_of, mean_squares, mean_variance
from eval.audits.variance import item_flips, most_unstable, pooled_flips
from eval.audits.variance_report import variance_report
from eval.audits.variance_text import variance_text
from eval.judging.graded import GradedCase, RunData
from tests.gradings import graded_example, graded_run
from tests.runs import graded_case, run_of

TRUE = {
    "case": 0.04,
    "answer": 0.01,
    "judge": 0.004,
    "panel_judge": 0.002,
    "case_judge": 0.006,
    "answer_judge": 0.003,
    "repeat": 0.005,
}


def _simulated(rng: np.random.Generator, sizes: list[int], k: int, j: int, r: int) -> list[Cells]:
    """Return scores of panels of given sizes whose effects have the variances of TRUE."""

    def effect(name: str, *shape: int) -> NDArray[np.float64]:
        return rng.normal(0.5 if name == "case" else 0.0, math.sqrt(TRUE[name]), shape)

    judge = effect("judge", 1, 1, j, 1)
    return [
        judge
        + effect("panel_judge", 1, 1, j, 1)
        + effect("case", i, 1, 1, 1)
        + effect("answer", i, k, 1, 1)
        + effect("case_judge", i, 1, j, 1)
        + effect("answer_judge", i, k, j, 1)
        + effect("repeat", i, k, j, r)
        for i in sizes
    ]


def test_known_components_come_out_on_average() -> None:
    """Over 300 simulated runs of three unequal panels each mean estimate lies within four standard errors of truth."""
    rng = np.random.default_rng(3)
    found: dict[str, list[float]] = {name: [] for name in TERMS}
    for _ in range(300):
        panels = _simulated(rng, [6, 12, 9], 2, 4, 2)
        for name, part in components(mean_squares(panels), design_of(panels)).items():
            found[name].append(part.estimate or 0.0)
    for name, values in found.items():
        assert abs(np.mean(values) - TRUE[name]) < 4 * np.std(values) / math.sqrt(300), name


@pytest.mark.slow
def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    """Of 300 simulated runs 90% and more of the 95% intervals of each component hold its true value."""
    rng = np.random.default_rng(4)
    hits = dict.fromkeys(TERMS, 0)
    for _ in range(300):
        panels = _simulated(rng, [8, 8], 2, 3, 2)
        for name, part in components(mean_squares(panels), design_of(panels)).items():
            hits[name] += (part.low or 0.0) <= TRUE[name] <= (part.high or 0.0)
    assert all(count >= 270 for count in hits.values()), hits


@pytest.mark.slow
def test_the_variance_of_the_mean_is_that_of_simulated_means() -> None:
    """The mean of estimated variances of the macro mean is the variance of the simulated macro means, within 15%."""
    rng = np.random.default_rng(5)
    means, variances = [], []
    for _ in range(800):
        panels = _simulated(rng, [10, 5], 1, 3, 1)
        means.append(np.mean([panel.mean() for panel in panels]))
        design = design_of(panels)
        raw = components(mean_squares(panels), design)
        variances.append(sum((part.estimate or 0) / design.levels(TERMS[name]) for name, part in raw.items()))
    assert float(np.var(means)) == pytest.approx(float(np.mean(variances)), rel=0.15)


def _naive(y: Cells) -> dict[str, float]:
    """Return the sums of squares of one panel by loops over every cell."""
    ss = dict.fromkeys([name for name in TERMS if name != "panel_judge"], 0.0)
    for i, k, j, r in itertools.product(*map(range, y.shape)):
        grand, case, answer, judge = y.mean(), y[i].mean(), y[i, k].mean(), y[:, :, j].mean()
        case_judge, cell = y[i, :, j].mean(), y[i, k, j].mean()
        ss["case"] += (case - grand) ** 2
        ss["answer"] += (answer - case) ** 2
        ss["judge"] += (judge - grand) ** 2
        ss["case_judge"] += (case_judge - case - judge + grand) ** 2
        ss["answer_judge"] += (cell - answer - case_judge + case) ** 2
        ss["repeat"] += (y[i, k, j, r] - cell) ** 2
    return ss


@pytest.mark.parametrize("shape", [(4, 3, 2, 2), (5, 1, 3, 2), (3, 2, 1, 1), (2, 2, 2, 3)])
def test_sums_of_squares_are_those_of_a_naive_loop(shape: tuple[int, ...]) -> None:
    """The sums of squares of one panel are those of loops over every cell, and add up to the total."""
    y = np.random.default_rng(0).random(shape)
    found = mean_squares([y])

    assert _naive(y) == pytest.approx({name: found[name].ss for name in _naive(y)}, abs=1e-12)
    assert float(np.square(y - y.mean()).sum()) == pytest.approx(sum(square.ss for square in found.values()))
    assert y.size - 1 == sum(square.df for square in found.values())


def test_a_table_worked_by_hand() -> None:
    """Two cases by two judges by two repeats: MS 25/8 case, 9/8 judge, 1/8 crossed, 1/4 repeat, and their components.

    Judge 1 says (1, 1) and (2, 3), judge 2 says (0, 0) and (1, 2): means 1, 2.5, 0, 1.5; grand mean 1.25. Case means
    0.5 and 2: SS 4 x 2 x 0.75^2 = 4.5. Judge means 1.75 and 0.75: SS 2. Crossed: 0. Repeat: 4 x 0.25 = 1.
    """
    y = np.array([[[[1.0, 1.0], [0.0, 0.0]]], [[[2.0, 3.0], [1.0, 2.0]]]])
    squares = mean_squares([y])
    found = components(squares, design_of([y]))

    assert (4.5, 1) == (squares["case"].ss, squares["case"].df)
    assert (2.0, 1) == (squares["judge"].ss, squares["judge"].df)
    assert (0.0, 1) == (squares["case_judge"].ss, squares["case_judge"].df)
    assert (1.0, 4) == (squares["repeat"].ss, squares["repeat"].df)
    assert [4.5 / 4, 2 / 4, -0.25 / 2, 0.25] == [
        found[name].estimate for name in ("case", "judge", "case_judge", "repeat")
    ]
    assert (None, "case") == (found["answer"].estimate, found["answer"].held_by)
    # s_case/I + s_judge/J + 0 for the negative one + s_repeat/IJR
    assert 1.125 / 2 + 0.5 / 2 + 0.25 / 8 == mean_variance(found, design_of([y]))


def test_one_case_by_judge_mean_square_is_that_of_statsmodels() -> None:
    """With one answer the mean squares are those of a two-way analysis of variance with interaction."""
    sm = pytest.importorskip("statsmodels.stats.anova")
    api = pytest.importorskip("statsmodels.formula.api")
    pd = pytest.importorskip("pandas")
    y = np.random.default_rng(8).random((5, 1, 3, 2))
    rows = [{"y": y[i, 0, j, r], "i": i, "j": j} for i, j, r in np.ndindex(5, 3, 2)]
    table = sm.anova_lm(api.ols("y ~ C(i) * C(j)", data=pd.DataFrame(rows)).fit())
    found = mean_squares([y])

    names = {"C(i)": "case", "C(j)": "judge", "C(i):C(j)": "case_judge", "Residual": "repeat"}
    assert list(table["mean_sq"][list(names)]) == pytest.approx([found[name].ms for name in names.values()])


def test_a_lone_mean_square_has_the_chi_square_interval() -> None:
    """The interval of the repeat component is SS over the chi-square quantiles: 20.483 and 3.247 with 10 df."""
    y = np.random.default_rng(1).random((5, 1, 2, 2))
    part = components(mean_squares([y]), design_of([y]))["repeat"]
    ss = mean_squares([y])["repeat"].ss

    assert (ss / 20.483, ss / 3.247) == pytest.approx((part.low, part.high), rel=1e-3)


DEGENERATE = {
    (2, 3, 1): {"repeat": "answer_judge"},
    (2, 1, 2): {"judge": None, "case_judge": "case", "answer_judge": "answer"},
    (1, 3, 2): {"answer": "case", "answer_judge": "case_judge"},
    (1, 3, 1): {"answer": "case", "answer_judge": "case_judge", "repeat": "case_judge"},
    (1, 1, 2): {"answer": "case", "judge": None, "case_judge": "case", "answer_judge": "case"},
    (2, 1, 1): {"judge": None, "case_judge": "case", "answer_judge": "answer", "repeat": "answer"},
    (1, 1, 1): {"answer": "case", "judge": None, "case_judge": "case", "answer_judge": "case", "repeat": "case"},
}


@pytest.mark.parametrize("levels", DEGENERATE, ids=str)
def test_components_that_a_design_cannot_tell_stand_in_the_coarser_one(levels: tuple[int, int, int]) -> None:
    """With one answer, judge or repeat the components merge as listed, and all cases' spread is still accounted for."""
    y = np.random.default_rng(2).random((6, *levels))
    design, found = design_of([y]), components(mean_squares([y]), design_of([y]))

    assert DEGENERATE[levels] == {name: part.held_by for name, part in found.items() if part.estimate is None}
    raw = sum((part.estimate or 0) / design.levels(TERMS[name]) for name, part in found.items() if name != "judge")
    if levels[1] == 1:
        assert raw == pytest.approx(y.mean(axis=(1, 2, 3)).var(ddof=1) / 6)


def _run(rows: list[list[list[list[int | None]]]], **changes: Any) -> RunData:
    """Return a run of one-item cases on one panel: rows[case][answer][judge][repeat] is the decision."""
    cases = []
    for number, answers in enumerate(rows):
        for repeat, judges in enumerate(answers):
            ballots = tuple(tuple((None if m is None else bool(m),) for m in judge) for judge in judges)
            case = graded_case(f"c{number}", "drug_safety", (1,), [1], answer_repeat=repeat, ballots=ballots)
            cases.append(case)
    return run_of(*cases, **changes)


ROWS: list[list[list[list[int | None]]]] = [
    [[[1, 1, 1], [0, 0, 1]]],
    [[[0, 0, 0], [0, 0, 0]]],
    [[[1, 0, 1], [1, 1, 1]]],
    [[[1, 1, None], [1, 1, 1]]],
]


def test_only_complete_cases_enter_and_dropped_ones_are_counted() -> None:
    """Of four cases one lacks a decision: three enter, and the report says so."""
    report = variance_report(_run(ROWS), software={})
    panel = report["panels"]["drug_safety"]

    assert (4, 1, 3) == (panel["n_cases"], panel["n_incomplete"], panel["n"])
    assert 9 / 18 == pytest.approx(panel["mean"])
    assert panel["components"]["answer"] == {
        "estimate": None,
        "ci95": None,
        "share": None,
        "held_by": "case",
        "reason": "one level of a dimension: stands in case",
    }


def test_flips_are_counted_by_hand() -> None:
    """Repeats disagree for 2 of 8 (item, judge); votes for 1 of 4 items (case 0: true against false)."""
    flips = item_flips(_run(ROWS))
    found = pooled_flips(flips)

    assert (2 / 8, 8) == found["repeats"]
    assert (1 / 4, 4) == found["judges"]
    assert ["c0_0", "c2_0"] == [item.item_id for item in most_unstable(flips, top=10)]
    assert 8 / 15 == most_unstable(flips, top=1)[0].pairs


def test_what_a_step_costs() -> None:
    """Three cases, one answer, two judges, three repeats, a call each: 18 judge calls and 3 answers; steps add theirs.

    One more case 1 + 6, one more answer a case 3 x 7, one more judge 3 x 3, one more repeat 3 x 2.
    """
    identity = {"grouping": "case", "answer": {"source": "model"}, "judges": [{"model": "a"}, {"model": "b"}]}
    overall = variance_report(_run(ROWS, identity=identity), software={})["overall"]

    assert 21 == overall["calls"]
    assert [7, 21, 9, 6] == [overall["next"][name]["calls"] for name in ("case", "answer", "judge", "repeat")]


def test_a_step_the_design_cannot_tell_has_a_reason_and_a_best_case() -> None:
    """With one answer a case, what a second would do is null; at best it halves what answers may be of the cases."""
    step = variance_report(_run(ROWS), software={})["overall"]["next"]["answer"]

    assert (None, "one answer: how answers differ is not known") == (step["variance"], step["reason"])
    assert step["at_best"] is not None


def test_repeats_buy_most_where_only_repeats_differ() -> None:
    """Every judge says yes twice of three on every case: among these cases repeats buy most, and answers stay unknown.

    The repeats' mean square is 24 (2/3) / 48 = 1/3; the mean of 72 decisions has the variance 1/216, of 96 1/288.
    """
    overall = variance_report(_run([[[[1, 1, 0], [0, 1, 1]]]] * 12), software={})["overall"]

    assert ("case", "repeat") == (overall["best"], overall["best_without_cases"])
    assert [1 / 216, 1 / 288] == pytest.approx([overall["variance"], overall["next"]["repeat"]["variance"]])
    assert "With these cases only, 1 more repeat a judge buys most: 24 calls" in overall["sentence"]
    assert "Not compared, as the run has one: answer." in overall["sentence"]


def test_what_the_bootstrap_leaves_out_is_the_judges_share() -> None:
    """Where judges differ on all cases alike, resampling cases shows nothing of it: the share left out is all."""
    rows: list[list[list[list[int | None]]]] = [[[[1, 1], [0, 0]]] for _ in range(5)]
    overall = variance_report(_run(rows), software={})["overall"]

    assert 1.0 == overall["left_out_by_bootstrap"]
    assert 0.5 / 2 == overall["variance"]


def test_one_case_a_panel_says_nothing_of_the_mean() -> None:
    """A smoke run's variance is null with the reason, and its text still comes."""
    report = variance_report(_run(ROWS[:1]), software={})

    assert (None, "one case a panel: how cases differ is not known") == (
        report["overall"]["variance"],
        report["overall"]["reason"],
    )
    assert "run more cases" in report["overall"]["sentence"]
    assert variance_text(report)


def test_a_panel_without_a_complete_case_makes_the_overall_null() -> None:
    """The overall budget is null while a panel has no complete case, and names it."""
    empty = graded_case("x", "landmark_trials", (1,), [1], ballots=(((None,), (True,), (True,)),) * 2)
    report = variance_report(run_of(*_run(ROWS).cases, empty), software={})

    assert "no complete case with a score in: landmark_trials" == report["overall"]["reason"]
    assert report["panels"]["drug_safety"]["variance"] is not None
    assert variance_text(report)


def test_a_run_without_ballots_is_refused() -> None:
    """Another evaluator's file says nothing of single judges: one clear line."""
    with pytest.raises(BadInput, match="expected a run with its judges' decisions, found none"):
        variance_report(run_of(graded_case("a", "drug_safety", (1,), [1])), software={})


def _example(number: int, *judges: tuple[int, int]) -> GradedCase:
    ballots = tuple((tuple(map(bool, cell)),) for cell in judges)
    return graded_example(f"e{number}", (5, -8), [1, 0], ballots=ballots)


def test_healthbench_scores_are_not_clipped() -> None:
    """An example's cell may be below 0: met items 5 and -8 of 5 to earn make -0.6, and the mean counts it so."""
    run = graded_run(_example(0, (1, 1), (1, 0)), _example(1, (0, 1), (1, 1)))
    report = variance_report(run, software={})

    assert (-0.6 + 1.0 - 1.6 - 0.6) / 4 == pytest.approx(report["overall"]["mean"])
    assert ["healthbench"] == list(report["panels"])


def test_the_report_is_json_and_the_text_fits_80_columns() -> None:
    """A report holds no NaN and its text no line over 80 columns."""
    report = variance_report(_run(ROWS), software={})
    json.dumps(report, allow_nan=False)

    assert "bedside-bench/variance/1" == report["format"]
    assert max(map(len, variance_text(report).splitlines())) <= 80


def test_a_block_without_a_number_has_every_key() -> None:
    """What a full block holds is null in an empty one, with the reason: no reader has to ask for a key first."""
    empty = graded_case("x", "landmark_trials", (1,), [1], ballots=(((None,), (True,), (True,)),) * 2)
    panels = variance_report(run_of(*_run(ROWS).cases, empty), software={})["panels"]
    full, none = panels["drug_safety"], panels["landmark_trials"]

    assert full.keys() == none.keys()
    assert "no complete case with a score" == none["reason"]
    assert {None} == {none[key] for key in ("mean", "variance", "components", "next", "best", "sentence")}


def test_the_text_lists_five_unstable_items_and_counts_in_words() -> None:
    """Of nine items that flip five are shown, all nine in the report; one answer is not called answers."""
    report = variance_report(_run([[[[1, 1, 0], [0, 1, 1]]]] * 9), software={})
    text = variance_text(report)

    assert 9 == len(report["unstable_items"])
    assert 5 == sum("_0  drug_safety" in line for line in text.splitlines())
    assert "9 cases x 1 answer x 2 judges x 3 repeats" in text
