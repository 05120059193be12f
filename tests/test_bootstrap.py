"""Bootstrap intervals: the reference stream to the last bit, and what an interval says where it says nothing."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.numbers import bootstrap
from eval.numbers.bootstrap import Interval, overall_interval, panel_interval, upstream_intervals
from tests.reference_bootstrap import loop_overall, loop_panel, loop_upstream


def scores(n: int, seed: int = 1) -> list[float]:
    """Return n scores as rubrics give them: many 0 and 1, the rest thirds and odd fractions."""
    rng = np.random.default_rng([seed, n])
    return [float(value) for value in rng.choice([0.0, 1.0, 1 / 3, 2 / 3, 0.8427, rng.random()], size=n)]


def ends(interval: Interval | None) -> tuple[float, float]:
    """Return an interval's ends."""
    assert interval is not None
    return interval.low, interval.high


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 16, 25, 31, 50, 127, 128, 129, 300, 1063])
def test_panel_interval_is_bit_identical_to_the_reference_loop(n: int) -> None:
    """Whatever the panel's size, across numpy's pairwise summation blocks."""
    assert ends(panel_interval(scores(n), samples=300, seed=42)) == loop_panel(scores(n), samples=300, seed=42)


@pytest.mark.parametrize("seed", [0, 42, 2**40])
@pytest.mark.parametrize("samples", [1, 2, 999, 10_000])
def test_panel_interval_is_bit_identical_for_any_seed_and_samples(seed: int, samples: int) -> None:
    """Blocks of drawing never show: not for one resample, not for ten thousand."""
    panel = scores(6)

    assert ends(panel_interval(panel, samples=samples, seed=seed)) == loop_panel(panel, samples=samples, seed=seed)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.5])
def test_alpha_sets_the_level(alpha: float) -> None:
    """A 90% interval is the reference's 90% interval."""
    panel = scores(25)
    expected = loop_panel(panel, samples=500, seed=7, alpha=alpha)

    assert ends(panel_interval(panel, samples=500, seed=7, alpha=alpha)) == expected


@pytest.mark.parametrize(
    "sizes",
    [[25] * 10, list(range(20, 30)), [25] * 9 + [24], [5], [1, 5, 2], [1, 1, 9], [50] * 3, [300, 2], [2000, 3000]],
    ids=str,
)
def test_overall_interval_is_bit_identical_to_the_reference_loop(sizes: list[int]) -> None:
    """For panels of equal and of unequal size, panels of one case included (they draw nothing from the stream)."""
    panels = [scores(n, seed=i) for i, n in enumerate(sizes)]

    assert ends(overall_interval(panels, samples=400, seed=42)) == loop_overall(panels, samples=400, seed=42)


@settings(max_examples=30)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12).filter(lambda sizes: max(sizes) > 1), st.integers(0, 9))
def test_overall_interval_is_bit_identical_for_any_sizes(sizes: list[int], seed: int) -> None:
    """The same for sizes that nobody thought of."""
    panels = [scores(n, seed=i) for i, n in enumerate(sizes)]

    assert ends(overall_interval(panels, samples=50, seed=seed)) == loop_overall(panels, samples=50, seed=seed)


def test_block_size_leaves_the_stream_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing row by row or all at once gives the same interval."""
    panels = [scores(n) for n in (7, 8, 9)]
    expected = overall_interval(panels, samples=200, seed=42)
    for block in (1, 1000, 1 << 24):
        monkeypatch.setattr(bootstrap, "BLOCK", block)
        assert overall_interval(panels, samples=200, seed=42) == expected


def test_memory_does_not_grow_with_samples_times_cases() -> None:
    """5,000 cases x 10,000 resamples would be 400 MB at once; a tenth of the resamples shows the bound."""
    panel = scores(5000)
    tracemalloc.start()
    panel_interval(panel, samples=1000, seed=42)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 8_000_000


def test_no_case_and_one_case_have_no_interval() -> None:
    """One case says nothing about sampling: null, not a zero-width interval."""
    assert panel_interval([], samples=10, seed=42) is None
    assert panel_interval([0.7], samples=10, seed=42) is None
    assert overall_interval([[0.7], [0.2]], samples=10, seed=42) is None
    assert overall_interval([[0.7, 1.0], []], samples=10, seed=42) is None
    assert overall_interval([], samples=10, seed=42) is None


def test_equal_scores_are_flagged() -> None:
    """25 cases at 1.0 give [1, 1], flagged: it is not certainty."""
    assert panel_interval([1.0] * 25, samples=100, seed=42) == Interval(1.0, 1.0, degenerate=True)
    assert overall_interval([[1.0] * 5, [0.0] * 5], samples=100, seed=42) == Interval(0.5, 0.5, degenerate=True)


def test_overall_with_a_panel_of_one_is_flagged() -> None:
    """The interval stands, but one panel adds nothing to its width."""
    interval = overall_interval([[0.0, 1.0, 1.0], [0.5]], samples=100, seed=42)

    assert interval is not None
    assert interval.degenerate
    assert interval.low < interval.high


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    """An ungraded case must be left out; NaN would spread or vanish."""
    with pytest.raises(ValueError, match="expected finite scores"):
        panel_interval([1.0, bad], samples=10, seed=42)
    with pytest.raises(ValueError, match="expected finite scores"):
        upstream_intervals({"a": [bad]}, samples=10, seed=42)


@pytest.mark.parametrize(("samples", "seed", "alpha"), [(0, 42, 0.05), (10, -1, 0.05), (10, 42, 0.0), (10, 42, 1.0)])
def test_settings_out_of_range_are_refused(samples: int, seed: int, alpha: float) -> None:
    """No resample, a negative seed, or a level outside (0, 1)."""
    with pytest.raises(ValueError, match="bootstrap needs samples >= 1"):
        panel_interval([1.0, 0.0], samples=samples, seed=seed, alpha=alpha)


@pytest.mark.parametrize("sizes", [[25] * 4, [20, 21, 29], [1, 2, 50], [1], [64, 65]], ids=str)
def test_upstream_intervals_are_bit_identical_to_the_published_stream(sizes: list[int]) -> None:
    """One `random.Random` for all panels by name, then the overall; a panel of one still draws."""
    panels = {f"p{9 - i}": scores(n, seed=i) for i, n in enumerate(sizes)}
    expected, overall = loop_upstream(panels, samples=200, seed=42)
    found = upstream_intervals(panels, samples=200, seed=42)

    assert {name: ends(interval) for name, interval in found.panels.items()} == expected
    assert ends(found.overall) == overall
    assert list(found.panels) == sorted(panels)


def test_upstream_intervals_leave_empty_panels_out() -> None:
    """A panel without a graded case does not exist upstream; without any there is no interval."""
    full = upstream_intervals({"a": [0.0, 1.0]}, samples=50, seed=42)

    assert upstream_intervals({"a": [0.0, 1.0], "b": []}, samples=50, seed=42) == full
    assert upstream_intervals({"b": []}, samples=50, seed=42) == ({}, None)
