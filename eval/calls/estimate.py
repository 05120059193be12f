"""What a run would send, before anything is sent: calls, characters and tokens, a line a panel.

In: a plan. Out: counts. Characters of prompts and rubrics are exact; an answer's length is not known before it is paid
for, so judge messages are counted with a stated length for each answer, and tokens as characters / 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eval.calls.builtin import POLICIES
from eval.calls.call import JUDGED_ANSWERS
from eval.calls.plan import Plan
from eval.cases import Case

ASSUMED_ANSWER_CHARS: Final = 3_000
CHARS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class PanelEstimate:
    """Calls and characters of one panel; tokens are characters / 4, rounded."""

    panel: str
    cases: int
    answer_calls: int
    judge_calls: int
    answer_chars: int
    judge_chars: int

    @property
    def input_tokens(self) -> int:
        """Estimated input tokens of all calls."""
        return round((self.answer_chars + self.judge_chars) / CHARS_PER_TOKEN)


def estimate(plan: Plan) -> list[PanelEstimate]:
    """Return what each selected panel would send, in dataset order; calls to builtins and given answers cost none."""
    panels = dict.fromkeys(case.benchmark for case in plan.cases)
    return [_panel(plan, panel) for panel in panels]


def _panel(plan: Plan, panel: str) -> PanelEstimate:
    cases = [case for case in plan.cases if case.benchmark == panel]
    repeats = range(plan.reading.answer_repeats)
    asked = [plan.answer_request(case) for case in cases if plan.answer_source == "model"]
    answers = [(case, _answer(plan, case, n)) for case in cases for n in repeats]
    # All judges read the same words, short ids aside.
    times = plan.reading.repeats * sum(not judge.model.builtin for judge in plan.judges)
    judged = [
        _chars(plan.judge_request(case, answer, group=group, items=items).messages)
        for case, answer in answers
        if answer is not None and times
        for group, items in plan.judge_groups(case)
    ]
    return PanelEstimate(
        panel=panel,
        cases=len(cases),
        answer_calls=len(asked) * len(repeats),
        judge_calls=len(judged) * times,
        answer_chars=sum(_chars(request.messages) for request in asked) * len(repeats),
        judge_chars=sum(judged) * times,
    )


def _answer(plan: Plan, case: Case, repeat: int) -> str | None:
    """Return the answer that a judge would read; None where there is none to judge."""
    if plan.given:
        given = plan.given.answer(case.case_id, repeat)
        return given.text if given and given.state in JUDGED_ANSWERS else None
    return POLICIES[plan.answer.name](case) if plan.answer.builtin else "x" * ASSUMED_ANSWER_CHARS


def _chars(messages: Sequence[dict[str, str]]) -> int:
    return sum(len(message["content"]) for message in messages)


def estimate_table(estimates: Sequence[PanelEstimate]) -> str:
    """Return the estimate as text that fits 80 columns, with its total and its assumptions."""
    head = f"{'panel':<23}{'cases':>7}{'answer calls':>13}{'judge calls':>12}{'chars in':>13}{'tokens in':>12}"
    total = PanelEstimate("total", *(sum(getattr(e, name) for e in estimates) for name in PanelEstimate.__slots__[1:]))
    lines = [head, "-" * len(head), *map(_line, estimates), "-" * len(head), _line(total)]
    return "\n".join(
        [
            *lines,
            "",
            f"Estimates: {ASSUMED_ANSWER_CHARS:,} characters an answer, {CHARS_PER_TOKEN} characters a token. Output",
            "tokens and replies that must be asked for again come on top. Nothing was sent.",
        ]
    )


def _line(e: PanelEstimate) -> str:
    chars = e.answer_chars + e.judge_chars
    left = f"{e.panel:<23}{e.cases:>{max(0, 30 - max(23, len(e.panel)))}}"
    return f"{left}{e.answer_calls:>13}{e.judge_calls:>12}{chars:>13,}{e.input_tokens:>12,}"
