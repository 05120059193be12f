"""Read a result file of any kind into the one shape that is scored, and summarise it.

In: a journal of ours, a result file of the upstream runner, minimal lines {case_id, answer, matched}, or HealthBench
results of simple-evals or inspect. Out: `RunData`, or the summary of it. Which kind a file is, its beginning says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.errors import BadInput, DigestMismatch
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.calls.call import CaseHead, ExampleFacts, case_heads
from eval.calls.journal import json_lines, read_journal
from eval.healthbench.recorded import Imported, adjust, differences, rescore
from eval.healthbench.summary import LengthRule
from eval.judging.graded import GradedCase, RunData
from eval.judging.grading import answer_repeats, scored_run
from eval.judging.identity import semantics_sha256
from eval.judging.suites import BEDSIDE_NAME
from eval.numbers.summary import summarise
from eval.numbers.upstream import read_upstream
from eval.numbers.upstream_rows import KnownCase

if TYPE_CHECKING:
    from eval.cases import Case


def is_journal(path: Path) -> bool:
    """Whether a file is one of our journals (else it is read as an upstream result file or as minimal lines)."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no such file"
        raise BadInput(f"{path}: expected a result file (.jsonl), found {found}")
    return next(json_lines(path), (0, {}))[1].get("kind") == "run"


def read_run(path: Path, *, mirror: Path | None = None) -> RunData:
    """Return the run that a result file holds.

    Args:
        mirror: the dataset folder; minimal lines need it for their items' points, the other kinds do not.

    Raises:
        BadInput: the file is missing, holds a bad line, or needs a mirror that was not given.
        DigestMismatch: the mirror is not the data of the journal, or was changed.
    """
    imported = read_imported(path, mirror=mirror)
    if imported is not None:
        return imported.run
    if is_journal(path):
        run = scored_run(read_journal(path))
        if mirror is not None:
            _check_same_data(run, mirror)
        return run
    return _read_upstream_with(path, mirror) if mirror else read_upstream(path)


def read_imported(path: Path, *, mirror: Path | None = None) -> Imported | None:
    """Return the HealthBench run in another evaluator's file and what the file says of it; None for other files.

    Args:
        mirror: the data that was run: its rubrics must be the file's, and it gives the example tags that a simple-evals
            file does not hold.

    Raises:
        BadInput: the file is broken, lacks what rescoring needs, or is not of the mirror's data.
    """
    from eval.healthbench.inspect_logs import is_inspect_log, read_inspect_log
    from eval.healthbench.simple_evals import is_simple_evals, read_simple_evals

    simple = is_simple_evals(path)
    if not simple and not is_inspect_log(path):
        return None
    read = read_simple_evals if simple else read_inspect_log
    return read(path) if mirror is None else _read_of_data(path, mirror, read)


def _read_of_data(path: Path, mirror: Path, read: Callable[..., Imported]) -> Imported:
    from eval.cases import read_cases
    from eval.healthbench.known import check_scored, of_data

    data = read_cases(mirror)
    check_scored(data, mirror)
    imported = read(path, known={case.case_id: case for case in data.cases})
    return replace(imported, run=of_data(imported.run, data))


def _check_same_data(run: RunData, mirror: Path) -> None:
    from eval.cases import read_cases, selected_by

    data = read_cases(mirror)
    found = data.dataset_sha256
    if found != run.dataset_sha256:
        raise DigestMismatch(
            f"--data {mirror}: expected the run's dataset_sha256 {run.dataset_sha256}, found {found}; give the mirror "
            "that was judged, or leave --data out: a journal carries its points"
        )
    identity = run.identity or {}
    heads = case_heads(selected_by(data.cases, identity["selection"]))
    expected = [replace(head, index=0) for head in heads for _ in range(answer_repeats(identity))]
    if [_head_of(case) for case in run.cases] != expected:
        raise BadInput(f"--data {mirror}: its cases are not those of the journal's case lines; restore the lines")


def _head_of(case: GradedCase) -> CaseHead:
    """Return the case line that a graded case was read from, but for its place."""
    about = None
    if case.grading_method == HEALTHBENCH:
        about = ExampleFacts(case.tags, case.item_tags, case.group, case.labels)
    items = tuple(zip(case.item_ids, case.points, strict=True))
    return CaseHead(case.case_id, case.benchmark, case.grading_method, items, 0, about)


def _read_upstream_with(path: Path, mirror: Path) -> RunData:
    from eval.cases import read_cases

    data = read_cases(mirror)
    if data.suite != BEDSIDE_NAME:
        raise BadInput(f"--data {mirror}: expected a BedsideBench mirror, as {path} is a result file of such cases")
    return read_upstream(
        path,
        cases={case.case_id: _known_case(case) for case in data.cases},
        dataset_sha256=data.dataset_sha256,
        content_sha256=data.content_sha256,
        data={"repo": data.repo, "revision": data.revision, "n_cases": len(data.cases)},
    )


def _known_case(case: Case) -> KnownCase:
    points = tuple(item.points for item in case.items if item.points is not None)
    if len(points) != len(case.items):
        raise BadInput(f"case {case.case_id}: expected points of every item, found null; build the mirror again")
    return KnownCase(
        benchmark=case.benchmark,
        grading_method=case.grading_method,
        item_ids=tuple(item.item_id for item in case.items),
        points=points,
    )


def summarise_imported(imported: Imported, **settings: Any) -> dict[str, Any]:
    """Return the summary of another evaluator's file, rescored from its verdicts, with what it says differently.

    Args:
        settings: those of `summarise_run`.
    """
    summary = summarise_run(imported.run, **settings)
    drawn = {"samples": summary["bootstrap_samples"], "seed": summary["bootstrap_seed"]}
    rescored, rule = rescore(imported, **drawn), settings.get("length")
    adjusted = None if rule is None else adjust(imported, rescored, **drawn, **rule._asdict())
    summary["healthbench"]["recorded"] = {
        "score": imported.recorded.score,
        "differences": list(differences(imported, rescored, adjusted=adjusted)),
    }
    return summary


def summarise_run(
    run: RunData,
    *,
    dialect: str,
    samples: int | None = None,
    seed: int,
    length: LengthRule | None = None,
    software: Mapping[str, str],
) -> dict[str, Any]:
    """Return the summary of a run with the semantics digest of the asked dialect and bootstrap settings."""
    digest = None
    if run.identity is not None:
        digest = semantics_sha256(run.identity, dialect=dialect, samples=samples, seed=seed)
    return summarise(
        run,
        dialect=dialect,
        samples=samples,
        seed=seed,
        length=length,
        software=software,
        semantics_sha256=digest,
    )
