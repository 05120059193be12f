"""How a table shows a number: three decimals or a dash, an interval, and both as a bar of characters from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

BAR: Final = 20


def number(value: float | None) -> str:
    """Return a score with three decimals, or a dash where it is undefined: never a 0 for unknown."""
    return "-" if value is None else f"{value:.3f}"


def interval_cell(interval: Sequence[float] | None) -> str:
    """Return an interval with three decimals, or a dash where there is none."""
    return "-" if interval is None else f"{interval[0]:.3f}-{interval[1]:.3f}"


def bar(mean: float | None, interval: Sequence[float] | None, *, width: int = BAR) -> str:
    """Return a scale from 0 to 1 as characters: `o` the mean, `=` the interval, `.` the rest; empty where undefined."""
    if mean is None and interval is None:
        return ""

    def place(value: float) -> int:
        return min(width - 1, int(value * width))

    cells = ["."] * width
    if interval:
        low, high = map(place, interval)
        cells[low : high + 1] = "=" * (high + 1 - low)
    if mean is not None:
        cells[place(mean)] = "o"
    return "".join(cells)
