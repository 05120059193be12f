"""Documents and judges -> the plan of a run that lists statements: one judge call a document, repeat and judge.

In: documents read, judges chosen. Out: the plan that `run_plan` takes, like any other.
"""

from __future__ import annotations

from builder.errors import BadInput
from eval.calls.judges import check_jury
from eval.calls.plan import STANDARD_LIMITS, Judge, Limits, Model, Plan, Reading
from eval.judging.suites import STATEMENTS_SUITE
from eval.statements.documents import Documents
from eval.statements.protocol import JUDGE_REPEATS

GIVEN_DOCUMENTS = "given documents"
"""What wrote the documents, where they name no system or several."""


def listing_plan(
    documents: Documents,
    judges: tuple[Judge, ...],
    *,
    repeats: int = JUDGE_REPEATS,
    system_vendor: str | None = None,
    limits: Limits = STANDARD_LIMITS,
) -> Plan:
    """Return the plan of a run over all documents of a file.

    Args:
        system_vendor: who makes the model that wrote the documents; None where nobody says.

    Raises:
        BadInput: there is no judge, one twice, or one that reads no source.
    """
    if not judges:
        raise BadInput("expected a judge model, found none; name one with --judge-model")
    for judge in judges:
        if judge.model.builtin:
            raise BadInput(f"--judge-model {judge.model.name}: expected a model: a built-in judge reads no source")
        if judge.id_style is not None:
            raise BadInput(f"judge {judge.model.name}: its question names no item ids: drop id_style {judge.id_style}")
    check_jury([judge.model.name for judge in judges])
    return Plan(
        data=documents.data,
        cases=documents.data.cases,
        selection={"panels": None, "smoke": False, "limit": None},
        answer=Model(documents.given.model or GIVEN_DOCUMENTS),
        judges=judges,
        reading=Reading(
            prompts=STATEMENTS_SUITE.prompts(),
            grouping=STATEMENTS_SUITE.grouping,
            repeats=repeats,
            answer_temperature=None,
        ),
        answer_vendor=system_vendor,
        given=documents.given,
        limits=limits,
    )
