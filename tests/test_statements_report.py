"""A run that lists statements: every list is kept, judges are merged, and what is not known is null with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Model
from eval.statements.listed import listed_documents
from eval.statements.report import statements_report
from eval.statements.text import statements_text
from tests.journals import write_journal
from tests.listings import INVENTED, MORE, SAID, judge_at, plan_of
from tests.llm_server import LlmServer
from tests.plans import run


@pytest.fixture
def servers() -> Iterator[dict[str, LlmServer]]:
    """Three stand-in judges: one lists what is invented, one everything, one nothing."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(LlmServer(judge=name)) for name in ("plain", "strict", "lenient")}


def _report(journal: Path) -> dict[str, Any]:
    return statements_report(read_journal(journal), samples=5000, software={})


def _jury(servers: dict[str, LlmServer], **vendors: str) -> list[Judge]:
    return [judge_at(server.url, name, vendor=vendors.get(name)) for name, server in servers.items()]


def _documents(report: dict[str, Any]) -> dict[str, tuple[int | None, int | None]]:
    return {one["case_id"]: (one["confirmed"], one["provisional"]) for one in report["documents"]}


def test_three_judges_confirm_what_two_of_them_list(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """Invented lines are listed by two judges and confirmed; what the strict one alone lists is provisional."""
    outcome, _ = run(plan_of(tmp_path, *_jury(servers)), tmp_path / "x.jsonl")
    report = _report(tmp_path / "x.jsonl")

    assert outcome.stopped is None
    assert {"clean": (0, 1), "one": (1, 1), "two": (2, 1)} == _documents(report)
    assert [9, 9, 9] == [judge["n_lists"] for judge in report["judges"]]
    assert (3, 3, 1.0) == tuple(report["confirmed"][name] for name in ("total", "n", "per_document"))
    assert [0.0, 2.0] == report["confirmed"]["ci95"]
    assert 0 == report["n_unanimous"]


def test_every_list_is_kept(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """The report holds each list by judge and repeat, and each statement names its judges."""
    run(plan_of(tmp_path, *_jury(servers), repeats=2), tmp_path / "x.jsonl")
    one = _report(tmp_path / "x.jsonl")["documents"][1]

    assert [[[INVENTED]] * 2, [[SAID, INVENTED]] * 2, [[]] * 2] == one["lists"]
    assert [(INVENTED, "confirmed", [0, 1]), (SAID, "provisional", [1])] == [
        (found["text"], found["status"], found["judges"]) for found in one["statements"]
    ]
    assert all(found["quoted"] for found in one["statements"])


def test_systems_and_juries_without_a_judge_are_shown_apart(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """Counts stand by system, and for the jury without each judge and without a vendor that has several."""
    run(plan_of(tmp_path, *_jury(servers, plain="A", strict="A", lenient="B"), repeats=1), tmp_path / "x.jsonl")
    report = _report(tmp_path / "x.jsonl")

    assert {"scribe-1": 1, "scribe-2": 2} == {
        name: of_it["confirmed"]["total"] for name, of_it in report["systems"].items()
    }
    assert [("plain", 2, 0), ("strict", 2, 0), ("lenient", 2, 3)] == [
        (left["model"], left["n_judges"], left["confirmed"]["total"]) for left in report["without_judge"]
    ]
    assert [("A", 1, None), ("B", 2, 3)] == [
        (left["vendor"], left["n_judges"], left["confirmed"]["total"]) for left in report["without_vendor"]
    ]
    assert "needs >= 2 judges" == report["without_vendor"][0]["confirmed"]["reason"]
    assert "judges of one vendor (A), whose errors may go together: plain, strict" in report["notices"]
    assert "vendor B" not in statements_text(report)  # of one judge, its own row says it


def test_a_single_judge_confirms_nothing(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """Its list is provisional, the confirmed count null with the reason, and a vendor that it shares is said."""
    judge = judge_at(servers["plain"].url, "plain", vendor="A")
    run(plan_of(tmp_path, judge, system_vendor="A"), tmp_path / "x.jsonl")
    report = _report(tmp_path / "x.jsonl")

    assert (None, "needs >= 2 judges") == (report["confirmed"]["total"], report["confirmed"]["reason"])
    assert 3 == report["provisional"]["total"]
    assert {"clean": (None, 0), "one": (None, 1), "two": (None, 2)} == _documents(report)
    assert ([], None) == (report["without_judge"], report["n_unanimous"])
    assert "one judge: nothing is left without it" == report["without_judge_reason"]
    assert any(
        "the only judge, plain, and the documents' model are of one vendor (A)" in said for said in report["notices"]
    )


@pytest.mark.parametrize("fault", ["malformed", "prose", "cut", "missing", "strbool", "nullbool", "think"])
def test_a_reply_that_lists_nothing_readable_is_asked_for_again(
    tmp_path: Path, servers: dict[str, LlmServer], fault: str
) -> None:
    """A bad reply is never "nothing was made up": the next one is read, and both stay in the journal."""
    server = servers["plain"]
    server.script({"fault": fault, "contains": MORE, "times": 1})
    run(plan_of(tmp_path, judge_at(server.url, "plain"), repeats=1), tmp_path / "x.jsonl", concurrency=1)
    report = _report(tmp_path / "x.jsonl")

    assert [("plain", 3, 3)] == [(one["model"], one["n_lists"], one["statements"]["total"]) for one in report["judges"]]
    assert 4 == len(server.requests)


def test_a_document_without_a_judges_list_has_no_counts(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """Three bad replies to most calls of a judge: the document is listed as failed and left out of the means."""
    servers["strict"].script({"fault": "malformed", "contains": MORE})
    run(plan_of(tmp_path, *_jury(servers)), tmp_path / "x.jsonl")
    report = _report(tmp_path / "x.jsonl")

    assert (None, None) == _documents(report)["two"]
    assert (2, 1, 0) == tuple(report[f"n_{state}"] for state in ("listed", "failed", "pending"))
    assert (1, 2) == (report["confirmed"]["total"], report["confirmed"]["n"])
    assert [("two", "failed", [1], "no list of 1 of 3 judges")] == [
        (one["case_id"], one["state"], one["judges"], one["reason"]) for one in report["without_counts"]
    ]
    assert "documents without counts: 1 failed" in statements_text(report)


def test_the_same_run_goes_on_where_it_stopped(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """A run stopped in the middle has pending documents without counts; the second start pays only for the rest."""
    server, plan = servers["plain"], plan_of(tmp_path, *_jury(servers), repeats=1)
    servers["strict"].script({"fault": "401", "contains": MORE, "times": 1})
    stopped, _ = run(plan, tmp_path / "x.jsonl", concurrency=1)
    report = _report(tmp_path / "x.jsonl")

    assert stopped.stopped is not None
    assert report["n_failed"] + report["n_pending"] == 1
    assert (None, None) == _documents(report)["two"]
    before = len(server.requests)
    run(plan, tmp_path / "x.jsonl")
    assert before == len(server.requests)
    assert (2, 1) == _documents(_report(tmp_path / "x.jsonl"))["two"]


def test_the_report_is_json_and_its_text_fits_a_screen(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """Long and odd statements are wrapped to 80 columns, control characters do not reach the screen."""
    odd = f"{'Very long statement ' * 20}\x1b[31mred\u202e"
    documents = [{"id": "a" * 120, "source": SAID, "document": odd}]
    run(plan_of(tmp_path, *_jury(servers), documents=documents), tmp_path / "x.jsonl")
    report = _report(tmp_path / "x.jsonl")
    text = statements_text(report)

    assert report == json.loads(json.dumps(report, allow_nan=False))
    assert "bedside-bench/statements/1" == report["format"]
    assert 80 >= max(map(len, text.split("\n")))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "an interval needs two documents" == report["confirmed"]["reason"]


def test_another_kind_of_run_is_refused(tmp_path: Path) -> None:
    """A journal of decisions holds no lists."""
    with pytest.raises(BadInput, match="statements: expected a run that lists statements"):
        listed_documents(read_journal(write_journal(tmp_path / "x.jsonl")))


def test_a_judge_that_reads_no_source_is_refused(tmp_path: Path, servers: dict[str, LlmServer]) -> None:
    """A built-in judge, none, one twice, or one that wants item ids ends in one line before anything is asked."""
    judge = judge_at(servers["plain"].url, "plain")
    for judges in ((), (judge, judge), (Judge(Model("builtin:verbatim")),), (replace(judge, id_style="short"),)):
        with pytest.raises(BadInput, match="judge"):
            plan_of(tmp_path, *judges)
