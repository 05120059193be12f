"""HealthBench with --grouping case: one call on all criteria of an example, in words, under names of its own."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.calls.estimate import estimate
from eval.calls.plan import Plan
from eval.cases import Case, Item
from eval.healthbench import protocol
from eval.healthbench.protocol import (
    GRADER_ALL_SHA256,
    GRADER_SHA256,
    PROTOCOL,
    PROTOCOL_ALL,
    grader_all_messages,
    grader_all_params,
    own_prompts_all,
    read_template,
)
from eval.judging.judge import RefusedReplyError
from eval.judging.suites import BEDSIDE_SUITE, HEALTHBENCH_SUITE, suite_of
from eval.judging.texts import Prompts
from tests.examples import example_id_of, make_example, make_meta
from tests.gradings import example_mirror, grading_plan

URL = "http://127.0.0.1:1/v1"
N = 3
FIRST = example_id_of(0)
TEMPLATE = Path(protocol.__file__).with_name("grader_all.txt")
BARE = Prompts(answer_system=None, judge_system=None, judge_user="<<conversation>>|<<rubric_items>>")
ITEMS = (Item("c_0", "Says rest.", 5.0), Item("c_1", "Says <<conversation>>.", -2.5))
CASE = Case("c", "healthbench", "healthbench", (("user", "It hurts."),), ITEMS)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of three examples with four items each."""
    return example_mirror(tmp_path_factory.mktemp("grouping"), map(make_example, range(N)))


def plan(mirror: Path, url: str | None = URL, **choices: Any) -> Plan:
    """Return the plan of a run that asks about all criteria at once."""
    return grading_plan(mirror, url, **{"grouping": "case", **choices})


def message(*, prompts: Prompts = BARE, ids: tuple[str, ...] = ("item_0", "item_1")) -> str:
    """Return the text of the one message about two items."""
    (sent,) = grader_all_messages(CASE, "Rest.", items=ITEMS, ids=ids, prompts=prompts)
    assert "user" == sent["role"]
    return sent["content"]


# -- what is sent


def test_all_criteria_stand_under_their_ids_with_their_points() -> None:
    """`id: [points] criterion`, a line each; a criterion that speaks of the template's places is shown as it is."""
    assert (
        "user: It hurts.\n\nassistant: Rest.|item_0: [5] Says rest.\nitem_1: [-2.5] Says <<conversation>>." == message()
    )


def test_our_own_message_is_the_file_with_both_filled_in() -> None:
    """What the grader reads is grader_all.txt to the byte, but for its two places."""
    before, _, rest = TEMPLATE.read_bytes().decode().partition("<<conversation>>")
    between, _, after = rest.partition("<<rubric_items>>")
    turns, lines = message().split("|")

    assert f"{before}{turns}{between}{lines}{after}" == message(prompts=own_prompts_all())


def test_our_own_wording_is_pinned_and_says_the_rules() -> None:
    """Its digest is in the code; it asks for what is read, each item by itself, and a bad thing not done is false."""
    template = own_prompts_all().judge_user

    assert hashlib.sha256(TEMPLATE.read_bytes()).hexdigest() == GRADER_ALL_SHA256 == own_prompts_all().template_sha256
    assert '{"decisions": [{"item_id": "item_0", "matched": ' in template
    assert "Decide each item by itself" in template
    assert "if the reply does not do the bad thing, the answer is false" in template


def test_the_call_names_items_by_place_and_has_room_for_all(mirror: Path) -> None:
    """item_0 ... item_3 for ids of forty characters; 2,048 tokens and 80 an item; a JSON object is asked for."""
    found = plan(mirror)
    request = found.judge_request(found.cases[0], "a")

    assert [("*", found.cases[0].items)] == found.judge_groups(found.cases[0])
    assert ("item_0", "item_1", "item_2", "item_3") == request.ids
    assert {
        "max_completion_tokens": 2048 + 4 * 80,
        "temperature": 0,
        "response_format": {"type": "json_object"},
    } == request.params
    assert ["user"] == [sent["role"] for sent in request.messages]


def test_a_schema_holds_exactly_the_ids_that_are_asked() -> None:
    """--judge-format json_schema: one decision for each id, and no other id."""
    schema = grader_all_params(["item_0", "item_1"], judge_format="json_schema")["response_format"]["json_schema"]
    decisions = schema["schema"]["properties"]["decisions"]

    assert (2, 2) == (decisions["minItems"], decisions["maxItems"])
    assert ["item_0", "item_1"] == decisions["items"]["properties"]["item_id"]["enum"]


def test_the_data_s_own_ids_can_be_shown(mirror: Path) -> None:
    """--id-style full is there for who wants it, and shows in the protocol's name."""
    found = plan(mirror, id_style="full")

    assert f"{FIRST}_0" == found.judge_request(found.cases[0], "a").ids[0]
    assert re.fullmatch(rf"{re.escape(PROTOCOL_ALL)}\+[0-9a-f]{{8}}", found.identity()["protocol"])


def test_an_estimate_counts_one_call_an_example(mirror: Path) -> None:
    """--dry-run: three judge calls where item by item there are twelve."""
    counts = [estimate(grading_plan(mirror, URL, grouping=of))[0].judge_calls for of in ("case", "item")]

    assert [3, 12] == counts


# -- how it is read

DECISIONS = '{"decisions": [{"item_id": "item_1", "matched": false}, {"item_id": "item_0", "matched": true}]}'
REFUSED = {
    "one is missing": '{"decisions": [{"item_id": "item_0", "matched": true}]}',
    "one stands twice": DECISIONS.replace("]", ', {"item_id": "item_0", "matched": true}]'),
    "another id": DECISIONS.replace("item_1", "item_2"),
    "no id": DECISIONS.replace('"item_id": "item_1", ', ""),
    "a text": DECISIONS.replace("true", '"true"'),
    "null": DECISIONS.replace("false", "null"),
    "one criterion's reply": '{"explanation": "x", "criteria_met": true}',
    "prose": f"Here: {DECISIONS}",
}


def test_decisions_are_read_in_any_order() -> None:
    """Bare or in one fence, in the order of the asked ids."""
    read = suite_of("healthbench", "case").read_reply

    assert (
        (True, False)
        == read(DECISIONS, ["item_0", "item_1"])
        == read(f"```json\n{DECISIONS}\n```", ["item_0", "item_1"])
    )


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_anything_but_one_decision_an_item_is_refused(text: str) -> None:
    """Never a part of a reply, never a guess."""
    with pytest.raises(RefusedReplyError):
        suite_of("healthbench", "case").read_reply(text, ["item_0", "item_1"])


# -- names and digests


def test_the_identity_says_all_of_it(mirror: Path) -> None:
    """Grouping, wording, ids, reply form and the rule of its room; a protocol and semantics of its own."""
    identity, usual = plan(mirror).identity(), grading_plan(mirror, URL).identity()
    (judge,) = identity["judges"]

    assert ("healthbench", "case", PROTOCOL_ALL) == tuple(identity[n] for n in ("suite", "grouping", "protocol"))
    assert (GRADER_ALL_SHA256, "json_object", "short") == tuple(
        judge[n] for n in ("template_sha256", "format", "id_style")
    )
    assert {"max_completion_tokens": "2048 + 80 x items", "temperature": 0} == judge["params"]
    assert (PROTOCOL, "item", GRADER_SHA256) == (
        usual["protocol"],
        usual["grouping"],
        usual["judges"][0]["template_sha256"],
    )
    assert identity["semantics_sha256"] != usual["semantics_sha256"]


def test_item_by_item_is_what_it_was(mirror: Path) -> None:
    """Named or not, grouping item is the standard run, its digest the one of before there was another grouping."""
    usual = grading_plan(mirror, URL).identity()

    assert usual == grading_plan(mirror, URL, grouping="item").identity()
    assert "e9acab75e267cd5106766e3beb9ac811b2b4e73598e437525331dc23097b340f" == usual["semantics_sha256"]


def test_a_suite_is_chosen_by_its_name_and_grouping() -> None:
    """Only HealthBench asks in other words; BedsideBench is one suite in both groupings."""
    assert HEALTHBENCH_SUITE is suite_of("healthbench") is suite_of("healthbench", "item")
    assert ("healthbench", "case") == (suite_of("healthbench", "case").name, suite_of("healthbench", "case").grouping)
    assert {BEDSIDE_SUITE.name} == {suite_of("bedside-bench", of).name for of in (None, "case", "item")}
    with pytest.raises(ValueError, match="suite: expected one of"):
        suite_of("other", "case")


CHANGED: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.5},
    "no form": {"judge_format": "none"},
    "repeats": {"repeats": 3},
}


@pytest.mark.parametrize("changes", CHANGED.values(), ids=CHANGED)
def test_what_is_not_standard_shows_in_the_name(mirror: Path, changes: dict[str, Any]) -> None:
    """8 hex after the name of this grouping's protocol."""
    assert re.fullmatch(rf"{re.escape(PROTOCOL_ALL)}\+[0-9a-f]{{8}}", plan(mirror, **changes).identity()["protocol"])


def test_a_users_template_is_named_by_its_digest(mirror: Path, tmp_path: Path) -> None:
    """Sent to the byte; its name cannot be that of a template for one criterion a call."""
    text = "All.\r\n<<conversation>>\n---\n<<rubric_items>>\n"
    (tmp_path / "t.txt").write_bytes(text.encode())
    found = plan(mirror, grader_template=tmp_path / "t.txt")
    digest = hashlib.sha256(text.encode()).hexdigest()

    assert text == found.reading.prompts.judge_user
    assert f"healthbench+template-all-{digest[:8]}" == found.identity()["protocol"]
    assert plan(mirror).identity() == plan(mirror, grader_template=TEMPLATE).identity()


WRONG_TEMPLATES = {
    "for one criterion": (
        "case",
        "grader.txt",
        "found no <<rubric_items>> but <<rubric_item>>, which is for --grouping item",
    ),
    "for all criteria": (
        "item",
        "grader_all.txt",
        "found no <<rubric_item>> but <<rubric_items>>, which is for --grouping case",
    ),
}


@pytest.mark.parametrize(("grouping", "name", "said"), WRONG_TEMPLATES.values(), ids=WRONG_TEMPLATES)
def test_a_template_for_the_other_grouping_is_refused(grouping: str, name: str, said: str) -> None:
    """With the place that is missing, the one that is there, and what that one is for."""
    with pytest.raises(BadInput, match=re.escape(said)):
        read_template(TEMPLATE.with_name(name), grouping=grouping)


def test_a_meta_run_asks_item_by_item(tmp_path: Path) -> None:
    """Its records have one criterion each: there is nothing to ask together."""
    mirror = example_mirror(tmp_path, [make_meta()], config="healthbench_meta")

    with pytest.raises(BadInput, match=r"--grouping case: expected item on .*: its records have one criterion each"):
        grading_plan(mirror, answers="given", grouping="case")
