"""Measures of agreement on nominal ratings: unanimity, Cohen, Fleiss, Krippendorff's alpha, Gwet's AC1, flip rate.

In: ratings as `coded` holds them. Out: a `Measure` with what it was computed from. Every measure is a function of sums
over units: `sums` are a unit's addends, `value` what their sums give, for one sum or for the sums of many resamples at
once (`intervals`). The addends are whole numbers, so that no order of units or raters changes a digit.

Letters, as in the papers: N units, q a category of the K that were offered, r_i the ratings of unit i, n_iq those in q.
Undefined is None with a reason: never 0 or 1, and never NaN outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eval.agreement.coded import Counts, Ratings, base_rates, count

Floats: TypeAlias = NDArray[np.float64]

UNANIMITY: Final = "unanimity"
COHEN: Final = "cohen_kappa"
FLEISS: Final = "fleiss_kappa"
ALPHA: Final = "krippendorff_alpha"
AC1: Final = "gwet_ac1"
FLIPS: Final = "flip_rate"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure's value, None with a `reason` where it is undefined, and what it was computed from.

    `n` units were used, `dropped` were not, because too few raters rated them. `base_rates` are the shares of the
    categories among the ratings used, None without any. `ci95` is the 95% interval, None with a `ci_reason`;
    `undefined` resamples were left out of it, and `degenerate` says that all the others gave one value.
    """

    value: float | None
    reason: str | None
    n: int
    dropped: int
    base_rates: Mapping[str, float] | None
    ci95: tuple[float, float] | None = None
    ci_reason: str | None = "not asked for"
    undefined: int = 0
    degenerate: bool = False


class Shape(NamedTuple):
    """What a value depends on besides sums."""

    raters: int
    categories: int
    scale: int


class Formula(NamedTuple):
    """A measure: a unit's addends (units x columns), the value of their sums (NaN: undefined), and what it uses.

    `rated` says in words what makes a unit usable; with fewer than `least` such units there is no value.
    """

    sums: Callable[[Counts], Floats]
    value: Callable[[Floats, Shape], Floats]
    used: Callable[[Counts], NDArray[np.bool_]]
    rated: str
    least: int


def shape_of(ratings: Ratings, counts: Counts) -> Shape:
    """Return what values of these ratings depend on besides sums."""
    return Shape(ratings.raters, len(ratings.categories), counts.scale)


# -- what the sums give


def _unanimity_sums(counts: Counts) -> Floats:
    unanimous = counts.per_category.max(axis=1) == counts.codes.shape[1]
    return _columns(counts.complete, counts.complete & unanimous)


def _unanimity(sums: Floats, _: Shape) -> Floats:
    """Return the share of units on which all raters agree, of those that all rated."""
    return _ratio(sums[..., 1], sums[..., 0])


def _cohen_sums(counts: Counts) -> Floats:
    k = counts.per_category.shape[1]
    pairs = counts.codes[:, 0].astype(np.int64) * k + counts.codes[:, 1]
    return np.asarray((pairs[:, np.newaxis] == np.arange(k * k)) & counts.complete[:, np.newaxis], dtype=np.float64)


def _cohen(sums: Floats, shape: Shape) -> Floats:
    """Return kappa = (po - pe) / (1 - pe), po the share of equal pairs, pe = sum over q of p_1q p_2q.

    p_1q and p_2q are the two raters' own shares. Cohen 1960, A coefficient of agreement for nominal scales. Undefined
    at pe = 1: both raters gave one and the same category throughout.
    """
    k = shape.categories
    table = sums.reshape(*sums.shape[:-1], k, k)
    n = sums.sum(axis=-1)
    equal = np.trace(table, axis1=-2, axis2=-1)
    chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1)
    return _ratio(n * equal - chance, n * n - chance, valid=n >= 2)


def _fleiss_sums(counts: Counts) -> Floats:
    used = counts.complete
    return _columns(used, counts.agreeing * used, counts.per_category * used[:, np.newaxis])


def _fleiss(sums: Floats, shape: Shape) -> Floats:
    """Return kappa = (P - Pe) / (1 - Pe), P the mean over units of the share of agreeing pairs, Pe = sum of p_q^2.

    p_q is the share of category q among all ratings. Fleiss 1971, Measuring nominal scale agreement among many raters.
    For two raters it is Scott's pi, not Cohen's kappa. Undefined where all ratings are one category.
    """
    given = sums[..., 2:]
    total = given.sum(axis=-1)
    chance = (given * given).sum(axis=-1)
    agreeing = sums[..., 1] * total / max(1, shape.raters - 1)  # P total^2, as total is N times the raters
    return _ratio(agreeing - chance, total * total - chance, valid=sums[..., 0] >= 2)


def _alpha_sums(counts: Counts) -> Floats:
    used = counts.paired
    diagonal = counts.agreeing * counts.scale / np.maximum(1, counts.per_unit - 1)
    return _columns(used, diagonal * used, counts.per_category * used[:, np.newaxis])


def _alpha(sums: Floats, shape: Shape) -> Floats:
    """Return alpha = 1 - Do / De for nominal data, over the n ratings of units with two and more.

    Do = 1 - (1/n) sum over units and q of n_iq (n_iq - 1) / (r_i - 1); De = 1 - sum of n_q (n_q - 1) / (n (n - 1)).
    Krippendorff 2011, Computing Krippendorff's alpha-reliability, C. Undefined where all ratings are one category.
    """
    given = sums[..., 2:]
    n = given.sum(axis=-1)
    apart = n - sums[..., 1] / shape.scale
    by_chance = n * n - (given * given).sum(axis=-1)
    return np.asarray(1 - _ratio((n - 1) * apart, by_chance, valid=sums[..., 0] >= 2))


def _ac1_sums(counts: Counts) -> Floats:
    scaled = counts.scale * counts.per_category / np.maximum(1, counts.per_unit)[:, np.newaxis]
    return _columns(counts.per_unit >= 1, *_pair_sums(counts).T, scaled)


def _ac1(sums: Floats, shape: Shape) -> Floats:
    """Return AC1 = (pa - pe) / (1 - pe), pe = 1/(K - 1) times the sum over q of pi_q (1 - pi_q).

    pa is the mean share of agreeing pairs over units with two ratings and more, pi_q the mean over units with a rating
    of the share of q. Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement;
    missing ratings as in his Handbook of inter-rater reliability. K counts the categories offered, not those seen: with
    two, pe is at most 1/2 and AC1 is defined even where all ratings are one category.
    """
    shares = _ratio(sums[..., 3:], sums[..., :1] * shape.scale)
    chance = (1 - (shares * shares).sum(axis=-1)) / max(1, shape.categories - 1)
    agreeing = _ratio(sums[..., 2], sums[..., 1] * shape.scale, valid=sums[..., 1] >= 2)
    return np.asarray((agreeing - chance) / (1 - chance))


def _pair_sums(counts: Counts) -> Floats:
    pairs = np.maximum(1, counts.per_unit * (counts.per_unit - 1))
    return _columns(counts.paired, counts.agreeing * counts.scale / pairs)


def _flips(sums: Floats, shape: Shape) -> Floats:
    """Return the mean, over units with two ratings and more, of the share of pairs that differ: 1 - pa of AC1."""
    return _ratio(sums[..., 0] * shape.scale - sums[..., 1], sums[..., 0] * shape.scale)


def _complete(counts: Counts) -> NDArray[np.bool_]:
    return counts.complete


def _paired(counts: Counts) -> NDArray[np.bool_]:
    return counts.paired


_BY_ALL: Final = "rated by all raters"
_BY_TWO: Final = "rated by two raters"
FORMULAS: Final[Mapping[str, Formula]] = {
    UNANIMITY: Formula(_unanimity_sums, _unanimity, _complete, _BY_ALL, least=1),
    COHEN: Formula(_cohen_sums, _cohen, _complete, _BY_ALL, least=2),
    FLEISS: Formula(_fleiss_sums, _fleiss, _complete, _BY_ALL, least=2),
    ALPHA: Formula(_alpha_sums, _alpha, _paired, _BY_TWO, least=2),
    AC1: Formula(_ac1_sums, _ac1, _paired, _BY_TWO, least=2),
    FLIPS: Formula(_pair_sums, _flips, _paired, _BY_TWO, least=1),
}


def _columns(*parts: NDArray[np.generic]) -> Floats:
    return np.column_stack([np.asarray(part, dtype=np.float64) for part in parts])


def _ratio(above: Floats, below: Floats, *, valid: NDArray[np.bool_] | None = None) -> Floats:
    """Return a quotient, NaN where there is nothing to divide by."""
    above, below = np.broadcast_arrays(above, below)
    able = below > 0 if valid is None else (below > 0) & valid
    return np.asarray(np.divide(above, below, out=np.full(above.shape, np.nan), where=able))


# -- one measure of some ratings


def measure(ratings: Ratings, name: str) -> Measure:
    """Return a measure without its interval, which `intervals` adds.

    Raises:
        ValueError: Cohen's kappa of more than two raters.
    """
    return measure_counted(ratings, count(ratings), name)


def measure_counted(ratings: Ratings, counts: Counts, name: str) -> Measure:
    """Return a measure of ratings that were counted before; errors are those of `measure`."""
    if name == COHEN and ratings.raters > 2:
        raise ValueError(f"{COHEN}: expected two raters, found {ratings.raters}")
    if ratings.raters < 2:
        return Measure(None, "one rater: nobody to agree with", 0, len(ratings.codes), None)
    formula = FORMULAS[name]
    used = formula.used(counts)
    n = int(used.sum())
    value = float(formula.value(formula.sums(counts).sum(axis=0), shape_of(ratings, counts)))
    rated = used if name != AC1 else counts.per_unit >= 1
    return Measure(
        value=None if math.isnan(value) else value,
        reason=_reason(formula, n) if math.isnan(value) else None,
        n=n,
        dropped=len(used) - n,
        base_rates=base_rates(counts.per_category[rated].sum(axis=0), ratings.categories),
    )


def _reason(formula: Formula, n: int) -> str:
    if n < formula.least:
        return f"{'no unit' if formula.least == 1 else 'fewer than 2 units'} {formula.rated}"
    return "all ratings are one category: chance alone would always agree"
