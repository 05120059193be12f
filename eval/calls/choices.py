"""What a person chose for a run -> its plan: the data read and checked, the cases selected, the texts loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from builder.errors import BadInput
from eval.calls.answers import read_answers
from eval.calls.builtin import POLICIES, VERBATIM_JUDGE
from eval.calls.plan import STANDARD_LIMITS, Limits, Model, Plan, Reading
from eval.cases import read_cases, select_cases
from eval.judging.protocol import ANSWER_TEMPERATURE, Prompts, protocol_prompts


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person chose for a run: the options of `bedside-bench run`, keys and models resolved.

    `repo` and `revision` name the repository that the mirror itself was read from, and its commit.
    """

    mirror: Path
    answer: Model | None
    judge: Model | None
    panels: tuple[str, ...] = ()
    smoke: bool = False
    limit: int | None = None
    answers: Path | None = None
    system: Path | None = None
    temperature: float = ANSWER_TEMPERATURE
    reasoning_effort: str | None = None
    judge_format: str = "json_object"
    id_style: str = "full"
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
    given = read_answers(choices.answers) if choices.answers else None
    if choices.answer is None and given is None:
        raise BadInput("expected an answer model or a file of answers, found neither; name one with --answer-model")
    if choices.judge is None:
        raise BadInput("expected a judge model, found none; name one with --judge-model")
    _check_names(choices)
    answer = choices.answer or Model((given and given.model) or "given answers")
    _check_builtin(answer if given is None else None, choices.judge)
    data = read_cases(choices.mirror, repo=choices.repo, revision=choices.revision)
    reading = Reading(
        prompts=_prompts(choices.system),
        judge_format=choices.judge_format,
        id_style=choices.id_style,
        answer_temperature=_plain(choices.temperature) if given is None and not answer.builtin else None,
    )
    return Plan(
        data=data,
        cases=tuple(select_cases(data.cases, panels=choices.panels, smoke=choices.smoke, limit=choices.limit)),
        selection={
            "panels": [panel for panel in data.panels if panel in choices.panels] if choices.panels else None,
            "smoke": choices.smoke,
            "limit": choices.limit,
        },
        answer=answer,
        judge=choices.judge,
        reading=reading,
        reasoning_effort=choices.reasoning_effort,
        given=given,
        limits=choices.limits,
    )


def _check_numbers(choices: Choices) -> None:
    limits = choices.limits
    for name, value in (("--timeout", limits.timeout_s), ("--deadline", limits.deadline_s)):
        if not 0 < value < math.inf:
            raise BadInput(f"{name}: expected seconds above 0, found {value:g}")
    if not 0 <= choices.temperature < math.inf:
        raise BadInput(f"--temperature: expected a number from 0 up, found {choices.temperature:g}")


def _check_names(choices: Choices) -> None:
    """Stop at a name that no request or digest can carry: one without a character, or with broken ones."""
    models = {"--answer-model": choices.answer, "--judge-model": choices.judge}
    names = {option: None if model is None else model.name for option, model in models.items()}
    for option, name in {**names, "--reasoning-effort": choices.reasoning_effort}.items():
        if name is not None and not (name.strip() and name.isprintable()):
            raise BadInput(f"{option} {name!a}: expected a name of printable characters")


def _check_builtin(answer: Model | None, judge: Model) -> None:
    if answer and answer.builtin and answer.name not in POLICIES:
        raise BadInput(f"--answer-model {answer.name}: expected one of {', '.join(POLICIES)}")
    if judge.builtin and judge.name != VERBATIM_JUDGE:
        raise BadInput(f"--judge-model {judge.name}: expected {VERBATIM_JUDGE} or a model's name")


def _prompts(system: Path | None) -> Prompts:
    """Return the protocol's texts, with another system text for the answer model where a file holds one."""
    prompts = protocol_prompts()
    if system is None:
        return prompts
    try:
        return replace(prompts, answer_system=system.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{system}: expected a UTF-8 text file for --system, found: {error}") from None


def _plain(temperature: float) -> float:
    """Return 1 for 1.0: the value goes into requests and digests in the form the protocol has it."""
    return int(temperature) if float(temperature).is_integer() else temperature
