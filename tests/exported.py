"""Results folders for tests of exports: finished runs of a model on a Hub dataset, some of whose cases failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.calls.plan import Model
from eval.results.folder import write_results
from tests.journals import MODEL, Failures, write_journal, write_summary
from tests.tampering import HERE, PANELS

DATA_REPO = "org/bedside-bench"
REVISION = "0123456789abcdef0123456789abcdef01234567"
FAILED = {1: ("answer", "timeout"), 2: ("judge", "invalid_reply"), 4: ("answer", "truncated")}
"""Of four cases a panel: two of the first are left without decisions; a cut answer is judged all the same."""


def exportable(
    folder: Path,
    *,
    repo: str | None = DATA_REPO,
    fail: Failures | None = FAILED,
    panels: Sequence[str] = PANELS,
    answer: Model = MODEL,
    with_texts: bool = False,
    **journal: Any,
) -> Path:
    """Add a run to the results folder `out` in a folder and return that; `journal` is for `write_journal`."""
    path = write_journal(folder / "x.jsonl", cases_per_panel=4, panels=panels, fail=fail, answer=answer, **journal)
    if repo is not None:
        _name_data(path, repo)
    write_results(path, folder / "out", summary_bytes=write_summary(path, **HERE), with_texts=with_texts)
    path.unlink()
    return folder / "out"


def _name_data(journal: Path, repo: str) -> None:
    """Let a journal say that its cases are from a Hub dataset."""
    first, _, rest = journal.read_text().partition("\n")
    header = json.loads(first)
    header["data"] |= {"repo": repo, "revision": REVISION}
    journal.write_text(f"{json.dumps(header)}\n{rest}")
