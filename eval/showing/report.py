"""A summary -> the table a person reads: plain text that fits 80 columns, panel names whole, intervals as small bars.

In: the summary of one run (formats.md 8), or those of several to stand side by side. Out: text. Every table carries its
signature: the settings without which its numbers mean nothing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import BAR, bar, interval_cell, number
from eval.showing.healthbench_table import healthbench_rows
from eval.showing.jury_table import jury_rows

WIDTH: Final = 80
_LEFT: Final = 31  # columns of a row's name and count
_FLAGGED: Final = "* this width is no certainty: the notes say why"
Summary = Mapping[str, Any]


def score_table(summary: Summary) -> str:
    """Return the scores of a run: a row a panel with n, mean, 95% interval and a bar from 0 to 1, then the overall.

    Where cases are ungraded, a second row gives the worst and the best mean that they leave open. Of a HealthBench run
    the table is another: clipped and raw means, overall and by tag.
    """
    jury = ["", *jury_rows(summary["jury"])] if "jury" in summary else []
    if "healthbench" in summary:
        return "\n".join([*healthbench_rows(summary), *jury, "", *signature(summary)])
    head = f"{'panel':<24}{'n':>7}  {'mean':>5}  {'95% interval':<14}  0{'.' * (BAR - 2)}1"
    rule = "-" * len(head)
    rows = [row for panel, about in summary["panels"].items() for row in _panel_rows(panel, about, summary)]
    lines = [head, rule, *rows, rule, *_overall_rows(summary)]
    if summary["overall_ci_degenerate"] or any(about["ci_degenerate"] for about in summary["panels"].values()):
        lines.append(_FLAGGED)
    return "\n".join([*lines, *jury, "", *signature(summary)])


def _panel_rows(panel: str, about: Mapping[str, Any], summary: Summary) -> list[str]:
    scores = summary["benchmarks"].get(panel) or {"n": 0, "mean": None, "ci95": None}
    return _rows(
        one_line(panel),
        (scores["n"], about["n_expected"]),
        scores["mean"],
        scores["ci95"],
        flagged=bool(about["ci_degenerate"]),
        bounds=(about["worst"], about["best"]),
    )


def _overall_rows(summary: Summary) -> list[str]:
    return _rows(
        "overall (macro mean)",
        (summary["n_graded"], summary["n_expected"]),
        summary["overall_macro_mean"],
        summary["overall_ci95"],
        flagged=bool(summary["overall_ci_degenerate"]),
        bounds=(summary["overall_worst"], summary["overall_best"]),
    )


def _rows(
    name: str,
    counts: tuple[int, int],
    mean: float | None,
    interval: Sequence[float] | None,
    *,
    flagged: bool,
    bounds: tuple[float | None, float | None],
) -> list[str]:
    n, expected = counts
    count = f"{n}" if n == expected else f"{n}/{expected}"
    above, left = [], f"{name} {count:>{max(0, _LEFT - 1 - len(name))}}"
    if len(left) > _LEFT:
        above, left = _wrapped(name, indent="  "), f"{count:>{_LEFT}}"
    text = f"{left}  {number(mean):>5}  {interval_cell(interval) + '*' * flagged:<14}  {bar(mean, interval)}"
    rows = [*above, text.rstrip()]
    if n != expected:
        worst, best = bounds
        known = None if worst is None or best is None else (worst, best)
        rows.append(f"{'  worst to best':<{_LEFT + 9}}{interval_cell(known):<14}  {bar(None, known)}".rstrip())
    return rows


def signature(summary: Summary) -> list[str]:
    """Return the lines without which a score means nothing, and the notices that go with it."""
    version = summary["software"].get("bedside-bench", "?")
    passes = summary["judge_passes_per_answer"]
    judge = f"{_name(summary['judge_model'])}, {passes} pass{'' if passes == 1 else 'es'}"
    lines = [
        f"answers: {_name(summary['answer_model'])}",
        f"judge: {judge} an answer  |  dialect: {summary['dialect']}",
        f"protocol: {_name(summary['protocol_version'])}  |  semantics: {_short(summary['semantics_sha256'])}",
        f"data: {_short(summary['dataset_sha256'])}  |  cases: {summary['n_graded']} of {summary['n_expected']}",
        f"finished: {_name(summary['finished_at'])}  |  bedside-bench {version}",
    ]
    notes = [part for notice in summary["notices"] for part in _wrapped(f"note: {one_line(notice)}", indent="      ")]
    return [part for line in lines for part in _wrapped(line, indent="  ")] + notes


def _name(value: str | None) -> str:
    """Return what a file or server named, as a terminal shows it; a dash where it named nothing."""
    return one_line(value) if value else "-"


def _short(digest: str | None) -> str:
    return digest[:12] if digest else "-"


def _wrapped(text: str, *, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def side_by_side(summaries: Mapping[str, Summary]) -> str:
    """Return the panel means and intervals of up to four runs in one table, a column a run under its short name."""
    panels = next(iter(summaries.values()))["panels"]
    columns = [_column(name, summary, panels) for name, summary in summaries.items()]
    head, *rows, last = (
        f"{first:<23}{''.join(cells)}"
        for first, *cells in zip(["panel", *panels, "overall (macro mean)"], *columns, strict=True)
    )
    rule = "-" * len(head)
    return "\n".join([head, rule, *rows, rule, last])


def _column(name: str, summary: Summary, panels: Iterable[str]) -> list[str]:
    overall = {"mean": summary["overall_macro_mean"], "ci95": summary["overall_ci95"]}
    cells = [name, *(_cell(summary["benchmarks"].get(panel)) for panel in panels), _cell(overall)]
    width = max(map(len, cells)) + 2
    return [f"{cell:>{width}}" for cell in cells]


def _cell(scores: Mapping[str, Any] | None) -> str:
    if not scores or scores["mean"] is None:
        return "-"
    interval = scores["ci95"]
    spread = f" {_two(interval[0])}-{_two(interval[1])}" if interval else ""
    return f"{_two(scores['mean'])}{spread}"


def _two(value: float) -> str:
    text = f"{value:.2f}"
    return "1.0" if text == "1.00" else text.removeprefix("0")
