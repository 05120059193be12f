"""The scores of a run under its jury: the headline and the bound above it, each judge alone, the jury without one.

In: a run whose cases carry their ballots. Out: the summary's member `jury` as a JSON object. The headline is the
conservative bound (unresolved items at their least favourable); the liberal one stands beside it, never instead of it.
Every smaller jury decides by the rule of its own size, on the same replies: nothing is asked again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from eval.judging.graded import GradedCase, RunData
from eval.judging.jury import (
    PENDING,
    VERDICT_RULE,
    VOTE_RULE,
    item_votes,
    judged_by,
    missing,
    same_vendor,
    vendor_key,
    verdict,
)
from eval.numbers.bootstrap import Interval
from eval.numbers.defaults import SEED, SPEC
from eval.numbers.panels import Overall, PanelResult, worst_or_best
from eval.numbers.suite_panels import panels_of

ONE_JUDGE: Final = "one judge: nothing is left without it"
EVERY_JUDGE: Final = "every judge is of this vendor: nobody is left without it"
NO_VENDOR: Final = "no judge's vendor is known: name them with --judge-vendor"
DEFINITIONS: Final = {
    "conservative, liberal": "unresolved items with positive points as not met and all others as met; the reverse; "
    "both over graded cases",
    "unresolved": "some judge has a vote on the item, the jury no verdict",
    "missing": "all judges were asked and none has a vote: the case is ungraded",
    "judges, without": "the same replies decided by the rule of so many judges; a case that they leave an item of "
    "without any vote is ungraded for them",
}


def is_jury(run: RunData) -> bool:
    """Whether more than one call decides an item."""
    identity = run.identity or {}
    return len(identity.get("judges") or [None]) * int(identity.get("repeats") or 1) > 1


def jury_member(
    run: RunData,
    panels: Sequence[PanelResult],
    overall: Overall,
    *,
    dialect: str = SPEC,
    samples: int,
    seed: int = SEED,
) -> dict[str, Any]:
    """Return a jury's scores and counts; None with a reason where there is nothing to say.

    Args:
        panels: what the whole jury gives; `overall` with it.

    Raises:
        BadInput: as `panels_of`.
    """
    identity = run.identity or {}
    judges: Sequence[Mapping[str, Any]] = identity["judges"]
    how: dict[str, Any] = {"dialect": dialect, "samples": samples, "seed": seed}
    everyone = range(len(judges))

    def of(seats: Sequence[int]) -> dict[str, Any]:
        return _scores(_decided_by(run, seats), **how)

    alone = [{"judge": n, "model": j["model"], "vendor": j["vendor"], **of([n])} for n, j in enumerate(judges)]
    without = [
        {"judge": n, "model": j["model"], **of([other for other in everyone if other != n])}
        for n, j in enumerate(judges)
        if len(judges) > 1
    ]
    known = {vendor_key(judge["vendor"]): judge["vendor"] for judge in reversed(judges) if judge["vendor"] is not None}
    vendors = list(reversed(known.values()))
    return {
        "n_judges": len(judges),
        "repeats": identity["repeats"],
        "vote": VOTE_RULE,
        "verdict": VERDICT_RULE,
        "headline": "conservative",
        "items": _item_counts(run.cases),
        "conservative": _result(panels, overall),
        "liberal": _scores(_at_best(run, dialect), **how),
        "judges": alone,
        "without_judge": without,
        "without_judge_reason": None if without else ONE_JUDGE,
        "without_vendor": [{"vendor": vendor, **_without_vendor(vendor, judges, of)} for vendor in vendors],
        "without_vendor_reason": None if vendors else NO_VENDOR,
        "definitions": DEFINITIONS,
    }


def _without_vendor(
    vendor: str, judges: Sequence[Mapping[str, Any]], of: Callable[[Sequence[int]], dict[str, Any]]
) -> dict[str, Any]:
    seats = [n for n, judge in enumerate(judges) if not same_vendor(judge["vendor"], vendor)]
    nobody: dict[str, Any] = {"overall_macro_mean": None, "overall_ci95": None, "overall_reason": EVERY_JUDGE}
    nobody |= {"n_graded": 0, "n_unresolved": 0, "benchmarks": {}}
    return {"n_judges": len(seats), **(of(seats) if seats else nobody)}


def _decided_by(run: RunData, seats: Sequence[int]) -> RunData:
    """Return a run as some of its judges alone would have decided it."""
    cases = tuple(judged_by(case, seats) for case in run.cases)
    return replace(run, cases=cases, file_order=tuple(n for n in run.file_order if cases[n].state == "graded"))


def _at_best(run: RunData, dialect: str) -> RunData:
    """Return a run with every unresolved item of its graded cases at its most favourable."""
    cases = (
        replace(case, matched=tuple(worst_or_best(case, best=True, dialect=dialect))) if case.unresolved else case
        for case in run.cases
    )
    return replace(run, cases=tuple(cases))


def _scores(run: RunData, *, dialect: str, samples: int, seed: int) -> dict[str, Any]:
    return _result(*panels_of(run, dialect=dialect, samples=samples, seed=seed))


def _result(panels: Sequence[PanelResult], overall: Overall) -> dict[str, Any]:
    return {
        "overall_macro_mean": overall.mean,
        "overall_ci95": _ci(overall.interval),
        "overall_reason": overall.reason,
        "n_graded": sum(len(panel.graded) for panel in panels),
        "n_unresolved": sum(panel.unresolved for panel in panels),
        "benchmarks": {
            panel.panel: {"n": len(panel.graded), "mean": panel.mean, "ci95": _ci(panel.interval)} for panel in panels
        },
    }


def _ci(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None


def _item_counts(cases: Iterable[GradedCase]) -> dict[str, int]:
    """Return how the items of all answers that were judged, or are being judged, stand."""
    counts: Counter[str] = Counter()
    for case in cases:
        counts.update(_standing(case))
    names = ("true", "false", "unresolved", "missing", PENDING)
    return {"n": sum(counts.values()), **{name: counts[name] for name in names}}


def _standing(case: GradedCase) -> list[str]:
    found = []
    for at, votes in enumerate(item_votes(case.ballots)):
        decided = verdict(votes)
        if decided is not None:
            found.append("true" if decided else "false")
        elif at in case.waiting:
            found.append(PENDING)
        else:
            found.append("missing" if missing(votes) else "unresolved")
    return found
