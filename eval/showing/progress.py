"""Show a run while it goes: a bar a panel, the rate, calls in flight and tokens so far. For terminals only.

In: the steps that `run` reports. Out: a live display on the console that the command gives. Nothing here decides
anything: a run without a display is the same run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from eval.calls.plan import Plan
from eval.calls.run import Progress as Step


class RunDisplay:
    """A live display of one run; use as a context manager and pass `start` and `step` to `run_plan`."""

    def __init__(self, plan: Plan, console: Console) -> None:
        """Prepare a bar for each selected panel."""
        self._bars = Progress(
            TextColumn("{task.description:<23}"), BarColumn(bar_width=30), MofNCompleteColumn(), console=console
        )
        sizes = Counter(case.benchmark for case in plan.cases)
        self._tasks = {panel: self._bars.add_task(panel, total=n) for panel, n in sizes.items()}
        self._began = time.monotonic()
        self._cases = self._in_flight = 0
        self._tokens: Counter[str] = Counter()
        self._problems: Counter[str] = Counter()
        # Last: it draws for the first time while it is made.
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=True)

    def __enter__(self) -> RunDisplay:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and leave the screen clean."""
        self._live.stop()

    def step(self, step: Step) -> None:
        """Take in one step of the run."""
        if step.kind == "begin":
            self._in_flight += 1
        elif step.kind == "end":
            self._in_flight -= 1
            self._tokens.update({name: count for name, count in step.usage.items() if count})
            if step.state != "ok":
                self._problems[f"{step.role} {step.state}"] += 1
        else:
            self._cases += 1
            self._bars.advance(self._tasks[step.benchmark])

    def _render(self) -> Group:
        seconds = max(time.monotonic() - self._began, 1e-9)
        line = (
            f"{self._cases / seconds:.1f} cases/s  {self._in_flight} in flight  "
            f"{self._tokens['input']:,} tokens in  {self._tokens['output']:,} out"
        )
        return Group(self._bars, Text(line), *_problem_lines(self._problems.most_common(3)))


def _problem_lines(problems: Sequence[tuple[str, int]]) -> list[Text]:
    return [Text("so far: " + ", ".join(f"{n} {what}" for what, n in problems))] if problems else []
