"""Ratings written as rows, for tests of agreement, and each measure of them under its own name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eval.agreement.coded import BINARY, NOT_RATED, Category, Ratings
from eval.agreement.measures import AC1, ALPHA, COHEN, FLEISS, FLIPS, UNANIMITY, Measure, measure


def ratings_of(
    rows: Sequence[Sequence[Category | None]],
    *,
    categories: Sequence[Category] = BINARY,
    clusters: Sequence[int] | None = None,
) -> Ratings:
    """Return rows of ratings, one a unit and in it one a rater, as codes; None is not rated.

    Args:
        categories: those that raters could give.
        clusters: of each unit, from 0; every unit its own where not given.

    Raises:
        ValueError: a rating is no category (1 is not true), or rows differ in length.
    """
    known = {(type(category), category): place for place, category in enumerate(categories)}
    known[type(None), None] = NOT_RATED  # type: ignore[index]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("ratings: expected as many in every row, None where a rater gave none")
    try:
        codes = [[known[type(rating), rating] for rating in row] for row in rows]  # type: ignore[index]
    except KeyError as error:
        raise ValueError(f"ratings: expected one of {list(categories)} or None, found {error.args[0][1]!r}") from None
    width = len(rows[0]) if rows else 0
    numbers = range(len(rows)) if clusters is None else clusters
    return Ratings(
        np.array(codes, dtype=np.int8).reshape(len(rows), width),
        np.array(numbers, dtype=np.int64),
        tuple(categories),
    )


def unanimity(ratings: Ratings) -> Measure:
    """Return the share of units on which all raters agree."""
    return measure(ratings, UNANIMITY)


def cohen_kappa(ratings: Ratings) -> Measure:
    """Return Cohen's kappa."""
    return measure(ratings, COHEN)


def fleiss_kappa(ratings: Ratings) -> Measure:
    """Return Fleiss' kappa."""
    return measure(ratings, FLEISS)


def krippendorff_alpha(ratings: Ratings) -> Measure:
    """Return Krippendorff's alpha."""
    return measure(ratings, ALPHA)


def gwet_ac1(ratings: Ratings) -> Measure:
    """Return Gwet's AC1."""
    return measure(ratings, AC1)


def flip_rate(ratings: Ratings) -> Measure:
    """Return how often two ratings of a unit differ."""
    return measure(ratings, FLIPS)
