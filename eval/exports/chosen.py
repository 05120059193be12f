"""The run that is exported: found in a folder, verified before anything is read from it, and fit to be shown to others.

In: a run's folder, or a results folder and which of its runs. Out: its rows, identity and summary, and its numbers: the
overall score and the panels', without those that are null. Nothing is computed here that `verify` has not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builder.dataset.verify import folder_kind
from builder.errors import BadInput, DigestMismatch
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.hub.index import pick_run
from eval.judging.certified import BUILTIN
from eval.results.card import RUNS, run_folders
from eval.results.stored import read_identity, read_summary, read_tables
from eval.results.tables import PENDING, Row
from eval.results.verify import verify_run

ALL: Final = "all"
"""The task of the overall score, as the mirror's config of all panels is called."""
MACRO_MEAN: Final = "macro_mean"
"""The overall score's metric; a panel's is its grading method."""
SOURCE_NAME: Final = "bedside-bench results"
"""What the place of a published run is called wherever a format has a name for its source."""


@dataclass(frozen=True, slots=True)
class Number:
    """A score from 0 to 1 with its interval (None where there is none) and, over all selected cases, its bounds."""

    task: str
    value: float
    ci_low: float | None
    ci_high: float | None
    worst: float | None
    best: float | None
    n_graded: int
    n_expected: int


@dataclass(frozen=True, slots=True)
class ChosenRun:
    """A verified run: its folder, its `run` row, identity and summary, and the rows of its cases and answers."""

    folder: Path
    row: Row
    identity: Mapping[str, Any]
    summary: Mapping[str, Any]
    scores: Sequence[Row]
    answers: Sequence[Row]

    @property
    def run_id(self) -> str:
        """The run's name."""
        return str(self.row["run_id"])

    @property
    def numbers(self) -> list[Number]:
        """The overall score, then the panels' in their order; a score that is null is left out.

        A HealthBench run has one panel, and its score is the overall one.
        """
        row = self.row
        if row["suite"] == HEALTHBENCH:
            return [_number(score) for score in row["panels"] if score["mean"] is not None]
        overall = {name: row[f"overall_{name}"] for name in ("mean", "ci_low", "ci_high", "worst", "best")}
        overall |= {"panel": ALL, "n": row["n_graded"], "n_expected": row["n_expected"]}
        return [_number(score) for score in (overall, *row["panels"]) if score["mean"] is not None]


def _number(score: Row) -> Number:
    named = {name: score[name] for name in ("ci_low", "ci_high", "worst", "best", "n_expected")}
    return Number(task=score["panel"], value=score["mean"], n_graded=score["n"], **named)


def choose_run(folder: Path, run_id: str | None = None) -> ChosenRun:
    """Return a run, verified and finished.

    Args:
        folder: a run's folder, or a results folder with one run or with the named one.

    Raises:
        BadInput: there is no such run, or it says nothing of a model: stand-ins answered or judged, it is not finished,
            or no case was graded.
        DigestMismatch: it does not verify; the message has a line for each finding.
    """
    place = _find(folder, run_id)
    verified = verify_run(place)
    if not verified.ok:
        lines = "\n".join(finding.line() for finding in verified.findings)
        raise DigestMismatch(f"{place}: does not verify, nothing is exported\n{lines}")
    tables = read_tables(place)
    run = ChosenRun(
        place,
        tables["run"][0],
        read_identity(tables),
        read_summary(tables),
        tables["scores"],
        tables["answers"],
    )
    if place.parent.name == RUNS and place.name != run.run_id:
        raise BadInput(f"{place}: expected the run {place.name}, found {run.run_id}; give the folder its own name")
    _check_fit(run)
    return run


def _find(folder: Path, run_id: str | None) -> Path:
    """Return the folder of one run."""
    if folder_kind(folder) != "run":
        raise BadInput(f"{folder}: expected a results folder or a run's, found another; `results` makes one")
    if not (folder / RUNS).is_dir():
        if run_id not in (None, folder.resolve().name):
            raise BadInput(f"{folder}: expected the run {run_id}, found a run's own folder; name it without --run")
        return folder
    there = {run.name: run for run in run_folders(folder)}
    if run_id is None and len(there) == 1:
        return next(iter(there.values()))
    if run_id is None:
        raise BadInput(f"{folder}: expected one run, found {', '.join(there) or 'none'}; choose with --run")
    return there[pick_run(str(folder), list(there), run_id)]


def _check_fit(run: ChosenRun) -> None:
    """Stop at a run whose numbers are not a model's result."""
    where, answer = run.folder, str(run.row["answer_model"])
    if run.identity["answer"].get("source") in ("policy", "data") or answer.startswith(BUILTIN):
        raise BadInput(
            f"{where}: expected a model's answers, found those of {answer}: it is no model, and has no result"
        )
    for judge in run.row["judge_models"]:
        if judge.startswith(BUILTIN):
            raise BadInput(f"{where}: expected a judge model, found {judge}: it shows the pipeline, not a result")
    pending = sum(score["state"] == PENDING for score in run.scores)
    if pending:
        cases = f"{pending} of {len(run.scores)} cases pending"
        raise BadInput(f"{where}: expected a finished run, found {cases}; repeat `run`, then `results`")
    if not run.numbers:
        raise BadInput(f"{where}: expected a score, found none: no case was graded")


def metric_of(run: ChosenRun, number: Number) -> str:
    """Return what a number measures: the mean of panel means, or the panel's grading method."""
    if number.task == ALL:
        return MACRO_MEAN
    return next(str(case["grading_method"]) for case in run.scores if case["benchmark"] == number.task)


def data_repo(run: ChosenRun) -> str:
    """Return the Hub dataset that a run's cases are from.

    Raises:
        BadInput: the run names none.
    """
    repo = run.row["data_repo"]
    if not repo:
        raise BadInput(
            f"{run.folder}: expected a run on a Hub dataset, found one on a folder that names none; "
            "build the mirror from the Hub dataset (org/name@revision) and run on that"
        )
    return str(repo)
