"""Case scores: worked values of the protocol, the three dialects, and the bounds under missing decisions."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.numbers.defaults import DIALECTS, SPEC, UPSTREAM, UPSTREAM_VETO
from eval.numbers.scoring import NO_POSITIVE_POINTS, f1_score, points_score, score_bounds, score_case

POINTS, F1 = "points_rubric", "f1_weighted_rubric"
PLAN = [3, 2, 1, 0, -1, -2, -3]

plan_points = st.lists(st.integers(-3, 3), min_size=1, max_size=8)
whole_points: st.SearchStrategy[list[float]] = st.lists(st.sampled_from([*map(float, PLAN)]), min_size=1, max_size=6)
odd_points: st.SearchStrategy[list[float]] = st.lists(
    st.sampled_from([-4, -2.5, -0.5, 0.5, 1.5, 3.9, 4, *PLAN]), min_size=1, max_size=6
)


def decided(points: list[int]) -> st.SearchStrategy[tuple[list[int], list[bool]]]:
    """Return points together with a decision for each."""
    return st.tuples(st.just(points), st.lists(st.booleans(), min_size=len(points), max_size=len(points)))


@pytest.mark.parametrize(
    ("points", "matched", "score"),
    [
        ([1, 1, 1], [True, True, True], 1.0),
        ([1, 1, 1], [True, True, False], 2 / 3),
        ([1, 1, 1, -1], [True, True, True, True], 2 / 3),
        ([1, 1, 1, -3], [True, True, True, True], 0.0),
        ([1, -3], [False, True], 0.0),
        ([2, 1, 0], [True, False, True], 2 / 3),
    ],
    ids=["all", "two of three", "all and a -1", "all and a -3", "clipped at 0", "zero points are inert"],
)
def test_points_rubric_gives_the_worked_values(points: list[int], matched: list[bool], score: float) -> None:
    """The worked values of the protocol come out."""
    assert points_score(points, matched).score == score


def test_points_rubric_keeps_the_ratio_before_clipping() -> None:
    """One of two +1 items and a -2 item hit: raw (1 - 2) / 2, score 0."""
    score = points_score([1, 1, -2], [True, False, True])

    assert (score.raw_score, score.score, score.matched_points, score.positive_points) == (-0.5, 0.0, -1.0, 2.0)


@pytest.mark.parametrize(("dialect", "expected"), [(SPEC, 0.0), (UPSTREAM, None), (UPSTREAM_VETO, None)])
def test_rubric_without_positive_items_is_flagged(dialect: str, expected: float | None) -> None:
    """A rubric with nothing to earn scores 0.0 with a flag; upstream does not score it at all."""
    score = points_score([-1, 0], [False, False], dialect=dialect)

    assert (score.score, score.raw_score, score.flags) == (expected, None, (NO_POSITIVE_POINTS,))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_plan_without_positive_items_scores_zero_with_a_flag(dialect: str) -> None:
    """A plan without a +1, +2 or +3 item has recall 0 in every dialect."""
    score = f1_score([0, -1], [True, False], dialect=dialect)

    assert (score.score, score.recall, score.flags) == (0.0, 0.0, (NO_POSITIVE_POINTS,))


def test_weighted_f1_by_hand() -> None:
    """+3, +1, 0, -1 hit of one each: R = 75/99, P = 75/79, F1 = 2 x 75 / (99 + 79)."""
    score = f1_score(PLAN, [True, False, True, True, True, False, False])

    assert score.recall == 75 / 99
    assert score.precision == 75 / 79
    assert score.score == pytest.approx(150 / 178, rel=1e-15)


def test_weighted_f1_upstream_rounds_each_part_to_four_decimals() -> None:
    """The same plan as the published runner prints it."""
    score = f1_score(PLAN, [True, False, True, True, True, False, False], dialect=UPSTREAM)

    assert (score.score, score.precision, score.recall, score.severe_rate) == (0.8427, 0.9494, 0.7576, 0.0)


@pytest.mark.parametrize(("dialect", "precision"), [(SPEC, 0.0), (UPSTREAM, None), (UPSTREAM_VETO, None)])
def test_nothing_matched_has_score_zero(dialect: str, precision: float | None) -> None:
    """With nothing matched F1 is 0; precision is 0, in the upstream dialects null."""
    score = f1_score([2, -2], [False, False], dialect=dialect)

    assert (score.score, score.precision) == (0.0, precision)


@pytest.mark.parametrize(
    ("matched", "plain", "veto"),
    [([True, True, False], 1.0, 1.0), ([False, True, False], 0.4, 0.0), ([True, True, True], 0.7273, 0.0)],
    ids=["complete", "+3 missed", "-3 matched"],
)
def test_veto_zeroes_a_severe_case_only(matched: list[bool], plain: float, veto: float) -> None:
    """+3, +2, -3: the +3 missed gives 2 x 24 / (96 + 24), the -3 matched 2 x 96 / (96 + 168); both are vetoed."""
    assert f1_score([3, 2, -3], matched, dialect=UPSTREAM).score == plain
    vetoed = f1_score([3, 2, -3], matched, dialect=UPSTREAM_VETO)
    assert (vetoed.score, vetoed.severe_rate) == (veto, float(veto == 0.0))


def test_spec_does_not_veto() -> None:
    """In the default dialect an omitted +3 costs its weight, not the case."""
    assert f1_score([3, 2, -3], [False, True, False]).score == pytest.approx(0.4, rel=1e-15)


def test_severe_and_negative_items_are_counted() -> None:
    """Of -1, -2, -3 and +1 all matched, two are severe, one is -3, and half of the matched are severe."""
    score = f1_score([1, -1, -2, -3], [True, True, True, True])

    assert (score.n_matched, score.severe_matched, score.minus3_matched) == (4, 2, 1)
    assert (score.negatives_judged, score.negatives_matched, score.severe_rate) == (3, 3, 0.5)


def test_severe_rate_is_null_where_nothing_matched_and_on_points_panels() -> None:
    """A share of nothing is unknown, not 0; points panels have no severity classes."""
    assert f1_score([1, -3], [False, False]).severe_rate is None
    assert points_score([1, -3], [True, True]).severe_rate is None


def test_upstream_truncates_odd_points_and_gives_others_class_five() -> None:
    """2.9 counts as +2 (24), 4 and 0.5 as class 5 (1), -2.5 as -2 (24): R = 1, P = 24 / 50."""
    score = f1_score([2.9, 4, 0.5, -2.5], [True, True, True, True], dialect=UPSTREAM)

    assert (score.recall, score.precision, score.score) == (1.0, 0.48, 0.6486)


def test_spec_refuses_points_without_a_class() -> None:
    """A plan item of +4 has no weight in the protocol."""
    with pytest.raises(ValueError, match=r"expected an integer from -3 to 3 on a plan panel, found 4"):
        score_case(F1, [4], [True])


@pytest.mark.parametrize("method", [POINTS, F1])
def test_missing_decision_is_refused(method: str) -> None:
    """A missing decision is never false: on a negative item that would raise the score."""
    with pytest.raises(ValueError, match=r"decisions\[1\]: expected true or false, found None"):
        score_case(method, [1, -1], [True, None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="expected 2, one an item, found 1"):
        score_case(method, [1, -1], [True])


@pytest.mark.parametrize("value", [1, "true", 1.0], ids=repr)
def test_decision_that_is_no_boolean_is_refused(value: object) -> None:
    """1 is not true: readers must have made up their mind before scoring."""
    with pytest.raises(ValueError, match=r"decisions\[0\]: expected true or false"):
        points_score([1], [value])  # type: ignore[list-item]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True], ids=repr)
def test_points_that_are_no_finite_number_are_refused(value: float) -> None:
    """NaN would pass through min and max as 0."""
    with pytest.raises(ValueError, match=r"points\[0\]: expected a finite number"):
        points_score([value], [True])


def test_unknown_method_and_dialect_are_refused() -> None:
    """The message names what is known."""
    with pytest.raises(ValueError, match="expected one of points_rubric, f1_weighted_rubric, found 'f1'"):
        score_case("f1", [1], [True])
    with pytest.raises(ValueError, match="expected one of spec, upstream, upstream-veto, found 'v2'"):
        score_case(POINTS, [1], [True], dialect="v2")


def naive(method: str, points: list[int], matched: list[bool]) -> float:
    """Score by the closed forms: clipped ratio of sums, and F1 = 2h / (c + m)."""
    if method == POINTS:
        den = sum(p for p in points if p > 0)
        return max(0.0, min(1.0, sum(p * m for p, m in zip(points, matched, strict=True)) / den)) if den else 0.0
    weight = [{0: 1, 1: 3, 2: 24, 3: 72}[abs(p)] for p in points]
    h = sum(w for w, p, m in zip(weight, points, matched, strict=True) if m and p > 0)
    c = sum(w for w, p in zip(weight, points, strict=True) if p > 0)
    m = sum(w for w, m in zip(weight, matched, strict=True) if m)
    return 2 * h / (c + m) if h else 0.0


@given(plan_points.flatmap(decided), st.sampled_from([POINTS, F1]))
def test_score_equals_its_closed_form(case: tuple[list[int], list[bool]], method: str) -> None:
    """A second, differently written scorer gives the same number."""
    points, matched = case

    assert score_case(method, points, matched).score == pytest.approx(naive(method, points, matched), rel=1e-14)


@given(plan_points.flatmap(decided), st.sampled_from([POINTS, F1]), st.sampled_from(DIALECTS))
def test_one_more_match_moves_the_score_by_its_sign(
    case: tuple[list[int], list[bool]], method: str, dialect: str
) -> None:
    """Matching a positive item never lowers a score, matching any other never raises it."""
    points, matched = case
    for i, point in enumerate(points):
        off, on = ([*matched[:i], m, *matched[i + 1 :]] for m in (False, True))
        before = score_case(method, points, off, dialect=dialect).score or 0.0
        after = score_case(method, points, on, dialect=dialect).score or 0.0
        assert after >= before if point > 0 else after <= before


def every_imputation(method: str, points: list[float], matched: list[bool | None], dialect: str) -> list[float | None]:
    """Score every way to fill in the missing decisions."""
    options = [[m] if m is not None else [False, True] for m in matched]
    return [score_case(method, points, list(choice), dialect=dialect).score for choice in product(*options)]


@given(st.data(), st.sampled_from([POINTS, F1]), st.sampled_from(DIALECTS))
def test_bounds_are_the_extremes_of_every_imputation(data: st.DataObject, method: str, dialect: str) -> None:
    """Filling in the missing decisions in every possible way reaches the bounds and never leaves them."""
    points: list[float] = data.draw(whole_points if method == F1 and dialect == SPEC else odd_points)
    matched = data.draw(st.lists(st.sampled_from([None, True, False]), min_size=len(points), max_size=len(points)))
    scores = every_imputation(method, points, matched, dialect)
    bounds = score_bounds(method, points, matched, dialect=dialect)

    if None in scores:  # a rubric that upstream never scores
        assert (bounds.worst, bounds.best, set(scores)) == (None, None, {None})
    else:
        assert (bounds.worst, bounds.best) == (min(filter_none(scores)), max(filter_none(scores)))


def filter_none(scores: list[float | None]) -> list[float]:
    """Return the scores that are numbers."""
    return [score for score in scores if score is not None]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("method", [POINTS, F1])
def test_bounds_are_exact_for_every_state_of_a_whole_plan(method: str, dialect: str) -> None:
    """All 3^7 states (true, false, missing) of a plan with one item of each weight, by exhaustive enumeration."""
    known = {c: score_case(method, PLAN, list(c), dialect=dialect).score for c in product([False, True], repeat=7)}
    for state in product([False, True, None], repeat=7):
        scores = [known[c] for c in product(*([m] if m is not None else [False, True] for m in state))]
        bounds = score_bounds(method, PLAN, state, dialect=dialect)
        assert (bounds.worst, bounds.best) == (min(filter_none(scores)), max(filter_none(scores)))


def test_bounds_of_a_wholly_ungraded_case() -> None:
    """With every decision missing a scorable case can still get anything from 0 to 1."""
    for method in (POINTS, F1):
        bounds = score_bounds(method, PLAN, [None] * 7)
        assert (bounds.worst, bounds.best) == (0.0, 1.0)
