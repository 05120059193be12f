"""Another evaluator's file against the data it is said to be of: the same examples, each with the same rubric.

In: the examples of a mirror, by id, and what a file says of one. Out: the example, or a refusal with the place in the
file, the case, what was expected and what was found; and the imported run under the data's name and digests. A file may
hold a part of the data, which a notice counts. Not done here: reading either (`simple_evals`, `inspect_logs`, `cases`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.errors import BadInput
from builder.healthbench.names import META, SUITE
from builder.rules.problems import shown
from eval.judging.graded import RunData

if TYPE_CHECKING:
    from eval.cases import Case, CaseSet
    from eval.healthbench.foreign import Judged


def check_scored(data: CaseSet, mirror: Path) -> None:
    """Refuse data that no imported run can be of.

    Raises:
        BadInput: it is of another suite, or the meta-evaluation's, whose items have no points.
    """
    if data.suite != SUITE or data.config == META:
        found = data.config if data.suite == SUITE else data.suite
        raise BadInput(f"--data {mirror}: expected a HealthBench mirror of examples with points, found {found}")


def known_example(known: Mapping[str, Case], case_id: str, judged: Judged, *, where: str, items: str) -> Case:
    """Return the example of the data that a file's rubric is of.

    Args:
        where: the place of the example in its file.
        items: the place of its rubric there.

    Raises:
        BadInput: the data have no such example, or it has other items: another number, criterion, points or tags.
    """
    case = known.get(case_id)
    if case is None:
        raise BadInput(f"{where}: case {shown(case_id)}: expected an example of the data that was named, found none")
    if len(judged.points) != len(case.items):
        raise BadInput(f"{items}: {_expected(case_id, len(case.items), len(judged.points))}")
    for index, item in enumerate(case.items):
        ours = {"criterion": item.text, "points": item.points, "tags": list(item.tags)}
        theirs = {
            "criterion": judged.criteria[index],
            "points": judged.points[index],
            "tags": list(judged.tags[index]),
        }
        for name, expected in ours.items():
            if theirs[name] != expected:
                raise BadInput(f"{items}[{index}].{name}: {_expected(case_id, expected, theirs[name])}")
    return case


def check_tags(case: Case, tags: tuple[str, ...], where: str) -> None:
    """Refuse an example whose own tags are not the data's.

    Raises:
        BadInput: they differ.
    """
    if tags != case.tags:
        raise BadInput(f"{where}: {_expected(case.case_id, list(case.tags), list(tags))}")


def _expected(case_id: str, expected: Any, found: Any) -> str:
    texts = [
        ", ".join(map(shown, value)) or "none" if isinstance(value, list) else shown(value)
        for value in (expected, found)
    ]
    return f"case {case_id}: expected {texts[0]}, as in the data that was named, found {texts[1]}"


def of_data(run: RunData, data: CaseSet) -> RunData:
    """Return an imported run, whose every example was found in the data, under the data's config and digests."""
    lacking = len(data.cases) - len({case.case_id for case in run.cases})
    notices = [f"{lacking} of the {len(data.cases)} examples of the data are not in the file: a part of it was run"]
    return replace(
        run,
        cases=tuple(replace(case, benchmark=data.config) for case in run.cases),
        config=data.config,
        dataset_sha256=data.dataset_sha256,
        content_sha256=data.content_sha256,
        data={"repo": data.repo, "revision": data.revision, "n_cases": len(data.cases)},
        notices=(*run.notices, *(notices if lacking else ())),
    )
