"""How often the jury's verdict on an item is wrong, against people's labels: sensitivity and specificity by sign.

In: a run, and one label an item. Out: for positive, negative and zero-point items the share of met items that the jury
calls met, and of unmet ones that it calls unmet, with Wilson's interval (Wilson 1927) and counts. An unresolved item is
neither right nor wrong: it is counted apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from eval.agreement.labels import ItemKey
from eval.agreement.scored import sign_of
from eval.judging.graded import RunData
from eval.numbers.panels import Z95

SIGNS: Final = ("positive", "negative", "zero", "no points")


def judge_error(run: RunData, labels: Mapping[ItemKey, bool]) -> dict[str, Any]:
    """Return the errors of the jury on labelled items, by the sign of their points."""
    counts: dict[str, dict[tuple[bool, bool | None], int]] = {sign: {} for sign in SIGNS}
    ungraded = dict.fromkeys(SIGNS, 0)
    for case in run.cases:
        for index, item_id in enumerate(case.item_ids):
            label, sign = labels.get((case.case_id, case.answer_repeat, item_id)), sign_of(case.points[index])
            if label is None:
                continue
            if case.matched is None:
                ungraded[sign] += 1
                continue
            pair = (label, case.matched[index])
            counts[sign][pair] = counts[sign].get(pair, 0) + 1
    found = {}
    for sign in SIGNS:
        if counts[sign] or ungraded[sign]:
            found[sign] = {**_rates(counts[sign]), "n_ungraded": ungraded[sign]}
    return found


def _rates(pairs: Mapping[tuple[bool, bool | None], int]) -> dict[str, Any]:
    right = {truth: pairs.get((truth, truth), 0) for truth in (True, False)}
    decided = {truth: right[truth] + pairs.get((truth, not truth), 0) for truth in (True, False)}
    return {
        "sensitivity": _share(right[True], decided[True], "no item that people call met"),
        "specificity": _share(right[False], decided[False], "no item that people call unmet"),
        "n_unresolved": sum(count for (_, judged), count in pairs.items() if judged is None),
    }


def _share(hits: int, n: int, reason: str) -> dict[str, Any]:
    if n == 0:
        return {"value": None, "n": 0, "ci95": None, "reason": reason}
    return {"value": hits / n, "n": n, "ci95": list(wilson(hits, n)), "reason": None}


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% score interval of a share of `n`, at least 1, independent items."""
    share, more = hits / n, Z95**2 / n
    centre = (share + more / 2) / (1 + more)
    half = Z95 / (1 + more) * math.sqrt(share * (1 - share) / n + more / (4 * n))
    # At the ends the formula is exact: only rounding leaves them.
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == n else centre + half)
