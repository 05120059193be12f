"""What a run's calls tell of it: repeats that were no new samples, judges that answered under another name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.calls.journal import read_journal
from eval.calls.reply import cache_hit
from eval.judging.call_notices import call_notices
from tests.llm_server import LlmServer
from tests.plans import case_set, make_plan, run


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"X-Cache": "HIT from edge"}, "x-cache: HIT from edge"),
        ({"cf-aig-cache-status": "HIT"}, "cf-aig-cache-status: HIT"),
        ({"Helicone-Cache": "hit"}, "helicone-cache: hit"),
        ({"x-litellm-cache-hit": "True"}, "x-litellm-cache-hit: True"),
        ({"x-cache": "MISS"}, None),
        ({"x-litellm-cache-hit": "False"}, None),
        ({"cache-control": "no-store"}, None),
        ({"x-cache": "WHITELISTED"}, None),
        ({"content-type": "hit"}, None),
    ],
    ids=lambda value: json.dumps(value),
)
def test_a_cache_is_told_by_its_header(headers: dict[str, str], said: str | None) -> None:
    """Gateways name it differently; a miss, or a rule on caching, is no old reply."""
    assert said == cache_hit(headers)


def edited(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> list[str]:
    """Change every judge call of a journal and return the notices then."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [change(line) if line.get("role") == "judge" else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(call_notices(read_journal(path)))


def test_cached_answers_are_counted(tmp_path: Path) -> None:
    """A gateway that serves old answers says so in a header: it stands in each call, and in a note with its count."""
    with LlmServer({"fault": "cached", "role": "answer"}) as server:
        run(make_plan(case_set(2, ["drug_safety"]), url=server.url), tmp_path / "x.jsonl")
    data = read_journal(tmp_path / "x.jsonl")

    assert {"x-cache: HIT from edge"} == {call.cache for call in data.calls if call.role == "answer"}
    assert {None} == {call.cache for call in data.calls if call.role == "judge"}
    assert ["answer replies from a cache, which are no new samples (x-cache: HIT from edge): 2"] == list(
        call_notices(data)
    )


def test_every_call_asks_for_a_sample_of_its_own(tmp_path: Path) -> None:
    """Requests tell caches not to answer for the model; the server's name of each reply is kept."""
    with LlmServer() as server:
        run(make_plan(case_set(1, ["drug_safety"]), url=server.url), tmp_path / "x.jsonl")
        assert {"no-cache"} == {seen["headers"]["cache-control"] for seen in server.requests}
    ids = [call.response_id for call in read_journal(tmp_path / "x.jsonl").calls]

    assert len(ids) == len(set(ids))
    assert None not in ids


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"response_id": "chatcmpl-1"}, "repeats answered under one response id, so by a cache"),
        ({}, "repeats of one judge on one question that came back equal to the letter: 1 of 1"),
    ],
    ids=["one id", "equal texts"],
)
def test_repeats_that_are_no_samples_are_told(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """Equal texts at temperature 0 are counted; equal texts under one id can only be one reply given several times."""
    path = tmp_path / "x.jsonl"
    with LlmServer() as server:
        run(make_plan(case_set(1, ["drug_safety"]), url=server.url, reading={"repeats": 3}), path)

    assert any(notice.startswith(said) for notice in edited(path, lambda line: {**line, **change}))
