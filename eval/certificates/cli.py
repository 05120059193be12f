"""The command `certify`: ask one judge about the probes, keep the evidence, and write its certificate."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from bedside_bench import sha256_json
from builder.cli import one_line_errors
from builder.errors import BadInput
from eval.judging.cli import (
    CERTIFICATES,
    DEFAULT_BASE_URL,
    CertificatesOption,
    IdStyleOption,
    JudgeFlags,
    JudgeFormatOption,
    JudgesOption,
    drive,
    judge_of,
    warn_of_ties,
)
from eval.numbers.cli import check_choice, software, write_whole

if TYPE_CHECKING:
    from eval.calls.judges import JudgeEntry
    from eval.calls.plan import Judge, Limits, Plan

_SUITES: Final = ("bedside-bench", "healthbench", "unsupported-statements")
_ALL: Final = "all"
_SLUG_CHARS: Final = 48


@dataclass(frozen=True, slots=True)
class _Asking:
    """How the probes are asked: the command's options beside the judge."""

    grouping: str | None
    repeats: int
    grader_template: Path | None
    limits: Limits
    folder: Path
    concurrency: int
    again: bool


def certify(
    judge: Annotated[str, typer.Argument(metavar="JUDGE", help="The judge's model; with --judges, one of the file's.")],
    base_url: Annotated[
        str, typer.Option("--base-url", "--judge-base-url", help="OpenAI-compatible endpoint.")
    ] = DEFAULT_BASE_URL,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", "--judge-api-key-env", help="Variable that holds the key.")
    ] = None,
    vendor: Annotated[
        str | None, typer.Option("--vendor", "--judge-vendor", help="Who makes the judge's model.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", "--judge-temperature", min=0, help="Temperature asked of the judge [0]."),
    ] = None,
    judge_format: JudgeFormatOption = None,
    id_style: IdStyleOption = None,
    judges: JudgesOption = None,
    suite: Annotated[
        str,
        typer.Option(
            metavar="SUITE", help="What it will judge: bedside-bench, healthbench, unsupported-statements or all."
        ),
    ] = _SUITES[0],
    grouping: Annotated[
        str | None, typer.Option(help="What one call asks about: case, or item [the suite's own].")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=99, help="Calls a question; it votes by most of them.")] = 1,
    grader_template: Annotated[
        Path | None,
        typer.Option(
            help="HealthBench: the grader's prompt, with <<conversation>> and <<rubric_item>> (<<rubric_items>> with "
            "--grouping case)."
        ),
    ] = None,
    certificates: CertificatesOption = CERTIFICATES,
    again: Annotated[bool, typer.Option("--again", help="Ask everything anew, for a certificate of today.")] = False,
    concurrency: Annotated[int, typer.Option(min=1, max=4096, help="Calls in flight at most.")] = 16,
    max_attempts: Annotated[int, typer.Option(min=1, help="Transport tries a call.")] = 6,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds a try.")] = 300,
    deadline: Annotated[float, typer.Option(min=0.001, help="Seconds a call with all its waits.")] = 1800,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificates as JSON and nothing else.")] = False,
) -> None:
    """Ask a judge about answers whose decisions are known, and write its certificate.

    It is valid if every sentinel item is decided right. The certificate and the journal it rests on go to
    --certificates; the same command goes on where a stopped one ended. Exit 0 if valid, else 1.
    """
    from eval.judging.certified import VALID
    from eval.judging.suites import GROUPINGS

    check_choice("--suite", suite, (*_SUITES, _ALL))
    if grouping is not None:
        check_choice("--grouping", grouping, GROUPINGS)
        if suite == _ALL:
            raise typer.BadParameter("--grouping: give one --suite, for each has its own")
    if grader_template is not None and suite not in ("healthbench", _ALL):
        raise typer.BadParameter("--grader-template: give --suite healthbench, whose grader's prompt it replaces")
    of_file = {"--vendor": vendor, "--temperature": temperature, "--judge-format": judge_format, "--id-style": id_style}
    if judges and (given := next((option for option, value in of_file.items() if value is not None), None)):
        raise typer.BadParameter(f"{given}: --judges {judges} says it; write it there")
    flags = JudgeFlags(
        models=None if judges else [judge],
        vendors=None if vendor is None else [vendor],
        temperatures=None if temperature is None else [temperature],
        file=judges,
        reply_format=judge_format,
        id_style=id_style,
    )
    flags.check()
    warn_of_ties(repeats)
    with one_line_errors():
        from eval.calls.plan import Limits

        asked = judge_of(_entry(flags, judge), base_url=base_url, key_env=api_key_env, needed=True)
        limits = Limits(max_attempts=max_attempts, timeout_s=timeout, deadline_s=deadline)
        how = _Asking(grouping, repeats, grader_template, limits, certificates, concurrency, again)
        suites = _SUITES if suite == _ALL else (suite,)
        plans = [_plan(asked, name, how) for name in suites]
        made = [_certify(plan, how, quiet=as_json) for plan in plans]
        if as_json:
            print(json.dumps(made if suite == _ALL else made[0], indent=2, allow_nan=False))
    if not all(certificate and certificate["verdict"] == VALID for certificate in made):
        raise typer.Exit(1)


def _entry(flags: JudgeFlags, name: str) -> JudgeEntry:
    """Return the judge of this name: the only one of the flags, one of the file's."""
    entries = flags.entries()
    named = [entry for entry in entries if entry.model == name]
    if len(named) != 1:
        there = ", ".join(entry.model for entry in entries)
        raise BadInput(f"{flags.file}: expected one judge of model {name}, found {len(named)} among {there}")
    return named[0]


def _plan(judge: Judge, suite: str, how: _Asking) -> Plan:
    from eval.certificates.certify import probe_plan
    from eval.healthbench.protocol import read_template

    template = how.grader_template if suite == "healthbench" else None
    return probe_plan(
        judge,
        suite=suite,
        grouping=how.grouping,
        repeats=how.repeats,
        prompts=None if template is None else read_template(template, grouping=how.grouping or "item"),
        limits=how.limits,
    )


def _certify(plan: Plan, how: _Asking, *, quiet: bool) -> Mapping[str, Any] | None:
    """Ask what is still to be asked, write the certificate and show it; None where calls are missing."""
    from eval.calls.journal import read_journal
    from eval.certificates.certificate import certificate_text
    from eval.certificates.certify import finding
    from eval.certificates.report import certificate_report

    journal = _journal(plan, how.folder, again=how.again)
    # What is decided is not asked again: a judge that gave no readable reply would get another try at each call.
    found = finding(read_journal(journal), made_by=software()) if journal.exists() else None
    stopped = None
    if found is None or found.certificate is None:
        stopped = _ask(plan, journal, how.concurrency)
        found = finding(read_journal(journal), made_by=software())
    if found.certificate is None:
        _say_incomplete(found.missing, journal, stopped)
        return None
    path = journal.with_suffix(".json")
    write_whole(path, certificate_text(found.certificate))
    if not quiet:
        print(certificate_report(found.certificate))
        print(f"certificate: {path}\nevidence:    {journal}")
    return found.certificate


def _journal(plan: Plan, folder: Path, *, again: bool) -> Path:
    """Return the latest journal of a plan, or the next one: names count up, so that older evidence stays."""
    model = re.sub(r"[^a-z0-9._]+", "-", plan.judges[0].model.name.lower())[:_SLUG_CHARS]
    stem = f"{model}-{plan.suite.name}-{plan.reading.grouping}-{sha256_json(plan.identity())[:8]}"
    latest, number = folder / f"{stem}.jsonl", 2
    while (later := folder / f"{stem}-{number}.jsonl").exists():
        latest, number = later, number + 1
    return later if again and latest.exists() else latest


def _ask(plan: Plan, journal: Path, concurrency: int) -> str | None:
    """Run a plan over the probes to its end or to what stops it; return what stopped it."""

    def started(judged: int, selected: int) -> None:
        done = f", {judged} judged already" if judged else ""
        print(f"{selected} probes ({plan.suite.name}) for {plan.judges[0].model.name}{done}", file=sys.stderr)

    return drive(plan, journal, started=started, concurrency=concurrency).stopped


def _say_incomplete(missing: Mapping[str, int], journal: Path, stopped: str | None) -> None:
    """Say on stderr that there is no certificate, and why."""
    if stopped:
        print(f"error: it stopped: {stopped}", file=sys.stderr)
    states = ", ".join(f"{n} {state}" for state, n in sorted(missing.items()))
    print(
        f"error: no certificate: {sum(missing.values())} items have no reply of the judge ({states}); "
        f"repeat the command (without --again) to go on: {journal} keeps what is finished",
        file=sys.stderr,
    )
