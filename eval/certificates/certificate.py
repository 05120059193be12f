"""A certificate: what one judge decided on the probes, as a file that names everything it is bound to.

In: a judge's decisions, or files. Out: the JSON object `bedside-bench/certificate/1` and its problems. It is bound to
the judge as a run's identity has it, the prompts, the probes and the names that the server gave the model; `sha256`
covers all the rest. That is no signature: it finds damage and edits, not a forger who computes it again, and so the
evidence, a journal, is kept beside it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from bedside_bench import sha256_json
from builder.errors import BadInput
from builder.tree.strict_json import parse
from eval.certificates.probes import Probe, probes_of, probes_sha256
from eval.judging.certified import FAILED, VALID
from eval.judging.suites import GROUPINGS

FORMAT: Final = "bedside-bench/certificate/1"
_OURS: Final = FORMAT.rpartition("/")[0] + "/"
JUDGE_MEMBERS: Final = ("model", "endpoint", "params", "format", "id_style", "vendor")
"""Of a judge in a run's identity; the two prompt digests stand apart."""
PROMPT_MEMBERS: Final = ("system_sha256", "template_sha256")

_MEMBERS: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("format", "suite", "grouping", "probes_sha256", "date", "verdict", "sha256"), (str,)),
    **dict.fromkeys(("judge", "prompts", "counts", "made_by"), (dict,)),
    **dict.fromkeys(("models_returned", "decisions"), (list,)),
    "repeats": (int,),
}
_JUDGE: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("model", "endpoint", "format", "id_style"), (str,)),
    "params": (dict,),
    "vendor": (str, type(None)),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a judge found on one item of a probe; `found` is None where it gave no readable decision."""

    probe_id: str
    item_id: str
    sentinel: bool
    expected: bool
    found: bool | None

    @property
    def right(self) -> bool:
        """Whether the judge decided as expected."""
        return self.found is self.expected


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that was found good in form; `whole` is the JSON object."""

    whole: Mapping[str, Any]

    @property
    def judge(self) -> Mapping[str, Any]:
        """The judge as a run's identity has it, without its prompts."""
        judge: Mapping[str, Any] = self.whole["judge"]
        return judge

    @property
    def date(self) -> str:
        """The UTC time of the judge's last call."""
        return str(self.whole["date"])

    @property
    def verdict(self) -> str:
        """`valid` if every sentinel item was decided right, else `failed`."""
        return str(self.whole["verdict"])

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What the judge decided, in the order of the probes."""
        return tuple(Decision(*row) for row in self.whole["decisions"])


def verdict_of(decisions: Iterable[Decision]) -> str:
    """Return `valid` if every sentinel item is decided right, else `failed`."""
    return VALID if all(one.right for one in decisions if one.sentinel) else FAILED


def make_certificate(
    identity: Mapping[str, Any],
    decisions: Sequence[Decision],
    *,
    models_returned: Iterable[str],
    date: str,
    made_by: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the certificate of the one judge of a run over a suite's probes.

    Args:
        identity: of that run; its data are named by the probes' digest.
        date: the time of its last call.
    """
    (judge,) = identity["judges"]
    whole = {
        "format": FORMAT,
        "suite": identity["suite"],
        "grouping": identity["grouping"],
        "repeats": identity["repeats"],
        "judge": {name: judge[name] for name in JUDGE_MEMBERS},
        "prompts": {name: judge[name] for name in PROMPT_MEMBERS},
        "probes_sha256": identity["dataset_sha256"],
        "models_returned": sorted(set(models_returned)),
        "date": date,
        "verdict": verdict_of(decisions),
        "counts": counts(decisions, probes_of(identity["suite"])),
        "decisions": [[one.probe_id, one.item_id, one.sentinel, one.expected, one.found] for one in decisions],
        "made_by": dict(made_by),
    }
    return {**whole, "sha256": sha256_json(whole)}


def counts(decisions: Sequence[Decision], probes: Sequence[Probe]) -> dict[str, Any]:
    """Return how many items and sentinels were asked and decided right: in all, by kind and by trait."""
    known = {probe.id: probe for probe in probes}
    kinds = [known[one.probe_id].kind for one in decisions]
    traits = [known[one.probe_id].trait for one in decisions]
    return {**_count(decisions), "by_kind": _by(kinds, decisions), "by_trait": _by(traits, decisions)}


def _by(names: Sequence[str], decisions: Sequence[Decision]) -> dict[str, Any]:
    return {
        name: _count([one for of, one in zip(names, decisions, strict=True) if of == name])
        for name in dict.fromkeys(names)
    }


def _count(decisions: Sequence[Decision]) -> dict[str, dict[str, int]]:
    sentinels = [one for one in decisions if one.sentinel]
    listed = {"items": decisions, "sentinels": sentinels}
    return {name: {"n": len(ones), "right": sum(one.right for one in ones)} for name, ones in listed.items()}


def certificate_text(whole: Mapping[str, Any]) -> str:
    """Return a certificate as its file holds it."""
    return json.dumps(whole, indent=1, sort_keys=True, allow_nan=False) + "\n"


def read_certificates(folder: Path) -> list[Certificate]:
    """Return the certificates of a folder, by file name; none where there is no such folder.

    A JSON file of another format is passed over.

    Raises:
        BadInput: a JSON file there is damaged, or a certificate that was changed since it was made.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"--certificates {folder}: expected a folder, found a file; give the folder that holds it")
    read = map(read_certificate, sorted(folder.glob("*.json"))) if folder.is_dir() else ()
    return [certificate for certificate in read if certificate is not None]


def read_certificate(path: Path) -> Certificate | None:
    """Return the certificate in a file; None where the file is of another format.

    Raises:
        BadInput: it cannot be read, or was changed since it was made.
    """
    try:
        found, faults = parse(path.read_bytes())
    except OSError as error:
        raise BadInput(f"{path}: expected a certificate, found: {error.strerror or error}; move it away") from None
    if not faults and not _is_ours(found):
        return None
    problems = [f"expected strict JSON, found {faults[0].found}"] if faults else check_certificate(found)
    if problems:
        raise BadInput(f"{path}: {'; '.join(problems)}; certify the judge again, or move the file away")
    return Certificate(found)


def _is_ours(found: object) -> bool:
    return isinstance(found, Mapping) and str(found.get("format")).startswith(_OURS)


def check_certificate(whole: object) -> list[str]:
    """Return what is wrong with a certificate, in words; [] if its form, digest, counts and verdict hold."""
    problems = _form(whole)
    if problems or not isinstance(whole, Mapping):
        return problems
    rest = {name: value for name, value in whole.items() if name != "sha256"}
    try:
        digest = sha256_json(rest)
    except (TypeError, ValueError):
        return ["expected a certificate of JSON values, found others"]
    if digest != whole["sha256"]:
        return [f"expected sha256 {whole['sha256']}, found {digest}: it was changed since it was made"]
    return _consistency(Certificate(whole))


def _form(whole: object) -> list[str]:
    """Return what keeps an object from being read as a certificate."""
    if not isinstance(whole, Mapping) or whole.get("format") != FORMAT:
        return [f"expected a certificate (format {FORMAT}), found another thing"]
    if set(whole) != set(_MEMBERS):
        odd = sorted(map(str, set(whole) ^ set(_MEMBERS)))
        return [f"expected the members of a certificate, found {', '.join(odd)} missing or too many"]
    problems = [
        f"{name}: found a value of another type" for name, kinds in _MEMBERS.items() if type(whole[name]) not in kinds
    ]
    if problems:
        return problems
    judge, prompts = whole["judge"], whole["prompts"]
    if set(judge) != set(_JUDGE) or any(type(judge[name]) not in kinds for name, kinds in _JUDGE.items()):
        problems.append(f"judge: expected {', '.join(JUDGE_MEMBERS)} as a run's identity has them")
    if set(prompts) != set(PROMPT_MEMBERS) or any(type(value) not in (str, type(None)) for value in prompts.values()):
        problems.append(f"prompts: expected {' and '.join(PROMPT_MEMBERS)}")
    if whole["grouping"] not in GROUPINGS or whole["repeats"] < 1:
        problems.append(f"expected grouping {' or '.join(GROUPINGS)} and repeats from 1 up")
    if not all(type(name) is str for name in whole["models_returned"]):
        problems.append("models_returned: expected names")
    if parse_time(whole["date"]) is None:
        problems.append(f"date: expected a UTC time, found {whole['date']!r:.40}")
    if not all(_is_decision(row) for row in whole["decisions"]):
        problems.append("decisions: expected rows of probe id, item id, sentinel, expected, found")
    return problems


def _is_decision(row: object) -> bool:
    if not isinstance(row, list) or len(row) != 5:
        return False
    return [type(value) for value in row[:4]] == [str, str, bool, bool] and type(row[4]) in (bool, type(None))


def parse_time(text: str) -> datetime | None:
    """Return a time as files hold it (UTC, with its zone), None where it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _consistency(certificate: Certificate) -> list[str]:
    """Return what a certificate says that does not follow from its decisions."""
    whole, decisions = certificate.whole, certificate.decisions
    problems = []
    names = Counter((one.probe_id, one.item_id) for one in decisions)
    if not any(one.sentinel for one in decisions) or max(names.values()) > 1:
        problems.append("decisions: expected each item once, sentinels among them")
    if certificate.verdict != verdict_of(decisions):
        problems.append(f"verdict {certificate.verdict!r:.20} does not follow from its decisions")
    problems += _against_probes(whole, decisions)
    total = _count(decisions)
    if any(whole["counts"].get(name) != total[name] for name in total):
        problems.append("counts do not follow from its decisions")
    return problems


def _against_probes(whole: Mapping[str, Any], decisions: Sequence[Decision]) -> list[str]:
    """Return where a certificate differs from the probes that it names, as far as these are the ones we hold."""
    probes = probes_of(whole["suite"])
    if not probes or whole["probes_sha256"] != probes_sha256(probes):
        return []
    expected = [
        (probe.id, item_id, item.sentinel, item.expected)
        for probe in probes
        for item_id, item in zip(probe.item_ids, probe.items, strict=True)
    ]
    if expected != [(one.probe_id, one.item_id, one.sentinel, one.expected) for one in decisions]:
        return ["decisions are not on the probes that its probes_sha256 names"]
    return [] if counts(decisions, probes) == whole["counts"] else ["counts by kind or trait do not follow"]
