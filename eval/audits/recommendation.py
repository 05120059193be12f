"""Which way to judge a panel, by a stated rule, from its audit; and what is missing where the audit does not say.

In: a `PanelAudit`. Out: "one call", "atomic", "either" or "not decided", with reasons. The atomic mode is the
yardstick, as each of its questions stands alone; which mode is right only people's labels say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from scipy.stats import binomtest

from eval.audits.grouping import Estimate, PanelAudit

ONE_CALL: Final = "one call"
ATOMIC: Final = "atomic"
EITHER: Final = "either"
NOT_DECIDED: Final = "not decided"

LEAST_AGREEMENT: Final = 0.90
LARGEST_SHIFT: Final = 0.02
LEAST_CASES: Final = 10
RULE: Final = (
    f"{ONE_CALL}: the lower end of agreement is at least {LEAST_AGREEMENT:.2f} (of the bootstrap's and the exact "
    f"binomial interval the lower one), no order or halo effect is seen at 95%, and the score difference's interval "
    f"lies within +-{LARGEST_SHIFT}; {ATOMIC}: one effect is sure, at 1 - 0.05 / looks, as each panel is looked at "
    f"three times: order (the slope's interval leaves out 0), halo (the share's lies above 0.5 and above its expected "
    f"value), or a score difference beyond +-{LARGEST_SHIFT}; {EITHER}: every case has one item, so that neither "
    f"place nor neighbours can matter; {NOT_DECIDED}: anything else, and always below {LEAST_CASES} cases of two items "
    f"and more"
)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The mode to use, and in sentences why, or what is missing to say."""

    mode: str
    reasons: tuple[str, ...]


def recommend(audit: PanelAudit) -> Recommendation:
    """Return the recommendation that the rule gives, never more than the intervals allow."""
    if not audit.n_compared and audit.n_cases and audit.agreement.equal.n == 0 and not audit.undecided:
        return Recommendation(EITHER, ("every case has one item: neither place nor neighbours can matter",))
    if audit.n_compared < LEAST_CASES:
        found = f"{audit.n_compared} of at least {LEAST_CASES} cases of two items and more"
        return Recommendation(NOT_DECIDED, (f"too few: {found}",))
    if harms := tuple(_harms(audit)):
        return Recommendation(ATOMIC, harms)
    if missing := tuple(_missing(audit)):
        return Recommendation(NOT_DECIDED, missing)
    return Recommendation(ONE_CALL, tuple(_clear(audit)))


def order_seen(audit: PanelAudit, *, sure: bool = False) -> bool:
    """Whether the interval of the slope over an item's place leaves out 0; `sure`: the one for all looks."""
    ends = _ends(audit.order.slope, sure=sure)
    return ends is not None and (ends[0] > 0 or ends[1] < 0)


def halo_seen(audit: PanelAudit, *, sure: bool = False) -> bool:
    """Whether the one call sides with an item's neighbours more than by chance, and than its own shift explains."""
    ends = _ends(audit.halo.share, sure=sure)
    return ends is not None and ends[0] > max(0.5, audit.halo.expected or 0.0)


def _ends(estimate: Estimate, *, sure: bool) -> tuple[float, float] | None:
    if sure:
        return estimate.sure
    return None if estimate.low is None or estimate.high is None else (estimate.low, estimate.high)


def _harms(audit: PanelAudit) -> Iterator[str]:
    if order_seen(audit, sure=True):
        yield _order(audit)
    if halo_seen(audit, sure=True):
        yield _halo(audit)
    ends = audit.score.sure
    if ends is not None and (ends[0] > LARGEST_SHIFT or ends[1] < -LARGEST_SHIFT):
        yield f"score: one call - atomic is {_of(audit.score)}"


def _order(audit: PanelAudit) -> str:
    return f"order: from first to last item the one call's matched rate moves by {_of(audit.order.slope)}"


def _halo(audit: PanelAudit) -> str:
    return f"halo: in {_of(audit.halo.share)} of disagreements the one call sides with the case's other items"


def _clear(audit: PanelAudit) -> Iterator[str]:
    yield "decisions agree, the score stays, no effect of place or of neighbours is seen"
    if audit.order.slope.value is None:
        yield f"an effect of place could not be looked for: {audit.order.slope.reason}"


def _missing(audit: PanelAudit) -> Iterator[str]:
    equal, score = audit.agreement.equal, audit.score
    for seen, said in ((order_seen(audit), _order(audit)), (halo_seen(audit), _halo(audit))):
        if seen:
            yield f"hint of {said}; with so many looks it may be chance"
    low = agreement_floor(equal)
    if low is None:
        yield "no interval of agreement"
    elif low < LEAST_AGREEMENT:
        yield f"agreement may be as low as {low:.3f}, below {LEAST_AGREEMENT:.2f}{_noise(audit)}"
    if score.value is None or score.low is None or score.high is None:
        yield "no interval of the score difference"
    elif score.low < -LARGEST_SHIFT or score.high > LARGEST_SHIFT:
        yield f"the score difference {_of(score)} may lie beyond +-{LARGEST_SHIFT}{_more_cases(score)}"


def agreement_floor(equal: Estimate) -> float | None:
    """Return the lower end that the rule looks at: without a disagreement the bootstrap has no width."""
    if equal.value is None or equal.low is None:
        return None
    exact = binomtest(round(equal.value * equal.n), equal.n).proportion_ci(method="exact")
    return min(equal.low, float(exact.low))


def _noise(audit: PanelAudit) -> str:
    again = [one.value for one in (audit.agreement.again_one_call, audit.agreement.again_atomic) if one.value]
    if again:
        return f"; within a mode two repeats of a judge agree at {min(again):.3f}"
    return "; with --repeats of 2 and more one could tell the mode from the judge's own noise"


def _more_cases(score: Estimate) -> str:
    """Say how many cases would settle it if the difference stayed where it is: its interval narrows as 1/sqrt(n)."""
    room = LARGEST_SHIFT - abs(score.value or 0.0)
    if score.low is None or score.high is None or room <= 0:
        return "; more cases of the same kind need not settle it"
    needed = math.ceil(score.n * ((score.high - score.low) / 2 / room) ** 2)
    return f"; about {needed} cases instead of {score.n} would tell" if needed > score.n else "; some more cases would"


def _of(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None:
        return "-"
    return f"{estimate.value:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
