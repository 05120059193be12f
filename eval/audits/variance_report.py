"""The variance budget of a run as a JSON object.

In: a run. Out: the object that `--json` prints, every number with its n. The numbers are `variance`'s and
`components`', the text for people `variance_text`'s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from eval.audits.components import Component, Square, mean_variance
from eval.audits.variance import (
    Budget,
    ItemFlips,
    PanelCells,
    Step,
    budget,
    item_flips,
    most_unstable,
    panel_cells,
    pooled_flips,
)
from eval.judging.graded import RunData

FORMAT: Final = "bedside-bench/variance/1"
TOP: Final = 10
_SENDS: Final = "model"  # the one source of answers that costs calls

DEFINITIONS: Final = {
    "score": "the full score of one answer by one judge's decisions in one repeat; not clipped for HealthBench",
    "model": "panel (fixed) + case + answer(case) + judge + panel x judge + case x judge + answer(case) x judge "
    "+ repeat; judges are taken as a random sample of judges",
    "estimate": "from expected mean squares of the balanced design (Searle, Casella, McCulloch 1992), raw: it may be "
    "negative, and counts 0 in a variance",
    "ci95": "modified large-sample interval (Burdick and Graybill 1992) without cross terms, cut at 0; it takes "
    "effects as normal, which scores are only roughly; wide with few judges, as it should be",
    "null": "a dimension of one level identifies fewer components: `held_by` names the one it stands in",
    "variance": "of the mean over panels (of one panel: over its cases); overall: sums of squares pooled within "
    "panels, cases per panel as their harmonic mean; a judge's own level is shared by all panels",
    "left_out_by_bootstrap": "share of the variance that an interval from resampling cases leaves out: how judges "
    "differ on all cases alike; answers and repeats are in it, as each case brings its own",
    "next": "one more of a kind, all else equal; at_best where the design cannot tell: all of what stands together "
    "taken as what this step averages out",
    "best": "the step with the largest reduction per 100 calls; best_without_cases: if no further cases are at hand",
    "calls": "first asking of every complete case: answer calls (0 where answers were given or made by a policy) and "
    "judge calls (item grouping: one an item)",
    "flips": "repeats: share of (answer, item, judge) whose repeats do not all agree; judges: share of (answer, item) "
    "whose judges' votes do not; pairs: share of pairs of decisions on one answer's item that differ",
    "not in it": "a jury's verdict, which is steadier than its single judges; drift of a provider; errors that all "
    "judges share",
}


def variance_report(run: RunData, *, added: int = 1, software: Mapping[str, str]) -> dict[str, Any]:
    """Return a run's variance budget with what it was computed from.

    Args:
        added: how many more of a kind each step takes, >= 1.

    Raises:
        BadInput: the run holds no judges' decisions.
    """
    identity = run.identity or {}
    grouping = identity.get("grouping", "case")
    settings: dict[str, Any] = {
        "grouping": grouping,
        "answer_calls": int(identity.get("answer", {}).get("source") == _SENDS),
        "added": added,
    }
    panels, flips = panel_cells(run), item_flips(run)
    empty = [panel.panel for panel in panels if panel.cells is None]
    reason = f"no complete case with a score in: {', '.join(empty)}" if empty else None
    overall = None if empty else budget(panels, **settings)
    return {
        "format": FORMAT,
        "protocol_version": run.protocol_version,
        "suite": run.suite,
        "config": run.config,
        "answer_model": run.answer_model,
        "judges": [judge["model"] for judge in identity.get("judges", ())] or [run.judge_model],
        "grouping": grouping,
        "identity_sha256": run.identity_sha256,
        "dataset_sha256": run.dataset_sha256,
        "added": added,
        "n_cases": sum(panel.n_cases for panel in panels),
        "n_incomplete": sum(panel.incomplete for panel in panels),
        "n_unscored": sum(panel.unscored for panel in panels),
        "overall": {**_budget(overall, added, reason), "flips": _pooled(flips)},
        "panels": {
            panel.panel: {**_panel(panel, settings), "flips": _pooled([f for f in flips if f.panel == panel.panel])}
            for panel in panels
        },
        "unstable_items": [_item(item) for item in most_unstable(flips, top=TOP)],
        "definitions": DEFINITIONS,
        "software": dict(software),
    }


def _panel(panel: PanelCells, settings: Mapping[str, Any]) -> dict[str, Any]:
    found = None if panel.cells is None else budget([panel], **settings)
    dropped = {"n_cases": panel.n_cases, "n_incomplete": panel.incomplete, "n_unscored": panel.unscored}
    return {**dropped, **_budget(found, settings["added"], "no complete case with a score")}


_KEYS: Final = (
    "n",
    "design",
    "mean",
    "variance",
    "standard_error",
    "reason",
    "components",
    "mean_squares",
    "left_out_by_bootstrap",
    "left_out_reason",
    "calls",
    "next",
    "best",
    "best_without_cases",
    "sentence",
)


def _budget(found: Budget | None, added: int, reason: str | None) -> dict[str, Any]:
    if found is None:
        return {**dict.fromkeys(_KEYS), "n": 0, "reason": reason}
    design = found.design
    return {
        "n": sum(design.cases),
        "design": {
            "panels": len(design.cases),
            "cases_a_panel": design.mean_cases,
            "answers": design.answers,
            "judges": design.judges,
            "repeats": design.repeats,
        },
        "mean": found.mean,
        "variance": found.variance,
        "standard_error": _root(found.variance),
        "reason": "one case a panel: how cases differ is not known" if found.variance is None else None,
        "components": {name: _component(name, part, found) for name, part in found.components.items()},
        "mean_squares": {name: _square(square) for name, square in found.squares.items() if square.df},
        "left_out_by_bootstrap": found.left_out,
        "left_out_reason": _left_out_reason(found),
        "calls": found.calls,
        "next": {step.dimension: _step(step) for step in found.steps},
        "best": _name(found.best()),
        "best_without_cases": _name(found.best(with_cases=False)),
        "sentence": sentence(found, added),
    }


def _name(step: Step | None) -> str | None:
    return None if step is None else step.dimension


def _left_out_reason(found: Budget) -> str | None:
    if found.left_out is not None:
        return None
    return "one judge: how judges differ is not known" if found.design.judges == 1 else "no variance"


def _root(value: float | None) -> float | None:
    return None if value is None else math.sqrt(value)


def _component(name: str, part: Component, found: Budget) -> dict[str, Any]:
    if part.estimate is None:
        where = f"stands in {part.held_by}" if part.held_by else "stands in the mean itself"
        reason = f"one level of a dimension: {where}"
        return {"estimate": None, "ci95": None, "share": None, "held_by": part.held_by, "reason": reason}
    share = mean_variance({name: part}, found.design) / found.variance if found.variance else None
    return {
        "estimate": part.estimate,
        "ci95": [part.low, part.high],
        "share": share,
        "holds": list(part.holds),
        "reason": None if part.estimate >= 0 else "negative estimate: counted as 0",
    }


def _square(square: Square) -> dict[str, Any]:
    return {"ss": square.ss, "df": square.df, "ms": square.ms}


def _step(step: Step) -> dict[str, Any]:
    return {
        "variance": step.variance,
        "standard_error": _root(step.variance),
        "calls": step.calls,
        "reduction_per_100_calls": step.gain,
        "at_best": step.at_best,
        "reason": step.reason,
    }


def _pooled(flips: Sequence[ItemFlips]) -> dict[str, Any]:
    reasons = {"repeats": "one repeat", "judges": "one judge with a vote on an item"}
    return {
        name: {"value": value, "n": n, "reason": None if n else reasons[name]}
        for name, (value, n) in pooled_flips(flips).items()
    }


def _item(item: ItemFlips) -> dict[str, Any]:
    return {
        "case_id": item.case_id,
        "item_id": item.item_id,
        "panel": item.panel,
        "pairs": item.pairs,
        "n_pairs": item.n_pairs,
        "repeats": item.repeats,
        "n_repeats": item.n_repeats,
        "judges": item.judges,
        "n_judges": item.n_judges,
    }


_MORE: Final = {"case": "cases a panel", "answer": "answers a case", "judge": "judges", "repeat": "repeats a judge"}
_ONE: Final = {"case": "case a panel", "answer": "answer a case", "judge": "judge", "repeat": "repeat a judge"}


def sentence(found: Budget, added: int) -> str:
    """Return in a sentence which step buys most for its calls, and what the design leaves unknown."""
    unknown = [step.dimension for step in found.steps if step.variance is None]
    if found.variance is None:
        return "With one case a panel nothing can be said of the mean's variance: run more cases."
    best, fixed = found.best(), found.best(with_cases=False)
    if best is None:
        said = "No step that this design can tell of makes the mean more precise."
    else:
        said = f"For its calls, {_bought(best, found, added)}."
    if fixed is not None and fixed is not best:
        said += f" With these cases only, {_bought(fixed, found, added)}."
    if unknown:
        said += f" Not compared, as the run has one: {', '.join(unknown)}."
    if "judge" not in unknown:
        said += " Judges count as a random sample of judges: of these very judges alone the error is smaller."
    return said


def _bought(step: Step, found: Budget, added: int) -> str:
    what = f"{added} more {_ONE[step.dimension] if added == 1 else _MORE[step.dimension]}"
    now, then = math.sqrt(found.variance or 0.0), math.sqrt(step.variance or 0.0)
    return f"{what} buys most: {step.calls:.0f} calls take the standard error from {now:.5f} to {then:.5f}"
