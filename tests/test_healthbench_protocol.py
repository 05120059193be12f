"""What a HealthBench run sends and how it reads a grader: the message to the byte, the names, the reply grammar."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.calls.plan import Plan
from eval.cases import Case, Item
from eval.healthbench import protocol
from eval.healthbench.protocol import (
    PROTOCOL,
    grader_messages,
    grader_params,
    own_prompts,
    parse_grade,
    points_literal,
    read_template,
)
from eval.judging.judge import RefusedReplyError
from eval.judging.texts import Prompts
from tests.examples import make_criterion, make_example, make_meta
from tests.gradings import example_mirror, grading_plan

URL = "http://127.0.0.1:1/v1"
GRADER_FILE = Path(protocol.__file__).with_name("grader.txt")
BARE = Prompts(answer_system=None, judge_system=None, judge_user="<<conversation>>|<<rubric_item>>")
CASE = Case(
    case_id="c",
    benchmark="healthbench",
    grading_method="healthbench",
    conversation=(("user", "Hi."), ("assistant", "Yes?\n\nGo on."), ("user", "It hurts.")),
    items=(),
)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of two examples, of one turn and of three."""
    lines = [make_example(0), make_example(1, rubrics=[make_criterion(points=p) for p in (5.0, -2.5, 3)])]
    return example_mirror(tmp_path_factory.mktemp("protocol"), lines)


def message(text: str, points: float | None, *, answer: str = "Rest.", prompts: Prompts = BARE) -> str:
    """Return the text of the grader call's one message about an item."""
    item = Item("c_0", text, points)
    (sent,) = grader_messages(replace(CASE, items=(item,)), answer, items=[item], ids=["c_0"], prompts=prompts)
    assert "user" == sent.pop("role")
    return sent["content"]


def plan(mirror: Path, **choices: Any) -> Plan:
    """Return a plan with both models at a server."""
    return grading_plan(mirror, URL, **choices)


# -- the grader's message


def test_the_conversation_is_turns_with_the_answer_last() -> None:
    """`role: content`, joined by blank lines, nothing trimmed."""
    turns = "user: Hi.\n\nassistant: Yes?\n\nGo on.\n\nuser: It hurts.\n\nassistant: Rest.\n"

    assert f"{turns}|[5] Says rest." == message("Says rest.", 5, answer="Rest.\n")


@pytest.mark.parametrize(
    ("points", "shown"),
    [(5, "[5] "), (5.0, "[5] "), (-2.5, "[-2.5] "), (-6, "[-6] "), (0, "[0] "), (0.1, "[0.1] "), (None, "")],
)
def test_points_stand_before_the_criterion_as_the_data_print_them(points: float | None, shown: str) -> None:
    """`[5]`, never `[5.0]`; a meta example's criterion has no points and stands bare."""
    assert message("Says rest.", points).endswith(f"|{shown}Says rest.")


@pytest.mark.parametrize(("points", "literal"), [(1e22, "1" + "0" * 22), (1e-7, "1e-07"), (-0.0, "0")])
def test_points_of_any_size_print(points: float, literal: str) -> None:
    """Large, small and negative zero."""
    assert literal == points_literal(points)


def test_places_inside_values_stay() -> None:
    """A criterion or an answer that speaks of the template's places is shown as it is, not filled in again."""
    text = message("Says <<conversation>>.", 1, answer="<<rubric_item>> and <<other>>")

    assert text.endswith("assistant: <<rubric_item>> and <<other>>|[1] Says <<conversation>>.")


def test_only_the_two_places_of_a_template_are_filled() -> None:
    """Each as often as it stands there; any other `<<word>>` is the template's own."""
    prompts = replace(BARE, judge_user="<<rubric_item>> <<date>> <<rubric_item>>")

    assert "[1] A. <<date>> [1] A." == message("A.", 1, prompts=prompts)


def test_our_own_message_is_the_file_with_both_filled_in() -> None:
    """What the grader reads is grader.txt to the byte, but for its two places."""
    template = GRADER_FILE.read_bytes().decode()
    sent = message("Says rest.", -2.5, prompts=own_prompts())
    before, _, rest = template.partition("<<conversation>>")
    between, _, after = rest.partition("<<rubric_item>>")
    turns = "user: Hi.\n\nassistant: Yes?\n\nGo on.\n\nuser: It hurts.\n\nassistant: Rest."

    assert f"{before}{turns}{between}[-2.5] Says rest.{after}" == sent


def test_our_own_wording_says_the_rules() -> None:
    """It asks for the JSON that is read, and says that a bad thing not done is false."""
    template = own_prompts().judge_user

    assert '"explanation"' in template
    assert '"criteria_met"' in template
    assert "if the reply does not do the bad thing, the answer is false" in template


def test_a_call_is_about_one_item() -> None:
    """Two items in one grader call are a mistake of ours, not something to be guessed at."""
    items = [Item("c_0", "A", 1), Item("c_1", "B", 1)]

    with pytest.raises(ValueError, match="too many values"):
        grader_messages(CASE, "x", items=items, ids=["c_0", "c_1"], prompts=BARE)


# -- what is asked for


def test_the_answer_call_is_the_conversation_alone(mirror: Path) -> None:
    """No system text; temperature 1 and 32,000 tokens."""
    one, three = (plan(mirror).answer_request(case) for case in plan(mirror).cases)

    assert ["user"] == [sent["role"] for sent in one.messages]
    assert make_example(1)["prompt"] == list(three.messages)
    assert {"max_completion_tokens": 32_000, "temperature": 1} == one.params


def test_the_grader_call_is_one_message_at_temperature_0(mirror: Path) -> None:
    """2,048 tokens, no reply form asked for, no system text."""
    found = plan(mirror)
    case = found.cases[0]
    request = found.judge_request(case, "a", group=case.items[0].item_id, items=case.items[:1])

    assert ["user"] == [sent["role"] for sent in request.messages]
    assert {"max_completion_tokens": 2048, "temperature": 0} == request.params


@pytest.mark.parametrize("judge_format", ["json_object", "json_schema"])
def test_a_reply_form_can_be_asked_for(judge_format: str) -> None:
    """Both of the forms that servers know; a schema asks for exactly the two members."""
    asked = grader_params(["c_0"], judge_format=judge_format)["response_format"]

    assert judge_format == asked["type"]
    if judge_format == "json_schema":
        assert ["explanation", "criteria_met"] == asked["json_schema"]["schema"]["required"]


def test_a_system_text_is_sent_where_one_is_given(mirror: Path, tmp_path: Path) -> None:
    """--system FILE comes before the conversation, and the protocol's name says that this is not the usual run."""
    (tmp_path / "s.txt").write_text("Be brief.")
    found = plan(mirror, system=tmp_path / "s.txt")

    assert {"role": "system", "content": "Be brief."} == found.answer_request(found.cases[0]).messages[0]
    assert re.fullmatch(rf"{re.escape(PROTOCOL)}\+[0-9a-f]{{8}}", found.identity()["protocol"])


# -- names and digests


def test_the_identity_holds_the_digest_of_the_template(mirror: Path) -> None:
    """template_sha256 is the SHA-256 of grader.txt's bytes; there is no system text to have one."""
    identity = plan(mirror).identity()
    (judge,) = identity["judges"]

    assert hashlib.sha256(GRADER_FILE.read_bytes()).hexdigest() == judge["template_sha256"]
    assert (None, None) == (judge["system_sha256"], identity["answer"]["system_sha256"])
    assert ("healthbench", "healthbench", "item") == tuple(identity[n] for n in ("suite", "config", "grouping"))
    assert ("none", "none", {"max_completion_tokens": 2048, "temperature": 0}) == tuple(
        judge[name] for name in ("format", "id_style", "params")
    )


def test_a_users_template_is_named_by_its_digest(mirror: Path, tmp_path: Path) -> None:
    """The file is sent to the byte, its digest is that of its bytes, and the protocol begins with 8 hex of it."""
    text = "Grade.\r\n<<conversation>>\n---\n<<rubric_item>>\n"
    (tmp_path / "t.txt").write_bytes(text.encode())
    found = plan(mirror, grader_template=tmp_path / "t.txt")
    digest, identity = hashlib.sha256(text.encode()).hexdigest(), found.identity()

    assert (text, digest) == (found.reading.prompts.judge_user, identity["judges"][0]["template_sha256"])
    assert f"healthbench+template-{digest[:8]}" == identity["protocol"]
    assert identity["semantics_sha256"] != plan(mirror).identity()["semantics_sha256"]


def test_our_own_template_as_a_file_is_the_same_run(mirror: Path) -> None:
    """What a text says names a protocol, not where it came from."""
    assert plan(mirror).identity() == plan(mirror, grader_template=GRADER_FILE).identity()


TEMPLATES = {
    "no item": (b"<<conversation>>", "found no <<rubric_item>>"),
    "no conversation": (b"<<rubric_item>>", "found no <<conversation>>"),
    "neither": (b"Grade it.", "found no <<conversation>> and no <<rubric_item>>"),
    "no text": (b"\xff\xfe", "expected a UTF-8 text file for --grader-template, found:"),
}


@pytest.mark.parametrize(("content", "message"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_without_its_places_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """The file and what it lacks are named; a template without the item would grade nothing."""
    path = tmp_path / "t.txt"
    path.write_bytes(content)

    with pytest.raises(BadInput, match=re.escape(message)) as refused:
        read_template(path)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_template_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the option that named it."""
    with pytest.raises(BadInput, match=r"--grader-template, found: .*No such file"):
        read_template(tmp_path / "none.txt")


@pytest.mark.parametrize(
    "changes", [{"temperature": 0.5}, {"judge_format": "json_object"}, {"judge_format": "json_schema"}]
)
def test_what_is_not_standard_shows_in_the_name(mirror: Path, changes: dict[str, Any]) -> None:
    """Another temperature or reply form: 8 hex after the name; a digest of its own."""
    usual, other = plan(mirror).identity(), plan(mirror, **changes).identity()

    assert PROTOCOL == usual["protocol"]
    assert re.fullmatch(rf"{re.escape(PROTOCOL)}\+[0-9a-f]{{8}}", other["protocol"])
    assert usual["semantics_sha256"] != other["semantics_sha256"]


def test_given_answers_keep_the_standard_name(mirror: Path) -> None:
    """A physician's completion was never sent a temperature: nothing of it can differ."""
    assert PROTOCOL == plan(mirror, answers="physician").identity()["protocol"]


def test_a_meta_run_has_the_same_protocol(tmp_path: Path) -> None:
    """The criterion alone differs: it has no points."""
    mirror = example_mirror(tmp_path, [make_meta()], config="healthbench_meta")
    found = plan(mirror, answers="given")
    case = found.cases[0]
    sent = found.judge_request(case, "Completion 0.", group=case.items[0].item_id, items=case.items).messages

    assert PROTOCOL == found.identity()["protocol"]
    assert "\n\n# Rubric item\nThe response hedges where it must (0).\n\n# Instructions" in sent[0]["content"]


# -- the reply

READ = {
    "bare": ('{"explanation": "x", "criteria_met": true}', True),
    "fenced": ('```json\n{"explanation": "x", "criteria_met": false}\n```', False),
    "spaced": ('\n ```\n{"criteria_met":true}\n```\n', True),
    "more members": ('{"criteria_met": false, "explanation": "{}", "score": 1}', False),
    "no explanation": ('{"criteria_met": true}', True),
}


@pytest.mark.parametrize(("text", "met"), READ.values(), ids=READ)
def test_a_grade_is_read(text: str, met: bool) -> None:
    """Plain JSON or one fence around the whole reply."""
    assert (met,) == parse_grade(text, ["c_0"])


REFUSED = {
    "prose before": 'Here: {"criteria_met": true}',
    "prose after": '```json\n{"criteria_met": true}\n```\nDone.',
    "no verdict": '{"explanation": "x"}',
    "a string": '{"criteria_met": "false"}',
    "a number": '{"criteria_met": 1}',
    "null": '{"criteria_met": null}',
    "twice": '{"criteria_met": true, "criteria_met": true}',
    "NaN": '{"criteria_met": true, "confidence": NaN}',
    "cut": '{"explanation": "it does',
    "a list": '[{"criteria_met": true}]',
    "another name": '{"criterion_met": true}',
    "nothing": "",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_no_grade_is_refused(text: str) -> None:
    """Never a guess, never "false": on a negative criterion that would raise the score."""
    with pytest.raises(RefusedReplyError):
        parse_grade(text, ["c_0"])
