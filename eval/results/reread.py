"""A run read back from its results folder, verified, or from its journal, in the shape that scores are computed from.

In: a run's folder, a results folder that holds one, or a result file. Out: the `RunData` that its journal would give.
"""

from __future__ import annotations

from pathlib import Path

from builder.errors import BadInput, DigestMismatch
from eval.judging.graded import RunData
from eval.numbers.readers import read_run
from eval.results.card import RUNS, run_folders
from eval.results.link import check_link
from eval.results.recompute import run_data_from_tables
from eval.results.stored import read_identity, read_summary, read_tables
from eval.results.verify import verify_run


def run_at(path: Path, *, mirror: Path | None = None) -> RunData:
    """Return the run at a place: a results folder, or a result file of any kind.

    Raises:
        BadInput: as `run_of_folder` and `read_run`.
        DigestMismatch: as these.
    """
    return run_of_folder(path, mirror=mirror) if path.is_dir() else read_run(path, mirror=mirror)


def run_of_folder(folder: Path, *, mirror: Path | None = None) -> RunData:
    """Return the run that a folder holds.

    Args:
        mirror: the data that the run must be on.

    Raises:
        BadInput: the folder holds no run, or several.
        DigestMismatch: the run does not verify, or is not on the mirror's data.
    """
    runs = run_folders(folder) if (folder / RUNS).is_dir() else [folder]
    if len(runs) != 1:
        found = ", ".join(run.name for run in runs) or "none"
        raise BadInput(f"{folder}: expected one run, found {found}; name one of the folders below {folder / RUNS}")
    (run,) = runs
    findings = list(verify_run(run).findings) or (check_link(run, mirror) if mirror else [])
    if findings:
        raise DigestMismatch(f"{run}: {findings[0].line()}")
    tables = read_tables(run)
    return run_data_from_tables(tables, identity=read_identity(tables), summary=read_summary(tables))
