"""The command `statements`: from a file of documents to a journal and its report, and on where it stopped."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner, Result

from eval.statements.cli import statements
from tests.journals import write_journal
from tests.listings import DOCUMENTS, MORE, SAID, write_documents
from tests.llm_server import LlmServer

app = Typer(pretty_exceptions_enable=False)
app.command("statements")(statements)


def _command(folder: Path, *words: str, env: dict[str, str] | None = None) -> Result:
    """Run the command in a folder without any key of the environment."""
    keys = {name: None for name in os.environ if name.startswith("OPENAI_")}
    return CliRunner().invoke(app, ["--output", str(folder / "x.jsonl"), *words], env={**keys, **(env or {})})


def _jury(folder: Path, *urls: str) -> list[str]:
    """Return the words that name a file of documents and a judge at each server."""
    words = [str(write_documents(folder / "docs.jsonl"))]
    for number, url in enumerate(urls):
        words += ["--judge-model", f"judge-{number}", "--judge-base-url", url]
    return [*words, "--uncertified", "--certificates", str(folder / "none")]


def _report(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "x.statements.json").read_text(encoding="utf-8"))
    return report


def test_two_judges_list_and_confirm(tmp_path: Path) -> None:
    """Documents and two judges give a journal, a report beside it, and a table with the statements themselves."""
    with LlmServer(judge="plain") as plain, LlmServer(judge="strict") as strict:
        done = _command(tmp_path, *_jury(tmp_path, plain.url, strict.url))
    report = _report(tmp_path)

    assert 0 == done.exit_code, done.output
    assert (3, 3) == (report["confirmed"]["total"], report["provisional"]["total"])
    assert (2, 3) == (report["n_judges"], report["repeats"])
    assert report["certificate"].startswith("uncertified")
    assert re.search(r"confirmed \(2 judges or more\) +3 +3 +1\.000", done.stdout)
    assert f"confirmed, judge 1, 2: {MORE}" in done.stdout
    assert f"provisional, judge 2: {SAID}" in done.stdout
    assert 80 >= max(map(len, done.stdout.split("\n")))


def test_the_same_command_goes_on_and_pays_once(tmp_path: Path) -> None:
    """A judge that could not be read leaves a document without counts, exit 1; the second start asks only for it."""
    with LlmServer(judge="plain") as server:
        words = _jury(tmp_path, server.url)
        server.script({"fault": "malformed", "contains": MORE})
        first = _command(tmp_path, *words)
        asked = len(server.requests)
        counts = _report(tmp_path)["provisional"]["n"]
        server.script()
        second = _command(tmp_path, *words)
        third = _command(tmp_path, *words)
        again = len(server.requests) - asked

    assert [1, 0, 0] == [first.exit_code, second.exit_code, third.exit_code]
    assert "without counts: two: no list of 1 of 1 judges: expected one JSON object" in first.stderr
    assert (2, 3) == (counts, _report(tmp_path)["provisional"]["n"])
    assert (3 + 3 + 9, 3) == (asked, again)


def test_a_report_is_made_again_without_a_network(tmp_path: Path) -> None:
    """--summarize-only writes the same report from the journal alone, and --json prints it and nothing else."""
    with LlmServer(judge="plain") as server:
        _command(tmp_path, *_jury(tmp_path, server.url))
    report = _report(tmp_path)
    (tmp_path / "x.statements.json").unlink()
    done = _command(tmp_path, "--summarize-only", "--json")

    assert 0 == done.exit_code
    assert report == _report(tmp_path) == json.loads(done.stdout)
    assert done.stdout.startswith('{\n  "format"')


def test_limits_of_a_call_can_be_set(tmp_path: Path) -> None:
    """A server that fails is tried as often as --max-attempts says, and the run's identity names the limits."""
    with LlmServer(judge="plain") as server:
        server.script({"fault": "500", "contains": MORE})
        words = ("--max-attempts", "1", "--timeout", "5", "--deadline", "9", "--repeats", "1")
        done = _command(tmp_path, *_jury(tmp_path, server.url), *words)
        asked = len(server.requests)
    header = json.loads((tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()[0])

    assert (1, 3) == (done.exit_code, asked)
    assert {"max_attempts": 1, "timeout_s": 5.0, "deadline_s": 9.0} == header["identity"]["limits"]


def test_a_dry_run_sends_nothing(tmp_path: Path) -> None:
    """It prints how many calls each system's documents take, needs no key, and writes no file."""
    done = _command(tmp_path, *_jury(tmp_path, "https://a.invalid/v1", "https://b.invalid/v1"), "--dry-run")

    assert 0 == done.exit_code, done.output
    assert "judge: judge-1 at https://b.invalid" in done.stdout
    assert re.search(r"^total +3 +0 +18 ", done.stdout, re.MULTILINE)
    assert ["docs.jsonl"] == [path.name for path in tmp_path.iterdir()]


def test_judges_without_a_certificate_are_refused(tmp_path: Path) -> None:
    """Even a single judge needs one to list statements; nothing is asked before."""
    with LlmServer() as server:
        words = [word for word in _jury(tmp_path, server.url) if word != "--uncertified"]
        done = _command(tmp_path, *words, "--repeats", "1")
        asked = len(server.requests)

    assert (1, 0) == (done.exit_code, asked)
    assert "error: " in done.stderr
    assert "--uncertified" in done.stderr


REFUSED = {
    "no documents": ((), 2, "DOCS.jsonl is missing"),
    "another suffix": (("--output", "x.json"), 2, "must end in .jsonl"),
    "an unknown form": (("DOCS", "--judge-format", "xml"), 2, "--judge-format"),
    "a file that is not there": (("nowhere.jsonl",), 1, "nowhere.jsonl: expected a file of documents"),
    "a built-in judge": (("DOCS", "--judge-model", "builtin:verbatim"), 1, "a built-in judge reads no source"),
    "one judge twice": (("DOCS", "--judge-model", "j", "--judge-model", "j"), 1, "expected each judge once"),
    "no key": (("DOCS", "--judge-model", "j", "--judge-base-url", "https://a.invalid/v1"), 1, "no API key"),
}


@pytest.mark.parametrize(("words", "code", "message"), REFUSED.values(), ids=list(REFUSED.keys()))
def test_wrong_choices_end_in_one_line(tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """What cannot be run is said before anything is sent."""
    path = write_documents(tmp_path / "docs.jsonl")
    local = ["--judge-base-url", "http://127.0.0.1:9/v1"] if "--judge-base-url" not in words else []
    done = _command(tmp_path, *(str(path) if word == "DOCS" else word for word in words), *local)

    assert code == done.exit_code
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.stderr).split())


def test_bad_documents_are_all_named(tmp_path: Path) -> None:
    """Each problem of the file has its own line on the screen."""
    path = write_documents(tmp_path / "docs.jsonl", [*DOCUMENTS, {"id": "x"}, DOCUMENTS[0]])
    done = _command(tmp_path, str(path))

    assert 1 == done.exit_code
    assert 4 == done.stderr.count(f"{path}:")


def test_a_journal_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    """Neither a report is made of a run that holds decisions, nor is such a run gone on with."""
    before = write_journal(tmp_path / "x.jsonl").read_bytes()
    with LlmServer() as server:
        summarised = _command(tmp_path, "--summarize-only")
        done = _command(tmp_path, *_jury(tmp_path, server.url))

    assert [1, 1] == [summarised.exit_code, done.exit_code]
    assert "found one of suite bedside-bench" in summarised.stderr
    assert "holds another run; " in done.stderr
    assert before == (tmp_path / "x.jsonl").read_bytes()
