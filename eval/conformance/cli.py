"""The command `conformance`: hold a scorer, ours or anyone's, against the vectors.

A scorer is a function in Python that takes one vector as a dict, whole as it stands in its file, and returns a dict
with the keys of the vector's `expected`; or `{"unsupported": "why"}` for what it does not compute:

    def score(vector):
        if vector["subject"] != "healthbench_examples":
            return {"unsupported": "example scores only"}
        points, verdicts = vector["input"]["points"], vector["input"]["verdicts"]
        ...
        return {"score": earned / available}

Everything goes through JSON: None is null, numbers are Python's own, lists are lists. What a scorer prints goes to
stderr. The vectors are JSON files beside this module, for scorers in any language: `--list --json` prints them.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Final

import typer

from bedside_bench import __version__
from builder.cli import one_line_errors

_SUITES: Final = ("bedside-bench", "healthbench")


def _known_suite(suite: str | None) -> str | None:
    if suite is not None and suite not in _SUITES:
        raise typer.BadParameter(f"{suite!r} is not one of {', '.join(_SUITES)}")
    return suite


def conformance(
    scorer: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="The scorer to ask; modules of this folder come first."),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(metavar="SUITE", callback=_known_suite, help="Only bedside-bench, or only healthbench."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the vectors and their reasons, and ask nobody.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Hold a scorer against vectors of decisions and the numbers that must come out, and name how it deviates.

    A scorer is a Python function that takes a vector as a dict and returns a dict with the keys of the vector's
    `expected`, or {"unsupported": "why"}. Without --scorer, this program's own numbers are asked for.

    Exit 0 if every vector asked passes, 1 if any fails or all are skipped, 2 if there is no such scorer.
    """
    with one_line_errors():
        from eval.conformance.vectors import load_vectors

        if listed:
            from eval.conformance.report import list_text

            vectors = load_vectors(suite)
            print(json.dumps([v.whole for v in vectors], indent=2) if as_json else list_text(vectors))
            return
        conforming = _ask(scorer, suite, as_json=as_json)
    raise typer.Exit(0 if conforming else 1)


def _ask(name: str | None, suite: str | None, *, as_json: bool) -> bool:
    """Ask the scorer of this name, ours without one, print what became of it, and tell whether it conforms."""
    # All of ours is imported before the scorer's folder comes first: a numpy.py there must not become ours.
    from eval.conformance.asking import ask_all
    from eval.conformance.diagnosis import diagnose
    from eval.conformance.ours import score_vector
    from eval.conformance.report import conforms, report_json, report_text
    from eval.conformance.scorers import NoSuchScorerError, find_scorer
    from eval.conformance.vectors import load_vectors

    with redirect_stdout(sys.stderr):
        try:
            scorer = score_vector if name is None else find_scorer(name, folder=Path.cwd())
        except NoSuchScorerError as error:
            raise typer.BadParameter(f"--scorer: {error}") from None
        outcomes = ask_all(scorer, load_vectors(suite))
    whose = name or f"bedside-bench {__version__}"
    diagnoses = diagnose(outcomes)
    if as_json:
        print(json.dumps(report_json(whose, outcomes, diagnoses), indent=2))
    else:
        print(report_text(whose, outcomes, diagnoses))
    return conforms(outcomes)
