"""Measures of agreement: published worked examples, other libraries, what is undefined, and what must never matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from eval.agreement.coded import MOST_EXACT, THIRD, UNRESOLVED, Category, Ratings
from eval.agreement.measures import FORMULAS, Measure, measure
from tests.rated import (
    cohen_kappa,
    fleiss_kappa,
    flip_rate,
    gwet_ac1,
    krippendorff_alpha,
    ratings_of,
    unanimity,
)

T, F, N = True, False, None
Rows: TypeAlias = Sequence[Sequence[Category | None]]
CHANCE_CORRECTED = (fleiss_kappa, krippendorff_alpha, gwet_ac1)


def two_by_two(both: int, first: int, second: int, neither: int) -> Ratings:
    """Return two raters' ratings with so many true by both, by the first only, by the second only, by neither."""
    return ratings_of([[T, T]] * both + [[T, F]] * first + [[F, T]] * second + [[F, F]] * neither)


def named(rows: Sequence[Sequence[int | None]], k: int) -> Ratings:
    """Return ratings in k categories called 1 to k."""
    words = [[None if value is None else str(value) for value in row] for row in rows]
    return ratings_of(words, categories=[str(number + 1) for number in range(k)])


FLEISS_1971_STYLE = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]
"""The much printed example of 14 raters, 10 units, 5 categories: counts a unit; kappa 0.210."""

FOUR_OBSERVERS: list[list[int | None]] = [
    [None if letter == "." else int(letter) for letter in unit]
    for unit in ["11.1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11", "..3."]
]
"""Krippendorff 2011, section C: 12 units, 4 observers, some values missing; alpha 0.743. Gwet's AC1: 0.77544."""


def test_cohens_kappa_of_a_table_by_hand() -> None:
    """20, 5, 10, 15 of 50: po = 0.7, pe = 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa = 0.4."""
    found = cohen_kappa(two_by_two(20, 5, 10, 15))

    assert found.value == pytest.approx(0.4, abs=1e-15)
    assert (None, 50, 0, {"false": 0.45, "true": 0.55}) == (found.reason, found.n, found.dropped, found.base_rates)


def test_fleiss_kappa_of_the_printed_example() -> None:
    """Pe = 0.213, P = 0.378: kappa = 0.210."""
    rows = [[q + 1 for q, often in enumerate(unit) for _ in range(often)] for unit in FLEISS_1971_STYLE]

    assert 0.210 == round(fleiss_kappa(named(rows, 5)).value or 0, 3)


def test_krippendorffs_alpha_of_his_binary_example() -> None:
    """Two observers, ten units: 14 zeros, 6 ones, 4 units apart: 1 - 19 * 4 / (14 * 6) = 0.095."""
    found = krippendorff_alpha(two_by_two(1, 2, 2, 5))

    assert found.value == pytest.approx(1 - 19 * 4 / (14 * 6), abs=1e-15)
    assert 0.095 == round(found.value or 0, 3)


def test_missing_ratings_of_the_published_example() -> None:
    """Alpha and AC1 use the 11 units with two ratings; Fleiss' kappa only the 8 that all four rated."""
    ratings = named(FOUR_OBSERVERS, 5)
    alpha, ac1, fleiss = krippendorff_alpha(ratings), gwet_ac1(ratings), fleiss_kappa(ratings)

    assert (0.743, 0.77544) == (round(alpha.value or 0, 3), round(ac1.value or 0, 5))
    assert [(11, 1), (11, 1), (8, 4)] == [(found.n, found.dropped) for found in (alpha, ac1, fleiss)]
    assert alpha.base_rates is not None
    assert alpha.base_rates["1"] == pytest.approx(9 / 40)


def test_high_prevalence_tells_kappa_and_ac1_apart() -> None:
    """118, 5, 2, 0: unanimity 118/125, kappa -0.023; AC1: pe = 2 p (1 - p), p = 243/250, gives 0.941 (Gwet 2002)."""
    ratings = two_by_two(118, 5, 2, 0)
    pe = 2 * 243 / 250 * 7 / 250

    assert 0.944 == unanimity(ratings).value
    assert -0.023 == round(cohen_kappa(ratings).value or 0, 3)
    assert gwet_ac1(ratings).value == pytest.approx((0.944 - pe) / (1 - pe), abs=1e-15)
    assert (cohen_kappa(ratings).base_rates or {})["true"] == pytest.approx(0.972)


def test_flip_rate_by_hand() -> None:
    """T T F: two of three pairs differ; T T T: none; T F and one missing: the one pair: (2/3 + 0 + 1) / 3."""
    found = flip_rate(ratings_of([[T, T, F], [T, T, T], [T, F, N], [T, N, N]]))

    assert found.value == pytest.approx(5 / 9, abs=1e-15)
    assert (3, 1) == (found.n, found.dropped)


def test_categories_offered_count_in_ac1_alone() -> None:
    """A third category that nobody used changes nothing but pe of AC1, half as large: K - 1 = 2."""
    rows = [[T, T]] * 6 + [[F, F]] * 2 + [[T, F]] * 2
    two, three = ratings_of(rows), ratings_of(rows, categories=THIRD)
    pe = 2 * 0.7 * 0.3

    assert [measure(two, name).value for name in FORMULAS if name != "gwet_ac1"] == [
        measure(three, name).value for name in FORMULAS if name != "gwet_ac1"
    ]
    assert gwet_ac1(two).value == pytest.approx((0.8 - pe) / (1 - pe))
    assert gwet_ac1(three).value == pytest.approx((0.8 - pe / 2) / (1 - pe / 2))


# -- undefined


@pytest.mark.parametrize(
    ("of", "rows", "reason"),
    [
        (cohen_kappa, [[T, T]] * 3, "all ratings are one category"),
        (fleiss_kappa, [[T, T, T]] * 3, "all ratings are one category"),
        (krippendorff_alpha, [[F, F, N]] * 3, "all ratings are one category"),
        (cohen_kappa, [[T, F], [T, N]], "fewer than 2 units rated by all raters"),
        (fleiss_kappa, [[T, F, T], [T, T, N]], "fewer than 2 units rated by all raters"),
        (krippendorff_alpha, [[T, F, N], [T, N, N]], "fewer than 2 units rated by two raters"),
        (gwet_ac1, [[T, F, N], [T, N, N]], "fewer than 2 units rated by two raters"),
        (unanimity, [[T, N]], "no unit rated by all raters"),
        (flip_rate, [[T, N]], "no unit rated by two raters"),
        (unanimity, [[T], [F]], "one rater"),
        (krippendorff_alpha, [[T], [F]], "one rater"),
        (fleiss_kappa, [], "one rater"),
    ],
)
def test_undefined_is_null_with_a_reason(of: Callable[[Ratings], Measure], rows: Rows, reason: str) -> None:
    """Never 0, never 1, never NaN."""
    found = of(ratings_of(rows))

    assert found.value is None
    assert (found.reason or "").startswith(reason)


def test_one_category_alone_is_full_agreement_for_ac1_and_unanimity() -> None:
    """Neither divides by 0 there: AC1's pe is 0 with two categories offered, which is what it was made for."""
    assert (1.0, 1.0) == (gwet_ac1(two_by_two(9, 0, 0, 0)).value, unanimity(two_by_two(9, 0, 0, 0)).value)


def test_a_rater_who_never_varies_has_kappa_0() -> None:
    """pe is then the other's share of that word, as is po: chance explains all, which is a value."""
    assert 0.0 == cohen_kappa(two_by_two(7, 3, 0, 0)).value


def test_cohens_kappa_is_for_two() -> None:
    """Three raters are refused rather than averaged in some way."""
    with pytest.raises(ValueError, match="expected two raters, found 3"):
        cohen_kappa(ratings_of([[T, T, F]]))


@pytest.mark.parametrize("rating", [1, 0, "true", UNRESOLVED, 0.0])
def test_a_rating_must_be_a_category(rating: Any) -> None:
    """1 is not true, and unresolved is none of two categories."""
    with pytest.raises(ValueError, match="expected one of"):
        ratings_of([[T, rating]])


def test_rows_of_unequal_length_are_refused() -> None:
    """A rating left out would move all others to another rater."""
    with pytest.raises(ValueError, match="as many in every row"):
        ratings_of([[T, F], [T]])


# -- properties and other libraries


def tables(raters: int | None = None, *, k: int = 3, missing: bool = True) -> st.SearchStrategy[list[list[int | None]]]:
    """Return tables of ratings 1 to k, of so many raters or of two to five."""
    cell = st.one_of(st.none(), st.integers(1, k)) if missing else st.integers(1, k)
    widths = st.integers(2, 5) if raters is None else st.just(raters)
    return widths.flatmap(lambda n: st.lists(st.lists(cell, min_size=n, max_size=n), min_size=1, max_size=12))


@given(rows=tables(), order=st.randoms(use_true_random=False))
def test_the_order_of_units_and_raters_changes_no_digit(rows: list[list[int | None]], order: Any) -> None:
    """Every measure, every field, to the last bit."""
    raters, units = list(range(len(rows[0]))), list(rows)
    order.shuffle(raters)
    order.shuffle(units)
    one, other = named(rows, 3), named([[row[rater] for rater in raters] for row in units], 3)

    for name in FORMULAS:
        if name != "cohen_kappa" or len(raters) == 2:
            assert measure(one, name) == measure(other, name)


@given(rows=tables())
def test_values_lie_in_bounds_or_are_null(rows: list[list[int | None]]) -> None:
    """Kappas, alpha and AC1 in -1 to 1, shares in 0 to 1; a reason where and only where there is no value."""
    for name in FORMULAS:
        if name == "cohen_kappa" and len(rows[0]) != 2:
            continue
        found = measure(named(rows, 3), name)
        assert (found.value is None) == (found.reason is not None)
        assert found.n + found.dropped == len(rows)
        if found.value is not None:
            low = 0 if name in ("unanimity", "flip_rate") else -1
            assert low - 1e-12 <= found.value <= 1 + 1e-12


@given(column=st.lists(st.integers(1, 3), min_size=2, max_size=20))
def test_a_rater_agrees_with_itself(column: list[int]) -> None:
    """Kappa, alpha and AC1 are 1, or undefined where it used one category only."""
    ratings = named([[value, value] for value in column], 3)

    for of in (cohen_kappa, *CHANCE_CORRECTED):
        found = of(ratings).value
        assert found is None or found == pytest.approx(1, abs=1e-12)
    assert (cohen_kappa(ratings).value is None) == (len(set(column)) == 1)


@given(rows=tables(2, missing=False))
def test_cohen_is_scikit_learns(rows: list[list[int]]) -> None:
    """scikit-learn warns and gives NaN where we give null."""
    found = cohen_kappa(named(rows, 3)).value
    if found is not None:
        first, second = zip(*rows, strict=True)
        assert found == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)


@given(rows=tables(missing=False))
def test_fleiss_is_statsmodels(rows: list[list[int]]) -> None:
    """Over complete tables."""
    found = fleiss_kappa(named(rows, 3)).value
    if found is not None:
        counts = np.array([[row.count(q) for q in (1, 2, 3)] for row in rows])
        assert found == pytest.approx(float(statsmodels_fleiss(counts)), abs=1e-9)


@given(rows=tables())
def test_alpha_and_ac1_are_their_definitions(rows: list[list[int | None]]) -> None:
    """Counted pair by pair in exact fractions, from the words of the papers."""
    units = [[value for value in row if value is not None] for row in rows]
    paired = [unit for unit in units if len(unit) >= 2]
    if len(paired) < 2:
        return
    values = [value for unit in paired for value in unit]
    apart = sum(Fraction(sum(a != b for a, b in permutations(unit, 2)), len(unit) - 1) for unit in paired)
    by_chance = Fraction(sum(a != b for a, b in permutations(values, 2)), len(values) - 1)
    equal = [Fraction(sum(a == b for a, b in permutations(u, 2)), len(u) * (len(u) - 1)) for u in paired]
    rated = [unit for unit in units if unit]
    shares = [sum(Fraction(unit.count(q), len(unit)) for unit in rated) / len(rated) for q in (1, 2, 3)]
    pe = sum(share * (1 - share) for share in shares) / 2
    alpha, ac1 = krippendorff_alpha(named(rows, 3)).value, gwet_ac1(named(rows, 3)).value

    assert alpha == (None if by_chance == 0 else pytest.approx(float(1 - apart / by_chance), abs=1e-12))
    assert ac1 == pytest.approx(float((sum(equal) / len(equal) - pe) / (1 - pe)), abs=1e-12)


def test_many_raters_are_no_trouble() -> None:
    """Beyond the number whose shares are scaled to whole numbers the values are the same."""
    few, many = [[T, T], [T, F], [F, F]], MOST_EXACT // 2 + 1
    wide = [[value for value in row for _ in range(many)] for row in few]

    assert flip_rate(ratings_of(wide)).value == pytest.approx(many / (2 * many - 1) / 3)
    assert gwet_ac1(ratings_of(wide)).value is not None
