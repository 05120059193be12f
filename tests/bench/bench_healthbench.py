"""How long HealthBench's scores take, over the bare cost of their random draws and over one literal line a metric.

    python -m tests.bench.bench_healthbench

5,000 examples, 55,000 verdicts, 66 metrics with 1,000 resamples each, in memory; best of five of each, taken in turn.
Floor: one `integers(0, n, (1000, n))` for every different n among the metrics. Loop: plain Python scores, then the
bootstrap as its definition reads. Expected: at most 2 s, at most 3.5 x the draws, and less than the loop.
Then the meta-evaluation of 29,511 records with 262 physicians, over one draw for all and one for every category;
expected: at most 7 x those (it also draws for the themes, and measures every physician in every resample).
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from eval.healthbench.meta import THEMES, MetaExample, meta_evaluation
from eval.healthbench.scores import Example, Scores, example_score, scores

SAMPLES, SEED, TRIES = 1000, 42, 5
AXES = ("accuracy", "completeness", "context_awareness", "communication_quality", "instruction_following")
CLUSTERS = tuple(f"cluster:{theme}_situation_{i}" for theme in THEMES for i in range(5))[:34]


def make_examples(n: int = 5_000, n_items: int = 11) -> list[Example]:
    """Return examples tagged as the published core set is: an axis and a level an item, a theme an example."""
    rng = random.Random(SEED)
    return [make_example(rng, str(number), n_items) for number in range(n)]


def make_example(rng: random.Random, case_id: str, n_items: int) -> Example:
    """Return one example; seven in ten have two cluster items, six in ten a category that physicians agreed on."""
    clusters = rng.sample(CLUSTERS, 2) if rng.random() < 0.7 else []
    axes = rng.choices(AXES, (33, 39, 16, 8, 4), k=n_items)
    levels = [("level:cluster", cluster) for cluster in clusters]
    tags = [f"theme:{rng.choice(THEMES)}"]
    tags += [f"physician_agreed_category:{rng.randrange(17)}"] if rng.random() < 0.6 else []
    return Example(
        case_id=case_id,
        points=tuple(rng.choices((5, 7, 8, 3, 10, -5, -8, -6), k=n_items)),
        matched=tuple(rng.random() < 0.5 for _ in range(n_items)),
        item_tags=tuple(
            (f"axis:{axis}", *(levels[i] if i < len(levels) else ("level:example",))) for i, axis in enumerate(axes)
        ),
        tags=tuple(tags),
    )


def make_records(n: int = 29_511, n_physicians: int = 262) -> list[MetaExample]:
    """Return records with two or three physicians each, who agree more often than not."""
    rng = random.Random(SEED)
    records = []
    for number in range(n):
        truth = rng.random() < 0.6
        physicians = rng.sample(range(n_physicians), rng.choice((2, 2, 2, 3)))
        labels = tuple((f"p{physician}", truth == (rng.random() < 0.75)) for physician in physicians)
        records.append(MetaExample(str(number), rng.choice(CLUSTERS), truth == (rng.random() < 0.8), labels))
    return records


def draws(sizes: Iterable[int]) -> None:
    """Draw what the metrics of these sizes need, and nothing else."""
    for n in sizes:
        np.random.default_rng(SEED).integers(0, n, (SAMPLES, n))


def loop(examples: list[Example]) -> int:
    """Score and resample as the definitions read; return the number of metrics."""
    columns: dict[str, list[float]] = {}
    for example in examples:
        groups = {"overall": list(range(len(example.points)))}
        for i, tags in enumerate(example.item_tags):
            for tag in tags:
                groups.setdefault(tag, []).append(i)
        for name, items in groups.items():
            score = example_score([example.points[i] for i in items], [example.matched[i] for i in items])
            for tag in () if score is None else ((name, *example.tags) if name == "overall" else (name,)):
                columns.setdefault(tag, []).append(score or 0.0)
    for column in columns.values():
        drawn = np.asarray(column)[np.random.default_rng(SEED).integers(0, len(column), (SAMPLES, len(column)))]
        means = np.clip(drawn.mean(axis=1), 0, 1)
        means.std(), np.percentile(means, [2.5, 97.5])
    return len(columns)


def metrics_of(found: Scores) -> list[int]:
    """Return the n of every metric."""
    return [m.n for m in (found.overall, *found.example_tags.values(), *found.rubric_tags.values())]


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(name: str, calls: dict[str, Callable[[], object]]) -> None:
    """Print the best time of each call, and the last one's over every other."""
    best = {label: min(times) for label, times in _rounds(calls).items()}
    *others, ours = best
    ratios = ", ".join(f"{best[ours] / best[label]:.2f} x {label}" for label in others)
    times = ", ".join(f"{label} {1000 * taken:.0f} ms" for label, taken in best.items())
    sys.stdout.write(f"{name}: {times}; {ratios}\n")


def _rounds(calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    rounds = [{label: seconds(call) for label, call in calls.items()} for _ in range(TRIES)]
    return {label: [taken[label] for taken in rounds] for label in calls}


def main() -> None:
    """Print both lines."""
    examples, records = make_examples(), make_records()
    sizes = metrics_of(scores(examples))
    if loop(examples) != len(sizes):
        raise SystemExit("the loop found another number of metrics")
    compare(
        f"scores, {sum(len(e.points) for e in examples):,} verdicts, {len(sizes)} metrics",
        {"draws": partial(draws, set(sizes)), "loop": partial(loop, examples), "ours": partial(scores, examples)},
    )
    by_category = [sum(r.category == category for r in records) for category in CLUSTERS]
    compare(
        f"meta-evaluation, {len(records):,} records",
        {"draws": partial(draws, [len(records), *by_category]), "ours": partial(meta_evaluation, records)},
    )


if __name__ == "__main__":
    main()
