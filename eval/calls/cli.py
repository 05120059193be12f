"""The command `run`: choices from the command line and the environment, the loop with its display, how it ended."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from builder.cli import known_panels, one_line_errors
from builder.hub.place import find_mirror, local_folder
from builder.rules.problems import printable
from eval.judging.cli import (
    CERTIFICATES,
    DEFAULT_BASE_URL,
    CertificatesOption,
    CertifiedStart,
    IdStyleOption,
    JudgeFlags,
    JudgeFormatOption,
    JudgeKeyOption,
    JudgeModelOption,
    JudgesOption,
    JudgeTemperatureOption,
    JudgeUrlOption,
    JudgeVendorOption,
    UncertifiedOption,
    certified_start,
    drive,
    journal_with,
    model_at,
    warn_of_ties,
)
from eval.numbers.cli import STANDARD, check_choice, keep_own_summary, show_summary, summarise_file

if TYPE_CHECKING:
    from eval.calls.plan import Model, Plan
    from eval.calls.run import Outcome

JSONL = journal_with("its summary lies beside it as .summary.json")
SHOWN_FAILURES = 5  # on screen; the summary lists all


PanelOption = Annotated[
    list[str] | None,
    typer.Option("--panel", metavar="PANEL", callback=known_panels, help="Only this panel; may be repeated."),
]


def run(
    output: Annotated[Path, typer.Option("--output", "-o", callback=JSONL, help="Journal of the run, X.jsonl.")],
    mirror: Annotated[
        str | None,
        typer.Argument(
            metavar="MIRROR", help="A folder that `build` wrote, or a mirror on the Hub: org/name[@revision]."
        ),
    ] = None,
    answer_model: Annotated[str | None, typer.Option(help="Model to answer: a name, or builtin:POLICY.")] = None,
    judge_model: JudgeModelOption = None,
    config: Annotated[
        str | None, typer.Option(help="The config that MIRROR must hold: all, healthbench, healthbench_hard, ...")
    ] = None,
    panel: PanelOption = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="HealthBench: only completions of this physicians' group; may be repeated."),
    ] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="One fixed case a panel.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="First N cases in dataset order, after --smoke.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=4096, help="Calls in flight at most.")] = 16,
    base_url: Annotated[str, typer.Option(help="OpenAI-compatible endpoint.")] = DEFAULT_BASE_URL,
    judge_base_url: JudgeUrlOption = None,
    api_key_env: Annotated[str | None, typer.Option(help="Variable that holds the key.")] = None,
    judge_api_key_env: JudgeKeyOption = None,
    judge_vendor: JudgeVendorOption = None,
    judge_temperature: JudgeTemperatureOption = None,
    judges: JudgesOption = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=99, help="Calls of each judge on each question; its vote is their majority.")
    ] = 1,
    grouping: Annotated[
        str | None,
        typer.Option(help="What one judge call asks about: case (all its items) or item (one) [the suite's own]."),
    ] = None,
    answer_vendor: Annotated[
        str | None, typer.Option(help="Who makes the answer model: named beside judges of it.")
    ] = None,
    certificates: CertificatesOption = CERTIFICATES,
    uncertified: UncertifiedOption = False,
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|KIND",
            help="Judge given answers, ask no model: a file, or the data's own: physician, reference or given.",
        ),
    ] = None,
    answer_repeats: Annotated[int, typer.Option(min=1, max=1000, help="Answers asked for to each case.")] = 1,
    reuse: Annotated[list[Path] | None, typer.Option(help="Take paid replies over from this journal.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="Sent to the answer model as it is.")] = None,
    judge_format: JudgeFormatOption = None,
    id_style: IdStyleOption = None,
    grader_template: Annotated[
        Path | None,
        typer.Option(
            help="HealthBench: the grader's prompt, with <<conversation>> and <<rubric_item>> (<<rubric_items>> with "
            "--grouping case)."
        ),
    ] = None,
    system: Annotated[Path | None, typer.Option(help="Another system text for the answer model.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Temperature asked of the answer model.")] = 1,
    max_attempts: Annotated[int, typer.Option(min=1, help="Transport tries a call.")] = 6,
    timeout: Annotated[float | None, typer.Option(help="Seconds a try [300; 600 with --reasoning-effort].")] = None,
    deadline: Annotated[float, typer.Option(help="Seconds a call with all its waits.")] = 1800,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
    summarize_only: Annotated[
        bool, typer.Option("--summarize-only", help="Score what the journal holds; no network, no MIRROR needed.")
    ] = False,
) -> None:
    """Ask a model every case, have a judge decide every rubric item, and write X.jsonl and X.summary.json.

    The same command goes on where a stopped run ended and never pays twice for what is finished.
    """
    if summarize_only:
        with one_line_errors():
            summary = summarise_file(output, mirror=local_folder(mirror), settings=STANDARD)
            show_summary(summary, as_json=False)
            keep_own_summary(output, summary)
        return
    if mirror is None:
        raise typer.BadParameter("MIRROR is missing: give the folder that `bedside-bench build` wrote")
    if answer_model is None and answers is None:
        raise typer.BadParameter("give --answer-model, or --answers with a file of answers")
    if grouping is not None:
        check_choice("--grouping", grouping, ("case", "item"))
    flags = JudgeFlags(
        models=judge_model,
        base_urls=judge_base_url,
        key_variables=judge_api_key_env,
        vendors=judge_vendor,
        temperatures=judge_temperature,
        file=judges,
        reply_format=judge_format,
        id_style=id_style,
    )
    flags.check()
    with one_line_errors():
        from eval.calls.answers import COMPLETIONS
        from eval.calls.choices import Choices, make_plan
        from eval.calls.plan import Limits, standard_limits

        data = find_mirror(mirror)
        choices = Choices(
            mirror=data.folder,
            repo=data.repo,
            revision=data.revision,
            answer=_model(answer_model, base_url, api_key_env, role="answer", needed=answers is None and not dry_run),
            judges=flags.judges(base_url=base_url, key_env=api_key_env, needed=not dry_run),
            config=config,
            panels=tuple(panel or ()),
            smoke=smoke,
            limit=limit,
            groups=tuple(group or ()),
            answers=Path(answers) if answers is not None and answers not in COMPLETIONS else answers,
            answer_repeats=answer_repeats,
            system=system,
            grader_template=grader_template,
            temperature=temperature,
            reasoning_effort=reasoning_effort,
            answer_vendor=answer_vendor,
            grouping=grouping,
            repeats=repeats,
            limits=Limits(
                max_attempts=max_attempts,
                timeout_s=standard_limits(reasoning_effort).timeout_s if timeout is None else timeout,
                deadline_s=deadline,
            ),
        )
        plan = make_plan(choices)
        if dry_run:
            _print_estimate(plan)
            return
        warn_of_ties(repeats)
        certified = certified_start(plan, certificates, uncertified=uncertified)
        _run(plan, output, certified=certified, reuse=reuse or [], concurrency=concurrency)


def _model(name: str | None, base_url: str, key_env: str | None, *, role: str, needed: bool) -> Model | None:
    """Return a model with its endpoint and key; None where no model is asked."""
    return None if name is None else model_at(name, base_url, key_env, role=role, needed=needed)


def _print_estimate(plan: Plan) -> None:
    from eval.calls.estimate import estimate, estimate_table

    place = f"of the {plan.given.source}" if plan.given else f"at {_place(plan.answer)}"
    print(f"answers: {plan.answer.name} {place}")
    for judge in plan.judges:
        print(f"judge:   {judge.model.name} at {_place(judge.model)}")
    print()
    print(estimate_table(estimate(plan)))


def _place(model: Model) -> str:
    """Return where a model is; a port on this machine, which no file records, is said here."""
    port = urlsplit(model.endpoint.base_url).port if model.endpoint else None
    return f"{model.endpoint_name} (port {port})" if port else model.endpoint_name


def _run(plan: Plan, output: Path, *, certified: CertifiedStart, reuse: list[Path], concurrency: int) -> None:
    """Run a plan to its end or to what stops it, then summarise; the exit code says whether all cases are graded."""
    if plan.given and (unknown := plan.given.unknown(plan.data.cases)):
        shown = ", ".join(map(printable, unknown[:3])) + (", ..." if len(unknown) > 3 else "")
        print(f"note: {len(unknown)} answers of the file are for no case of these data: {shown}", file=sys.stderr)

    def started(judged: int, selected: int) -> None:
        again = f", {judged} judged already" if judged else ""
        by = " + ".join(judge.model.name for judge in plan.judges)
        times = f" x {plan.reading.repeats}" if plan.reading.repeats > 1 else ""
        print(f"{selected} cases: {plan.answer.name}, judged by {by}{times}{again}", file=sys.stderr)

    outcome = drive(plan, output, started=started, concurrency=concurrency, certified=certified, reuse=reuse)
    summary = summarise_file(output, mirror=None, settings=STANDARD)
    show_summary(summary, as_json=False)
    keep_own_summary(output, summary)
    _say_how_it_ended(summary, output, outcome, given=plan.given is not None)


def _say_how_it_ended(summary: Mapping[str, Any], output: Path, outcome: Outcome, *, given: bool) -> None:
    """Say what failed and why; exit 1 unless every selected case is graded."""
    if outcome.stopped:
        print(f"error: the run stopped: {outcome.stopped}", file=sys.stderr)
    for failed in summary["failed_cases"][:SHOWN_FAILURES]:
        case, why = f"{failed['benchmark']}/{failed['case_id']}", f"{failed['role']} {failed['state']}"
        print(f"ungraded: {case}: {why}: {outcome.reasons.get(failed['case_id'], failed['reason'])}", file=sys.stderr)
    if (more := len(summary["failed_cases"]) - SHOWN_FAILURES) > 0:
        print(f"ungraded: and {more} more", file=sys.stderr)
    if left := summary["n_expected"] - summary["n_graded"]:
        unscorable = sum(failed["role"] == "score" for failed in summary["failed_cases"])
        missing = sum(failed["state"] in ("missing", "empty") for failed in summary["failed_cases"] if given)
        print(
            f"error: {left} of {summary['n_expected']} cases are ungraded (failed_cases in the summary names them); "
            f"{_what_to_do(left, unscorable, missing, output)}",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    if outcome.stopped:
        raise typer.Exit(1)


def _what_to_do(left: int, unscorable: int, missing: int, output: Path) -> str:
    """Say what helps: asking again, where a call failed; nothing, where no answer was given or none can be scored."""
    said = []
    if unscorable:
        said.append(f"{unscorable} of them can have no score, whatever is answered: bedside-bench check names them")
    if missing:
        said.append(f"to {missing} of them no answer was given: give a fuller file, and another --output")
    if left > unscorable + missing:
        others = "for the others " if said else ""
        said.append(f"{others}repeat the command to ask for them again: {output} keeps what is finished")
    return "; ".join(said)
