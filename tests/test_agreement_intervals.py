"""Intervals of agreement: cases are drawn, not items; the same draws for all; null where there is nothing to draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.agreement import intervals
from eval.agreement.coded import Category, Ratings
from eval.agreement.intervals import Asked, measure_all, measured
from eval.agreement.measures import AC1, ALPHA, COHEN, FLEISS, FORMULAS, UNANIMITY, measure
from tests.rated import ratings_of

T, F, N = True, False, None
PAIRS = [[T, T], [T, F], [F, F], [T, T], [F, T], [T, T], [F, F], [T, T]]
CASES = [0, 0, 0, 1, 1, 2, 3, 3]
ALL = (UNANIMITY, COHEN, FLEISS, ALPHA, AC1)


def resampled_one_by_one(ratings: Ratings, name: str, *, samples: int, seed: int) -> list[float | None]:
    """Return a measure of every resample, its units written out and measured as if they were the data."""
    n = int(ratings.clusters.max()) + 1
    rows = [np.flatnonzero(ratings.clusters == cluster) for cluster in range(n)]
    draws = np.random.default_rng(seed).integers(0, n, (samples, n))
    units = [np.concatenate([rows[cluster] for cluster in draw]) for draw in draws]
    return [
        measure(Ratings(ratings.codes[of], np.zeros(len(of), np.int64), ratings.categories), name).value for of in units
    ]


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_intervals_are_those_of_the_plain_bootstrap(name: str) -> None:
    """The matrix product gives what drawing cases and measuring their items gives, undefined resamples counted."""
    ratings = ratings_of(PAIRS, clusters=CASES)
    found = measured(ratings, [name], samples=200, seed=7)[name]
    plain = resampled_one_by_one(ratings, name, samples=200, seed=7)
    defined = [value for value in plain if value is not None]

    assert found.ci95 == pytest.approx(tuple(np.percentile(defined, [2.5, 97.5])), abs=1e-12)
    assert plain.count(None) == found.undefined


def test_items_of_one_case_are_no_new_evidence() -> None:
    """Every item three times in its case: the same interval; as cases of their own they would narrow it."""
    once, thrice = ratings_of(PAIRS, clusters=CASES), ratings_of(PAIRS * 3, clusters=CASES * 3)
    apart = ratings_of(PAIRS * 3)
    found = [measured(some, [UNANIMITY], samples=500, seed=1)[UNANIMITY].ci95 for some in (once, thrice, apart)]
    widths = [high - low for low, high in filter(None, found)]

    assert found[0] == pytest.approx(found[1])
    assert widths[2] < widths[1]


def test_a_question_does_not_depend_on_the_others() -> None:
    """Asked alone or together with others, of as many cases and of fewer, with whatever measures."""
    one, other = ratings_of(PAIRS, clusters=CASES), ratings_of(PAIRS[:4], clusters=[0, 1, 2, 3])
    small = ratings_of(PAIRS[:5], clusters=CASES[:5])
    together = measure_all([Asked(other, ALL), Asked(small, (ALPHA,)), Asked(one, ALL)], samples=100, seed=3)

    assert measured(one, ALL, samples=100, seed=3) == dict(together[2].measures)
    assert [4, 2, 4] == [answered.n_clusters for answered in together]


def test_the_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many draws are held at a time is no part of the result."""
    ratings = ratings_of(PAIRS, clusters=CASES)
    whole = measured(ratings, ALL, samples=100, seed=3)
    monkeypatch.setattr(intervals, "BLOCK", 1)

    assert whole == measured(ratings, ALL, samples=100, seed=3)


@pytest.mark.parametrize(
    ("rows", "clusters", "name", "reason"),
    [
        (PAIRS, [0] * 8, COHEN, "fewer than 2 cases"),
        ([[T, T], [F, F], [T, N]], [0, 0, 1], COHEN, "fewer than 2 cases"),
        ([[T, T]] * 4, [0, 1, 2, 3], FLEISS, "no value"),
        ([[T, T], [T, T], [F, F]], [0, 1, 0], COHEN, None),
        ([[T, F, T], [F, F, T], [T, N, F], [N, N, N]], [0, 0, 1, 1], ALPHA, None),
        ([[T]] * 3, [0, 1, 2], UNANIMITY, "no value"),
        ([], [], ALPHA, "no value"),
    ],
)
def test_no_interval_has_a_reason(
    rows: list[list[Category | None]], clusters: list[int], name: str, reason: str | None
) -> None:
    """One case, or several of which one tells something: nothing to draw from; no value: nothing to spread."""
    found = measured(ratings_of(rows, clusters=clusters), [name], samples=50, seed=1)[name]

    assert (reason, reason is None) == (found.ci_reason, found.ci95 is not None)


def test_undefined_resamples_are_left_out_and_counted() -> None:
    """One of a hundred cases is unlike: 0.99^100 = 37% of resamples miss it and are all of one category."""
    found = measured(ratings_of([[T, T]] * 99 + [[F, F]]), [COHEN], samples=400, seed=1)[COHEN]

    assert found.undefined / 400 == pytest.approx(0.366, abs=0.08)
    assert found.ci95 is not None


def test_mostly_undefined_resamples_give_no_interval() -> None:
    """Two of 32 cases tell something, one each of what Fleiss' kappa needs: 60% of resamples miss one or both."""
    rows = [[T, F, N]] * 30 + [[T, T, T], [F, F, F]]
    found = measured(ratings_of(rows), [FLEISS], samples=400, seed=1)[FLEISS]

    assert (1.0, None) == (found.value, found.ci95)
    assert "undefined in more than half of the resamples" == found.ci_reason
    assert found.undefined > 200


def test_an_interval_without_width_is_flagged() -> None:
    """Complete agreement in every resample is no certainty."""
    found = measured(ratings_of([[T, T], [F, F], [T, T]]), [UNANIMITY, COHEN], samples=50, seed=1)

    assert (True, (1.0, 1.0)) == (found[UNANIMITY].degenerate, found[UNANIMITY].ci95)
    assert found[COHEN].degenerate


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(*[st.sampled_from((T, F, N))] * 3), min_size=2, max_size=15))
def test_the_order_of_raters_changes_no_interval(rows: list[tuple[bool | None, ...]]) -> None:
    """Permuting judges changes nothing, to the last bit."""
    names = (UNANIMITY, FLEISS, ALPHA, AC1)
    turned = [row[::-1] for row in rows]

    assert measured(ratings_of(rows), names, samples=40, seed=5) == measured(
        ratings_of(turned), names, samples=40, seed=5
    )


def test_settings_out_of_range_are_refused() -> None:
    """No resample, or a negative seed."""
    for samples, seed in ((0, 1), (1, -1)):
        with pytest.raises(ValueError, match="samples >= 1 and seed >= 0"):
            measured(ratings_of(PAIRS), [COHEN], samples=samples, seed=seed)
