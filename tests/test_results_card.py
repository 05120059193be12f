"""The card of a results folder: made from the runs' own rows and nothing else."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from eval.results.card import END, results_card_text
from eval.results.folder import Written, write_results
from tests.journals import write_journal, write_summary
from tests.tampering import FAILURES, PANELS


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
