"""The variance budget of a run: what its nested decisions say of cases, answers, judges, repeats; what more buys.

In: a run's graded cases with every judge's ballots. Out: for each panel and overall the components of a score's
variance, the variance of the mean now and with more of one kind, what that costs in calls, and how often an item's
decisions flip. The analysis itself: `components`. As JSON and text: `variance_report`.

The score of a cell is the full score of one answer by one judge's decisions in one repeat. The mean of cells is the
mean of single judges, once each: a jury's verdict is another function of the same decisions, and mostly steadier.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np

from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.audits.components import (
    DIMENSIONS,
    Cells,
    Component,
    Design,
    Square,
    components,
    design_of,
    mean_squares,
    mean_variance,
)
from eval.judging.graded import GradedCase, RunData
from eval.judging.jury import vote
from eval.numbers.panels import registry_order, score_decisions

PER_CALLS: Final = 100


@dataclass(frozen=True, slots=True)
class PanelCells:
    """A panel's scores (case, answer, judge, repeat) of the cases that have all of them, and how many have not.

    `cells` is None without a complete case. `items` is the mean number of rubric items of the complete cases.
    `incomplete` counts cases without a decision somewhere, `unscored` those whose rubric has no score.
    """

    panel: str
    cells: Cells | None
    items: float
    n_cases: int
    incomplete: int
    unscored: int


class Price(NamedTuple):
    """What a design costs: calls an answer (0 where answers are given), and judge calls on one answer, each panel's."""

    answer: int
    judge: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """More of one dimension: the variance then, the calls it costs, and the variance it takes off 100 calls.

    `variance` is None where the design cannot tell, with the `reason`; `at_best` is then the least it could be.
    """

    dimension: str
    calls: float
    variance: float | None
    gain: float | None
    at_best: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """The variance of a mean, over one panel or all: its parts, and what each step would make it.

    `variance` is None with one case a panel. `left_out` is the share that an interval from resampling cases leaves
    out: what judges differ from one another on all cases alike. None with one judge, where it is not known.
    """

    design: Design
    mean: float
    squares: Mapping[str, Square]
    components: Mapping[str, Component]
    variance: float | None
    left_out: float | None
    calls: float
    steps: tuple[Step, ...]

    def best(self, *, with_cases: bool = True) -> Step | None:
        """Return the step that takes most variance off for its calls; None where none is known to take any.

        Args:
            with_cases: whether there are more cases to ask. They take off all but the judges' share, and so mostly win.
        """
        known = [step for step in self.steps if step.gain is not None and step.gain > 0]
        open_to = [step for step in known if with_cases or step.dimension != "case"]
        return max(open_to, key=lambda step: step.gain or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class ItemFlips:
    """How an item's decisions differ on one answer, over all its answers; None where nothing can be compared.

    `repeats` is the share of (answer, judge) whose repeats do not all say the same, `judges` that of answers whose
    judges' votes do not, `pairs` that of all pairs of decisions on one answer; each with its n.
    """

    case_id: str
    item_id: str
    panel: str
    repeats: float | None
    n_repeats: int
    judges: float | None
    n_judges: int
    pairs: float | None
    n_pairs: int


def panel_of(run: RunData, case: GradedCase) -> str:
    """Return the panel that a case counts in: a HealthBench run is one panel, named after its config."""
    return run.config if run.suite == HEALTHBENCH else case.benchmark


def panel_cells(run: RunData) -> list[PanelCells]:
    """Return the scores of every panel's complete cases.

    Raises:
        BadInput: no case has a judge's decisions, or cases differ in judges, repeats or answers.
    """
    by_case: dict[tuple[str, str], list[GradedCase]] = defaultdict(list)
    for case in run.cases:
        by_case[panel_of(run, case), case.case_id].append(case)
    shape = _shape(run, max(map(len, by_case.values()), default=0))
    panels = registry_order(panel for panel, _ in by_case)
    return [_panel(panel, [found for (of, _), found in by_case.items() if of == panel], shape) for panel in panels]


def _shape(run: RunData, answers: int) -> tuple[int, int, int]:
    shapes = {(len(case.ballots), len(repeats)) for case in run.cases for repeats in case.ballots}
    if not shapes:
        raise BadInput("variance: expected a run with its judges' decisions, found none; give a journal or its results")
    if len(shapes) > 1:
        raise BadInput(f"variance: expected as many judges and repeats on every answer, found {sorted(shapes)}")
    judges, repeats = shapes.pop()
    return answers, judges, repeats


def _panel(panel: str, cases: Sequence[Sequence[GradedCase]], shape: tuple[int, int, int]) -> PanelCells:
    rows: list[Cells] = []
    items: list[int] = []
    unscored = 0
    for answers in cases:
        if len(answers) < shape[0] or not all(map(_complete, answers)):
            continue
        scores = [[[score_decisions(case, cell) for cell in judge] for judge in case.ballots] for case in answers]
        if any(score is None for answer in scores for judge in answer for score in judge):
            unscored += 1
            continue
        rows.append(np.array(scores, dtype=np.float64))
        items.append(len(answers[0].item_ids))
    cells = np.stack(rows) if rows else None
    mean_items = fmean(items) if items else 0.0
    return PanelCells(panel, cells, mean_items, len(cases), len(cases) - len(rows) - unscored, unscored)


def _complete(case: GradedCase) -> bool:
    decisions = [decision for judge in case.ballots for cell in judge for decision in cell]
    return bool(decisions) and None not in decisions


def budget(panels: Sequence[PanelCells], *, grouping: str, answer_calls: int, added: int = 1) -> Budget:
    """Return the budget of the mean over some panels, each with complete cases.

    Args:
        grouping: `item` takes a judge call an item, `case` one an answer.
        answer_calls: calls that an answer costs: 1, or 0 where answers are given.
        added: how many more of a dimension each step takes.
    """
    cells = [panel.cells for panel in panels if panel.cells is not None]
    design, squares = design_of(cells), mean_squares(cells)
    found = components(squares, design)
    variance = None if design.single("C") else mean_variance(found, design)
    price = Price(answer_calls, tuple(panel.items if grouping == "item" else 1.0 for panel in panels))
    return Budget(
        design=design,
        mean=fmean(float(panel.mean()) for panel in cells),
        squares=squares,
        components=found,
        variance=variance,
        left_out=_left_out(found, design, variance),
        calls=_calls(design, price),
        steps=tuple(_step(name, found, design, variance, price=price, added=added) for name in DIMENSIONS),
    )


def _left_out(found: Mapping[str, Component], design: Design, variance: float | None) -> float | None:
    if not variance or design.single("J"):
        return None
    of_judges = {name: part for name, part in found.items() if name in ("judge", "panel_judge")}
    return mean_variance(of_judges, design) / variance


def _calls(design: Design, price: Price) -> float:
    asked = design.judges * design.repeats
    each = [n * (price.answer + asked * judge) for n, judge in zip(design.cases, price.judge, strict=True)]
    return design.answers * sum(each)


def _step(
    name: str, found: Mapping[str, Component], design: Design, now: float | None, *, price: Price, added: int
) -> Step:
    then = design.more(name, added)
    calls = _calls(then, price) - _calls(design, price)
    if now is None:
        return Step(name, calls, None, None, reason="one case a panel: how cases differ is not known")
    if design.single(DIMENSIONS[name]):
        best = None if name == "judge" else mean_variance(found, then, finest=True)
        return Step(name, calls, None, None, at_best=best, reason=f"one {name}: how {name}s differ is not known")
    variance = mean_variance(found, then)
    return Step(name, calls, variance, (now - variance) / calls * PER_CALLS if calls else None)


def item_flips(run: RunData) -> list[ItemFlips]:
    """Return how often the decisions on each item differ, items in dataset order; missing decisions are left out."""
    by_item: dict[tuple[str, str, str], list[list[list[bool | None]]]] = defaultdict(list)
    for case in run.cases:
        for index, item_id in enumerate(case.item_ids):
            said = [[cell[index] for cell in judge] for judge in case.ballots]
            by_item[case.case_id, item_id, panel_of(run, case)].append(said)
    return [_flips(*name, answers) for name, answers in by_item.items()]


def _flips(case_id: str, item_id: str, panel: str, answers: Sequence[Sequence[Sequence[bool | None]]]) -> ItemFlips:
    repeats = [row for judges in answers for judge in judges if len(row := _decided(judge)) > 1]
    votes = [row for judges in answers if len(row := _decided(map(vote, judges))) > 1]
    n_pairs = differing = 0
    for judges in answers:
        decisions = _decided(itertools.chain.from_iterable(judges))
        yes = sum(decisions)
        n_pairs += len(decisions) * (len(decisions) - 1) // 2
        differing += yes * (len(decisions) - yes)
    pairs = differing / n_pairs if n_pairs else None
    return ItemFlips(case_id, item_id, panel, _split(repeats), len(repeats), _split(votes), len(votes), pairs, n_pairs)


def _decided(decisions: Iterable[bool | None]) -> list[bool]:
    return [decision for decision in decisions if decision is not None]


def _split(rows: Sequence[Sequence[bool]]) -> float | None:
    """Return the share of rows that do not all say the same."""
    return sum(len(set(row)) > 1 for row in rows) / len(rows) if rows else None


def pooled_flips(flips: Sequence[ItemFlips]) -> dict[str, tuple[float | None, int]]:
    """Return the shares `repeats` and `judges` over many items, each with its n."""
    found: dict[str, tuple[float | None, int]] = {}
    for name in ("repeats", "judges"):
        parts = [(getattr(item, name), getattr(item, f"n_{name}")) for item in flips]
        n = sum(count for _, count in parts)
        found[name] = (sum(share * count for share, count in parts if share is not None) / n if n else None, n)
    return found


def most_unstable(flips: Sequence[ItemFlips], *, top: int) -> list[ItemFlips]:
    """Return the items most of whose pairs of decisions differ, at most so many, and none without a difference."""
    unstable = [item for item in flips if item.pairs]
    return sorted(unstable, key=lambda item: (-(item.pairs or 0.0), item.case_id, item.item_id))[:top]
