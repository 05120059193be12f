"""Scores under assumed error rates of the judge as a person reads them.

In: the report of `sensitivity`. Out: lines of at most 80 columns, for the text of `agree`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import interval_cell, number

WIDTH: Final = 80
MARK: Final = "^"
"""Beside scores of rates that are not possible; the star of `table` and the mark of `correction_text` are others."""
MOST_ROWS: Final = 20


def sensitivity_text(report: Mapping[str, Any]) -> list[str]:
    """Return a report of sensitivity as lines of at most 80 columns: overall for each pair of rates.

    Panels stand in the text only where the rates are few; the report has them all.
    """
    judged = report["judged"]
    head = f"{'':<26}{'fp':>5} {'fn':>5}  {'as judged':>9}  {'mean':>5}  95% of draws"
    lines = ["scores under assumed error rates of the judge", head, "-" * len(head)]
    lines += [_row("overall", pair, pair["overall"], judged["overall"]["mean"]) for pair in report["rates"]]
    panels = judged["panels"] if len(report["rates"]) * len(judged["panels"]) <= MOST_ROWS else {}
    for panel, as_judged in panels.items():
        lines.append("-" * len(head))
        lines += [_row(panel, pair, pair["panels"][panel], as_judged["mean"]) for pair in report["rates"]]
    if judged["panels"] and not panels:
        lines.append("by panel: --json")
    for note in _notes(report):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.rstrip() for line in lines]


def _row(name: str, pair: Mapping[str, Any], found: Mapping[str, Any], judged: float | None) -> str:
    mark = MARK if found.get("clipped") else ""
    cells = f"{pair['fp']:>5.3f} {pair['fn']:>5.3f}  {number(judged):>9}  {number(found['mean']):>5}"
    return f"{one_line(name)[:25]:<26}{cells}  {interval_cell(found['range95'])}{mark}"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    overall = report["judged"]["overall"]
    if overall["reason"]:
        yield f"overall: undefined: {overall['reason']}"
    yield "fp: unmet items called met; fn: met items called unmet; assumed, not measured"
    yield "equal rates on all items of a sign, independent errors; the choice of cases is not in the range"
    cut = dict.fromkeys(panel for pair in report["rates"] for panel in pair["overall"]["clipped"])
    if cut:
        names = ", ".join(map(one_line, cut))
        yield f"{MARK} so high a rate is not possible for the decisions on {names}: the true share was taken as 0 or 1"
