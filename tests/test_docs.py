"""README and help: every command and option is documented, and every README command runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from typer.main import get_command

from eval.cli import app
from tests.llm_server import LlmServer
from tests.local_hub import LocalHub

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = [sys.executable, "-c", "from eval.cli import main; main()"]

ONE_AFTER_ANOTHER = """
import json, sys
from eval.cli import app
for arguments in json.loads(sys.argv[1]):
    print("$ bedside-bench", *arguments, flush=True)
    try:
        app(arguments)
    except SystemExit as end:
        if end.code:
            sys.exit(f"exit code {end.code}")
"""


@cache
def _commands() -> dict[str, click.Command]:
    group = get_command(app)
    return dict(group.commands)  # type: ignore[attr-defined]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def _shell_lines() -> Iterator[str]:
    for block in _blocks("bash"):
        yield from block.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("name", sorted(_commands()))
def test_every_command_is_in_the_readme(name: str) -> None:
    """Each command of the program stands in the README's table of commands."""
    assert re.search(rf"^\| `{name}` \|", README, flags=re.MULTILINE)


def _options() -> list[tuple[str, str]]:
    return [
        (name, option)
        for name, command in sorted(_commands().items())
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--") and option != "--help"
    ]


@pytest.mark.parametrize(("name", "option"), _options(), ids=lambda value: value.lstrip("-"))
def test_every_option_has_help_and_stands_in_the_readme(name: str, option: str) -> None:
    """Each option of each command says what it does, in its help and in the README."""
    parameter = next(p for p in _commands()[name].params if option in (*p.opts, *p.secondary_opts))

    assert getattr(parameter, "help", None)
    assert f"{option}`" in README or f"{option}/" in README


def test_every_command_says_what_it_does() -> None:
    """Each command's help begins with one sentence."""
    assert not [name for name, command in _commands().items() if not (command.help or "").split("\n")[0].endswith(".")]


def test_readme_commands_run(tmp_path: Path) -> None:
    """Every `bedside-bench` line of the README runs as it stands, with a model server and a Hub of this machine."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    tokens, orgs = {"hf_writer": "alice:write"}, {"alice": ["your-org"]}
    with LlmServer() as server, LocalHub(tokens=tokens, orgs=orgs) as hub:
        env = os.environ | hub.env("hf_writer") | {"HF_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
        lines = [line.replace("http://127.0.0.1:8080/v1", server.url) for line in _shell_lines()]
        commands = [shlex.split(line)[1:] for line in lines if line.startswith("bedside-bench ")]
        # One process for all of them: each would load the same libraries again.
        done = subprocess.run(
            [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands)],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    assert len(commands) > 20
    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"


def test_readme_python_runs(tmp_path: Path) -> None:
    """Every Python block of the README runs after the mirror was built, without a network."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    subprocess.run([*COMMAND, "build", "data", "--out", "mirror"], cwd=tmp_path, capture_output=True, check=True)
    code = "\n".join(_blocks("python"))
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", f"import os; os.environ.update({offline!r})\n{code}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert 0 == done.returncode, done.stderr
    assert "rubric_items" in code


def test_the_two_commands_of_the_readme_are_those_of_ci() -> None:
    """What CI installs and runs is what the README tells a newcomer to type."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    first, second = (line for line in _shell_lines() if line.startswith("python3 -m venv"))

    assert "install -q -c constraints.txt ." in first
    assert "bedside-bench demo" in first
    assert "install -q -c constraints.txt -e '.[dev]'" in second
    assert second.endswith("-m tests")
    assert "README.md" in ci


def test_constraints_are_plain_pins() -> None:
    """The pins are `name==version` lines: no address and no option of an installer."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert not [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)]
