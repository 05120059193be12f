"""Where a rule is broken, and the warnings that are counted over a file rather than listed line by line.

In: what single rules find. Out: problems. A file of 50,000 items that all write 5.0 gets one warning with the count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.rules.problems import At, Problem


@dataclass(slots=True)
class _Counted:
    """A warning met `n` times: what was found first, and in which line."""

    found: str
    line: int
    hint: str | None
    n: int = 0


@dataclass(slots=True)
class Tally:
    """The counted warnings of a file, in the order in which their first cases came."""

    _kinds: dict[tuple[str, str | None, str], _Counted] = field(default_factory=dict)

    def add(self, rule: str, place: str | None, found: str, expected: str, *, line: int, hint: str | None) -> None:
        """Count a warning; those of one rule, place and expectation are one."""
        self._kinds.setdefault((rule, place, expected), _Counted(found, line, hint)).n += 1

    def problems(self, file: str) -> Iterator[Problem]:
        """Yield a warning a kind."""
        for (rule, place, expected), kind in self._kinds.items():
            where = f"line {kind.line:,}" if kind.n == 1 else f"{kind.n:,} such, the first in line {kind.line:,}"
            yield Problem("warning", rule, file, None, place, f"{kind.found} ({where})", expected, kind.hint)


@dataclass(frozen=True, slots=True)
class Spot:
    """A line under check: errors and warnings of its own, and warnings that are counted over the file."""

    at: At
    line: int
    tally: Tally

    def count(self, rule: str, place: str | None, found: str, expected: str, hint: str | None = None) -> None:
        """Count a warning for the file."""
        self.tally.add(rule, place, found, expected, line=self.line, hint=hint)
