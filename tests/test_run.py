"""The loop of a run: what is asked, what is kept, what is asked again, what stops it."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.answers import GivenAnswer, GivenAnswers
from eval.calls.journal import read_journal
from eval.calls.plan import Model
from eval.cases import CaseSet
from eval.judging.grading import grade_journal
from eval.judging.protocol import protocol_prompts
from eval.numbers.readers import read_run, summarise_run
from tests.llm_server import LlmServer
from tests.plans import VERBATIM, case_set, make_plan, run


def _states(path: Path) -> Counter[str]:
    return Counter(case.state for case in grade_journal(read_journal(path)).cases)


def _summary(path: Path) -> dict[str, Any]:
    return summarise_run(read_run(path), dialect="spec", samples=200, seed=42, software={})


def test_every_case_is_answered_and_judged_once(tmp_path: Path) -> None:
    """Ten cases make ten answer calls and ten judge calls, with the protocol's messages and parameters on the wire."""
    with LlmServer() as server:
        plan = make_plan(url=server.url)
        run(plan, tmp_path / "x.jsonl")
        answer = next(seen for seen in server.requests if seen["role"] == "answer")
        judge = next(seen for seen in server.requests if seen["role"] == "judge")

        assert 20 == server.hits
    assert {"graded": 10} == _states(tmp_path / "x.jsonl")
    assert {"model", "messages", "max_completion_tokens", "temperature"} == set(answer["body"])
    assert (32_000, 1) == (answer["body"]["max_completion_tokens"], answer["body"]["temperature"])
    assert protocol_prompts().answer_system == answer["body"]["messages"][0]["content"]
    assert {"type": "json_object"} == judge["body"]["response_format"]
    assert (5_000, 0) == (judge["body"]["max_completion_tokens"], judge["body"]["temperature"])


def test_the_same_command_pays_nothing_again(tmp_path: Path) -> None:
    """A second start of a finished run asks no model and changes no byte of the journal."""
    with LlmServer() as server:
        plan = make_plan(url=server.url)
        run(plan, tmp_path / "x.jsonl")
        before, hits = (tmp_path / "x.jsonl").read_bytes(), server.hits
        run(plan, tmp_path / "x.jsonl")

        assert hits == server.hits
    assert before == (tmp_path / "x.jsonl").read_bytes()


def test_a_bad_judge_reply_costs_only_the_judge_call(tmp_path: Path) -> None:
    """A judge that answers badly twice is asked a third time; the answer is never asked for again."""
    with LlmServer({"fault": "prose", "role": "judge", "times": 2}) as server:
        run(make_plan(case_set(1, ["drug_safety"]), url=server.url), tmp_path / "x.jsonl")

        assert ["answer", "judge", "judge", "judge"] == [seen["role"] for seen in server.requests]
    calls = read_journal(tmp_path / "x.jsonl").calls
    assert [("ok", 1), ("invalid_reply", 1), ("invalid_reply", 2), ("ok", 3)] == [(c.state, c.reply) for c in calls]


def test_unreadable_judges_never_make_a_score(tmp_path: Path) -> None:
    """A judge that never gives readable decisions leaves the case ungraded: no score, listed, the bounds wide open."""
    with LlmServer({"fault": "prose", "role": "judge"}) as server:
        run(make_plan(case_set(1, ["drug_safety"]), url=server.url), tmp_path / "x.jsonl")

        assert 4 == server.hits
    summary = _summary(tmp_path / "x.jsonl")
    assert {"failed": 1} == _states(tmp_path / "x.jsonl")
    assert summary["overall_macro_mean"] is None
    assert (0.0, 1.0) == (summary["overall_worst"], summary["overall_best"])
    assert [("judge", "invalid_reply")] == [(f["role"], f["state"]) for f in summary["failed_cases"]]


def test_failed_units_are_asked_again_and_nothing_else(tmp_path: Path) -> None:
    """After a run with a failed judge call, the same command asks that judge call only."""
    data = case_set(3, ["drug_safety"])
    with LlmServer({"fault": "500", "role": "judge", "times": 2}) as server:
        run(make_plan(data, url=server.url), tmp_path / "x.jsonl", concurrency=1)
        assert {"failed": 1, "graded": 2} == _states(tmp_path / "x.jsonl")
        hits = server.hits
        run(make_plan(data, url=server.url), tmp_path / "x.jsonl", concurrency=1)

        assert ["judge"] == [seen["role"] for seen in server.requests[hits:]]
    assert {"graded": 3} == _states(tmp_path / "x.jsonl")


ANSWERS = {
    "empty": ({"fault": "message", "content": ""}, "empty", 0),
    "filtered": ({"fault": "message", "content": None, "finish_reason": "content_filter"}, "filtered", 0),
    "truncated": ({"fault": "message", "content": "half", "finish_reason": "length"}, "truncated", 1),
    "refused": ({"fault": "message", "content": None, "refusal": "No."}, "refused", 1),
}


@pytest.mark.parametrize(("fault", "state", "judged"), ANSWERS.values(), ids=ANSWERS.keys())
def test_answers_are_judged_as_they_are_or_not_at_all(
    tmp_path: Path, fault: dict[str, Any], state: str, judged: int
) -> None:
    """A truncated or refused answer is judged and flagged; an empty or filtered one leaves its case ungraded."""
    with LlmServer({**fault, "role": "answer"}) as server:
        run(make_plan(case_set(1, ["drug_safety"]), url=server.url), tmp_path / "x.jsonl")
    data = read_journal(tmp_path / "x.jsonl")

    assert state == data.calls[0].state
    assert judged == sum(call.role == "judge" for call in data.calls)
    assert {"graded" if judged else "failed": 1} == _states(tmp_path / "x.jsonl")


@pytest.mark.parametrize("status", ["401", "403", "404"])
def test_a_refused_key_or_model_stops_the_run(tmp_path: Path, status: str) -> None:
    """401, 403 and 404 stop the run at the first reply: no case after it is asked for, and the reason is one line."""
    with LlmServer({"fault": status}) as server:
        outcome, _ = run(make_plan(case_set(3), url=server.url), tmp_path / "x.jsonl", concurrency=1)

        assert 1 == server.hits
    assert outcome.stopped is not None
    assert status in outcome.stopped
    assert "sk-dummy-key" not in outcome.stopped + (tmp_path / "x.jsonl").read_text()


def test_paid_answers_survive_a_judge_that_stops_the_run(tmp_path: Path) -> None:
    """When the judge's key is refused, calls in flight land: the same command then asks for no paid answer again."""
    with LlmServer({"fault": "401", "role": "judge", "times": 1}, latency_ms=30) as server:
        plan = make_plan(case_set(1), url=server.url)
        run(plan, tmp_path / "x.jsonl", concurrency=4)
        paid = {call.case_id for call in read_journal(tmp_path / "x.jsonl").calls if call.role == "answer"}
        run(plan, tmp_path / "x.jsonl", concurrency=4)
        asked = [seen["body"]["messages"][1]["content"] for seen in server.requests if seen["role"] == "answer"]

        assert {1} == set(Counter(asked).values())
    assert 4 <= len(paid) < 10
    assert {"graded": 10} == _states(tmp_path / "x.jsonl")


CHANGED = {
    "judge model": ({"judge": Model("other")}, "judges.0.model"),
    "answer model": ({"answer": Model("builtin:refuse")}, "answer.model"),
    "id style": ({"reading": {"id_style": "short"}}, "judges.0.id_style"),
    "judge format": ({"reading": {"judge_format": "none"}}, "judges.0.format"),
    "limits": ({"limits": {"max_attempts": 3}}, "limits.max_attempts"),
}


@pytest.mark.parametrize(("change", "field"), CHANGED.values(), ids=CHANGED.keys())
def test_a_command_that_differs_is_refused_by_field(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    """One file holds one run: another model, prompt or parameter is refused, and the differing field is named."""
    run(make_plan(), tmp_path / "x.jsonl")

    with pytest.raises(BadInput, match=field):
        run(make_plan(**change), tmp_path / "x.jsonl")


def test_changed_data_are_refused(tmp_path: Path) -> None:
    """The same file does not go on with other cases: the dataset digest differs and is named."""
    run(make_plan(case_set(1)), tmp_path / "x.jsonl")

    with pytest.raises(BadInput, match="dataset_sha256"):
        run(make_plan(case_set(2)), tmp_path / "x.jsonl")


def test_another_judge_reuses_the_paid_answers(tmp_path: Path) -> None:
    """--reuse carries answers into a new file: another judge costs judge calls only, and the origin is recorded."""
    with LlmServer() as server:
        run(make_plan(url=server.url), tmp_path / "a.jsonl")
        hits = server.hits
        plan = make_plan(url=server.url, judge=VERBATIM)
        run(plan, tmp_path / "b.jsonl", reuse=[tmp_path / "a.jsonl"])

        assert hits == server.hits
    old, new = read_journal(tmp_path / "a.jsonl"), read_journal(tmp_path / "b.jsonl")
    answers = {call.case_id: call for call in new.calls if call.role == "answer"}
    assert {old.header["identity_sha256"]} == {call.reused_from for call in answers.values()}
    assert {c.case_id: c.text for c in old.calls if c.role == "answer"} == {i: c.text for i, c in answers.items()}


def test_a_changed_item_judges_only_its_case_again(tmp_path: Path) -> None:
    """After one rubric item changed, reuse asks one judge call: every other reply has an equal request."""
    from dataclasses import replace

    data = case_set(2, ["drug_safety"])
    first = data.cases[0]
    changed = replace(first, items=(replace(first.items[0], text="another criterion"), *first.items[1:]))
    edited = replace(data, cases=(changed, *data.cases[1:]), dataset_sha256="0" * 64)
    with LlmServer() as server:
        run(make_plan(data, url=server.url), tmp_path / "a.jsonl")
        hits = server.hits
        run(make_plan(edited, url=server.url), tmp_path / "b.jsonl", reuse=[tmp_path / "a.jsonl"])

        assert ["judge"] == [seen["role"] for seen in server.requests[hits:]]


def test_given_answers_are_judged_without_an_answer_model(tmp_path: Path) -> None:
    """Answers from a file are judged as they stand; a case without one is missing, never an empty answer."""
    data = case_set(2, ["drug_safety"])
    text = "\n".join(item.text for item in data.cases[0].items)
    given = GivenAnswers({data.cases[0].case_id: [GivenAnswer(text, "ok")]}, "somebody", "0" * 64)
    run(make_plan(data, answer=Model("somebody"), given=given), tmp_path / "x.jsonl")
    calls = read_journal(tmp_path / "x.jsonl").calls

    assert ["missing", "ok"] == sorted(call.state for call in calls if call.role == "answer")
    assert {"graded": 1, "failed": 1} == _states(tmp_path / "x.jsonl")


def test_numbers_do_not_depend_on_concurrency_or_line_order(tmp_path: Path) -> None:
    """One call at a time, 32 at a time, or the lines shuffled afterwards: the summary's numbers are the same."""
    data = case_set(4)
    with LlmServer(latency_ms=1) as server:
        run(make_plan(data, url=server.url), tmp_path / "one.jsonl", concurrency=1)
        run(make_plan(data, url=server.url), tmp_path / "many.jsonl", concurrency=32)
    head, *lines = (tmp_path / "many.jsonl").read_bytes().rstrip(b"\n").split(b"\n")
    random.Random(5).shuffle(lines)
    (tmp_path / "shuffled.jsonl").write_bytes(b"\n".join([head, *lines, b""]))
    one, many, shuffled = (_summary(tmp_path / f"{name}.jsonl") for name in ("one", "many", "shuffled"))

    assert one["benchmarks"] == many["benchmarks"] == shuffled["benchmarks"]
    assert one["overall_ci95"] == many["overall_ci95"] == shuffled["overall_ci95"]
    assert many == shuffled


def test_refused_parameters_are_dropped_once_and_recorded(tmp_path: Path) -> None:
    """A server that takes no temperature costs one extra call a role; the record says requested 1, sent none."""
    rules = [{"fault": "refuse", "param": "temperature", "wording": "openai"}]
    with LlmServer(*rules) as server:
        plan = make_plan(url=server.url)
        run(plan, tmp_path / "x.jsonl", concurrency=1)
        hits = server.hits
    data = read_journal(tmp_path / "x.jsonl")
    summary = _summary(tmp_path / "x.jsonl")

    assert 22 == hits
    assert {("answer", "temperature", "drop"), ("judge", "temperature", "drop")} == {
        (line["role"], line["param"], line["action"]) for line in data.adaptations
    }
    assert 1 == data.identity["answer"]["params"]["temperature"]
    assert (None, None) == (summary["answer_temperature"], summary["judge_temperature"])


def test_a_resumed_run_knows_what_was_refused(tmp_path: Path) -> None:
    """What a server refused is remembered in the file: going on asks nothing that is known to be refused."""
    rules: list[dict[str, Any]] = [
        {"fault": "refuse", "param": "temperature"},
        {"fault": "500", "role": "judge", "times": 2},
    ]
    data = case_set(2, ["drug_safety"])
    with LlmServer(*rules) as server:
        run(make_plan(data, url=server.url), tmp_path / "x.jsonl", concurrency=1)
        hits = server.hits
        run(make_plan(data, url=server.url), tmp_path / "x.jsonl", concurrency=1)

        assert all("temperature" not in seen["body"] for seen in server.requests[hits:])
    assert {"graded": 2} == _states(tmp_path / "x.jsonl")


def test_short_ids_are_asked_and_mapped_back(tmp_path: Path) -> None:
    """With short ids the judge sees item_0 ...; its decisions still land on the right items."""
    plan = make_plan(case_set(2), reading={"id_style": "short"})
    full, short = tmp_path / "full.jsonl", tmp_path / "short.jsonl"
    run(make_plan(case_set(2)), full)
    run(plan, short)

    assert [c.matched for c in read_run(full).cases] == [c.matched for c in read_run(short).cases]
    assert read_run(short).protocol_version.startswith("bedside-bench-grading-v1+")


def test_the_first_line_names_the_run(tmp_path: Path) -> None:
    """The journal's first line holds the identity and its digest; no key, password or query is in the file."""
    with LlmServer() as server:
        url = server.url.replace("http://", "http://user:secret-pass@") + "?token=secret-query"
        run(make_plan(url=url), tmp_path / "x.jsonl")
    data = read_journal(tmp_path / "x.jsonl")
    text = (tmp_path / "x.jsonl").read_text()

    assert sha256_json(data.identity) == data.header["identity_sha256"]
    assert "http://127.0.0.1/v1" == data.identity["answer"]["endpoint"]
    assert not [secret for secret in ("sk-dummy-key", "secret-pass", "secret-query") if secret in text]


def test_a_server_that_nobody_reaches_stops_the_run(tmp_path: Path) -> None:
    """When as many calls in a row as are in flight reach no server, the run stops instead of trying every case."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    outcome, _ = run(make_plan(case_set(2), url=url, limits={"max_attempts": 1}), tmp_path / "x.jsonl", concurrency=3)

    assert outcome.stopped is not None
    assert 3 <= _states(tmp_path / "x.jsonl")["failed"] <= 5


def test_a_judge_that_names_broken_ids_costs_no_paid_line(tmp_path: Path) -> None:
    """A reply with half a surrogate pair in an id is asked again, and the journal can be read and resumed."""
    content = r'{"decisions":[{"item_id":"\ud800","matched":true}]}'
    with LlmServer({"fault": "message", "role": "judge", "content": content, "times": 1}) as server:
        run(make_plan(url=server.url), tmp_path / "x.jsonl")
        run(make_plan(url=server.url), tmp_path / "x.jsonl")

        assert 21 == server.hits
    assert {"graded": 10} == _states(tmp_path / "x.jsonl")


def _one_prompt_in_two_panels() -> CaseSet:
    """Return two cases of two panels that share their prompt and so the key of their answers; `check` only warns."""
    data = case_set(panels=("drug_safety", "guideline_adherence"))
    first, second = data.cases
    return replace(data, cases=(first, replace(second, conversation=first.conversation)))


def test_cases_of_one_prompt_have_answers_of_their_own(tmp_path: Path) -> None:
    """Where two cases share a prompt, a failed answer of one is asked again and is not taken for answered."""
    with LlmServer({"fault": "400", "role": "answer", "numbers": [1]}) as server:
        plan = make_plan(_one_prompt_in_two_panels(), url=server.url)
        run(plan, tmp_path / "x.jsonl", concurrency=1)
        run(plan, tmp_path / "x.jsonl", concurrency=1)

        assert 5 == server.hits  # two answers and a judge call, then the failed answer and its judge call
    assert {"graded": 2} == _states(tmp_path / "x.jsonl")


def test_different_answers_to_one_prompt_are_paid_for_once(tmp_path: Path) -> None:
    """Where two cases share a prompt and got different answers, a resumed or reused run asks nothing again."""
    one = {"fault": "message", "role": "answer", "content": "another answer", "times": 1}
    with LlmServer(one) as server:
        plan = make_plan(_one_prompt_in_two_panels(), url=server.url)
        for output, reuse in (("x", []), ("x", []), ("y", [tmp_path / "x.jsonl"])):
            run(plan, tmp_path / f"{output}.jsonl", concurrency=1, reuse=reuse)

        assert 4 == server.hits
    texts = [call.text for call in read_journal(tmp_path / "y.jsonl").calls if call.role == "answer"]
    assert 2 == len(set(texts))


def test_a_changed_or_missing_case_line_never_moves_a_number(tmp_path: Path) -> None:
    """On resume the points in a journal are the data's: a changed case line is refused, a missing one is put back."""
    path = tmp_path / "x.jsonl"
    run(make_plan(), path)
    whole = path.read_bytes()
    lines = whole.split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], *lines[4:]]))
    run(make_plan(), path)

    assert 10 == len(read_journal(path).cases)
    path.write_bytes(whole.replace(b'_0",2]', b'_0",3]', 1))
    with pytest.raises(BadInput, match="not what the data say"):
        run(make_plan(), path)


def test_a_run_of_reused_replies_ends_after_it_began(tmp_path: Path) -> None:
    """Replies keep the time at which they were paid for, but a run made of them does not end before its start."""
    run(make_plan(), tmp_path / "old.jsonl")
    header = json.loads((tmp_path / "old.jsonl").read_text().split("\n")[0])
    plan = make_plan()
    run(plan, tmp_path / "new.jsonl", reuse=[tmp_path / "old.jsonl"])
    text = (tmp_path / "new.jsonl").read_text()
    (tmp_path / "new.jsonl").write_text(text.replace(header["started"], "2027-01-01T00:00:00.000000Z", 1))

    assert "2027-01-01T00:00:00.000000Z" == _summary(tmp_path / "new.jsonl")["finished_at"]


def test_a_journal_that_cannot_be_written_stops_further_calls(tmp_path: Path) -> None:
    """Once a reply cannot be kept, calls in flight end and none is sent that could not be kept either."""
    code = (
        "import resource, sys; from pathlib import Path; from tests.plans import make_plan, run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, resource.RLIM_INFINITY))\n"
        "run(make_plan(url=sys.argv[1]), Path(sys.argv[2]), concurrency=2)"
    )
    long = {"fault": "message", "role": "answer", "content": "x" * 9_000, "numbers": [1]}
    with LlmServer(long, latency_ms=20) as server:
        command = [sys.executable, "-c", code, server.url, str(tmp_path / "x.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)

        assert 3 >= server.hits
    assert f"File too large: '{tmp_path / 'x.jsonl'}'" in done.stderr
    assert (tmp_path / "x.jsonl").read_bytes().endswith(b"\n")
