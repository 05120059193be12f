"""The runs of a results dataset on the Hub: its index (the `run` tables), read without looking at anything else.

In: a repository at one commit. Out: one `RemoteRun` a run; the run that a person means; findings from digests alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from builder.dataset.digests import DIGESTS_NAME, HUB_FILES, Finding, Verified, parse_digests
from builder.dataset.footers import CARD
from builder.errors import BadInput
from builder.hub.check import FolderOnHub, check_folder
from builder.hub.remote import Head, Reader
from builder.tree.licence import LEGAL_PREFIXES
from eval.results.card import END, INDEX, RUNS, license_of, listed_runs, results_card_text, run_row_of
from eval.results.schemas import EXAMPLES


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run in a repository: its id, its `digests.json`, and the row of its `run` table."""

    run_id: str
    digests: Mapping[str, Any]
    row: Mapping[str, Any]


def run_ids(head: Head) -> list[str]:
    """Return the names of the folders below `runs/`, sorted."""
    return sorted({path.split("/")[1] for path in head.below(RUNS) if path.count("/") > 1})


def check_has_runs(head: Head) -> None:
    """Stop unless a repository is a results dataset.

    Raises:
        BadInput: it holds a mirror, or nothing of ours.
    """
    if not run_ids(head):
        found = "a mirror" if DIGESTS_NAME in head.files else "no runs"
        raise BadInput(f"{head.repo}: expected a results dataset ({RUNS}/<run_id>/), found {found}")


def run_path(run_id: str) -> str:
    """Return where a run's files are: `runs/<run_id>/`."""
    return f"{RUNS}/{run_id}/"


def read_index(head: Head, reader: Reader, *, only: Iterable[str] | None = None) -> list[RemoteRun]:
    """Return the runs of a repository by run_id.

    Args:
        only: these runs instead of all.

    Raises:
        BadInput: a run's digests or row cannot be read, or belong to another run.
    """
    names = run_ids(head) if only is None else sorted(only)
    paths = [f"{run_path(name)}{file}" for name in names for file in (DIGESTS_NAME, INDEX)]
    contents = reader.read(head, paths)
    return [_remote_run(head.repo, name, contents) for name in names]


def _remote_run(repo: str, name: str, contents: Mapping[str, bytes]) -> RemoteRun:
    where = f"{repo}: {run_path(name)}"
    digests = parse_digests(contents[f"{run_path(name)}{DIGESTS_NAME}"], where=f"{where}{DIGESTS_NAME}")
    row = run_row_of(pa.BufferReader(contents[f"{run_path(name)}{INDEX}"]), where=f"{where}{INDEX}")
    for what, found in (("digests.json", digests.get("run_id")), (INDEX, row["run_id"])):
        if found != name:
            raise BadInput(f"{where}{what}: expected run_id {name}, found {found!r}; remove that run or put it right")
    return RemoteRun(name, digests, row)


def pick_run(repo: str, names: Sequence[str], wanted: str) -> str:
    """Return the run_id that a person means: the whole of it, how it begins, or the hex digits at its end.

    Raises:
        BadInput: no run, or several, have such a name.
    """
    if wanted in names:
        return wanted
    fitting = [name for name in names if name.startswith(wanted) or name.endswith(f"-{wanted}")]
    if len(fitting) == 1:
        return fitting[0]
    found = f"{len(fitting)} of them" if fitting else "none"
    raise BadInput(f"{repo}: expected one run called {wanted}, found {found}; see bedside-bench runs {repo}")


def check_results(head: Head, reader: Reader, *, expect: str | None = None) -> Verified:
    """Return every way in which the files of a results repository are not those that its runs' digests list.

    Args:
        expect: a folder digest (64 hex digits) that one of the runs must have.
    """
    names = run_ids(head)
    runs = {name: check_folder(head, reader, at=run_path(name)) for name in names}
    findings = [finding for name, found in runs.items() for finding in (*found.findings, *_misnamed(name, found))]
    findings += _strays(head)
    findings += _card(head, reader, names, licenses={license_of(run.digests) for run in runs.values() if run.digests})
    if not names:
        findings.append(Finding(RUNS, "runs", "at least one run", "none"))
    if expect is not None and expect.strip().lower() not in {found.folder_digest for found in runs.values()}:
        findings.append(Finding(RUNS, "folder digest", f"one run with {expect.strip().lower()}", "none"))
    facts = {run_path(name).rstrip("/"): found.folder_digest or "none" for name, found in runs.items()}
    return Verified(tuple(findings), None, "run", facts={"runs": str(len(names)), **facts})


def _misnamed(name: str, found: FolderOnHub) -> list[Finding]:
    expected = {"kind": "run", "run_id": name}
    return [
        Finding(f"{run_path(name)}{DIGESTS_NAME}", what, value, str(found.digests.get(what)))
        for what, value in expected.items()
        if found.digests and found.digests.get(what) != value
    ]


def _strays(head: Head) -> list[Finding]:
    allowed = {CARD, *HUB_FILES}
    return [
        Finding(path, "stray", f"{CARD} and {RUNS}/<run_id>/ only", "a file")
        for path in sorted(head.files)
        if path not in allowed and not path.startswith(LEGAL_PREFIXES) and not path.startswith(f"{RUNS}/")
    ] + [Finding(path, "stray", "folders of runs only", "a file") for path in head.below(RUNS) if path.count("/") == 1]


def _card(head: Head, reader: Reader, names: Sequence[str], *, licenses: set[str]) -> list[Finding]:
    if CARD not in head.files:
        return [Finding(CARD, "missing", "the card of a results dataset", "none")]
    text = reader.read(head, [CARD])[CARD].decode(errors="replace")
    if END not in text:
        return [Finding(CARD, "generated part", "the card of a results dataset", "another")]
    listed = listed_runs(text)
    if listed != list(names):
        return [Finding(CARD, "table of runs", ", ".join(names), ", ".join(listed) or "none")]
    # It says which files are loaded, and is the same whatever the runs are but for the one table that not all have.
    examples = any(path.endswith(f"/{EXAMPLES}.parquet") for path in head.below(RUNS))
    expected = [
        _front(results_card_text((), license_id=license_id, examples=examples, old=None)) for license_id in licenses
    ]
    if licenses and expected != [_front(text)]:
        return [Finding(CARD, "front matter", "that of the card of these runs", "another")]
    return []


def _front(card: str) -> str:
    return card.partition("\n---\n")[0]
