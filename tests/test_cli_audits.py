"""The commands `audit` and `variance`, on journals and results folders of runs that really asked a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from eval.audits.cli import audit, variance
from eval.calls.answers import GivenAnswer, GivenAnswers, read_answers
from eval.calls.endpoint import Endpoint
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Model
from tests.gradings import results_of
from tests.llm_server import LlmServer
from tests.plans import case_set, make_plan, run

PANELS = ["drug_safety", "safety_therapeutic"]


def _call(*arguments: object) -> Result:
    app = typer.Typer()
    app.command("audit")(audit)
    app.command("variance")(variance)
    return CliRunner().invoke(app, list(map(str, arguments)))


def _json(*arguments: object) -> dict[str, Any]:
    found = _call(*arguments, "--json")
    assert 0 == found.exit_code, found.output
    report: dict[str, Any] = json.loads(found.stdout)
    return report


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the journals of one run in each mode: two judges, two repeats, the same answers."""
    folder = tmp_path_factory.mktemp("runs")
    one, atomic = folder / "one.jsonl", folder / "atomic.jsonl"
    with LlmServer() as server:
        at = Endpoint(server.url, "sk-dummy-key")
        asked: dict[str, Any] = {"judges": [Judge(Model(name, at)) for name in ("judge-a", "judge-b")]}
        run(make_plan(case_set(3, PANELS), url=server.url, reading={"repeats": 2}, **asked), one)
        reading = {"repeats": 2, "grouping": "item", "answer_temperature": None}
        run(make_plan(case_set(3, PANELS), url=server.url, reading=reading, given=read_answers(one), **asked), atomic)
    return one, atomic


def test_an_audit_of_two_journals(runs: tuple[Path, Path]) -> None:
    """A server that decides by the item alone: both modes agree on all, atomic asks once an item, tokens are known."""
    report = _json("audit", *runs, "--bootstrap-samples", 50)
    cost, overall = report["cost"], report["overall"]
    heads = read_journal(runs[0]).cases

    assert 6 == report["n_answers"]
    assert 1.0 == overall["agreement"]["equal"]["value"]
    assert 1.0 == overall["agreement"]["again_atomic"]["value"]
    assert 6 * 4 == cost["one_call"]["calls"] == cost["one_call"]["questions"]
    assert 4 * sum(len(head.items) for head in heads) == cost["atomic"]["calls"]
    assert cost["ratio"]["input_tokens"] > 1
    assert 0.0 == overall["score"]["value"]


def test_an_audit_of_folders_says_the_same(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Results folders, in the other order, give the same numbers; their digests stand in for the answers' texts."""
    folders = [results_of(journal, tmp_path / journal.stem) for journal in reversed(runs)]
    of_folders, of_journals = (_json("audit", *two, "--bootstrap-samples", 50) for two in (folders, runs))

    assert of_journals["overall"] == of_folders["overall"]
    assert of_journals["cost"] == of_folders["cost"]
    # A folder knows the tokens of its whole run only.
    assert of_folders["panels"]["drug_safety"]["cost"]["ratio"]["calls"] is None
    assert of_folders["panels"]["drug_safety"]["cost"]["reason"]


def test_the_text_of_an_audit_fits_80_columns(runs: tuple[Path, Path]) -> None:
    """A line a panel, the effects, what both modes cost, and why nothing is decided on three cases a panel."""
    found = _call("audit", *runs, "--bootstrap-samples", 50)

    assert 0 == found.exit_code
    assert "too few: 3 of at least 10 cases" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 80


def test_two_runs_in_one_mode_are_refused(runs: tuple[Path, Path]) -> None:
    """A run against itself: one clear line and exit code 1."""
    found = _call("audit", runs[0], runs[0])

    assert 1 == found.exit_code
    assert "error: audit: expected one run with --grouping case and one with --grouping item" in found.stderr


def test_other_answers_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """An atomic run on other answers to the same cases is refused with the first case and what to do."""
    case_ids = [case.case_id for case in case_set(3, PANELS).cases]
    other = GivenAnswers({name: [GivenAnswer("another", "ok")] for name in case_ids}, "m", "1" * 64)
    with LlmServer() as server:
        at = Endpoint(server.url, "sk-dummy-key")
        judges = [Judge(Model(name, at)) for name in ("judge-a", "judge-b")]
        reading = {"repeats": 2, "grouping": "item", "answer_temperature": None}
        plan = make_plan(case_set(3, PANELS), url=server.url, reading=reading, given=other, judges=judges)
        run(plan, tmp_path / "other.jsonl")
    found = _call("audit", runs[0], tmp_path / "other.jsonl")

    assert 1 == found.exit_code
    assert "expected the same answers in both runs, found 6 that differ" in found.stderr


def test_the_variance_of_a_run(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """A jury run's budget, the same from its journal and its folder; with --add the steps are larger."""
    report = _json("variance", runs[0])

    assert report == _json("variance", results_of(runs[0], tmp_path / "results"))
    assert {"panels": 2, "cases_a_panel": 3.0, "answers": 1, "judges": 2, "repeats": 2} == report["overall"]["design"]
    assert 6 * (1 + 4) == report["overall"]["calls"]
    assert 6 * 2 * 2 == _json("variance", runs[0], "--add", 2)["overall"]["next"]["repeat"]["calls"]
    assert "where the variance of the mean score lies" in _call("variance", runs[0]).stdout


def test_a_variance_of_no_journal_is_one_line(tmp_path: Path) -> None:
    """A file that is not there: one clear line, exit code 1."""
    found = _call("variance", tmp_path / "none.jsonl")

    assert 1 == found.exit_code
    assert found.stderr.startswith("error: ")
