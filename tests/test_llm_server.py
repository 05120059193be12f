"""The stand-in model server itself: what it decides, its script, and the process of its own."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.llm_server import LlmServer, server_process

JUDGED = "CLINICAL PROMPT:\nWhich?\n\nANSWER:\nstop it\ncall a doctor\n\nRUBRIC ITEMS:\n"
ITEMS = "[a_0] points=+2 :: stop it\n[a_1] points=-1 :: call\n[a_2] points=+0 :: call a doctor"


def ask(url: str, text: str = JUDGED + ITEMS) -> str:
    """Return the text of one reply."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    content = post(f"{url}/chat/completions", body)["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def post(url: str, body: object) -> Any:
    """Send JSON, return JSON."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def matched(reply: str) -> dict[str, bool]:
    """Return the decisions of a judge's reply."""
    return {decision["item_id"]: decision["matched"] for decision in json.loads(reply)["decisions"]}


def test_the_verbatim_judge_matches_whole_lines_of_the_answer() -> None:
    """An item counts iff its text is a line of the answer; part of a line is not enough."""
    with LlmServer(judge="verbatim") as server:
        assert {"a_0": True, "a_1": False, "a_2": True} == matched(ask(server.url))


def test_the_hash_judge_says_the_same_twice_and_decides_every_item() -> None:
    """Its decisions depend on the item's text alone."""
    with LlmServer() as server:
        first, second = ask(server.url), ask(server.url.replace("/v1", "/v2"))

    assert first == second
    assert ["a_0", "a_1", "a_2"] == list(matched(first))


def test_rules_choose_by_role_text_and_number_and_act_as_often_as_they_say() -> None:
    """The first rule that fits decides; one that is used up does nothing."""
    rules: list[dict[str, Any]] = [
        {"fault": "missing", "role": "judge", "contains": "stop it", "times": 1},
        {"fault": "message", "content": "second", "numbers": [2]},
    ]
    with LlmServer(*rules) as server:
        replies = [ask(server.url), ask(server.url, "hello"), ask(server.url)]

    assert [2, 3] == [len(matched(reply)) for reply in replies[::2]]
    assert "second" == replies[1]


def test_a_healthbench_grader_gets_one_verdict() -> None:
    """The reply is the fenced JSON that such prompts ask for."""
    with LlmServer() as server:
        reply = ask(
            server.url, 'Return {"criteria_met": ...}\n\n# Rubric item\n[3] names the dose\n\n# Instructions\nGo.'
        )

    assert type(json.loads(reply.removeprefix("```json\n").removesuffix("\n```"))["criteria_met"]) is bool


def test_the_server_runs_in_a_process_of_its_own_and_is_steered_over_http() -> None:
    """Script, settings, requests seen and counts are all reachable from outside."""
    with server_process(judge="verbatim") as root:
        post(f"{root}/script", [{"fault": "fence", "times": 1}])
        reply = ask(f"{root}/v1")
        stats = post(f"{root}/stats", {})
        seen = post(f"{root}/requests", {})

    assert reply.startswith("```json\n{")
    assert (1, {"judge": 1}, {"fence": 1}) == (stats["requests"], stats["roles"], stats["faults"])
    assert "m" == seen[0]["body"]["model"]
