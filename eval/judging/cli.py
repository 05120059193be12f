"""What every command that asks models shares: options that name judges, keys of endpoints, certificates, the run.

No command of its own. Keys are looked for here and nowhere else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from builder.errors import BadInput
from eval.numbers.cli import check_choice, software

if TYPE_CHECKING:
    from eval.calls.judges import JudgeEntry
    from eval.calls.plan import Judge, Model, Plan
    from eval.calls.run import Outcome

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_JUDGE = "gpt-5.6-sol"
KEY_VARIABLES = ("OPENAI_ACCESS_TOKEN", "OPENAI_API_KEY")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
CERTIFICATES = Path("certificates")
EVEN_REPEATS = "an even number can tie, and a tie is no vote; take an odd one"

JudgeModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--judge-model",
        help="Model to judge: a name, or builtin:verbatim; several make a jury [gpt-5.6-sol].",
    ),
]
JudgeUrlOption = Annotated[
    list[str] | None,
    typer.Option("--judge-base-url", help="The judges' endpoint, if it is another: once, or once a judge."),
]
JudgeKeyOption = Annotated[
    list[str] | None,
    typer.Option("--judge-api-key-env", help="Variable that holds the judges' key: once, or once a judge."),
]
JudgeVendorOption = Annotated[
    list[str] | None, typer.Option("--judge-vendor", help="Who makes the judge's model: once, or once a judge.")
]
JudgeTemperatureOption = Annotated[
    list[float] | None,
    typer.Option("--judge-temperature", help="Temperature asked of judges: once, or once a judge [0]."),
]
JudgesOption = Annotated[
    Path | None,
    typer.Option("--judges", metavar="FILE.toml", help="The jury as [[judge]] tables, for more than flags carry."),
]
JudgeFormatOption = Annotated[
    str | None,
    typer.Option(
        "--judge-format",
        help="How the judge's reply is constrained: json_object, json_schema or none "
        "[json_object; none on HealthBench data, where --grouping is item].",
    ),
]
IdStyleOption = Annotated[
    str | None,
    typer.Option(
        "--id-style", help="Item ids shown to the judge: full, or short (item_0 ...) [full; short on HealthBench data]."
    ),
]
CertificatesOption = Annotated[
    Path, typer.Option("--certificates", metavar="DIR", help="Where `certify` puts judges' certificates.")
]
UncertifiedOption = Annotated[
    bool, typer.Option("--uncertified", help="Run with judges whose certificates do not allow it; this is recorded.")
]


def journal_with(beside: str) -> Callable[[Path | None], Path | None]:
    """Return the check of an --output: a journal X.jsonl, beside which lies what the words say."""

    def check(path: Path | None) -> Path | None:
        if path is not None and path.suffix != ".jsonl":
            raise typer.BadParameter(f"{path} must end in .jsonl: {beside}")
        return path

    return check


def warn_of_ties(repeats: int) -> None:
    """Say on stderr that an even number of calls can tie."""
    if repeats % 2 == 0:
        print(f"warning: --repeats {repeats}: {EVEN_REPEATS}", file=sys.stderr)


def now() -> str:
    """Return the time as files hold it: UTC, ISO, microseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class JudgeFlags:
    """The options of a command that name its judges, as they came."""

    models: list[str] | None = None
    base_urls: list[str] | None = None
    key_variables: list[str] | None = None
    vendors: list[str] | None = None
    temperatures: list[float] | None = None
    file: Path | None = None
    reply_format: str | None = None
    id_style: str | None = None

    def check(self) -> None:
        """Stop with exit code 2 at a choice that there is not, or at flags beside a file that says it all."""
        if self.reply_format is not None:
            check_choice("--judge-format", self.reply_format, ("json_object", "json_schema", "none"))
        if self.id_style is not None:
            check_choice("--id-style", self.id_style, ("full", "short"))
        if self.file is not None:
            beside = {
                "--judge-model": self.models,
                "--judge-base-url": self.base_urls,
                "--judge-api-key-env": self.key_variables,
                "--judge-vendor": self.vendors,
                "--judge-temperature": self.temperatures,
                "--judge-format": self.reply_format,
                "--id-style": self.id_style,
            }
            if given := next((option for option, value in beside.items() if value), None):
                raise typer.BadParameter(f"{given}: --judges {self.file} says it; write it there")

    def entries(self) -> tuple[JudgeEntry, ...]:
        """Return one entry a judge.

        Raises:
            BadInput: the file is wrong, or a flag does not stand once or once a judge.
        """
        from eval.calls.judges import judges_of, read_judges

        if self.file is not None:
            return read_judges(self.file)
        return judges_of(
            self.models or [DEFAULT_JUDGE],
            base_urls=self.base_urls or [],
            key_variables=self.key_variables or [],
            vendors=self.vendors or [],
            temperatures=self.temperatures or [],
            reply_format=self.reply_format,
            id_style=self.id_style,
        )

    def judges(self, *, base_url: str, key_env: str | None, needed: bool) -> tuple[Judge, ...]:
        """Return the judges with their endpoints.

        Args:
            base_url: the endpoint of a judge that names none; `key_env` the variable of its key.
            needed: whether calls will be made, so that keys must be there.

        Raises:
            BadInput: as `entries`, or a key is not set.
        """
        return tuple(judge_of(entry, base_url=base_url, key_env=key_env, needed=needed) for entry in self.entries())


def judge_of(entry: JudgeEntry, *, base_url: str, key_env: str | None, needed: bool) -> Judge:
    """Return the judge that an entry names, its key found."""
    from eval.calls.plan import Judge

    url, variable = entry.base_url or base_url, entry.api_key_env or key_env
    return Judge(
        model_at(entry.model, url, variable, role="judge", needed=needed),
        vendor=entry.vendor,
        temperature=entry.temperature,
        reply_format=entry.reply_format,
        id_style=entry.id_style,
        reasoning_effort=entry.reasoning_effort,
    )


def model_at(name: str, base_url: str, key_env: str | None, *, role: str, needed: bool) -> Model:
    """Return a model with its endpoint, and its key where calls will be made; a builtin has neither."""
    from eval.calls.builtin import PREFIX
    from eval.calls.endpoint import Endpoint
    from eval.calls.plan import Model

    if name.startswith(PREFIX):
        return Model(name)
    return Model(name, Endpoint(base_url, _api_key(key_env, base_url, role=role) if needed else None))


def _api_key(variable: str | None, base_url: str, *, role: str) -> str | None:
    """Return the key from the environment; a server on this machine needs none."""
    names = (variable,) if variable else KEY_VARIABLES
    for name in names:
        if key := os.environ.get(name, "").strip():
            return key
    if variable is None and urlsplit(base_url).hostname in LOOPBACK:
        return None
    place = urlsplit(base_url).hostname or base_url
    if variable:
        raise BadInput(f"no API key for the {role} model at {place}: {variable} is not set")
    option = "--judge-api-key-env" if role == "judge" else "--api-key-env"
    raise BadInput(
        f"no API key for the {role} model at {place}: expected it in {' or '.join(names)}; set it, or name {option}"
    )


@dataclass(frozen=True, slots=True)
class CertifiedStart:
    """What certificates say at the start of a run: the journal's line, and the model names that judges may return."""

    record: Mapping[str, Any] | None = None
    returned: Mapping[int, frozenset[str]] = field(default_factory=dict)


UNASKED = CertifiedStart()
"""Of a run that certificates do not concern."""


def certified_start(plan: Plan, folder: Path, *, uncertified: bool) -> CertifiedStart:
    """Return what the certificates in a folder say of a plan's judges; it is not looked at where all are builtin.

    Args:
        uncertified: start whatever they say, or even if one of them cannot be read.

    Raises:
        BadInput: they do not allow this run, or one of them cannot be read.
    """
    from eval.certificates.certificate import read_certificates
    from eval.certificates.gate import certified, check, models_expected, record, unread

    needed = not all(judge.model.builtin for judge in plan.judges)
    try:
        certificates = read_certificates(folder) if needed else ()
        found = certified(plan, certificates, now=now(), folder=None if folder == CERTIFICATES else folder)
    except BadInput as error:
        if not uncertified:
            raise
        # The record travels with the run: it names the file, not the folders of this machine.
        found = unread(plan, f"none: {str(error).removeprefix(f'{folder}{os.sep}')}")
    needed = plan.suite.certified
    check(found, n_judges=len(plan.judges), repeats=plan.reading.repeats, scribe=needed, uncertified=uncertified)
    expected = {} if uncertified else models_expected(found)
    return CertifiedStart(record(found, uncertified=uncertified), expected)


def drive(
    plan: Plan,
    output: Path,
    *,
    started: Callable[[int, int], None],
    concurrency: int,
    certified: CertifiedStart = UNASKED,
    reuse: Sequence[Path] = (),
) -> Outcome:
    """Run a plan to its end or to what stops it, with a display where stderr is a terminal; Ctrl-C ends with 130.

    Args:
        started: called once with how many of the selected cases are judged already, and how many there are.

    Raises:
        BadInput: as `run_plan`.
    """
    import asyncio
    from contextlib import nullcontext

    from rich.console import Console

    from eval.calls.start import run_plan
    from eval.showing.progress import RunDisplay

    console = Console(stderr=True)
    display = RunDisplay(plan, console) if console.is_terminal else None
    job = run_plan(
        plan,
        output,
        reuse=reuse,
        concurrency=concurrency,
        header={"software": software()},
        now=now,
        on_start=started,
        on_progress=display.step if display else (lambda _: None),
        certified=certified.record,
        returned=certified.returned,
    )
    try:
        with display or nullcontext():
            return asyncio.run(job)
    except KeyboardInterrupt:
        print(f"interrupted; what is finished is in {output}: repeat the command to go on", file=sys.stderr)
        raise typer.Exit(130) from None
