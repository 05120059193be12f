"""The command `run` killed, interrupted, started twice: nothing that is finished is lost or paid again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest
from typer.testing import CliRunner

from builder.mirror import build_mirror
from builder.tree.sources import open_source
from eval.calls.journal import read_journal
from eval.cases import read_cases
from eval.cli import app
from tests.llm_server import server_process
from tests.trees import write_tree

ROOT = Path(__file__).parent.parent
KEY = "sk-dummy-key-of-this-test"
ENVIRONMENT = {"OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
IN_FLIGHT = 4
TORN = b'{"v":1,"kind":"call","key":"cut'


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of two cases a panel."""
    root = tmp_path_factory.mktemp("kill")
    build_mirror(open_source(write_tree(root / "tree", 2)), root / "mirror")
    return root / "mirror"


@pytest.fixture
def server() -> Iterator[str]:
    """Return the root URL of a model server in a process of its own; a call takes 40 ms."""
    with server_process(latency_ms=40) as url:
        yield url


def _command(mirror: Path, url: str, output: Path, *more: str | Path) -> list[str]:
    """Return the arguments of a run."""
    models = ["--answer-model", "m", "--judge-model", "j", "--base-url", f"{url}/v1"]
    return ["run", *map(str, [mirror, "--output", output, *models, "--concurrency", IN_FLIGHT, *more])]


def _start(command: list[str]) -> subprocess.Popen[str]:
    """Start a command in a process of its own, as the script `bedside-bench` does."""
    line = [sys.executable, "-c", "from eval.cli import main; main()", *command]
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(line, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(command: list[str]) -> tuple[int, str, str]:
    """Run a command to its end in this process; return exit code, stdout and stderr."""
    done = CliRunner().invoke(app, command, env=ENVIRONMENT)
    return done.exit_code, done.stdout, done.stderr


def _wait_for_lines(path: Path, n: int) -> None:
    """Wait until a journal has n more lines than its first line and its 20 case lines."""
    until = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < 21 + n:
        assert time.monotonic() < until, f"{path} does not grow"
        time.sleep(0.002)


def _asked(url: str, mirror: Path) -> list[tuple[str, str]]:
    """Return (role, case id) of every request that the server got, in order."""
    with build_opener(ProxyHandler({})).open(f"{url}/requests") as response:
        requests = json.load(response)
    prompts = {case.prompt: case.case_id for case in read_cases(mirror).cases}
    found = []
    for seen in requests:
        user = seen["body"]["messages"][1]["content"]
        prompt = user.removeprefix("CLINICAL PROMPT:\n").partition("\n\nANSWER:\n")[0]
        found.append((seen["role"], prompts[prompt]))
    return found


def _finished(path: Path) -> set[tuple[str, str]]:
    return {(call.role, call.case_id) for call in read_journal(path).calls if call.done}


def _numbers(path: Path) -> dict[str, Any]:
    """Return a run's summary without times and usage."""
    summary = json.loads(path.with_suffix(".summary.json").read_bytes())
    return {name: value for name, value in summary.items() if name not in ("started_at", "finished_at", "usage")}


def test_a_run_killed_at_any_moment_goes_on_where_it_was(mirror: Path, server: str, tmp_path: Path) -> None:
    """SIGKILL after 0, 9 and 25 replies, and a line torn by hand: no finished unit is asked twice, the numbers hold."""
    path, moments = tmp_path / "x.jsonl", (0, 9, 25)
    command = _command(mirror, server, path)
    asked, finished = 0, set[tuple[str, str]]()
    for replies in moments:
        with _start(command) as process:
            _wait_for_lines(path, replies)
            process.kill()
        assert not finished & set(_asked(server, mirror)[asked:])
        asked, finished = len(_asked(server, mirror)), _finished(path)
        with path.open("ab") as journal:
            journal.write(TORN * (replies == 9))
    code, _, err = _finish(command)
    times = Counter(_asked(server, mirror))

    assert (0, 40) == (code, len(_finished(path))), err
    assert not finished & set(_asked(server, mirror)[asked:])
    assert TORN + b"\n" in (tmp_path / "x.jsonl.torn").read_bytes()
    assert sum(n - 1 for n in times.values()) <= len(moments) * IN_FLIGHT  # only what was in flight at a kill
    assert {1} == set(Counter((call.role, call.case_id) for call in read_journal(path).calls).values())

    assert 0 == _finish(_command(mirror, server, tmp_path / "whole.jsonl"))[0]
    assert _numbers(tmp_path / "whole.jsonl") == _numbers(path)


def test_a_second_run_is_refused_and_ctrl_c_says_how_to_go_on(mirror: Path, server: str, tmp_path: Path) -> None:
    """While one run has the file another is told who has it; Ctrl-C ends the first with 130 and what to do."""
    path = tmp_path / "x.jsonl"
    command = _command(mirror, server, path)
    with _start(command) as first:
        _wait_for_lines(path, 3)
        first.send_signal(signal.SIGSTOP)  # it keeps its lock, and does not end while the second starts
        code, _, refused = _finish(command)
        first.send_signal(signal.SIGCONT)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=30)
    again = _finish(command)

    assert (1, f"error: {path}: in use by another run (process {first.pid})") == (code, refused.split(";")[0])
    assert 130 == first.returncode
    assert f"interrupted; what is finished is in {path}: repeat the command to go on" in said
    assert "Traceback" not in said + refused
    assert 0 == again[0]
    assert KEY not in path.read_text() + said + refused + again[1] + again[2]


def test_ctrl_c_before_the_first_call_ends_with_130(mirror: Path, tmp_path: Path) -> None:
    """Ctrl-C while the command still reads its files ends like any other: exit code 130, no traceback."""
    os.mkfifo(tmp_path / "system.txt")
    command = _command(mirror, "http://127.0.0.1:1", tmp_path / "x.jsonl", "--system", tmp_path / "system.txt")
    with _start(command) as process:
        with (tmp_path / "system.txt").open("wb"):  # waits until the command reads the other end
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)

    assert (130, False) == (process.returncode, "Traceback" in said), said
