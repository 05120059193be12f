"""The commands `eval-results` and `export` as a user meets them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from huggingface_hub import CommitOperationAdd, HfApi, parse_eval_result_entries
from typer.testing import CliRunner

from eval.cli import app
from tests.exported import exportable
from tests.local_hub import LocalHub
from tests.tampering import another, copy_of_run, tamper

ROOT = Path(__file__).parents[1]
TOKEN = "hf_alice"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with one run."""
    return exportable(tmp_path_factory.mktemp("results"))


def call(*arguments: str | Path) -> tuple[int, str, str]:
    """Run a command and return its exit code, stdout and stderr."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    return done.exit_code, done.stdout, done.stderr


# -- export


def test_export_writes_what_it_prints(results: Path, tmp_path: Path) -> None:
    """Every Eval Ever's two files and the model-index file lie below the folder, each path printed."""
    code, out, err = call("export", results, "--format", "every-eval-ever", "--out", tmp_path / "e")
    also, more, _ = call("export", results, "--format", "model-index", "--out", tmp_path / "e")
    there = {str(path) for path in (tmp_path / "e").rglob("*") if path.is_file()}

    assert (0, 0, "") == (code, also, err)
    assert {f"written: {path}" for path in there} == set((out + more).splitlines())
    assert 3 == len(there)


def test_export_again_changes_nothing(results: Path, tmp_path: Path) -> None:
    """Exporting the same run again leaves the same bytes."""
    command = ("export", results, "--format", "every-eval-ever", "--organization", "Clinic", "--out", tmp_path)
    first = [call(*command), {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}]

    assert first == [call(*command), {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}]


def test_export_of_one_run_of_several(tmp_path: Path) -> None:
    """--run chooses; without it the names are given and nothing is written."""
    exportable(tmp_path)
    several = exportable(tmp_path, shift=1)
    name = sorted(path.name for path in (several / "runs").iterdir())[0]
    code, _, err = call("export", several, "--format", "model-index", "--out", tmp_path / "e")

    assert (1, False) == (code, (tmp_path / "e").exists())
    assert err.startswith(f"error: {several}: expected one run, found {name}, ")
    assert 0 == call("export", several, "--run", name, "--format", "model-index", "--out", tmp_path / "e")[0]
    assert [f"model-index-{name}.yaml"] == [path.name for path in (tmp_path / "e").iterdir()]


def test_a_changed_run_is_refused_line_by_line(results: Path, tmp_path: Path) -> None:
    """Findings stand on a line each, and nothing is written."""
    changed = copy_of_run(results, tmp_path)
    tamper(changed, "scores", 0, "score", another)
    code, out, err = call("export", changed, "--format", "every-eval-ever", "--out", tmp_path / "e")

    assert (1, "", False) == (code, out, (tmp_path / "e").exists())
    assert f"error: {changed}: does not verify, nothing is exported" == err.splitlines()[0]
    assert all(line.startswith("scores.parquet: case ") for line in err.splitlines()[1:])
    assert 2 <= len(err.splitlines())


# -- eval-results


def test_dry_run_prints_the_file(results: Path) -> None:
    """--dry-run prints where it would go and what it holds, as YAML, and asks no Hub; a missing source is said."""
    code, out, err = call("eval-results", results, "--model-repo", "org/model", "--dry-run")
    (run,) = (results / "runs").iterdir()

    assert (0, "warning: no source is named: publish the results, and name them with --results-repo\n") == (code, err)
    assert f"# org/model: .eval_results/bedside-bench-{run.name}.yaml" == out.splitlines()[0]
    assert ["all", "drug_safety", "safety_diagnostic"] == [
        entry.task_id for entry in parse_eval_result_entries(yaml.safe_load(out))
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model-repo", "model"], "expected a repository such as"),
        (["--model-repo", "org/model", "--results-repo", "results"], "expected hf://datasets/namespace/name"),
        ([], "--model-repo"),
    ],
    ids=["a model's name alone", "a dataset's name alone", "no model"],
)
def test_wrong_usage(results: Path, options: list[str], message: str) -> None:
    """What cannot be a repository is wrong usage: exit code 2, before anything is read."""
    code, _, err = call("eval-results", results, *options)

    assert 2 == code
    assert message in " ".join(err.replace("│", " ").split())


def test_wrong_format(results: Path) -> None:
    """An unknown format is wrong usage, and the known ones are named."""
    code, _, err = call("export", results, "--format", "csv")

    assert 2 == code
    assert "is not one of every-eval-ever, model-index" in " ".join(err.replace("│", " ").split())


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    """Run a Hub on the loopback interface."""
    with LocalHub(tokens={TOKEN: "alice:write"}, orgs={"alice": ["org"]}) as running:
        yield running


def command(hub: LocalHub, home: Path, *arguments: str | Path, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own: the client reads the Hub's address when it starts."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "PYTHON"))}
    env |= {"HF_HOME": str(home), "PYTHONPATH": str(ROOT), **hub.env(token)}
    words = [sys.executable, "-c", "from eval.cli import main; main()", *map(str, arguments)]
    return subprocess.run(words, env=env, cwd=home, capture_output=True, text=True, check=False)


def test_push_with_its_source(hub: LocalHub, results: Path, tmp_path: Path) -> None:
    """The numbers are proposed to the model's repository, with the commit that holds the run as their source."""
    api = HfApi(hub.endpoint, token=TOKEN)
    (digests,) = results.glob("runs/*/digests.json")
    api.create_repo("org/results", repo_type="dataset")
    add = CommitOperationAdd(digests.relative_to(results).as_posix(), digests)
    commit = api.create_commit("org/results", [add], commit_message="run", repo_type="dataset").oid
    api.create_repo("org/model")
    options = ["--model-repo", "org/model", "--results-repo", "org/results@main", "--create-pr"]
    done = command(hub, tmp_path, "eval-results", results, *options)
    name = digests.parent.name
    local = api.hf_hub_download(
        "org/model", f".eval_results/bedside-bench-{name}.yaml", revision="refs/pr/1", cache_dir=tmp_path
    )
    source = f"{hub.endpoint}/datasets/org/results/tree/{commit}/runs/{name}"

    assert (0, "") == (done.returncode, done.stderr)
    assert f"proposed: {hub.endpoint}/org/model/discussions/1" == done.stdout.splitlines()[0]
    assert {source} == {entry["source"]["url"] for entry in yaml.safe_load(Path(local).read_text())}


def test_push_to_no_model(hub: LocalHub, results: Path, tmp_path: Path) -> None:
    """A repository that is not there is one line that says what to do, and nobody's token."""
    done = command(hub, tmp_path, "eval-results", results, "--model-repo", "org/none")

    assert (1, "") == (done.returncode, done.stdout)
    assert "\nerror: org/none: no such repository, or hidden from you" in done.stderr
    assert 2 == len(done.stderr.splitlines())  # and the warning that no source is named
    assert TOKEN not in done.stderr
