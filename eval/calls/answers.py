"""Answers that were given before the run: lines of a file, an upstream result file, a journal, or the data's own.

In: a JSONL file, or cases that hold completions. Out: one `GivenAnswer` a case, of references as many as there are. A
case that stands twice in a file is an error; a case without an answer is missing, which is a state of its own and never
an empty answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from builder.errors import BadInput
from eval.calls.call import current_calls
from eval.calls.journal import json_lines, read_journal
from eval.judging.texts import text_sha256

if TYPE_CHECKING:
    from eval.cases import Case


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer's text and state (formats.md 5); `text` is None where there is none."""

    text: str | None
    state: str


@dataclass(frozen=True, slots=True)
class GivenAnswers:
    """Answers by case id, one a repeat; the model they name (None where they name none); the digest of their file.

    `vendor` is who makes that model, where a journal says it.
    `completions` says which of the data's own answers they are; then there is no file.
    """

    by_case: Mapping[str, Sequence[GivenAnswer]]
    model: str | None
    file_sha256: str | None
    completions: str | None = None
    vendor: str | None = None

    @property
    def source(self) -> str:
        """Where they come from, as the identity says it: `file` or `data`."""
        return "file" if self.completions is None else "data"

    def named(self, case_id: str, repeat: int) -> Mapping[str, str | None]:
        """Return what names one of them in a key (formats.md 4): its file, or as data may change, its text."""
        if self.completions is None:
            return {"sha256": self.file_sha256}
        answer = self.answer(case_id, repeat)
        text = None if answer is None or answer.text is None else text_sha256(answer.text)
        return {"completions": self.completions, "text_sha256": text}

    def repeats(self, cases: Sequence[Case]) -> int:
        """Return the most answers that one of these cases has, at least 1: one that is not there is missing."""
        return max((len(self.by_case.get(case.case_id, ())) for case in cases), default=1) or 1

    def unknown(self, cases: Sequence[Case]) -> list[str]:
        """Return the ids that answers are given for and that no case has: a mistyped id shows as missing only."""
        known = {case.case_id for case in cases}
        return [case_id for case_id in self.by_case if case_id not in known]

    def answer(self, case_id: str, repeat: int) -> GivenAnswer | None:
        """Return one answer to a case, None where there is none."""
        answers = self.by_case.get(case_id, ())
        return answers[repeat] if repeat < len(answers) else None


COMPLETIONS: Final = ("physician", "reference", "given")
"""Who wrote the answers that data can hold: a physician, models shown to physicians, the one that was labelled."""


def completions(cases: Sequence[Case], kind: str) -> GivenAnswers:
    """Return the answers that the data themselves hold.

    Raises:
        BadInput: some of these cases hold more such answers than others.
    """
    answers = {
        case.case_id: [GivenAnswer(text, "ok" if text.strip() else "empty") for text in case.completions[kind]]
        for case in cases
        if case.completions.get(kind)
    }
    counts = sorted({len(texts) for texts in answers.values()})
    if len(counts) > 1:
        found = f"{counts[0]} to {counts[-1]}"
        raise BadInput(f"--answers {kind}: expected as many in every case, found {found}: they cannot be nested")
    return GivenAnswers(answers, kind, None, kind)


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
    answers: dict[str, list[GivenAnswer]] = {}
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
        answers[case_id] = [GivenAnswer(text, "ok" if text.strip() else "empty")]
        models |= {model} if isinstance(model, str) else set()
    if len(models) > 1:
        raise BadInput(f"{path}: expected the answers of one model, found {', '.join(sorted(models))}; split the file")
    return GivenAnswers(answers, models.pop() if models else None, digest)


def _from_journal(path: Path, digest: str) -> GivenAnswers:
    journal = read_journal(path)
    answers: dict[str, dict[int, GivenAnswer]] = {}
    for call in current_calls(journal.calls).values():
        if call.role == "answer":
            of_case = answers.setdefault(call.case_id, {})
            if call.answer_repeat in of_case:
                raise BadInput(f"{path}: case {call.case_id} has several answers; give a journal with one each")
            of_case[call.answer_repeat] = GivenAnswer(call.text, call.state)
    answer: Mapping[str, Any] = journal.identity["answer"]
    return GivenAnswers(
        {case_id: [found.get(n, _MISSING) for n in range(max(found) + 1)] for case_id, found in answers.items()},
        answer["model"],
        digest,
        vendor=answer.get("vendor"),
    )


_MISSING: Final = GivenAnswer(None, "missing")
