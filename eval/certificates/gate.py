"""Which judges a run may start with: its judges held against the certificates that there are.

In: a plan, certificates, the time. Out: a state for each judge, whether the run may start, and the record of it that
travels with the run. One judge without a certificate may start, and is labelled so; a failed or stale certificate
refuses the run; a jury (several judges or repeats) and every scribe suite need a valid one of each judge. Builtin
judges need none: they show the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from builder.errors import BadInput
from eval.certificates.certificate import (
    FAILED,
    PROMPT_MEMBERS,
    VALID,
    Certificate,
    check_certificate,
    parse_time,
)
from eval.certificates.probes import probes_of, probes_sha256
from eval.judging.certified import BUILTIN, NONE, NOT_NEEDED
from eval.judging.suites import BEDSIDE_NAME, suite_of

if TYPE_CHECKING:
    from eval.calls.plan import Plan

STALE: Final = "stale"
MAX_AGE_DAYS: Final = 90
"""Providers change models behind one name: what a judge could do a quarter of a year ago says little."""
_SETTINGS: Final = {"params": "parameters", "format": "reply form", "id_style": "id style"}
_PROMPTS: Final = {"system_sha256": "system prompt", "template_sha256": "prompt template"}


@dataclass(frozen=True, slots=True)
class JudgeState:
    """What certificates say of one judge: valid, failed, stale, none or not needed; why; and the certificate meant."""

    judge: int
    model: str
    state: str
    reason: str
    certificate: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Certified:
    """What certificates say of each judge of a run, in its order."""

    judges: tuple[JudgeState, ...]


def certified(plan: Plan, certificates: Sequence[Certificate], *, now: str) -> Certified:
    """Return the state of each judge of a plan.

    Args:
        now: the time, as files hold it.
    """
    identity = plan.identity()
    return Certified(tuple(_state(n, identity, certificates, now=now) for n in range(len(identity["judges"]))))


def _state(index: int, identity: Mapping[str, Any], certificates: Sequence[Certificate], *, now: str) -> JudgeState:
    judge = identity["judges"][index]
    model = judge["model"]
    if model.startswith(BUILTIN):
        return JudgeState(index, model, NOT_NEEDED, "a builtin judge shows the pipeline and needs no certificate")
    of_model = [one for one in certificates if _same_model(one, judge)]
    own = [one for one in of_model if _same_use(one, identity)]
    if not own:
        return JudgeState(index, model, NONE, _why_none(model, of_model, identity))
    chosen = _newest([one for one in own if not _changes(one, judge)] or own)
    state, reason = _judged(chosen, identity, judge, now=now)
    return JudgeState(index, model, state, reason, chosen.whole)


def _same_model(certificate: Certificate, judge: Mapping[str, Any]) -> bool:
    return all(certificate.judge[name] == judge[name] for name in ("model", "endpoint"))


def _same_use(certificate: Certificate, identity: Mapping[str, Any]) -> bool:
    return all(certificate.whole[name] == identity[name] for name in ("suite", "grouping"))


def _why_none(model: str, others: Sequence[Certificate], identity: Mapping[str, Any]) -> str:
    uses = sorted({f"{one.whole['suite']} with grouping {one.whole['grouping']}" for one in others})
    there = f"one exists for {', '.join(uses)} only" if uses else "there is no certificate"
    return f"none: {there}; run {_certify(model, identity)}"


def _certify(model: str, identity: Mapping[str, Any]) -> str:
    """Return the command that certifies a judge for a run's use; what is standard is left out."""
    suite, grouping = identity["suite"], identity["grouping"]
    use = "" if suite == BEDSIDE_NAME else f" --suite {suite}"
    use += "" if grouping == suite_of(suite).grouping else f" --grouping {grouping}"
    return f"bedside-bench certify {model}{use}"


def _newest(certificates: Iterable[Certificate]) -> Certificate:
    return max(certificates, key=lambda one: (parse_time(one.date), one.whole["sha256"]))


def _changes(certificate: Certificate, judge: Mapping[str, Any]) -> list[str]:
    """Return how a judge is asked otherwise than when it was certified."""
    asked = {said: (certificate.judge[name], judge[name]) for name, said in _SETTINGS.items()}
    prompts = certificate.whole["prompts"]
    changed = [f"{said} {then} then, {here} now" for said, (then, here) in asked.items() if then != here]
    return changed + [f"another {_PROMPTS[name]}" for name in PROMPT_MEMBERS if prompts[name] != judge[name]]


def _judged(
    certificate: Certificate, identity: Mapping[str, Any], judge: Mapping[str, Any], *, now: str
) -> tuple[str, str]:
    """Return the state that a certificate gives a judge, and why in one line."""
    day, model = certificate.date[:10], judge["model"]
    stale = _changes(certificate, judge)
    if certificate.whole["probes_sha256"] != probes_sha256(probes_of(identity["suite"])):
        stale.append(f"the probes have changed since {day}")
    again = "again" if stale else "--again"  # what changed makes another journal; what is old has to be asked anew
    stale += _age(certificate.date, now)
    if stale:
        stale += ["it had failed"] if certificate.verdict == FAILED else []
        return STALE, f"stale: {'; '.join(stale)}; run {_certify(model, identity)} {again}"
    sentinels = certificate.whole["counts"]["sentinels"]
    if certificate.verdict == FAILED:
        wrong = sentinels["n"] - sentinels["right"]
        return FAILED, f"failed: {wrong} of {sentinels['n']} sentinel items were not decided right on {day}"
    return VALID, f"valid: all {sentinels['n']} sentinel items decided right on {day}"


def _age(date: str, now: str) -> list[str]:
    """Return why a certificate's date makes it stale."""
    made, here = parse_time(date), parse_time(now)
    if made is None or here is None:
        raise ValueError(f"expected UTC times, found {date!r} and {now!r}")
    if here - made > timedelta(days=MAX_AGE_DAYS):
        return [f"it is of {date[:10]}, older than {MAX_AGE_DAYS} days"]
    if made - here > timedelta(days=1):  # clocks differ; a day is no clock
        return [f"it is of {date[:10]}, which has not come yet"]
    return []


def check(certified: Certified, *, n_judges: int, repeats: int, scribe: bool, uncertified: bool) -> None:
    """Stop a run that its judges' certificates do not allow.

    Args:
        scribe: the suite needs a valid certificate even of a single judge.
        uncertified: let it start whatever they say; the record keeps that.

    Raises:
        BadInput: naming each judge that is in the way, why, and what to do.
    """
    if uncertified:
        return
    needed = n_judges > 1 or repeats > 1 or scribe
    bad = [one for one in certified.judges if one.state in (FAILED, STALE) or (needed and one.state == NONE)]
    if not bad:
        return
    why = "a scribe suite needs" if scribe else "several judges or repeats need" if needed else "this run needs"
    said = "; ".join(f"judge {one.model}: {one.reason}" for one in bad)
    raise BadInput(
        f"{said}. Expected: {why} a valid certificate of every judge in --certificates; "
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
    return {"judges": [asdict(one) for one in certified.judges], "uncertified": uncertified}


def check_record(kept: Mapping[str, Any], identity: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a record that travels with a run: a certificate that is bad, or of another judge.

    Probes and age are left alone: they are held against the day on which the run started.
    """
    judges = kept["judges"]
    if len(judges) != len(identity["judges"]):
        return [f"certificates of {len(judges)} judges, the run has {len(identity['judges'])}"]
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
    if about["state"] == VALID and (certificate.verdict != VALID or _changes(certificate, judge)):
        return ["state valid does not follow from the certificate"]
    return [] if about["state"] in (VALID, FAILED, STALE) else [f"state {about['state']!r:.20} beside a certificate"]
