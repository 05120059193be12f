"""The sheet that goes to a clinician: what is drawn, what it shows, and what it never loses."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import BadInput
from eval.agreement.sheet import draw_cases, write_sheet
from eval.agreement.sheet_file import COLUMNS, guarded, plain, read_rows, write_rows
from eval.judging.graded import RunData
from tests.labelled import answers_to, cases_of, graded, run_of, two_panels

ROW = dict.fromkeys(COLUMNS, "x")
HOSTILE = st.text(alphabet=st.sampled_from("=+-@'\"\t\r\n,;| a1\u2028\u0085\ufeff\0é≥語＝"), max_size=12)


def write(run: RunData, path: Path, **options: object) -> list[dict[str, str]]:
    """Write a sheet of a run and return its rows."""
    write_sheet(run, answers_to(run), cases_of(run), path, **options)  # type: ignore[arg-type]
    return [dict(row.cells) for row in read_rows(path)]


def test_a_fifth_of_every_panel_is_drawn(tmp_path: Path) -> None:
    """Of 25 cases a panel, 20% are 5 a panel, and every item of a drawn case is a row."""
    run = two_panels(25)
    written = write_sheet(run, answers_to(run), cases_of(run), tmp_path / "s.csv")

    assert {"drug_safety": 5, "safety_diagnostic": 5} == written.cases_by_panel
    assert (10, 10, 5 * 3 + 5 * 4) == (written.n_cases, written.n_answers, written.n_items)
    assert written.n_rows == len(read_rows(tmp_path / "s.csv")) == 35


@pytest.mark.parametrize(("n", "share", "drawn"), [(25, 0.2, 5), (30, 0.1, 3), (4, 0.2, 2), (1, 0.2, 1), (3, 1.0, 3)])
def test_the_share_is_rounded_up_and_two_cases_are_the_least(n: int, share: float, drawn: int) -> None:
    """A tenth of 30 is 3, not 4; a panel of four gives two so that a variance exists, a panel of one its case."""
    found = draw_cases({f"c{number}": "drug_safety" for number in range(n)}, share=share, seed=42)

    assert drawn == len(found) == len(set(found))


def test_the_sample_does_not_depend_on_verdicts(tmp_path: Path) -> None:
    """Another judge of the same answers, even one whose replies failed, gets the same sheet."""
    run = two_panels(10)
    failed = replace(run, cases=tuple(replace(case, matched=None, state="failed") for case in run.cases))

    assert write(run, tmp_path / "a.csv") == write(failed, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_another_seed_draws_other_cases() -> None:
    """The seed decides, and only the seed."""
    panels = {f"c{number}": "drug_safety" for number in range(50)}

    assert draw_cases(panels, share=0.2, seed=1) == draw_cases(panels, share=0.2, seed=1)
    assert draw_cases(panels, share=0.2, seed=1) != draw_cases(panels, share=0.2, seed=2)


def test_every_case_is_drawn_about_equally_often() -> None:
    """Over 500 seeds each of ten cases is among two drawn about 100 times: by no more than five deviations off."""
    panels = {f"c{number}": "drug_safety" for number in range(10)}
    counts = Counter(case_id for seed in range(500) for case_id in draw_cases(panels, share=0.2, seed=seed))

    assert all(abs(count - 100) < 5 * (500 * 0.2 * 0.8) ** 0.5 for count in counts.values())
    assert len(counts) == 10


def test_a_sheet_shows_no_decision_and_no_points(tmp_path: Path) -> None:
    """A clinician sees prompt, answer and item, an empty label, and nothing of the judge, the model or the points."""
    run = two_panels(5)
    rows = write(replace(run, answer_model="secret-model"), tmp_path / "s.csv")
    text = (tmp_path / "s.csv").read_text(encoding="utf-8-sig")

    assert list(COLUMNS) == next(csv.reader(text.splitlines()))
    assert not {"points", "matched", "verdict", "score", "judge", "model"} & set(COLUMNS)
    assert "secret-model" not in text
    assert {""} == {row["label"] for row in rows}
    assert ("What now?", "Says so 0") == (rows[0]["prompt"], rows[0]["item"])


def test_a_case_comes_as_one_block_in_random_order(tmp_path: Path) -> None:
    """The rows of a case stay together; the cases are not in dataset order, so half a sheet is a random part."""
    run = two_panels(40)
    ids = [row["case_id"] for row in write(run, tmp_path / "s.csv")]
    blocks = [case_id for place, case_id in enumerate(ids) if place == 0 or ids[place - 1] != case_id]
    order = [case.case_id for case in run.cases if case.case_id in ids]

    assert len(blocks) == len(set(blocks)) == 16
    assert order != blocks


def test_all_answers_to_a_case_are_drawn_with_it(tmp_path: Path) -> None:
    """With two answers a case, both are labelled: the case's score is their mean."""
    run = run_of(*(graded(f"c{number}", "yy", (1, 1), repeat=repeat) for number in range(10) for repeat in (0, 1)))
    rows = write(run, tmp_path / "s.csv")

    assert 8 == len(rows)
    assert {2} == set(Counter((row["case_id"], row["answer_repeat"]) for row in rows).values())


def test_a_case_with_an_answer_missing_is_not_drawn(tmp_path: Path) -> None:
    """Where an answer never came there is nothing to label; such cases are counted."""
    run = run_of(*(graded(f"c{number}", "y", (1,)) for number in range(5)))
    answers = answers_to(run)
    del answers["c3", 0]
    written = write_sheet(run, answers, cases_of(run), tmp_path / "s.csv", share=1)

    assert (4, 1) == (written.n_cases, written.n_without_answer)


def test_every_rater_gets_all_rows(tmp_path: Path) -> None:
    """Two raters label the same items, each in rows with their name."""
    run = two_panels(5)
    rows = write(run, tmp_path / "s.parquet", raters=("=Anna", "Bo"))

    assert {"=Anna": 14, "Bo": 14} == Counter(row["rater"] for row in rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0}, "share: expected a number above 0"),
        ({"share": 1.5}, "share: expected a number above 0"),
        ({"seed": -1}, "seed: expected 0 or more"),
        ({"raters": ("a", "a")}, "raters: expected different names"),
        ({"raters": ("a", "")}, "raters: expected different names"),
    ],
    ids=["share 0", "share 1.5", "seed", "twice", "nameless"],
)
def test_settings_out_of_range_are_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    """A setting that makes no sheet is one clear line."""
    with pytest.raises(BadInput, match=message):
        write(two_panels(3), tmp_path / "s.csv", **options)


def test_a_sheet_with_labels_is_never_overwritten(tmp_path: Path) -> None:
    """A clinician's work is not lost to a second command; an unlabelled sheet may be written anew."""
    path = tmp_path / "s.csv"
    write(two_panels(3), path)
    write(two_panels(3), path)
    write_rows(path, [{**ROW, "label": "no"}])
    before = path.read_bytes()

    with pytest.raises(BadInput, match="without labels, found 1 labels"):
        write(two_panels(3), path)
    assert before == path.read_bytes()


def test_another_file_is_never_overwritten(tmp_path: Path) -> None:
    """A file that is no sheet stays as it is, and a name must say CSV or Parquet."""
    (tmp_path / "s.csv").write_text("my notes\n", encoding="utf-8")

    with pytest.raises(BadInput, match="expected the columns"):
        write(two_panels(3), tmp_path / "s.csv")
    with pytest.raises(BadInput, match=r"\.csv or \.parquet"):
        write(two_panels(3), tmp_path / "s.xlsx")


def test_a_case_that_is_not_in_the_data_is_refused(tmp_path: Path) -> None:
    """The shown texts must be those that were judged: another mirror is named as the fault."""
    run = two_panels(3)

    with pytest.raises(BadInput, match="in the data as it was judged; give that mirror"):
        write_sheet(run, answers_to(run), {}, tmp_path / "s.csv")


def test_a_cell_that_excel_cuts_is_counted(tmp_path: Path) -> None:
    """Excel ends a cell after 32,767 characters; the file keeps them all, and the count says to take another way."""
    run = run_of(graded("a", "y", (1,)))
    written = write_sheet(run, {("a", 0): "x" * 100_000}, cases_of(run), tmp_path / "s.csv")

    assert 1 == written.n_long
    assert 100_000 == len(read_rows(tmp_path / "s.csv")[0].cells["answer"])


@settings(max_examples=60, deadline=None)
@given(cells=st.lists(HOSTILE, min_size=12, max_size=12), kind=st.sampled_from(["csv", "parquet"]))
def test_whatever_texts_hold_comes_back(tmp_path_factory: pytest.TempPathFactory, cells: list[str], kind: str) -> None:
    """Newlines, quotes, separators, formulas and U+2028 in a text stay in their cell, to the character."""
    path = tmp_path_factory.mktemp("round") / f"s.{kind}"
    row = {**dict(zip(COLUMNS, cells, strict=True)), "case_id": "a"}
    write_rows(path, [row, ROW])

    assert [row, ROW] == [dict(found.cells) for found in read_rows(path)]


@given(cell=HOSTILE)
def test_no_cell_of_a_csv_is_a_formula(cell: str) -> None:
    """What a spreadsheet would run begins with an apostrophe instead, and the apostrophe can be taken off again."""
    assert guarded(cell)[:1] not in {*"=+-@\t\r\n"}
    assert cell == plain(guarded(cell))


def test_excel_sees_the_encoding(tmp_path: Path) -> None:
    """A CSV begins with the byte order mark without which Excel takes UTF-8 for another encoding."""
    write(two_panels(3), tmp_path / "s.csv")

    assert (tmp_path / "s.csv").read_bytes().startswith(b"\xef\xbb\xbfcase_id,")


def test_parquet_holds_the_texts_unchanged(tmp_path: Path) -> None:
    """The Parquet form is exact: a text that looks like a formula has nothing before it."""
    run = run_of(graded("a", "y", (1,)))
    write_sheet(run, {("a", 0): "=1+1"}, cases_of(run), tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")

    assert ["=1+1"] == table["answer"].to_pylist()
    assert {pa.string()} == set(table.schema.types)
