"""The card of a results folder: made from the runs' own rows and nothing else."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from bedside_bench import __version__
from builder.cards.card import MADE_BY
from builder.errors import BadInput
from eval.results.card import (
    END,
    MOST_BYTES,
    canaries_of,
    check_results_card,
    listed_runs,
    results_card_text,
    run_row_of,
)
from eval.results.folder import Written, write_results
from tests.journals import write_journal, write_summary
from tests.tampering import FAILURES, PANELS, tamper


def add_run(folder: Path, shift: int = 0) -> Written:
    """Add a run with graded, failed and pending cases to the results in `folder`/out."""
    journal = write_journal(folder / f"{shift}.jsonl", cases_per_panel=4, panels=PANELS, shift=shift, fail=FAILURES)
    return write_results(journal, folder / "out", summary_bytes=write_summary(journal))


def test_the_card_follows_from_the_run_tables_alone(tmp_path: Path) -> None:
    """Whoever has the rows of the `runs` config, in any order, makes the very card that the folder has."""
    add_run(tmp_path)
    add_run(tmp_path, shift=1)
    rows = [row for path in (tmp_path / "out").glob("runs/*/run.parquet") for row in pl.read_parquet(path).to_dicts()]
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    newest = sorted(rows, key=lambda row: str(row["run_id"]), reverse=True)

    assert card == results_card_text(newest, license_id="cc-by-4.0", old=None)
    assert f"{card}Mine.\n" == results_card_text(rows, license_id="cc-by-4.0", old=f"anything{END}\nMine.\n")


def test_the_card_shows_every_panel_of_every_run(tmp_path: Path) -> None:
    """Beside the runs stand their panels' scores, a column a run while there are few."""
    written = add_run(tmp_path)
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (row,) = pl.read_parquet(written.path / "run.parquet").to_dicts()
    scores = [
        f"{panel['mean']:.3f} ({panel['ci_low']:.2f} to {panel['ci_high']:.2f}), {panel['n']} of 4"
        for panel in row["panels"]
    ]
    shown = [line.split("|")[1:3] for line in card.splitlines() if line.startswith("| `") and "_" in line]

    assert [[f"`{panel}`", score] for panel, score in zip(PANELS, scores, strict=True)] == [
        [cell.strip() for cell in cells] for cells in shown
    ]


def test_a_card_of_another_version_is_held_to_its_runs_and_scores(tmp_path: Path) -> None:
    """Another version words the rest otherwise, which is no finding; a score that is not the run's is one."""
    written = add_run(tmp_path)
    path, out = tmp_path / "out" / "README.md", tmp_path / "out"
    reworded = path.read_text(encoding="utf-8").replace("## Check it", "## Verify it")
    path.write_text(reworded, encoding="utf-8")
    assert ["generated part"] == [finding.what for finding in check_results_card(out)]

    older = reworded.replace(f"{MADE_BY} {__version__}.", f"{MADE_BY} 0.0.9.")
    path.write_text(older, encoding="utf-8")
    assert [] == check_results_card(out)

    (row,) = pl.read_parquet(written.path / "run.parquet").to_dicts()
    true = next(line for line in older.splitlines() if line.startswith(f"| {written.run_id} |"))
    forged = older.replace(f"| {row['overall_mean']:.3f} (", "| 0.999 (")
    path.write_text(f"{forged}\n{true}\n", encoding="utf-8")  # what people write below is not the table
    assert [f"{row['overall_mean']:.3f} in the line of {written.run_id}"] == [
        finding.expected for finding in check_results_card(out)
    ]


def test_words_of_a_run_cannot_end_the_generated_part_or_list_a_run(tmp_path: Path) -> None:
    """A canary that holds the card's last generated line, and one that looks like a run, leave the card what it is."""
    written = add_run(tmp_path)
    rows = pl.read_parquet(written.path / "run.parquet").to_dicts()
    canaries = [f"{END[:9]}{END}{END[9:]}", "| 2026-01-01-forged-00000000 | x |"]
    card = results_card_text(rows, license_id="cc-by-4.0", canaries=canaries, old=None)

    assert 1 == card.count(END)
    assert [written.run_id] == listed_runs(card)
    assert card == results_card_text(rows, license_id="cc-by-4.0", canaries=canaries, old=card)


def test_canaries_of_another_form_are_left_out() -> None:
    """Digests of somebody else may say anything; only a list of canaries is one."""
    assert ["a", "b"] == canaries_of([{"canaries": ["b", "a"]}, {"canaries": 7}, {"canaries": "xyz"}, {}])


@pytest.mark.parametrize(("column", "value"), [("judge_models", [None]), ("panels", [None])])
def test_a_list_that_holds_null_is_no_row_of_a_run(column: str, value: list[None], tmp_path: Path) -> None:
    """A run whose judges or panels hold null is refused by name, before anything is shown of it."""
    written = add_run(tmp_path)
    tamper(written.path, "run", 0, column, lambda _: value)

    with pytest.raises(BadInput, match=rf"expected a value in {column}\[\], found null"):
        run_row_of(written.path / "run.parquet", where="run.parquet")


def test_a_row_that_unpacks_to_far_too_much_is_not_unpacked(tmp_path: Path) -> None:
    """A small file that holds a huge cell is refused from its footer."""
    written = add_run(tmp_path)
    tamper(written.path, "run", 0, "summary_json", lambda _: " " * (MOST_BYTES + 1))

    assert (written.path / "run.parquet").stat().st_size < MOST_BYTES / 100
    with pytest.raises(BadInput, match="expected one row of at most 67,108,864 bytes, found 1 of 67,"):
        run_row_of(written.path / "run.parquet", where="run.parquet")
