"""HealthBench with --grouping case: one call on all criteria of an example, in words, under names of its own."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.audits.grouping_report import audit_report
from eval.audits.grouping_text import audit_text
from eval.audits.sides import Side, read_side
from eval.calls.call import Call
from eval.calls.endpoint import Endpoint
from eval.calls.estimate import estimate
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Model, Plan
from eval.cases import Case, Item
from eval.healthbench import protocol
from eval.healthbench.notices import ALL_AT_ONCE, OTHER_TEMPLATE, OWN_GRADER
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
from eval.numbers.readers import read_run
from eval.numbers.summary import summarise
from eval.results.link import check_link
from eval.results.reread import run_at
from eval.results.verify import verify_run
from tests.examples import example_id_of, make_criterion, make_example, make_meta
from tests.gradings import decisions_of, example_mirror, grading_plan, results_of, write_answers
from tests.llm_server import LlmServer
from tests.plans import run

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


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    """Return a server that decides by an item's text alone, in both groupings."""
    with LlmServer() as one:
        yield one


def plan(mirror: Path, url: str | None = URL, **choices: Any) -> Plan:
    """Return the plan of a run that asks about all criteria at once."""
    return grading_plan(mirror, url, **{"grouping": "case", **choices})


def message(*, prompts: Prompts = BARE, ids: tuple[str, ...] = ("item_0", "item_1")) -> str:
    """Return the text of the one message about two items."""
    (sent,) = grader_all_messages(CASE, "Rest.", items=ITEMS, ids=ids, prompts=prompts)
    assert "user" == sent["role"]
    return sent["content"]


def judged(journal: Path) -> list[Call]:
    """Return a journal's judge calls, in file order."""
    return [call for call in read_journal(journal).calls if call.role == "judge"]


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


# -- a run


def test_a_call_an_example_decides_all_its_items(mirror: Path, server: LlmServer, tmp_path: Path) -> None:
    """Three judge calls instead of twelve, and the decisions of a judge that minds the item alone are the same."""
    before = len(server.requests)
    run(plan(mirror, server.url), tmp_path / "case.jsonl")
    asked = Counter(seen["role"] for seen in server.requests[before:])
    run(grading_plan(mirror, server.url), tmp_path / "item.jsonl", reuse=[tmp_path / "case.jsonl"])

    assert {"answer": N, "judge": N} == dict(asked)
    assert {"*"} == {call.group for call in judged(tmp_path / "case.jsonl")}
    assert decisions_of(tmp_path / "item.jsonl") == decisions_of(tmp_path / "case.jsonl")
    assert None not in decisions_of(tmp_path / "case.jsonl")


def test_the_summary_has_the_same_scores_and_says_how_they_were_asked(
    mirror: Path, server: LlmServer, tmp_path: Path
) -> None:
    """Means, tags and bounds are those of the decisions; the notices name the wording and the one call."""
    found = {}
    for of in ("case", "item"):
        run(grading_plan(mirror, server.url, grouping=of), tmp_path / f"{of}.jsonl")
        found[of] = summarise(read_run(tmp_path / f"{of}.jsonl"), software={})

    assert found["item"]["healthbench"] == found["case"]["healthbench"]
    assert found["item"]["overall_macro_mean"] == found["case"]["overall_macro_mean"]
    assert [OWN_GRADER, ALL_AT_ONCE] == found["case"]["notices"][:2]
    assert ALL_AT_ONCE not in found["item"]["notices"]


def test_a_users_template_is_noticed_too(mirror: Path, server: LlmServer, tmp_path: Path) -> None:
    """Another wording, and one call on all."""
    (tmp_path / "t.txt").write_text(f"Mine.\n{own_prompts_all().judge_user}")
    run(plan(mirror, server.url, grader_template=tmp_path / "t.txt"), tmp_path / "x.jsonl")
    notices = summarise(read_run(tmp_path / "x.jsonl"), software={})["notices"]

    assert [OTHER_TEMPLATE, ALL_AT_ONCE] == notices[:2]


def test_a_run_cut_after_any_line_asks_nothing_twice(mirror: Path, server: LlmServer, tmp_path: Path) -> None:
    """What stands in the file is not asked again, the rest is, once."""
    whole, cut, found = tmp_path / "x.jsonl", tmp_path / "cut.jsonl", plan(mirror, server.url)
    run(found, whole, concurrency=1)
    lines = whole.read_bytes().splitlines(keepends=True)
    for n in range(1 + N, len(lines)):
        cut.write_bytes(b"".join(lines[:n]))
        before = server.hits
        run(found, cut)
        assert len(lines) - n == server.hits - before, n
    assert decisions_of(whole) == decisions_of(cut)


def test_a_file_of_the_other_grouping_is_not_gone_on_with(mirror: Path, server: LlmServer, tmp_path: Path) -> None:
    """One file, one grouping; the fields that differ are named."""
    run(grading_plan(mirror, server.url), tmp_path / "x.jsonl")

    with pytest.raises(BadInput, match="grouping: 'item' in the file, 'case' now"):
        run(plan(mirror, server.url), tmp_path / "x.jsonl")


@pytest.mark.parametrize("fault", ["missing", "dup", "unknown", "strbool", "prose"])
def test_a_reply_that_is_not_one_decision_an_item_grades_nothing(mirror: Path, tmp_path: Path, fault: str) -> None:
    """Three replies, then the example has no score; what could be read of them is not taken."""
    with LlmServer({"fault": fault, "role": "judge", "contains": "fact 0.3,"}) as one:
        run(plan(mirror, one.url), tmp_path / "x.jsonl")
    case = read_run(tmp_path / "x.jsonl").cases[0]

    assert ["invalid_reply"] * 3 == [call.state for call in judged(tmp_path / "x.jsonl") if call.case_id == FIRST]
    assert ("failed", "invalid_reply", (None,) * 4) == (case.state, case.failed_state, case.decided)


def test_a_cut_reply_gets_twice_the_room_once(mirror: Path, tmp_path: Path) -> None:
    """2,368 tokens for four items, then 4,736."""
    with LlmServer({"fault": "cut", "role": "judge", "contains": "fact 0.3,", "times": 1}) as one:
        run(plan(mirror, one.url), tmp_path / "x.jsonl")
    about = [call for call in judged(tmp_path / "x.jsonl") if call.case_id == FIRST]

    assert [("truncated", 2368), ("ok", 4736)] == [(c.state, (c.sent or {})["max_completion_tokens"]) for c in about]


@pytest.mark.parametrize("id_style", ["short", "full"])
def test_given_completions_are_judged_word_for_word(mirror: Path, tmp_path: Path, id_style: str) -> None:
    """A file of answers, the builtin judge: an item is met iff it is a line of the answer."""
    texts = {FIRST: "\n".join(make_criterion(0, i)["criterion"] for i in (0, 3)), example_id_of(1): "Nothing."}
    given = write_answers(tmp_path / "a.jsonl", texts)
    run(plan(mirror, None, answers=given, id_style=id_style), tmp_path / "x.jsonl")

    assert [(True, False, False, True), (False,) * 4, None] == decisions_of(tmp_path / "x.jsonl")


def test_the_data_s_completions_are_judged(mirror: Path, server: LlmServer, tmp_path: Path) -> None:
    """--answers physician: a call for each of the two examples that have a completion, and no answer call."""
    before = len(server.requests)
    run(plan(mirror, server.url, answers="physician"), tmp_path / "x.jsonl")

    assert ["judge"] * 2 == [seen["role"] for seen in server.requests[before:]]
    assert PROTOCOL_ALL == read_journal(tmp_path / "x.jsonl").identity["protocol"]


# -- a jury, its results


@pytest.fixture(scope="module")
def jury(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the journal of two judges, three repeats, on answers that hold the items that earn points."""
    path = tmp_path_factory.mktemp("jury") / "x.jsonl"
    with LlmServer(judge="strict") as a, LlmServer(judge="moody") as b:
        judges = tuple(Judge(Model(name, Endpoint(of.url, None))) for name, of in (("a", a), ("b", b)))
        run(plan(mirror, None, judges=judges, repeats=3), path)
    return path


def test_a_jury_asks_each_judge_about_all(jury: Path) -> None:
    """Three examples, two judges, three repeats: 18 calls; a verdict needs both votes."""
    assert Counter({(judge, repeat): N for judge in range(2) for repeat in range(3)}) == Counter(
        (call.judge, call.repeat) for call in judged(jury)
    )
    for case in read_run(jury).cases:
        for index, met in enumerate(case.matched or ()):
            votes = [2 * sum(bool(repeat[index]) for repeat in of_judge) > 3 for of_judge in case.ballots]
            assert met is (votes[0] if len(set(votes)) == 1 else None)


@pytest.mark.parametrize("with_texts", [False, True], ids=["digests", "texts"])
def test_results_verify_and_read_back(jury: Path, mirror: Path, tmp_path: Path, with_texts: bool) -> None:
    """Tables, examples and summary follow from the decisions, and the rubric is the mirror's."""
    folder = results_of(jury, tmp_path / "out", with_texts=with_texts)
    again, first = run_at(tmp_path / "out"), read_run(jury)

    assert not verify_run(folder).findings
    assert [] == check_link(folder, mirror)
    assert [case.ballots for case in first.cases] == [case.ballots for case in again.cases]
    assert [case.item_tags for case in first.cases] == [case.item_tags for case in again.cases]
    assert (folder / "examples.parquet").is_file()


# -- one call against atomic calls


@pytest.fixture(scope="module")
def sides(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Side]:
    """Return runs on the same answers by grouping, and one item by item with a template that is not ours."""
    root = tmp_path_factory.mktemp("sides")
    (root / "t.txt").write_text("Mine. <<conversation>> <<rubric_item>> # Rubric item\nx\n\n# criteria_met")
    texts = {example_id_of(n): make_criterion(n, 0)["criterion"] for n in range(N)}
    given = write_answers(root / "a.jsonl", texts)
    ways: dict[str, dict[str, Any]] = {
        "case": {"grouping": "case"},
        "item": {"grouping": "item"},
        "mine": {"grouping": "item", "grader_template": root / "t.txt"},
    }
    with LlmServer(judge="hash") as one:
        for name, choices in ways.items():
            run(grading_plan(mirror, one.url, answers=given, **choices), root / f"{name}.jsonl")
    return {name: read_side(root / f"{name}.jsonl") for name in ways}


def test_an_audit_compares_our_two_wordings(sides: dict[str, Side]) -> None:
    """The templates differ by need: the pair that is ours is one judge in both modes; the text says so."""
    report = audit_report(sides["item"], sides["case"], samples=50, seed=1, software={})
    text = audit_text(report)

    assert (N, ["healthbench"]) == (report["n_answers"], list(report["panels"]))
    assert 1.0 == report["overall"]["agreement"]["equal"]["value"]
    assert (3, 12) == (report["cost"]["one_call"]["calls"], report["cost"]["atomic"]["calls"])
    assert "a difference between the modes may be one between the wordings" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_an_audit_refuses_a_wording_that_is_not_ours(sides: dict[str, Side]) -> None:
    """A user's template against our own is another judge, named by the field."""
    with pytest.raises(BadInput, match=r"differ in grouping only, found judges\.0\.template_sha256: "):
        audit_report(sides["case"], sides["mine"], samples=10, seed=1, software={})


def test_an_audit_reads_results_folders(sides: dict[str, Side], tmp_path: Path) -> None:
    """What the journals say, the folders say."""
    folders = {name: read_side(results_of(Path(sides[name].where), tmp_path / name)) for name in ("case", "item")}
    of_folders, of_journals = (
        audit_report(two["case"], two["item"], samples=50, seed=1, software={}) for two in (folders, sides)
    )

    assert of_journals["overall"] == of_folders["overall"]
