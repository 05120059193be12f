"""Scores under assumed error rates of the judge: worked by hand, and equal to the scoring rules on every draw."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import BadInput
from eval.agreement.scored import panel_cases
from eval.agreement.sensitivity import RATES, panel_items, panel_means, sensitivity, true_probabilities
from eval.agreement.sensitivity_text import sensitivity_text
from eval.numbers.panels import score_decisions
from tests.labelled import graded, run_of

EIGHT_OF_TEN = run_of(*(graded(f"c{n}", "y" if n < 8 else "n", (1,)) for n in range(10)))


def test_rogan_and_gladen_by_hand() -> None:
    """q = 0.8, both rates 0.1: pi = 0.7/0.8 = 0.875; if judged met 0.9 * 0.875 / 0.8, else 0.1 * 0.875 / 0.2."""
    found, cut = true_probabilities(np.array([True] * 8 + [False] * 2), fp=0.1, fn=0.1)

    assert not cut
    assert found[0] == pytest.approx(0.984375)
    assert found[9] == pytest.approx(0.4375)
    assert found.mean() == pytest.approx(0.875)


@pytest.mark.parametrize(("met", "share"), [(0, 0.0), (10, 1.0)], ids=["none met", "all met"])
def test_an_impossible_rate_is_cut_and_flagged(met: int, share: float) -> None:
    """A judge that wrongly calls 10% met cannot call none of many met: the true share is taken as 0, or as 1."""
    found, cut = true_probabilities(np.arange(10) < met, fp=0.1, fn=0.1)

    assert cut
    assert {share} == set(found)


@given(st.lists(st.booleans(), min_size=1, max_size=50), st.floats(0, 0.49), st.floats(0, 0.49))
def test_probabilities_are_probabilities(judged: list[bool], fp: float, fn: float) -> None:
    """They lie in 0..1, a decision for met makes met likelier, and their mean is the true share if it was not cut."""
    decided = np.array(judged)
    found, cut = true_probabilities(decided, fp=fp, fn=fn)

    assert (found >= 0).all()
    assert (found <= 1 + 1e-9).all()
    if decided.any() and not decided.all():
        assert found[decided].min() >= found[~decided].max() - 1e-9
    if not cut:
        assert found.mean() == pytest.approx((decided.mean() - fp) / (1 - fp - fn), abs=1e-9)


def test_the_mean_of_draws_is_the_true_share() -> None:
    """Ten cases of one item: the panel's score is the share that is true: 0.875 for a judge 10% wrong each way."""
    report = sensitivity(EIGHT_OF_TEN, rates=[(0.1, 0.1)], samples=4_000)
    panel = report["rates"][0]["panels"]["drug_safety"]

    assert 0.8 == pytest.approx(report["judged"]["overall"]["mean"])
    assert panel["mean"] == pytest.approx(0.875, abs=0.006)
    assert panel["range95"][0] < 0.875 < panel["range95"][1]
    assert [] == panel["clipped"]


def test_the_overall_row_says_where_a_rate_is_not_possible() -> None:
    """A panel whose items are all met allows no 10% of wrong positives: overall names it, and its row is marked."""
    run = run_of(graded("p", "yyn", (3, 1, -2), panel="safety_diagnostic"), *EIGHT_OF_TEN.cases)
    report = sensitivity(run, rates=[(0.1, 0.1), (0.0, 0.0)], samples=20)
    rows = [line for line in sensitivity_text(report) if line.startswith("overall")]

    assert [["safety_diagnostic"], []] == [pair["overall"]["clipped"] for pair in report["rates"]]
    assert [True, False] == [row.endswith("^") for row in rows]
    assert "decisions on safety_diagnostic" in " ".join(sensitivity_text(report))


def test_without_errors_the_headline_comes_out() -> None:
    """At (0, 0) nothing is drawn: the score as judged, with a range of no width, unresolved items at their worst."""
    run = run_of(graded("a", "y?", (1, 1)), graded("b", "yn?", (3, 0, -2), panel="safety_diagnostic"))
    report = sensitivity(run, rates=[(0.0, 0.0)], samples=50)
    overall = report["rates"][0]["overall"]
    plan = 2 * 72 / (72 + 72 + 24)

    assert overall["mean"] == pytest.approx((0.5 + plan) / 2)
    assert overall["range95"] == pytest.approx([overall["mean"]] * 2)
    assert report["judged"]["overall"]["mean"] == pytest.approx(overall["mean"])
    assert [1, 1] == [panel["n_unresolved"] for panel in report["judged"]["panels"].values()]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["drug_safety", "safety_diagnostic", "healthbench"]), st.data())
def test_every_draw_is_scored_by_the_rules(panel: str, data: st.DataObject) -> None:
    """The formula over many draws at once gives, for any truths, the mean of the scores by the rules."""
    rubric = st.lists(st.integers(-3, 3), min_size=1, max_size=6).filter(lambda points: max(points) > 0)
    rubrics = data.draw(st.lists(rubric, min_size=1, max_size=4))
    cases = [graded(f"c{place}", "y" * len(points), points, panel=panel) for place, points in enumerate(rubrics)]
    truths = [data.draw(st.lists(st.booleans(), min_size=len(p), max_size=len(p))) for p in rubrics]
    scores = [score_decisions(case, truth) or 0.0 for case, truth in zip(cases, truths, strict=True)]
    (found,) = panel_cases(run_of(*cases))
    flat = np.array([[met for truth in truths for met in truth]])

    assert panel_means(panel_items(found), flat)[0] == pytest.approx(min(1, max(0, np.mean(scores))), abs=1e-12)


def test_a_rubric_without_positive_items_scores_0() -> None:
    """As the rule has it: nothing to earn is 0 whatever is true, and no division by zero."""
    run = run_of(graded("a", "n", (-1,)), graded("b", "y", (1,)))

    assert 0.5 == sensitivity(run, rates=[(0.0, 0.0)], samples=5)["rates"][0]["overall"]["mean"]


def test_several_answers_weigh_as_one_case() -> None:
    """A case with two answers counts as much as each other case does, by the mean of the two."""
    run = run_of(
        graded("a", "y", (1,)),
        graded("a", "n", (1,), repeat=1),
        graded("b", "y", (1,)),
        graded("b", "y", (1,), repeat=1),
    )

    assert 0.75 == sensitivity(run, rates=[(0.0, 0.0)], samples=5)["judged"]["overall"]["mean"]


@pytest.mark.parametrize("rates", [(0.5, 0.5), (1.0, 0.0), (-0.1, 0.0), (float("nan"), 0.0)])
def test_rates_that_tell_nothing_are_refused(rates: tuple[float, float]) -> None:
    """A judge that is wrong as often as right says nothing of the truth."""
    with pytest.raises(BadInput, match="rates: expected false positives and negatives"):
        sensitivity(EIGHT_OF_TEN, rates=[rates])


def test_a_panel_without_graded_cases_leaves_overall_null() -> None:
    """It is named, and the other panels keep their numbers."""
    run = run_of(*EIGHT_OF_TEN.cases, graded("z", None, (1,), panel="safety_diagnostic"))
    report = sensitivity(run, samples=20)

    assert (None, "no graded case in: safety_diagnostic") == tuple(
        report["rates"][0]["overall"][key] for key in ("mean", "reason")
    )
    assert report["rates"][0]["panels"]["safety_diagnostic"]["mean"] is None
    assert report["rates"][0]["panels"]["drug_safety"]["mean"] is not None


def test_the_seed_decides() -> None:
    """The same seed gives the same report, and rates share their draws: more false positives never raise a score."""
    one = sensitivity(EIGHT_OF_TEN, samples=100)
    means = [
        pair["overall"]["mean"]
        for pair in sensitivity(EIGHT_OF_TEN, rates=[(0.0, 0.0), (0.05, 0.0), (0.1, 0.0)])["rates"]
    ]

    assert one == sensitivity(EIGHT_OF_TEN, samples=100)
    assert one != sensitivity(EIGHT_OF_TEN, samples=100, seed=1)
    assert sorted(means, reverse=True) == means


def test_the_report_is_json_and_fits_80_columns() -> None:
    """A report is JSON without NaN; its text fits a terminal and marks impossible rates."""
    run = run_of(graded("z", None, (1,), panel="x" * 60), *(graded(f"c{n}", "y", (1,)) for n in range(10)))
    report = sensitivity(run, samples=20)
    lines = sensitivity_text(report)

    assert "bedside-bench/sensitivity/1" == json.loads(json.dumps(report, allow_nan=False))["format"]
    assert len(RATES) == len(report["rates"])
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("^ so high a rate") for line in lines)
