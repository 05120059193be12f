"""How often one system's answer scores above another's on the same example, plain and among answers of like length.

In: for both systems the answers to the same examples in the same order, each with its score and its length. Out: the
win rate of A over B, what it is made of, and the effect of the length control. Not done here: the scores (`scores`).

    w_i = #(s_a > s_b) / #(s_a != s_b) over all pairs (a, b) of A's and B's answers to example i; ties drop out
    w = mean of w_i over the examples that have one
    length-controlled: only pairs with |L_a - L_b| / ((L_a + L_b) / 2) <= 0.1, none with a length of 0
    effect of the control = (w - w_lc) / (w - 0.5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from eval.healthbench.metrics import Metric, metric
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED

LENGTH_TOLERANCE: Final = 0.1
"""The largest difference of two lengths, as a share of their mean, at which answers count as equally long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer's score, not clipped, and its length in code points."""

    score: float
    n_chars: int


@dataclass(frozen=True, slots=True)
class WinRate:
    """The win rate over the examples that have one (`rate.n`), with its bootstrap over examples.

    `pairs` decided it, `ties` and `dropped` (by the length control) did not; `without_pair` counts the examples that
    are left with no decided pair.
    """

    rate: Metric
    pairs: int
    ties: int
    dropped: int
    without_pair: int


@dataclass(frozen=True, slots=True)
class WinRates:
    """A's win rate over B, plain and length-controlled; the effect is None where w is 0.5 or either rate unknown."""

    plain: WinRate
    controlled: WinRate
    effect: float | None


class _Counts(NamedTuple):
    """The pairs of one example."""

    wins: int
    losses: int
    ties: int
    dropped: int


def win_rates(
    a: Sequence[Sequence[Answer]],
    b: Sequence[Sequence[Answer]],
    *,
    tolerance: float = LENGTH_TOLERANCE,
    samples: int = HEALTHBENCH_SAMPLES,
    seed: int = SEED,
) -> WinRates:
    """Return how often A's answers beat B's, over all pairs of their answers to each example.

    Args:
        a: A's answers, one sequence an example; an example may have none.
        b: B's answers to the same examples in the same order.
        tolerance: The largest relative difference of two lengths under the control.

    Raises:
        ValueError: the systems differ in their number of examples, a score is not finite, or a length is negative.
    """
    if len(a) != len(b):
        raise ValueError(f"win rate: expected the same examples of both systems, found {len(a)} and {len(b)}")
    plain = _win_rate([_count(x, y, None) for x, y in zip(a, b, strict=True)], samples, seed)
    controlled = _win_rate([_count(x, y, tolerance) for x, y in zip(a, b, strict=True)], samples, seed)
    return WinRates(plain, controlled, control_effect(plain.rate.value, controlled.rate.value))


def control_effect(plain: float | None, controlled: float | None) -> float | None:
    """Return the share of a lead that goes away under the length control; None where there is no lead."""
    if plain is None or controlled is None or plain == 0.5:
        return None
    return (plain - controlled) / (plain - 0.5)


def _count(a: Sequence[Answer], b: Sequence[Answer], tolerance: float | None) -> _Counts:
    """Count the pairs of one example; the first index is A's answer, the second B's."""
    for answer in (*a, *b):
        if not math.isfinite(answer.score) or answer.n_chars < 0:
            raise ValueError(f"win rate: expected a finite score and a length >= 0, found {answer}")
    if not a or not b:
        return _Counts(0, 0, 0, 0)
    ours = np.array([answer.score for answer in a])[:, None]
    theirs = np.array([answer.score for answer in b])[None, :]
    kept = np.ones((len(a), len(b)), dtype=np.bool_)
    if tolerance is not None:
        long = np.array([answer.n_chars for answer in a])[:, None]
        other = np.array([answer.n_chars for answer in b])[None, :]
        known = (long > 0) & (other > 0)
        kept = known & (np.abs(long - other) / np.where(known, (long + other) / 2, 1.0) <= tolerance)
    wins, losses = int((kept & (ours > theirs)).sum()), int((kept & (ours < theirs)).sum())
    n_kept = int(kept.sum())
    return _Counts(wins, losses, n_kept - wins - losses, kept.size - n_kept)


def _win_rate(counts: Sequence[_Counts], samples: int, seed: int) -> WinRate:
    decided = [count for count in counts if count.wins + count.losses]
    return WinRate(
        rate=metric([c.wins / (c.wins + c.losses) for c in decided], samples=samples, seed=seed),
        pairs=sum(c.wins + c.losses for c in decided),
        ties=sum(c.ties for c in counts),
        dropped=sum(c.dropped for c in counts),
        without_pair=len(counts) - len(decided),
    )
