"""HealthBench runs with one call about all criteria: what is asked and kept, a jury, results, and the audit."""

from __future__ import annotations

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
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Model, Plan
from eval.healthbench.notices import ALL_AT_ONCE, OTHER_TEMPLATE, OWN_GRADER
from eval.healthbench.protocol import (
    PROTOCOL_ALL,
    own_prompts_all,
)
from eval.numbers.readers import read_run
from eval.numbers.summary import summarise
from eval.results.link import check_link
from eval.results.reread import run_at
from eval.results.verify import verify_run
from tests.examples import example_id_of, make_criterion, make_example
from tests.gradings import decisions_of, example_mirror, grading_plan, results_of, write_answers
from tests.llm_server import LlmServer
from tests.plans import run

URL = "http://127.0.0.1:1/v1"
N = 3
FIRST = example_id_of(0)


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


def judged(journal: Path) -> list[Call]:
    """Return a journal's judge calls, in file order."""
    return [call for call in read_journal(journal).calls if call.role == "judge"]


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
