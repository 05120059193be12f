"""A scorer that breaks chosen rules: what a published deviation, or several at once, would answer to a vector.

In: a vector and the `Rules` that a scorer follows. Out: its answer: what is expected, but for the numbers that the
rules can change. With `Rules()` those come out right too. Means, resampling and the measures of agreement come from the
functions of every run; only the steps that a deviation changes are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from bedside_bench import F1_WEIGHTED_RUBRIC, SEVERITY_CLASS, SEVERITY_WEIGHT
from eval.conformance.ours import Json, bootstrap_json, metric_json, score_vector
from eval.conformance.vectors import ANY_STREAM
from eval.healthbench.metrics import clip, metric
from eval.healthbench.repeats import nested_metric
from eval.healthbench.scores import adjusted_score
from eval.numbers.bootstrap import panel_interval
from eval.numbers.defaults import SPEC, UPSTREAM_VETO
from eval.numbers.panels import known, mean_of
from eval.numbers.scoring import CRITICAL_CLASS

Decided = list[bool] | None


def ungraded(verdicts: Sequence[bool | None]) -> Decided:
    """Return the verdicts, or None where one is missing: the rule."""
    return None if None in verdicts else [verdict is True for verdict in verdicts]


def not_met(verdicts: Sequence[bool | None]) -> Decided:
    """Return the verdicts with every missing one as not met."""
    return [verdict is True for verdict in verdicts]


def moved_up(verdicts: Sequence[bool | None]) -> Decided:
    """Return the verdicts without the missing ones, so that each later one meets an earlier item."""
    present = [verdict for verdict in verdicts if verdict is not None]
    return present + [False] * (len(verdicts) - len(present))


def subtract(point: float) -> tuple[float, float]:
    """Return what a matched item adds and what it adds to the denominator: the rule."""
    return point, max(0.0, point)


def earn(point: float) -> tuple[float, float]:
    """Return the same where a negative item of p points earns 10 + p."""
    worth = 10 + point if point < 0 else point
    return worth, max(0.0, worth)


def in_denominator(point: float) -> tuple[float, float]:
    """Return the same where the denominator is over all points, negative ones by their size."""
    return point, abs(point)


def no_score(earned: float, harm: float) -> float | None:  # noqa: ARG001 - the three are one step
    """Return what an example without positive points scores: nothing, the rule."""
    return None


def zero(earned: float, harm: float) -> float | None:  # noqa: ARG001 - as above
    """Return the same as 0, whatever matched."""
    return 0.0


def share_of_harm(earned: float, harm: float) -> float | None:
    """Return the same as 1 minus the share of its negative points that matched."""
    return 1 + earned / harm if harm else None


@dataclass(frozen=True, slots=True)
class Rules:
    """The steps at which scorers are known to deviate; the defaults are right. One field is one step."""

    read: Callable[[Sequence[bool | None]], Decided] = ungraded
    worth: Callable[[float], tuple[float, float]] = subtract
    unearnable: Callable[[float, float], float | None] = no_score
    example_clipped: bool = False
    tag_clipped: bool = False
    adjusted_clipped: bool = False
    headline_clipped: bool = True
    runs_nested: bool = True
    every_label_a_pair: bool = True
    critical_class: int = CRITICAL_CLASS
    veto: bool | None = None  # None: where the dialect asks for it
    plan_rounded: bool = False
    empty_panels_count: bool = True
    stratified: bool = True


def answer(vector: Json, rules: Rules) -> Json:
    """Return what a scorer with these rules makes of a vector."""
    subject = SUBJECTS.get(vector["subject"])
    truth: Json = vector["expected"]
    return truth if subject is None else {**truth, **subject(vector, rules)}


def _ratio(points: Sequence[float], verdicts: Decided, rules: Rules) -> float | None:
    """Return earned / available points, not clipped; None where the rules give no score."""
    if verdicts is None:
        return None
    pairs = [rules.worth(point) for point in points]
    earned = sum(worth for (worth, _), met in zip(pairs, verdicts, strict=True) if met)
    available = sum(most for _, most in pairs)
    if available > 0:
        return earned / available
    harm = -sum(min(0.0, point) for point in points)
    return rules.unearnable(earned, harm)


def _case(vector: Json, rules: Rules) -> Json:
    given, variant = vector["input"], vector["variant"]
    verdicts = rules.read(given["verdicts"])
    if given["grading_method"] == F1_WEIGHTED_RUBRIC:
        return {"score": None} if verdicts is None else _plan(given["points"], verdicts, variant, rules)
    raw = _ratio(given["points"], verdicts, replace(rules, unearnable=no_score))
    nothing_to_earn = 0.0 if verdicts is not None and variant == SPEC else None
    return {"score": nothing_to_earn if raw is None else clip(raw), "raw_score": raw}


def _plan(points: Sequence[float], verdicts: Sequence[bool], variant: str, rules: Rules) -> Json:
    """Return the F1 of a plan and its parts; points without a class are class 5, which only upstream's vectors have."""
    classes = [SEVERITY_CLASS.get(int(point), 5) for point in points]
    weights = [SEVERITY_WEIGHT.get(int(point), 1) for point in points]
    critical = [weight if of >= rules.critical_class else 0 for of, weight in zip(classes, weights, strict=True)]
    hit = sum(weight for weight, met in zip(critical, verdicts, strict=True) if met)
    matched = sum(weight for weight, met in zip(weights, verdicts, strict=True) if met)
    r = hit / sum(critical) if sum(critical) else 0.0
    p = hit / matched if matched else 0.0
    f1 = 2 * p * r / (p + r) if p + r else 0.0
    severe = any((of == 9 and not met) or (of == 1 and met) for of, met in zip(classes, verdicts, strict=True))
    vetoed = severe and (variant == UPSTREAM_VETO if rules.veto is None else rules.veto)
    digits = 4 if rules.plan_rounded or variant != SPEC else 17
    precision = p if matched or variant == SPEC else None
    return {
        "score": 0.0 if vetoed else round(f1, digits),
        "recall": round(r, digits),
        "precision": None if precision is None else round(precision, digits),
    }


def _panels(vector: Json, rules: Rules) -> Json:
    variant = vector["variant"]
    scored = {
        panel["panel"]: [_case({"input": case, "variant": variant}, rules)["score"] for case in panel["cases"]]
        for panel in vector["input"]["panels"]
    }
    values = {panel: known(scores) for panel, scores in scored.items()}
    means = {panel: mean_of(scores) for panel, scores in values.items()}
    all_count = rules.empty_panels_count and variant == SPEC
    shown = means if variant == SPEC else {panel: mean for panel, mean in means.items() if mean is not None}
    return {
        "panels": {panel: {"mean": mean, "n": len(values[panel])} for panel, mean in shown.items()},
        "overall": None if all_count and None in means.values() else mean_of(known(means.values())),
        "n_ungraded": sum(scores.count(None) for scores in scored.values()),
    }


def _intervals(vector: Json, rules: Rules) -> Json:
    given = vector["input"]
    pool = [score for panel in given["panels"] for score in panel["scores"]]
    # Which stream an unstratified scorer draws is anyone's guess: it shows where any stream gives the same interval.
    if rules.stratified or vector["tolerance"] < ANY_STREAM or len(pool) < 2:
        return {}
    found = panel_interval(pool, samples=given["samples"], seed=given["seed"])
    return {"overall": None if found is None else [found.low, found.high]}


def _score(example: Json, rules: Rules) -> float | None:
    score = _ratio(example["points"], rules.read(example["verdicts"]), rules)
    return clip(score) if rules.example_clipped and score is not None else score


def _example(vector: Json, rules: Rules) -> Json:
    return {"score": _score(vector["input"], rules)}


def _aggregate(vector: Json, rules: Rules) -> Json:
    scored = [_score(example, rules) for example in vector["input"]["examples"]]
    found = metric(known(scored), samples=1)
    value = found.value if rules.headline_clipped else found.raw
    return {"overall": {"value": value, "n": found.n}, "raw": found.raw, "n_ungraded": scored.count(None)}


def _tags(vector: Json, rules: Rules) -> Json:
    # Seen in a scorer that has no tags; one that gives 0 there may well leave a tag's examples out all the same.
    rules = replace(rules, unearnable=no_score)
    of_examples: dict[str, list[float]] = {}
    of_items: dict[str, list[float]] = {}
    for example in vector["input"]["examples"]:
        verdicts = rules.read(example["verdicts"])
        for tag in dict.fromkeys(example["example_tags"]):
            _add(of_examples, tag, _score(example, rules), rules)
        for tag in dict.fromkeys(tag for tags in example["item_tags"] for tag in tags):
            carrying = [index for index, tags in enumerate(example["item_tags"]) if tag in tags]
            points = [example["points"][index] for index in carrying]
            decided = None if verdicts is None else [verdicts[index] for index in carrying]
            _add(of_items, tag, _ratio(points, decided, rules), rules)
    return {
        "example_tags": _metrics(of_examples),
        "rubric_tags": _metrics(of_items),
        "raw_example_tags": {tag: mean_of(scores) for tag, scores in of_examples.items()},
        "raw_rubric_tags": {tag: mean_of(scores) for tag, scores in of_items.items()},
    }


def _add(values: dict[str, list[float]], tag: str, score: float | None, rules: Rules) -> None:
    if score is not None:
        values.setdefault(tag, []).append(clip(score) if rules.tag_clipped else score)


def _metrics(values: Mapping[str, Sequence[float]]) -> Json:
    return {tag: metric_json(metric(scores, samples=1)) for tag, scores in values.items()}


def _length(vector: Json, rules: Rules) -> Json:
    given = vector["input"]
    adjusted = [
        None if score is None else adjusted_score(score, n, center=given["center"], penalty=given["penalty"])
        for score, n in zip(given["scores"], given["n_chars"], strict=True)
    ]
    if rules.adjusted_clipped:
        adjusted = [None if score is None else clip(score) for score in adjusted]
    found = metric(known(adjusted), samples=1)
    return {"adjusted": adjusted, "overall": metric_json(found), "raw": found.raw}


def _repeats(vector: Json, rules: Rules) -> Json:
    given = vector["input"]
    rows = given["runs"] if rules.runs_nested else [[score] for row in given["runs"] for score in row]
    found = nested_metric(rows, samples=given["samples"], seed=given["seed"])
    return {"overall": metric_json(found), **bootstrap_json(found)}


def _meta(vector: Json, rules: Rules) -> Json:
    if rules.every_label_a_pair:
        return {}
    records = [
        {**record, "labels": [fmean(record["labels"]) > 0.5], "physicians": record["physicians"][:1]}
        for record in vector["input"]["records"]
    ]
    return score_vector({**vector, "input": {"records": records}})


SUBJECTS: Final[Mapping[str, Callable[[Json, Rules], Json]]] = {
    "bedside_intervals": _intervals,
    "bedside_panels": _panels,
    "bedside_plan": _case,
    "bedside_points": _case,
    "bedside_upstream": _case,
    "bedside_upstream_veto": _case,
    "healthbench_aggregate": _aggregate,
    "healthbench_examples": _example,
    "healthbench_length": _length,
    "healthbench_meta": _meta,
    "healthbench_repeats": _repeats,
    "healthbench_tags": _tags,
}
"""The subjects in which a deviation can show, and how a scorer with given rules answers them."""
