"""Read a HealthBench `*_allresults.json` of openai/simple-evals (or of a fork of the same form) into a `RunData`.

In: the file, and where the data is at hand its examples by prompt id: their rubrics must be the file's, and they have
the example tags, of which the file holds only metrics.
Out: the run with the file's own verdicts, to be scored again, and the numbers that the file states.

The form (simple-evals `healthbench_eval.py` and `simple_evals.py`): {score, metrics {name, name:n_samples,
name:bootstrap_std}, htmls, convos, metadata {example_level_metadata [{score, usage, rubric_items [{criterion, points,
tags, criteria_met, explanation}], prompt, completion [message], prompt_id, completion_id}]}}. Repeats and the four
reference completions of an example come as further examples with its prompt id: here its answers 0, 1, ... in the order
in which they appear. The file names no model, no grader and no subset; the subset is taken from the file's name, which
begins with it as simple-evals writes it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from builder.errors import BadInput
from builder.healthbench.names import CONFIGS, CORE, META, SUITE
from builder.rules.problems import shown
from eval.healthbench.foreign import (
    MOST_LISTED,
    Judged,
    an_object,
    finite,
    judged_case,
    list_at,
    load,
    read_file,
    read_items,
    state_counts,
    text_at,
    undecided_notices,
    uneven_notices,
)
from eval.healthbench.known import known_example
from eval.healthbench.recorded import Imported, Recorded, RecordedMetric
from eval.judging.graded import GradedCase, RunData

if TYPE_CHECKING:
    from eval.cases import Case

PROTOCOL: Final = "healthbench+simple-evals"
SUFFIX: Final = "_allresults.json"
STAND_IN: Final = "No response (bad request)."
"""What the reference evaluator grades in place of an answer when a server refuses its request."""

_HEAD_BYTES: Final = 4096
_HEAD: Final = re.compile(rb'\A\s*\{\s*"score"\s*:[^,{\[]*,\s*"metrics"\s*:\s*\{')
_STATS: Final = {":n_samples": "n_samples", ":bootstrap_std": "bootstrap_std"}
_TOKENS: Final = {
    "input": "input_tokens",
    "cached": "input_cached_tokens",
    "output": "output_tokens",
    "reasoning": "output_reasoning_tokens",
}


@dataclass(frozen=True, slots=True)
class _Example:
    """One answer of the file: its case, its own score, and what its place in the file says of it."""

    case: GradedCase
    score: float | None
    answer: str
    usage: Mapping[str, Any]
    renamed: bool


def is_simple_evals(path: Path) -> bool:
    """Whether a file looks like a results file of simple-evals: by its name, or by how it begins. Reads 4 KB."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    named = path.name.endswith(SUFFIX) and head.lstrip()[:1] == b"{"
    return named or _HEAD.match(head) is not None


def read_simple_evals(path: Path, *, known: Mapping[str, Case] | None = None) -> Imported:
    """Return the run that a results file holds, in the order in which its examples first appear, and its own numbers.

    Args:
        known: Prompt id -> example of the data that was run; without them only items' tags can be scored again.

    Raises:
        BadInput: the file is not of this form, an example's verdicts do not fit together, or it is not that of the
            data.
    """
    fields = load(read_file(path), str(path))
    for bulk in ("htmls", "convos"):  # nine tenths of the file, and nothing in them that is not elsewhere
        fields.pop(bulk, None)
    config = _config(path)
    examples = _examples(path, fields, config, known)
    order = _by_case(examples)
    ordered = [examples[index] for index in order]
    cases = tuple(example.case for example in ordered)
    places = {index: place for place, index in enumerate(order)}
    graded = [index for index, example in enumerate(examples) if example.case.matched is not None]
    run = RunData(
        protocol_version=PROTOCOL,
        cases=cases,
        file_order=tuple(places[index] for index in graded),
        suite=SUITE,
        config=config,
        states=state_counts(cases),
        usage=_usage(examples),
        notices=tuple(_notices(ordered, known_tags=known is not None)),
    )
    return Imported(run, _recorded(path, fields, ordered, known_tags=known is not None))


def _config(path: Path) -> str:
    """Return the subset that a file's name begins with, the longest first; the core set where it names none."""
    named = [config for config in CONFIGS if re.match(rf"{config}(_|\.|$)", path.name)]
    return max(named, key=len, default=CORE)


def _examples(path: Path, fields: Mapping[str, Any], config: str, known: Mapping[str, Case] | None) -> list[_Example]:
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict) or "example_level_metadata" not in metadata:
        why = "a meta-evaluation's file holds no single verdicts" if config == META else "a smaller metrics file?"
        raise BadInput(f"{path}: expected metadata.example_level_metadata, with the verdicts, found none; {why}")
    where = f"{path}: metadata"
    values = list_at(metadata, "example_level_metadata", where)
    if not values:
        raise BadInput(f"{where}.example_level_metadata: expected examples, found an empty array")
    found: list[_Example] = []
    seen: dict[str, list[Judged]] = {}
    for index, value in enumerate(values):
        found.append(_example(value, f"{where}.example_level_metadata[{index}]", config, known, seen))
    return found


def _example(
    value: Any, where: str, config: str, known: Mapping[str, Case] | None, seen: dict[str, list[Judged]]
) -> _Example:
    fields = an_object(value, where)
    prompt_id = text_at(fields, "prompt_id", where)
    judged = read_items(list_at(fields, "rubric_items", where), f"{where}.rubric_items", verdict="criteria_met")
    earlier = seen.setdefault(prompt_id, [])
    if earlier and not earlier[0].same_rubric(judged):
        raise BadInput(f"{where}.rubric_items: expected the rubric of the first answer to {prompt_id}, found another")
    tags: Sequence[str] = ()
    if known is not None:
        tags = known_example(known, prompt_id, judged, where=where, items=f"{where}.rubric_items").tags
    earlier.append(judged)
    answer = _answer(fields, where)
    case = judged_case(
        prompt_id,
        judged,
        config=config,
        answer_repeat=len(earlier) - 1,
        tags=tags,
        n_chars=len(answer),
    )
    usage = fields.get("usage")
    return _Example(
        case=case,
        score=finite(fields.get("score")),
        answer=answer,
        usage=usage if isinstance(usage, dict) else {},
        renamed=fields.get("completion_id") != completion_id(prompt_id, answer),
    )


def completion_id(prompt_id: str, answer: str) -> str:
    """Return the id of an answer: SHA-256 of the prompt id with the answer behind it."""
    return hashlib.sha256(f"{prompt_id}{answer}".encode("utf-8", "surrogatepass")).hexdigest()


def _answer(fields: Mapping[str, Any], where: str) -> str:
    messages = list_at(fields, "completion", where)
    if len(messages) != 1:
        raise BadInput(f"{where}.completion: expected one message, found {len(messages)}")
    return text_at(
        an_object(messages[0], f"{where}.completion[0]"), "content", f"{where}.completion[0]", may_be_empty=True
    )


def _by_case(examples: Sequence[_Example]) -> list[int]:
    """Return the examples' places sorted by where their case first appears, then by answer."""
    first: dict[str, int] = {}
    for index, example in enumerate(examples):
        first.setdefault(example.case.case_id, index)
    return sorted(range(len(examples)), key=lambda index: (first[examples[index].case.case_id], index))


def _usage(examples: Sequence[_Example]) -> dict[str, dict[str, int]]:
    """Return the answers' tokens; the file counts none of the grader."""
    sums = {
        name: sum(value for example in examples if isinstance(value := example.usage.get(theirs), int))
        for name, theirs in _TOKENS.items()
    }
    return {"answer": sums} if any(sums.values()) else {}


def _recorded(path: Path, fields: Mapping[str, Any], examples: Sequence[_Example], *, known_tags: bool) -> Recorded:
    metrics = an_object(fields.get("metrics"), f"{path}: metrics")
    stated: dict[str, dict[str, Any]] = {}
    for key, value in metrics.items():
        suffix = next((suffix for suffix in _STATS if key.endswith(suffix)), "")
        name, stat = key.removesuffix(suffix), _STATS.get(suffix, "mean")
        number = finite(value)
        if number is None:
            raise BadInput(f"{path}: metrics[{shown(key)}]: expected a finite number, found {shown(value)}")
        stated.setdefault(name, {})[stat] = number
    return Recorded(
        score=finite(fields.get("score")),
        metrics={name: RecordedMetric(**{"mean": None} | stats) for name, stats in stated.items()},
        example_scores=tuple(example.score for example in examples),
        complete=True,
        example_tags=known_tags,
        pooled=True,
    )


def _notices(examples: Sequence[_Example], *, known_tags: bool) -> Iterator[str]:
    cases = [example.case for example in examples]
    yield "read from a results file of simple-evals, which names no model and no grader; rescored from its verdicts"
    if not known_tags:
        yield "the file holds no example tags: name the data it was run on to score them"
    yield from _repeat_notices(cases)
    yield from undecided_notices(cases)
    for what, answer in (("the evaluator's stand-in for a refused request", STAND_IN), ("without any text", "")):
        if n := sum(example.answer.strip() == answer for example in examples):
            yield f"{n} of {len(cases)} answers are {what}: graded by the evaluator, so they count here too"
    renamed = [example.case for example in examples if example.renamed]
    for case in renamed[:MOST_LISTED]:
        yield f"case {case.case_id}, answer {case.answer_repeat}: completion_id is not that of the answer: edited?"
    if len(renamed) > MOST_LISTED:
        yield f"{len(renamed) - MOST_LISTED} more answers whose completion_id is not theirs"


def _repeat_notices(cases: Sequence[GradedCase]) -> Iterator[str]:
    n_examples = len({case.case_id for case in cases})
    if n_examples < len(cases):
        counted = f"{len(cases)} answers to {n_examples} examples"
        yield f"the file counts {counted} as so many examples: its deviations are too small"
    yield from uneven_notices(cases)
