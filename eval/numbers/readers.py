"""Read a result file of any kind into the one shape that is scored, and summarise it.

In: a journal of ours, a result file of the upstream runner, or minimal lines {case_id, answer, matched}.
Out: `RunData`, or the summary of it. Which kind a file is, its first line says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.errors import BadInput, DigestMismatch
from eval.calls.journal import json_lines, read_journal
from eval.judging.graded import RunData
from eval.judging.grading import grade_journal
from eval.judging.identity import semantics_sha256
from eval.numbers.summary import summarise
from eval.numbers.upstream import read_upstream
from eval.numbers.upstream_rows import KnownCase

if TYPE_CHECKING:
    from eval.cases import Case


def is_journal(path: Path) -> bool:
    """Whether a file is one of our journals (else it is read as an upstream result file or as minimal lines)."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise BadInput(f"{path}: expected a result file (.jsonl), found {found}")
    return next(json_lines(path), (0, {}))[1].get("kind") == "run"


def read_run(path: Path, *, mirror: Path | None = None) -> RunData:
    """Return the run that a result file holds.

    Args:
        mirror: the dataset folder; minimal lines need it for their items' points, the other kinds do not.

    Raises:
        BadInput: the file is missing, holds a bad line, or needs a mirror that was not given.
        DigestMismatch: the mirror is not the data of the journal, or was changed.
    """
    if is_journal(path):
        run = grade_journal(read_journal(path))
        if mirror is not None:
            _check_same_data(run, mirror)
        return run
    return _read_upstream_with(path, mirror) if mirror else read_upstream(path)


def _check_same_data(run: RunData, mirror: Path) -> None:
    from eval.cases import read_cases, select_cases

    data = read_cases(mirror)
    found = data.dataset_sha256
    if found != run.dataset_sha256:
        raise DigestMismatch(
            f"--data {mirror}: expected the run's dataset_sha256 {run.dataset_sha256}, found {found}; give the mirror "
            "that was judged, or leave --data out: a journal carries its points"
        )
    chosen = (run.identity or {})["selection"]
    selected = select_cases(
        data.cases, panels=chosen.get("panels") or (), smoke=bool(chosen.get("smoke")), limit=chosen.get("limit")
    )
    expected = [_known_case(case) for case in selected]
    held = [KnownCase(case.benchmark, case.grading_method, case.item_ids, case.points) for case in run.cases]
    if held != expected or [case.case_id for case in run.cases] != [case.case_id for case in selected]:
        raise BadInput(f"--data {mirror}: its cases are not those of the journal's case lines; restore the lines")


def _read_upstream_with(path: Path, mirror: Path) -> RunData:
    from eval.cases import read_cases

    data = read_cases(mirror)
    return read_upstream(
        path,
        cases={case.case_id: _known_case(case) for case in data.cases},
        dataset_sha256=data.dataset_sha256,
        content_sha256=data.content_sha256,
        data={"repo": data.repo, "revision": data.revision, "n_cases": len(data.cases)},
    )


def _known_case(case: Case) -> KnownCase:
    return KnownCase(
        benchmark=case.benchmark,
        grading_method=case.grading_method,
        item_ids=tuple(item.item_id for item in case.items),
        points=tuple(item.points for item in case.items),
    )


def summarise_run(
    run: RunData, *, dialect: str, samples: int, seed: int, software: Mapping[str, str]
) -> dict[str, Any]:
    """Return the summary of a run with the semantics digest of the asked dialect and bootstrap settings."""
    digest = None
    if run.identity is not None:
        digest = semantics_sha256(run.identity, dialect=dialect, samples=samples, seed=seed)
    return summarise(run, dialect=dialect, samples=samples, seed=seed, software=software, semantics_sha256=digest)
