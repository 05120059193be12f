"""A run's scores corrected for the judge's error by people's labels on some of its cases.

In: a run and raters' labels. Out: for every panel, and overall, an estimate of what people would have scored, with an
interval that holds the choice of cases and the judge's error; and how often the jury is wrong, item by item. The
estimator and its variance are `ppi`'s. Both scores of a case come from one formula, only the decisions differ.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from builder.errors import BadInput
from eval.agreement.judge_error import judge_error
from eval.agreement.labels import ItemKey, consensus, tied
from eval.agreement.ppi import LEAST, TUNE_FROM, Estimate, estimate, mean_of_estimates
from eval.agreement.scored import JudgedCase, PanelCases, panel_cases, score_with
from eval.calls.reply import one_line
from eval.healthbench.metrics import clip
from eval.judging.graded import GradedCase, RunData
from eval.numbers.defaults import ALPHA
from eval.showing.cells import interval_cell, number

FORMAT: Final = "bedside-bench/corrected/1"
WIDTH: Final = 80
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
class _Setting:
    """The level of every interval, and the name of the member that holds one."""

    alpha: float
    interval: str


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


def corrected_scores(
    run: RunData, labels: Mapping[str, Mapping[ItemKey, bool]], *, alpha: float = ALPHA
) -> dict[str, Any]:
    """Return a run's corrected scores as a JSON object.

    Args:
        labels: by rater, on cases that were drawn at random from each panel.
        alpha: intervals are of level 1 - alpha; they stand in `ci95` for 0.05.

    Raises:
        BadInput: alpha is not between 0 and 1, or a rubric does not fit its grading method.
    """
    if not 0 < alpha < 1:
        raise BadInput(f"alpha: expected a number between 0 and 1, found {alpha}")
    setting = _Setting(alpha, f"ci{round(100 * (1 - alpha), 6):g}")
    agreed = consensus(labels)
    panels = [_panel(cases, agreed) for cases in panel_cases(run)]
    return {
        "format": FORMAT,
        "alpha": alpha,
        "identity_sha256": run.identity_sha256,
        "dataset_sha256": run.dataset_sha256,
        "judge_model": run.judge_model,
        "raters": {rater: len(of_rater) for rater, of_rater in labels.items()},
        "n_items_labelled": len(agreed),
        "n_items_tied": len(tied(labels)),
        "panels": {panel.cases.panel: _panel_report(panel, setting) for panel in panels},
        "overall": _overall(panels, setting),
        "dropped": _dropped(run, panels, labels),
        "judge_error": judge_error(run, agreed, alpha=alpha, interval=setting.interval),
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
        score = score_with(answer, decided) if len(decided) == len(labels) else None
        if score is None:
            return None
        scores.append(score)
    return fmean(scores)


def _keys(answer: GradedCase) -> list[ItemKey]:
    return [(answer.case_id, answer.answer_repeat, item_id) for item_id in answer.item_ids]


def _panel_report(panel: _Panel, setting: _Setting) -> dict[str, Any]:
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
        **_estimate_report(panel.estimate(), panel.estimate(lambda_=1.0), setting),
        "reason": reason,
    }


def _estimate_report(found: Estimate | None, plain: Estimate | None, setting: _Setting) -> dict[str, Any]:
    if found is None or plain is None:
        nothing = ("value", "raw", setting.interval, "degenerate", "se", "se_judge_error", "lambda", "tuned", "plain")
        return dict.fromkeys(nothing)
    return {
        "value": clip(found.value),
        "raw": found.value,
        setting.interval: _interval(found, setting),
        "degenerate": found.degenerate,
        "se": math.sqrt(found.variance),
        "se_judge_error": math.sqrt(found.judge_variance),
        "lambda": found.lambda_,
        "tuned": found.tuned,
        "plain": {"value": clip(plain.value), setting.interval: _interval(plain, setting)},
    }


def _interval(found: Estimate, setting: _Setting) -> list[float]:
    return [clip(end) for end in found.interval(setting.alpha)]


def _overall(panels: list[_Panel], setting: _Setting) -> dict[str, Any]:
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
        return {**counts, **_estimate_report(None, None, setting), "reason": reason}
    plain = [panel.estimate(lambda_=1.0) for panel in panels]
    mean, plain_mean = (mean_of_estimates([one for one in ones if one is not None]) for ones in (found, plain))
    return {**counts, **_estimate_report(mean, plain_mean, setting), "reason": None}


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


def correction_text(report: Mapping[str, Any]) -> list[str]:
    """Return a report of corrected scores as lines of at most 80 columns."""
    confidence = f"{round(100 * (1 - report['alpha']), 6):g}"
    name = f"ci{confidence}"
    head = f"{'':<26}{'n':>5} {'labels':>6}  {'judge':>5}  {'corrected':>9}  {confidence}% CI"
    rows = [_row(panel, of_panel, name) for panel, of_panel in report["panels"].items()]
    lines = ["scores corrected by human labels", head, "-" * len(head), *rows, "-" * len(head)]
    lines.append(_row("overall", report["overall"], name))
    for note in _notes(report, name):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.rstrip() for line in lines]


def _row(panel: str, found: Mapping[str, Any], name: str) -> str:
    mark = "*" if found["degenerate"] else ""
    cells = f"{found['n']:>5} {found['n_labelled']:>6}  {number(found['judge']):>5}  {number(found['value']):>9}"
    return f"{one_line(panel)[:25]:<26}{cells}  {interval_cell(found[name])}{mark}"


def _notes(report: Mapping[str, Any], name: str) -> Iterator[str]:
    for panel, found in {**report["panels"], "overall": report["overall"]}.items():
        if found["reason"]:
            yield f"{one_line(panel)}: not corrected: {found['reason']}"
    if any(panel["degenerate"] for panel in report["panels"].values()):
        yield "* the labels show no spread of judge error: the choice of cases alone"
    yield "the interval holds the choice of cases and the judge's error, for labelled cases drawn at random"
    raters = ", ".join(f"{one_line(rater)} {n}" for rater, n in report["raters"].items())
    yield f"labels: {raters}; items agreed on {report['n_items_labelled']}, tied {report['n_items_tied']}"
    dropped = report["dropped"]
    if any(dropped.values()):
        yield f"cases left out: partly labelled {dropped['partly_labelled']}, not graded {dropped['not_graded']}"
    for sign, error in report["judge_error"].items():
        rates = "; ".join(_rate(measure, error[measure], name) for measure in ("sensitivity", "specificity"))
        yield f"jury on {sign} items: {rates}; unresolved {error['n_unresolved']}"


def _rate(measure: str, rate: Mapping[str, Any], name: str) -> str:
    interval = f" ({interval_cell(rate[name])})" if rate[name] else ""
    return f"{measure} {number(rate['value'])}{interval} of {rate['n']}"
