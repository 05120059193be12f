"""Verifying results: whatever cell, file or card is changed is found and named, though its digests were made again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bedside_bench import canonical_json, sha256_json
from builder.dataset.folder import folder_digest, read_digests, write_digests, write_parquet
from eval.judging.identity import protocol_id, semantics_sha256
from eval.results.folder import verify_run, write_results
from eval.results.schemas import SCHEMAS
from tests.journals import write_journal, write_summary
from tests.tampering import HERE, PANELS, another, copy_of_run, filled, lines, remake_digests, results_folder, tamper

# Cells that nothing else in a run's folder determines: only the digests cover them.
EXEMPT = {
    "answers": {
        "n_chars": "the text is not there",
        "finish_reason": "said by the server",
        "model_returned": "said by the server",
        "fingerprint": "said by the server",
        "input_tokens": "counted by the server",
        "cached_tokens": "counted by the server",
        "output_tokens": "counted by the server",
        "reasoning_tokens": "counted by the server",
        "attempts": "of the call, not of its reply",
        "latency_ms": "measured once",
    },
}
# Cells that other values are computed from: a change shows in those, and they are named.
SEEN_IN = {
    ("decisions", "points"): "digests.json: rubric_sha256",
    ("decisions", "item_id"): "run_sha256",
    ("decisions", "matched"): "scores.parquet: case",
    ("answers", "answer_sha256"): "run_sha256",
    ("answers", "state"): "run_sha256",
}
CELLS = [(table, column) for table, schema in SCHEMAS.items() for column in schema.names]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one run."""
    return results_folder(tmp_path_factory.mktemp("results"))


@pytest.fixture
def run(results: Path, tmp_path: Path) -> Path:
    """A copy of that run's folder to tamper with."""
    return copy_of_run(results, tmp_path)


def test_an_untouched_folder_verifies(results: Path) -> None:
    """Nothing is found in what was just written, and the numbers are compared to the last digit."""
    verified = verify_run(results)
    (run,) = (results / "runs").iterdir()

    assert () == verified.findings
    assert ("run", folder_digest(run), 8) == (verified.kind, verified.folder_digest, verified.n_cases)
    assert verified.facts["compared"].startswith("to the last digit")


@pytest.mark.parametrize(("table", "column"), CELLS, ids=[f"{table}-{column}" for table, column in CELLS])
def test_a_changed_cell_is_found_and_named(run: Path, table: str, column: str) -> None:
    """Any cell that anything else determines is named with its row and column, though the digests were made again."""
    kind = SCHEMAS[table].field(column).type
    row = 0 if table == "run" else 3
    before = tamper(run, table, row, column, lambda value: filled(kind) if value is None else another(value))
    found = lines(run)

    if column in EXEMPT.get(table, {}):
        assert found == ""
    elif (table, column) in SEEN_IN:
        assert SEEN_IN[table, column] in found
    else:
        assert f"{table}.parquet: " in found
        assert column in found
        assert table == "run" or before["case_id"] in found or column == "case_id"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cell_of_any_row_counts(
    results: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever cell is changed, to another value or to null, is found, but for those that are listed as exempt."""
    (source,) = (results / "runs").iterdir()
    run = Path(shutil.copytree(source, tmp_path_factory.mktemp("run") / source.name))
    table, column = data.draw(st.sampled_from([cell for cell in CELLS if cell[1] not in EXEMPT.get(cell[0], {})]))
    row = data.draw(st.integers(0, pq.read_metadata(run / f"{table}.parquet").num_rows - 1))
    kind, to_null = SCHEMAS[table].field(column).type, data.draw(st.booleans())
    before = tamper(run, table, row, column, lambda v: filled(kind) if v is None else None if to_null else another(v))

    assert (lines(run) != "") == (before[column] is not None or filled(kind) is not None)


@pytest.mark.parametrize("column", sorted(EXEMPT["answers"]))
def test_an_exempt_cell_is_still_covered_by_the_digests(run: Path, column: str) -> None:
    """What nothing else determines is found by the file's digest, and where that was made again by --expect."""
    vouched = folder_digest(run)
    kept = (run / "digests.json").read_bytes()
    tamper(run, "answers", 3, column, lambda value: filled(SCHEMAS["answers"].field(column).type) if value is None
           else another(value))  # fmt: skip
    assert [] == list(verify_run(run).findings)
    assert ["folder digest"] == [finding.what for finding in verify_run(run, expect=vouched).findings]

    (run / "digests.json").write_bytes(kept)
    assert "answers.parquet" in lines(run)


def test_a_matched_decision_is_named_through_its_case(run: Path) -> None:
    """A flipped decision shows in the score of its case, and the run's digest no longer fits."""
    before = tamper(run, "decisions", 0, "matched", lambda value: not value)
    found = lines(run)

    assert f"scores.parquet: case {before['case_id']}, answer 0: score: expected" in found
    assert "run.parquet: run: run_sha256: expected" in found


def test_a_decision_without_an_ok_reply_is_named_by_itself(run: Path) -> None:
    """Where a judge's reply failed there is no decision, and a made-up one is named."""
    rows = pq.read_table(run / "decisions.parquet").to_pylist()
    number = next(number for number, row in enumerate(rows) if row["state"] == "invalid_reply")
    before = tamper(run, "decisions", number, "matched", lambda _: True)

    where = f"case {before['case_id']}, answer 0, item {before['item_index']}, judge 0, repeat 0: matched"
    assert f"decisions.parquet: {where}: expected null, the state is invalid_reply, found true" in lines(run)


def test_files_that_are_missing_strange_or_broken_are_named(run: Path) -> None:
    """A file too many, a file too few and a file that is no Parquet are findings."""
    (run / "notes.txt").write_text("x")
    assert "notes.txt: stray file" in lines(run)
    (run / "scores.parquet").write_bytes(b"PAR1PAR1")
    assert "scores.parquet: file: expected a Parquet table" in lines(run)
    (run / "scores.parquet").unlink()
    assert "scores.parquet: missing" in lines(run)


def test_a_table_with_other_columns_is_named(run: Path) -> None:
    """A column of another type, order or name is a finding."""
    path = run / "answers.parquet"
    table = pq.read_table(path)
    write_parquet(table.set_column(6, "attempts", pa.array(["1"] * table.num_rows)), path)
    remake_digests(run)

    assert "answers.parquet: column 6: expected finish_reason string, found attempts string" in lines(run)


@pytest.mark.parametrize("name", ["run_sha256", "dataset_sha256", "n_items", "rubric_sha256", "run_id"])
def test_digests_that_say_something_else_than_the_tables_are_named(run: Path, name: str) -> None:
    """The members of digests.json are those of the run."""
    digests = read_digests(run)
    write_digests(run, {key: value for key, value in digests.items() if key not in ("format", "files")} | {name: "0"})

    assert name in lines(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("panels", []),
        ("canaries", "one"),
        ("made_by", None),
        ("source", {"kind": "hub", "repo": None, "revision": None, "license": "cc-by-4.0"}),
        ("more", 1),
    ],
)
def test_digests_of_another_form_are_named(run: Path, name: str, value: object) -> None:
    """What no table tells has the form that `results` writes, and nothing else is there."""
    kept = {key: value for key, value in read_digests(run).items() if key not in ("format", "files")}
    write_digests(run, {**kept, name: value})

    assert f"digests.json: {'members' if name == 'more' else name}" in lines(run)


@pytest.mark.parametrize("splits", [None, ["train"], {"train": 1}])
def test_splits_of_another_form_are_named(run: Path, splits: object) -> None:
    """Whoever reads which splits a run's data have finds a mapping."""
    kept = {key: value for key, value in read_digests(run).items() if key not in ("format", "files")}
    write_digests(run, {**kept, "splits": splits})

    assert "digests.json: splits: expected an object" in lines(run)


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    """A copy of the whole results folder."""
    return Path(shutil.copytree(results, tmp_path / "out"))


def test_a_card_that_does_not_list_the_runs_is_named(folder: Path) -> None:
    """A run that is in the folder but not in the card's table is a finding."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8")
    card.write_text("\n".join(line for line in text.split("\n") if not line.startswith("| 20")), encoding="utf-8")

    assert "README.md: table of runs" in lines(folder)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("runs/*/scores.parquet", "runs/*/answers.parquet", "config scores"),
        ("name: answer_repeat\n    dtype: int64", "name: answer_repeat\n    dtype: string", "answer_repeat"),
        ("license: cc-by-4.0", "license: mit", "license"),
        ("- config_name: answers\n  data_files", "- config_name: replies\n  data_files", "configs"),
    ],
)
def test_a_card_that_does_not_fit_the_tables_is_named(folder: Path, old: str, new: str, named: str) -> None:
    """What load_dataset would pass over in silence is found in the card."""
    card = folder / "README.md"
    card.write_text(card.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    assert "README.md: " in lines(folder)
    assert named in lines(folder)


def test_a_doctored_headline_is_named(folder: Path) -> None:
    """A score changed in the card's table is found: the card is made again from the runs and compared."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| 20"))
    score = re.findall(r"0\.\d{3}", row)[0]
    card.write_text(text.replace(row, row.replace(score, "0.999", 1)), encoding="utf-8")
    (finding,) = verify_run(folder).findings

    assert ("README.md", "generated part") == (finding.file, finding.what)


def test_what_does_not_belong_into_a_results_folder_is_named(folder: Path) -> None:
    """A file at the root or between the runs is a finding; what the Hub puts there is none."""
    (folder / ".gitattributes").write_text("*.parquet filter=lfs\n")
    assert lines(folder) == ""
    (folder / "scores.parquet").write_bytes(b"")
    (folder / "runs" / "x.txt").write_text("x")

    assert "scores.parquet: stray" in lines(folder)
    assert "runs/x.txt: stray" in lines(folder)


def test_a_renamed_run_is_found(folder: Path) -> None:
    """A run's folder is called by its run_id."""
    (run,) = (folder / "runs").iterdir()
    run.rename(run.with_name(run.name.replace("2026", "2025")))

    assert "digests.json: run_id" in lines(folder)


def test_expect_names_the_digest_of_one_run(folder: Path) -> None:
    """With --expect one run of the folder must have that digest."""
    (run,) = (folder / "runs").iterdir()

    assert verify_run(folder, expect=folder_digest(run).upper()).ok
    assert "runs: folder digest: expected one run with" in "\n".join(
        finding.line() for finding in verify_run(folder, expect="0" * 64).findings
    )


def test_an_empty_results_folder_is_a_finding(tmp_path: Path) -> None:
    """A folder without any run does not verify."""
    (tmp_path / "runs").mkdir()

    assert ["runs: runs: expected at least one run, found none"] == lines(tmp_path).split("\n")


def test_texts_are_checked_against_their_digests(tmp_path: Path) -> None:
    """Where a run holds texts, a changed text is named, and so is one that is gone."""
    journal = write_journal(tmp_path / "x.jsonl", panels=PANELS)
    run = write_results(journal, tmp_path / "out", summary_bytes=write_summary(journal, **HERE), with_texts=True).path
    assert lines(run) == ""

    tamper(run, "answers", 1, "text", lambda text: f"{text} More.")
    assert "answer 0: answer_sha256" in lines(run)
    tamper(run, "answers", 1, "text", lambda _: None)
    assert "answer 0: text" in lines(run)


def test_a_run_without_cases_is_named_at_once(run: Path) -> None:
    """Tables without rows are a finding, however many repeats the identity claims: no list is made of those."""
    for table in ("scores", "decisions", "answers"):
        write_parquet(SCHEMAS[table].empty_table(), run / f"{table}.parquet")
    identity = json.loads(pq.read_table(run / "run.parquet", partitioning=None)["identity_json"][0].as_py())
    identity["repeats"] = 10**12
    identity |= {"protocol": protocol_id(identity), "semantics_sha256": semantics_sha256(identity)}
    tamper(run, "run", 0, "identity_json", lambda _: canonical_json(identity).decode())
    tamper(run, "run", 0, "identity_sha256", lambda _: sha256_json(identity))

    assert "scores.parquet: rows: expected at least one, found 0" == lines(run)
