"""The commands of the builder; `eval.cli` registers each as `app.command("check")(builder.cli.check)`.

Only here does the builder print and choose exit codes. Heavy modules are imported inside the commands.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedside_bench import PANEL_IDS, PUBLIC_SPLIT
from builder.errors import BadInput, BedsideError
from builder.healthbench.names import CONFIGS
from builder.hub.place import check_repo_id, find_place
from builder.rules.problems import printable

if TYPE_CHECKING:
    from builder.mirror import Built
    from builder.rules.problems import Report


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
        help="A folder with registry.json and data/, the data folder itself, a Hub dataset (org/name@revision), "
        "or a JSONL file of HealthBench.",
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


def known_config(config: str | None) -> str | None:
    """Return the config asked for, or stop with exit code 2 at one that does not exist."""
    if config is not None and config not in CONFIGS:
        raise typer.BadParameter(f"{config!r} is not one of {', '.join(CONFIGS)}")
    return config


ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="NAME",
        callback=known_config,
        help="Of a JSONL file: the config of its mirror, where shape and name do not tell it.",
    ),
]


def jsonl_file(source: str, *, config: str | None, of_trees: Mapping[str, bool]) -> Path | None:
    """Return the file that a source is, None for a tree or a Hub dataset; exit code 2 at options that do not fit.

    Args:
        of_trees: the options that are for trees alone, and whether each was given.

    Raises:
        BadInput: it is neither an existing path nor the id of a repository.
    """
    place = find_place(source)
    file = place if isinstance(place, Path) and not place.is_dir() else None
    if file is None and config is not None:
        raise typer.BadParameter(f"--config is for a JSONL file, and {source} is none: leave it out")
    for option, given in of_trees.items():
        if file is not None and given:
            raise typer.BadParameter(f"{option} is for source trees, and {source} is a file: leave it out")
    return file


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an error a person can mend into one line on stderr and exit code 1."""
    try:
        yield
    except BedsideError as stop:
        print("\n".join(map(printable, f"error: {stop}".split("\n"))), file=sys.stderr)
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
    config: ConfigOption = None,
) -> None:
    """Check every case of a source and report all problems at once; exit 0 if there is no error, else 1."""
    with one_line_errors():
        of_trees = {"--panel": bool(panel), "--held-out": held_out, "--no-similar": not similar}
        if file := jsonl_file(source, config=config, of_trees=of_trees):
            from builder.healthbench.mirror import check_healthbench

            report = check_healthbench(file, config=config)
        else:
            from builder.rules.validate import check_tree
            from builder.tree.sources import open_source

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


def known_repo_id(repo: str | None) -> str | None:
    """Return a repository's id, or stop with exit code 2 at what cannot be one."""
    if repo is not None:
        try:
            check_repo_id(repo)
        except BedsideError as stop:
            raise typer.BadParameter(str(stop)) from None
    return repo


def hex_digest(digest: str | None) -> str | None:
    """Return a folder digest without its `sha256:`, or stop with exit code 2 at what cannot be one."""
    if digest is None:
        return None
    if not (found := re.fullmatch("(?:sha256:)?([0-9a-fA-F]{64})", digest)):
        raise typer.BadParameter(f"expected 64 hex digits, the folder digest that `build` printed, found {digest!r}")
    return found[1]


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
    repo_id: Annotated[
        str | None,
        typer.Option(
            "--repo-id",
            metavar="REPO_ID",
            callback=known_repo_id,
            help="The Hub dataset it is built for, namespace/name: the card then shows how to load that.",
        ),
    ] = None,
    croissant: Annotated[
        bool, typer.Option("--croissant", help="Write croissant.json too: a Croissant 1.1 description of the files.")
    ] = False,
    eval_yaml: Annotated[
        bool, typer.Option("--eval-yaml", help="Write eval.yaml too: the panels as tasks of the Hub's evaluations.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Check a source and write it as a dataset folder of typed Parquet with a card and digests.

    With an error anywhere in the source nothing is written. A killed build leaves the old folder or the new one.
    """
    of_trees = {
        "--panel": bool(panel),
        "--split-name": split != PUBLIC_SPLIT,
        "--held-out": held_out,
        "--eval-yaml": eval_yaml,
    }
    with one_line_errors(), progress() as on_progress:
        if file := jsonl_file(source, config=config, of_trees=of_trees):
            from builder.healthbench.mirror import build_healthbench

            built = build_healthbench(
                file,
                out,
                config=config,
                license_id=license_id,
                with_croissant=croissant,
                repo_id=repo_id,
                on_progress=on_progress,
            )
        else:
            from builder.mirror import build_mirror
            from builder.tree.sources import open_source

            built = build_mirror(
                open_source(source),
                out,
                panels=panel,
                split_name=split,
                held_out=held_out,
                license_id=license_id,
                with_croissant=croissant,
                with_eval_yaml=eval_yaml,
                repo_id=repo_id,
                on_progress=on_progress,
            )
    if built.report.problems:
        _print_report(built.report, as_json=False)
    if built.folder_digest is None:
        print(f"error: nothing was built: {source} has errors (above)", file=sys.stderr)
        raise typer.Exit(1)
    _print_built(built)
    if croissant:
        print(f"Croissant       {built.folder / 'croissant.json'}")
    if eval_yaml:
        print(f"evaluation      {built.folder / 'eval.yaml'}")
        print("note: the Hub must know the framework name bedside-bench first: until it does, it refuses eval.yaml")


def card(
    source: SourceArgument,
    upstream: Annotated[
        bool,
        typer.Option("--upstream", help="The card of SOURCE itself: with it, load_dataset reads its JSON files."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write it there; another file is never replaced.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Print the card that a mirror of a source would have, or a README.md for the source itself.

    The card of the source belongs beside its registry.json. A source with errors gets none.
    """
    with one_line_errors():
        if file := jsonl_file(source, config=config, of_trees={"--upstream": upstream}):
            from builder.healthbench.mirror import healthbench_card

            report, text = healthbench_card(file, config=config)
        else:
            from builder.cards.upstream_card import upstream_card
            from builder.mirror import mirror_card
            from builder.tree.sources import open_source

            report, text = (upstream_card if upstream else mirror_card)(open_source(source))
        if text is None:
            print(report.text(), file=sys.stderr)
            print(f"error: no card was made: {source} has errors (above)", file=sys.stderr)
            raise typer.Exit(1)
        if out is None:
            print(text, end="")
        else:
            _write_card(text.encode(), out)


def _write_card(text: bytes, out: Path) -> None:
    """Write a card where there is none; the same one is left as it is."""
    if out.exists() and not (out.is_file() and out.read_bytes() == text):
        raise BadInput(f"{out}: expected no file or this very card, found another; remove it or name another place")
    out.write_bytes(text)
    print(f"card            {out}")


def _print_built(built: Built) -> None:
    panels = [panel for panel, n in built.report.panels.items() if n]
    where = f"of {panels[0]}" if panels[0] in CONFIGS else f"in {len(panels)} panels"
    print(f"built {built.folder}: {built.n_cases:,} cases {where}, {built.n_items:,} rubric items")
    print(f"license         {built.license or 'unknown: state one with --license before you publish'}")
    print(f"dataset_sha256  {built.dataset_sha256}")
    print(f"content_sha256  {built.content_sha256}")
    print(f"folder digest   {built.folder_digest}")
    print(f"card            {built.folder / 'README.md'}")
    print(f"digests         {built.folder / 'digests.json'}")
    print(f"Parquet         {built.folder / 'data'}")


@contextmanager
def progress() -> Iterator[Callable[[str, int], None] | None]:
    """Give a callback that shows how far a build is; None, and nothing shown, where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("check") as status:
        yield lambda step, n: status.update(f"{step}: {n:,} cases")
