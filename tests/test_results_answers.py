"""The answers of a run: their texts and digests, from a journal and from the results it was published as."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builder.errors import BadInput
from eval.judging.texts import text_sha256
from eval.results.answers import answer_digests, answers_of
from tests.journals import write_journal
from tests.tampering import results_folder


def test_answers_and_digests_come_from_a_journal(tmp_path: Path) -> None:
    """A journal gives the text of every judged answer; one that never came is not among them."""
    path = write_journal(
        tmp_path / "x.jsonl", panels=["drug_safety"], cases_per_panel=3, fail={1: ("answer", "timeout")}
    )
    texts = answers_of(path)

    assert 2 == len(texts)
    assert {key: text_sha256(text) for key, text in texts.items()} == answer_digests(path)


def test_results_without_texts_say_to_give_the_journal(tmp_path: Path) -> None:
    """A published run holds no texts unless asked to; its digests still bind labels to its answers."""
    results = results_folder(tmp_path)

    with pytest.raises(BadInput, match="give the run's journal instead"):
        answers_of(results)
    assert answer_digests(results) == answer_digests(tmp_path / "x.jsonl")


def test_a_folder_of_two_runs_is_refused(tmp_path: Path) -> None:
    """Which run's answers are meant is never guessed: the line says to name one of the folders."""
    results = results_folder(tmp_path)
    (run,) = (results / "runs").iterdir()
    shutil.copytree(run, run.with_name("another-run"))

    with pytest.raises(BadInput, match="expected one run, found 2; name one of the folders"):
        answer_digests(results)
    assert answer_digests(run)


def test_a_folder_without_a_run_is_one_clear_line(tmp_path: Path) -> None:
    """A folder that holds no tables is named with what is missing."""
    with pytest.raises(BadInput, match=str(tmp_path)):
        answer_digests(tmp_path)
