"""Sources on the Hub: a Hub on the loopback interface, and a client in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, HfApi

from builder.hub.client import LOG_IN
from tests.local_hub import LocalHub
from tests.trees import case_path, write_tree

TOKEN = "hf_writer"
ROOT = Path(__file__).parent.parent
CHECK = """
import json, sys
from builder.errors import BadInput
from builder.tree.sources import open_source
from builder.rules.validate import check_tree
try:
    source = open_source(sys.argv[1])
except BadInput as error:
    sys.exit(str(error))
report = check_tree(source)
print(json.dumps([source.kind, source.repo, source.revision, source.license, report.ok, report.n_cases]))
"""


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    """Run a Hub."""
    with LocalHub(tokens={TOKEN: "alice:write"}, orgs={"alice": ["org"]}) as running:
        yield running


@pytest.fixture(scope="module")
def commits(hub: LocalHub, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Publish a tree as org/cases, then a broken version of it on main; return both commits."""
    root = write_tree(tmp_path_factory.mktemp("tree"), 1)
    first = push(hub, root)
    case_path(root).write_text("{")
    return [first, push(hub, root)]


def push(hub: LocalHub, folder: Path) -> str:
    """Commit a folder to org/cases and return the commit."""
    api = HfApi(hub.endpoint, token=TOKEN)
    api.create_repo("org/cases", repo_type="dataset", exist_ok=True)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    operations = [CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in files]
    return str(api.create_commit("org/cases", operations, commit_message="cases", repo_type="dataset").oid)


def check(hub: LocalHub, home: Path, where: str) -> subprocess.CompletedProcess[str]:
    """Open and check a source in a fresh process, which reads the Hub's address when it starts."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "PYTHON"))}
    env |= {"HF_HOME": str(home), "PYTHONPATH": str(ROOT), **hub.env()}
    command = [sys.executable, "-c", CHECK, where]
    return subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False, timeout=120)


def test_a_commit_on_the_hub_is_a_source(hub: LocalHub, commits: list[str], tmp_path: Path) -> None:
    """org/name@commit is fetched into the Hub's cache, whose links are followed, and passes the check."""
    done = check(hub, tmp_path, f"org/cases@{commits[0]}")

    assert json.loads(done.stdout) == ["hub", "org/cases", commits[0], "cc-by-4.0", True, 10]


def test_a_moving_revision_is_resolved(hub: LocalHub, commits: list[str], tmp_path: Path) -> None:
    """Without a revision, main is resolved to its commit; what is broken there is reported."""
    done = check(hub, tmp_path, "org/cases")

    assert json.loads(done.stdout) == ["hub", "org/cases", commits[1], "cc-by-4.0", False, 10]


@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("org/none", f"no such repository, or hidden from you: check the name, and {LOG_IN}"),
        ("org/cases@none", "no such branch, tag or commit in this repository"),
    ],
    ids=["repository", "revision"],
)
def test_what_is_not_there_is_one_line(hub: LocalHub, tmp_path: Path, where: str, error: str) -> None:
    """A repository or revision that does not exist ends in one line that names it."""
    done = check(hub, tmp_path, where)

    assert done.stderr == f"{where} (no folder here has that name): {error}\n"


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path: Path) -> None:
    """Without a connection the error says so after a few tries, and that there is no such folder."""
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CHECK, "org/cases"], env=os.environ | closed, capture_output=True, text=True, check=False
    )

    line = "the Hub could not be read: no answer from the Hub (ConnectError); try again later"
    assert done.stderr == f"org/cases (no folder here has that name): {line}\n"
