"""The commands that look at how judging works: `audit` (one call against atomic calls) and `variance` (the budget)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from builder.cli import one_line_errors
from eval.numbers.cli import SamplesOption, SeedOption, software
from eval.numbers.defaults import SEED

JsonOption = Annotated[bool, typer.Option("--json", help="Print every number as JSON and nothing else.")]
RUN = "A run: its journal, or its folder `results` wrote."


def audit(
    a: Annotated[Path, typer.Argument(metavar="A", help=RUN)],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same answers and judges, with the other --grouping.")],
    samples: SamplesOption = None,
    seed: SeedOption = SEED,
    as_json: JsonOption = False,
) -> None:
    """Hold one judge call a case against one a rubric item: agreement, order and halo effects, cost, what to use.

    Make the second run from the first one's answers, on a sample if it is dear: `bedside-bench run MIRROR --grouping
    item --answers A.jsonl --limit 10 --output B.jsonl` with the same judges and --repeats; or, asking the same answer
    model, `--reuse A.jsonl` in place of --answers, and --smoke or --panel for the sample.
    """
    with one_line_errors():
        from eval.audits.grouping_report import audit_report
        from eval.audits.grouping_text import audit_text
        from eval.audits.sides import read_side

        report = audit_report(read_side(a), read_side(b), samples=samples, seed=seed, software=software())
        print(json.dumps(report, indent=2, allow_nan=False) if as_json else audit_text(report))


def variance(
    run: Annotated[Path, typer.Argument(metavar="RUN", help=RUN)],
    added: Annotated[int, typer.Option("--add", min=1, help="How many more of each kind a step takes.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Say where a mean score's variance lies (cases, answers, judges, repeats), and which further calls buy most.

    A kind that the run has one of cannot be told: ask with --answer-repeats, several judges, or --repeats.
    """
    with one_line_errors():
        from eval.audits.variance_report import variance_report
        from eval.audits.variance_text import variance_text
        from eval.results.reread import run_at

        report = variance_report(run_at(run), added=added, software=software())
        print(json.dumps(report, indent=2, allow_nan=False) if as_json else variance_text(report))
