"""HealthBench's clipped mean: the reference stream to the last bit, clip after the mean, and what small n can say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.healthbench import metrics as module
from eval.healthbench.metrics import Metric, metric, metrics

SAMPLES, SEED = 1000, 42


def values(n: int, seed: int = 1) -> list[float]:
    """Return n scores as rubrics give them: some below 0, many 0 and 1, the rest fractions."""
    rng = np.random.default_rng([seed, n])
    return [float(value) for value in rng.choice([-1.5, 0.0, 1.0, 1 / 3, -0.25, rng.random()], size=n)]


def literal(column: Sequence[float], *, samples: int = SAMPLES, seed: int = SEED) -> tuple[float, float, float]:
    """Return deviation and percentiles as their definition reads: one draw of the whole table."""
    n = len(column)
    drawn = np.asarray(column)[np.random.default_rng(seed).integers(0, n, (samples, n))]
    means = np.clip(drawn.mean(axis=1), 0.0, 1.0)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(np.std(means)), float(low), float(high)


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 16, 50, 127, 128, 129, 525, 1000])
def test_bootstrap_is_bit_identical_to_its_definition(n: int) -> None:
    """One `integers(0, n, (1000, n))` a metric, however many rows are drawn at a time."""
    found = metric(values(n))

    assert (found.bootstrap_std, found.ci_low, found.ci_high) == literal(values(n))


@settings(max_examples=40)
@given(st.integers(2, 60), st.integers(1, 300), st.integers(0, 2**40))
def test_bootstrap_is_bit_identical_for_any_size_samples_and_seed(n: int, samples: int, seed: int) -> None:
    """The same for settings that nobody thought of; the values are never all alike."""
    column = [*values(n - 1), 7.25]
    found = metric(column, samples=samples, seed=seed)

    assert (found.bootstrap_std, found.ci_low, found.ci_high) == literal(column, samples=samples, seed=seed)


def test_mean_is_clipped_and_never_a_value() -> None:
    """-0.5 and 1 average 0.25; clipped one by one they would average 0.5."""
    found = metric([-0.5, 1.0])

    assert (found.value, found.raw, found.n) == (0.25, 0.25, 2)


@pytest.mark.parametrize(("column", "value", "raw"), [([-1.0, 0.5], 0.0, -0.25), ([1.5, 1.0], 1.0, 1.25)])
def test_raw_mean_stands_beside_the_clipped_one(column: list[float], value: float, raw: float) -> None:
    """Below 0 and above 1 the raw mean says what clipping hides; the interval is of clipped means."""
    found = metric(column)

    assert (found.value, found.raw) == (value, raw)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert 0.0 <= found.ci_low <= found.ci_high <= 1.0


def test_no_value_and_one_value() -> None:
    """Nothing has no mean; one value has no interval, and its resamples do not differ."""
    assert metric([]) == Metric(None, None, 0)
    assert metric([-0.2]) == Metric(0.0, -0.2, 1, 0.0, None, None)


def test_values_all_alike_have_no_spread() -> None:
    """Three tenths have deviation 0 exactly, not 1e-17."""
    found = metric([0.1] * 3)

    assert found == Metric(found.value, found.raw, 3, 0.0, found.value, found.value)
    assert found.value == pytest.approx(0.1, abs=1e-16)


def test_metrics_side_by_side_are_those_taken_alone() -> None:
    """Shared draws are the draws each metric would have had."""
    columns = [values(30), values(30, 2), [], values(7), [0.5], [1.0] * 30]

    assert metrics(columns) == [metric(column) for column in columns]


@pytest.mark.parametrize("block", [1, 100, 1 << 24])
def test_block_size_leaves_the_stream_alone(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing row by row or all at once gives the same metric."""
    expected = metric(values(31))
    monkeypatch.setattr(module, "BLOCK", block)

    assert metric(values(31)) == expected


@given(st.permutations(values(12)))
def test_order_of_values_leaves_the_mean_alone(column: list[float]) -> None:
    """Value, raw mean and n do not depend on the order; only the resamples do."""
    found, expected = metric(column, samples=2), metric(values(12), samples=2)

    assert (found.value, found.raw, found.n) == (expected.value, expected.raw, expected.n)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_no_numbers_are_refused(bad: float) -> None:
    """An example without a score must be left out; NaN would clip to 0."""
    with pytest.raises(ValueError, match="expected finite numbers"):
        metric([1.0, bad])


@pytest.mark.parametrize(("samples", "seed"), [(0, 42), (10, -1)])
def test_settings_out_of_range_are_refused(samples: int, seed: int) -> None:
    """No resample, or a negative seed."""
    with pytest.raises(ValueError, match="bootstrap needs samples >= 1 and seed >= 0"):
        metric([1.0, 0.0], samples=samples, seed=seed)
