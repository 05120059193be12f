"""Recorded numbers beside ours: what differs is a line, what cannot be compared is said, nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eval.healthbench.examples import graded_examples
from eval.healthbench.metrics import Metric
from eval.healthbench.recorded import Imported, Recorded, RecordedMetric, differences, rescore
from eval.healthbench.scores import scores
from eval.judging.graded import GradedCase, RunData

# Two examples: 3/4 and 1/2; the item tag `axis:a` stands on all items, the name `both` on an example and on its items.
CASES = (
    GradedCase("a", "healthbench", "healthbench", 0, ("a_0", "a_1"), (3, 1), (True, False), "graded", tags=("both",)),
    GradedCase(
        "b", "healthbench", "healthbench", 0, ("b_0", "b_1"), (2, 2), (False, True), "graded", tags=("theme:b",)
    ),
)
TAGGED = tuple(replace(case, item_tags=(("axis:a", "both"), ("axis:a",))) for case in CASES)
OURS = scores(graded_examples(TAGGED))
SAME = Recorded(
    score=0.625,
    metrics={
        "overall_score": RecordedMetric(0.625, 2, 0.0884),
        "axis:a": RecordedMetric(0.625, 2, 0.0884),
        "theme:b": RecordedMetric(0.5, 1, 0.0),
    },
    example_scores=(0.75, 0.5),
    complete=False,
    example_tags=True,
    pooled=True,
)


def lines(recorded: Recorded, adjusted: Metric | None = None) -> tuple[str, ...]:
    """Return the differences between what is recorded and our scores of the two examples."""
    imported = Imported(RunData("p", TAGGED, (0, 1)), recorded)
    return differences(imported, OURS, adjusted=adjusted)


def recorded_with(**metrics: RecordedMetric) -> Recorded:
    """Return the agreeing numbers with some metrics put in their place or beside them."""
    return replace(SAME, metrics={**SAME.metrics, **metrics})


def test_equal_numbers_give_no_line() -> None:
    """Two values deviate by sd / sqrt(n) = 0.125 / sqrt(2) = 0.0884; a stream of its own comes close to that."""
    assert lines(SAME) == ()


@pytest.mark.parametrize(("mean", "expected"), [(0.625 + 9e-10, 0), (0.625 + 2e-9, 1)])
def test_means_differ_beyond_a_billionth(mean: float, expected: int) -> None:
    """Sums in another order differ in the last bits; anything more is a difference."""
    assert len(lines(recorded_with(overall_score=RecordedMetric(mean)))) == expected


@pytest.mark.parametrize(("deviation", "expected"), [(0.1, 0), (0.075, 0), (0.13, 1), (0.05, 1), (0.0, 1)])
def test_deviations_differ_beyond_a_fifth(deviation: float, expected: int) -> None:
    """An unseeded stream of 1,000 resamples scatters by a few percent, not by a third."""
    assert len(lines(recorded_with(overall_score=RecordedMetric(0.625, 2, deviation)))) == expected


def test_numbers_that_are_not_stated_do_not_differ() -> None:
    """A file may leave a mean, an n or an example's score out."""
    bare = replace(recorded_with(overall_score=RecordedMetric(None)), score=None, example_scores=(None, None))

    assert lines(bare) == ()


def test_one_name_for_two_tags_is_not_compared() -> None:
    """A file with one name space mixes an example tag and an item tag of the same name: no number of ours is that."""
    (line,) = lines(recorded_with(both=RecordedMetric(0.9)))

    assert line == "not compared: both: an example tag and a rubric tag, which the file mixes under one name"


def test_a_tag_of_no_case_is_said() -> None:
    """A recorded tag that no graded example has is listed as such, if the example tags are known at all."""
    (line,) = lines(recorded_with(**{"theme:z": RecordedMetric(0.9)}))

    assert line == "recorded, not rescored: theme:z: no graded example or item has such a tag"


def test_a_tag_that_the_file_lacks_is_said_where_it_states_all() -> None:
    """A format that states every tag it scores is missed a tag; one that states some is not."""
    complete = replace(SAME, metrics={"overall_score": SAME.metrics["overall_score"]}, complete=True)

    assert lines(complete) == ("rescored, not recorded: axis:a, both, theme:b",)
    assert lines(replace(complete, complete=False)) == ()


def test_length_adjustment_needs_its_two_numbers() -> None:
    """No file states centre and penalty: the adjusted mean is compared once ours was asked for."""
    recorded = recorded_with(overall_score_length_adjusted=RecordedMetric(0.7))
    (line,) = lines(recorded)

    assert line.startswith("not compared: overall_score_length_adjusted: the file states no centre and no penalty")
    assert lines(recorded, Metric(0.7, 0.7, 2)) == ()
    assert lines(recorded, Metric(0.6, 0.6, 2)) == ("overall_score_length_adjusted: recorded mean 0.7, rescored 0.6",)


@pytest.mark.parametrize(("pooled", "value", "n"), [(True, 0.75, 3), (False, 0.6875, 2)])
def test_answers_count_as_the_file_counts_them(pooled: bool, value: float, n: int) -> None:
    """3/4 and 1 for one example, 2/4 for the other: (0.75 + 1 + 0.5)/3 pooled, (0.875 + 0.5)/2 averaged first."""
    again = replace(TAGGED[0], answer_repeat=1, matched=(True, True))
    cases = (TAGGED[0], again, TAGGED[1])
    imported = Imported(RunData("p", cases, (0, 1, 2)), replace(SAME, example_scores=(None,) * 3, pooled=pooled))
    found = rescore(imported).overall

    assert (found.value, found.n) == (value, n)


def test_scores_of_another_run_are_refused() -> None:
    """There must be one score of ours for each graded case."""
    imported = Imported(RunData("p", TAGGED[:1], (0,)), replace(SAME, example_scores=(0.75,)))

    with pytest.raises(ValueError, match="expected scores of 1 graded cases, found 2"):
        differences(imported, OURS)
