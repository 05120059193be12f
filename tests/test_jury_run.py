"""A jury end to end: three judges of different minds on three servers, some of their replies bad, killed in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builder.errors import BadInput
from eval.calls.endpoint import Endpoint
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Model, Plan
from eval.judging.graded import RunData
from eval.numbers.readers import read_run, summarise_run
from eval.numbers.summary import dumps_summary
from eval.results.folder import write_results
from eval.results.reread import run_at
from eval.results.verify import verify_run
from tests.gradings import SOFTWARE
from tests.llm_server import LlmServer
from tests.plans import case_set, make_plan, run

MINDS = ("strict", "lenient", "moody")
BAD = {"fault": "malformed", "role": "judge", "rate": 0.03}
PANELS = ["drug_safety", "safety_diagnostic"]


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[LlmServer, ...]]:
    """Three judges' servers: one misses, one sees too much, one changes its mind; 3 % of their replies are no JSON."""
    with LlmServer(BAD, judge="strict") as a, LlmServer(BAD, judge="lenient") as b, LlmServer(BAD, judge="moody") as c:
        yield a, b, c


def jury_plan(servers: tuple[LlmServer, ...], *, repeats: int = 3, grouping: str = "case", cases: int = 8) -> Plan:
    """Return a plan of the three judges on answers that hold the items that earn points."""
    judges = [
        Judge(Model(f"judge-{mind}", Endpoint(server.url, None)), vendor=f"vendor-{mind}")
        for mind, server in zip(MINDS, servers, strict=True)
    ]
    plan = make_plan(
        case_set(cases, PANELS),
        answer=Model("builtin:positive-items"),
        judges=judges,
        reading={"repeats": repeats, "grouping": grouping},
    )
    return replace(plan, answer_vendor="vendor-moody")


@pytest.fixture(scope="module")
def journal(servers: tuple[LlmServer, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of one whole jury run."""
    path = tmp_path_factory.mktemp("jury") / "x.jsonl"
    run(jury_plan(servers), path)
    return path


@pytest.fixture(scope="module")
def done(journal: Path) -> RunData:
    """That run, graded."""
    return read_run(journal)


def test_every_judge_is_called_every_time(journal: Path) -> None:
    """16 answers, 3 judges, 3 repeats: 144 questions, each with a reply that counts, and every bad reply stored too."""
    calls = [call for call in read_journal(journal).calls if call.role == "judge"]
    counted = Counter((call.judge, call.repeat) for call in calls if call.state == "ok")

    assert {(judge, repeat): 16 for judge in range(3) for repeat in range(3)} == dict(counted)
    assert 0 < sum(call.state == "invalid_reply" for call in calls) == len(calls) - 144
    assert len({call.key for call in calls}) == 144


def test_repeats_are_calls_of_their_own(done: RunData) -> None:
    """The moody judge says other things when asked again; the other two never do, and the summary says how often."""
    differing = [
        any(len(set(of_item)) > 1 for case in done.cases for of_item in zip(*case.ballots[judge], strict=True))
        for judge in range(3)
    ]

    assert [False, False, True] == differing
    assert any(
        notice.startswith("repeats of one judge on one question that came back equal") for notice in done.notices
    )


def test_the_verdicts_follow_from_the_texts(done: RunData) -> None:
    """Two of three votes decide; each vote is the majority of three replies, counted here once more."""
    for case in done.cases:
        assert case.matched is not None
        for at, met in enumerate(case.matched):
            votes = [2 * sum(bool(repeat[at]) for repeat in of_judge) > 3 for of_judge in case.ballots]
            assert met is (sum(votes) >= 2)


def test_personalities_show_in_the_scores(done: RunData) -> None:
    """Alone, the strict judge gives less than the whole jury; the judge of the answer's vendor is named."""
    summary = summarise_run(done, dialect="spec", samples=100, seed=42, software={})
    alone = {judge["model"]: judge["overall_macro_mean"] for judge in summary["jury"]["judges"]}

    assert alone["judge-strict"] < summary["overall_macro_mean"]
    assert any(
        "of the vendor of the answer model (vendor-moody) are also: judge-moody" in said for said in summary["notices"]
    )


def test_the_same_command_again_asks_nothing(servers: tuple[LlmServer, ...], journal: Path) -> None:
    """What a jury said is never paid for twice."""
    before = [server.hits for server in servers]
    run(jury_plan(servers), journal)

    assert before == [server.hits for server in servers]


def test_a_jury_of_other_repeats_is_another_run(servers: tuple[LlmServer, ...], journal: Path) -> None:
    """A file holds one jury: another number of repeats, or one judge less, is refused by name."""
    with pytest.raises(BadInput, match="repeats: 3 in the file, 1 now"):
        run(jury_plan(servers, repeats=1), journal)
    fewer = jury_plan(servers)
    with pytest.raises(BadInput, match="judges: "):
        run(replace(fewer, judges=fewer.judges[:2]), journal)


def test_more_repeats_reuse_what_was_paid(servers: tuple[LlmServer, ...], journal: Path, tmp_path: Path) -> None:
    """Five repeats after three ask two more times each; a repeat is never given the reply of another."""
    before = sum(server.hits for server in servers)
    run(jury_plan(servers, repeats=5), tmp_path / "five.jsonl", reuse=[journal])
    calls = [call for call in read_journal(tmp_path / "five.jsonl").calls if call.role == "judge" and call.done]

    assert {0, 1, 2} == {call.repeat for call in calls if call.reused_from}
    assert {3, 4} == {call.repeat for call in calls if not call.reused_from}
    assert 2 * 48 <= sum(server.hits for server in servers) - before < 2 * 48 * 1.2


def test_one_question_a_call_works_for_every_panel(servers: tuple[LlmServer, ...], tmp_path: Path) -> None:
    """Atomic grouping asks item by item, one decision a reply, and grades like any other run."""
    plan = jury_plan(servers, repeats=1, grouping="item", cases=2)
    run(plan, tmp_path / "x.jsonl")
    found = read_run(tmp_path / "x.jsonl")
    items = sum(len(case.items) for case in plan.cases)
    judged = [call for call in read_journal(tmp_path / "x.jsonl").calls if call.role == "judge" and call.done]

    assert {"graded"} == {case.state for case in found.cases}
    assert 3 * items == len(judged)
    assert "*" not in {call.group for call in judged}


@pytest.mark.parametrize("with_texts", [False, True], ids=["digests", "texts"])
def test_a_jurys_results_verify_and_read_back(journal: Path, tmp_path: Path, with_texts: bool) -> None:
    """Votes, verdicts, both bounds and every judge's score are computed again from the decisions table, all equal."""
    summary = summarise_run(read_run(journal), dialect="spec", seed=42, software=SOFTWARE)
    text = dumps_summary(summary).encode()
    written = write_results(journal, tmp_path / "out", summary_bytes=text, with_texts=with_texts)
    again = run_at(tmp_path / "out")

    assert not verify_run(tmp_path / "out").findings
    assert "a jury of 3 x 3 calls, its score the conservative bound" in (tmp_path / "out" / "README.md").read_text()
    assert [case.ballots for case in read_run(journal).cases] == [case.ballots for case in again.cases]
    assert 3 * 3 * sum(len(case.points) for case in again.cases) == _rows(written.path)


def _rows(folder: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(folder / "decisions.parquet").num_rows)


def test_a_jury_that_lost_some_calls_says_so(tmp_path: Path) -> None:
    """One of three judges is down: two that agree still decide, the others leave items open, and nothing is guessed."""
    down = {"fault": "500", "role": "judge"}
    with LlmServer(judge="verbatim") as a, LlmServer(judge="lenient") as b, LlmServer(down, judge="verbatim") as c:
        plan = jury_plan((a, b, c), repeats=1, cases=4)
        run(replace(plan, limits=replace(plan.limits, max_attempts=1)), tmp_path / "x.jsonl")
    found = read_run(tmp_path / "x.jsonl")
    summary = summarise_run(found, dialect="spec", samples=100, seed=42, software={})

    assert {"graded"} == {case.state for case in found.cases}
    assert summary["jury"]["items"]["unresolved"] > 0 == summary["jury"]["items"]["missing"]
    assert any(said.startswith("judge calls without a decision: 8 (transport 8)") for said in summary["notices"])
