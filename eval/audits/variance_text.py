"""A variance budget as a person reads it.

In: the report of `variance_report`. Out: text of at most 80 columns.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import number

WIDTH: Final = 80
MOST_ITEMS: Final = 5


def variance_text(report: Mapping[str, Any]) -> str:
    """Return a budget as text of at most 80 columns: the overall in full, a row a panel, the most unstable items."""
    lines = list(_head(report))
    if len(report["panels"]) > 1:
        lines += ["", *_block("overall", report["overall"]), "", *_panel_rows(report["panels"])]
    else:
        lines += [line for name, panel in report["panels"].items() for line in ("", *_block(one_line(name), panel))]
    lines += ["", *_unstable(report["unstable_items"])]
    return "\n".join(line.rstrip() for line in lines)


def _panel_rows(panels: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row a panel: its mean and error, each component's share of the mean's variance, what buys most."""
    names = ("case", "answer", "judge", "case_judge", "repeat")
    yield f"{'panel':<23}{'n':>5}{'mean':>7}{'error':>7}{'case':>6}{'ans.':>6}{'judge':>6}{'c x j':>6}{'rep.':>6}  buys"
    yield "-" * WIDTH
    for name, panel in panels.items():
        left = f"{one_line(name):<23}{panel['n']:>5}"
        if len(one_line(name)) > 23:
            yield one_line(name)
            left = f"{'':<23}{panel['n']:>5}"
        if not panel["n"]:
            yield f"{left}  {panel['reason']}"
            continue
        shares = [_percent(panel["components"][part]) for part in names]
        cells = "".join(f"{share:>6}" for share in shares)
        yield f"{left}{panel['mean']:>7.3f}{_short(panel['standard_error']):>7}{cells}  {panel['best'] or '-'}"
    yield from textwrap.wrap(
        "shares of the variance of a panel's mean; - stands in the component before it; buys: of which one more lowers "
        "the variance most for its calls (--json has every component with its interval)",
        WIDTH,
    )


def _percent(part: Mapping[str, Any]) -> str:
    return "-" if part["share"] is None else f"{part['share']:.0%}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _head(report: Mapping[str, Any]) -> Iterator[str]:
    judges = ", ".join(map(one_line, map(str, report["judges"])))
    dropped = f"cases: {report['n_cases']}; without every decision: {report['n_incomplete']}"
    if report["n_unscored"]:
        dropped += f"; without a score: {report['n_unscored']}"
    yield "where the variance of the mean score lies, and what more calls would buy"
    for note in (f"answers: {one_line(str(report['answer_model']))}  |  judges: {judges}", dropped):
        yield from textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _block(name: str, block: Mapping[str, Any]) -> Iterator[str]:
    if not block["n"]:
        yield f"{name[:40]}: {block['reason']}"
        return
    design = block["design"]
    levels = [(block["n"], "case"), *((design[f"{what}s"], what) for what in ("answer", "judge", "repeat"))]
    yield f"{name[:38]}: {' x '.join(starmap(_counted, levels))}"
    yield f"  mean {block['mean']:.3f}, standard error {_fine(block['standard_error'])}"
    head = f"  {'component':<14}{'estimate':>10}  {'95% interval':<19}{'share':>6}"
    yield head
    for term, part in block["components"].items():
        yield from _component_line(term, part)
    yield f"  {'more of':<14}{'std. error':>10}  {'calls':>7}  {'variance off per 100 calls':<26}"
    for dimension, step in block["next"].items():
        yield _step_line(dimension, step)
    left = block["left_out_by_bootstrap"]
    share = block["left_out_reason"] if left is None else f"{left:.0%} of the variance"
    yield from _wrapped(f"left out by an interval from resampling cases: {share}")
    flips = block["flips"]
    said = [f"{what} {_share(flips[what])}" for what in ("repeats", "judges")]
    yield from _wrapped(f"items on which they disagree: {', '.join(said)}")
    yield from _wrapped(block["sentence"])


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _component_line(term: str, part: Mapping[str, Any]) -> Iterator[str]:
    if part["estimate"] is None:
        yield f"  {term:<14}{'-':>10}  {'in ' + part['held_by'] if part['held_by'] else 'in the mean'}"
        return
    low, high = part["ci95"]
    share = "-" if part["share"] is None else f"{part['share']:.0%}"
    yield f"  {term:<14}{part['estimate']:>10.5f}  {f'{low:.5f} to {high:.5f}':<19}{share:>6}"


def _step_line(dimension: str, step: Mapping[str, Any]) -> str:
    gain = step["reduction_per_100_calls"]
    if step["variance"] is None:
        best = step["at_best"]
        off = "not known" if best is None else f"not known; at best {math.sqrt(best):.5f}"
    else:
        off = "-" if gain is None else f"{gain:.2e}"
    return f"  {dimension:<14}{_fine(step['standard_error']):>10}  {step['calls']:>7.0f}  {off}"


def _fine(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _share(flips: Mapping[str, Any]) -> str:
    return f"{number(flips['value'])} (n = {flips['n']})" if flips["n"] else f"- ({flips['reason']})"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH - 2, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def _unstable(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not items:
        yield "no item has decisions that differ"
        return
    yield "the most unstable items: share of pairs of decisions on one answer that differ"
    for item in items[:MOST_ITEMS]:
        line = (
            f"{number(item['pairs'])} (n = {item['n_pairs']})  {one_line(item['item_id'])}  {one_line(item['panel'])}"
        )
        yield from textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent="    ")
