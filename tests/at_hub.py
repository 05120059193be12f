"""The Hub's client of this process, or of one of its own, at a local Hub; and commits that tamper with what is there.

with client_at(hub, tmp_path / "cache"):   # what HF_ENDPOINT, HF_HUB_CACHE and HF_TOKEN are to a process
    verify_place(changed(hub, "org/mirror", {"README.md": b"Mine."}))
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants
from typer.testing import CliRunner

from builder.dataset.verify import folder_kind
from builder.hub.place import HubPlace
from builder.hub.publication import Published, Target
from eval.results.folder import write_results
from tests.journals import write_journal, write_summary
from tests.local_hub import LocalHub
from tests.mirrors import build_small
from tests.publishing import MIRROR, RESULTS, TOKEN, make_hub, mirror_of, publication_of, send
from tests.tampering import HERE, PANELS, results_folder

__all__ = ["MIRROR", "RESULTS", "TOKEN", "make_hub"]

ROOT = Path(__file__).parent.parent
PROGRAM = [sys.executable, "-c", "from eval.cli import main; main()"]


@contextmanager
def client_at(hub: LocalHub, cache: Path, *, token: str = TOKEN) -> Iterator[None]:
    """Point the client of this process, which reads the environment once, at a Hub; an empty token is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", hub.endpoint)
        patch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        )
        patch.setattr(constants, "HF_HUB_CACHE", str(cache))
        patch.setattr(constants, "HF_TOKEN_PATH", str(cache / "no-token"))
        patch.setenv("HF_TOKEN", token)
        yield


def command(*words: str | Path) -> tuple[int, str, str]:
    """Run `bedside-bench` in this process; return exit code, standard output and standard error."""
    from eval.cli import app

    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def refused(*words: str | Path) -> str:
    """Return the one line by which `bedside-bench` refuses something with exit code 1."""
    code, out, err = command(*words)
    if (code, out, err.count("\n")) != (1, "", 1):
        raise AssertionError(f"exit code {code}, {out!r}, {err!r}")
    return err.removesuffix("\n")


def process(hub: LocalHub, home: Path, *words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `bedside-bench` as a person does, in a process of its own that stands in `home`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "PYTHON"))}
    kept |= {"HF_HOME": str(home / "home"), "PYTHONPATH": str(ROOT), **hub.env(), **env}
    return subprocess.run(
        [*PROGRAM, *map(str, words)], env=kept, cwd=home, capture_output=True, text=True, check=False, timeout=120
    )


def make_both(folder: Path, *panels: str) -> Path:
    """Write a source, its mirror of some panels, and results (`out`) of two runs whose names begin alike."""
    build_small(folder, panels=panels)
    results_folder(folder)
    second = write_journal(folder / "y.jsonl", cases_per_panel=4, panels=PANELS, shift=1)
    write_results(second, folder / "out", summary_bytes=write_summary(second, **HERE))
    return folder


def run_names(made: Path) -> list[str]:
    """Return the run_ids of `make_both`, sorted."""
    return sorted(path.name for path in (made / "out" / "runs").iterdir())


def put(hub: LocalHub, folder: Path, repo: str, *, cache: Path, tag: str | None = None) -> Published:
    """Publish a mirror or a results folder in a public repository."""
    publication = publication_of(folder) if folder_kind(folder) == "run" else mirror_of(folder)
    return send(hub, publication, Target(repo, private=False, tag=tag), cache=cache)


def put_files(hub: LocalHub, folder: Path, repo: str) -> str:
    """Commit the files of a folder, whatever they are, and return the commit."""
    api = HfApi(hub.endpoint, token=TOKEN)
    api.create_repo(repo, repo_type="dataset", exist_ok=True)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    operations = [CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in paths]
    return str(api.create_commit(repo, operations, commit_message="files", repo_type="dataset").oid)


def changed(hub: LocalHub, repo: str, branch: str, files: Mapping[str, bytes | Path | None]) -> HubPlace:
    """Commit changes to a repository, on a new branch of it; None removes a file."""
    api = HfApi(hub.endpoint, token=TOKEN)
    api.create_branch(repo, branch=branch, repo_type="dataset")
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationDelete(path) if content is None else CommitOperationAdd(path, content)
        for path, content in files.items()
    ]
    api.create_commit(repo, [*operations], commit_message="changes", repo_type="dataset", revision=branch)
    return HubPlace(repo, branch)


def asked(hub: LocalHub) -> list[str]:
    """Return what the Hub and its file server were asked."""
    return [str(line["path"]) for line in hub.log]


def after(hub: LocalHub, what: Callable[[], Any]) -> list[str]:
    """Return what the Hub was asked while something was done."""
    hub.log.clear()
    what()
    return asked(hub)
