"""What a run would send, counted before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bedside_bench import PANEL_IDS
from eval.calls.answers import GivenAnswer, GivenAnswers
from eval.calls.estimate import ASSUMED_ANSWER_CHARS, PanelEstimate, estimate, estimate_table
from eval.calls.plan import Model, Plan
from tests.llm_server import LlmServer
from tests.plans import VERBATIM, case_set, make_plan, run

URL = "http://127.0.0.1:1/v1"


def _one_panel(n: int = 2, **choices: Any) -> Plan:
    return make_plan(case_set(n, ["drug_safety"]), **{"url": URL, **choices})


def test_calls_and_characters_are_those_that_are_sent(tmp_path: Path) -> None:
    """The estimate of the answer calls is what the server gets; the judge's differs by the answer's true length."""
    with LlmServer() as server:
        plan = _one_panel(url=server.url)
        run(plan, tmp_path / "x.jsonl")
        sent = {"answer": 0, "judge": 0}
        for seen in server.requests:
            sent[seen["role"]] += sum(len(message["content"]) for message in seen["body"]["messages"])
        answers = [seen["body"]["messages"] for seen in server.requests if seen["role"] == "judge"]
    given = sum(len(m[1]["content"].split("\n\nANSWER:\n")[1].split("\n\nRUBRIC ITEMS:\n")[0]) for m in answers)
    (found,) = estimate(plan)

    assert ("drug_safety", 2, 2, 2) == (found.panel, found.cases, found.answer_calls, found.judge_calls)
    assert sent["answer"] == found.answer_chars
    assert sent["judge"] == found.judge_chars + given - 2 * ASSUMED_ANSWER_CHARS


def test_stand_ins_cost_nothing() -> None:
    """A policy is not asked, a builtin judge neither; a policy's answers are judged at their true length."""
    (free,) = estimate(_one_panel(answer=Model("builtin:refuse"), judge=VERBATIM))
    (judged,) = estimate(_one_panel(1, answer=Model("builtin:refuse")))
    (assumed,) = estimate(_one_panel(1))

    assert (0, 0, 0) == (free.answer_calls, free.judge_calls, free.input_tokens)
    assert (0, 1) == (judged.answer_calls, judged.judge_calls)
    assert ASSUMED_ANSWER_CHARS - len("I cannot answer this question.") == assumed.judge_chars - judged.judge_chars


def test_only_given_answers_that_can_be_judged_count() -> None:
    """Of a missing, an empty and a cut answer only the cut one costs a judge call, at its own length."""
    data = case_set(3, ["drug_safety"])
    first, second = data.cases[0].case_id, data.cases[1].case_id
    answers = {first: [GivenAnswer("cut", "truncated")], second: [GivenAnswer("", "empty")]}
    plan = make_plan(data, url=URL, answer=Model("m"), given=GivenAnswers(answers, "m", "0" * 64))
    (found,) = estimate(plan)

    assert (3, 0, 1) == (found.cases, found.answer_calls, found.judge_calls)
    assert found.judge_chars == sum(len(m["content"]) for m in plan.judge_request(data.cases[0], "cut").messages)


def test_tokens_are_a_quarter_of_the_characters() -> None:
    """Four characters a token, as the table says."""
    assert 25 == PanelEstimate("p", 1, 1, 1, 60, 40).input_tokens


def test_the_table_has_a_row_a_panel_and_the_total() -> None:
    """Ten panels, their sums, the assumptions; 80 columns up to the size of 100,000 cases."""
    panels = estimate(make_plan(case_set(2), url=URL))
    lines, chars = estimate_table(panels).split("\n"), sum(p.answer_chars + p.judge_chars for p in panels)
    large = estimate_table([PanelEstimate("calculators_conditional", 10_000, 10_000, 10_000, 10**7, 5 * 10**7)] * 10)

    assert [*PANEL_IDS, "total"] == [line.split()[0] for line in [*lines[2:12], lines[13]]]
    assert ["total", "20", "20", "20", f"{chars:,}"] == lines[13].split()[:5]
    assert "Nothing was sent." in lines[-1]
    assert ["total", "100000", "100000", "100000", "600,000,000", "150,000,000"] == large.split("\n")[13].split()
    assert max(len(line) for line in [*lines, *large.split("\n")]) <= 80
