"""The summary of a HealthBench run as the table a person reads: clipped and raw means, overall and by tag.

In: a summary with the member `healthbench`. Out: lines of text. Clusters are many and their names long: the table
counts them, the summary holds them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import bar, interval_cell, number

_NAME: Final = 34
_BAR: Final = 10
_WIDTH: Final = 79
_SHOWN: Final = 12
_HIDDEN: Final = "cluster:"

Metric = Mapping[str, Any]


def healthbench_rows(summary: Mapping[str, Any]) -> list[str]:
    """Return the table of a run's metrics, at most 80 columns: overall, example tags, rubric tags, groups, repeats."""
    member = summary["healthbench"]
    head = f"{'':<{_NAME}}{'n':>5}  {'mean':>5}  {'raw':>6}  {'95% CI':<11}  0{'.' * (_BAR - 2)}1"
    rule = "-" * len(head)
    rows = [head, rule, *_row(next(iter(summary["panels"])), member["overall"])]
    if summary["n_graded"] < summary["n_expected"] and summary["overall_worst"] is not None:
        bounds = [summary["overall_worst"], summary["overall_best"]]
        left = f"{'  worst to best':<{_NAME}}{summary['n_expected']:>5}"
        rows.append(f"{left}{'':>17}{interval_cell(bounds)}  {bar(None, bounds, width=_BAR)}")
    if adjusted := member.get("length_adjusted"):
        rows += _row(f"  length-adjusted ({adjusted['center']:g}, {adjusted['penalty']:g})", adjusted)
    for title, name in (("example tags", "example_tags"), ("rubric tags", "rubric_tags"), ("completions", "groups")):
        rows += _section(title, member.get(name) or {})
    if repeats := member.get("repeats"):
        rows += _repeats(repeats)
    if recorded := member.get("recorded"):
        rows += [rule, *_recorded(recorded)]
    return [line.rstrip() for line in [*rows, rule]]


def _recorded(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the file itself says: its score, and the numbers that are not those of its verdicts."""
    differences = recorded["differences"]
    n = f"{len(differences)} number{'' if len(differences) == 1 else 's'}" if differences else "nothing"
    yield f"the file's own score: {number(recorded['score'])}; {n} in it to note beside ours"
    for line in differences[:_SHOWN]:
        yield from textwrap.wrap(one_line(line), _WIDTH, initial_indent="  ", subsequent_indent="    ")
    if len(differences) > _SHOWN:
        yield f"  and {len(differences) - _SHOWN} more: healthbench.recorded.differences in --json"


def _section(title: str, metrics: Mapping[str, Metric]) -> Iterator[str]:
    shown = {name: metric for name, metric in metrics.items() if not name.startswith(_HIDDEN)}
    if not metrics:
        return
    yield title
    for name, metric in shown.items():
        yield from _row(f"  {one_line(name)}", metric)
    if hidden := len(metrics) - len(shown):
        yield f"  {hidden} cluster{'' if hidden == 1 else 's'}: in the summary"


def _repeats(repeats: Mapping[str, Any]) -> Iterator[str]:
    spread = f"{number(repeats['low'])} to {number(repeats['high'])}, sd {number(repeats['sd'])}"
    yield f"{len(repeats['runs'])} answers an example: runs from {spread}"
    for k, metric in repeats["worst_at_k"].items():
        yield from _row(f"  worst at {k}", metric)


def _row(name: str, metric: Metric) -> list[str]:
    above, left = [], f"{name:<{_NAME}}"
    if len(name) > _NAME:
        above, left = textwrap.wrap(name, _WIDTH, subsequent_indent="    "), " " * _NAME
    means = f"{metric['n']:>5}  {number(metric['value']):>5}  {_raw(metric['raw']):>6}"
    spread = f"{interval_cell(metric['ci95']):<11}  {bar(metric['value'], metric['ci95'], width=_BAR)}"
    return [*above, f"{left}{means}  {spread}"]


def _raw(value: float | None) -> str:
    """Return a mean that may be far below 0 with as many decimals as its column has room for."""
    if value is None:
        return number(None)
    shown = [number(value), f"{value:.1f}", f"{value:.0f}"]
    return next((text for text in shown if len(text) <= 6), f"{value:.1g}")
