"""Bring one run down from a results dataset on the Hub into a results folder, where every number is computed again.

In: a repository and a run's name. Out: the run in a local results folder, whole and verified, or nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi

from builder.errors import DigestMismatch
from builder.hub.check import check_folder
from builder.hub.place import HubPlace
from builder.hub.remote import Reader, read_head
from builder.hub.snapshot import fetch_snapshot
from eval.hub.index import check_has_runs, pick_run, run_ids, run_path
from eval.results.folder import Added, add_run


@dataclass(frozen=True, slots=True)
class Fetched:
    """A run that was brought down: where it lies, the commit it is of, and whether it was there before."""

    run_id: str
    commit: str
    added: Added


def fetch_run(api: HfApi, place: HubPlace, wanted: str, *, out: Path, cache: Path | None = None) -> Fetched:
    """Bring a run down, verify it, and add it to a results folder.

    Args:
        wanted: its run_id, how that begins, or the hex digits at its end.

    Raises:
        BadInput: there is no such run, `out` is no place for it, or the Hub gives no answer.
        DigestMismatch: the run is not what its digests say; nothing was added.
    """
    head = read_head(api, place.repo, revision=place.revision, what=place.words)
    check_has_runs(head)
    run_id = pick_run(place.repo, run_ids(head), wanted)
    if findings := check_folder(head, Reader(api, cache), at=run_path(run_id)).findings:
        raise DigestMismatch(f"{place}: {findings[0].line()}; nothing was fetched")
    pinned = HubPlace(place.repo, head.commit)
    snapshot = fetch_snapshot(api, pinned, patterns=[f"{run_path(run_id)}*"], cache=cache)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / run_id
        shutil.copytree(snapshot.path / run_path(run_id), copy)  # the cache is made of links: the copy holds the files
        return Fetched(run_id, head.commit, add_run(copy, out))
