"""The answers that a run judged: their texts, and the SHA-256 of each, by which labels and audits are bound to them.

In: a journal, or a results folder that holds one run. Out: texts or digests by (case id, answer repeat), of the answers
that judges were asked about; an answer that failed is not among them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from builder.errors import BadInput
from eval.calls.call import JUDGED_ANSWERS
from eval.calls.journal import read_journal
from eval.judging.grading import case_replies
from eval.judging.texts import text_sha256
from eval.results.card import RUNS, run_folders
from eval.results.stored import UnreadableRunError, read_tables
from eval.results.tables import Row

AnswerKey: TypeAlias = tuple[str, int]
"""Case id and answer repeat."""


def answers_of(path: Path) -> dict[AnswerKey, str]:
    """Return the texts of the judged answers of a journal, or of a run published with texts.

    Raises:
        BadInput: there is no such run, or a results folder holds no texts.
    """
    if not path.is_dir():
        return _journal_answers(path)
    texts = {_row_key(row): row["text"] for row in _answer_rows(path) if row["text"] is not None}
    if not texts:
        raise BadInput(f"{path}: expected results with texts, found none in them; give the run's journal instead")
    return texts


def answer_digests(path: Path) -> dict[AnswerKey, str]:
    """Return the SHA-256 of every judged answer of a journal or of a results folder, with or without texts.

    Raises:
        BadInput: there is no such run, or a folder holds several.
    """
    if not path.is_dir():
        return {key: text_sha256(text) for key, text in _journal_answers(path).items()}
    rows = [row for row in _answer_rows(path) if row["answer_sha256"] is not None]
    return {_row_key(row): row["answer_sha256"] for row in rows}


def _journal_answers(path: Path) -> dict[AnswerKey, str]:
    return {
        (case_id, repeat): call.text
        for case_id, replies in case_replies(read_journal(path)).items()
        for repeat, call in replies.answers.items()
        if call.state in JUDGED_ANSWERS and call.text is not None
    }


def _answer_rows(folder: Path) -> list[Row]:
    runs = run_folders(folder) if (folder / RUNS).is_dir() else [folder]
    if len(runs) != 1:
        raise BadInput(f"{folder}: expected one run, found {len(runs)}; name one of the folders below {folder / RUNS}")
    try:
        rows = read_tables(runs[0])["answers"]
    except UnreadableRunError as error:
        raise BadInput(f"{runs[0]}: {error.finding.line()}") from None
    return [row for row in rows if row["state"] in JUDGED_ANSWERS]


def _row_key(row: Row) -> AnswerKey:
    return row["case_id"], row["answer_repeat"]
