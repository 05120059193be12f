"""What a reader must know of who judged: how far the jury agreed, whose vendor is whose, what its certificates say.

In: a run, and of a jury the summary's member. Out: sentences in a fixed order. None of them changes a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from eval.judging.certified import NONE, NOT_NEEDED, VALID, certificate_label
from eval.judging.graded import RunData
from eval.judging.jury import same_vendor, vendor_key

NO_CERTIFICATE: Final = "certificate: none; this judge was not certified against a reference"
NO_CERTIFICATES: Final = "certificate: none; these judges were not certified against a reference"
EVEN: Final = "repeats a judge: an even number can tie, and a tie is no vote; an odd number is better"


def jury_notices(run: RunData, jury: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield what a jury's numbers are, and which judges are of whose vendor."""
    if jury is not None:
        yield from _verdicts(jury)
        yield from _lost_calls(run)
    if run.identity is not None:
        yield from vendor_notices(run.identity)


def _verdicts(jury: Mapping[str, Any]) -> Iterator[str]:
    items, n, repeats = jury["items"], jury["n_judges"], jury["repeats"]
    rule = {1: "its vote decides", 2: "both must agree"}.get(n, "a strict majority decides")
    judges = "1 judge" if n == 1 else f"{n} judges"
    yield (
        f"jury of {judges} x {repeats} calls: a judge's vote is what more than half of its calls say, {rule}; "
        f"of {items['n']} items {items['unresolved']} unresolved, {items['missing']} missing"
    )
    if items["unresolved"]:
        yield (
            "the score is the conservative bound: unresolved items that earn points count as not met, all others as "
            "met; the liberal bound is the reverse"
        )
    if repeats % 2 == 0:
        yield f"{repeats} {EVEN}"


def _lost_calls(run: RunData) -> Iterator[str]:
    """Yield how many judge calls brought no decision: each takes a vote away and may leave an item unresolved."""
    lost = {state: n for state, n in run.states.get("judge", {}).items() if state != "ok"}
    if lost:
        named = ", ".join(f"{state} {n}" for state, n in lost.items())
        yield (
            f"judge calls without a decision: {sum(lost.values())} ({named}); a vote that lacks them may be missing; "
            "repeating the command asks for them again"
        )


def vendor_notices(identity: Mapping[str, Any], *, of: str = "the answer model") -> Iterator[str]:
    """Yield shared vendors, and those that nobody named: what is unknown cannot be ruled out.

    Args:
        of: what a person calls whatever made that which is judged.
    """
    judges = [judge for judge in identity["judges"] if judge["endpoint"] != "builtin"]
    answer = identity["answer"].get("vendor")
    if not judges:
        return
    same = [judge["model"] for judge in judges if answer is not None and same_vendor(judge["vendor"], answer)]
    if same and len(identity["judges"]) == 1:
        yield (
            f"the only judge, {same[0]}, and {of} are of one vendor ({answer}): what one makes up the "
            "other may find plausible, and no judge of another vendor looked"
        )
    elif same:
        yield (
            f"of the vendor of {of} ({answer}) are also: {', '.join(same)}; what they say alone, and the jury without "
            "them, stand apart"
        )
    yield from _shared(judges)
    unknown = [judge["model"] for judge in judges if judge["vendor"] is None]
    policy = identity["answer"]["source"] == "policy"  # made by us, of no vendor
    unnamed = [*([of] if answer is None and not policy else []), *unknown]
    if unnamed:
        yield f"vendor unknown: {', '.join(unnamed)}; whether a judge is of the same vendor cannot be said"


def _shared(judges: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    models = defaultdict(list)
    for judge in judges:
        models[vendor_key(judge["vendor"])].append(judge)
    for key, of_vendor in models.items():
        if key is not None and len(of_vendor) > 1:
            vendor, named = of_vendor[0]["vendor"], [judge["model"] for judge in of_vendor]
            yield f"judges of one vendor ({vendor}), whose errors may go together: {', '.join(named)}"


def certificate_notices(run: RunData) -> Iterator[str]:
    """Yield the label of a run's certificates, and of which judge what is wrong."""
    label = certificate_label(run)
    if label is None:
        return
    judges = (run.certified or {}).get("judges", ())
    if label == NONE and len(judges) <= 1:
        why = f" ({judges[0]['reason'].removeprefix(f'{NONE}: ')})" if judges and judges[0]["reason"] else ""
        several = len((run.identity or {}).get("judges", ())) > 1
        yield f"{NO_CERTIFICATES if several else NO_CERTIFICATE}{why}"
        return
    said = [_certified(judge) for judge in judges if judge["state"] != NOT_NEEDED]
    yield f"certificate: {label} ({'; '.join(said)})" if said else f"certificate: {label}"


def _certified(judge: Mapping[str, Any]) -> str:
    """Return what the certificate of a judge says, and of one that is not valid why."""
    why = judge["reason"] if judge["state"] != VALID else None
    return f"{judge['model']}: {why}" if why else f"{judge['model']} {judge['state']}"
