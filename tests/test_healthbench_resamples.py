"""Resampled records: the draws of every other interval, sums that are exact, raters as their sparse table says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.healthbench import metrics as module
from eval.healthbench.metrics import resampled_means
from eval.healthbench.pairs import BALANCED, F1, balanced_f1, ratios
from eval.healthbench.resamples import raters, resampled


def test_sums_rest_on_the_draws_of_the_means() -> None:
    """A table's resampled column sums are those of the drawn rows, n times the resampled means of its columns."""
    table = np.random.default_rng(3).integers(0, 4, (25, 3)).astype(np.float64)
    drawn = np.random.default_rng(9).integers(0, 25, (50, 25))
    found = resampled(table, None, samples=50, seed=9)
    assert found is not None

    assert found.sums.tolist() == table[drawn].sum(axis=1).tolist()
    assert found.sums == pytest.approx(25 * resampled_means([column.tolist() for column in table.T], 50, 9).T)


def test_blocks_leave_the_draws_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many resamples are drawn at a time."""
    table = np.arange(30.0).reshape(10, 3)
    at_once = resampled(table, None, samples=7, seed=1)
    monkeypatch.setattr(module, "BLOCK", 20)
    by_two = resampled(table, None, samples=7, seed=1)

    assert at_once is not None
    assert by_two is not None
    assert at_once.sums.tolist() == by_two.sums.tolist()


def test_one_record_is_not_resampled() -> None:
    """It has no spread."""
    assert resampled(np.ones((1, 4)), None, samples=10, seed=1) is None


def test_raters_add_up_what_their_records_were_drawn() -> None:
    """Rater 7 gave labels on records 0 and 2, rater 9 on 2: drawn 3, 1 and 2 times."""
    cells = np.array([[1.0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 1]])
    table = raters(np.array([0, 2, 2]), np.array([7, 7, 9]), cells)

    assert table.cells(np.array([[3.0, 1, 2]]))[:, 0].T.tolist() == [[3, 3, 4, 0], [0, 0, 0, 2]]


counts = st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=9)


@given(counts)
def test_the_quick_balance_is_the_balance(rows: list[tuple[int, ...]]) -> None:
    """The same values and n, undefined in the same places."""
    table = np.array(rows, dtype=np.float64)
    values, n = balanced_f1(*table.T)
    expected = ratios(table)

    assert values == pytest.approx(expected.values[:, F1, BALANCED], rel=1e-12, nan_ok=True)
    assert n.tolist() == expected.n[:, F1, BALANCED].tolist()
