"""Decisions of two modes on the same answers, added up a case, and resampled by case.

In: pairs of one graded answer, judged in one call and atomically. Out: a table, a row a case and a column a sum
(`COLUMNS`): every measure of an audit is a function of such sums, so that one bootstrap serves them all.

d is 1 where the one call says true and the atomic call false, -1 where it is the reverse, 0 where they agree.
In cases of one item neither place nor neighbours can matter: they have no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eval.judging.graded import Ballots, GradedCase

Floats: TypeAlias = NDArray[np.float64]
Votes: TypeAlias = NDArray[np.int8]
"""Decisions by (judge, repeat, item): 1 true, 0 false, -1 none."""
Pair: TypeAlias = tuple[GradedCase, GradedCase]
"""One answer, its items judged in one call, and each in its own."""

THIRDS: Final = ("first", "middle", "last")
THIRDS_FROM: Final = 3
"""Cases with fewer items have no thirds."""
COLUMNS: Final = (
    *("n", "equal", "both", "one", "atomic", "undecided"),
    *(f"{third}_{what}" for third in THIRDS for what in ("n", "shift", "differ")),
    *("slope_top", "slope_bottom"),
    *("halo_n", "halo_with", "halo_ties", "halo_one", "halo_majority"),
    *("again_one_n", "again_one", "again_atomic_n", "again_atomic"),
    *("cases", "share_one", "share_one_2", "share_atomic", "share_atomic_2"),
)
AT: Final = {name: index for index, name in enumerate(COLUMNS)}
BLOCK: Final = 1 << 18  # positions drawn at a time


def case_row(pairs: Sequence[Pair]) -> Floats:
    """Return the sums over all answers to one case of two items or more."""
    sums = dict.fromkeys(COLUMNS, 0.0)
    for one_call, atomic in pairs:
        one, other = _votes(one_call.ballots), _votes(atomic.ballots)
        decided = (one >= 0) & (other >= 0)
        sums["undecided"] += int((~decided).sum())
        for name, value in (
            _agreement(one, other, decided)
            | _order(one, other, decided, one_call.points)
            | _halo(one, other, decided)
            | _again("one", one)
            | _again("atomic", other)
        ).items():
            sums[name] += value
    if sums["n"]:
        sums |= _shares(sums)
    return np.array([sums[name] for name in COLUMNS])


def _votes(ballots: Ballots) -> Votes:
    codes = {True: 1, False: 0, None: -1}
    return np.array([[[codes[said] for said in cell] for cell in judge] for judge in ballots], dtype=np.int8)


def _agreement(one: Votes, other: Votes, decided: NDArray[np.bool_]) -> dict[str, float]:
    a, b = one[decided], other[decided]
    return {"n": len(a), "equal": (a == b).sum(), "both": (a & b).sum(), "one": a.sum(), "atomic": b.sum()}


def _order(
    one: Votes, other: Votes, decided: NDArray[np.bool_], points: Sequence[int | float | None]
) -> dict[str, float]:
    """Return d by third of the rubric, and the parts of its slope over the relative place.

    Places are centred within the items of one sign of one reply pair: that rubrics list what is wanted first and what
    is harmful last, and a mode may treat these unlike, must not look like an effect of order.
    """
    n_items = one.shape[2]
    if n_items < THIRDS_FROM:
        return {}
    d = np.where(decided, one.astype(np.float64) - other, 0.0)
    sums: dict[str, float] = {}
    thirds = np.arange(n_items) * len(THIRDS) // n_items
    for number, third in enumerate(THIRDS):
        inside = thirds == number
        sums[f"{third}_n"] = decided[..., inside].sum()
        sums[f"{third}_shift"], sums[f"{third}_differ"] = d[..., inside].sum(), np.abs(d[..., inside]).sum()
    place, signs = np.arange(n_items) / (n_items - 1), np.sign([value or 0 for value in points])
    top = bottom = 0.0
    for sign in (-1, 0, 1):
        used = decided & (signs == sign)
        counts = np.maximum(used.sum(axis=2, keepdims=True), 1)
        centred = np.where(used, place - (used * place).sum(axis=2, keepdims=True) / counts, 0.0)
        top, bottom = top + float((centred * d).sum()), bottom + float(np.square(centred).sum())
    return sums | {"slope_top": top, "slope_bottom": bottom}


def _halo(one: Votes, other: Votes, decided: NDArray[np.bool_]) -> dict[str, float]:
    """Return how often a disagreement sides with most of the case's other items as the same atomic judge has them."""
    lead = np.where(other >= 0, 2 * other.astype(np.int64) - 1, 0)  # 1 true, -1 false
    others = lead.sum(axis=2, keepdims=True) - lead
    differ = decided & (one != other)
    counted = differ & (others != 0)
    majority, said = others > 0, one == 1
    return {
        "halo_n": counted.sum(),
        "halo_with": (counted & (majority == said)).sum(),
        "halo_ties": (differ & (others == 0)).sum(),
        "halo_one": (counted & said).sum(),
        "halo_majority": (counted & majority).sum(),
    }


def _again(mode: str, votes: Votes) -> dict[str, float]:
    """Return over all pairs of repeats of one judge on one item how many there are, and how many agree."""
    yes, no = (votes == 1).sum(axis=1), (votes == 0).sum(axis=1)
    decided = yes + no
    pairs = (decided * (decided - 1) // 2).sum()
    return {f"again_{mode}_n": pairs, f"again_{mode}": pairs - (yes * no).sum()}


def _shares(sums: dict[str, float]) -> dict[str, float]:
    one, atomic = sums["one"] / sums["n"], sums["atomic"] / sums["n"]
    squares = {"share_one_2": one**2, "share_atomic_2": atomic**2}
    return {"cases": 1.0, "share_one": one, "share_atomic": atomic, **squares}


def resampled_sums(tables: Sequence[Floats], *, samples: int, seed: int) -> Floats:
    """Return the column sums of resamples (panel, resample, column): cases drawn within each panel, to its own size.

    One stream, panel after panel: `default_rng(seed).integers(0, n, (samples, n))`.
    """
    rng = np.random.default_rng(seed)
    found = np.zeros((len(tables), samples, len(COLUMNS)))
    for sums, table in zip(found, tables, strict=True):
        n = len(table)
        step = max(1, BLOCK // max(1, n))
        for start in range(0, samples if n else 0, step):
            rows = min(step, samples - start)
            positions = rng.integers(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
            counts = np.bincount(positions.ravel(), minlength=rows * n).reshape(rows, n)
            sums[start : start + rows] = counts @ table
    return found
