"""The one command `bedside-bench`: it puts the commands of all rooms together, and holds `results` and `demo`.

Only files called `cli.py` print, read the environment or the clock, or choose an exit code: 0 fine, 1 the input or the
run is at fault, 2 wrong usage, 130 after Ctrl-C. Heavy modules are imported inside the commands.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bedside_bench import __version__
from builder import cli as builder_commands
from builder.cli import one_line_errors
from eval.calls.cli import now, run
from eval.numbers.cli import score, software, write_whole

if TYPE_CHECKING:
    from builder.digests import Verified

app = typer.Typer(
    name="bedside-bench",
    help="Rubric-graded clinical question answering: build a dataset, run a model, score it, verify it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
        print("warning: an incomplete run: repeat `run` to finish it, and publish that", file=sys.stderr)
    print(f"texts          {'answers kept' if written.with_texts else 'none'}")
    print(f"run_sha256     {written.run_sha256}")
    print(f"folder digest  {written.folder_digest}")


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


def _verify_results(folder: Path, expect: str | None) -> Verified:
    from eval.results.verify import verify_run

    return verify_run(folder, expect=expect)


app.command("check")(builder_commands.check)
app.command("build")(builder_commands.build)
app.command("run")(run)
app.command("score")(score)
app.command("results")(results)
app.command("verify")(builder_commands.make_verify(_verify_results))
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
