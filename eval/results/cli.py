"""The commands about results: `results`, `verify`.

Only here are they printed and given an exit code. Heavy modules are imported inside the commands.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Annotated, Final

import typer

from builder.cli import hex_digest, one_line_errors, progress
from builder.hub.place import HubPlace, find_place
from builder.rules.problems import printable
from eval.numbers.cli import software, write_whole

if TYPE_CHECKING:
    from builder.dataset.digests import Verified

FACT: Final = 15  # columns of a fact's name


def results(
    journal: Annotated[Path, typer.Argument(metavar="X.jsonl", help="The journal of a run.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The results folder; runs add up in it.")],
    with_texts: Annotated[
        bool, typer.Option("--with-texts", help="Keep the answers' texts (mind the licence of the cases).")
    ] = False,
) -> None:
    """Add a run to a results folder: tables that anyone can verify offline, without case or answer texts."""
    with one_line_errors():
        from eval.results.folder import current_summary, write_results

        summary = current_summary(journal, software=software())
        own = journal.with_suffix(".summary.json")
        if not own.is_file() or own.read_bytes() != summary:  # a finished run may lie where nothing can be written
            write_whole(own, summary.decode())
        written = write_results(journal, out, summary_bytes=summary, with_texts=with_texts)
    done = "added" if written.added else "already there, unchanged"
    print(f"{done}: {written.path}")
    print(f"cases          {written.n_graded} graded of {written.n_expected}")
    if written.n_graded < written.n_expected:
        print("warning: an incomplete run: repeat `run`, which says what can be finished", file=sys.stderr)
    print(f"texts          {'answers kept' if written.with_texts else 'none'}")
    print(f"run_sha256     {written.run_sha256}")
    print(f"folder digest  {written.folder_digest}")


def verify(
    where: Annotated[
        str,
        typer.Argument(
            metavar="DIR|REPO_ID",
            help="A mirror, a results folder, one run in it, or a Hub dataset: org/name[@revision].",
        ),
    ],
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="HEX", callback=hex_digest, help="The folder digest it must have.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Of a Hub dataset: download all of it and compute every number again.")
    ] = False,
    with_data: Annotated[
        bool,
        typer.Option(
            "--with-data", help="Also check the link to the data: a run to its mirror, a mirror to its source."
        ),
    ] = False,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR|REPO_ID", help="Where those data are, if not where it says.")
    ] = None,
) -> None:
    """Check a dataset: files, card, rows and digests; of results, every score from the decisions.

    A folder is always checked in full. Of a Hub dataset the file digests are compared, without downloading data, unless
    --full is given. Exit 0 if all holds, else 1 with a line for each thing that does not.

    Without --expect, a folder that was changed and given new digests throughout passes.
    """
    with one_line_errors(), progress() as on_progress:
        from eval.results.anywhere import Depth, verify_place

        place = find_place(where)
        depth = Depth(full=full, with_data=with_data or data is not None, data=find_place(data) if data else None)
        verified = verify_place(place, depth, expect=expect, on_progress=on_progress)
    print_verified(place, verified)
    raise typer.Exit(0 if verified.ok else 1)


def print_verified(place: Path | HubPlace, verified: Verified) -> None:
    """Print what verifying gave: a line a finding, or the facts."""
    for finding in verified.findings:
        print(printable(finding.line()))
    if n := len(verified.findings):
        print(f"{place}: {n:,} finding{'s' if n > 1 else ''}")
        return
    print(f"{place}: ok")
    facts = {
        "cases": verified.n_cases,
        "rubric items": verified.n_items,
        "dataset_sha256": verified.dataset_sha256,
        **verified.facts,
        "folder digest": verified.folder_digest,
    }
    for name, fact in facts.items():
        if fact is not None:
            _print_fact(name, f"{fact:,}" if isinstance(fact, int) else fact)


def _print_fact(name: str, fact: str) -> None:
    """Print a fact beside its name, in 80 columns; below it where the name is a path and takes the room."""
    if len(name) > FACT:
        print(name)
        name = ""
    print(in_80_columns(fact, f"{name:<{FACT}} ", " " * (FACT + 1)))


def in_80_columns(text: str, first: str, rest: str) -> str:
    """Return text in lines that begin with `first` and `rest`; what may be copied, a digest or a name, is not cut."""
    return TextWrapper(80, first, rest, break_long_words=False, break_on_hyphens=False).fill(text)
