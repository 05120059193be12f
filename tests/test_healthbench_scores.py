"""HealthBench scores: the unit vector, bounds, tags, length adjustment, and a second scorer of plain loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.healthbench.metrics import Metric
from eval.healthbench.scores import Example, adjusted_score, example_bounds, example_score, length_adjusted, scores

POINTS, MET = (7, 5, 10, -6), (True, False, True, True)
TAGS = ("axis:accuracy", "level:cluster", "hedging", "a", "b")

some_points = st.lists(st.sampled_from([7, 5, 10, -6, -10, 0, 2.5, -0.5, 1e-3, 0.1]), min_size=1, max_size=8)
some_tags = st.lists(st.sampled_from(TAGS), max_size=4)


@st.composite
def graded(draw: st.DrawFn) -> Example:
    """Return an answer with any decisions and tags; tags and cases may come twice, nothing may be earned."""
    points = draw(some_points)
    n = len(points)
    return Example(
        case_id=draw(st.sampled_from("abcdefghijkl")),
        points=tuple(points),
        matched=tuple(draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        item_tags=tuple(map(tuple, draw(st.lists(some_tags, min_size=n, max_size=n)))),
        tags=tuple(draw(some_tags)),
    )


def naive_score(points: list[float], matched: list[bool]) -> float | None:
    """Score by the formula, item by item."""
    available = 0.0
    earned = 0.0
    for p, m in zip(points, matched, strict=True):
        available += max(p, 0)
        earned += p * m
    return earned / available if available > 0 else None


def naive_metric(column: list[float], samples: int, seed: int) -> tuple[float, float, int, float]:
    """Return value, raw mean, n and bootstrap deviation by their definitions."""
    n = len(column)
    raw = sum(column) / n
    resamples = np.random.default_rng(seed).integers(0, n, (samples, n)).tolist()
    means = [min(1.0, max(0.0, sum(column[i] for i in row) / n)) for row in resamples]
    centre = sum(means) / samples
    return min(1.0, max(0.0, raw)), raw, n, (sum((m - centre) ** 2 for m in means) / samples) ** 0.5


def naive_scores(examples: list[Example]) -> tuple[list[float], dict[str, list[float]], dict[str, list[float]]]:
    """Return the values of every metric: all examples, example tags, rubric tags; an example's answers averaged."""
    overall: dict[str, list[float]] = {}
    of_examples: dict[str, dict[str, list[float]]] = {}
    of_items: dict[str, dict[str, list[float]]] = {}
    for example in examples:
        score = naive_score(list(example.points), list(example.matched))
        if score is not None:
            overall.setdefault(example.case_id, []).append(score)
            for tag in set(example.tags):
                of_examples.setdefault(tag, {}).setdefault(example.case_id, []).append(score)
        for tag in {tag for tags in example.item_tags for tag in tags}:
            carry = [tag in tags for tags in example.item_tags]
            part = naive_score(
                [p for p, c in zip(example.points, carry, strict=True) if c],
                [m for m, c in zip(example.matched, carry, strict=True) if c],
            )
            if part is not None:
                of_items.setdefault(tag, {}).setdefault(example.case_id, []).append(part)

    def means(rows: dict[str, list[float]]) -> list[float]:
        return [sum(row) / len(row) for row in rows.values()]

    return (
        means(overall),
        {tag: means(rows) for tag, rows in of_examples.items()},
        {tag: means(rows) for tag, rows in of_items.items()},
    )


def test_unit_vector() -> None:
    """7 + 10 - 6 of 22 points that can be earned."""
    assert example_score(POINTS, MET) == 0.5


def test_example_is_never_clipped() -> None:
    """Harm outweighs: (5 - 10) / 5."""
    assert example_score([5, -10], [True, True]) == -1.0


def test_example_with_nothing_to_earn_has_no_score() -> None:
    """0/0 is unknown, whatever harm was done."""
    assert example_score([-5, 0], [True, True]) is None
    assert example_score([], []) is None


def test_missing_decision_is_refused() -> None:
    """A missing decision is never false: on a negative item that would raise the score."""
    with pytest.raises(ValueError, match=r"decisions\[1\]: expected true or false, found None: missing is never false"):
        example_score([1, -1], [True, None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="expected 2, one an item, found 1"):
        example_score([1, -1], [True])


@pytest.mark.parametrize("point", [True, None, "5", float("nan"), float("inf"), 10**400], ids=str)
def test_points_that_are_no_number_are_refused(point: object) -> None:
    """True is not 1, and a meta example's item has no points to score."""
    with pytest.raises(ValueError, match=r"points\[0\]: expected a finite number"):
        example_score([point], [True])  # type: ignore[list-item]


def test_points_too_large_to_add_are_refused() -> None:
    """Infinity is not a score, in one example or in a thousand."""
    with pytest.raises(ValueError, match="sums are finite"):
        example_score([5e-324, -1e308], [False, True])
    with pytest.raises(ValueError, match="sums are finite"):
        scores([Example("c", (5e-324, -1e308), (False, True))])


def test_scores_name_the_case_at_fault() -> None:
    """Of 5,000 examples the message says which."""
    with pytest.raises(ValueError, match=r"case c1: decisions\[0\]: expected true or false, found None"):
        scores([Example("c0", (1,), (True,)), Example("c1", (1,), (None,))])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="case c: item tags: expected 2, found 1"):
        scores([Example("c", (1, 2), (True, True), item_tags=(("a",),))])


def test_bounds_of_the_unit_vector() -> None:
    """With the 10 and the -6 undecided: (7 - 6) / 22 at the worst, 17 / 22 at the best."""
    bounds = example_bounds(POINTS, [True, False, None, None])

    assert (bounds.worst, bounds.best) == (1 / 22, 17 / 22)


@given(st.data())
def test_bounds_are_the_extremes_of_every_imputation(data: st.DataObject) -> None:
    """Filling in the missing decisions in every possible way reaches the bounds and never leaves them."""
    points = data.draw(some_points)
    decided = data.draw(st.lists(st.sampled_from([None, True, False]), min_size=len(points), max_size=len(points)))
    options = [[False, True] if met is None else [met] for met in decided]
    found = [example_score(points, choice) for choice in product(*options)]
    bounds = example_bounds(points, decided)

    if None in found:
        assert (bounds.worst, bounds.best, set(found)) == (None, None, {None})
    else:
        known = [score for score in found if score is not None]
        assert (bounds.worst, bounds.best) == (min(known), max(known))


def test_bounds_refuse_what_a_score_refuses() -> None:
    """Lengths must agree, and 0 is not false."""
    with pytest.raises(ValueError, match="expected 1, one an item, found 2"):
        example_bounds([1], [True, None])
    with pytest.raises(ValueError, match="expected true or false, found 0"):
        example_bounds([1], [0])  # type: ignore[list-item]


@settings(max_examples=60)
@given(st.lists(graded(), max_size=12))
def test_scores_equal_a_second_scorer_of_plain_loops(examples: list[Example]) -> None:
    """Every metric of every tag: values, n and bootstrap deviation."""
    found = scores(examples, samples=40, seed=7)
    overall, of_examples, of_items = naive_scores(examples)

    assert [example_score(e.points, e.matched) for e in examples] == list(found.by_example)
    assert list(found.example_tags) == sorted(of_examples)
    assert list(found.rubric_tags) == sorted(of_items)
    pairs = [(found.example_tags[tag], of_examples[tag]) for tag in of_examples]
    pairs += [(found.rubric_tags[tag], of_items[tag]) for tag in of_items]
    pairs += [(found.overall, overall)] if overall else []
    for ours, column in pairs:
        expected = naive_metric(column, 40, 7)
        assert (ours.value, ours.raw, ours.n, ours.bootstrap_std) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert bool(overall) == (found.overall.value is not None)


@given(st.lists(graded(), min_size=1, max_size=6), st.randoms())
def test_order_of_items_and_examples_leaves_the_means_alone(examples: list[Example], random: object) -> None:
    """The same examples in another order, the items too: every value, raw mean and n."""

    def means(found: Metric) -> list[float]:
        return [] if found.value is None or found.raw is None else [found.value, found.raw, found.n]

    def turned(example: Example) -> Example:
        order = list(range(len(example.points)))[::-1]
        points, matched, tags = (
            tuple(column[i] for i in order) for column in (example.points, example.matched, example.item_tags)
        )
        return Example(example.case_id, points, matched, tags, example.tags)  # type: ignore[arg-type]

    shuffled = [turned(example) for example in examples]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = scores(examples, samples=1), scores(shuffled, samples=1)

    assert means(one.overall) == pytest.approx(means(other.overall), rel=1e-12, abs=1e-12)
    for tags, same in ((one.example_tags, other.example_tags), (one.rubric_tags, other.rubric_tags)):
        assert list(tags) == list(same)
        for tag in tags:
            assert means(tags[tag]) == pytest.approx(means(same[tag]), rel=1e-12, abs=1e-12)


def test_tags_by_hand() -> None:
    """Accuracy earns 7 of 12 and 0 of 5, the negative item alone earns nothing and gives no metric."""
    examples = [
        Example("a", (7, 5, -6), (True, False, True), (("axis:accuracy",), ("axis:accuracy",), ("harm",)), ("x", "y")),
        Example("b", (5,), (False,), (("axis:accuracy",),), ("x",)),
    ]
    found = scores(examples)

    assert list(found.rubric_tags) == ["axis:accuracy"]
    assert found.rubric_tags["axis:accuracy"].raw == pytest.approx((7 / 12 + 0) / 2, rel=1e-15)
    assert found.by_example == (1 / 12, 0.0)
    assert {tag: m.n for tag, m in found.example_tags.items()} == {"x": 2, "y": 1}


def test_one_word_as_example_tag_and_as_rubric_tag_stays_two_metrics() -> None:
    """The example scores 1 / 2, its items of the same name 1."""
    found = scores([Example("a", (1, 1), (True, False), (("same",), ()), ("same",))])

    assert (found.example_tags["same"].value, found.rubric_tags["same"].value) == (0.5, 1.0)


def test_answers_to_one_example_are_nested_in_every_metric() -> None:
    """0 and 1 for a, 0.5 for b: two examples of 0.5 each, not three answers."""
    tags = ((("t",), ("t",)), ("x",))
    a = [Example("a", (1, 1), (met, met), *tags) for met in (False, True)]
    answers = [a[0], Example("b", (1, 1), (True, False), *tags), a[1]]
    found = scores(answers)

    assert found.by_example == (0.0, 0.5, 1.0)
    for metric in (found.overall, found.example_tags["x"], found.rubric_tags["t"]):
        assert metric == Metric(0.5, 0.5, 2, 0.0, 0.5, 0.5)
    assert scores(answers, pooled=True).overall.n == 3


def test_tag_given_twice_counts_once() -> None:
    """On an item it would double its points, on an example its weight."""
    found = scores([Example("a", (1, 3), (True, False), (("t", "t"), ("t",)), ("x", "x"))])

    assert (found.rubric_tags["t"].value, found.example_tags["x"].n) == (0.25, 1)


def test_examples_without_tags_have_an_overall_only() -> None:
    """Professional's items carry no tags."""
    found = scores([Example("a", POINTS, MET), Example("b", (-1,), (True,))])

    assert (found.overall.value, found.overall.n, found.by_example) == (0.5, 1, (0.5, None))
    assert (found.example_tags, found.rubric_tags) == ({}, {})
    assert scores([]).overall == Metric(None, None, 0)


@pytest.mark.parametrize(("n_chars", "adjusted"), [(2000, 1.0), (2500, 0.9853), (1500, 1.0147)])
def test_length_adjustment_as_published_for_professional(n_chars: int, adjusted: float) -> None:
    """0.0147 per 500 code points around 2,000; a short perfect answer exceeds 1."""
    assert adjusted_score(1.0, n_chars, center=2000, penalty=0.0147) == pytest.approx(adjusted, abs=1e-15)


def test_length_adjusted_mean_is_clipped_after_averaging() -> None:
    """1.0147 and 0.5 average 0.75735; 1.0147 alone clips to 1, and an example without a score stays out."""
    both = length_adjusted([1.0, 0.5, None], [1500, 2000, None], center=2000, penalty=0.0147)
    alone = length_adjusted([1.0], [1500], center=2000, penalty=0.0147)

    assert [both.raw, both.n] == pytest.approx([(1.0147 + 0.5) / 2, 2], abs=1e-15)
    assert [alone.value, alone.raw] == pytest.approx([1.0, 1.0147], abs=1e-15)


def test_length_adjustment_refuses_what_it_cannot_know() -> None:
    """An unknown length is not 0, and a negative penalty would pay for length."""
    with pytest.raises(ValueError, match=r"lengths\[1\]: expected the length of a scored answer"):
        length_adjusted([1.0, 0.5], [10, None], center=2000, penalty=0.01)
    with pytest.raises(ValueError, match="expected 2, one an answer, found 1"):
        length_adjusted([1.0, 0.5], [10], center=2000, penalty=0.01)
    for center, penalty in ((-1, 0.01), (2000, -0.01), (float("nan"), 0.01)):
        with pytest.raises(ValueError, match="expected a centre and a penalty >= 0"):
            length_adjusted([1.0], [10], center=center, penalty=penalty)
