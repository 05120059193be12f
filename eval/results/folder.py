"""A journal -> a run in a results folder (formats.md 7): its tables and digests under `runs/<run_id>/`, and the card.

In: `X.jsonl` and the bytes of `X.summary.json`. Out: a folder that many runs share: adding one touches its own path and
README.md, nothing else. Without texts asked for it holds ids, decisions, scores and digests, and no word of a prompt, a
rubric, an answer or a reply.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bedside_bench import __version__, canonical_json
from builder.dataset.folder import (
    folder_digest,
    read_digests,
    replace_file,
    staging,
    swap_in,
    verify_files,
    write_digests,
    write_files,
)
from builder.dataset.footers import CARD
from builder.errors import BadInput, DigestMismatch
from eval.calls.journal import JournalData, read_journal
from eval.judging.grading import answer_repeats, case_replies, scored_run
from eval.numbers.defaults import SEED, SPEC
from eval.numbers.panels import score_cases
from eval.numbers.readers import read_run, summarise_run
from eval.numbers.summary import dumps_summary
from eval.results.card import END, RUNS, results_card, run_folders, shared_license, source_of, stray_entries
from eval.results.schemas import EXAMPLES, tables_of
from eval.results.tables import (
    Row,
    answer_rows,
    decision_rows,
    example_rows,
    panel_order,
    rubric_sha256,
    run_id,
    run_row,
    run_sha256,
    score_rows,
    to_table,
)
from eval.results.verify import verify_run

__all__ = ["Written", "current_summary", "verify_run", "write_results"]

MAKE_SUMMARY: Final = "make it again: bedside-bench score"
KEPT_RUNS: Final = "a run in a results folder is never replaced; use another folder"


@dataclass(frozen=True, slots=True)
class Written:
    """A run in a results folder; `added` is False where the same run was there already."""

    run_id: str
    path: Path
    folder_digest: str
    run_sha256: str
    n_expected: int
    n_graded: int
    n_failed: int
    n_pending: int
    with_texts: bool
    added: bool


@dataclass(frozen=True, slots=True)
class Added:
    """A run that came from elsewhere; `added` is False where the same run was there already."""

    path: Path
    folder_digest: str
    added: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """A run made ready: the rows of its tables, its summary, and what `digests.json` says of it."""

    run_id: str
    tables: Mapping[str, list[Row]]
    summary: Mapping[str, Any]
    digests: Mapping[str, Any]


def current_summary(journal: Path, *, software: Mapping[str, str]) -> bytes:
    """Return the bytes that `X.summary.json` must hold: those it has if they fit the journal, else new ones.

    Args:
        software: what a new summary says it was made with.
    """
    run = read_run(journal)
    own = journal.with_suffix(".summary.json")
    old = own.read_bytes() if own.is_file() else b""
    fresh = summarise_run(run, dialect=SPEC, seed=SEED, software=software)
    return old if old and _says_the_same(old, fresh) else dumps_summary(fresh).encode()


def _says_the_same(old: bytes, fresh: Mapping[str, Any]) -> bool:
    """Whether a summary is a fresh one but for the software it was made with."""
    try:
        made_with = json.loads(old)["software"]
        return dumps_summary({**fresh, "software": made_with}).encode() == old
    except (ValueError, TypeError, KeyError):
        return False


def write_results(journal: Path, out: Path, *, summary_bytes: bytes, with_texts: bool = False) -> Written:
    """Add a journal's run to a results folder; the same run again changes nothing.

    Args:
        out: an absent or empty folder, or one that holds results.
        summary_bytes: what `X.summary.json` holds; it is kept to the byte.
        with_texts: keep the answers' texts.

    Raises:
        BadInput: nothing was asked yet, the summary is not the journal's, or `out` is no place for this run.
        DigestMismatch: what was written does not give its own numbers back; nothing was put in place.
    """
    data = read_journal(journal)
    if not data.calls:
        raise BadInput(f"{journal}: expected at least one call, found none; bedside-bench run makes them")
    run = _make(data, journal, summary_bytes=summary_bytes, with_texts=with_texts)
    target = out / RUNS / run.run_id
    with staging(out) as staged:
        _check_place(out, run.digests["source"]["license"])
        added = not target.exists()
        if added:
            _write_run(run, staged / "run")
            swap_in(staged / "run", target)
        else:
            _check_same(target, run.digests["run_sha256"], with_texts=with_texts)
        _write_card(out, staged)
    counts = {name: run.summary[name] for name in ("n_expected", "n_graded", "n_failed", "n_pending")}
    digest = folder_digest(target)
    return Written(run.run_id, target, digest, run.digests["run_sha256"], **counts, with_texts=with_texts, added=added)


def add_run(folder: Path, out: Path) -> Added:
    """Add a run's folder from elsewhere to a results folder; the same run again changes nothing.

    Raises:
        BadInput: `out` is no place for it.
        DigestMismatch: the run is not what its digests and decisions say; nothing was added.
    """
    verified = verify_run(folder)
    if verified.findings:
        raise DigestMismatch(f"{folder.name}: {verified.findings[0].line()}; nothing was added")
    digests = read_digests(folder)
    target = out / RUNS / digests["run_id"]
    with staging(out) as staged:
        _check_place(out, source_of(digests).get("license"))
        if target.exists():
            _check_same(target, digests["run_sha256"], with_texts=_has_texts(folder))
            added = False
        else:
            shutil.copytree(folder, staged / "run")
            swap_in(staged / "run", target)
            added = True
        _write_card(out, staged)
    return Added(target, folder_digest(target), added)


def _make(data: JournalData, journal: Path, *, summary_bytes: bytes, with_texts: bool) -> _Run:
    """Return the rows and digests of a journal's run."""
    identity, replies, graded = data.identity, case_replies(data), scored_run(data)
    summary = summarise_run(graded, dialect=SPEC, seed=SEED, software={})
    if not _says_the_same(summary_bytes, summary):
        own = journal.with_suffix(".summary.json")
        raise BadInput(
            f"{own}: expected the summary of {journal.name} as it is now, found another; {MAKE_SUMMARY} {journal}"
        )
    answers = answer_rows(data.cases, replies, repeats=answer_repeats(identity), with_texts=with_texts)
    decisions = decision_rows(data.cases, replies, identity)
    digest = run_sha256(data.header["identity_sha256"], answers=answers, decisions=decisions)
    date = _first_call_date(data)
    row = run_row(
        identity,
        summary,
        case_ids=[case.case_id for case in graded.cases],
        run_sha256=digest,
        date=date,
        with_texts=with_texts,
        identity_json=canonical_json(identity).decode(),
        summary_json=summary_bytes.decode(),
    )
    tables = {"run": [row], "scores": score_rows(score_cases(graded)), "decisions": decisions, "answers": answers}
    if EXAMPLES in tables_of(identity["suite"]):
        tables[EXAMPLES] = example_rows(data.cases)
    name = run_id(date, identity["answer"]["model"], digest)
    return _Run(name, tables, summary, _digests(data, row, run_id=name, decisions=decisions))


def _first_call_date(data: JournalData) -> str:
    """Return the UTC date of the first call this run made itself, of the first it took over where it made none."""
    own = [call.at for call in data.calls if call.at and call.reused_from is None]
    times = own or [call.at for call in data.calls if call.at] or [str(data.header.get("started"))]
    return min(times)[:10]


def _digests(data: JournalData, row: Row, *, run_id: str, decisions: list[Row]) -> dict[str, Any]:
    """Return the members of a run's `digests.json` but `format` and `files` (formats.md 3)."""
    about = data.header.get("data") or {}
    panels = Counter(case.benchmark for case in data.cases)
    names = ("run_sha256", "identity_sha256", "semantics_sha256", "dataset_sha256", "content_sha256")
    return {
        "kind": "run",
        "run_id": run_id,
        **{name: row[name] for name in names},
        "rubric_sha256": rubric_sha256(decisions),
        "n_cases": len(data.cases),
        "n_items": sum(len(case.items) for case in data.cases),
        # Which cases a panel has is in the tables; what they say is not, so there is no digest of it here.
        "panels": [{"id": panel, "n": panels[panel], "sha256": None} for panel in panel_order(panels)],
        "splits": about.get("splits") or {},
        "canaries": about.get("canaries") or [],
        "source": {
            "kind": "hub" if about.get("repo") else "tree",
            **{name: about.get(name) for name in ("repo", "revision", "license")},
        },
        "made_by": {"bedside-bench": __version__, "pyarrow": pa.__version__},
    }


def _check_place(out: Path, license_id: str | None) -> None:
    """Stop unless a folder is absent, empty or holds results of ours, on data of the same licence.

    Raises:
        BadInput: it is something else.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: expected a results folder or nothing, found a file; name another place")
    if (out / "digests.json").exists():
        raise BadInput(f"{out}: expected a results folder, found a mirror or a single run; name another place")
    if (out / CARD).exists():
        if END not in (out / CARD).read_text(encoding="utf-8", errors="replace"):
            raise BadInput(f"{out / CARD}: expected the card of a results folder, found another; name another folder")
    elif out.exists() and (stray := next(stray_entries(out), None)):
        raise BadInput(
            f"{out}: expected a results folder or an empty one, found {stray.file} in it; name another folder"
        )
    for folder in run_folders(out):
        if read_digests(folder).get("kind") != "run":
            raise BadInput(f"{folder}: expected the folder of a run, found another; name another place than {out}")
    shared_license(out, license_id)


def _write_run(run: _Run, folder: Path) -> None:
    """Write a run's folder and compute everything in it again from what was written.

    Raises:
        DigestMismatch: it does not come out the same.
    """
    files = {f"{name}.parquet": to_table(rows, name, run_id=run.run_id) for name, rows in run.tables.items()}
    write_files(folder, files)
    write_digests(folder, run.digests)
    findings = verify_run(folder).findings
    if findings:
        raise DigestMismatch(f"{run.run_id}: what was written does not give its numbers back: {findings[0].line()}")


def _check_same(target: Path, run_sha256: str, *, with_texts: bool) -> None:
    """Stop unless the folder under a run's path holds this very run, whole.

    Raises:
        BadInput: it holds another one, it was changed, or it keeps texts where this one does not.
    """
    found = read_digests(target).get("run_sha256")
    if found != run_sha256:
        raise BadInput(f"{target}: expected run_sha256 {run_sha256}, found {found} of another; {KEPT_RUNS}")
    if broken := verify_files(target):
        raise BadInput(f"{target}: holds this run, but changed: {broken[0].line()}; remove the folder and try again")
    if _has_texts(target) != with_texts:
        how = "without" if with_texts else "with"
        raise BadInput(f"{target}: holds this run {how} its texts; {KEPT_RUNS}")


def _has_texts(run: Path) -> bool:
    return bool(pq.read_table(run / "run.parquet", columns=["with_texts"], partitioning=None)[0][0].as_py())


def _write_card(out: Path, staged: Path) -> None:
    """Put the card of all runs in the folder in place, unless it is there already."""
    card = out / CARD
    old = card.read_bytes().decode() if card.exists() else None
    new = results_card(out, old=old)
    if new != old:
        (staged / CARD).write_bytes(new.encode())
        replace_file(staged / CARD, card)
