"""Which judges a run may start with: its judges held against the certificates that there are.

In: a plan, certificates, the time. Out: a state for each judge, whether the run may start, and the record of it that
travels with the run. One judge without a certificate may start, and is labelled so; a failed or stale certificate
refuses the run; a jury (several judges or repeats) and every scribe suite need a valid one of each judge. Builtin
judges need none: they show the pipeline.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH_NAME
from eval.calls.address import DEFAULT_BASE_URL
from eval.certificates.certificate import (
    PROMPT_MEMBERS,
    Certificate,
    check_certificate,
    parse_time,
)
from eval.certificates.probes import probes_of, probes_sha256
from eval.judging.certified import BUILTIN, FAILED, NONE, NOT_NEEDED, STALE, VALID
from eval.judging.protocol import JUDGE_TEMPERATURE
from eval.judging.suites import BEDSIDE_NAME, suite_of

if TYPE_CHECKING:
    from eval.calls.plan import Model, Plan

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
MAX_AGE_DAYS: Final = 90
"""Providers change models behind one name: what a judge could do a quarter of a year ago says little."""
_SETTINGS: Final = {"params": "parameters", "format": "reply form", "id_style": "id style"}
_PROMPTS: Final = {"system_sha256": "system prompt", "template_sha256": "prompt template"}


@dataclass(frozen=True, slots=True)
class JudgeState:
    """What certificates say of one judge: valid, failed, stale, none or not needed; why; and the certificate meant.

    `reason` is what files keep; `told` is the same for the screen, with the port and folder that no file keeps.
    """

    judge: int
    model: str
    state: str
    reason: str
    told: str
    certificate: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Certified:
    """What certificates say of each judge of a run, in its order."""

    judges: tuple[JudgeState, ...]


def certified(plan: Plan, certificates: Sequence[Certificate], *, now: str, folder: Path | None = None) -> Certified:
    """Return the state of each judge of a plan.

    Args:
        now: the time, as files hold it.
        folder: where certificates lie, if that is not where `certify` puts them.
    """
    identity = plan.identity()
    judges = range(len(plan.judges))
    return Certified(tuple(_state(n, plan, identity, certificates, now=now, folder=folder) for n in judges))


def unread(plan: Plan, why: str) -> Certified:
    """Return the states of a plan's judges where their certificates cannot be read: none, and why."""
    models = [judge.model for judge in plan.judges]
    return Certified(
        tuple(
            _not_needed(n, model.name) if model.builtin else JudgeState(n, model.name, NONE, why, why)
            for n, model in enumerate(models)
        )
    )


def _not_needed(index: int, model: str) -> JudgeState:
    why = "a builtin judge shows the pipeline and needs no certificate"
    return JudgeState(index, model, NOT_NEEDED, why, why)


def _state(
    index: int,
    plan: Plan,
    identity: Mapping[str, Any],
    certificates: Sequence[Certificate],
    *,
    now: str,
    folder: Path | None,
) -> JudgeState:
    judge, asked = identity["judges"][index], plan.judges[index].model
    if asked.builtin:
        return _not_needed(index, asked.name)
    of_model = [one for one in certificates if _same_model(one, judge)]
    own = [one for one in of_model if _same_use(one, identity)]
    if not own:
        chosen, state, why = None, NONE, _why_none(of_model)
    else:
        same = [one for one in own if not _changes(one, judge, identity)] or own
        chosen = _newest([one for one in same if not _is_to_come(one.date, now)] or same)
        state, why = _judged(chosen, identity, judge, now=now)

    def said(endpoint: str, folder: Path | None = None) -> str:
        if state not in (NONE, STALE):
            return why
        again = state == STALE
        words = [*_words(judge, identity, endpoint), *(("--certificates", str(folder)) if folder else ())]
        return f"{why}; certify it{' again' * again}: {shlex.join(words)}{' --again' * again}"

    whole = None if chosen is None else chosen.whole
    return JudgeState(index, asked.name, state, said(judge["endpoint"]), said(_address(asked), folder), whole)


def _address(model: Model) -> str:
    """Return where a model is, without user, password and query, but with the port that a person typed."""
    name = urlsplit(model.endpoint_name)
    port = urlsplit(model.endpoint.base_url.strip()).port if model.endpoint else None
    return model.endpoint_name if port is None or name.port else name._replace(netloc=f"{name.netloc}:{port}").geturl()


def _same_model(certificate: Certificate, judge: Mapping[str, Any]) -> bool:
    return all(certificate.judge[name] == judge[name] for name in ("model", "endpoint"))


def _same_use(certificate: Certificate, identity: Mapping[str, Any]) -> bool:
    return all(certificate.whole[name] == identity[name] for name in ("suite", "grouping"))


def _why_none(others: Sequence[Certificate]) -> str:
    uses = sorted({f"{one.whole['suite']} with grouping {one.whole['grouping']}" for one in others})
    return f"none: one exists for {', '.join(uses)} only" if uses else "none: there is no certificate"


def _words(judge: Mapping[str, Any], identity: Mapping[str, Any], endpoint: str) -> list[str]:
    """Return the words of the command that certifies a judge for a run's use; what is standard is left out."""
    name, grouping = identity["suite"], identity["grouping"]
    own = suite_of(name, grouping)
    options: dict[str, Any] = {}
    if name != BEDSIDE_NAME:
        options["--suite"] = name
    if grouping != suite_of(name).grouping:
        options["--grouping"] = grouping
    if name == HEALTHBENCH_NAME and judge["template_sha256"] != own.prompts().template_sha256:
        options["--grader-template"] = "FILE"
    if endpoint != DEFAULT_BASE_URL:
        # No file keeps a port of this machine: what is recorded cannot name the place.
        local = urlsplit(endpoint).hostname in LOOPBACK and urlsplit(endpoint).port is None
        options["--base-url"] = "URL" if local else endpoint
    options |= _asked(judge, judge_format=own.judge_format, id_style=own.id_style)
    return ["bedside-bench", "certify", judge["model"], *(str(word) for option in options.items() for word in option)]


def _asked(judge: Mapping[str, Any], *, judge_format: str, id_style: str) -> dict[str, Any]:
    """Return the options that ask a judge as the run does; a file's, where no option can say it."""
    params = judge["params"]
    temperature = params.get("temperature")
    if temperature is None or "reasoning_effort" in params:
        return {"--judges": "FILE.toml"}
    asked = {
        "--judge-format": (judge["format"], judge_format),
        "--id-style": (judge["id_style"], id_style),
        "--temperature": (temperature, JUDGE_TEMPERATURE),
    }
    return {option: value for option, (value, standard) in asked.items() if value != standard}


def _newest(certificates: Iterable[Certificate]) -> Certificate:
    return max(certificates, key=lambda one: (parse_time(one.date), one.whole["sha256"]))


def _changes(certificate: Certificate, judge: Mapping[str, Any], identity: Mapping[str, Any]) -> list[str]:
    """Return how a judge is asked otherwise than when it was certified; more calls a vote than then do no harm."""
    asked = {said: (certificate.judge[name], judge[name]) for name, said in _SETTINGS.items()}
    prompts = certificate.whole["prompts"]
    changed = [f"{said} {then} then, {here} now" for said, (then, here) in asked.items() if then != here]
    if certificate.whole["repeats"] > identity["repeats"]:
        changed.append(f"certified by the majority of {certificate.whole['repeats']} calls, {identity['repeats']} now")
    return changed + [f"another {_PROMPTS[name]}" for name in PROMPT_MEMBERS if prompts[name] != judge[name]]


def _judged(
    certificate: Certificate, identity: Mapping[str, Any], judge: Mapping[str, Any], *, now: str
) -> tuple[str, str]:
    """Return the state that a certificate gives a judge, and why in one line."""
    day = certificate.date[:10]
    stale = _changes(certificate, judge, identity)
    if certificate.whole["probes_sha256"] != probes_sha256(probes_of(identity["suite"])):
        stale.append(f"the probes have changed since {day}")
    stale += _age(certificate.date, now)
    if stale:
        stale += ["it had failed"] if certificate.verdict == FAILED else []
        return STALE, f"stale: {'; '.join(stale)}"
    sentinels = certificate.whole["counts"]["sentinels"]
    if certificate.verdict == FAILED:
        wrong = sentinels["n"] - sentinels["right"]
        return FAILED, f"failed: {wrong} of {sentinels['n']} sentinel items were not decided right on {day}"
    nameless = "" if certificate.whole["models_returned"] else "; its server names no model, so none is checked"
    return VALID, f"valid: all {sentinels['n']} sentinel items decided right on {day}{nameless}"


def _age(date: str, now: str) -> list[str]:
    """Return why a certificate's date makes it stale."""
    if _is_to_come(date, now):
        return [f"it is of {date[:10]}, which has not come yet"]
    if _since(date, now) > timedelta(days=MAX_AGE_DAYS):
        return [f"it is of {date[:10]}, older than {MAX_AGE_DAYS} days"]
    return []


def _is_to_come(date: str, now: str) -> bool:
    return _since(date, now) < timedelta(days=-1)  # clocks differ; a day is no clock


def _since(date: str, now: str) -> timedelta:
    made, here = parse_time(date), parse_time(now)
    if made is None or here is None:
        raise ValueError(f"expected UTC times, found {date!r} and {now!r}")
    return here - made


def check(certified: Certified, *, n_judges: int, repeats: int, scribe: bool, uncertified: bool) -> None:
    """Stop a run that its judges' certificates do not allow.

    Args:
        scribe: the suite needs a valid certificate even of a single judge.
        uncertified: let it start whatever they say; the record keeps that.

    Raises:
        BadInput: naming each judge that is in the way, why, and what to do, in a line each.
    """
    if uncertified:
        return
    needed = n_judges > 1 or repeats > 1 or scribe
    bad = [one for one in certified.judges if one.state in (FAILED, STALE) or (needed and one.state == NONE)]
    if not bad:
        return
    why = "a scribe suite needs" if scribe else "several judges or repeats need" if needed else "this run needs"
    # A command stands at the end of its line, so that nothing after it reads as one of its words.
    said = "\n".join(f"judge {one.model}: {one.told}" for one in bad)
    raise BadInput(
        f"{said}\nexpected: {why} a valid certificate of every judge in --certificates; "
        "--uncertified starts all the same and is recorded"
    )


def models_expected(certified: Certified) -> dict[int, frozenset[str]]:
    """Return for each judge with a valid certificate the names its server gave the model; none where it gives none."""
    return {
        one.judge: frozenset(one.certificate["models_returned"])
        for one in certified.judges
        if one.state == VALID and one.certificate is not None
    }


def record(certified: Certified, *, uncertified: bool) -> dict[str, Any]:
    """Return what the journal and the summary keep of this."""
    kept = ("judge", "model", "state", "reason", "certificate")
    judges = [{name: getattr(one, name) for name in kept} for one in certified.judges]
    return {"judges": judges, "uncertified": uncertified}


def check_record(kept: Mapping[str, Any], identity: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a record that travels with a run: a certificate that is bad, or of another judge.

    Probes and age are left alone: they are held against the day on which the run started.
    """
    judges = kept["judges"]
    if len(judges) != len(identity["judges"]):
        return [f"certificates of {len(judges)} judges, the run has {len(identity['judges'])}"]
    needed = len(judges) > 1 or identity["repeats"] > 1 or suite_of(identity["suite"]).certified
    if not kept["uncertified"]:
        for about in judges:
            if about["state"] == FAILED or (needed and about["state"] == NONE):
                return [f"judge {about['model']}: state {about['state']}, with which only --uncertified starts a run"]
    pairs = zip(judges, identity["judges"], strict=True)
    return [f"judge {about['model']}: {problem}" for about, judge in pairs for problem in _kept(about, judge, identity)]


def _kept(about: Mapping[str, Any], judge: Mapping[str, Any], identity: Mapping[str, Any]) -> list[str]:
    if about["model"] != judge["model"] or (about["state"] == NOT_NEEDED) != judge["model"].startswith(BUILTIN):
        return [f"certificate state {about['state']!r:.20} of another judge"]
    whole = about["certificate"]
    if whole is None:
        return [f"state {about['state']} without a certificate"] if about["state"] in (VALID, FAILED, STALE) else []
    if problems := check_certificate(whole):
        return problems
    certificate = Certificate(whole)
    if not (_same_model(certificate, judge) and _same_use(certificate, identity)):
        return ["the certificate is of another judge, suite or grouping"]
    if about["state"] == VALID and (certificate.verdict != VALID or _changes(certificate, judge, identity)):
        return ["state valid does not follow from the certificate"]
    return [] if about["state"] in (VALID, FAILED, STALE) else [f"state {about['state']!r:.20} beside a certificate"]
