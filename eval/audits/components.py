"""Variance components of nested scores: cases, answers, judges and repeats, from balanced analyses of variance.

In: for each panel an array of scores (case, answer, judge, repeat) without gaps. Out: sums of squares, components with
intervals, and the variance of the mean over panels under this design and others. Where scores come from: `variance`.

Model (random effects; panels are fixed strata, each of weight 1/P in the mean):

    y = mu_panel + case + answer(case) + judge + panel x judge + case x judge + answer(case) x judge + repeat

Expected mean squares with I cases a panel, K answers a case, J judges, R repeats (s: a component; balanced, nested and
crossed: Searle, Casella, McCulloch, Variance Components, 1992, chapter 4 and appendix F):

    E(case x judge)   = s_repeat + R s_answer_judge + KR s_case_judge
    E(answer_judge)   = s_repeat + R s_answer_judge
    E(repeat)         = s_repeat
    E(answer)         = s_repeat + R s_answer_judge + JR s_answer
    E(case)           = E(answer) + KR s_case_judge + JKR s_case
    E(panel x judge)  = E(case x judge) + IKR s_panel_judge
    E(judge)          = E(panel x judge) + IKRP s_judge

Solved for s from the finest to the coarsest: what the formulas in `_ESTIMATORS` say. Sums of squares within panels are
pooled over panels, with their degrees of freedom. Panels of unequal size: the two lines of judges come from unweighted
panel means, and I in them is the harmonic mean of the panels' sizes; this is exact, as a panel's noise goes with 1/I.
With one panel they are the textbook's. A judge is one judge on all panels: s_judge is shared by them and does not
shrink with P; what a judge does on one panel alone is s_panel_judge.

    Var(mean) = s_judge/J + s_panel_judge/PJ + (s_case + s_answer/K + s_case_judge/J + s_answer_judge/KJ
                + s_repeat/KJR) / PI

A dimension of one level identifies fewer components. Two of which it makes one stand together in the coarser
(`held_by`), and the variance of the mean under the present design is the same. An estimate may be negative: raw here,
0 in a variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from eval.numbers.defaults import ALPHA

Cells: TypeAlias = NDArray[np.float64]
"""Scores by (case, answer, judge, repeat)."""

TERMS: Final[Mapping[str, str]] = {
    "case": "PC",
    "answer": "PCA",
    "judge": "J",
    "panel_judge": "PJ",
    "case_judge": "PCJ",
    "answer_judge": "PCAJ",
    "repeat": "PCAJR",
}
"""Each component with the dimensions it varies over: panel, case, answer, judge, repeat. Coarser ones first."""

DIMENSIONS: Final[Mapping[str, str]] = {"case": "C", "answer": "A", "judge": "J", "repeat": "R"}

# Where a mean square does not exist (no degrees of freedom), the next finer one that holds the same noise.
_FINER: Final = {
    "judge": "panel_judge",
    "panel_judge": "case_judge",
    "case_judge": "answer_judge",
    "answer": "answer_judge",
    "answer_judge": "repeat",
}
# A component = (sum of signed mean squares) / (levels of the dimensions that it does not vary over).
_ESTIMATORS: Final[Mapping[str, Mapping[str, int]]] = {
    "case": {"case": 1, "answer": -1, "case_judge": -1, "answer_judge": 1},
    "answer": {"answer": 1, "answer_judge": -1},
    "judge": {"judge": 1, "panel_judge": -1},
    "panel_judge": {"panel_judge": 1, "case_judge": -1},
    "case_judge": {"case_judge": 1, "answer_judge": -1},
    "answer_judge": {"answer_judge": 1, "repeat": -1},
    "repeat": {"repeat": 1},
}


@dataclass(frozen=True, slots=True)
class Square:
    """A sum of squares and its degrees of freedom."""

    ss: float
    df: int

    @property
    def ms(self) -> float:
        """The mean square; NaN without degrees of freedom."""
        return self.ss / self.df if self.df else math.nan


@dataclass(frozen=True, slots=True)
class Component:
    """A variance component: its raw estimate, which may be below 0, and a 95% interval cut at 0.

    All None where the design cannot tell it from another: `held_by` names the one that it stands in, and is None where
    it stands in none (one judge: in the mean itself). `holds` are the components that stand in this one.
    """

    estimate: float | None
    low: float | None = None
    high: float | None = None
    held_by: str | None = None
    holds: tuple[str, ...] = ()

    @property
    def used(self) -> float:
        """The estimate as it enters a variance: never below 0."""
        return max(0.0, self.estimate or 0.0)


@dataclass(frozen=True, slots=True)
class Design:
    """How many of each: the cases of every panel, and answers a case, judges, and repeats a judge."""

    cases: tuple[int, ...]
    answers: int
    judges: int
    repeats: int

    @property
    def mean_cases(self) -> float:
        """The harmonic mean of the panels' numbers of cases."""
        return len(self.cases) / sum(1 / n for n in self.cases)

    def levels(self, dimensions: str) -> float:
        """Return the product of the levels of some dimensions (letters of `TERMS`)."""
        of = {"P": len(self.cases), "C": self.mean_cases, "A": self.answers, "J": self.judges, "R": self.repeats}
        return math.prod(of[letter] for letter in dimensions)

    def single(self, letter: str) -> bool:
        """Whether a dimension has one level only."""
        return max(self.cases) == 1 if letter == "C" else self.levels(letter) == 1

    def more(self, dimension: str, added: int) -> Design:
        """Return the design with so many more levels of a dimension; of cases, so many more in each panel."""
        more = {name: added if name == dimension else 0 for name in DIMENSIONS}
        return Design(
            cases=tuple(n + more["case"] for n in self.cases),
            answers=self.answers + more["answer"],
            judges=self.judges + more["judge"],
            repeats=self.repeats + more["repeat"],
        )


def design_of(panels: Sequence[Cells]) -> Design:
    """Return the design of some panels' scores.

    Raises:
        ValueError: there is no panel or an empty one, or they differ in answers, judges or repeats.
    """
    shapes = {panel.shape[1:] for panel in panels}
    if len(shapes) != 1 or any(panel.size == 0 for panel in panels):
        raise ValueError(f"cells: expected one shape (answers, judges, repeats), found {sorted(shapes)}")
    (answers, judges, repeats) = shapes.pop()
    return Design(tuple(len(panel) for panel in panels), answers, judges, repeats)


def mean_squares(panels: Sequence[Cells]) -> dict[str, Square]:
    """Return the analysis of variance of some panels' scores, by component, in the order of `TERMS`."""
    design = design_of(panels)
    j, within = design.judges, [_within(panel) for panel in panels]
    pooled = {name: Square(sum(s[name].ss for s in within), sum(s[name].df for s in within)) for name in within[0]}
    means = np.stack([panel.mean(axis=(0, 1, 3)) for panel in panels])  # (panel, judge)
    of_judge, of_panel = means.mean(axis=0), means.mean(axis=1, keepdims=True)
    scale = design.levels("CAR")
    judge = scale * len(panels) * _squares(of_judge - means.mean())
    crossed = scale * _squares(means - of_judge - of_panel + means.mean())
    pooled |= {"judge": Square(judge, j - 1), "panel_judge": Square(crossed, (len(panels) - 1) * (j - 1))}
    return {name: pooled[name] for name in TERMS}


def _within(y: Cells) -> dict[str, Square]:
    i, k, j, r = y.shape
    m, c, jm = y.mean(), y.mean(axis=(1, 2, 3)), y.mean(axis=(0, 1, 3))
    ca, cj, caj = y.mean(axis=(2, 3)), y.mean(axis=(1, 3)), y.mean(axis=3)
    crossed = caj - ca[:, :, None] - cj[:, None, :] + c[:, None, None]
    return {
        "case": Square(k * j * r * _squares(c - m), i - 1),
        "answer": Square(j * r * _squares(ca - c[:, None]), i * (k - 1)),
        "case_judge": Square(k * r * _squares(cj - c[:, None] - jm + m), (i - 1) * (j - 1)),
        "answer_judge": Square(r * _squares(crossed), i * (k - 1) * (j - 1)),
        "repeat": Square(_squares(y - caj[..., None]), i * k * j * (r - 1)),
    }


def _squares(values: NDArray[np.float64]) -> float:
    return float(np.square(values).sum())


def components(squares: Mapping[str, Square], design: Design, *, alpha: float = ALPHA) -> dict[str, Component]:
    """Return every component that the model has under a design; panel x judge only of several panels."""
    names = [name for name in TERMS if name != "panel_judge" or len(design.cases) > 1]
    holders = {name: _holder(name, squares, design) for name in names}
    return {
        name: _component(name, squares, design, holds=_held(name, holders), alpha=alpha)
        if holders[name] == name
        else Component(None, held_by=holders[name])
        for name in names
    }


def _held(name: str, holders: Mapping[str, str | None]) -> tuple[str, ...]:
    return tuple(other for other, holder in holders.items() if holder == name and other != name)


def _holder(name: str, squares: Mapping[str, Square], design: Design) -> str | None:
    """Return the coarsest component that varies over the same dimensions, those of one level left out."""

    def over(term: str) -> set[str]:
        return {letter for letter in TERMS[term] if not design.single(letter)}

    return next((term for term in TERMS if squares[term].df and over(term) == over(name)), None)


def _component(
    name: str, squares: Mapping[str, Square], design: Design, *, holds: tuple[str, ...], alpha: float
) -> Component:
    signs: dict[str, int] = {}
    for term, sign in _ESTIMATORS[name].items():
        found: str | None = term
        while found is not None and not squares[found].df:
            found = _FINER.get(found)
        if found is not None:
            signs[found] = signs.get(found, 0) + sign
    scale = design.levels("".join(letter for letter in "PCAJR" if letter not in TERMS[name]))
    terms = [(sign / scale, squares[term]) for term, sign in signs.items() if sign]
    return _with_interval(terms, holds=holds, alpha=alpha)


def _with_interval(terms: Sequence[tuple[float, Square]], *, holds: tuple[str, ...], alpha: float) -> Component:
    """Return a signed sum of mean squares with its modified large-sample interval, each end cut at 0.

    Graybill and Wang 1980, Ting et al. 1990 (Burdick and Graybill 1992, chapter 3), without their cross terms, which
    makes it a little wide; of a single mean square it is the exact chi-square interval. It takes effects as normal.
    """
    estimate = sum(weight * square.ms for weight, square in terms)
    down = up = 0.0
    for weight, square in terms:
        g = 1 - square.df / float(chi2.ppf(1 - alpha / 2, square.df))
        h = square.df / float(chi2.ppf(alpha / 2, square.df)) - 1
        part = (weight * square.ms) ** 2
        down += part * (g if weight > 0 else h) ** 2
        up += part * (h if weight > 0 else g) ** 2
    low, high = max(0.0, estimate - math.sqrt(down)), max(0.0, estimate + math.sqrt(up))
    return Component(estimate, low, high, holds=holds)


def mean_variance(found: Mapping[str, Component], design: Design, *, finest: bool = False) -> float:
    """Return the variance of the mean over panels under a design, from components; negative ones count 0.

    Args:
        finest: take a component that holds others as being all of its finest: what more levels could do at best.
    """
    total = 0.0
    for name, component in found.items():
        if component.estimate is not None:
            term = component.holds[-1] if finest and component.holds else name
            total += component.used / design.levels(TERMS[term])
    return total
