"""What another evaluator's file says of its own numbers, beside the run rescored from that file's verdicts.

In: an imported run with the numbers its file records. Out: our `Scores` of the same verdicts, counted as the file
counts them; one line for each number that differs, and for each that could not be compared. No recorded number is taken
over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from eval.healthbench.examples import graded_examples
from eval.healthbench.metrics import Metric
from eval.healthbench.scores import Scores, length_adjusted, scores
from eval.judging.graded import RunData
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED

OVERALL: Final = "overall_score"
OVERALL_RAW: Final = "overall_score:raw"
LENGTH_ADJUSTED: Final = "overall_score_length_adjusted"

TOLERANCE: Final = 1e-9
"""Beyond this two scores, or two means, differ."""

STD_RATIO: Final = 0.2
STD_TOLERANCE: Final = 1e-3
"""Two bootstrap deviations differ beyond a fifth of the larger plus this: their streams are not seeded. With B = 1,000
resamples one deviation scatters by 1 / sqrt(2 B) = 2.2%, the difference of two by 3.2%; a fifth is six times that. The
absolute part is for means near 0 or 1, where few resamples leave the clipped value."""


@dataclass(frozen=True, slots=True)
class RecordedMetric:
    """A metric as its file states it: mean, number of values, bootstrap deviation; None where it states none."""

    mean: float | None
    n_samples: int | None = None
    bootstrap_std: float | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The numbers that a file states of its own verdicts.

    `metrics` are by name: overall_score, its raw mean under overall_score:raw where stated, and tags in one name space.
    `example_scores` run with the imported run's cases. `complete`: the file's format states every tag it scores.
    `example_tags`: whether the example tags are known, from the file or from the data. `pooled`: the file counts every
    answer to an example as one more example; else it averages an example's answers first.
    """

    score: float | None
    metrics: Mapping[str, RecordedMetric]
    example_scores: tuple[float | None, ...]
    complete: bool
    example_tags: bool
    pooled: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """A run read from another evaluator's file, and what the file says of its scores."""

    run: RunData
    recorded: Recorded


def rescore(imported: Imported, *, samples: int = HEALTHBENCH_SAMPLES, seed: int = SEED) -> Scores:
    """Return our scores of an imported run's graded cases, several answers to an example counted as its file does."""
    examples = graded_examples(imported.run.cases)
    return scores(examples, pooled=imported.recorded.pooled, samples=samples, seed=seed)


def adjust(imported: Imported, rescored: Scores, *, samples: int, seed: int, **rule: float) -> Metric | None:
    """Return our length-adjusted score, every answer counted as the file counts it; None where a length is unknown.

    Args:
        rescored: As `rescore` gives them.
        rule: The centre and the penalty, as `length_adjusted` takes them.
    """
    lengths = [case.n_chars for case in imported.run.cases if case.matched is not None]
    if None in lengths or not imported.recorded.pooled:  # files that average an example's answers state no such score
        return None
    return length_adjusted(rescored.by_example, lengths, samples=samples, seed=seed, **rule)


def differences(imported: Imported, rescored: Scores, *, adjusted: Metric | None = None) -> tuple[str, ...]:
    """Return a line for each recorded number that is not ours, examples first, then metrics by name.

    Args:
        rescored: As `rescore` gives them: of the run's graded cases in their order.
        adjusted: Our length-adjusted score, if it was asked for; it needs a centre and a penalty, which no file states.

    Raises:
        ValueError: the scores are not those of the run's graded cases.
    """
    recorded = imported.recorded
    lines = [*_example_lines(imported, rescored)]
    if _differ(recorded.score, rescored.overall.value):
        lines.append(_line("score", "", recorded.score, rescored.overall.value))
    apart: list[str] = []
    for name, metric in sorted(recorded.metrics.items()):
        ours = _ours(name, rescored, adjusted)
        if ours is None:
            apart.append(name)
        else:
            lines += _metric_lines(name, metric, ours)
    return (*lines, *_apart_lines(apart, recorded, rescored), *_missing_lines(recorded, rescored))


def _example_lines(imported: Imported, rescored: Scores) -> Iterator[str]:
    both = zip(imported.run.cases, imported.recorded.example_scores, strict=True)
    graded = [(case, score) for case, score in both if case.matched is not None]
    if len(graded) != len(rescored.by_example):
        raise ValueError(f"expected scores of {len(graded)} graded cases, found {len(rescored.by_example)}")
    for (case, recorded), ours in zip(graded, rescored.by_example, strict=True):
        if _differ(recorded, ours):
            yield _line(f"case {case.case_id}, answer {case.answer_repeat}", "score ", recorded, ours)


def _ours(name: str, rescored: Scores, adjusted: Metric | None) -> Metric | None:
    if name in (OVERALL, OVERALL_RAW, "score"):
        return rescored.overall
    if name == LENGTH_ADJUSTED:
        return adjusted
    found = [tags[name] for tags in (rescored.example_tags, rescored.rubric_tags) if name in tags]
    return found[0] if len(found) == 1 else None


def _metric_lines(name: str, recorded: RecordedMetric, ours: Metric) -> Iterator[str]:
    mean = ours.raw if name == OVERALL_RAW else ours.value
    if _differ(recorded.mean, mean):
        yield _line(name, "mean ", recorded.mean, mean)
    if recorded.n_samples is not None and recorded.n_samples != ours.n:
        yield f"{name}: recorded n {recorded.n_samples}, rescored {ours.n}"
    if _deviations_differ(recorded.bootstrap_std, ours.bootstrap_std):
        within = f"more than {STD_RATIO:.0%} + {STD_TOLERANCE} apart"
        yield f"{_line(name, 'bootstrap deviation ', recorded.bootstrap_std, ours.bootstrap_std)}, {within}"


def _apart_lines(names: Sequence[str], recorded: Recorded, rescored: Scores) -> Iterator[str]:
    """Say which recorded metrics have no single counterpart here, and why."""
    twice = [name for name in names if name in rescored.example_tags and name in rescored.rubric_tags]
    other = [name for name in names if name not in twice and name != LENGTH_ADJUSTED]
    if LENGTH_ADJUSTED in names:
        yield f"not compared: {LENGTH_ADJUSTED}: the file states no centre and no penalty; give both"
    if twice:
        yield f"not compared: {', '.join(twice)}: an example tag and a rubric tag, which the file mixes under one name"
    if other and not recorded.example_tags:
        yield f"not compared: {', '.join(other)}: the file holds no example tags; name the data it was run on"
    elif other:
        yield f"recorded, not rescored: {', '.join(other)}: no graded example or item has such a tag"


def _missing_lines(recorded: Recorded, rescored: Scores) -> Iterator[str]:
    missing = sorted((rescored.example_tags.keys() | rescored.rubric_tags.keys()) - recorded.metrics.keys())
    if recorded.complete and missing:
        yield f"rescored, not recorded: {', '.join(missing)}"


def _differ(recorded: float | None, ours: float | None) -> bool:
    """Whether two scores are not the same; what is not stated cannot differ from a number, nothing from something can.

    A recorded None is a number that the file leaves out.
    """
    if recorded is None:
        return False
    return ours is None or not abs(recorded - ours) <= TOLERANCE


def _deviations_differ(recorded: float | None, ours: float | None) -> bool:
    if recorded is None or ours is None:
        return False
    return not abs(recorded - ours) <= STD_RATIO * max(recorded, ours) + STD_TOLERANCE


def _line(what: str, which: str, recorded: float | None, ours: float | None) -> str:
    found = "none" if ours is None else repr(ours)
    return f"{what}: recorded {which}{recorded!r}, rescored {found}"
