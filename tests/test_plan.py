"""What a run will ask: request keys, parameters, and the identity they make."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from eval.calls.answers import GivenAnswer, GivenAnswers
from eval.calls.endpoint import Endpoint
from eval.calls.plan import Limits, Model, standard_limits
from eval.judging.identity import differences
from eval.judging.protocol import protocol_prompts
from tests.plans import VERBATIM, case_set, make_plan

URL = "http://127.0.0.1:1/v1"
DATA = case_set(1, ["drug_safety"])
CASE = DATA.cases[0]


def _sha(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def test_an_answer_key_names_the_request_as_asked_for() -> None:
    """The key is the digest of endpoint, model, messages, parameters and repeat (formats.md 4), built here by hand."""
    messages = [
        {"role": "system", "content": protocol_prompts().answer_system},
        {"role": "user", "content": CASE.prompt},
    ]
    request = {
        "endpoint": "http://127.0.0.1/v1",
        "model": "answer-model",
        "messages": messages,
        "params": {"max_completion_tokens": 32000, "temperature": 1},
        "repeat": 0,
    }

    assert _sha(request) == make_plan(DATA, url=URL).answer_request(CASE).key


def test_a_judge_key_names_the_answer_and_every_item() -> None:
    """The judge's key is over its whole message: another answer, item text or point is another request."""
    items = "\n".join(f"[{item.item_id}] points={item.points:+g} :: {item.text}" for item in CASE.items)
    user = f"CLINICAL PROMPT:\n{CASE.prompt}\n\nANSWER:\nMy answer.\n\nRUBRIC ITEMS:\n{items}"
    request = {
        "endpoint": "http://127.0.0.1/v1",
        "model": "judge-model",
        "messages": [{"role": "system", "content": protocol_prompts().judge_system}, {"role": "user", "content": user}],
        "params": {"max_completion_tokens": 5000, "temperature": 0, "response_format": {"type": "json_object"}},
        "repeat": 0,
    }

    assert _sha(request) == make_plan(DATA, url=URL).judge_request(CASE, "My answer.").key


def test_given_answers_and_policies_have_keys_of_their_own() -> None:
    """Their key names the file's digest or the policy, the case and the repeat."""
    given = GivenAnswers({CASE.case_id: [GivenAnswer("a", "ok")]}, "m", "f" * 64)
    about = {"case_id": CASE.case_id, "repeat": 0}
    policy, file = make_plan(DATA), make_plan(DATA, answer=Model("m"), given=given)

    assert _sha({"source": "policy", "policy": "builtin:all-items", **about}) == policy.answer_request(CASE).key
    assert _sha({"source": "file", "sha256": "f" * 64, **about}) == file.answer_request(CASE).key


def test_key_and_port_on_this_machine_are_no_part_of_a_request() -> None:
    """Another API key, or another free port of a local server, asks the same: nothing is paid twice for it."""
    here = make_plan(DATA, url="http://user:pw@127.0.0.1:1234/v1?token=x")
    there = replace(here, answer=Model("answer-model", Endpoint("http://127.0.0.1:99/v1", "sk-other")))

    assert here.answer_request(CASE).key == there.answer_request(CASE).key
    assert here.identity() == there.identity()


def test_the_identity_holds_what_the_format_lists() -> None:
    """The identity of a standard run, field by field (formats.md 4); defaults are not in it."""
    prompts = protocol_prompts()

    def text(value: str) -> str:
        return hashlib.sha256(value.encode()).hexdigest()

    identity = make_plan(DATA, url=URL, limits={"max_attempts": 6, "timeout_s": 300, "deadline_s": 1800}).identity()
    semantics = identity.pop("semantics_sha256")

    assert 64 == len(semantics)
    assert {
        "suite": "bedside-bench",
        "protocol": "bedside-bench-grading-v1",
        "config": "all",
        "dataset_sha256": DATA.dataset_sha256,
        "n_cases": 1,
        "selection": {"panels": None, "smoke": False, "limit": None},
        "answer": {
            "source": "model",
            "model": "answer-model",
            "endpoint": "http://127.0.0.1/v1",
            "params": {"max_completion_tokens": 32000, "temperature": 1},
            "system_sha256": text(prompts.answer_system or ""),
            "file_sha256": None,
        },
        "judges": [
            {
                "model": "judge-model",
                "endpoint": "http://127.0.0.1/v1",
                "params": {"max_completion_tokens": "max(5000, 1000 + 80 x items)", "temperature": 0},
                "vendor": None,
                "system_sha256": text(prompts.judge_system or ""),
                "template_sha256": text(f"{prompts.judge_user}\n\n{prompts.judge_item}"),
                "format": "json_object",
                "id_style": "full",
            }
        ],
        "grouping": "case",
        "repeats": 1,
    } == identity


PLANS: dict[str, dict[str, Any]] = {
    "model": {"url": URL, "reasoning_effort": "high"},
    "policy": {"judge": VERBATIM},
    "file": {"answer": Model("m"), "given": GivenAnswers({}, None, "0" * 64)},
    "schema": {"url": URL, "reading": {"judge_format": "json_schema", "id_style": "short"}},
}


@pytest.mark.parametrize("choices", PLANS.values(), ids=PLANS.keys())
def test_an_identity_survives_its_file(choices: dict[str, Any]) -> None:
    """What the first line holds compares equal to what the same command makes, so the run goes on."""
    identity = make_plan(DATA, **choices).identity()

    assert [] == differences(json.loads(json.dumps(identity)), identity)


@pytest.mark.parametrize(
    ("effort", "limits", "changed"),
    [
        (None, {}, None),
        ("high", {"timeout_s": 600.0}, None),
        ("high", {}, {"timeout_s": 300.0}),
        (None, {"max_attempts": 2, "judge_replies": 1}, {"max_attempts": 2, "judge_replies": 1}),
    ],
)
def test_only_limits_that_were_changed_are_in_the_identity(
    effort: str | None, limits: dict[str, Any], changed: dict[str, Any] | None
) -> None:
    """Defaults (300 s a try, 600 s with reasoning effort) stay out; every other value is named."""
    plan = replace(make_plan(DATA, url=URL, reasoning_effort=effort), limits=replace(Limits(), **limits))

    assert changed == plan.identity().get("limits")
    assert standard_limits("low").timeout_s == 600.0
