"""The command `statements`: documents and judges from the command line, the run, and the report beside its journal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.cli import one_line_errors
from builder.rules.problems import printable
from eval.judging.cli import (
    CERTIFICATES,
    DEFAULT_BASE_URL,
    CertificatesOption,
    JudgeFlags,
    JudgeKeyOption,
    JudgesOption,
    JudgeTemperatureOption,
    JudgeUrlOption,
    JudgeVendorOption,
    UncertifiedOption,
    certified_start,
    drive,
    journal_with,
    warn_of_ties,
)
from eval.numbers.cli import software, write_whole

if TYPE_CHECKING:
    from eval.calls.plan import Plan
    from eval.calls.run import Outcome

REPEATS = 3  # spec 3, layer B
SHOWN_FAILURES = 5  # on screen; the report lists all


ListingModelOption = Annotated[
    list[str] | None,
    typer.Option("--judge-model", help="Model to list: it reads source and document; two confirm [gpt-5.6-sol]."),
]
ListingFormatOption = Annotated[
    str | None,
    typer.Option(
        "--judge-format",
        help="How the judge's reply is constrained: json_object, json_schema or none [json_object].",
    ),
]


def statements(
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            callback=journal_with("its report lies beside it as .statements.json"),
            help="Journal of the run, X.jsonl.",
        ),
    ],
    documents: Annotated[
        Path | None,
        typer.Argument(
            metavar="DOCS.jsonl", help="Lines {id, source, document}, and where known instruction, system, tags."
        ),
    ] = None,
    judge_model: ListingModelOption = None,
    judge_base_url: JudgeUrlOption = None,
    judge_api_key_env: JudgeKeyOption = None,
    judge_vendor: JudgeVendorOption = None,
    judge_temperature: JudgeTemperatureOption = None,
    judge_format: ListingFormatOption = None,
    judges: JudgesOption = None,
    repeats: Annotated[
        int,
        typer.Option(min=1, max=99, help="Calls of each judge on each document; most of its lists must hold it."),
    ] = REPEATS,
    answer_vendor: Annotated[
        str | None, typer.Option(help="Who makes the model that wrote the documents: named beside judges of it.")
    ] = None,
    certificates: CertificatesOption = CERTIFICATES,
    uncertified: UncertifiedOption = False,
    reuse: Annotated[list[Path] | None, typer.Option(help="Take paid replies over from this journal.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=4096, help="Calls in flight at most.")] = 16,
    max_attempts: Annotated[int, typer.Option(min=1, help="Transport tries a call.")] = 6,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds a try.")] = 300,
    deadline: Annotated[float, typer.Option(min=0.001, help="Seconds a call with all its waits.")] = 1800,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
    summarize_only: Annotated[
        bool, typer.Option("--summarize-only", help="Report what the journal holds; no network, no DOCS.jsonl needed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON and nothing else.")] = False,
) -> None:
    """Have judges list what each document states and its source does not support; write X.statements.json.

    Two judges confirm a statement; what one lists is provisional. The same command goes on where a stopped run ended.
    """
    if summarize_only:
        with one_line_errors():
            _show(_keep(output), as_json=as_json)
        return
    if documents is None:
        raise typer.BadParameter("DOCS.jsonl is missing: give the file of documents")
    flags = JudgeFlags(
        models=judge_model,
        base_urls=judge_base_url,
        key_variables=judge_api_key_env,
        vendors=judge_vendor,
        temperatures=judge_temperature,
        file=judges,
        reply_format=judge_format,
    )
    flags.check()
    with one_line_errors():
        from eval.calls.plan import Limits
        from eval.statements.documents import read_documents
        from eval.statements.plan import listing_plan

        plan = listing_plan(
            read_documents(documents),
            flags.judges(base_url=DEFAULT_BASE_URL, key_env=None, needed=not dry_run),
            repeats=repeats,
            system_vendor=answer_vendor,
            limits=Limits(max_attempts=max_attempts, timeout_s=timeout, deadline_s=deadline),
        )
        if dry_run:
            _print_estimate(plan)
            return
        warn_of_ties(repeats)
        certified = certified_start(plan, certificates, uncertified=uncertified)
        outcome = drive(
            plan,
            output,
            started=_started(plan),
            concurrency=concurrency,
            certified=certified,
            reuse=reuse or (),
        )
        report = _keep(output)
        _show(report, as_json=as_json)
        _say_how_it_ended(report, output, outcome)


def _print_estimate(plan: Plan) -> None:
    from eval.calls.estimate import estimate, estimate_table

    for judge in plan.judges:
        print(f"judge: {judge.model.name} at {judge.model.endpoint_name}")
    print(f"\n{estimate_table(estimate(plan))}")


def _started(plan: Plan) -> Callable[[int, int], None]:
    """Return what says on stderr who lists how many documents."""

    def started(judged: int, selected: int) -> None:
        again = f", {judged} done already" if judged else ""
        by = " + ".join(judge.model.name for judge in plan.judges)
        print(printable(f"{selected} documents, judged by {by} x {plan.reading.repeats}{again}"), file=sys.stderr)

    return started


def _keep(output: Path) -> Mapping[str, Any]:
    """Write the report of a journal beside it, and return it."""
    from eval.calls.journal import read_journal
    from eval.statements.report import statements_report

    report = statements_report(read_journal(output), software=software())
    write_whole(output.with_suffix(".statements.json"), f"{json.dumps(report, indent=1, allow_nan=False)}\n")
    return report


def _show(report: Mapping[str, Any], *, as_json: bool) -> None:
    from eval.statements.text import statements_text

    print(json.dumps(report, indent=2, allow_nan=False) if as_json else statements_text(report))


def _say_how_it_ended(report: Mapping[str, Any], output: Path, outcome: Outcome) -> None:
    """Say what failed and why; exit 1 unless every document has the lists of every judge."""
    if outcome.stopped:
        print(printable(f"error: the run stopped: {outcome.stopped}"), file=sys.stderr)
    left = report["without_counts"]
    for one in left[:SHOWN_FAILURES]:
        why = f"{one['reason']}: {one['first_failure']}" if one["first_failure"] else one["reason"]
        print(printable(f"without counts: {one['case_id']}: {why}"), file=sys.stderr)
    if (more := len(left) - SHOWN_FAILURES) > 0:
        print(f"without counts: and {more} more", file=sys.stderr)
    if left:
        print(
            f"error: {len(left)} of {report['n_documents']} documents have no counts (without_counts in the report "
            f"names them); repeat the command to ask again: {output} keeps what is finished",
            file=sys.stderr,
        )
        raise typer.Exit(1)
