"""The command `agree`: a label sheet for people, and the agreement of judges with each other, themselves and people."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Final

import typer

from builder.cli import one_line_errors
from eval.numbers.cli import SeedOption, software
from eval.numbers.defaults import SEED

if TYPE_CHECKING:
    from eval.agreement.sheet import SheetWritten

RESAMPLES: Final = 2_000
SHARE: Final = 0.2


def agree(
    run: Annotated[Path, typer.Argument(metavar="X", help="A run: its journal, or its folder `results` wrote.")],
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="A sheet that people labelled: .csv, also as a spreadsheet saved it, or .parquet; one a person, or "
            "one for all with a name in `rater` (else the file's name is). Repeatable.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Mirror that the run must be on; --write-sheet needs it.")] = None,
    write_sheet: Annotated[
        Path | None,
        typer.Option("--write-sheet", metavar="FILE", help="Only write a blinded sheet to label: .csv or .parquet."),
    ] = None,
    share: Annotated[
        float, typer.Option("--share", min=0, max=1, help="Share of each panel's cases on the sheet, above 0.")
    ] = SHARE,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the sheet's cases.")] = SEED,
    raters: Annotated[
        list[str] | None,
        typer.Option("--rater", metavar="NAME", help="Who labels the sheet; several get all rows each."),
    ] = None,
    error_rates: Annotated[
        list[str] | None,
        typer.Option(
            "--error-rates",
            metavar="FP,FN",
            help="Score as if the judge called so large a share of unmet items met, of met items unmet; repeatable.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option("--bootstrap-samples", min=1, help="Resamples of cases of each interval.")
    ] = RESAMPLES,
    bootstrap_seed: SeedOption = SEED,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON and nothing else.")] = False,
) -> None:
    """Hold judges against each other, against themselves over repeats, and the jury against people.

    First `--write-sheet FILE --data MIRROR`: a sample of cases for a person to label, without any decision of a judge.
    Then `--labels FILE`: agreement with that person, and scores corrected for the judge's error.
    """
    if write_sheet is not None and (labels or error_rates):
        raise typer.BadParameter("--write-sheet only writes a sheet: leave --labels and --error-rates out")
    if write_sheet is not None and data is None:
        raise typer.BadParameter("--write-sheet shows people the cases: give their mirror with --data")
    if share == 0:
        raise typer.BadParameter("--share 0: expected a share above 0, for a sheet with cases on it")
    rates = [_rates(word) for word in error_rates or ()]
    with one_line_errors():
        if write_sheet is not None and data is not None:
            written = _write(run, write_sheet, mirror=data, share=share, seed=seed, raters=raters or [""])
            _show_written(written, as_json=as_json)
            return
        from eval.agreement.report import agreement_report
        from eval.agreement.table import agreement_text
        from eval.results.reread import run_at

        of_run = run_at(run, mirror=data)
        given = None
        if labels:
            from eval.agreement.labels import read_labels
            from eval.numbers.readers import is_journal
            from eval.results.answers import answer_digests

            ours = run.is_dir() or is_journal(run)  # another evaluator's file does not give the answers' digests
            given = read_labels(labels, run=of_run, answers=answer_digests(run) if ours else None)
        report = agreement_report(
            of_run, labels=given, samples=samples, seed=bootstrap_seed, software=software(), error_rates=rates
        )
        print(json.dumps(report, indent=2, allow_nan=False) if as_json else agreement_text(report))


def _rates(word: str) -> tuple[float, float]:
    """Return FP,FN as numbers, or stop with exit code 2."""
    try:
        fp, fn = map(float, word.split(","))
    except ValueError:
        raise typer.BadParameter(f"--error-rates {word!r}: expected two numbers such as 0.05,0.1") from None
    if not (min(fp, fn) >= 0 and fp + fn < 1):
        raise typer.BadParameter(f"--error-rates {word!r}: expected numbers from 0, below 1 together")
    return fp, fn


def _write(run: Path, to: Path, *, mirror: Path, share: float, seed: int, raters: list[str]) -> SheetWritten:
    from eval.agreement.sheet import write_sheet
    from eval.cases import read_cases
    from eval.results.answers import answers_of
    from eval.results.reread import run_at

    cases = {case.case_id: case for case in read_cases(mirror).cases}
    return write_sheet(run_at(run, mirror=mirror), answers_of(run), cases, to, share=share, seed=seed, raters=raters)


def _show_written(written: SheetWritten, *, as_json: bool) -> None:
    from dataclasses import asdict

    from eval.agreement.sheet import INSTRUCTION

    if as_json:
        print(json.dumps({**asdict(written), "path": str(written.path)}, indent=2, allow_nan=False))
        return
    print(f"written: {written.path}")
    print(f"cases    {written.n_cases:,}, answers {written.n_answers:,}, items to label {written.n_items:,}")
    for panel, n in written.cases_by_panel.items():
        print(f"  {panel:<28} {n:>5,}")
    if written.n_rows != written.n_items:
        print(f"rows     {written.n_rows:,}: every rater's own")
    if written.n_without_answer:
        print(f"left out {written.n_without_answer:,} cases without an answer's text")
    if written.n_long:
        print(fill(f"{written.n_long:,} rows hold a text that Excel cuts: use another program, or .parquet", 80))
    print()
    print(fill(INSTRUCTION, 80))
