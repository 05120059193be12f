"""What a run's scores would be if its judge were wrong at given rates, where there are no human labels.

In: a run and pairs (fp, fn): fp the share of unmet items that the judge calls met, fn of met items that it calls unmet.
Out: for each pair the mean and the middle 95% of the scores that such errors leave possible.

For every panel and sign, from the share q of items that were judged met (Rogan, Gladen 1978):

    pi = (q - fp) / (1 - fp - fn)                         the true share, kept in 0..1 and flagged where it was not
    P(true | judged met) = (1 - fn) pi / q'
    P(true | judged unmet) = fn pi / (1 - q')             q' = (1 - fn) pi + fp (1 - pi), which is q unless pi was cut

Truths are drawn item by item and the cases scored again. The draws are common to all pairs: rates, not chance, make
their difference. An unresolved item is not drawn, it stays at its worst, so that at (0, 0) the headline comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bedside_bench import F1_WEIGHTED_RUBRIC, SEVERITY_WEIGHT
from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.agreement.scored import JudgedCase, PanelCases, panel_cases, sign_of
from eval.healthbench.metrics import clip
from eval.judging.graded import RunData
from eval.numbers.defaults import SEED
from eval.numbers.panels import worst_or_best

Floats: TypeAlias = NDArray[np.float64]
Rates: TypeAlias = tuple[float, float]

FORMAT: Final = "bedside-bench/sensitivity/1"
RATES: Final[tuple[Rates, ...]] = (
    (0.02, 0.02),
    (0.05, 0.05),
    (0.10, 0.10),
    (0.05, 0.0),
    (0.0, 0.05),
    (0.10, 0.0),
    (0.0, 0.10),
)
"""False positives and false negatives that are tried where nobody gives any."""
SAMPLES: Final = 1_000
BLOCK: Final = 1 << 18
"""Draws held at a time."""
DEFINITIONS: Final = {
    "fp": "the share of unmet items that the judge calls met",
    "fn": "the share of met items that the judge calls unmet",
    "assumption": "the same two rates for all items of a sign on a panel, and errors independent of each other; errors "
    "that fall together on some cases spread scores wider",
    "mean": "over draws of which decisions are wrong; range95: their 2.5th to 97.5th percentile; the choice of cases "
    "is not in it",
    "clipped": "signs whose share of items judged met lies below fp or above 1 - fn: the rate is then not possible for "
    "these decisions, and the true share is taken as 0 or 1; overall: the panels with such a sign",
    "unresolved": "items without a verdict stay at their worst",
}


@dataclass(frozen=True, slots=True)
class PanelItems:
    """A panel's items one after another, answer by answer; `starts` are the places where answers begin.

    `judged` are the verdicts with unresolved ones at their worst, `drawn` those that can be wrong. `weights` are a
    case's share of the panel mean, divided among its answers.
    """

    panel: str
    method: str
    n_cases: int
    n_expected: int
    points: Floats
    judged: NDArray[np.bool_]
    drawn: NDArray[np.bool_]
    starts: NDArray[np.int64]
    weights: Floats


def sensitivity(
    run: RunData, *, rates: Sequence[Rates] = RATES, samples: int = SAMPLES, seed: int = SEED
) -> dict[str, Any]:
    """Return the scores that a judge with given error rates leaves possible, as a JSON object.

    Raises:
        BadInput: a rate is out of range, fp + fn is 1 or more (the judge would say nothing, or the contrary), or a
            rubric does not fit its grading method.
    """
    _check(rates, samples, seed)
    panels = panel_cases(run)
    items = [panel_items(panel) for panel in panels if panel.cases]
    rng = np.random.default_rng(seed)
    drawn = {one.panel: _draws(one, rates, samples, rng) for one in items}
    by_panel = {one.panel: one for one in items}
    empty = [panel.panel for panel in panels if panel.panel not in by_panel]
    return {
        "format": FORMAT,
        "identity_sha256": run.identity_sha256,
        "dataset_sha256": run.dataset_sha256,
        "judge_model": run.judge_model,
        "samples": samples,
        "seed": seed,
        "judged": {
            "panels": {panel.panel: _judged(panel, by_panel.get(panel.panel)) for panel in panels},
            "overall": _judged_overall(items, empty),
        },
        "rates": [
            _pair_report(pair, panels, by_panel, {name: draws[place] for name, draws in drawn.items()})
            for place, pair in enumerate(rates)
        ],
        "definitions": DEFINITIONS,
    }


def _check(rates: Sequence[Rates], samples: int, seed: int) -> None:
    for fp, fn in rates:
        if not (0 <= fp < 1 and 0 <= fn < 1 and fp + fn < 1):
            raise BadInput(f"rates: expected false positives and negatives from 0, below 1 together, found {fp}, {fn}")
    if not rates or samples < 1 or seed < 0:
        raise BadInput(f"expected rates, samples >= 1 and seed >= 0; found {len(rates)} rates, {samples} and {seed}")


def panel_items(panel: PanelCases) -> PanelItems:
    """Return the items of a panel's cases, of which there is one at least."""
    answers = [answer for case in panel.cases for answer in case.answers]
    worth = [float(value or 0) for answer in answers for value in answer.points]
    verdicts = [met for answer in answers for met in answer.matched or ()]
    judged = [met for answer in answers for met in worst_or_best(answer, best=False)]
    sizes = [len(answer.points) for answer in answers]
    return PanelItems(
        panel=panel.panel,
        method=answers[0].grading_method,
        n_cases=len(panel.cases),
        n_expected=panel.n_expected,
        points=np.array(worth),
        judged=np.array(judged, dtype=np.bool_),
        drawn=np.array([met is not None for met in verdicts], dtype=np.bool_),
        starts=np.cumsum([0, *sizes[:-1]], dtype=np.int64),
        weights=np.array(_weights(panel.cases)),
    )


def _weights(cases: Sequence[JudgedCase]) -> list[float]:
    return [1 / (len(cases) * len(case.answers)) for case in cases for _ in case.answers]


def true_probabilities(judged: NDArray[np.bool_], *, fp: float, fn: float) -> tuple[Floats, bool]:
    """Return for each decision the probability that the item is met, and whether the true share was cut to 0..1.

    Args:
        judged: decisions on items that share the two rates.
    """
    q = float(judged.mean())
    share = (q - fp) / (1 - fp - fn)
    pi = clip(share)
    said_met = (1 - fn) * pi + fp * (1 - pi)
    if_met = (1 - fn) * pi / said_met if said_met > 0 else 0.0
    if_unmet = fn * pi / (1 - said_met) if said_met < 1 else 1.0
    # Rounding alone may leave 0..1 by a little: a judge without error, say, on items of which all are met.
    return np.where(judged, if_met, if_unmet), not -1e-12 <= share <= 1 + 1e-12


def _probabilities(items: PanelItems, rates: Rates) -> tuple[Floats, list[str]]:
    """Return each item's probability of being met, and the signs on which these rates are not possible."""
    fp, fn = rates
    found, cut = items.judged.astype(np.float64), []
    for sign in ("positive", "negative", "zero"):
        chosen = items.drawn & (np.sign(items.points) == {"positive": 1, "negative": -1, "zero": 0}[sign])
        if chosen.any():
            found[chosen], was_cut = true_probabilities(items.judged[chosen], fp=fp, fn=fn)
            cut += [sign] if was_cut else []
    return found, cut


def _draws(items: PanelItems, rates: Sequence[Rates], samples: int, rng: np.random.Generator) -> Floats:
    """Return the panel's mean, clipped, for each pair of rates (rows) and each draw (columns)."""
    chances = [_probabilities(items, pair)[0].astype(np.float32) for pair in rates]
    means = np.empty((len(rates), samples))
    rows = max(1, BLOCK // len(items.points))
    for start in range(0, samples, rows):
        stop = min(samples, start + rows)
        uniform = rng.random((stop - start, len(items.points)), dtype=np.float32)
        for row, chance in zip(means, chances, strict=True):
            row[start:stop] = panel_means(items, uniform < chance)
    return means


def panel_means(items: PanelItems, truths: NDArray[np.bool_]) -> Floats:
    """Return the panel's mean for each row of truths, clipped: the formulas of `scoring` and `healthbench.scores`."""
    if items.method == F1_WEIGHTED_RUBRIC:
        scores = _f1(items, truths)
    else:
        available = np.add.reduceat(np.maximum(items.points, 0), items.starts)
        # A points rubric without positive items scores 0; a HealthBench example without them is not among the cases.
        scores = np.add.reduceat(truths * items.points, items.starts, axis=1) / np.where(
            available > 0, available, np.inf
        )
        if items.method != HEALTHBENCH:
            scores = np.clip(scores, 0.0, 1.0)
    return np.clip(scores @ items.weights, 0.0, 1.0)


def _f1(items: PanelItems, truths: NDArray[np.bool_]) -> Floats:
    """Return 2PR / (P + R) as twice the matched critical weight over critical plus all matched weight."""
    weight = np.array([float(SEVERITY_WEIGHT[int(value)]) for value in items.points])
    critical = np.where(items.points > 0, weight, 0.0)
    hit = np.add.reduceat(truths * critical, items.starts, axis=1)
    both = np.add.reduceat(critical, items.starts) + np.add.reduceat(truths * weight, items.starts, axis=1)
    return np.asarray(2 * hit / np.where(both > 0, both, 1.0))


def _judged_mean(items: PanelItems) -> float:
    return float(panel_means(items, items.judged[np.newaxis, :])[0])


def _judged(panel: PanelCases, items: PanelItems | None) -> dict[str, Any]:
    counts = {"n_expected": panel.n_expected, "n": len(panel.cases)}
    if items is None:
        return {**counts, "n_items": 0, "n_unresolved": 0, "judged_met": {}, "mean": None, "reason": "no graded case"}
    return {
        **counts,
        "n_items": len(items.points),
        "n_unresolved": int((~items.drawn).sum()),
        "judged_met": _judged_met(items),
        "mean": _judged_mean(items),
        "reason": None,
    }


def _judged_met(items: PanelItems) -> dict[str, dict[str, Any]]:
    """Return by sign the share of decided items that were judged met: the q of the formulas."""
    signs = np.array([sign_of(value) for value in items.points])
    found = {}
    for sign in ("positive", "negative", "zero"):
        chosen = items.judged[items.drawn & (signs == sign)]
        if len(chosen):
            found[sign] = {"value": float(chosen.mean()), "n": len(chosen)}
    return found


def _judged_overall(items: Sequence[PanelItems], empty: Sequence[str]) -> dict[str, Any]:
    reason = _reason(empty, len(items))
    mean = None if reason else float(np.mean([_judged_mean(one) for one in items]))
    return {"n_panels": len(items), "mean": mean, "reason": reason}


def _reason(empty: Sequence[str], n_panels: int) -> str | None:
    if empty:
        return f"no graded case in: {', '.join(empty)}"
    return None if n_panels else "no case is selected"


def _pair_report(
    rates: Rates, panels: Sequence[PanelCases], items: Mapping[str, PanelItems], drawn: Mapping[str, Floats]
) -> dict[str, Any]:
    names = [panel.panel for panel in panels]
    found = {name: _panel_report(items.get(name), drawn.get(name), rates) for name in names}
    clipped = [name for name in names if found[name]["clipped"]]
    empty = [name for name in names if name not in items]
    overall = {**_overall_report(list(drawn.values()), empty), "clipped": clipped}
    return {"fp": rates[0], "fn": rates[1], "panels": found, "overall": overall}


def _panel_report(items: PanelItems | None, drawn: Floats | None, rates: Rates) -> dict[str, Any]:
    if items is None or drawn is None:
        return {"n": 0, "mean": None, "range95": None, "clipped": [], "reason": "no graded case"}
    clipped = _probabilities(items, rates)[1]
    return {"n": items.n_cases, **_spread(drawn), "clipped": clipped, "reason": None}


def _spread(draws: Floats) -> dict[str, Any]:
    low, high = np.percentile(draws, [2.5, 97.5])
    return {"mean": float(draws.mean()), "range95": [float(low), float(high)]}


def _overall_report(draws: Sequence[Floats], empty: Sequence[str]) -> dict[str, Any]:
    reason = _reason(empty, len(draws))
    spread = {"mean": None, "range95": None} if reason else _spread(np.mean(draws, axis=0))
    return {"n_panels": len(draws), **spread, "reason": reason}
