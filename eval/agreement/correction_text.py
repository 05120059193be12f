"""Scores corrected by people's labels as a person reads them.

In: the report of `correction`. Out: lines of at most 80 columns, for the text of `agree`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import interval_cell, number

WIDTH: Final = 80
MARK: Final = "+"
"""Beside an interval that holds the choice of cases alone; the star of `table` and the mark of `sensitivity_text` are
others."""


def correction_text(report: Mapping[str, Any]) -> list[str]:
    """Return a report of corrected scores as lines of at most 80 columns."""
    head = f"{'':<26}{'n':>5} {'labels':>6}  {'judge':>5}  {'corrected':>9}  95% CI"
    rows = [_row(panel, of_panel) for panel, of_panel in report["panels"].items()]
    lines = ["scores corrected by human labels", head, "-" * len(head), *rows, "-" * len(head)]
    lines.append(_row("overall", report["overall"]))
    for note in _notes(report):
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return [line.rstrip() for line in lines]


def _row(panel: str, found: Mapping[str, Any]) -> str:
    mark = MARK if found["degenerate"] else ""
    cells = f"{found['n']:>5} {found['n_labelled']:>6}  {number(found['judge']):>5}  {number(found['value']):>9}"
    return f"{one_line(panel)[:25]:<26}{cells}  {interval_cell(found['ci95'])}{mark}"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    for panel, found in {**report["panels"], "overall": report["overall"]}.items():
        if found["reason"]:
            yield f"{one_line(panel)}: not corrected: {found['reason']}"
    if any(panel["degenerate"] for panel in report["panels"].values()):
        yield f"{MARK} the labels show no spread of judge error: the choice of cases alone"
    yield "the interval holds the choice of cases and the judge's error, for labelled cases drawn at random"
    raters = ", ".join(f"{one_line(rater)} {n}" for rater, n in report["raters"].items())
    yield f"labels: {raters}; items agreed on {report['n_items_labelled']}, tied {report['n_items_tied']}"
    dropped = report["dropped"]
    if any(dropped.values()):
        yield f"cases left out: partly labelled {dropped['partly_labelled']}, not graded {dropped['not_graded']}"
    for sign, error in report["judge_error"].items():
        rates = "; ".join(_rate(measure, error[measure]) for measure in ("sensitivity", "specificity"))
        yield f"jury on {sign} items: {rates}; unresolved {error['n_unresolved']}"


def _rate(measure: str, rate: Mapping[str, Any]) -> str:
    interval = f" ({interval_cell(rate['ci95'])})" if rate["ci95"] else ""
    return f"{measure} {number(rate['value'])}{interval} of {rate['n']}"
