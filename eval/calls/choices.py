"""What a person chose for a run -> its plan: the data read and checked, the cases selected, the texts loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builder.errors import BadInput
from builder.healthbench.names import META
from eval.calls.answers import completions, read_answers
from eval.calls.builtin import POLICIES, VERBATIM_JUDGE
from eval.calls.judges import MOST_TEMPERATURE, check_jury, is_temperature, plain
from eval.calls.plan import STANDARD_LIMITS, Judge, Limits, Model, Plan, Reading
from eval.cases import CaseSet, read_cases, select_cases
from eval.healthbench.protocol import read_template
from eval.judging.protocol import ANSWER_TEMPERATURE
from eval.judging.suites import HEALTHBENCH_SUITE, Suite, suite_of
from eval.judging.texts import Prompts


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person chose for a run: the options of `bedside-bench run`, keys and models resolved.

    `answers` is a file, or one of `COMPLETIONS`: the answers that the data themselves hold. `grouping` is the suite's
    own where None. `repo` and `revision` name the repository that the mirror itself was read from, and its commit.
    """

    mirror: Path
    answer: Model | None
    judges: tuple[Judge, ...]
    config: str | None = None
    panels: tuple[str, ...] = ()
    smoke: bool = False
    limit: int | None = None
    groups: tuple[str, ...] = ()
    answers: Path | str | None = None
    answer_repeats: int = 1
    system: Path | None = None
    grader_template: Path | None = None
    temperature: float = ANSWER_TEMPERATURE
    reasoning_effort: str | None = None
    answer_vendor: str | None = None
    grouping: str | None = None
    repeats: int = 1
    limits: Limits = STANDARD_LIMITS
    repo: str | None = None
    revision: str | None = None


def make_plan(choices: Choices) -> Plan:
    """Return the plan of a run: its data read and checked, its cases selected, its texts loaded.

    Raises:
        BadInput: a file is missing or wrong, a number is no bound, a builtin is unknown, or the selection is empty.
        DigestMismatch: the mirror was changed after it was built.
    """
    _check_numbers(choices)
    file = choices.answers if isinstance(choices.answers, Path) else None
    kind = choices.answers if isinstance(choices.answers, str) else None
    given = read_answers(file) if file else None
    if choices.answer is None and given is None and kind is None:
        raise BadInput("expected an answer model or a file of answers, found neither; name one with --answer-model")
    if not choices.judges:
        raise BadInput("expected a judge model, found none; name one with --judge-model")
    _check_names(choices)
    _check_builtin(choices.answer if choices.answers is None else None, choices.judges)
    check_jury([judge.model.name for judge in choices.judges])
    data = read_cases(choices.mirror, repo=choices.repo, revision=choices.revision)
    _check_suite(choices, data)
    selection = _selection(choices, data, kind)
    cases = tuple(select_cases(data.cases, **selection))
    if kind is not None:
        given = completions(cases, kind)
    return Plan(
        data=data,
        cases=cases,
        selection=selection,
        answer=choices.answer or Model((given and given.model) or "given answers"),
        judges=choices.judges,
        answer_vendor=choices.answer_vendor or (given.vendor if given else None),
        reading=_reading(
            choices,
            suite_of(data.suite, choices.grouping),
            answer_repeats=given.repeats(cases) if given else None,
        ),
        reasoning_effort=choices.reasoning_effort,
        given=given,
        limits=choices.limits,
    )


def _reading(choices: Choices, suite: Suite, *, answer_repeats: int | None) -> Reading:
    """Return how replies are asked for and read; `answer_repeats` is that of given answers."""
    policy = choices.answer is not None and choices.answer.builtin
    return Reading(
        prompts=_prompts(choices, suite),
        grouping=choices.grouping or suite.grouping,
        repeats=choices.repeats,
        answer_repeats=answer_repeats or choices.answer_repeats,
        answer_temperature=plain(choices.temperature) if answer_repeats is None and not policy else None,
    )


def _selection(choices: Choices, data: CaseSet, kind: str | None) -> dict[str, Any]:
    """Return the selection as a run's identity holds it (formats.md 4); what only some suites have only where given."""
    selection: dict[str, Any] = {
        "panels": [panel for panel in data.panels if panel in choices.panels] if choices.panels else None,
        "smoke": choices.smoke,
        "limit": choices.limit,
    }
    unknown = [panel for panel in choices.panels if panel not in data.panels]
    if unknown:
        selection["panels"] = list(choices.panels)  # `select_cases` says what is wrong
    if kind is not None:
        selection["completions"] = kind
    if choices.groups:
        selection["groups"] = sorted(set(choices.groups))
    return selection


def _check_suite(choices: Choices, data: CaseSet) -> None:
    """Stop at a choice that the data's suite does not have."""
    if choices.config is not None and choices.config != data.config:
        raise BadInput(f"--config {choices.config}: expected {data.config}, the config of {choices.mirror}")
    healthbench = data.suite == HEALTHBENCH_SUITE.name
    if choices.grader_template is not None and not healthbench:
        raise BadInput("--grader-template: expected HealthBench data, whose grader's prompt it replaces")
    if healthbench and choices.grouping != "case" and any(judge.id_style is not None for judge in choices.judges):
        raise BadInput(
            "--id-style: expected BedsideBench data or --grouping case: other HealthBench calls name no item"
        )
    if data.config == META and choices.answers != "given":
        raise BadInput(f"{choices.mirror}: holds completions that physicians labelled; grade these: --answers given")
    if data.config == META and choices.grouping == "case":
        raise BadInput(f"--grouping case: expected item on {choices.mirror}: its records have one criterion each")
    if choices.answer_repeats > 1 and choices.answers is not None:
        raise BadInput("--answer-repeats: expected an answer model; given answers are as many as there are")


def _check_numbers(choices: Choices) -> None:
    limits = choices.limits
    for name, value in (("--timeout", limits.timeout_s), ("--deadline", limits.deadline_s)):
        if not 0 < value < math.inf:
            raise BadInput(f"{name}: expected seconds above 0, found {value:g}")
    if not is_temperature(choices.temperature):
        raise BadInput(f"--temperature: expected a number from 0 to {MOST_TEMPERATURE}, found {choices.temperature:g}")


def _check_names(choices: Choices) -> None:
    """Stop at a name that no request or digest can carry: one without a character, or with broken ones."""
    names = [("--answer-model", None if choices.answer is None else choices.answer.name)]
    names += [("--answer-vendor", choices.answer_vendor), ("--reasoning-effort", choices.reasoning_effort)]
    for judge in choices.judges:
        names += [("--judge-model", judge.model.name), ("--judge-vendor", judge.vendor)]
        names += [("judge's reasoning_effort", judge.reasoning_effort)]
    for option, name in names:
        if name is not None and not (name.strip() and name.isprintable()):
            raise BadInput(f"{option} {name!a}: expected a name of printable characters")


def _check_builtin(answer: Model | None, judges: tuple[Judge, ...]) -> None:
    if answer and answer.builtin and answer.name not in POLICIES:
        raise BadInput(f"--answer-model {answer.name}: expected one of {', '.join(POLICIES)}")
    for judge in judges:
        if judge.model.builtin and judge.model.name != VERBATIM_JUDGE:
            raise BadInput(f"--judge-model {judge.model.name}: expected {VERBATIM_JUDGE} or a model's name")


def _prompts(choices: Choices, suite: Suite) -> Prompts:
    """Return the suite's texts, with another system text or grader template where a file holds one."""
    template = choices.grader_template
    prompts = suite.prompts() if template is None else read_template(template, grouping=suite.grouping)
    if choices.system is None:
        return prompts
    try:
        return replace(prompts, answer_system=choices.system.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{choices.system}: expected a UTF-8 text file for --system, found: {error}") from None
