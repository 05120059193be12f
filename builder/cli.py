"""The commands of the builder; `eval.cli` registers each as `app.command("check")(builder.cli.check)`.

Only here does the builder print and choose exit codes. Heavy modules are imported inside the commands.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedside_bench import PANEL_IDS, PUBLIC_SPLIT
from builder.errors import BedsideError

if TYPE_CHECKING:
    from builder.folder import Verified
    from builder.mirror import Built
    from builder.problems import Report


def known_panels(panels: list[str] | None) -> list[str] | None:
    """Return the panels asked for, or stop with exit code 2 at one that does not exist."""
    for panel in panels or ():
        if panel not in PANEL_IDS:
            raise typer.BadParameter(f"{panel!r} is not one of {', '.join(PANEL_IDS)}")
    return panels or None


SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder with registry.json and data/, the data folder itself, or a Hub dataset: org/name@revision.",
    ),
]
PanelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--panel", metavar="PANEL", callback=known_panels, help="Only this panel; may be given several times."
    ),
]
HeldOutOption = Annotated[
    bool, typer.Option("--held-out", help="Accept cases whose split is not 'train' (for holders of the held-out set).")
]


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an error a person can mend into one line on stderr and exit code 1."""
    try:
        yield
    except BedsideError as stop:
        print(f"error: {stop}", file=sys.stderr)
        raise typer.Exit(1) from None
    except BrokenPipeError:
        raise  # nobody reads on: `main` ends quietly
    except OSError as stop:
        print(f"error: {stop.filename or 'system'}: {stop.strerror or stop}", file=sys.stderr)
        raise typer.Exit(1) from None


def check(
    source: SourceArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON and nothing else.")] = False,
    panel: PanelOption = None,
    held_out: HeldOutOption = False,
    similar: Annotated[
        bool,
        typer.Option("--similar/--no-similar", help="Warn of prompts that share 7 in 10 of their 3-word sequences."),
    ] = True,
) -> None:
    """Check every case of a source tree and report all problems at once; exit 0 if there is no error, else 1."""
    from builder.sources import open_source
    from builder.validate import check_tree

    with one_line_errors():
        report = check_tree(open_source(source), held_out=held_out, panels=panel, similar=similar)
    _print_report(report, as_json=as_json)
    raise typer.Exit(0 if report.ok else 1)


def _print_report(report: Report, *, as_json: bool) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a console that lacks a character must not end the report
    print(report.to_json() if as_json else report.text())


def split_name(name: str) -> str:
    """Return a split name, or stop with exit code 2 at one that `datasets` would refuse."""
    if name != PUBLIC_SPLIT:
        from builder.mirror import check_split_name

        try:
            check_split_name(name)
        except BedsideError as stop:
            raise typer.BadParameter(str(stop)) from None
    return name


def hex_digest(digest: str | None) -> str | None:
    """Return a folder digest, or stop with exit code 2 at what cannot be one."""
    if digest is not None and not re.fullmatch("[0-9a-fA-F]{64}", digest):
        raise typer.BadParameter(f"expected 64 hex digits, the folder digest that `build` printed, found {digest!r}")
    return digest


def build(
    source: SourceArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The mirror's folder; an old one is replaced.")
    ],
    panel: PanelOption = None,
    split: Annotated[
        str,
        typer.Option("--split-name", metavar="NAME", callback=split_name, help="Parquet split of the public cases."),
    ] = PUBLIC_SPLIT,
    held_out: HeldOutOption = False,
    license_id: Annotated[
        str | None, typer.Option("--license", metavar="ID", help="Licence (the Hub's id) where the source names none.")
    ] = None,
) -> None:
    """Check a source and write it as a dataset folder of typed Parquet with a card and digests.

    With an error anywhere in the source nothing is written. A killed build leaves the old folder or the new one.
    """
    from builder.mirror import build_mirror
    from builder.sources import open_source

    with one_line_errors(), _progress() as on_progress:
        built = build_mirror(
            open_source(source),
            out,
            panels=panel,
            split_name=split,
            held_out=held_out,
            license_id=license_id,
            on_progress=on_progress,
        )
    if built.report.problems:
        _print_report(built.report, as_json=False)
    if built.folder_digest is None:
        print(f"error: nothing was built: {source} has errors (above)", file=sys.stderr)
        raise typer.Exit(1)
    _print_built(built)


def _print_built(built: Built) -> None:
    panels = sum(n > 0 for n in built.report.panels.values())
    print(f"built {built.folder}: {built.n_cases:,} cases in {panels} panels, {built.n_items:,} rubric items")
    print(f"license         {built.license or 'unknown: state one with --license before you publish'}")
    print(f"dataset_sha256  {built.dataset_sha256}")
    print(f"content_sha256  {built.content_sha256}")
    print(f"folder digest   {built.folder_digest}")
    print(f"card            {built.folder / 'README.md'}")
    print(f"digests         {built.folder / 'digests.json'}")
    print(f"Parquet         {built.folder / 'data'}")


@contextmanager
def _progress() -> Iterator[Callable[[str, int], None] | None]:
    """Give a callback that shows how far a build is; None, and nothing shown, where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("check") as status:
        yield lambda step, n: status.update(f"{step}: {n:,} cases")


def make_verify(verify_run: Callable[[Path, str | None], Verified]) -> Callable[..., None]:
    """Return the `verify` command. A results folder is `eval`'s to verify, which the builder may not import.

    Args:
        verify_run: given a results folder (or one of its runs) and the expected folder digest, does that.
    """

    def verify(
        folder: Annotated[Path, typer.Argument(metavar="DIR", help="A mirror, a results folder, or one run in it.")],
        expect: Annotated[
            str | None,
            typer.Option("--expect", metavar="HEX", callback=hex_digest, help="The folder digest it must have."),
        ] = None,
    ) -> None:
        """Check a dataset folder: files, card, rows and digests; of results, every score from the decisions.

        Exit 0 if all holds, else 1 with a line for each thing that does not.

        Without --expect, a folder that was changed and given new digests throughout passes.
        """
        with one_line_errors(), _progress() as on_progress:
            from builder.verify import folder_kind, verify_mirror

            kind = folder_kind(folder)
            verified = (
                verify_run(folder, expect)
                if kind == "run"
                else verify_mirror(folder, expect=expect, on_progress=on_progress)
            )
        _print_verified(folder, verified)
        raise typer.Exit(0 if verified.ok else 1)

    return verify


def _print_verified(folder: Path, verified: Verified) -> None:
    for finding in verified.findings:
        print(finding.line())
    if n := len(verified.findings):
        print(f"{folder}: {n:,} finding{'s' if n > 1 else ''}")
        return
    print(f"{folder}: ok")
    facts = {
        "cases": verified.n_cases,
        "rubric items": verified.n_items,
        "dataset_sha256": verified.dataset_sha256,
        **verified.facts,
        "folder digest": verified.folder_digest,
    }
    for name, fact in facts.items():
        if fact is not None:
            print(f"{name:<15} {fact:,}" if isinstance(fact, int) else f"{name:<15} {fact}")
