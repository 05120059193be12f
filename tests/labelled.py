"""Small runs in memory for tests of human labels: cases by panel, verdicts as letters, labels that agree or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bedside_bench import PANELS_BY_ID
from eval.agreement.labels import ItemKey
from eval.cases import Case, Item
from eval.judging.graded import GradedCase, RunData

LETTERS = {"y": True, "n": False, "?": None}


def verdicts(letters: str) -> tuple[bool | None, ...]:
    """Return y, n and ? as met, unmet and unresolved."""
    return tuple(LETTERS[letter] for letter in letters)


def graded(
    case_id: str, letters: str | None, points: Sequence[float], *, panel: str = "drug_safety", repeat: int = 0
) -> GradedCase:
    """Return an answer with these verdicts, one that failed where there are none."""
    known = PANELS_BY_ID.get(panel)
    return GradedCase(
        case_id=case_id,
        benchmark=panel,
        grading_method=known.grading_method if known else "healthbench",
        answer_repeat=repeat,
        item_ids=tuple(f"{case_id}_{index}" for index in range(len(points))),
        points=tuple(points),
        matched=None if letters is None else verdicts(letters),
        state="failed" if letters is None else "graded",
    )


def run_of(*cases: GradedCase) -> RunData:
    """Return a run of these answers, with digests."""
    return RunData("v1", tuple(cases), (), identity_sha256="1" * 64, dataset_sha256="2" * 64, judge_model="judge")


def case_of(answer: GradedCase, *, prompt: str = "What now?", text: str = "Says so") -> Case:
    """Return the case that an answer answers."""
    items = tuple(
        Item(item_id, f"{text} {index}", points)
        for index, (item_id, points) in enumerate(zip(answer.item_ids, answer.points, strict=True))
    )
    return Case(answer.case_id, answer.benchmark, answer.grading_method, (("user", prompt),), items)


def cases_of(run: RunData, **texts: str) -> dict[str, Case]:
    """Return the cases of a run by id."""
    return {answer.case_id: case_of(answer, **texts) for answer in run.cases}


def answers_to(run: RunData, text: str = "Give 5 mg.") -> dict[tuple[str, int], str]:
    """Return a text for every answer of a run."""
    return {(case.case_id, case.answer_repeat): f"{text} {case.case_id}" for case in run.cases}


def labels_of(letters: Mapping[str, str], *, repeat: int = 0) -> dict[ItemKey, bool]:
    """Return labels by item from one string of letters a case; ? leaves an item without a label."""
    return {
        (case_id, repeat, f"{case_id}_{index}"): label
        for case_id, word in letters.items()
        for index, label in enumerate(verdicts(word))
        if label is not None
    }


def two_panels(cases_per_panel: int = 25) -> RunData:
    """Return a run on a points panel and a plan panel, every item met."""
    points = {"drug_safety": (2, 1, -1), "safety_diagnostic": (3, 1, 0, -2)}
    return run_of(
        *(
            graded(f"{panel}-{number}", "y" * len(worth), worth, panel=panel)
            for panel, worth in points.items()
            for number in range(cases_per_panel)
        )
    )
