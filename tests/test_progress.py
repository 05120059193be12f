"""The live display of a run, on a terminal that is a file."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from eval.calls.run import Progress
from eval.showing.progress import RunDisplay
from tests.plans import make_plan


def test_a_terminal_shows_panels_tokens_and_problems() -> None:
    """On a terminal a run shows a bar a panel, calls in flight, tokens so far and what went wrong."""
    console = Console(file=StringIO(), force_terminal=True, width=100, height=40)
    with RunDisplay(make_plan(), console) as display:
        display.step(Progress("begin", "answer", "drug_safety"))
        display.step(Progress("begin", "judge", "drug_safety"))
        display.step(Progress("end", "judge", "drug_safety", "timeout", {"input": 1_234, "output": None}))
        display.step(Progress("case", "judge", "drug_safety"))
        console.print(display._render())
    shown = console.file.getvalue() if isinstance(console.file, StringIO) else ""

    assert "drug_safety" in shown
    assert "1/1" in shown
    assert "1 in flight  1,234 tokens in  0 out" in shown
    assert "so far: 1 judge timeout" in shown
