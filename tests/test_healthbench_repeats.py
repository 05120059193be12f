"""Nested repeats: worst-at-k against every subset, the spread between runs, and the headline that does not pool."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.healthbench.metrics import metric
from eval.healthbench.repeats import nested_metric, run_spread, worst_at_k, worst_weights

score = st.sampled_from([-1.5, -0.25, 0.0, 1 / 3, 0.5, 0.7, 1.0])


@st.composite
def tables(draw: st.DrawFn) -> list[list[float]]:
    """Return examples x runs of scores."""
    n_runs = draw(st.integers(1, 6))
    return draw(st.lists(st.lists(score, min_size=n_runs, max_size=n_runs), min_size=1, max_size=8))


@settings(max_examples=60)
@given(tables())
def test_worst_at_k_equals_the_enumeration_of_all_subsets(rows: list[list[float]]) -> None:
    """The mean lowest score over all k-subsets of an example's runs, averaged over examples, then clipped."""
    found = worst_at_k(rows, samples=1)

    assert list(found) == list(range(1, len(rows[0]) + 1))
    for k, ours in found.items():
        lowest = [[min(subset) for subset in combinations(row, k)] for row in rows]
        raw = sum(sum(mins) / len(mins) for mins in lowest) / len(rows)
        assert ours.raw == pytest.approx(raw, rel=1e-12, abs=1e-12)
        assert ours.value == pytest.approx(min(1.0, max(0.0, raw)), rel=1e-12, abs=1e-12)
        assert ours.n == len(rows)


def test_worst_at_k_by_hand() -> None:
    """0, 0.6, 0.9: the mean 0.5, then (0 + 0 + 0.6) / 3, then the lowest."""
    found = worst_at_k([[0.9, 0.0, 0.6]])

    assert [found[k].value for k in (1, 2, 3)] == pytest.approx([0.5, 0.2, 0.0], abs=1e-15)


def test_worst_at_k_clips_after_the_mean() -> None:
    """Lowest scores -0.5 and 1: 0.25, not 0.5."""
    assert worst_at_k([[-0.5, 0.0], [1.0, 1.0]])[2].value == 0.25


def test_weights_of_sixteen_runs_share_out_the_subsets() -> None:
    """N = 16: the weights of every k add up to 1, and the k - 1 highest scores are never the lowest."""
    for k in range(1, 17):
        weights = worst_weights(16, k)
        assert sum(weights) == pytest.approx(1.0, abs=1e-12)
        assert weights[17 - k :] == [0.0] * (k - 1)


def test_worst_at_k_refuses_examples_with_other_runs() -> None:
    """An example that failed once must be left out whole, not scored on fewer runs."""
    with pytest.raises(ValueError, match=r"examples\[1\]: expected 2 runs as in the first example, found 1"):
        worst_at_k([[0.1, 0.2], [0.3]])
    with pytest.raises(ValueError, match=r"examples\[0\]: expected a finite score for every run"):
        worst_at_k([[0.1, None]])  # type: ignore[list-item]


@given(tables())
def test_run_spread_equals_its_definition(rows: list[list[float]]) -> None:
    """Score of run r = clip(mean over examples); mean, range and population deviation over runs."""
    runs = np.asarray(rows).mean(axis=0)
    found = run_spread(rows)

    assert found.raw == pytest.approx(runs.tolist(), rel=1e-12, abs=1e-12)
    clipped = np.clip(runs, 0, 1)
    expected = [clipped.mean(), clipped.min(), clipped.max(), clipped.std()]
    assert [found.mean, found.low, found.high, found.sd] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_run_spread_by_hand() -> None:
    """Two examples, two runs: -0.25 clips to 0, the other run has 0.75."""
    found = run_spread([[-1.0, 0.5], [0.5, 1.0]])

    assert (found.scores, found.raw) == ((0.0, 0.75), (-0.25, 0.75))
    assert (found.n, found.mean, found.low, found.high, found.sd) == (2, 0.375, 0.0, 0.75, 0.375)


def test_nothing_to_repeat() -> None:
    """Without examples there is no run, and no worst answer."""
    assert worst_at_k([]) == {}
    assert (run_spread([]).scores, run_spread([]).mean) == ((), None)
    assert nested_metric([]).value is None


def test_headline_counts_examples_not_answers() -> None:
    """Four answers to each of two examples are two values; pooled, n would be 8 and the deviation half as large."""
    rows = [[0.0, 0.1, 0.0, 0.1], [1.0, 0.9, 1.0, 0.9]]
    nested, pooled = nested_metric(rows), metric([score for row in rows for score in row])

    assert nested == metric([0.05, 0.95])
    assert (nested.value, nested.n, pooled.n) == (0.5, 2, 8)
    assert nested.bootstrap_std is not None
    assert pooled.bootstrap_std is not None
    assert nested.bootstrap_std > 1.5 * pooled.bootstrap_std


def test_headline_leaves_out_runs_without_a_score() -> None:
    """An example is the mean of the answers that were graded; one without any is no example."""
    assert nested_metric([[0.2, None, 0.4], [None, None, None]]).raw == pytest.approx(0.3, abs=1e-15)
    assert nested_metric([[0.2, None, 0.4], [None, None, None]]).n == 1


@given(tables(), st.randoms())
def test_order_of_runs_leaves_headline_and_worst_alone(rows: list[list[float]], random: object) -> None:
    """Runs have numbers, not ranks."""
    shuffled = [list(row) for row in rows]
    for row in shuffled:
        random.shuffle(row)  # type: ignore[attr-defined]

    assert nested_metric(shuffled, samples=5) == nested_metric(rows, samples=5)
    assert worst_at_k(shuffled, samples=5) == worst_at_k(rows, samples=5)


@given(tables())
def test_worst_of_more_answers_is_never_better(rows: list[list[float]]) -> None:
    """W(k) falls with k, from the headline to the lowest."""
    raw = [found.raw for found in worst_at_k(rows, samples=1).values()]

    assert all(a is not None and b is not None and a >= b - 1e-12 for a, b in pairwise(raw))
    assert raw[0] == pytest.approx(nested_metric(rows, samples=1).raw, abs=1e-12)
