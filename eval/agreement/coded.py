"""Nominal ratings as codes, and how often each category was given to each unit.

In: codes of ratings, units x raters, some not given (`ratings`). Out: `Ratings` and their `Counts`. Not done here: what
agreement they show (`measures`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indexes: TypeAlias = NDArray[np.int64]
Category: TypeAlias = bool | str

UNRESOLVED: Final = "unresolved"
BINARY: Final[tuple[Category, ...]] = (False, True)
THIRD: Final[tuple[Category, ...]] = (False, True, UNRESOLVED)
NOT_RATED: Final = -1

MOST_EXACT: Final = 16
"""Raters up to which shares of a unit's ratings are scaled to whole numbers that still add up exactly."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings as codes, units x raters: the place of the category in `categories`, or `NOT_RATED`.

    `clusters` numbers the cluster of every unit, from 0. `categories` are those that were offered, seen or not.
    """

    codes: NDArray[np.int8]
    clusters: Indexes
    categories: tuple[Category, ...] = BINARY

    @property
    def raters(self) -> int:
        """How many raters there are, whether they rated anything or not."""
        return int(self.codes.shape[1])

    def of(self, rows: NDArray[np.bool_]) -> Ratings:
        """Return the ratings of some units."""
        return Ratings(self.codes[rows], self.clusters[rows], self.categories)


class Counts(NamedTuple):
    """Ratings counted: `per_category` is units x K, `per_unit` the r_i; `scale` turns shares into whole numbers."""

    codes: NDArray[np.int8]
    per_category: Indexes
    per_unit: Indexes
    scale: int

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Units that all raters rated."""
        return np.asarray(self.per_unit == self.codes.shape[1])

    @property
    def paired(self) -> NDArray[np.bool_]:
        """Units that two raters or more rated."""
        return np.asarray(self.per_unit >= 2)

    @property
    def agreeing(self) -> Indexes:
        """Ordered pairs of equal ratings of a unit: the sum of n_iq (n_iq - 1) over q."""
        return np.asarray((self.per_category * (self.per_category - 1)).sum(axis=1))


def count(ratings: Ratings) -> Counts:
    """Return how often each category was given to each unit."""
    places = range(len(ratings.categories))
    per_category = np.stack([(ratings.codes == place).sum(axis=1) for place in places], axis=1).astype(np.int64)
    exact = range(2, ratings.raters + 1) if ratings.raters <= MOST_EXACT else ()
    scale = math.lcm(*(raters * (raters - 1) for raters in exact))
    return Counts(ratings.codes, per_category, per_category.sum(axis=1), scale)


def base_rates(given: Indexes, categories: Sequence[Category]) -> dict[str, float] | None:
    """Return the share of each category from counts, by its name; None of nothing."""
    total = int(given.sum())
    if total == 0:
        return None
    return {category_name(category): int(n) / total for category, n in zip(categories, given, strict=True)}


def category_name(category: Category) -> str:
    """Return the word of a category in reports: true and false as JSON writes them."""
    return str(category).lower() if isinstance(category, bool) else category
