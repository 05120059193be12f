"""A run's scores corrected for the judge's error by people's labels on some of its cases.

In: a run and raters' labels. Out: for every panel, and overall, an estimate of what people would have scored, with an
interval that holds the choice of cases and the judge's error; and how often the jury is wrong, item by item. The
estimator and its variance are `ppi`'s. Both scores of a case come from one formula, only the decisions differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from eval.agreement.judge_error import judge_error
from eval.agreement.labels import ItemKey, consensus, tied
from eval.agreement.ppi import LEAST, TUNE_FROM, Estimate, estimate, mean_of_estimates
from eval.agreement.scored import JudgedCase, PanelCases, panel_cases
from eval.healthbench.metrics import clip
from eval.judging.graded import GradedCase, RunData
from eval.numbers.defaults import ALPHA
from eval.numbers.panels import score_decisions

FORMAT: Final = "bedside-bench/corrected/1"
DEFINITIONS: Final = {
    "value": "lambda * mean(judge, all graded cases) + mean(human - lambda * judge, labelled cases), clipped to 0..1; "
    "raw: before clipping; plain: the same with lambda 1",
    "lambda": f"fitted from {TUNE_FROM} labelled cases of a panel on, else 1",
    "interval": "Student's t; holds the choice of cases and the judge's error, for labelled cases that were drawn at "
    "random; se_judge_error: the part that labelling every case would take away",
    "degenerate": "the labelled cases show no spread of judge error: the interval holds the choice of cases alone, "
    "which says little of a rare error",
    "judge": "the headline score: an unresolved item at its worst; of several answers to a case their mean",
    "human": "the score of a case by people's labels: of several raters the strict majority on each item; a case with "
    "an item unlabelled or tied is not scored (dropped: partly_labelled)",
    "overall": "mean of the panels' estimates; null while a panel has none",
    "judge_error": "verdicts against labels, item by item; Wilson's interval, as if items were independent; "
    "unresolved items counted apart",
}


@dataclass(frozen=True, slots=True)
class _Panel:
    """A panel's judge scores, the places among them that people scored too, and those scores."""

    cases: PanelCases
    labelled: tuple[int, ...]
    human: tuple[float, ...]

    @property
    def judge(self) -> list[float]:
        return [case.score for case in self.cases.cases]

    def estimate(self, *, lambda_: float | None = None) -> Estimate | None:
        """Return the panel's estimate, None with fewer than two labelled cases."""
        if len(self.human) < LEAST:
            return None
        return estimate(self.judge, self.labelled, self.human, lambda_=lambda_)


def corrected_scores(run: RunData, labels: Mapping[str, Mapping[ItemKey, bool]]) -> dict[str, Any]:
    """Return a run's corrected scores as a JSON object.

    Args:
        labels: by rater, on cases that were drawn at random from each panel.

    Raises:
        BadInput: a rubric does not fit its grading method.
    """
    agreed = consensus(labels)
    panels = [_panel(cases, agreed) for cases in panel_cases(run)]
    return {
        "format": FORMAT,
        "alpha": ALPHA,
        "identity_sha256": run.identity_sha256,
        "dataset_sha256": run.dataset_sha256,
        "judge_model": run.judge_model,
        "raters": {rater: len(of_rater) for rater, of_rater in labels.items()},
        "n_items_labelled": len(agreed),
        "n_items_tied": len(tied(labels)),
        "panels": {panel.cases.panel: _panel_report(panel) for panel in panels},
        "overall": _overall(panels),
        "dropped": _dropped(run, panels, labels),
        "judge_error": judge_error(run, agreed),
        "definitions": DEFINITIONS,
    }


def _panel(cases: PanelCases, agreed: Mapping[ItemKey, bool]) -> _Panel:
    scored = [(place, human_score(case, agreed)) for place, case in enumerate(cases.cases)]
    known = [(place, score) for place, score in scored if score is not None]
    return _Panel(cases, tuple(place for place, _ in known), tuple(score for _, score in known))


def human_score(case: JudgedCase, agreed: Mapping[ItemKey, bool]) -> float | None:
    """Return a case's score by people's labels, the mean over its answers; None unless every item has one."""
    scores = []
    for answer in case.answers:
        labels = [agreed.get(key) for key in _keys(answer)]
        decided = [label for label in labels if label is not None]
        score = score_decisions(answer, decided) if len(decided) == len(labels) else None
        if score is None:
            return None
        scores.append(score)
    return fmean(scores)


def _keys(answer: GradedCase) -> list[ItemKey]:
    return [(answer.case_id, answer.answer_repeat, item_id) for item_id in answer.item_ids]


def _panel_report(panel: _Panel) -> dict[str, Any]:
    judge, own = panel.judge, [panel.judge[place] for place in panel.labelled]
    reason = None
    if len(panel.human) < LEAST:
        reason = f"fewer than {LEAST} labelled cases" if judge else "no graded case"
    return {
        "n_expected": panel.cases.n_expected,
        "n": len(judge),
        "n_labelled": len(panel.human),
        "judge": clip(fmean(judge)) if judge else None,
        "judge_labelled": clip(fmean(own)) if own else None,
        "human_labelled": clip(fmean(panel.human)) if own else None,
        **_estimate_report(panel.estimate(), panel.estimate(lambda_=1.0)),
        "reason": reason,
    }


def _estimate_report(found: Estimate | None, plain: Estimate | None) -> dict[str, Any]:
    if found is None or plain is None:
        nothing = ("value", "raw", "ci95", "degenerate", "se", "se_judge_error", "lambda", "tuned", "plain")
        return dict.fromkeys(nothing)
    return {
        "value": clip(found.value),
        "raw": found.value,
        "ci95": _interval(found),
        "degenerate": found.degenerate,
        "se": math.sqrt(found.variance),
        "se_judge_error": math.sqrt(found.judge_variance),
        "lambda": found.lambda_,
        "tuned": found.tuned,
        "plain": {"value": clip(plain.value), "ci95": _interval(plain)},
    }


def _interval(found: Estimate) -> list[float]:
    return [clip(end) for end in found.interval(ALPHA)]


def _overall(panels: list[_Panel]) -> dict[str, Any]:
    found = [panel.estimate() for panel in panels]
    lacking = [panel.cases.panel for panel, one in zip(panels, found, strict=True) if one is None]
    judge = [fmean(panel.judge) for panel in panels if panel.judge]
    counts = {
        "n_panels": len(panels),
        "n": sum(len(panel.judge) for panel in panels),
        "n_labelled": sum(len(panel.human) for panel in panels),
        "judge": clip(fmean(judge)) if judge and len(judge) == len(panels) else None,
    }
    if lacking or not panels:
        reason = f"fewer than {LEAST} labelled cases in: {', '.join(lacking)}" if lacking else "no case is selected"
        return {**counts, **_estimate_report(None, None), "reason": reason}
    plain = [panel.estimate(lambda_=1.0) for panel in panels]
    mean, plain_mean = (mean_of_estimates([one for one in ones if one is not None]) for ones in (found, plain))
    return {**counts, **_estimate_report(mean, plain_mean), "reason": None}


def _dropped(run: RunData, panels: list[_Panel], labels: Mapping[str, Mapping[ItemKey, bool]]) -> dict[str, int]:
    """Return how many cases with a label have no human score, and how many of these the judge did not grade."""
    touched = {key[0] for of_rater in labels.values() for key in of_rater}
    judged = {case.case_id for panel in panels for case in panel.cases.cases}
    scored = {panel.cases.cases[place].case_id for panel in panels for place in panel.labelled}
    selected = {case.case_id for case in run.cases}
    return {
        "partly_labelled": len((touched & judged) - scored),
        "not_graded": len((touched & selected) - judged),
    }
