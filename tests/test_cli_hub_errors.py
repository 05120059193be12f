"""The commands at a Hub that says no, or nothing: one line that says what to do, exit code 1, no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from builder.hub.client import make_api
from tests.at_hub import RESULTS, TOKEN, client_at, command, make_hub, process, put, run_names
from tests.local_hub import LocalHub
from tests.publishing import READS, UNKNOWN, history

pytestmark = pytest.mark.slow

COMMANDS = {
    "verify": ["verify", "{repo}"],
    "verify --full": ["verify", "{repo}", "--full"],
    "runs": ["runs", "{repo}"],
    "fetch": ["fetch", "{repo}", "2026", "--out", "got"],
    "run": ["run", "{repo}", "--answer-model", "builtin:refuse", "--judge-model", "builtin:verbatim", "-o", "x.jsonl"],
    "check": ["check", "{repo}"],
}
LOG_IN = "log in (hf auth login) or set HF_TOKEN"


@pytest.fixture(scope="module")
def hub(made: Path) -> Iterator[LocalHub]:
    """A Hub with the results, and with a run in a gated repository; the client has an empty cache."""
    with make_hub() as running, client_at(running, made / "cache"):
        put(running, made / "out", RESULTS, cache=made / "cache")
        put(running, made / "out" / "runs" / run_names(made)[0], "org/gated", cache=made / "cache")
        api = make_api(running.endpoint, TOKEN)
        api.update_repo_settings("org/gated", repo_type="dataset", gated="auto")
        api.create_repo("alice/private", repo_type="dataset", private=True)
        yield running


def error_of(name: str, repo: str) -> str:
    """Run a command that must end with exit code 1 and one line; return what the line says after the repository."""
    code, out, err = command(*(word.format(repo=repo) for word in COMMANDS[name]))
    line = err.removesuffix("\n")

    assert (1, "") == (code, out)
    assert line.startswith(f"error: {repo}")
    assert "\n" not in line
    return line.removeprefix(f"error: {repo}").removeprefix(" (no folder here has that name)").removeprefix(": ")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_token_that_the_hub_does_not_know(
    hub: LocalHub, here: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """401: log in; the token itself is not shown."""
    monkeypatch.setenv("HF_TOKEN", UNKNOWN)

    assert f"the Hub does not accept your token: {LOG_IN}" == error_of(name, RESULTS)
    assert (hub.log[-1]["status"], [*here.iterdir()]) == (401, [])


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("token", ["", READS], ids=["nobody", "somebody else"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_repository_that_is_not_there_or_hidden(
    here: Path, name: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """404, or 401 for nobody: which of the two a private repository is, the Hub does not say."""
    monkeypatch.setenv("HF_TOKEN", token)

    for repo in ("org/none", "alice/private"):
        said = f"no such repository, or hidden from you: check the name, and {LOG_IN}"
        assert said == error_of(name, repo)
    assert [] == list(here.iterdir())


@pytest.mark.usefixtures("hub", "here")
@pytest.mark.parametrize("revision", ["v9", "refs/pr/7", "f" * 40])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_revision_that_is_not_there(name: str, revision: str) -> None:
    """A tag, pull request or commit that the repository lacks is named with it."""
    assert "no such branch, tag or commit in this repository" == error_of(name, f"{RESULTS}@{revision}")


@pytest.mark.usefixtures("here", "hub")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_gated_repository(made: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a gated repository need an account that was let in: the line says where to ask."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(made / f"cache-of-{name}"))
    monkeypatch.setenv("HF_TOKEN", "")
    code, _, err = command(*(word.format(repo="org/gated") for word in COMMANDS[name]))

    assert 1 == code
    assert f": is gated: ask for access on its page with the account of your token, and {LOG_IN}\n" in err
    assert 1 == len(err.splitlines())


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_token_that_may_not(hub: LocalHub, name: str) -> None:
    """403: the Hub's own words, and what token is needed."""
    fault = hub.fault(path="/api/datasets/", status=403, times=9, body='{"error": "Not for you"}')
    try:
        assert error_of(name, RESULTS).startswith("your token may not do this (Not for you")
    finally:
        hub.faults.remove(fault)


@pytest.mark.usefixtures("here", "hub")
@pytest.mark.parametrize("name", COMMANDS)
def test_no_hub_at_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing answers the line says so, after the last try."""
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("builder.hub.client.MOST_TRIES", 1)

    said = "the Hub could not be read: no answer from the Hub (ConnectError); try again later"
    assert said == error_of(name, RESULTS)


def test_offline_is_said(hub: LocalHub, tmp_path: Path) -> None:
    """With HF_HUB_OFFLINE nothing is asked, and the line names the variable; no traceback."""
    hub.log.clear()
    done = process(hub, tmp_path, "verify", RESULTS, HF_HUB_OFFLINE="1")

    assert (1, "", []) == (done.returncode, done.stdout, hub.log)
    assert (
        f"error: {RESULTS} (no folder here has that name): the Hub is needed, but HF_HUB_OFFLINE is set; unset it\n"
        == done.stderr
    )


def test_offline_is_said_where_only_a_part_is_in_the_cache(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """After one run was fetched, all of that commit offline is an error that names the variable, without more tries."""
    place = f"{RESULTS}@{history(hub, RESULTS)[-1]}"
    fetched = process(hub, tmp_path, "fetch", place, run_names(made)[0], "--out", "got")
    done = process(hub, tmp_path, "verify", place, "--full", HF_HUB_OFFLINE="1")

    assert (0, 1, "") == (fetched.returncode, done.returncode, done.stdout)
    assert done.stderr.endswith("the Hub is needed, but HF_HUB_OFFLINE is set; unset it\n")
