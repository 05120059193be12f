"""The tables of a results card: what each run was made with, and its score on every panel, as aligned Markdown.

In: the rows of the `run` tables. Out: tables that fit a page and a terminal, made of nothing but those rows. The table
that lists the runs is the template's own (`results_card.md`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bedside_bench import PANEL_IDS

FEW_RUNS: Final = 3
"""As many runs stand side by side with a line a panel; more have a line each."""
PANELS_ABREAST: Final = 4
"""Panels in one table of many runs: of the ten, the two of management plans stand apart."""
DIGEST_CHARS: Final = 12
NONE: Final = "none"
NO_INTERVAL: Final = "no interval"
NOT_SELECTED: Final = "-"

Run = Mapping[str, Any]
"""One row of a `run` table."""


def cell(text: object) -> str:
    """Return a text as it can stand in a cell: on one line, its bars escaped, and no tag or comment begun by it."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def score_cell(mean: float | None, low: float | None, high: float | None) -> str:
    """Return a score with its 95% interval: `0.412 (0.31 to 0.52)`, or that there is none of either."""
    if mean is None:
        return NONE
    return f"{mean:.3f} ({NO_INTERVAL if low is None or high is None else f'{low:.2f} to {high:.2f}'})"


def selection_words(run: Run) -> str:
    """Return which cases of its data a run asked for: `all`, or what its selection leaves.

    Raises:
        ValueError: the run's identity holds no selection.
    """
    selection = json.loads(run["identity_json"])
    selection = selection.get("selection") if isinstance(selection, dict) else None
    if not isinstance(selection, dict):
        raise ValueError("no selection")
    panels, limit = selection.get("panels"), selection.get("limit")
    words = [f"{len(panels)} panel{'s' if len(panels) != 1 else ''}"] if isinstance(panels, list) else []
    words += ["one case a panel"] if selection.get("smoke") else []
    words += [f"first {limit}"] if type(limit) is int else []
    words += [f"with a {cell(selection['completions'])} completion"] if selection.get("completions") else []
    groups = selection.get("groups")
    words += [cell(" and ".join(map(str, groups)))] if isinstance(groups, list) else []
    return ", ".join(words) or "all"


def settings_table(runs: Sequence[Run]) -> str:
    """Return a line a run: when, under which protocol and rules, and on which data, digests cut to 12 digits."""
    header = ("run", "date", "protocol", "semantics", "dataset", "selection", "data")
    return aligned(header, [_settings(run) for run in runs])


def _settings(run: Run) -> list[str]:
    repo, revision = run["data_repo"], run["data_revision"]
    data = NONE if repo is None else cell(repo if revision is None else f"{repo}@{revision[:DIGEST_CHARS]}")
    digests = (_code(str(run[name] or NONE)[:DIGEST_CHARS]) for name in ("semantics_sha256", "dataset_sha256"))
    return [_short_name(run), cell(run["date"]), cell(run["protocol"]), *digests, selection_words(run), data]


def _code(text: str) -> str:
    return f"`{cell(text)}`"


def _short_name(run: Run) -> str:
    """Return the end of a run_id, the first 8 digits of `run_sha256`, as code."""
    return _code(str(run["run_id"])[-8:])


def panel_tables(runs: Sequence[Run]) -> list[str]:
    """Return the tables of panel scores: a line a panel for few runs, else a line a run and a few panels abreast."""
    panels = _panels(runs)
    if not panels:
        return []
    cells = [{panel["panel"]: _panel_cell(panel) for panel in run["panels"] or ()} for run in runs]
    if len(runs) <= FEW_RUNS:
        names = [f"{cell(run['answer_model'])} {_short_name(run)}" for run in runs]
        rows = [[_code(panel), *(scores.get(panel, NOT_SELECTED) for scores in cells)] for panel in panels]
        return [aligned(["panel", *names], rows)]
    tables = []
    for some in (panels[start : start + PANELS_ABREAST] for start in range(0, len(panels), PANELS_ABREAST)):
        rows = [
            [_short_name(run), *(scores.get(panel, NOT_SELECTED) for panel in some)]
            for run, scores in zip(runs, cells, strict=True)
        ]
        tables.append(aligned(["run", *map(_code, some)], rows))
    return tables


def _panels(runs: Sequence[Run]) -> list[str]:
    """Return the panels of any run: those of the registry in its order, then others by name."""
    present = {str(panel["panel"]) for run in runs for panel in run["panels"] or ()}
    return [*(panel for panel in PANEL_IDS if panel in present), *sorted(present.difference(PANEL_IDS))]


def _panel_cell(panel: Mapping[str, Any]) -> str:
    """Return a panel's score; where not every case counts in it, with how many do."""
    score = score_cell(panel["mean"], panel["ci_low"], panel["ci_high"])
    return score if panel["n"] == panel["n_expected"] else f"{score}, {panel['n']} of {panel['n_expected']}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns stand below each other in plain text too; cells are escaped already."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        f"| {' | '.join(text.ljust(width) for text, width in zip(line, widths, strict=True))} |"
        for line in (header, rule, *rows)
    )
