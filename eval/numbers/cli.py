"""The command `score`, and what every command that shows numbers shares: settings, summaries, versions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from bedside_bench import __version__
from builder.cli import one_line_errors
from builder.errors import BadInput
from eval.numbers.defaults import DIALECTS, SEED, SPEC


class Settings(NamedTuple):
    """How decisions are turned into numbers."""

    dialect: str = SPEC
    samples: int | None = None
    seed: int = SEED
    length_center: float | None = None
    length_penalty: float | None = None


STANDARD = Settings()
MOST_LENGTH = 1e9  # beyond any answer's length, and far from numbers whose sums overflow

SamplesOption = Annotated[
    int | None,
    typer.Option("--bootstrap-samples", min=1, help="Resamples of each interval [10000; of a HealthBench run 1000]."),
]
SeedOption = Annotated[int, typer.Option("--bootstrap-seed", min=0, help="Seed of the intervals' random stream.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")]


def score(
    results: Annotated[Path, typer.Argument(metavar="X", help="A journal, or another evaluator's result file.")],
    data: Annotated[Path | None, typer.Option(help="Mirror with the cases; minimal lines need it.")] = None,
    dialect: Annotated[str, typer.Option(help="Scoring rule: spec, upstream or upstream-veto.")] = SPEC,
    samples: SamplesOption = None,
    seed: SeedOption = SEED,
    length_center: Annotated[
        float | None,
        typer.Option(
            "--length-center", min=0, help="HealthBench: the answer length that costs nothing, in characters."
        ),
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option("--length-penalty", min=0, help="HealthBench: what 500 characters more cost.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the summary as JSON here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Score the decisions of a result file: no network, nothing asked again."""
    check_choice("--dialect", dialect, DIALECTS)
    for option, value in (("--length-center", length_center), ("--length-penalty", length_penalty)):
        if value is not None and not value < MOST_LENGTH:
            raise typer.BadParameter(f"{option} {value:g}: expected a number below {MOST_LENGTH:g}")
    if (length_center is None) != (length_penalty is None):
        raise typer.BadParameter("--length-center and --length-penalty: give both or neither")
    with one_line_errors():
        settings = Settings(dialect, samples, seed, length_center, length_penalty)
        summary = summarise_file(results, mirror=data, settings=settings)
        show_summary(summary, as_json=as_json)
        if settings == STANDARD:
            keep_own_summary(results, summary)
        if output is not None:
            _write_summary(summary, output, results=results, settings=settings)


def check_choice(option: str, value: str, allowed: Sequence[str]) -> None:
    """Stop with exit code 2 at a value that the option does not take."""
    if value not in allowed:
        raise typer.BadParameter(f"{option} {value!r} is not one of {', '.join(allowed)}")


def summarise_file(path: Path, *, mirror: Path | None, settings: Settings) -> Mapping[str, Any]:
    """Return the summary of a result file of any kind."""
    from eval.healthbench.summary import LengthRule
    from eval.numbers.readers import read_imported, read_run, summarise_imported, summarise_run

    length = None
    if settings.length_center is not None and settings.length_penalty is not None:
        length = LengthRule(settings.length_center, settings.length_penalty)
    how: dict[str, Any] = {
        "dialect": settings.dialect,
        "samples": settings.samples,
        "seed": settings.seed,
        "length": length,
        "software": software(),
    }
    imported = read_imported(path, mirror=mirror)
    if imported is not None:
        return summarise_imported(imported, **how)
    return summarise_run(read_run(path, mirror=mirror), **how)


def show_summary(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a summary as a table or as JSON."""
    from eval.numbers.summary import dumps_summary
    from eval.showing.report import score_table

    print(dumps_summary(summary) if as_json else score_table(summary), end="" if as_json else "\n")


def keep_own_summary(path: Path, summary: Mapping[str, Any]) -> None:
    """Write the run's own summary beside its journal X.jsonl; copies and other runners' files leave it as it is."""
    from eval.numbers.readers import is_journal
    from eval.numbers.summary import dumps_summary

    if path.suffix == ".jsonl" and is_journal(path):
        write_whole(path.with_suffix(".summary.json"), dumps_summary(summary))


def _write_summary(summary: Mapping[str, Any], to: Path, *, results: Path, settings: Settings) -> None:
    from eval.numbers.readers import is_journal
    from eval.numbers.summary import dumps_summary

    own = results.with_suffix(".summary.json")
    if to.resolve() == results.resolve():
        raise BadInput(f"{to}: is the result file itself; give another file for its summary")
    if to.suffix == ".jsonl" and to.is_file() and is_journal(to):
        raise BadInput(f"{to}: is the journal of a run; give another file for the summary")
    if to.resolve() == own.resolve() and settings != STANDARD:
        raise BadInput(f"{own}: holds the run's own dialect and settings only; give another file")
    write_whole(to, dumps_summary(summary))


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a kill leaves the old one or the new one.

    Raises:
        BadInput: there is no right or no room to write it.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise BadInput(f"{path}: the summary could not be written: {error.strerror}") from None


def software() -> dict[str, str]:
    """Return the versions that a result depends on."""
    import platform
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("aiohttp", "numpy", "polars", "pyarrow")}
    machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    return {"bedside-bench": __version__, **libraries, **machine}
