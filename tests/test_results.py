"""Adding runs to a results folder: what is written, what is refused, and who can read it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from builder.errors import BadInput
from eval.calls.builtin import POLICIES
from eval.calls.plan import Model
from eval.results.card import END
from eval.results.folder import Written, current_summary, verify_run, write_results
from tests.journals import MODEL, SOFTWARE, write_journal, write_summary
from tests.plans import POLICY, VERBATIM, case_set, make_plan, run

ROOT = Path(__file__).parent.parent
PANELS = ["drug_safety", "safety_diagnostic"]
CONFIGS = {"runs": "run", "scores": "scores", "decisions": "decisions", "answers": "answers"}


def add(journal: Path, out: Path, **more: Any) -> Written:
    """Summarise a journal and add its run to a results folder."""
    return write_results(journal, out, summary_bytes=write_summary(journal), **more)


def files_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return path -> (bytes, time of the last change) of every file in a folder."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def listed_runs(card: str) -> list[str]:
    """Return the run_ids in the card's table, in its order."""
    return [line.split()[1] for line in card.splitlines() if line.startswith("| 20")]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A finished run over four cases."""
    return write_journal(tmp_path / "x.jsonl", panels=PANELS)


def test_a_run_is_five_files_under_its_own_path(journal: Path, tmp_path: Path) -> None:
    """A results folder holds the card and, under runs/<run_id>/, four tables and their digests."""
    written = add(journal, tmp_path / "out")
    names = ["answers.parquet", "decisions.parquet", "digests.json", "run.parquet", "scores.parquet"]

    assert ["README.md", *(f"runs/{written.run_id}/{name}" for name in names)] == sorted(files_of(tmp_path / "out"))
    assert (4, 4, 0, 0, True) == (
        written.n_expected,
        written.n_graded,
        written.n_failed,
        written.n_pending,
        written.added,
    )


def test_the_summary_is_kept_to_the_byte(journal: Path, tmp_path: Path) -> None:
    """The run table holds the exact text of X.summary.json."""
    written = add(journal, tmp_path / "out")

    text = pq.read_table(written.path / "run.parquet")["summary_json"][0].as_py()
    assert journal.with_suffix(".summary.json").read_bytes() == text.encode()


def test_a_score_in_the_table_is_the_one_worked_out_by_hand(journal: Path, tmp_path: Path) -> None:
    """The first answer holds items 1 and 2 (+1 +1) of +2 +1 +1 -1: its score is 2/4."""
    written = add(journal, tmp_path / "out")
    row = pl.read_parquet(written.path / "scores.parquet").row(0, named=True)

    assert (0.5, 0.5, 4, 2, 1, 0) == tuple(
        row[name] for name in ("score", "raw_score", "n_items", "n_matched", "negatives_judged", "negatives_matched")
    )


def test_the_same_run_again_changes_nothing(journal: Path, tmp_path: Path) -> None:
    """Adding a run that is there already leaves every byte and time as it was, and says so."""
    add(journal, tmp_path / "out")
    before = files_of(tmp_path / "out")
    again = add(journal, tmp_path / "out")

    assert not again.added
    assert before == files_of(tmp_path / "out")


def test_a_second_run_touches_only_its_own_path_and_the_card(journal: Path, tmp_path: Path) -> None:
    """Whoever adds a run leaves the files of all other runs as they are."""
    first = add(journal, tmp_path / "out")
    before = files_of(tmp_path / "out")
    second = add(write_journal(tmp_path / "y.jsonl", panels=PANELS, shift=1), tmp_path / "out")
    after = files_of(tmp_path / "out")

    changed = {name for name in after if after[name] != before.get(name)}
    assert first.run_id != second.run_id
    assert before.keys() <= after.keys()
    assert {name for name in changed if not name.startswith(f"runs/{second.run_id}/")} == {"README.md"}


def test_the_card_lists_every_run_and_counts_no_rows(journal: Path, tmp_path: Path) -> None:
    """The card has one line a run and the features of four configs, but no count that another's run would break."""
    runs = [add(journal, tmp_path / "out")]
    runs.append(add(write_journal(tmp_path / "y.jsonl", panels=PANELS, shift=1), tmp_path / "out"))
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")

    assert sorted(run.run_id for run in runs) == listed_runs(card)
    assert "num_examples" not in card
    assert all(f"path: runs/*/{table}.parquet" in card for table in CONFIGS.values())


def test_a_run_says_which_splits_its_data_have(journal: Path, tmp_path: Path) -> None:
    """Held-out data are known from a run's digests; a journal that does not say leaves them empty."""
    own = add(journal, tmp_path / "out").path / "digests.json"
    held_out = _edit_splits(journal, {"train": "train", "test": "test"})
    silent = _edit_splits(journal, None)

    digests = [own, *(add(path, tmp_path / path.stem).path / "digests.json" for path in (held_out, silent))]
    assert [{"train": "train"}, {"train": "train", "test": "test"}, {}] == [
        json.loads(path.read_bytes())["splits"] for path in digests
    ]


def _edit_splits(journal: Path, splits: dict[str, str] | None) -> Path:
    """Return a copy of a journal whose first line says other splits of its data, or none."""
    first, rest = journal.read_text().split("\n", 1)
    header = json.loads(first)
    data = {**header["data"], "splits": splits} if splits else {"license": header["data"]["license"]}
    path = journal.with_name(f"{'held' if splits else 'silent'}.jsonl")
    path.write_text(json.dumps({**header, "data": data}) + "\n" + rest)
    return path


def test_the_runner_writes_the_splits_of_its_mirror(tmp_path: Path) -> None:
    """A new journal's first line says which splits the data have."""
    run(make_plan(case_set(1)), tmp_path / "x.jsonl")

    assert {"train": "train"} == json.loads((tmp_path / "x.jsonl").read_text().split("\n")[0])["data"]["splits"]


def test_what_people_add_below_the_generated_part_is_kept(journal: Path, tmp_path: Path) -> None:
    """A note at the end of the card survives the next run."""
    add(journal, tmp_path / "out")
    card = tmp_path / "out" / "README.md"
    card.write_text(card.read_text(encoding="utf-8") + "\nRun on two machines. 两台机器。\n", encoding="utf-8")
    add(write_journal(tmp_path / "y.jsonl", panels=PANELS, shift=1), tmp_path / "out")

    assert card.read_text(encoding="utf-8").endswith(f"{END}\n\nRun on two machines. 两台机器。\n")


def test_an_interrupted_card_is_made_by_the_next_try(journal: Path, tmp_path: Path) -> None:
    """A kill between the run's folder and the card is mended by the same command."""
    written = add(journal, tmp_path / "out")
    (tmp_path / "out" / "README.md").unlink()
    add(journal, tmp_path / "out")

    assert written.run_id in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_a_different_run_under_the_same_path_is_refused(journal: Path, tmp_path: Path) -> None:
    """A run's folder is never replaced by another run that has its name."""
    written = add(journal, tmp_path / "out")
    digests = written.path / "digests.json"
    digests.write_text(digests.read_text().replace(written.run_sha256, written.run_sha256[:8] + "0" * 56))

    with pytest.raises(BadInput, match="of another; a run in a results folder is never replaced"):
        add(journal, tmp_path / "out")


def test_a_changed_run_is_not_taken_for_the_same(journal: Path, tmp_path: Path) -> None:
    """Where the run is there but changed, adding it again says so instead of passing over it."""
    written = add(journal, tmp_path / "out")
    (written.path / "scores.parquet").write_bytes(b"PAR1")

    with pytest.raises(BadInput, match=r"holds this run, but changed: scores\.parquet"):
        add(journal, tmp_path / "out")


def test_texts_come_only_when_asked_for(journal: Path, tmp_path: Path) -> None:
    """With texts the answers are kept; adding the run without them to the same folder is refused."""
    written = add(journal, tmp_path / "out", with_texts=True)
    text = pq.read_table(written.path / "answers.parquet")["text"][0].as_py()

    assert text.startswith("Answer 0: ≥ 5 mg.\n")
    with pytest.raises(BadInput, match="holds this run with its texts"):
        add(journal, tmp_path / "out")


def _strings(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            yield json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False)
            yield str(pq.read_metadata(path).metadata)
        elif path.is_file():
            yield path.read_text(encoding="utf-8")


def test_no_text_of_prompt_rubric_answer_or_reply_is_in_the_folder(tmp_path: Path) -> None:
    """Without --with-texts no text gets in, also where calls failed and their reasons quote it."""
    failures = {
        0: ("answer", "rejected"),
        1: ("judge", "invalid_reply"),
        2: ("judge", "ok"),
        3: ("answer", "filtered"),
        4: ("judge", "timeout"),
    }
    journal = write_journal(tmp_path / "x.jsonl", cases_per_panel=3, panels=PANELS, fail=failures)
    assert "the server said: Answer" in journal.read_text()
    add(journal, tmp_path / "out")
    everything = "\n".join(_strings(tmp_path / "out")).replace('\\"', '"')

    cases = case_set(3, PANELS).cases
    texts = [case.prompt for case in cases] + [item.text for case in cases for item in case.items]
    words = {word for text in texts for word in text.split() if len(word) > 5}
    assert not [word for word in words if word in everything]
    assert not [text for text in ("Answer 1", "I would rather", "the server said", "sk-dummy") if text in everything]


def test_a_servers_own_words_are_kept_only_as_a_name(journal: Path, tmp_path: Path) -> None:
    """What a server returns as a model's name or finish reason is kept if it is a name, not if it is a text."""
    text = journal.read_text().replace('"test/Model A-2026"', '"You asked: Dose?\\nAnswer"', 1)
    journal.write_text(text)
    written = add(journal, tmp_path / "out")

    column = pq.read_table(written.path / "answers.parquet")["model_returned"].to_pylist()
    assert [None, "test/Model A-2026", "test/Model A-2026", "test/Model A-2026"] == column


def test_a_run_without_a_call_is_refused(journal: Path, tmp_path: Path) -> None:
    """A journal in which nothing was asked yet is no result."""
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"kind":"call"' not in line))

    with pytest.raises(BadInput, match="expected at least one call, found none"):
        add(journal, tmp_path / "out")


def test_pending_cases_are_allowed_and_said(tmp_path: Path) -> None:
    """An unfinished run can be kept: what is pending is counted and has bounds."""
    journal = write_journal(tmp_path / "x.jsonl", panels=PANELS, fail={3: ("answer", "pending")})
    written = add(journal, tmp_path / "out")

    assert (4, 3, 0, 1) == (written.n_expected, written.n_graded, written.n_failed, written.n_pending)
    assert "| 4 | 3 | 0 | 1 |" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_a_stale_summary_is_refused(journal: Path, tmp_path: Path) -> None:
    """A summary of an earlier state of the journal is no summary of this run."""
    old = write_summary(journal)
    later = write_journal(tmp_path / "x.jsonl", panels=PANELS, shift=1)

    with pytest.raises(BadInput, match=r"expected the summary of x\.jsonl as it is now, found another; make it again"):
        write_results(later, tmp_path / "out", summary_bytes=old)


def test_a_summary_in_another_dialect_is_refused(journal: Path, tmp_path: Path) -> None:
    """Results keep the run's own rule; the published runner's rule is only for comparing."""
    from eval.numbers.readers import read_run, summarise_run
    from eval.numbers.summary import dumps_summary

    other = summarise_run(read_run(journal), dialect="upstream", samples=10_000, seed=42, software=SOFTWARE)
    with pytest.raises(BadInput, match="found another; make it again"):
        write_results(journal, tmp_path / "out", summary_bytes=dumps_summary(other).encode())


def test_the_current_summary_is_kept_and_a_stale_one_made_again(journal: Path) -> None:
    """The summary beside the journal is used as it is while it fits, whatever machine made it."""
    own = write_summary(journal, machine="other")
    assert own == current_summary(journal, software=SOFTWARE)

    journal.with_suffix(".summary.json").write_bytes(b"{}")
    assert write_summary(journal) == current_summary(journal, software=SOFTWARE)


@pytest.mark.parametrize("name", ["README.md", "digests.json", "notes.txt"])
def test_a_folder_of_someone_else_is_left_alone(journal: Path, tmp_path: Path, name: str) -> None:
    """A folder that holds other things than results is refused and stays as it is."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine\n")

    with pytest.raises(BadInput, match="expected"):
        add(journal, tmp_path / "out")
    assert ["mine\n"] == [path.read_text() for path in (tmp_path / "out").iterdir()]


def test_runs_on_data_of_two_licences_do_not_share_a_folder(journal: Path, tmp_path: Path) -> None:
    """A card states one licence, so runs on data of another one need another folder."""
    add(journal, tmp_path / "out")
    other = write_journal(tmp_path / "y.jsonl", panels=PANELS, shift=1, license_id="cc-by-nc-sa-4.0")

    with pytest.raises(BadInput, match=r"runs on data of one licence, found cc-by-4\.0, cc-by-nc-sa-4\.0"):
        add(other, tmp_path / "out")


def test_the_date_is_that_of_the_first_call(tmp_path: Path) -> None:
    """The run's name begins with the UTC date of its first call, not of the day the results are made."""
    journal = write_journal(tmp_path / "x.jsonl", panels=PANELS, day="2025-12-31")

    assert add(journal, tmp_path / "out").run_id.startswith("2025-12-31-test-model-a-")


def test_a_run_made_by_the_runner_itself_is_kept_and_verifies(tmp_path: Path) -> None:
    """What the run command leaves behind goes into results as it is."""
    journal = tmp_path / "x.jsonl"
    run(make_plan(case_set(1)), journal)
    written = write_results(journal, tmp_path / "out", summary_bytes=current_summary(journal, software=SOFTWARE))

    assert (10, 10) == (written.n_expected, written.n_graded)
    assert verify_run(tmp_path / "out").ok


def test_a_run_of_stand_ins_is_labelled_in_the_card(tmp_path: Path) -> None:
    """Whoever reads the card sees that builtin answers and decisions are no models."""
    journal = write_journal(tmp_path / "x.jsonl", panels=PANELS, answer=POLICY, judge=VERBATIM)
    add(journal, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")

    assert "are fixed answers, not models" in card
    assert "show the pipeline, not the quality of answers" in card


_ADD = """
import sys
from pathlib import Path
from eval.results.folder import write_results
for name in sys.argv[2:]:
    journal = Path(name)
    write_results(journal, Path(sys.argv[1]), summary_bytes=journal.with_suffix(".summary.json").read_bytes())
"""


@pytest.mark.slow
def test_two_commands_at_once_add_both_their_runs(tmp_path: Path) -> None:
    """Two processes that add runs to one folder at the same time end with all runs and a card that lists them."""
    journals = [write_journal(tmp_path / f"{n}.jsonl", panels=["drug_safety"], answer=answer)
                for n, answer in enumerate((MODEL, Model("other", MODEL.endpoint), *map(Model, POLICIES)))]  # fmt: skip
    for journal in journals:
        write_summary(journal)
    command = [sys.executable, "-c", _ADD, str(tmp_path / "out")]
    both = [
        subprocess.Popen([*command, *map(str, journals[start::2])], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for start in (0, 1)
    ]
    errors = [process.communicate()[1] for process in both]

    names = sorted(path.name for path in (tmp_path / "out" / "runs").iterdir())
    assert ["", ""] == errors
    assert 6 == len(names)
    assert names == listed_runs((tmp_path / "out" / "README.md").read_text(encoding="utf-8"))
