"""Labels that come back from people and their spreadsheets: read as they were meant, or refused with every problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.errors import BadInput
from eval.agreement.labels import consensus, label_of, read_labels, read_sheets, tied
from eval.agreement.sheet import write_sheet
from eval.agreement.sheet_file import COLUMNS, write_rows
from eval.judging.texts import text_sha256
from tests.labelled import answers_to, cases_of, graded, run_of

RUN = run_of(graded("a", "yn", (1, -1)), graded("b", "y", (1,)))
DIGESTS = {key: text_sha256(text) for key, text in answers_to(RUN).items()}


def row(item_id: str = "a_0", label: str = "yes", **cells: str) -> dict[str, str]:
    """Return a row of a sheet of RUN."""
    case_id = item_id.split("_")[0]
    bound = {"answer_sha256": DIGESTS.get((case_id, 0), ""), "dataset_sha256": "2" * 64, "identity_sha256": "1" * 64}
    named = {"case_id": case_id, "answer_repeat": "0", "item_id": item_id, "label": label}
    return {**dict.fromkeys(COLUMNS, ""), **bound, **named, **cells}


def sheet(path: Path, *rows: dict[str, str]) -> Path:
    """Write a sheet of these rows."""
    write_rows(path, rows)
    return path


def test_a_written_sheet_comes_back_with_its_labels(tmp_path: Path) -> None:
    """What a clinician typed under `label` is found under the file's name, by case, answer and item."""
    path = tmp_path / "dr_lee.csv"
    write_sheet(RUN, answers_to(RUN), cases_of(RUN), path, share=1)
    lines = path.read_text(encoding="utf-8-sig").replace("Says so 0,,", "Says so 0,Yes,")
    path.write_text(lines.replace("Says so 1,,", "Says so 1,no,"), encoding="utf-8-sig")

    expected = {("a", 0, "a_0"): True, ("a", 0, "a_1"): False, ("b", 0, "b_0"): True}
    assert {"dr_lee": expected} == read_labels([path], run=RUN, answers=DIGESTS)


@pytest.mark.parametrize("word", ["true", "TRUE", "Yes", "y", "1", "1.0", "met", " Met "])
def test_words_for_met(word: str) -> None:
    """A label may be written in these ways, in any case."""
    assert label_of(word) is True


@pytest.mark.parametrize("word", ["false", "FALSE", "No", "n", "0", "0.0", "unmet", "Not  met"])
def test_words_for_unmet(word: str) -> None:
    """And its contrary in these."""
    assert label_of(word) is False


@pytest.mark.parametrize("word", ["maybe", "2", "-1", "yes?", "wahr"])
def test_other_words_are_refused(word: str) -> None:
    """A word that is not on the list is never guessed."""
    with pytest.raises(ValueError, match="label: expected yes or no"):
        label_of(word)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_spreadsheets_save_in_their_own_ways(tmp_path: Path, encoding: str, delimiter: str, newline: str) -> None:
    """Any separator, encoding and line end that a spreadsheet saves with is read, empty rows at the end left out."""
    cells = [["case_id", "answer_repeat", "item_id", "answer_sha256", "rater", "identity_sha256", "label", ""]]
    cells.append(["a", "0", "a_0", DIGESTS["a", 0], "André", "1" * 64, "TRUE", ""])
    text = newline.join(map(delimiter.join, [*cells, [""] * 8, [""] * 8])) + newline
    path = tmp_path / "s.csv"
    path.write_bytes(text.encode(encoding))

    assert {"André": {("a", 0, "a_0"): True}} == read_labels([path], run=RUN)


def test_a_separator_line_is_read(tmp_path: Path) -> None:
    """The line `sep=;` with which some programs begin a CSV says the separator and is no header."""
    header = "case_id;answer_repeat;item_id;label;answer_sha256;rater"
    path = tmp_path / "s.csv"
    path.write_text(f"sep=;\n{header}\na;0;a_0;1;{DIGESTS['a', 0]};Bo\n", encoding="utf-8")

    assert {"Bo": {("a", 0, "a_0"): True}} == read_labels([path], run=RUN, answers=DIGESTS)


@pytest.mark.parametrize(
    "values", [[True, None], [1, None], [1.0, None], ["yes", ""]], ids=["bool", "int", "float", "text"]
)
def test_parquet_labels_may_be_of_any_type(tmp_path: Path, values: Sequence[object]) -> None:
    """Booleans, numbers and words are labels; null is none, and counted."""
    rows = [{**row("a_0"), "label": values[0]}, {**row("a_1"), "label": values[1]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "s.parquet")
    found = read_sheets([tmp_path / "s.parquet"], run=RUN, answers=DIGESTS)

    assert {"s": {("a", 0, "a_0"): True}} == found.by_rater
    assert (2, 1) == (found.n_rows, found.n_unlabelled)


def test_several_files_and_several_raters(tmp_path: Path) -> None:
    """Two raters in one file and a third in another are three raters."""
    one = sheet(tmp_path / "one.csv", row(rater="A"), row(rater="B", label="no"))
    two = sheet(tmp_path / "two.csv", row())

    assert ["A", "B", "two"] == list(read_labels([one, two], run=RUN, answers=DIGESTS))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(label="perhaps"), "label: expected yes or no"),
        (row("c_0"), "expected a case and answer of the run, found case 'c', answer 0"),
        (row("a_9"), "expected an item of case a, found 'a_9'"),
        (row(answer_repeat="1"), "expected a case and answer of the run, found case 'a', answer 1"),
        (row(answer_repeat="one"), "answer_repeat: expected 0, 1, 2"),
        (row(answer_sha256="f" * 64), r"expected a label on the run's answer \(\w{12}\), found one on another"),
        (row(dataset_sha256="f" * 64), "expected a sheet on dataset_sha256 2222"),
        (row(label="no", rater="A"), "expected one label by A for a_0, found yes above and no"),
    ],
    ids=["word", "case", "item", "answer", "repeat", "digest", "dataset", "two labels"],
)
def test_a_row_that_does_not_fit_is_named(tmp_path: Path, bad: dict[str, str], message: str) -> None:
    """The message says file and row as a spreadsheet counts them, what was expected and what was found."""
    path = sheet(tmp_path / "s.csv", row(rater="A"), bad)

    with pytest.raises(BadInput, match=rf"s\.csv:3: {message}"):
        read_labels([path], run=RUN, answers=DIGESTS)


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    """Thirty bad rows and a missing file give one message: the first twenty, and how many more."""
    path = sheet(tmp_path / "s.csv", *[row(label="hm")] * 30)

    with pytest.raises(BadInput) as caught:
        read_labels([path, tmp_path / "none.csv"], run=RUN, answers=DIGESTS)
    lines = str(caught.value).splitlines()
    assert ("labels: 31 problems", 22, "... and 11 more") == (lines[0], len(lines), lines[-1])


def test_without_digests_only_the_runs_own_sheet_is_taken(tmp_path: Path) -> None:
    """Where nobody says which answers the run has, its identity must be the sheet's."""
    other = sheet(tmp_path / "s.csv", row(identity_sha256="9" * 64))

    with pytest.raises(BadInput, match="expected a sheet of run 111111111111, found one of 999999999999"):
        read_labels([other], run=RUN)
    assert read_labels([other], run=RUN, answers=DIGESTS)


def test_a_sheet_without_any_label_is_refused(tmp_path: Path) -> None:
    """An empty sheet is no agreement of zero raters."""
    with pytest.raises(BadInput, match="at least one label, found 1 rows without"):
        read_labels([sheet(tmp_path / "s.csv", row(label=""))], run=RUN, answers=DIGESTS)


def test_two_nameless_files_of_one_name_are_two_people(tmp_path: Path) -> None:
    """Folders may hold files of one name; their raters are never made one person by it."""
    paths = [sheet(tmp_path / folder / "labels.csv", row()) for folder in ("x", "y")]

    with pytest.raises(BadInput, match="expected a rater or another file name"):
        read_labels(paths, run=RUN, answers=DIGESTS)


def test_a_text_that_a_spreadsheet_changed_does_no_harm(tmp_path: Path) -> None:
    """Labels go by ids: a prompt whose line ends were changed is not looked at."""
    path = sheet(tmp_path / "s.csv", row(prompt="other", answer="#NAME?", item=""))

    assert read_labels([path], run=RUN, answers=DIGESTS)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("y", True), ("yy", True), ("yn", None), ("yyn", True), ("nny", False), ("yynn", None), ("ynnn", False)],
)
def test_consensus_is_a_strict_majority(given: str, expected: bool | None) -> None:
    """One rater decides alone, two must agree, more need more than half; a tie is left out and can be counted."""
    key = ("a", 0, "a_0")
    labels = {f"rater {place}": {key: letter == "y"} for place, letter in enumerate(given)}

    assert ({} if expected is None else {key: expected}) == consensus(labels)
    assert (frozenset({key}) if expected is None else frozenset()) == tied(labels)
