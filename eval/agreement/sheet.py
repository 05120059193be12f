"""The sheet on which people label a run's answers: a seeded share of its cases, drawn before any decision is looked at.

In: a run, its answers' texts and the cases they answer. Out: one row for every item of every answer to a drawn case,
with an empty label. Blinded: no judge, decision, verdict or score, no model, and no points. A label says what the
answer does, not whether that is good: a sign beside the text would tell the person which label is wanted. The panel
is there so that a row can go to the right specialist.

A case is drawn from those whose every answer has a text, so that the sample does not depend on any judge: other judges
of the same answers get the same sheet. It comes with all its answers, because its score is their mean. The order is
random by case, and what belongs to a case stays together: whoever stops half way has labelled a random part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from builder.errors import BadInput
from eval.agreement.sheet_file import CELL_LIMIT, check_suffix, read_rows, write_rows
from eval.cases import Case
from eval.judging.graded import GradedCase, RunData
from eval.judging.texts import text_sha256
from eval.numbers.defaults import SEED
from eval.numbers.panels import registry_order
from eval.results.answers import AnswerKey

SHARE: Final = 0.2
"""The share of a panel's cases that a clinician labels (spec 3, layer B)."""
LEAST: Final = 2
"""Cases drawn from a panel that has so many, however small the share: one case has no variance."""
INSTRUCTION: Final = (
    "For every row: does the ANSWER state, recommend or do what the ITEM says, in these or in equivalent words? "
    "Write yes or no under `label`. Judge only what is in the answer, and each item for itself. An item may describe "
    "something harmful: yes means that the answer endorses or does it, not that it warns against it. Leave the label "
    "empty where you cannot tell. Change no other column."
)


@dataclass(frozen=True, slots=True)
class SheetWritten:
    """What a sheet holds; `n_items` are items to label, `n_rows` those times the raters.

    `n_without_answer` counts cases of the run that could not be drawn: some answer to them has no text. `n_long` counts
    rows with a text that Excel cuts (`CELL_LIMIT`): those need another program, or the Parquet form.
    """

    path: Path
    n_cases: int
    n_answers: int
    n_items: int
    n_rows: int
    cases_by_panel: Mapping[str, int]
    n_without_answer: int
    n_long: int


def write_sheet(
    run: RunData,
    answers: Mapping[AnswerKey, str],
    cases: Mapping[str, Case],
    path: Path,
    *,
    share: float = SHARE,
    seed: int = SEED,
    raters: Sequence[str] = ("",),
) -> SheetWritten:
    """Write a sheet with a seeded sample of a run's cases, the same share of every panel, rounded up.

    Args:
        answers: texts by (case id, answer repeat), as `results.answers.answers_of` gives them.
        cases: the run's cases by id.
        share: above 0, at most 1.
        raters: every one gets all rows; a rater without a name is named after the file when it is read.

    Raises:
        BadInput: a setting is out of range, a case is not in `cases`, no case has all its answers, or there is a file
            that is no sheet, or a sheet with labels.
    """
    _check(share, seed, raters)
    _check_place(path)
    of_case = _by_case(run)
    able = {key: found for key, found in of_case.items() if all(_key(case) in answers for case in found)}
    if not able:
        raise BadInput("label sheet: expected cases whose every answer has a text, found none")
    drawn = draw_cases({case_id: found[0].benchmark for case_id, found in able.items()}, share=share, seed=seed)
    rows = [row for case_id in drawn for answer in able[case_id] for row in _rows(answer, answers, cases, run)]
    write_rows(path, ({**row, "rater": rater} for rater in raters for row in rows))
    panels = [able[case_id][0].benchmark for case_id in drawn]
    return SheetWritten(
        path=path,
        n_cases=len(drawn),
        n_answers=sum(len(able[case_id]) for case_id in drawn),
        n_items=len(rows),
        n_rows=len(rows) * len(raters),
        cases_by_panel={panel: panels.count(panel) for panel in registry_order(panels)},
        n_without_answer=len(of_case) - len(able),
        n_long=len(raters) * sum(any(len(cell) > CELL_LIMIT for cell in row.values()) for row in rows),
    )


def draw_cases(panels: Mapping[str, str], *, share: float, seed: int) -> list[str]:
    """Return the drawn case ids in the order in which they are to be labelled.

    One `default_rng(seed)`: panel after panel in registry order a choice without replacement, then the order of all.

    Args:
        panels: the panel of every case that can be drawn, in dataset order.
    """
    rng = np.random.default_rng(seed)
    drawn: list[str] = []
    for panel in registry_order(panels.values()):
        ids = [case_id for case_id, of in panels.items() if of == panel]
        # The share as it is written: 0.1 of 30 cases is 3, but 4 in binary fractions rounded up.
        size = max(math.ceil(Fraction(str(share)) * len(ids)), min(LEAST, len(ids)))
        drawn += [ids[place] for place in sorted(rng.choice(len(ids), size=size, replace=False))]
    return [drawn[place] for place in rng.permutation(len(drawn))]


def _check(share: float, seed: int, raters: Sequence[str]) -> None:
    if not 0 < share <= 1:
        raise BadInput(f"share: expected a number above 0 and at most 1, found {share}")
    if seed < 0:
        raise BadInput(f"seed: expected 0 or more, found {seed}")
    names = [rater.strip() for rater in raters]
    if not names or len(set(names)) != len(names) or ("" in names and len(names) > 1):
        raise BadInput(f"raters: expected different names, or none at all, found {', '.join(map(repr, raters))}")


def _check_place(path: Path) -> None:
    """Stop rather than lose somebody's labels, or a file that is no sheet."""
    check_suffix(path)
    if not path.exists():
        return
    labelled = sum(bool(row.cells["label"].strip()) for row in read_rows(path))
    if labelled:
        raise BadInput(
            f"{path}: expected no file or a sheet without labels, found {labelled} labels; name another file"
        )


def _by_case(run: RunData) -> dict[str, list[GradedCase]]:
    found: dict[str, list[GradedCase]] = {}
    for case in run.cases:
        found.setdefault(case.case_id, []).append(case)
    return found


def _key(case: GradedCase) -> AnswerKey:
    return case.case_id, case.answer_repeat


def _rows(
    graded: GradedCase, answers: Mapping[AnswerKey, str], cases: Mapping[str, Case], run: RunData
) -> list[dict[str, str]]:
    case = cases.get(graded.case_id)
    ids = () if case is None else tuple(item.item_id for item in case.items)
    if case is None or (graded.item_ids and graded.item_ids != ids):
        raise BadInput(f"label sheet: expected case {graded.case_id} in the data as it was judged; give that mirror")
    answer = answers[_key(graded)]
    shared = {
        "case_id": case.case_id,
        "answer_repeat": str(graded.answer_repeat),
        "panel": graded.benchmark,
        "prompt": _conversation(case),
        "answer": answer,
        "label": "",
        "answer_sha256": text_sha256(answer),
        "dataset_sha256": run.dataset_sha256 or "",
        "identity_sha256": run.identity_sha256 or "",
    }
    return [{**shared, "item_id": item.item_id, "item": item.text} for item in case.items]


def _conversation(case: Case) -> str:
    """Return the prompt as it is, of several turns each with its role before it."""
    if len(case.conversation) == 1:
        return case.prompt
    return "\n\n".join(f"{role}: {content}" for role, content in case.conversation)
