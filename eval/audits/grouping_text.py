"""An audit of one call a case against one call an item as a person reads it.

In: the report of `grouping_report`. Out: text of at most 80 columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.calls.reply import one_line
from eval.showing.cells import interval_cell, number

WIDTH: Final = 80


def audit_text(report: Mapping[str, Any]) -> str:
    """Return an audit as text of at most 80 columns: a line a panel, then what is behind the overall one."""
    head = f"{'':<23}{'n':>7} {'equal':>6} {'95% CI':<12}{'kappa':>6} {'score':>7}  recommendation"
    lines = ["one call a case against one call an item", head, "-" * WIDTH]
    lines += [_line(name, panel) for name, panel in report["panels"].items()]
    lines += ["-" * WIDTH, _line("overall", report["overall"]), ""]
    lines += [*_effects(report["overall"]), *_cost_lines(report["cost"]), ""]
    for name, panel in report["panels"].items():
        for reason in panel["reasons"]:
            lines += _wrapped(f"{one_line(name)}: {panel['recommendation']}: {reason}")
    lines += ["", *_notes(report)]
    return "\n".join(line.rstrip() for line in lines)


def _line(name: str, panel: Mapping[str, Any]) -> str:
    equal, kappa, score = panel["agreement"]["equal"], panel["agreement"]["kappa"], panel["score"]["value"]
    moved = "-" if score is None else f"{score:+.3f}"
    cells = f"{equal['n']:>7} {number(equal['value']):>6} {_agreeing(panel['agreement']):<12}"
    return f"{one_line(name)[:23]:<23}{cells}{number(kappa['value']):>6} {moved:>7}  {panel['recommendation'] or '-'}"


def _agreeing(agreement: Mapping[str, Any]) -> str:
    """Return the interval of agreement; where the bootstrap gives it no width, from the floor that the rule uses."""
    ends = agreement["equal"]["ci95"]
    return interval_cell([agreement["floor"], ends[1]] if _widthless(agreement) else ends)


def _widthless(agreement: Mapping[str, Any]) -> bool:
    ends = agreement["equal"]["ci95"]
    return ends is not None and bool(ends[0] == ends[1])


def _effects(overall: Mapping[str, Any]) -> Iterator[str]:
    agreement, order, halo = overall["agreement"], overall["order"], overall["halo"]
    rates = f"one call {_cell(agreement['one_call'])}, atomic {_cell(agreement['atomic'])}"
    yield from _wrapped(f"matched: {rates}; difference {_cell(agreement['shift'])}")
    only = f"{agreement['only_one_call']} true in one call only, {agreement['only_atomic']} in atomic only"
    p = agreement["mcnemar_p"]
    yield from _wrapped(f"disagreements: {only}; McNemar p = {'-' if p is None else f'{p:.3g}'}")
    again = (agreement["again_one_call"], agreement["again_atomic"])
    if again[0]["value"] is not None:
        yield from _wrapped(f"a judge's repeats agree: one call {_cell(again[0])}, atomic {_cell(again[1])}")
    for third, found in order["thirds"].items() if order["seen"] else ():
        yield from _wrapped(f"{third} third: difference {_cell(found['shift'])}, disagree {_cell(found['differ'])}")
    yield from _wrapped(f"order: slope {_cell(order['slope'])}")
    expected = "" if halo["expected"] is None else f", {halo['expected']:.3f} expected without it"
    yield from _wrapped(f"halo: {_cell(halo['share'])}{expected}; ties {halo['ties']}; spread {_cell(halo['spread'])}")
    yield from _wrapped(f"score, one call - atomic: {_cell(overall['score'])}")


def _cost_lines(cost: Mapping[str, Any]) -> Iterator[str]:
    for name, ratio in cost["ratio"].items():
        one, atomic = cost["one_call"][name], cost["atomic"][name]
        if ratio is not None:
            yield f"{name.replace('_', ' ')}: one call {one}, atomic {atomic}: {ratio:.1f} times as many"
    if cost["reason"]:
        yield from _wrapped(cost["reason"].replace("_", " "))


def _cell(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return f"- ({estimate['reason']})"
    ends = estimate["ci95"]
    interval = "no interval" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"
    return f"{estimate['value']:.3f} ({interval}; n = {estimate['n']})"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    yield from _wrapped(f"judges: {', '.join(map(one_line, report['judges']))}; repeats: {report['repeats']}")
    dropped = f"in one run only: {report['n_in_one_run_only']}; ungraded in a run: {report['n_ungraded']}"
    yield from _wrapped(f"answers: {report['n_answers']}; {dropped}")
    if any(_widthless(panel["agreement"]) for panel in report["panels"].values()):
        yield from _wrapped(
            "95% CI of equal: from the exact binomial lower end where the bootstrap has no width, as in the rule"
        )
    yield from _wrapped(report["looks"])
    if report["suite"] == HEALTHBENCH:
        yield from _wrapped(f"wording: {report['definitions']['wording']}")
    yield from _wrapped(f"yardstick: {report['definitions']['yardstick']}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
