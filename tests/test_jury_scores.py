"""The scores of a jury: both bounds, each judge alone, the jury without one, and what is said beside them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.healthbench.scores import example_score
from eval.judging.graded import Ballots, GradedCase, RunData
from eval.numbers.panels import score_cases, worst_or_best
from eval.numbers.scoring import score_case
from eval.numbers.summary import summarise
from eval.showing.report import score_table
from tests.runs import jury_case, jury_run

T, F, N = True, False, None
POINTS = [2, 1, -1]
DRUGS = "drug_safety"
PLAN = "safety_diagnostic"


def of_votes(*votes: Sequence[bool | None]) -> Ballots:
    """Return the ballots of judges that were asked once each."""
    return tuple((tuple(of_judge),) for of_judge in votes)


def summary_of(run: RunData) -> dict[str, Any]:
    """Return a run's summary with few resamples."""
    return summarise(run, samples=50, software={})


@pytest.fixture
def three() -> RunData:
    """Three judges on two cases: on the first all agree, on the second the positive and the negative item are open."""
    agreed = jury_case("a", DRUGS, POINTS, of_votes((T, T, F), (T, T, F), (T, F, F)))
    open_ = jury_case("b", DRUGS, POINTS, of_votes((T, T, F), (F, T, T), (N, T, N)))
    return jury_run(agreed, open_, vendors=["A", "B", "B"])


def test_the_headline_is_the_conservative_bound(three: RunData) -> None:
    """Case a: 3/3. Case b: its +2 and -1 are open: (1 - 1)/3 = 0 at the worst, (2 + 1)/3 at the best."""
    summary = summary_of(three)
    jury = summary["jury"]

    assert 0.5 == summary["overall_macro_mean"] == summary["benchmarks"][DRUGS]["mean"]
    assert (0.5, 1.0) == (summary["overall_worst"], summary["overall_best"])
    assert (0.5, 1.0) == (jury["conservative"]["overall_macro_mean"], jury["liberal"]["overall_macro_mean"])
    assert {"n": 6, "true": 3, "false": 1, "unresolved": 2, "missing": 0, "pending": 0} == jury["items"]


def test_an_open_item_counts_as_nothing_else(three: RunData) -> None:
    """It is not matched, not judged negative, and counted by itself; only the score takes it at its worst."""
    _, open_ = score_cases(three)
    summary = summary_of(three)

    assert open_.score is not None
    assert (0.0, 0.0, 2) == (open_.score.score, open_.score.raw_score, open_.score.unresolved)
    assert (1, 0, 0) == (open_.score.n_matched, open_.score.negatives_judged, open_.score.negatives_matched)
    assert (2, 1, 0.0) == tuple(
        summary["panels"][DRUGS][name] for name in ("n_unresolved", "negatives_judged", "negative_hit_rate")
    )


def test_each_judge_stands_alone(three: RunData) -> None:
    """Judge 0 gives 3/3 and 3/3; judge 1 3/3 and (1 - 1)/3; judge 2 2/3, and no decision on two items of the other."""
    alone = summary_of(three)["jury"]["judges"]

    assert [1.0, 0.5, pytest.approx(2 / 3)] == [judge["overall_macro_mean"] for judge in alone]
    assert [2, 2, 1] == [judge["n_graded"] for judge in alone]
    assert [("judge-0", "A"), ("judge-1", "B"), ("judge-2", "B")] == [(j["model"], j["vendor"]) for j in alone]


def test_the_jury_without_one_judge_or_vendor(three: RunData) -> None:
    """Two that are left must agree; without vendor B judge 0 decides alone, without A the two of B must agree."""
    jury = summary_of(three)["jury"]

    # Without 0: a is 2 with +1 open, b is 1 of which +2 and -1 are open; without 1: as b above; without 2: b (1-1)/3.
    assert [pytest.approx((2 / 3 + 0) / 2), pytest.approx((2 / 3 + 0) / 2), 0.5] == [
        judge["overall_macro_mean"] for judge in jury["without_judge"]
    ]
    assert [("A", 2, pytest.approx(1 / 3)), ("B", 1, 1.0)] == [
        (vendor["vendor"], vendor["n_judges"], vendor["overall_macro_mean"]) for vendor in jury["without_vendor"]
    ]


def test_what_cannot_be_left_out_is_null_with_a_reason() -> None:
    """Of one judge asked three times nothing is left without it; vendors that nobody named cannot be left out."""
    jury = summary_of(jury_run(jury_case("a", DRUGS, [1], (((T,), (T,), (F,)),)), repeats=3))["jury"]
    only = summary_of(jury_run(jury_case("a", DRUGS, [1], of_votes((T,), (T,))), vendors=["A", "A"]))["jury"]

    assert ([], "one judge: nothing is left without it") == (jury["without_judge"], jury["without_judge_reason"])
    assert "no judge's vendor is known" in jury["without_vendor_reason"]
    assert [("A", 0, None)] == [(v["vendor"], v["n_judges"], v["overall_macro_mean"]) for v in only["without_vendor"]]


def test_one_judge_asked_once_has_no_jury() -> None:
    """Its summary says nothing of bounds that cannot differ."""
    assert "jury" not in summary_of(jury_run(jury_case("a", DRUGS, [1], of_votes((T,)))))


@pytest.mark.parametrize(
    ("vendors", "answer", "said"),
    [
        (["A"], "A", "the only judge, judge-0, and the answer model are of one vendor (A)"),
        (["A", "B"], "A", "of the vendor of the answer model (A) are also: judge-0; what they say alone"),
        (["B", "B"], "A", "judges of one vendor (B), whose errors may go together: judge-0, judge-1"),
        ([" a", "b", "B "], "A", "of the vendor of the answer model (A) are also: judge-0;"),
        ([" a", "b", "B "], "A", "judges of one vendor (b), whose errors may go together: judge-1, judge-2"),
        (["B", None], "A", "vendor unknown: judge-1; whether a judge is of the same vendor"),
        ([None], None, "vendor unknown: the answer model, judge-0;"),
    ],
    ids=[
        "alone",
        "in the jury",
        "two judges",
        "in other letters",
        "two in other letters",
        "one unknown",
        "all unknown",
    ],
)
def test_shared_and_unknown_vendors_are_said(vendors: list[str | None], answer: str | None, said: str) -> None:
    """A warning where judge and answer share a vendor, plainly where nobody else looked; unknown is not other."""
    run = jury_run(jury_case("a", DRUGS, [1], of_votes(*[(T,)] * len(vendors))), vendors=vendors)
    if answer is not None:
        run.identity["answer"]["vendor"] = answer  # type: ignore[index]

    assert any(said in notice for notice in summary_of(run)["notices"])


def test_different_known_vendors_need_no_word() -> None:
    """Where all are named and none is shared nothing is said of vendors."""
    run = jury_run(jury_case("a", DRUGS, [1], of_votes((T,), (T,))), vendors=["B", "C"])
    run.identity["answer"]["vendor"] = "A"  # type: ignore[index]

    assert not [notice for notice in summary_of(run)["notices"] if "vendor" in notice]


def test_even_repeats_are_warned_of() -> None:
    """Two repeats can tie, and a tie is no vote."""
    run = jury_run(jury_case("a", DRUGS, [1], (((T,), (T,)),)), repeats=2)

    assert any(notice.startswith("2 repeats a judge: an even number can tie") for notice in summary_of(run)["notices"])


def test_the_table_shows_both_bounds_in_80_columns(three: RunData) -> None:
    """The score, then the jury: conservative and liberal, each judge, without each judge and vendor, counts."""
    text = score_table(summary_of(three))

    assert max(map(len, text.splitlines())) <= 80
    for name in ("conservative bound (the score)", "liberal bound", "alone: judge-0 (A)", "without judge-2"):
        assert name in text
    assert "without vendor B" in text
    assert "items: 6; met 3, not met 1, unresolved 2 (33.3%)" in text


Points = {
    DRUGS: st.integers(-3, 5),
    PLAN: st.sampled_from((-3, -2, -1, 0, 1, 2, 3)),
    "healthbench": st.integers(-9, 9),
}


@st.composite
def open_cases(draw: st.DrawFn) -> GradedCase:
    """Return a case of some panel that a jury of two or four graded, some items left open."""
    panel = draw(st.sampled_from(tuple(Points)))
    points = draw(st.lists(Points[panel], min_size=1, max_size=6))
    judges = draw(st.sampled_from((2, 4)))
    votes = [draw(st.tuples(*[st.booleans()] * len(points))) for _ in range(judges)]
    method = {"grading_method": panel} if panel == "healthbench" else {}
    return jury_case("a", panel, points, of_votes(*votes), **method)


@given(case=open_cases())
def test_the_bounds_contain_every_way_the_open_items_could_have_gone(case: GradedCase) -> None:
    """Each open item tried as met and as not met, in every combination: the bounds are the least and the greatest."""
    (scored,) = score_cases(jury_run(case))
    assert case.matched is not None
    open_ = [at for at, met in enumerate(case.matched) if met is None]
    found = []
    for choice in product((T, F), repeat=len(open_)):
        filled = list(case.matched)
        for at, met in zip(open_, choice, strict=True):
            filled[at] = met
        decided = [bool(met) for met in filled]
        points = [point for point in case.points if point is not None]
        if case.grading_method == "healthbench":
            found.append(example_score(points, decided))
        else:
            found.append(score_case(case.grading_method, points, decided).score)
    known = [value for value in found if value is not None]

    assert (min(known, default=None), max(known, default=None)) == (scored.bounds.worst, scored.bounds.best)
    assert scored.value == scored.bounds.worst
    assert N not in worst_or_best(case, best=True)
