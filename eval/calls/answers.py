"""Answers that were given before the run: read from a file of lines, an upstream result file, or another journal.

In: a JSONL file. Out: one `GivenAnswer` a case. A case that stands twice is an error; a case without a line is missing,
which is a state of its own and never an empty answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.errors import BadInput
from eval.calls.call import current_calls
from eval.calls.journal import json_lines, read_journal


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer's text and state (formats.md 5); `text` is None where there is none."""

    text: str | None
    state: str


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """The answers of a file by case id, the model they name (None where they name none), and the file's digest."""

    by_case: Mapping[str, GivenAnswer]
    model: str | None
    file_sha256: str


def read_answers(path: Path) -> GivenAnswers:
    """Return the answers of a file.

    Accepted: lines {case_id, answer[, answer_model]}, rows of the upstream runner, or one of our journals.

    Raises:
        BadInput: the file is missing or holds another thing, a case twice, or answers of two models.
    """
    if not path.is_file():
        raise BadInput(f"{path}: expected a file of answers, found no such file")
    first = next(json_lines(path), (0, {}))[1]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if first.get("kind") == "run":
        return _from_journal(path, digest)
    answers: dict[str, GivenAnswer] = {}
    models: set[str] = set()
    for number, line in json_lines(path):
        where = f"{path}:{number}"
        case_id, text, model = line.get("case_id"), line.get("answer"), line.get("answer_model")
        if type(case_id) is not str:
            raise BadInput(f'{where}: expected a string "case_id", found {case_id!r}')
        if "answer" not in line and line.get("error"):
            continue  # a failed row of the upstream runner: it holds no answer
        if type(text) is not str:
            raise BadInput(f'{where}: expected a string "answer" for case {case_id}, found {text!r}')
        if case_id in answers:
            raise BadInput(f"{where}: case {case_id} has an answer above already; keep one line a case")
        answers[case_id] = GivenAnswer(text, "ok" if text.strip() else "empty")
        models |= {model} if isinstance(model, str) else set()
    if len(models) > 1:
        raise BadInput(f"{path}: expected the answers of one model, found {', '.join(sorted(models))}; split the file")
    return GivenAnswers(answers, models.pop() if models else None, digest)


def _from_journal(path: Path, digest: str) -> GivenAnswers:
    journal = read_journal(path)
    answers: dict[str, GivenAnswer] = {}
    for call in current_calls(journal.calls).values():
        if call.role == "answer":
            if call.case_id in answers:
                raise BadInput(f"{path}: case {call.case_id} has several answers; give a journal with one each")
            answers[call.case_id] = GivenAnswer(call.text, call.state)
    answer: Mapping[str, Any] = journal.identity["answer"]
    return GivenAnswers(answers, answer["model"], digest)
