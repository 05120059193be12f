"""The one command `bedside-bench`: it puts the commands of all rooms together, and holds `demo`.

Only files called `cli.py` print, read the environment or the clock, or choose an exit code: 0 fine, 1 the input or the
run is at fault, 2 wrong usage, 130 after Ctrl-C. Heavy modules are imported inside the commands.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from bedside_bench import __version__
from builder import cli as builder_commands
from builder.cli import one_line_errors
from eval.agreement.cli import agree
from eval.audits.cli import audit, variance
from eval.calls.cli import run
from eval.certificates.cli import certify
from eval.conformance.cli import conformance
from eval.exports.cli import eval_results, export
from eval.healthbench.cli import meta, winrate
from eval.hub.cli import fetch, publish, runs
from eval.judging.cli import now
from eval.numbers.cli import score, software
from eval.results.cli import results, verify
from eval.statements.cli import statements

app = typer.Typer(
    name="bedside-bench",
    help="Rubric-graded clinical question answering: build a dataset, run a model, score it, verify it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help holds brackets that rich would take for markup and swallow
)


def _version(value: bool) -> None:
    if value:
        print(f"bedside-bench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Rubric-graded clinical question answering: build a dataset, run a model, score it, verify it."""


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where its files go.")] = Path("bedside-demo"),
) -> None:
    """Walk through the whole product on the shipped sample cases: offline, a few seconds, no key."""
    with one_line_errors():
        from eval.demo import demo as walk

        for number, step in enumerate(walk(out, now=now, software=software()), start=1):
            where = f"  [{step.where}]" if step.where else ""
            print(f"{number:>2} {step.title:<8}{where}")
            print("\n".join(f" {line}" for line in step.text.splitlines()))


app.command("check")(builder_commands.check)
app.command("build")(builder_commands.build)
app.command("card")(builder_commands.card)
app.command("certify")(certify)
app.command("run")(run)
app.command("score")(score)
app.command("meta")(meta)
app.command("winrate")(winrate)
app.command("agree")(agree)
app.command("audit")(audit)
app.command("variance")(variance)
app.command("statements")(statements)
app.command("results")(results)
app.command("verify")(verify)
app.command("publish")(publish)
app.command("runs")(runs)
app.command("fetch")(fetch)
app.command("eval-results")(eval_results)
app.command("export")(export)
app.command("conformance")(conformance)
app.command("demo")(demo)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that lacks a character must not end a paid run
    try:
        app()
    except BrokenPipeError:  # whoever read the output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
