"""A HealthBench journal read a second time, with JSON and loops alone: the numbers are those of the summary."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval.numbers.readers import read_run
from eval.numbers.summary import summarise
from tests.examples import example_id_of, make_criterion, make_example
from tests.gradings import example_mirror, grading_plan, write_answers
from tests.plans import run


def second_reading(path: Path) -> dict[str, Any]:
    """Return overall, tags and bounds of a journal, from its JSON lines with loops alone."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    met = {
        line["group"]: json.loads(line["text"])["criteria_met"]
        for line in lines
        if line["kind"] == "call" and line["role"] == "judge"
    }
    columns: dict[str, list[float]] = {"overall": []}
    worst, best = [], []
    for head in (line for line in lines if line["kind"] == "case"):
        items = [(points, met.get(item_id), tags) for item_id, points, tags in head["items"]]
        earns = sum(points for points, _, _ in items if points > 0)
        if not earns:
            continue
        sure = sum(points for points, decided, _ in items if decided)
        open_ = [points for points, decided, _ in items if decided is None]
        worst.append((sure + sum(p for p in open_ if p < 0)) / earns)
        best.append((sure + sum(p for p in open_ if p > 0)) / earns)
        if open_:
            continue
        for name in ("overall", *(f"example {tag}" for tag in head["tags"])):
            columns.setdefault(name, []).append(sure / earns)
        for tag in {tag for _, _, tags in items for tag in tags}:
            of_tag = [(points, decided) for points, decided, tags in items if tag in tags]
            if available := sum(points for points, _ in of_tag if points > 0):
                earned = sum(points for points, decided in of_tag if decided)
                columns.setdefault(f"rubric {tag}", []).append(earned / available)
    metrics = {name: plain_metric(values) for name, values in columns.items() if values}
    return {"metrics": metrics, "bounds": [clipped(worst), clipped(best)]}


def clipped(values: Sequence[float]) -> float | None:
    """Return a clipped mean."""
    return min(1.0, max(0.0, sum(values) / len(values))) if values else None


def plain_metric(values: Sequence[float]) -> list[Any]:
    """Return value, raw, n and deviation of a column."""
    drawn = np.random.default_rng(42).integers(0, len(values), (1000, len(values)))
    means = [clipped([values[i] for i in row]) for row in drawn]
    return [clipped(values), fmean(values), len(values), float(np.std(np.array(means, dtype=float)))]


def first_reading(path: Path) -> dict[str, Any]:
    """Return the same of the summary."""
    summary = summarise(read_run(path), software={})
    member = summary["healthbench"]
    named = {"overall": member["overall"]}
    named |= {f"example {tag}": found for tag, found in member["example_tags"].items()}
    named |= {f"rubric {tag}": found for tag, found in member["rubric_tags"].items()}
    metrics = {
        name: [found[key] for key in ("value", "raw", "n", "bootstrap_std")]
        for name, found in named.items()
        if found["n"]
    }
    return {"metrics": metrics, "bounds": [summary["overall_worst"], summary["overall_best"]]}


POINTS = st.sampled_from([-10, -2.5, -1, 1, 3, 7.5, 10])
TAGS = st.lists(st.sampled_from(["axis:a", "axis:b", "level:example", "theme:a"]), max_size=3, unique=True)
RUBRIC = st.lists(st.tuples(POINTS, TAGS, st.booleans()), min_size=1, max_size=5)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(RUBRIC, st.lists(st.sampled_from(["theme:a", "theme:b"]), unique=True)), max_size=6), st.data()
)
def test_a_second_reading_of_a_journal_gives_the_same_numbers(
    examples: list[tuple[list[tuple[float, list[str], bool]], list[str]]], data: st.DataObject
) -> None:
    """Random rubrics, tags and answers, some judge lines cut: every mean, n, deviation and bound is that of loops."""
    examples = examples or [([(1, ["axis:a"], True)], [])]
    lines, texts = [], {}
    for number, (rubric, tags) in enumerate(examples):
        items = [make_criterion(number, i, points=p, tags=named) for i, (p, named, _) in enumerate(rubric)]
        lines.append(make_example(number, rubrics=items, example_tags=tags))
        met = [item["criterion"] for item, (_, _, hit) in zip(items, rubric, strict=True) if hit]
        texts[example_id_of(number)] = "\n".join(["Answer.", *met])
    with tempfile.TemporaryDirectory() as folder:
        path, mirror = Path(folder) / "x.jsonl", example_mirror(Path(folder), lines)
        run(grading_plan(mirror, answers=write_answers(Path(folder) / "a.jsonl", texts)), path)
        written = path.read_bytes().splitlines(keepends=True)
        cut = {n for n, line in enumerate(written) if b'"role":"judge"' in line and data.draw(st.integers(0, 4)) == 0}
        path.write_bytes(b"".join(line for n, line in enumerate(written) if n not in cut))
        found, plain = first_reading(path), second_reading(path)

    assert plain["metrics"].keys() == found["metrics"].keys()
    for name, numbers in plain["metrics"].items():
        assert pytest.approx(numbers, abs=1e-12) == found["metrics"][name], name
    assert pytest.approx(plain["bounds"], abs=1e-12) == found["bounds"]
