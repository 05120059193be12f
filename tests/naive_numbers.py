"""Every number of the conformance vectors, worked out a second time: exact fractions, plain loops, nothing of ours.

In: a vector whose numbers were read as fractions. Out: all that its subject can be asked for. Intervals and deviations
that hold for any stream come from all n^n resamples, the others from the loops that define their stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import sqrt
from typing import Any

import numpy as np

from tests.reference_bootstrap import loop_overall, loop_panel, loop_upstream

Json = dict[str, Any]
CLASS = {3: 9, 2: 8, 1: 7, 0: 5, -1: 3, -2: 2, -3: 1}
WEIGHT = {9: 72, 8: 24, 7: 3, 5: 1, 3: 3, 2: 24, 1: 72}


def mean(values: Iterable[Any]) -> Any:
    """Return the exact mean, None of nothing."""
    found = list(values)
    return Fraction(sum(found)) / len(found) if found else None


def clip(value: Any) -> Any:
    """Return a number within [0, 1]."""
    return None if value is None else min(Fraction(1), max(Fraction(0), Fraction(value)))


def ratio(points: Sequence[Any], met: Sequence[bool]) -> Any:
    """Return met points over positive points."""
    positive = sum(p for p in points if p > 0)
    return Fraction(sum(p for p, m in zip(points, met, strict=True) if m)) / positive if positive else None


def plan(points: Sequence[Any], met: Sequence[bool], variant: str) -> Json:
    """Return the F1 of a plan by its closed form, 2 h / (c + m)."""
    classes = [CLASS.get(int(p), 5) for p in points]
    hit = sum(WEIGHT[c] for c, m in zip(classes, met, strict=True) if m and c >= 7)
    critical = sum(WEIGHT[c] for c in classes if c >= 7)
    matched = sum(WEIGHT[c] for c, m in zip(classes, met, strict=True) if m)
    f1 = Fraction(2 * hit, critical + matched) if hit else Fraction(0)
    recall = Fraction(hit, critical) if critical else Fraction(0)
    precision: Any = Fraction(hit, matched) if matched else (Fraction(0) if variant == "spec" else None)
    severe = sum(m and c <= 2 for c, m in zip(classes, met, strict=True))
    if variant == "spec":
        counts = {
            "severe_matched": severe,
            "minus3_matched": sum(m and c == 1 for c, m in zip(classes, met, strict=True)),
        }
        rate = Fraction(severe, sum(met)) if sum(met) else None
        return {"score": f1, "recall": recall, "precision": precision, "severe_rate": rate, **counts}
    vetoed = any((c == 9 and not m) or (c == 1 and m) for c, m in zip(classes, met, strict=True))
    return {
        "score": Fraction(0) if vetoed and variant == "upstream-veto" else round(f1, 4),
        "recall": round(recall, 4),
        "precision": None if precision is None else round(precision, 4),
        "severe_rate": int(vetoed),
    }


def case(given: Json, variant: str, met: Sequence[bool | None]) -> Json:
    """Return the score of a case with these decisions, and its parts."""
    if None in met:
        return {"score": None, "raw_score": None}
    decided = [m is True for m in met]
    if given["grading_method"] == "f1_weighted_rubric":
        return plan(given["points"], decided, variant)
    raw = ratio(given["points"], decided)
    return {"score": clip(raw) if raw is not None else (0 if variant == "spec" else None), "raw_score": raw}


def every_choice(verdicts: Sequence[bool | None]) -> list[list[bool]]:
    """Return the verdicts with the missing ones filled in, in every way."""
    return [list(full) for full in product(*([v] if v is not None else [False, True] for v in verdicts))]


def ends(scores: Sequence[Any]) -> Json:
    """Return the worst and the best of all scores; None where there are none."""
    known = [score for score in scores if score is not None]
    return {"worst": min(known, default=None), "best": max(known, default=None)}


def case_bounds(given: Json, variant: str) -> Json:
    """Return the bounds of a case by trying every choice."""
    return ends([case(given, variant, full)["score"] for full in every_choice(given["verdicts"])])


def panels(vector: Json) -> Json:
    """Return panel means, the overall score, and its bounds."""
    variant, given = vector["variant"], vector["input"]["panels"]
    scores = {p["panel"]: [case(c, variant, c["verdicts"])["score"] for c in p["cases"]] for p in given}
    bounds = [[case_bounds(c, variant) for c in p["cases"]] for p in given]
    means = {name: mean(s for s in of if s is not None) for name, of in scores.items()}
    counts = {name: len(of) - of.count(None) for name, of in scores.items()}
    shown = [name for name in scores if counts[name] or variant == "spec"]
    whole = all(m is not None for m in means.values()) or variant != "spec"
    return {
        "panels": {name: {"mean": means[name], "n": counts[name]} for name in shown},
        "overall": mean(m for m in means.values() if m is not None) if whole else None,
        "n_ungraded": sum(of.count(None) for of in scores.values()),
        "overall_worst": mean(mean(b["worst"] for b in of) for of in bounds),
        "overall_best": mean(mean(b["best"] for b in of) for of in bounds),
    }


def resampled(scores: Sequence[Any]) -> Counter[Any]:
    """Return how many of all n^n resamples have which mean."""
    return Counter(mean(drawn) for drawn in product(scores, repeat=len(scores)))


def interval(means: Counter[Any]) -> list[Any]:
    """Return the 2.5th and 97.5th percentile of a distribution; neither may fall near a step: streams would differ."""
    total, found = sum(means.values()), []
    for level in (Fraction(25, 1000), Fraction(975, 1000)):
        below = Fraction(0)
        for value in sorted(means):
            above = below + Fraction(means[value], total)
            if below < level < above:
                assert min(level - below, above - level) > Fraction(1, 60)
                found.append(value)
            below = above
    return found


def intervals(vector: Json) -> Json:
    """Return every panel's interval and the overall one."""
    given = vector["input"]
    scores = {panel["panel"]: panel["scores"] for panel in given["panels"]}
    if vector["tolerance"] >= Fraction(1, 100):
        macro: Counter[Any] = Counter({Fraction(0): 1})
        for of in scores.values():
            one = resampled(of)
            macro = sum((Counter({a + b: m * n for b, n in one.items()}) for a, m in macro.items()), Counter())
        overall = interval(Counter({value / len(scores): n for value, n in macro.items()}))
        return {"panels": {name: interval(resampled(of)) for name, of in scores.items()}, "overall": overall}
    floats = {name: [float(score) for score in of] for name, of in scores.items()}
    sampling = {"samples": given["samples"], "seed": given["seed"]}
    if vector["variant"] != "spec":
        by_panel, overall_ends = loop_upstream(floats, **sampling)
        return {"panels": {name: list(found) for name, found in by_panel.items()}, "overall": list(overall_ends)}
    several = max(map(len, floats.values())) > 1
    return {
        "panels": {name: list(loop_panel(of, **sampling)) if len(of) > 1 else None for name, of in floats.items()},
        "overall": list(loop_overall(list(floats.values()), **sampling)) if several else None,
    }


def example(given: Json) -> Any:
    """Return the score of an example, None where a verdict or anything to earn is missing."""
    verdicts = given["verdicts"]
    return None if None in verdicts else ratio(given["points"], verdicts)


def example_bounds(vector: Json) -> Json:
    """Return the bounds of an example by trying every choice."""
    given = vector["input"]
    return ends([ratio(given["points"], full) for full in every_choice(given["verdicts"])])


def examples(vector: Json) -> Json:
    """Return the overall metric and that of every tag."""
    given = vector["input"]["examples"]
    scores = [example(one) for one in given]
    known = [score for score in scores if score is not None]
    of_examples: dict[str, list[Any]] = {}
    of_items: dict[str, list[Any]] = {}
    for one, score in zip(given, scores, strict=True):
        for tag in set(one.get("example_tags", [])):
            of_examples.setdefault(tag, []).append(score)
        for tag in {tag for tags in one.get("item_tags", []) for tag in tags}:
            carrying = [tag in tags for tags in one["item_tags"]]
            part = {
                name: [x for x, carries in zip(one[name], carrying, strict=True) if carries]
                for name in ("points", "verdicts")
            }
            of_items.setdefault(tag, []).append(None if None in one["verdicts"] else example(part))
    return {
        "overall": metric(known),
        "raw": mean(known),
        "n_ungraded": scores.count(None),
        "example_tags": by_tag(of_examples, metric),
        "rubric_tags": by_tag(of_items, metric),
        "raw_example_tags": by_tag(of_examples, mean),
        "raw_rubric_tags": by_tag(of_items, mean),
    }


def metric(values: Sequence[Any]) -> Json:
    """Return a clipped mean and its n."""
    return {"value": clip(mean(values)), "n": len(values)}


def by_tag(values: dict[str, list[Any]], of: Callable[[list[Any]], Any]) -> Json:
    """Return something of every tag's values, tags without any left out."""
    known = {tag: [value for value in found if value is not None] for tag, found in values.items()}
    return {tag: of(found) for tag, found in known.items() if found}


def bootstrap(scores: Sequence[Any], vector: Json) -> Json:
    """Return the deviation and interval of the clipped means, over all resamples or those of numpy's stream."""
    if len(scores) == 1:
        return {"bootstrap_std": 0, "ci95": None}
    if vector["tolerance"] >= Fraction(1, 100):
        means: Counter[Any] = Counter()
        for value, n in resampled(scores).items():
            means[clip(value)] += n
        total = sum(means.values())
        center = sum(value * n for value, n in means.items()) / total
        variance = sum((value - center) ** 2 * n for value, n in means.items()) / total
        exact = {"bootstrap_std": sqrt(variance)}
        return {**exact, "ci95": interval(means)} if "ci95" in vector["expected"] else exact
    rng = np.random.default_rng(vector["input"]["seed"])
    positions = rng.integers(0, len(scores), (vector["input"]["samples"], len(scores)))
    drawn = [float(clip(mean(scores[i] for i in row))) for row in positions.tolist()]
    return {"bootstrap_std": float(np.std(drawn)), "ci95": [float(x) for x in np.percentile(drawn, [2.5, 97.5])]}


def length(vector: Json) -> Json:
    """Return adjusted scores and their mean."""
    given = vector["input"]
    adjusted = [
        None if s is None else s - given["penalty"] * Fraction(n - given["center"]) / 500
        for s, n in zip(given["scores"], given["n_chars"], strict=True)
    ]
    known = [score for score in adjusted if score is not None]
    return {"adjusted": adjusted, "overall": metric(known), "raw": mean(known)}


def worst_at_k(vector: Json) -> Json:
    """Return the mean over all sets of k runs of the lowest score, by listing the sets."""
    runs = vector["input"]["runs"]
    found = {
        str(k): [mean(min(few) for few in combinations(row, k)) for row in runs] for k in range(1, len(runs[0]) + 1)
    }
    return {
        "worst_at_k": {k: metric(row) for k, row in found.items()},
        "raw": {k: mean(row) for k, row in found.items()},
    }


def spread(vector: Json) -> Json:
    """Return the clipped mean of every run, and their spread."""
    raw = [mean(run) for run in zip(*vector["input"]["runs"], strict=True)]
    runs = [clip(value) for value in raw]
    sd = sqrt(mean((value - mean(runs)) ** 2 for value in runs))
    return {"runs": runs, "raw": raw, "mean": mean(runs), "min": min(runs), "max": max(runs), "sd": sd}


def repeats(vector: Json) -> Json:
    """Return the metric over examples of their means over runs."""
    means = [mean(row) for row in vector["input"]["runs"]]
    return {"overall": metric(means), **(bootstrap(means, vector) if "bootstrap_std" in vector["expected"] else {})}


def win_rate(vector: Json) -> Json:
    """Return the win rates by listing the pairs."""
    pairs = [list(product(*both)) for both in zip(vector["input"]["a"], vector["input"]["b"], strict=True)]
    close = [
        [
            (a, b)
            for a, b in of
            if a["n_chars"] * b["n_chars"] and 20 * abs(a["n_chars"] - b["n_chars"]) <= a["n_chars"] + b["n_chars"]
        ]
        for of in pairs
    ]
    rates = []
    for kept in (pairs, close):
        decided = [[a["score"] > b["score"] for a, b in of if a["score"] != b["score"]] for of in kept]
        rates.append([mean(of) for of in decided if of])
    plain, controlled = mean(rates[0]), mean(rates[1])
    lead = plain is not None and controlled is not None and 2 * plain != 1
    return {
        "win_rate": plain,
        "n": len(rates[0]),
        "win_rate_controlled": controlled,
        "n_controlled": len(rates[1]),
        "effect": (plain - controlled) / (plain - Fraction(1, 2)) if lead else None,
    }


def agreement(pairs: Sequence[tuple[bool, bool]]) -> Json:
    """Return precision, recall, F1 and n of either class, and their balance, from pairs of labels."""
    found: Json = {name: {} for name in ("precision", "recall", "f1", "n")}
    for name, label in (("positive", True), ("negative", False)):
        both = sum(g is label and y is label for g, y in pairs)
        given, taken = sum(g is label for g, _ in pairs), sum(y is label for _, y in pairs)
        found["precision"][name] = Fraction(both, given) if given else None
        found["recall"][name] = Fraction(both, taken) if taken else None
        found["f1"][name] = Fraction(2 * both, given + taken) if given and taken else None
        found["n"][name] = given + taken - both
    for of in found.values():
        of["balanced"] = None if None in of.values() else Fraction(of["positive"] + of["negative"]) / 2
    return found


def weighted(values: Iterable[tuple[Any, int]]) -> Any:
    """Return the weighted mean of the values that exist."""
    known = [(value, n) for value, n in values if value is not None]
    return sum(value * n for value, n in known) / sum(n for _, n in known) if known else None


def balanced(pairs: Sequence[tuple[bool, bool]]) -> tuple[Any, int]:
    """Return the balanced F1 of pairs and its n, both classes' added."""
    found = agreement(pairs)
    return found["f1"]["balanced"], found["n"]["positive"] + found["n"]["negative"]


def meta(vector: Json) -> Json:
    """Return the grader's agreement with physicians, by group, and the physicians' with each other."""
    records = [record for record in vector["input"]["records"] if record["grader"] is not None]
    categories = sorted({record["category"] for record in records})
    by_category = {
        c: balanced([(r["grader"], y) for r in records if r["category"] == c for y in r["labels"]]) for c in categories
    }
    of_physician: dict[str, list[tuple[bool, bool]]] = {}
    for record in records:
        for i, (name, own) in enumerate(zip(record["physicians"], record["labels"], strict=True)):
            others = record["labels"][:i] + record["labels"][i + 1 :]
            of_physician.setdefault(name, []).extend((own, other) for other in others)
    physicians = {name: balanced(pairs) for name, pairs in of_physician.items()}
    overall = agreement([(r["grader"], y) for r in records for y in r["labels"]])
    return {
        **{name: overall[name] for name in ("precision", "recall", "f1")},
        "f1_balanced": overall["f1"]["balanced"],
        "categories": {c: value for c, (value, _) in by_category.items()},
        "themes": {"theme:hedging": weighted(by_category.values())},
        "physicians": {name: value for name, (value, _) in physicians.items()},
        "ceiling": weighted(physicians.values()),
        "rates": {
            "grader_positive": mean(r["grader"] for r in records),
            "physician_positive": mean(mean(r["labels"]) for r in records),
            "labels": mean(len(r["labels"]) for r in records),
        },
    }


def percentile(vector: Json) -> Json:
    """Return the share below in percent, ties counting half."""
    grader, values = vector["input"]["grader"], vector["input"]["physicians"]
    below = [Fraction(1) if v < grader else Fraction(1, 2) if v == grader else Fraction(0) for v in values]
    return {"percentile": 100 * mean(below) if values else None}


def _one_case(vector: Json) -> Json:
    return case(vector["input"], vector["variant"], vector["input"]["verdicts"])


NAIVE: dict[str, Callable[[Json], Json]] = {
    **dict.fromkeys(("bedside_points", "bedside_plan", "bedside_severe"), _one_case),
    **dict.fromkeys(("bedside_upstream", "bedside_upstream_veto"), _one_case),
    "bedside_bounds": lambda vector: case_bounds(vector["input"], vector["variant"]),
    "bedside_panels": panels,
    "bedside_intervals": intervals,
    "healthbench_examples": lambda vector: {"score": example(vector["input"])},
    "healthbench_bounds": example_bounds,
    "healthbench_aggregate": examples,
    "healthbench_tags": examples,
    "healthbench_bootstrap": lambda vector: bootstrap([s for s in vector["input"]["scores"] if s is not None], vector),
    "healthbench_length": length,
    "healthbench_characters": lambda vector: {"n_chars": len(vector["input"]["answer"].encode("utf-32-le")) // 4},
    "healthbench_worst_at_k": worst_at_k,
    "healthbench_spread": spread,
    "healthbench_repeats": repeats,
    "healthbench_winrate": win_rate,
    "healthbench_meta": meta,
    "healthbench_meta_groups": meta,
    "healthbench_percentile": percentile,
}
"""Every subject, worked out a second time."""
