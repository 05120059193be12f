"""The commands that only HealthBench has: `meta` (the grader against physicians) and `winrate` (two runs)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from builder.cli import one_line_errors
from eval.numbers.cli import SeedOption, software
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED

SamplesOption = Annotated[int, typer.Option("--bootstrap-samples", min=1, help="Resamples of each interval.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print every number as JSON and nothing else.")]


def meta(
    results: Annotated[
        Path,
        typer.Argument(metavar="X", help="A run on healthbench_meta data: its journal, or its folder `results` wrote."),
    ],
    data: Annotated[Path | None, typer.Option(help="Mirror: the labels must be those that it holds.")] = None,
    samples: SamplesOption = HEALTHBENCH_SAMPLES,
    seed: SeedOption = SEED,
    as_json: JsonOption = False,
) -> None:
    """Hold the grader's decisions against physicians' labels: agreement, themes, its percentile among physicians."""
    with one_line_errors():
        from eval.healthbench.meta_report import meta_report, meta_text
        from eval.numbers.readers import read_run
        from eval.results.reread import run_of_folder

        run = run_of_folder(results, mirror=data) if results.is_dir() else read_run(results, mirror=data)
        report = meta_report(run, samples=samples, seed=seed, software=software())
        print(json.dumps(report, indent=2, allow_nan=False) if as_json else meta_text(report))


def winrate(
    a: Annotated[Path, typer.Argument(metavar="A.jsonl", help="A HealthBench run.")],
    b: Annotated[Path, typer.Argument(metavar="B.jsonl", help="Another one on the same data, graded alike.")],
    samples: SamplesOption = HEALTHBENCH_SAMPLES,
    seed: SeedOption = SEED,
    as_json: JsonOption = False,
) -> None:
    """Say how often A's answer to an example scores higher than B's: over all pairs, and at about equal length."""
    with one_line_errors():
        from eval.healthbench.winning import winning, winning_text
        from eval.numbers.readers import read_run

        report = winning(read_run(a), read_run(b), samples=samples, seed=seed)
        print(json.dumps(report, indent=2, allow_nan=False) if as_json else winning_text(report))
