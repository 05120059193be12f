"""Check a JSONL file of HealthBench in one pass: every rule of every line, between lines, and of the file.

In: an opened file. Out: one report with every problem in the order of the lines, and the examples of the lines that
break no rule. Not done here: the rules of a line (`example_rules`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from builder.dataset.rows import Progress
from builder.healthbench.example_rules import ID_FIELD, check_record, shape_of
from builder.healthbench.lines import Line, read_lines
from builder.healthbench.objects import (
    CORE_SHAPE,
    META_SHAPE,
    Example,
    configs_of_shape,
    make_object,
    meta_id,
    shape_of_config,
)
from builder.healthbench.source import ExampleFile, config_of_file
from builder.healthbench.tally import Spot, Tally
from builder.rules.problems import At, Problem, Report, shown
from builder.tree.strict_json import parse

MAX_PROBLEMS: Final = 100_000
"""Listed at most: a file of garbage must not take all memory. Reading ends there."""
MAX_PROBLEMS_PER_LINE: Final = 1000

_RUBRICS: Final = ("rubrics", "rubric_items")
_LICENCE_HINT: Final = "name it with --license ID, such as --license mit"


@dataclass(frozen=True, slots=True)
class FileKind:
    """The shape of a file's lines, the line that told it (0: none did), and the config of its mirror."""

    shape: str
    line: int
    config: str
    problems: tuple[Problem, ...] = ()


def kind_of(file: ExampleFile, *, config: str | None = None) -> FileKind:
    """Return what a file is, from its first line that tells.

    Args:
        config: the one that a person names; a problem where it does not fit the shape.
    """
    lines = (line for line in read_lines(file.content, file.name) if isinstance(line, Line) and line.record)
    told = ((line.number, shape) for line in lines if (shape := shape_of(line.record or {})))
    number, shape = next(told, (0, shape_of_config(config) if config else CORE_SHAPE))
    fitting = configs_of_shape(shape)
    if config is None or config in fitting:
        return FileKind(shape, number, config or config_of_file(file.name, shape))
    expected = f"{' or '.join(fitting)}: the lines have the {shape} shape"
    wrong = At(file.name, None).error("config", "--config", config, expected)
    return FileKind(shape, number, fitting[0], (wrong,))


def check_examples(
    file: ExampleFile,
    *,
    config: str | None = None,
    license_id: str | None = None,
    on_example: Callable[[Example], None] | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Check a file and return its report; lines are read one at a time and not kept.

    Args:
        config: the config of its mirror, where its name does not tell it.
        license_id: the licence that a person names for it.
        on_example: called with the example of each line that breaks no rule, in order.
    """
    kind = kind_of(file, config=config)
    walk = _Walk(kind, on_example)
    problems = [*kind.problems, *_licence_problems(file, license_id)]
    for line in read_lines(file.content, file.name):
        problems += walk.take(line)
        if on_progress and walk.n_examples % 128 == 0:
            on_progress("check", walk.n_examples)
        if len(problems) > MAX_PROBLEMS:
            problems[MAX_PROBLEMS:] = [_too_many(file.name)]
            break
    if not walk.n_examples or any(problem.rule == "json-syntax" for problem in problems):
        problems = _whole_file(file, problems, n_examples=walk.n_examples)
    return Report(
        problems=(*problems, *walk.tally.problems(file.name)),
        n_cases=walk.n_examples,
        n_items=walk.n_items,
        panels={kind.config: walk.n_examples},
        license=license_id or file.license,
    )


@dataclass(slots=True)
class _Walk:
    """One pass over a file: what was counted, and what the rules between lines need to remember."""

    kind: FileKind
    on_example: Callable[[Example], None] | None
    n_examples: int = 0
    n_items: int = 0
    tally: Tally = field(default_factory=Tally)
    ids: dict[str, int] = field(default_factory=dict)
    repeats: Counter[str] = field(default_factory=Counter)

    def take(self, line: Line | int) -> list[Problem]:
        """Return the problems of the next line, and hand its example on if none is an error."""
        if isinstance(line, int):
            self.tally.add("blank-line", None, "a blank line", "an example a line", line=line, hint=None)
            return []
        if line.record is None:
            return list(line.problems)
        record, shape = line.record, self.kind.shape
        self.n_examples += 1
        self.n_items += _n_items(record, shape)
        at = At(line.file, _own_id(record, shape))
        if (found := shape_of(record) or shape) != shape:
            expected = f"the {shape} shape, as line {self.kind.line:,} has"
            return [at.error("mixed-shapes", None, f"the {found} shape", expected, "one file holds one shape")]
        spot = Spot(at, line.number, self.tally)
        problems = [*check_record(spot, line, record, shape), *self._repeated_id(spot)]
        if len(problems) > MAX_PROBLEMS_PER_LINE:
            limit = f"{MAX_PROBLEMS_PER_LINE:,}"
            more = at.error("more-problems", None, f"more than {limit}", "an example", f"only {limit} are listed")
            problems[MAX_PROBLEMS_PER_LINE:] = [more]
        if not any(problem.severity == "error" for problem in problems):
            self._hand_on(spot, record)
        return problems

    def _repeated_id(self, spot: Spot) -> Iterator[Problem]:
        if spot.at.case_id is None:
            return
        if (first := self.ids.setdefault(spot.at.case_id, spot.line)) != spot.line:
            found = f"{shown(spot.at.case_id)}, the id of line {first:,}"
            yield spot.at.error("duplicate-id", ID_FIELD[self.kind.shape], found, "an id of its own")

    def _hand_on(self, spot: Spot, record: dict[str, Any]) -> None:
        case_id = spot.at.case_id or self._meta_id(spot, record)
        if self.on_example:
            self.on_example(make_object(record, self.kind.shape, case_id=case_id))

    def _meta_id(self, spot: Spot, record: dict[str, Any]) -> str:
        """Return a meta record's id; the very same record again gets the number of its time behind it."""
        own = meta_id(record)
        self.repeats[own] += 1
        if (n := self.repeats[own]) == 1:
            self.ids[own] = spot.line
            return own
        found = f"the prompt, completion, category and rubric of line {self.ids[own]:,}"
        hint = "it is kept, with an id that ends with its number"
        spot.count("duplicate-record", None, found, "a record of its own", hint)
        return f"{own}-{n}"


def _own_id(record: dict[str, Any], shape: str) -> str | None:
    """Return the id that a line has, None where it has none that can be one."""
    own = record.get(ID_FIELD[shape]) if shape != META_SHAPE else None
    return own if isinstance(own, str) and own.strip() and own.isprintable() else None


def _n_items(record: dict[str, Any], shape: str) -> int:
    if shape == META_SHAPE:
        return 1
    items = next((record[name] for name in _RUBRICS if name in record), None)
    return len(items) if isinstance(items, list) else 0


def _too_many(name: str) -> Problem:
    found = f"more than {MAX_PROBLEMS:,} problems"
    return At(name, None).error("more-problems", None, found, "examples", "only these are listed; nothing was read on")


def _whole_file(file: ExampleFile, problems: list[Problem], *, n_examples: int) -> list[Problem]:
    """Return the problems of a file some of whose lines are none; that it is one JSON value over many says it all."""
    at = At(file.name, None)
    value, faults = parse(file.content) if problems else (None, ())
    if isinstance(value, dict | list) and not faults:
        hint = "write each example on a line of its own" if isinstance(value, list) else None
        return [at.error("not-json-lines", None, "one JSON value over several lines", "an example a line", hint)]
    none = at.error("no-examples", None, "none", "at least one example, one a line")
    return problems if n_examples else [*problems, none]


def _licence_problems(file: ExampleFile, given: str | None) -> Iterator[Problem]:
    at = At(file.name, None)
    stated = ", ".join(f"{shown(one.license)} in {one.file}" for one in file.statements)
    if any(one.license != file.license for one in file.statements):
        yield at.warning("license-conflict", "license", stated, "one licence throughout")
    if given is not None or file.license is not None:
        return
    if file.beside:
        found = f"{', '.join(file.beside)} in a folder that holds other things too"
        yield at.warning("license-beside", "license", found, "a folder of such files and texts alone", _LICENCE_HINT)
    else:
        yield at.warning("license-unknown", "license", "none beside the file", "a licence", _LICENCE_HINT)
