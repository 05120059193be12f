"""The commands `eval-results` and `export`: a run's numbers for a model's page, and in other people's formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from builder.cli import known_repo_id, one_line_errors
from builder.errors import BedsideError
from eval.numbers.cli import check_choice

if TYPE_CHECKING:
    from builder.hub.place import HubPlace
    from eval.exports.chosen import ChosenRun
    from eval.exports.files import ExportFile

EVERY_EVAL_EVER = "every-eval-ever"
MODEL_INDEX = "model-index"


def hub_place(value: str | None) -> str | None:
    """Return a dataset's id with or without a revision, or stop with exit code 2 at what cannot be one."""
    try:
        _parse_place(value)
    except BedsideError as stop:
        raise typer.BadParameter(str(stop)) from None
    return value


def _parse_place(value: str | None) -> HubPlace | None:
    from builder.hub.place import HUB_ADDRESS, HubPlace, find_place

    place = find_place(f"{HUB_ADDRESS}{value.removeprefix(HUB_ADDRESS)}") if value is not None else None
    return place if isinstance(place, HubPlace) else None


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or a results folder.")]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run",
        metavar="RUN_ID",
        help="Which run of a results folder: its name, how that begins, or the 8 hex digits at its end.",
    ),
]
ResultsRepoOption = Annotated[
    str | None,
    typer.Option(
        "--results-repo",
        metavar="REPO_ID[@REV]",
        callback=hub_place,
        help="The Hub dataset where this run is published: its commit there is named as the source.",
    ),
]


def eval_results(
    run: RunArgument,
    model_repo: Annotated[
        str, typer.Option("--model-repo", metavar="REPO_ID", callback=known_repo_id, help="The model's repository.")
    ],
    run_id: RunOption = None,
    results_repo: ResultsRepoOption = None,
    create_pr: Annotated[
        bool, typer.Option("--create-pr", help="Open a pull request, as for a model that is not yours.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the file and push nothing.")] = False,
) -> None:
    """Verify a run and put its numbers on the model's page: one file below .eval_results/ in its repository."""
    with one_line_errors():
        from eval.exports.chosen import choose_run
        from eval.exports.eval_results import eval_results_file

        chosen = choose_run(run, run_id)
        file = eval_results_file(chosen, source_url=_source_url(chosen, results_repo))
        if results_repo is None:
            print(
                "warning: no source is named: publish the results, and name them with --results-repo", file=sys.stderr
            )
        if dry_run:
            print(f"# {model_repo}: {file.path}\n{file.content.decode()}", end="")
            return
        url = publish_file(file.path, file.content, repo=model_repo, create_pr=create_pr)
    print(f"{'proposed' if create_pr else 'published'}: {url}")
    print(f"file      {file.path}")
    print(f"numbers   {len(chosen.numbers)}, of answers by {chosen.row['answer_model']}")


def _source_url(chosen: ChosenRun, results_repo: str | None) -> str | None:
    """Return where a run is published, once the Hub has said that it is there; None where no dataset is named."""
    place = _parse_place(results_repo)
    if place is None:
        return None
    from builder.hub.client import make_api
    from eval.exports.source import results_source

    return results_source(make_api(), place, run=chosen)


def publish_file(path: str, content: bytes, *, repo: str, create_pr: bool) -> str:
    """Commit one file to a model's repository, or propose it, and return the address of that."""
    from builder.hub.client import make_api
    from builder.hub.publish import publish_files

    published = publish_files(
        make_api(), repo, {path: content}, message=f"Add {path}", repo_type="model", create_pr=create_pr
    )
    return published.url


def export(
    run: RunArgument,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help=f"{EVERY_EVAL_EVER} (0.3.0) or {MODEL_INDEX}.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="PATH", help="The folder to write below.")] = Path(
        "bedside-export"
    ),
    run_id: RunOption = None,
    results_repo: ResultsRepoOption = None,
    organization: Annotated[
        str, typer.Option("--organization", metavar="NAME", help=f"Who ran it; for {EVERY_EVAL_EVER}.")
    ] = "unknown",
    developer: Annotated[
        str | None,
        typer.Option("--developer", metavar="NAME", help=f"Who made a model of plain name; for {EVERY_EVAL_EVER}."),
    ] = None,
) -> None:
    """Verify a run and write it in another format; ungraded cases stay ungraded there too."""
    check_choice("--format", form, (EVERY_EVAL_EVER, MODEL_INDEX))
    with one_line_errors():
        from eval.exports.chosen import choose_run
        from eval.exports.files import write_below

        chosen = choose_run(run, run_id)
        source = _source_url(chosen, results_repo)
        for path in write_below(out, _files(chosen, form, source, organization=organization, developer=developer)):
            print(f"written: {path}")


def _files(
    chosen: ChosenRun, form: str, source: str | None, *, organization: str, developer: str | None
) -> list[ExportFile]:
    if form == MODEL_INDEX:
        from eval.exports.model_index import model_index_file

        return [model_index_file(chosen, source_url=source)]
    from eval.exports.every_eval_ever import every_eval_ever_files

    return every_eval_ever_files(chosen, organization=organization, developer=developer, source_url=source)
