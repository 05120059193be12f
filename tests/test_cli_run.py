"""The command `run`: which key goes where, and what it says where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.llm_server import LlmServer
from tests.mirrors import build_tiny

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-c", "from eval.cli import main; main()", "run"]
ACCESS, API, NAMED = "sk-access-0123456789", "sk-api-0123456789", "sk-named-0123456789"


def _run(folder: Path, url: str, *options: str, **keys: str) -> subprocess.CompletedProcess[str]:
    """Run the two cases of a mirror with only the given keys in the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    models = ["--answer-model", "m", "--judge-model", "j", "--base-url", url]
    words = [str(build_tiny(folder).folder), *models, "--output", str(folder / "x.jsonl"), *options]
    return subprocess.run([*COMMAND, *words], cwd=ROOT, env=kept | keys, capture_output=True, text=True, check=False)


KEYS = {
    "access token first": ((), {"OPENAI_ACCESS_TOKEN": ACCESS, "OPENAI_API_KEY": API}, {ACCESS}, {ACCESS}),
    "then the api key": ((), {"OPENAI_API_KEY": API}, {API}, {API}),
    "a named variable wins": (("--api-key-env", "MINE"), {"MINE": NAMED, "OPENAI_API_KEY": API}, {NAMED}, {NAMED}),
    "another for the judge": (
        ("--judge-api-key-env", "MINE"),
        {"MINE": NAMED, "OPENAI_API_KEY": API},
        {API},
        {NAMED},
    ),
}


@pytest.mark.parametrize(("options", "keys", "answer", "judge"), KEYS.values(), ids=KEYS.keys())
def test_each_role_is_asked_with_its_key(
    tmp_path: Path, options: tuple[str, ...], keys: dict[str, str], answer: set[str], judge: set[str]
) -> None:
    """OPENAI_ACCESS_TOKEN comes before OPENAI_API_KEY, a named variable before both; no file or screen holds a key."""
    with LlmServer() as server:
        done = _run(tmp_path, server.url, *options, **keys)
        sent = {
            role: {
                seen["headers"]["authorization"].removeprefix("Bearer ")
                for seen in server.requests
                if seen["role"] == role
            }
            for role in ("answer", "judge")
        }
    written = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("x.*"))

    assert 0 == done.returncode, done.stderr
    assert {"answer": answer, "judge": judge} == sent
    assert not [key for key in keys.values() if key in written + done.stdout + done.stderr]


def test_a_server_elsewhere_needs_a_key(tmp_path: Path) -> None:
    """Without a key nothing is sent to a host that is not this machine: one line names the host and the variables."""
    done = _run(tmp_path, "https://models.invalid/v1")

    assert 1 == done.returncode
    assert done.stderr.startswith(
        "error: no API key for the answer model at models.invalid: expected it in OPENAI_ACCESS"
    )
    assert not (tmp_path / "x.jsonl").exists()


def test_each_judge_is_asked_at_its_place_with_its_key(tmp_path: Path) -> None:
    """Two judges, two endpoints, two keys: neither sees the other's, and it says that nobody certified them."""
    keys = {"OPENAI_API_KEY": API, "KEY_J": ACCESS, "KEY_K": NAMED}
    with LlmServer() as answers, LlmServer() as one, LlmServer() as other:
        places = ["--judge-base-url", one.url, "--judge-base-url", other.url]
        named = ["--judge-api-key-env", "KEY_J", "--judge-api-key-env", "KEY_K"]
        jury = ["--judge-model", "k", *places, *named]
        refused = _run(tmp_path, answers.url, *jury, **keys)
        asked = [server.hits for server in (answers, one, other)]
        done = _run(tmp_path, answers.url, *jury, "--uncertified", **keys)
        sent = [
            {(seen["body"]["model"], seen["headers"]["authorization"]) for seen in server.requests}
            for server in (answers, one, other)
        ]

    assert (1, [0, 0, 0]) == (refused.returncode, asked)
    assert "judge j: none: there is no certificate" in refused.stderr
    assert [{("m", f"Bearer {API}")}, {("j", f"Bearer {ACCESS}")}, {("k", f"Bearer {NAMED}")}] == sent
    assert 0 == done.returncode, done.stderr
    assert (
        "certificate: uncertified (none) (j: none: there is no certificate; certify it: bedside-bench certify j "
        "--base-url URL; k: none" in " ".join(done.stdout.split())
    )
