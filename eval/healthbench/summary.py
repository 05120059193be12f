"""What the summary of a HealthBench run has beside the keys of every summary: its member `healthbench`.

In: a run's graded examples. Out: the overall metric, metrics by example tag and by rubric tag, the completions' groups,
repeats, and on request the length-adjusted score, as a JSON object. The clipped mean never stands without its raw one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from eval.healthbench.examples import graded_examples
from eval.healthbench.metrics import Metric, metric
from eval.healthbench.repeats import run_spread, worst_at_k
from eval.healthbench.scores import adjusted_score, scores
from eval.judging.graded import GradedCase, RunData
from eval.numbers.panels import ScoredCase, mean_of

DEFINITIONS: Final = {
    "value, raw": "mean over examples, clipped to 0..1 after averaging, and before; an example is never clipped",
    "bootstrap_std, ci95": "over resamples of examples: deviation and 2.5th to 97.5th percentile of the clipped means",
    "example_tags": "the example's score under each of its tags",
    "rubric_tags": "the same formula over the items that carry the tag; left out where those earn nothing",
}
LENGTH_DEFINITION: Final = "score - penalty x (length - center) / 500, length in code points; clipped after averaging"
WORST_DEFINITION: Final = "mean over all sets of k answers of the lowest score in the set, then over examples"


class LengthRule(NamedTuple):
    """The length adjustment that a user asks for: the length that changes nothing, and what 500 code points cost."""

    center: float
    penalty: float


def healthbench_member(
    run: RunData, cases: Sequence[ScoredCase], *, samples: int, seed: int, length: LengthRule | None = None
) -> dict[str, Any]:
    """Return the member `healthbench` of a run's summary.

    Args:
        cases: the run's examples, several answers to one merged (`nested`), in dataset order.
        length: report the length-adjusted score too.
    """
    complete = {case.case.case_id for case in cases if case.value is not None}
    answers = [case for case in run.cases if case.case_id in complete]
    found = scores(graded_examples(answers), samples=samples, seed=seed)
    rows = _rows(answers, found.by_example)
    member: dict[str, Any] = {
        "overall": metric_json(found.overall),
        "example_tags": {tag: metric_json(of_tag) for tag, of_tag in found.example_tags.items()},
        "rubric_tags": {tag: metric_json(of_tag) for tag, of_tag in found.rubric_tags.items()},
        "definitions": dict(DEFINITIONS),
    }
    # The group is that of whoever wrote the completion: it says nothing of a model's answer to the same conversation.
    chosen = (run.identity or {}).get("selection", {}).get("completions")
    if chosen and (groups := _by_group(cases, samples, seed)):
        member["groups"] = groups
    if (n_answers := len({case.answer_repeat for case in run.cases})) > 1:
        member["repeats"] = _repeats(list(rows.values()), n_answers, samples, seed)
    if length is not None:
        member["length_adjusted"] = _adjusted(answers, found.by_example, length, samples, seed)
    return member


def metric_json(found: Metric) -> dict[str, Any]:
    """Return a metric as the summary holds it."""
    interval = None if found.ci_low is None else [found.ci_low, found.ci_high]
    return {
        "value": found.value,
        "raw": found.raw,
        "n": found.n,
        "bootstrap_std": found.bootstrap_std,
        "ci95": interval,
    }


def _rows(answers: Sequence[GradedCase], values: Sequence[float | None]) -> dict[str, list[float]]:
    """Return the scores of each example's answers, in the order of the answers."""
    rows: dict[str, list[float]] = {}
    for case, value in zip(answers, values, strict=True):
        if value is not None:
            rows.setdefault(case.case_id, []).append(value)
    return rows


def _by_group(cases: Sequence[ScoredCase], samples: int, seed: int) -> dict[str, dict[str, Any]]:
    """Return the metric of each physicians' group among the graded examples."""
    groups: dict[str, list[float]] = {}
    for case in cases:
        if case.value is not None and case.case.group is not None:
            groups.setdefault(case.case.group, []).append(case.value)
    return {name: metric_json(metric(groups[name], samples=samples, seed=seed)) for name in sorted(groups)}


def _repeats(rows: Sequence[Sequence[float]], n_answers: int, samples: int, seed: int) -> dict[str, Any]:
    """Return the spread between runs and the worst of k, over the graded examples that have all answers.

    Another evaluator's file may have lost an answer to an example.
    """
    whole = [row for row in rows if len(row) == n_answers]
    spread, worst = run_spread(whole), worst_at_k(whole, samples=samples, seed=seed)
    return {
        "n_examples": spread.n,
        "n_left_out": len(rows) - spread.n,
        "runs": [{"value": value, "raw": raw} for value, raw in zip(spread.scores, spread.raw, strict=True)],
        "mean": spread.mean,
        "low": spread.low,
        "high": spread.high,
        "sd": spread.sd,
        "worst_at_k": {str(k): metric_json(found) for k, found in worst.items()},
        "definition": WORST_DEFINITION,
    }


def _adjusted(
    answers: Sequence[GradedCase], values: Sequence[float | None], rule: LengthRule, samples: int, seed: int
) -> dict[str, Any]:
    """Return the length-adjusted score beside its rule; with several answers an example's mean is what is resampled."""
    settings: Mapping[str, Any] = {"center": rule.center, "penalty": rule.penalty}
    lengths = [case.n_chars for case in answers]
    by_answer = [
        None if value is None or length is None else adjusted_score(value, length, **settings)
        for value, length in zip(values, lengths, strict=True)
    ]
    by_example = [mean for row in _rows(answers, by_answer).values() if (mean := mean_of(row)) is not None]
    return {**settings, **metric_json(metric(by_example, samples=samples, seed=seed)), "definition": LENGTH_DEFINITION}
