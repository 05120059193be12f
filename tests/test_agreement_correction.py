"""Scores corrected by human labels: worked by hand, and intervals that cover as often as they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import t as student

from eval.agreement.correction import corrected_scores
from eval.agreement.correction_text import correction_text
from eval.agreement.judge_error import wilson
from eval.agreement.ppi import TUNE_FROM, estimate, mean_of_estimates
from eval.judging.graded import RunData
from eval.numbers.panels import wilson95
from tests.labelled import graded, labels_of, run_of

Floats = NDArray[np.float64]
FOUR = run_of(*(graded(name, word, (1, 1)) for name, word in {"a": "yy", "b": "yn", "c": "yy", "d": "nn"}.items()))
"""The judge scores 1, 0.5, 1, 0: mean 0.625, variance 11/48."""
TWO_LABELLED = {"lee": labels_of({"a": "yn", "d": "nn"})}
"""People score a 0.5, not 1, and d 0 as the judge does."""


def test_two_labels_of_four_by_hand() -> None:
    """0.625 + mean(-0.5, 0) = 0.375; l = 1/2 leaves y - l f = 0 twice, so Var = (1/2)^2 * (11/48) / 2."""
    panel = corrected_scores(FOUR, TWO_LABELLED)["panels"]["drug_safety"]

    assert (0.625, 0.5, 0.25, 0.375) == (
        panel["judge"],
        panel["judge_labelled"],
        panel["human_labelled"],
        panel["value"],
    )
    assert panel["se"] == pytest.approx(math.sqrt(11 / 48 / 8), rel=1e-12)
    assert (4, 4, 2, 1.0, False) == tuple(panel[key] for key in ("n_expected", "n", "n_labelled", "lambda", "tuned"))
    assert [0.0, 1.0] == panel["ci95"]


def test_the_interval_is_students() -> None:
    """With labels of 3 of 4 cases: 2 degrees of freedom, and both parts of the variance from their definition."""
    f, y = [1.0, 0.5, 1.0, 0.0], [0.5, 0.5, 1.0]
    found = estimate(f, [0, 1, 2], y)
    small = [value - 0.25 * judge for value, judge in zip(y, f, strict=False)]
    variance = np.var(small, ddof=1) / 3 + 0.25**2 * np.var(f, ddof=1) / 1

    assert found.value == pytest.approx(0.625 - 0.5 / 3, rel=1e-12)
    assert found.variance == pytest.approx(variance, rel=1e-12)
    assert found.interval(0.05)[1] - found.value == pytest.approx(
        student.ppf(0.975, 2) * math.sqrt(variance), rel=1e-12
    )


def test_all_labelled_is_the_human_mean() -> None:
    """Where people scored every case the judge no longer matters: mean and t interval of their scores."""
    found = estimate([1.0, 0.0, 0.3], [0, 1, 2], [0.2, 0.4, 0.9])

    assert found.value == pytest.approx(0.5, rel=1e-12)
    assert found.variance == pytest.approx(np.var([0.2, 0.4, 0.9], ddof=1) / 3, rel=1e-12)
    assert found.judge_variance == 0


def test_lambda_is_fitted_from_twenty_labels_on() -> None:
    """People give half of the judge's score plus a quarter: at 20 labels the weight is 1/2, nothing is left."""
    f = [0.0, 1.0] * 20
    y = [0.25 + 0.5 * value for value in f]
    fitted, plain = estimate(f, range(TUNE_FROM), y[:TUNE_FROM]), estimate(f, range(19), y[:19])

    assert (True, 0.5, 18) == (fitted.tuned, fitted.lambda_, fitted.df)
    assert (False, 1.0, 18) == (plain.tuned, plain.lambda_, plain.df)
    assert fitted.degenerate
    assert fitted.value == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(("slope", "lambda_"), [(-1.0, 0.0), (2.0, 1.0)], ids=["contrary", "steep"])
def test_lambda_stays_between_0_and_1(slope: float, lambda_: float) -> None:
    """A judge that errs against people is left out, never turned round."""
    f = [0.1, 0.2, 0.3, 0.4] * 6

    assert lambda_ == estimate(f, range(20), [0.5 + slope * (value - 0.25) for value in f[:20]]).lambda_


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=30), st.data())
def test_the_order_of_labels_does_not_matter(pairs: list[tuple[float, float]], data: st.DataObject) -> None:
    """Labels in another order give the same estimate."""
    n = data.draw(st.integers(2, len(pairs)))
    places = data.draw(st.permutations(range(len(pairs))))[:n]
    judge, human = [pair[0] for pair in pairs], [pairs[place][1] for place in places]
    one, two = estimate(judge, places, human), estimate(judge, places[::-1], human[::-1])

    assert one.value == pytest.approx(two.value, abs=1e-9)
    assert one.variance == pytest.approx(two.variance, abs=1e-9)


def test_one_label_gives_no_estimate() -> None:
    """One labelled case has no variance: null with the reason, in the panel and overall, while the counts stand."""
    report = corrected_scores(FOUR, {"lee": labels_of({"a": "yy"})})
    panel = report["panels"]["drug_safety"]

    assert (None, None, "fewer than 2 labelled cases") == (panel["value"], panel["ci95"], panel["reason"])
    assert (1, 1.0) == (panel["n_labelled"], panel["human_labelled"])
    assert "fewer than 2 labelled cases in: drug_safety" == report["overall"]["reason"]


def test_a_judge_without_errors_is_flagged() -> None:
    """Where labels agree with the judge throughout, the interval holds the choice of cases alone, and says so."""
    report = corrected_scores(FOUR, {"lee": labels_of({"a": "yy", "b": "yn"})})

    assert report["panels"]["drug_safety"]["degenerate"] is True
    assert any(line.startswith("+ the labels show no spread") for line in correction_text(report))


def test_a_case_with_an_item_unlabelled_is_dropped() -> None:
    """Partly labelled and tied cases have no human score; they are counted, and their items still count as items."""
    labels = {"a": labels_of({"a": "y?", "b": "yy", "c": "yy"}), "b": labels_of({"b": "yn", "d": "nn"})}
    report = corrected_scores(FOUR, labels)

    assert {"partly_labelled": 2, "not_graded": 0} == report["dropped"]
    assert 2 == report["panels"]["drug_safety"]["n_labelled"]
    assert (6, 1) == (report["n_items_labelled"], report["n_items_tied"])


def test_a_case_that_the_judge_did_not_grade_is_left_out() -> None:
    """A label on a failed case is counted, not scored: there is no judge's score beside it."""
    run = run_of(graded("a", None, (1, 1)), *FOUR.cases[1:])
    report = corrected_scores(run, {"lee": labels_of({"a": "yy", "b": "yn", "d": "nn"})})

    assert {"partly_labelled": 0, "not_graded": 1} == report["dropped"]
    assert (4, 3) == tuple(report["panels"]["drug_safety"][key] for key in ("n_expected", "n"))


def test_an_unresolved_item_counts_at_its_worst() -> None:
    """The judge's score is the headline: an unresolved +1 unmet, an unresolved -1 met."""
    run = run_of(graded("a", "y?", (1, 1)), graded("b", "y?", (2, -1)), graded("c", "yn", (1, -1)))
    report = corrected_scores(run, {"lee": labels_of({"a": "yy", "b": "yn"})})

    assert report["panels"]["drug_safety"]["judge"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert 1 == report["judge_error"]["positive"]["n_unresolved"]


def test_several_answers_are_one_case() -> None:
    """Two answers to a case are its mean, of the judge as of people; one labelled answer of two is not enough."""
    run = run_of(
        *(graded(name, word, (1, 1), repeat=repeat) for name in "abc" for repeat, word in enumerate(("yy", "nn")))
    )
    both = {
        **labels_of({"a": "yy", "b": "yn"}),
        **labels_of({"a": "yy", "b": "nn"}, repeat=1),
        **labels_of({"c": "yy"}),
    }
    panel = corrected_scores(run, {"lee": both})["panels"]["drug_safety"]

    assert (3, 2, 0.5) == (panel["n"], panel["n_labelled"], panel["judge"])
    assert panel["human_labelled"] == pytest.approx((1 + 0.25) / 2)


def two_panels() -> RunData:
    """Return FOUR and a plan panel of three cases."""
    plan = {"p": "ynn", "q": "yny", "r": "nnn"}
    return run_of(*FOUR.cases, *(graded(k, w, (3, 1, -2), panel="safety_diagnostic") for k, w in plan.items()))


def test_overall_is_the_mean_of_the_panels() -> None:
    """The estimates are averaged with one weight a panel, their variances added over the square of the number."""
    labels = {"lee": {**TWO_LABELLED["lee"], **labels_of({"p": "yyn", "r": "nnn"})}}
    report = corrected_scores(two_panels(), labels)
    one, two = (report["panels"][panel] for panel in ("drug_safety", "safety_diagnostic"))
    overall = report["overall"]

    assert overall["value"] == pytest.approx((one["value"] + two["value"]) / 2)
    assert overall["se"] == pytest.approx(math.hypot(one["se"], two["se"]) / 2)
    assert (2, 7, 4) == (overall["n_panels"], overall["n"], overall["n_labelled"])


def test_overall_is_null_while_a_panel_has_no_labels() -> None:
    """A panel that nobody labelled is not left out in silence."""
    overall = corrected_scores(two_panels(), TWO_LABELLED)["overall"]

    assert (None, "fewer than 2 labelled cases in: safety_diagnostic") == (overall["value"], overall["reason"])


def test_satterthwaites_degrees_of_freedom() -> None:
    """Two equal variances with 4 degrees each have 8 together."""
    one = estimate([0.0, 0.5, 0.5, 1.0, 0.2, 0.1], range(5), [0.1, 0.4, 0.7, 1.0, 0.2])

    assert 8 == pytest.approx(mean_of_estimates([one, one]).df)
    assert one.variance / 2 == pytest.approx(mean_of_estimates([one, one]).variance)


def test_healthbench_is_clipped_after_averaging() -> None:
    """Examples may score below 0; the estimate is clipped, and the raw value stands beside it."""
    run = run_of(*(graded(name, "ny", (5, -5), panel="healthbench") for name in "abc"))
    panel = corrected_scores(run, {"lee": labels_of({"a": "ny", "b": "ny"})})["panels"]["healthbench"]

    assert (0.0, 0.0, -1.0, [0.0, 0.0]) == (panel["judge"], panel["value"], panel["raw"], panel["ci95"])


def test_judge_errors_are_counted_by_sign() -> None:
    """On positive items 2 of 3 met are found and 1 of 2 unmet; on negative ones the single unmet is called met."""
    run = run_of(graded("a", "yynyny", (1, 1, 1, 1, 1, -1)))
    error = corrected_scores(run, {"lee": labels_of({"a": "yyynnn"})})["judge_error"]

    assert (2 / 3, 3) == (error["positive"]["sensitivity"]["value"], error["positive"]["sensitivity"]["n"])
    assert (1 / 2, 2) == (error["positive"]["specificity"]["value"], error["positive"]["specificity"]["n"])
    assert (0.0, 1) == (error["negative"]["specificity"]["value"], error["negative"]["specificity"]["n"])
    assert "no item that people call met" == error["negative"]["sensitivity"]["reason"]


@pytest.mark.parametrize(
    ("hits", "n", "expected"),
    [(81, 263, (0.255, 0.366)), (15, 148, (0.062, 0.160)), (0, 20, (0.0, 0.161)), (29, 29, (0.883, 1.0))],
)
def test_wilsons_interval(hits: int, n: int, expected: tuple[float, float]) -> None:
    """The worked examples of Newcombe (1998), table I, for his score method; the last one is the mirror of 0 of 29."""
    assert wilson(hits, n) == pytest.approx(expected, abs=5e-4)


@given(st.integers(1, 500))
def test_wilsons_interval_is_that_of_the_summary(n: int) -> None:
    """Where all of n are hits, or none, it is the interval that a summary gives a panel of n such cases."""
    for hits, score in ((n, 1.0), (0, 0.0)):
        of_panel = wilson95([score] * n)
        assert of_panel is not None
        assert wilson(hits, n) == pytest.approx((of_panel.low, of_panel.high), abs=1e-12)


def test_the_report_is_json_and_fits_80_columns() -> None:
    """Every number is JSON without NaN, and a terminal shows the whole."""
    report = corrected_scores(two_panels(), {"dr. " + "x" * 90: TWO_LABELLED["lee"]})
    lines = correction_text(report)

    assert "bedside-bench/corrected/1" == json.loads(json.dumps(report, allow_nan=False))["format"]
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("drug_safety") and "0.375" in line for line in lines)


def skewed(rng: np.random.Generator, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return scores in quarters, most of them near 1, and a judge that is a quarter too kind more often than not."""
    human = np.round(rng.beta(3, 1, size) * 4) / 4
    chance = rng.random(size)
    kind, strict = np.minimum(1, human + 0.25), np.maximum(0, human - 0.25)
    return human, np.where(chance < 0.15, kind, np.where(chance < 0.25, strict, human))


def noisy(rng: np.random.Generator, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return low scores, and a judge who gives all of them something near the middle."""
    human = rng.beta(1, 2, size)
    return human, np.clip(human * 0.6 + 0.3 + rng.normal(0, 0.2, size), 0, 1)


def binary(rng: np.random.Generator, size: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return all or nothing, seven in ten all, and a judge who is wrong in one of ten."""
    human = (rng.random(size) < 0.7).astype(np.float64)
    return human, np.where(rng.random(size) < 0.1, 1 - human, human)


@pytest.mark.slow
@pytest.mark.parametrize("world", [skewed, noisy, binary], ids=lambda world: world.__name__)
@pytest.mark.parametrize(("n", "total"), [(5, 25), (5, 250), (10, 50), (25, 50), (25, 250)])
def test_intervals_cover_what_they_say(
    world: Callable[[np.random.Generator, tuple[int, int]], tuple[Floats, Floats]], n: int, total: int
) -> None:
    """Of 1,000 samples of cases and labels at least 92% of the intervals hold the true mean (nominal: 95%)."""
    rng = np.random.default_rng(7)
    human, judge = world(rng, (1_000, total))
    truth = float(world(rng, (400, 2_500))[0].mean())
    hits = 0
    for y, f in zip(human, judge, strict=True):
        low, high = estimate(f.tolist(), range(n), y[:n].tolist()).interval(0.05)
        hits += low <= truth <= high

    assert hits >= 920
