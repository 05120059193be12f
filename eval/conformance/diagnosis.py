"""Which published deviations a failing scorer shows.

In: the outcomes of a scorer. Out: a `Diagnosis` a suite with failures. A deviation, or several together, fits if the
scorer agrees with it at every place where it differs from the truth, and there is at least one such place; a place is
one number of one vector, and where a scorer fails to give a number it neither agrees nor disagrees.

Deviations are tried alone first; what fits alone is put together while it still fits and explains more. Where failures
are left, two and then three that only fit together are looked for: they hide each other where both change one number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, TypeAlias

from eval.conformance.asking import FAILED, Outcome
from eval.conformance.deviant import SUBJECTS, answer
from eval.conformance.deviations import DEVIATIONS, Deviation, rules_of
from eval.conformance.places import NOTHING, alike, differences, leaves
from eval.conformance.vectors import SUITES, Vector

Place: TypeAlias = tuple[str, str]
"""A vector's id, and a place in its answer."""

MOST_TOGETHER: Final = 3

# Counts what was left out: a deviation changes it, but whether a scorer that deviates counts so is another matter.
_BESIDE: Final = "n_ungraded"


@dataclass(frozen=True, slots=True)
class Partial:
    """A deviation that a scorer shows in some of the vectors where it would show."""

    deviation: Deviation
    agrees: int
    shows: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the failures of one suite come from, as far as it is known.

    `named` are the deviations that together explain most, each needed for it, the one that explains most first; `also`
    fit as well but explain nothing more. `explained` of `failed` vectors have every wrong number accounted for.
    """

    suite: str
    named: tuple[Deviation, ...]
    also: tuple[Deviation, ...]
    partial: tuple[Partial, ...]
    explained: int
    failed: int


def diagnose(outcomes: Sequence[Outcome]) -> tuple[Diagnosis, ...]:
    """Return a diagnosis of every suite in which a vector failed."""
    suites = [[outcome for outcome in outcomes if outcome.vector.suite == suite] for suite in SUITES]
    return tuple(_Suite(found).diagnosis() for found in suites if any(outcome.state == FAILED for outcome in found))


class _Suite:
    """The outcomes of one suite, and what sets of deviations would answer; the latter are kept, as they come again."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._suite = outcomes[0].vector.suite
        self._failed = {outcome.vector.id for outcome in outcomes if outcome.state == FAILED}
        answered = [outcome for outcome in outcomes if outcome.found is not None]
        shown_in = [outcome.vector for outcome in answered if outcome.vector.subject in SUBJECTS]
        self._expected = [(vector, leaves(vector.expected)) for vector in shown_in]
        self._found = {outcome.vector.id: outcome.found or {} for outcome in answered}
        self._wrong = {
            (outcome.vector.id, difference.place): outcome.vector.tolerance
            for outcome in answered
            for difference in outcome.differences
        }
        self._shown: dict[tuple[Deviation, ...], dict[Place, Any]] = {}

    def diagnosis(self) -> Diagnosis:
        candidates = [deviation for deviation in DEVIATIONS if self._suite in deviation.suites]
        alone = [deviation for deviation in candidates if self._fits([deviation])]
        named = self._together(alone)
        if self._left(named):
            named = max([named, *self._hidden(candidates, named)], key=self._explains)
        named = sorted(named, key=lambda deviation: -self._explains([deviation]))
        rest = [deviation for deviation in candidates if deviation not in named]
        return Diagnosis(
            suite=self._suite,
            named=tuple(named),
            also=tuple(deviation for deviation in rest if deviation in alone),
            partial=tuple(self._partial([one for one in rest if one not in alone], named)),
            explained=len(self._failed - {vector for vector, _ in self._left(named)} - self._unanswered()),
            failed=len(self._failed),
        )

    def _unanswered(self) -> set[str]:
        return self._failed - set(self._found)

    def _shows(self, deviations: Collection[Deviation]) -> dict[Place, Any]:
        """Return the places where a scorer with these deviations differs from the truth, and what it has there."""
        key = tuple(deviation for deviation in DEVIATIONS if deviation in deviations)
        if key not in self._shown:
            self._shown[key] = dict(_showing(self._expected, key))
        return self._shown[key]

    def _telling(self, deviations: Collection[Deviation]) -> dict[Place, Any]:
        """Return the same without the places that tell nothing: a count beside, or what the scorer fails to give."""
        return {place: value for place, value in self._shows(deviations).items() if self._tells(place, value)}

    def _tells(self, place: Place, value: Any) -> bool:
        return place[1] != _BESIDE and not self._not_given(place, value)

    def _not_given(self, place: Place, value: Any) -> bool:
        """Tell whether the scorer should have a number at a place, as a deviating one has, and has none."""
        return place in self._wrong and value is not NOTHING and place[1] not in self._found[place[0]]

    def _agrees(self, place: Place, value: Any) -> bool:
        vector, within = place
        return alike(self._found[vector].get(within, NOTHING), value, self._wrong.get(place, 0.0))

    def _fits(self, deviations: Collection[Deviation]) -> bool:
        """Tell whether the scorer agrees wherever these deviations together show, and each of them is needed for it."""
        telling = self._telling(deviations)
        if not telling or not all(self._agrees(place, value) for place, value in telling.items()):
            return False
        without = [[other for other in deviations if other is not one] for one in deviations]
        return len(deviations) == 1 or all(self._telling(fewer) != telling for fewer in without)

    def _fit_together(self, deviations: Collection[Deviation]) -> bool:
        """Tell the same of several that change different steps, most of which a look at a few vectors refutes."""
        if len({deviation.field for deviation in deviations}) < len(deviations):
            return False
        shown = _showing(self._expected, deviations)
        refuted = any(self._tells(place, value) and not self._agrees(place, value) for place, value in shown)
        return not refuted and self._fits(deviations)

    def _left(self, deviations: Collection[Deviation]) -> set[Place]:
        """Return the wrong numbers that these deviations do not explain."""
        shows = self._shows(deviations)
        return {place for place in self._wrong if place not in shows or self._not_given(place, shows[place])}

    def _explains(self, deviations: Collection[Deviation]) -> int:
        return len(self._wrong) - len(self._left(deviations))

    def _together(self, alone: Sequence[Deviation]) -> list[Deviation]:
        """Return what fits alone, the one that explains most first, as long as each explains more and all still fit."""
        named: list[Deviation] = []
        for deviation in sorted(alone, key=lambda one: -self._explains([one])):
            more = [*named, deviation]
            if self._explains(more) > self._explains(named) and self._fits(more):
                named = more
        return named

    def _hidden(self, candidates: Sequence[Deviation], named: Sequence[Deviation]) -> list[list[Deviation]]:
        """Return the smallest sets that fit only together, each with what was named before where that still fits."""
        likely = [deviation for deviation in candidates if self._may_hide(deviation)]
        for size in range(2, MOST_TOGETHER + 1):
            sets = [list(few) for few in combinations(likely, size) if self._fit_together(few)]
            if sets := [few for few in sets if self._explains(few) > self._explains(named)]:
                grown = [[*few, *(one for one in named if one not in few)] for few in sets]
                return [more if self._fits(more) else few for more, few in zip(grown, sets, strict=True)]
        return []

    def _may_hide(self, deviation: Deviation) -> bool:
        """Tell whether the scorer is wrong, in whatever way, in at least half of the places where a deviation shows."""
        telling = self._telling([deviation])
        return 2 * sum(place in self._wrong for place in telling) >= len(telling) > 0

    def _partial(self, rest: Iterable[Deviation], named: Collection[Deviation]) -> list[Partial]:
        """Return what shows in at least two and half of its vectors, some of them not explained otherwise."""
        left = {vector for vector, _ in self._left(named)}
        found = []
        for deviation in rest:
            telling = self._telling([deviation])
            vectors = {vector for vector, _ in telling}
            agrees = vectors - {place[0] for place, value in telling.items() if not self._agrees(place, value)}
            if len(agrees) >= 2 and 2 * len(agrees) >= len(vectors) and agrees & left:
                found.append(Partial(deviation, len(agrees), len(vectors)))
        return sorted(found, key=lambda partial: -partial.agrees / partial.shows)


def _showing(
    expected: Iterable[tuple[Vector, Mapping[str, Any]]], deviations: Iterable[Deviation]
) -> Iterator[tuple[Place, Any]]:
    """Yield the places where a scorer with these deviations differs from the truth, and what it has there."""
    rules = rules_of(deviations)
    for vector, truth in expected:
        found = answer(dict(vector.whole), rules)
        asked = leaves({name: found[name] for name in vector.expected})
        for difference in differences(truth, asked, vector.tolerance):
            yield (vector.id, difference.place), difference.found
