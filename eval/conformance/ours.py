"""The scorer that the vectors hold against first: this package's own numbers, by the functions that every run uses.

In: a vector as a dict. Out: a dict with all that its subject can be asked for. Nothing is computed here; what a vector
gives is put into the shape that the scoring functions read, and their results into JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bedside_bench import F1_WEIGHTED_RUBRIC
from builder.healthbench.names import CORE
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.conformance.asking import UNSUPPORTED
from eval.healthbench.examples import graded_examples
from eval.healthbench.meta import MetaEvaluation, MetaExample, meta_evaluation, percentile
from eval.healthbench.metrics import Metric, metric
from eval.healthbench.pairs import ByClass
from eval.healthbench.repeats import nested_metric, run_spread, worst_at_k
from eval.healthbench.scores import adjusted_score, example_bounds, example_score, length_adjusted, scores
from eval.healthbench.wins import Answer, win_rates
from eval.judging.graded import GradedCase, RunData
from eval.numbers.bootstrap import Interval, overall_interval, panel_interval, upstream_intervals
from eval.numbers.defaults import SPEC
from eval.numbers.panels import score_panels
from eval.numbers.scoring import score_bounds, score_case

Json = dict[str, Any]


def score_vector(vector: Json) -> Json:
    """Return this package's numbers for a vector."""
    subject = SUBJECTS.get(vector["subject"])
    return {UNSUPPORTED: f"no subject {vector['subject']!r}"} if subject is None else subject(vector)


def _case(vector: Json) -> Json:
    case = vector["input"]
    if None in case["verdicts"]:
        return dict.fromkeys(("score", "raw_score", "recall", "precision", "severe_rate"))
    score = score_case(case["grading_method"], case["points"], case["verdicts"], dialect=vector["variant"])
    plan = case["grading_method"] == F1_WEIGHTED_RUBRIC
    return {
        "score": score.score,
        "raw_score": score.raw_score,
        **({"recall": score.recall, "precision": score.precision, "severe_rate": score.severe_rate} if plan else {}),
        "severe_matched": score.severe_matched,
        "minus3_matched": score.minus3_matched,
    }


def _case_bounds(vector: Json) -> Json:
    case = vector["input"]
    bounds = score_bounds(case["grading_method"], case["points"], case["verdicts"], dialect=vector["variant"])
    return {"worst": bounds.worst, "best": bounds.best}


def _panels(vector: Json) -> Json:
    cases = [
        _graded(f"{panel['panel']}/{index}", panel["panel"], case, grading_method=case["grading_method"])
        for panel in vector["input"]["panels"]
        for index, case in enumerate(panel["cases"])
    ]
    in_order = tuple(index for index, case in enumerate(cases) if case.matched is not None)
    panels, overall = score_panels(RunData("", tuple(cases), in_order), dialect=vector["variant"], samples=1)
    shown = [panel for panel in panels if panel.graded or vector["variant"] == SPEC]
    return {
        "panels": {panel.panel: {"mean": panel.mean, "n": len(panel.graded)} for panel in shown},
        "overall": overall.mean,
        "n_ungraded": len(cases) - sum(len(panel.graded) for panel in panels),
        "overall_worst": overall.bounds.worst,
        "overall_best": overall.bounds.best,
    }


def _graded(case_id: str, panel: str, case: Json, *, grading_method: str) -> GradedCase:
    """Return a vector's case as every result file comes down to it; a missing verdict makes it a failed one."""
    verdicts = tuple(case["verdicts"])
    missing = None in verdicts
    return GradedCase(
        case_id=case_id,
        benchmark=panel,
        grading_method=grading_method,
        answer_repeat=0,
        item_ids=tuple(f"item_{index}" for index in range(len(verdicts))),
        points=tuple(case["points"]),
        matched=None if missing else verdicts,
        state="failed" if missing else "graded",
        decided=verdicts if missing else None,
        tags=tuple(case.get("example_tags", ())),
        item_tags=tuple(map(tuple, case.get("item_tags", ()))),
    )


def _intervals(vector: Json) -> Json:
    given = vector["input"]
    by_panel: dict[str, list[float]] = {panel["panel"]: panel["scores"] for panel in given["panels"]}
    sampling = {"samples": given["samples"], "seed": given["seed"]}
    if vector["variant"] != SPEC:
        found = upstream_intervals(by_panel, **sampling)
        return {"panels": {name: _ends(ends) for name, ends in found.panels.items()}, "overall": _ends(found.overall)}
    return {
        "panels": {name: _ends(panel_interval(panel, **sampling)) for name, panel in by_panel.items()},
        "overall": _ends(overall_interval(list(by_panel.values()), **sampling)),
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _example(vector: Json) -> Json:
    points, verdicts = vector["input"]["points"], vector["input"]["verdicts"]
    return {"score": None if None in verdicts else example_score(points, verdicts)}


def _example_bounds(vector: Json) -> Json:
    bounds = example_bounds(vector["input"]["points"], vector["input"]["verdicts"])
    return {"worst": bounds.worst, "best": bounds.best}


def _examples(vector: Json) -> Json:
    given = vector["input"]["examples"]
    cases = [_graded(str(i), CORE, case, grading_method=HEALTHBENCH) for i, case in enumerate(given)]
    found = scores(graded_examples(cases), samples=1)
    return {
        "overall": metric_json(found.overall),
        "n_ungraded": len(given) - found.overall.n,
        "example_tags": {tag: metric_json(of_tag) for tag, of_tag in found.example_tags.items()},
        "rubric_tags": {tag: metric_json(of_tag) for tag, of_tag in found.rubric_tags.items()},
        "raw": found.overall.raw,
        "raw_example_tags": {tag: of_tag.raw for tag, of_tag in found.example_tags.items()},
        "raw_rubric_tags": {tag: of_tag.raw for tag, of_tag in found.rubric_tags.items()},
    }


def metric_json(found: Metric) -> Json:
    """Return the clipped mean and what it is over."""
    return {"value": found.value, "n": found.n}


def bootstrap_json(found: Metric) -> Json:
    """Return the part of a metric that comes from resamples."""
    ends = None if found.ci_low is None or found.ci_high is None else [found.ci_low, found.ci_high]
    return {"bootstrap_std": found.bootstrap_std, "ci95": ends}


def _bootstrap(vector: Json) -> Json:
    given = vector["input"]
    known = [score for score in given["scores"] if score is not None]
    return bootstrap_json(metric(known, samples=given["samples"], seed=given["seed"]))


def _length(vector: Json) -> Json:
    given = vector["input"]
    values, n_chars, center, penalty = (given[name] for name in ("scores", "n_chars", "center", "penalty"))
    found = length_adjusted(values, n_chars, center=center, penalty=penalty, samples=1)
    return {
        "adjusted": [
            None if value is None else adjusted_score(value, length, center=center, penalty=penalty)
            for value, length in zip(values, n_chars, strict=True)
        ],
        "overall": metric_json(found),
        "raw": found.raw,
    }


def _characters(vector: Json) -> Json:
    return {"n_chars": len(vector["input"]["answer"])}


def _worst_at_k(vector: Json) -> Json:
    found = worst_at_k(vector["input"]["runs"], samples=1)
    return {
        "worst_at_k": {str(k): metric_json(at_k) for k, at_k in found.items()},
        "raw": {str(k): at_k.raw for k, at_k in found.items()},
    }


def _spread(vector: Json) -> Json:
    spread = run_spread(vector["input"]["runs"])
    return {
        "runs": list(spread.scores),
        "raw": list(spread.raw),
        "mean": spread.mean,
        "min": spread.low,
        "max": spread.high,
        "sd": spread.sd,
    }


def _repeats(vector: Json) -> Json:
    given = vector["input"]
    found = nested_metric(given["runs"], samples=given["samples"], seed=given["seed"])
    return {"overall": metric_json(found), **bootstrap_json(found)}


def _win_rate(vector: Json) -> Json:
    a, b = (_answers(vector["input"][system]) for system in ("a", "b"))
    rates = win_rates(a, b, samples=1)
    return {
        "win_rate": rates.plain.rate.value,
        "n": rates.plain.rate.n,
        "win_rate_controlled": rates.controlled.rate.value,
        "n_controlled": rates.controlled.rate.n,
        "effect": rates.effect,
    }


def _answers(examples: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[Answer]]:
    return [[Answer(answer["score"], answer["n_chars"]) for answer in answers] for answers in examples]


def _meta(vector: Json) -> Json:
    found = _evaluation(vector)
    agreement = found.agreement
    return {name: _by_class(getattr(agreement, name)) for name in ("precision", "recall", "f1")}


def _by_class(found: ByClass) -> Json:
    return {name: getattr(found, name).value for name in ("positive", "negative", "balanced")}


def _meta_groups(vector: Json) -> Json:
    found = _evaluation(vector)
    return {
        "f1_balanced": found.agreement.f1.balanced.value,
        "categories": {name: of.agreement.f1.balanced.value for name, of in found.categories.items()},
        "themes": {theme: standing.grader.value for theme, standing in found.themes.items()},
        "physicians": {one.physician: one.overall.value for one in found.physicians},
        "ceiling": found.standing.ceiling.value,
        "rates": {
            name: getattr(found.rates, name).value for name in ("grader_positive", "physician_positive", "labels")
        },
    }


def _evaluation(vector: Json) -> MetaEvaluation:
    examples = [
        MetaExample(
            case_id=str(index),
            category=given["category"],
            grader=given["grader"],
            labels=tuple(zip(given["physicians"], given["labels"], strict=True)),
        )
        for index, given in enumerate(vector["input"]["records"])
    ]
    return meta_evaluation(examples, samples=1)


def _percentile(vector: Json) -> Json:
    return {"percentile": percentile(vector["input"]["grader"], vector["input"]["physicians"])}


SUBJECTS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "bedside_bounds": _case_bounds,
    "bedside_intervals": _intervals,
    "bedside_panels": _panels,
    "bedside_plan": _case,
    "bedside_points": _case,
    "bedside_severe": _case,
    "bedside_upstream": _case,
    "bedside_upstream_veto": _case,
    "healthbench_aggregate": _examples,
    "healthbench_bootstrap": _bootstrap,
    "healthbench_bounds": _example_bounds,
    "healthbench_characters": _characters,
    "healthbench_examples": _example,
    "healthbench_length": _length,
    "healthbench_meta": _meta,
    "healthbench_meta_groups": _meta_groups,
    "healthbench_percentile": _percentile,
    "healthbench_repeats": _repeats,
    "healthbench_spread": _spread,
    "healthbench_tags": _examples,
    "healthbench_winrate": _win_rate,
    "healthbench_worst_at_k": _worst_at_k,
}
"""Every subject of the vectors, and the function that answers it."""
