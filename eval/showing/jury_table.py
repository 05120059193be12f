"""A jury's part of a summary as a table: both bounds, each judge alone, the jury without one judge or vendor.

In: the summary's member `jury`. Out: lines of at most 80 columns. `open` counts the items of graded cases that so many
judges leave without a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import bar, interval_cell, number

_LEFT: Final = 43
Jury = Mapping[str, Any]


def jury_rows(jury: Jury) -> list[str]:
    """Return the rows of a jury's scores; a judge's name that is too long stands on a line of its own."""
    head = f"{'jury':<{_LEFT - 12}}{'cases':>6}{'open':>6}  {'mean':>5}  95% interval"
    return [head, "-" * 80, *_bounds(jury), *_alone(jury), *_without(jury), "-" * 80, *_counts(jury["items"])]


def _bounds(jury: Jury) -> Iterator[str]:
    yield from _row("conservative bound (the score)", jury["conservative"])
    yield from _row("liberal bound", jury["liberal"])


def _alone(jury: Jury) -> Iterator[str]:
    for judge in jury["judges"]:
        vendor = f" ({one_line(judge['vendor'])})" if judge["vendor"] else ""
        yield from _row(f"alone: {one_line(judge['model'])}{vendor}", judge)


def _without(jury: Jury) -> Iterator[str]:
    for judge in jury["without_judge"]:
        yield from _row(f"without {one_line(judge['model'])}", judge)
    for vendor in jury["without_vendor"]:
        if jury["n_judges"] - vendor["n_judges"] > 1:  # of one judge, the row above says it
            yield from _row(f"without vendor {one_line(vendor['vendor'])}", vendor)


def _row(name: str, scores: Mapping[str, Any]) -> Iterator[str]:
    mean, interval = scores["overall_macro_mean"], scores["overall_ci95"]
    if len(name) > _LEFT - 12:
        yield name
        name = ""
    left = f"{name:<{_LEFT - 12}}{scores['n_graded']:>6}{scores['n_unresolved']:>6}"
    yield f"{left}  {number(mean):>5}  {interval_cell(interval):<14}  {bar(mean, interval, width=12)}".rstrip()


def _counts(items: Mapping[str, int]) -> Iterator[str]:
    share = f" ({items['unresolved'] / items['n']:.1%})" if items["n"] else ""
    yield (
        f"items: {items['n']:,}; met {items['true']:,}, not met {items['false']:,}, "
        f"unresolved {items['unresolved']:,}{share}"
    )
    yield f"missing {items['missing']:,}, pending {items['pending']:,}; open: items of graded cases without a verdict"
