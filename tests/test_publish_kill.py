"""The command `publish` in a process of its own: what it prints and asks, and what is left when it is killed."""

from __future__ import annotations

import os
import pty
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from builder.dataset.digests import folder_digest
from builder.hub.publication import Target
from tests.local_hub import LocalHub
from tests.mirrors import DRUG_SAFETY, change_rows
from tests.publishing import MIRROR, TOKEN, TOKENS, UNKNOWN, State, make_hub, methods, mirror_of, send, state
from tests.trees import write_tree

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
WHILE_ASLEEP: Mapping[str, Mapping[str, Any]] = {
    "done after all": {"mode": "delay", "delay": 0.7},
    "never done": {"mode": "drop", "delay": 0.7},
}
"""What becomes of the request that a killed command was waiting for."""
COMMIT, TAG = 12, 17
REQUESTS = TAG + 1


@pytest.fixture(scope="module")
def right(built: Path, tmp_path_factory: pytest.TempPathFactory) -> State:
    """Return the state after an undisturbed publication of `built` with its tag, which takes `REQUESTS`."""
    with make_hub() as hub:
        send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path_factory.mktemp("cache"))
        found, asked = state(hub, MIRROR), [line["path"] for line in hub.log]
    assert found is not None
    assert REQUESTS == len(asked)
    assert "/commit/" in asked[COMMIT]
    assert "/tag/" in asked[TAG]
    return found


def start(
    hub: LocalHub, home: Path, *arguments: str | Path, token: str | None = TOKEN, **pipes: Any
) -> subprocess.Popen[str]:
    """Start `bedside-bench publish` as a person does who is logged in with a token."""
    line = [sys.executable, "-c", "from eval.cli import main; main()", "publish", *map(str, arguments)]
    env = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"} | hub.env(token)
    env |= {"HF_HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error,ignore::DeprecationWarning"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | pipes
    return subprocess.Popen(line, env=env, cwd=home.parent, text=True, **pipes)


def finish(hub: LocalHub, home: Path, *arguments: str | Path, token: str | None = TOKEN) -> tuple[int, str, str]:
    """Run `bedside-bench publish` to its end and return its exit code and what it printed, which holds no token."""
    command = start(hub, home, *arguments, token=token)
    out, err = command.communicate(timeout=60)
    assert not any(secret in out + err for secret in (*TOKENS, UNKNOWN))
    assert "Traceback" not in err
    return command.returncode, out, err


def test_it_says_what_it_did(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """First it is published, then already there; the digests, the commit and the address are printed."""
    arguments = (built, MIRROR, "--tag", "v1")
    first = finish(hub, tmp_path / "home", *arguments)
    again = finish(hub, tmp_path / "home", *arguments)

    note = f"note: the card does not name {MIRROR}; a mirror built with --repo-id {MIRROR} does\n"
    assert (0, note) == (first[0], first[2])
    assert first[1].startswith(f"published: {MIRROR} (private, created)\nfiles          6 sent, 0 removed; read back")
    assert f"\nfolder digest  {folder_digest(built)}\n" in first[1]
    assert first[1].endswith(f"{hub.endpoint}/datasets/{MIRROR}/tree/v1\n")
    assert (0, "") == (again[0], again[2])
    assert again[1].startswith(f"already there, unchanged: {MIRROR} (private)\nfiles          0 sent, 0 removed")


def test_a_dry_run_changes_nothing(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """--dry-run lists what would be added and makes no repository, also a public one."""
    code, out, _ = finish(hub, tmp_path / "home", built, MIRROR, "--dry-run", "--public", "--tag", "v1")

    assert 0 == code
    assert out.startswith(f"would create {MIRROR} (public)\n  add     CITATION.cff  38 bytes\n  add     LICENSE")
    assert out.endswith("would tag      v1\ndry run: nothing was changed\n")
    assert {"GET"} == set(methods(hub))


def test_a_public_repository_is_confirmed_first(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """With nobody to ask, a public repository needs --yes; a private one does not."""
    code, out, err = finish(hub, tmp_path / "home", built, MIRROR, "--public")
    line = f"error: {MIRROR}: would become a public repository; nobody is here to confirm it: give --yes\n"

    assert (1, "", line) == (code, out, err)
    assert state(hub, MIRROR) is None
    assert 0 == finish(hub, tmp_path / "home", built, MIRROR, "--public", "--yes")[0]


def test_the_question_is_seen_and_no_means_no(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """In a terminal the question stays on the screen until it is answered; `n` makes nothing."""
    master, slave = pty.openpty()
    command = start(hub, tmp_path / "home", built, MIRROR, "--public", stdin=slave, stdout=slave, stderr=slave)
    seen = ""
    while "[y/N]" not in seen:
        seen += os.read(master, 4096).decode()
    os.write(master, b"n\n")
    assert 1 == command.wait(timeout=60)
    seen += os.read(master, 4096).decode()

    question = seen[seen.index(f"{MIRROR} does not exist") :]
    assert "PUBLIC repository, which everyone can read? [y/N]" in question
    assert "\x1b[2K" not in question.partition("error: ")[0]
    assert f"error: {MIRROR}: not created" in question
    assert state(hub, MIRROR) is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: write_tree(folder, 1), "found a source tree; build it: bedside-bench build"),
        (lambda folder: (folder / "runs").mkdir(parents=True), "publish what build or results wrote"),
        (Path, "expected a folder that build or results wrote, found none"),
    ],
    ids=["a source tree", "journals", "nothing"],
)
def test_what_no_build_wrote_is_not_published(
    hub: LocalHub, tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    """The one line says what to do with it first; the Hub is not asked."""
    make(tmp_path / "folder")
    code, _, err = finish(hub, tmp_path / "home", tmp_path / "folder", MIRROR)

    assert (1, 1, []) == (code, err.count("\n"), hub.log)
    assert words in err


def test_what_does_not_verify_is_not_published(hub: LocalHub, mirror: Path, tmp_path: Path) -> None:
    """A folder with a finding stops before the Hub is asked anything."""
    change_rows(mirror, DRUG_SAFETY, lambda rows: rows.clear())

    code, out, err = finish(hub, tmp_path / "home", mirror, MIRROR)

    assert (1, f"error: nothing was published: {mirror} does not verify (above)\n") == (code, err)
    assert f"{DRUG_SAFETY}: size: expected" in out
    assert [] == hub.log


@pytest.mark.parametrize("token", [None, UNKNOWN], ids=["no token", "unknown token"])
def test_without_a_good_token_it_says_so(hub: LocalHub, built: Path, tmp_path: Path, token: str | None) -> None:
    """One line on stderr that says how to log in, and exit code 1."""
    code, out, err = finish(hub, tmp_path / "home", built, MIRROR, token=token)

    why = "you are not logged in" if token is None else "the Hub does not accept your token"
    assert (1, "", f"error: {MIRROR}: {why}: log in (hf auth login) or set HF_TOKEN\n") == (code, out, err)


def killed_at(built: Path, number: int, then: str, work: Path) -> State | None:
    """Kill the command while it waits for a request, publish again at once, and return the state when all is quiet."""
    with make_hub(work / "hub") as hub:
        fault = hub.fault(after=number, **WHILE_ASLEEP[then])
        command = start(hub, work / "home", built, MIRROR, "--tag", "v1")
        until = time.monotonic() + 60
        while fault.hits <= number and time.monotonic() < until:
            time.sleep(0.005)
        stop(command)
        hub.faults.clear()
        send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=work / "cache")
        time.sleep(WHILE_ASLEEP[then]["delay"])
        return state(hub, MIRROR)


def stop(command: subprocess.Popen[str]) -> None:
    """Kill a command and wait for its end."""
    command.kill()
    command.communicate()


def killed(built: Path, jobs: list[tuple[int, str]], work: Path) -> dict[tuple[int, str], State | None]:
    """Return the states after killing at each of the requests, four at a time."""

    def job(number: int) -> State | None:
        folder = work / str(number)
        folder.mkdir()
        return killed_at(built, *jobs[number], folder)

    with ThreadPoolExecutor(4) as executor:
        return dict(zip(jobs, executor.map(job, range(len(jobs))), strict=True))


def test_killed_where_it_matters(built: Path, right: State, tmp_path: Path) -> None:
    """Killed while it commits or tags, whether that was still done or not: the next try ends right."""
    jobs = [(number, then) for number in (COMMIT, TAG) for then in WHILE_ASLEEP]

    assert dict.fromkeys(jobs, right) == killed(built, jobs, tmp_path)


def test_killed_at_any_request(built: Path, right: State, tmp_path: Path) -> None:
    """The same at every request."""
    jobs = [(number, then) for number in range(REQUESTS) for then in WHILE_ASLEEP]

    assert dict.fromkeys(jobs, right) == killed(built, jobs, tmp_path)


def test_killed_at_random_moments(hub: LocalHub, built: Path, right: State, tmp_path: Path) -> None:
    """Killed again and again, soon or late in its work, the command ends right when it is let."""
    pauses = random.Random(7)
    for _ in range(12):
        before = len(hub.log)
        command = start(hub, tmp_path / "home", built, MIRROR, "--tag", "v1")
        while len(hub.log) == before and command.poll() is None:
            time.sleep(0.001)
        time.sleep(pauses.uniform(0, 0.15))
        stop(command)
        hub.log.append({"method": "KILL", "path": "", "status": 0})

    assert 0 == finish(hub, tmp_path / "home", built, MIRROR, "--tag", "v1")[0]
    assert right == state(hub, MIRROR)
