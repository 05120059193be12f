"""A HealthBench run for others: published, fetched and verified on a Hub, and exported to formats of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from huggingface_hub import EvalResultEntry, parse_eval_result_entries

from builder.dataset.digests import folder_digest
from builder.errors import BadInput
from eval.calls.plan import Plan
from eval.exports.chosen import ChosenRun, choose_run
from eval.exports.eval_results import eval_results_file
from eval.exports.every_eval_ever import every_eval_ever_files
from eval.exports.model_index import model_index_file
from eval.healthbench.protocol import PROTOCOL
from tests.at_hub import RESULTS, client_at, command, make_hub, put
from tests.examples import make_example
from tests.gradings import example_mirror, grading_plan, results_of
from tests.journals import write_journal
from tests.llm_server import LlmServer
from tests.plans import VERBATIM, run

DATA = "org/healthbench"
N = 3
UNREADABLE = {"fault": "malformed", "role": "grader", "contains": "fact 1.0,"}


def add(plan: Plan, folder: Path, name: str) -> Path:
    """Run a plan and add it to the results folder `name`; return the run's own folder."""
    run(plan, folder / f"{name}.jsonl")
    return results_of(folder / f"{name}.jsonl", folder / name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a mirror that is on a Hub, and `out`: a model's run on it with one ungraded example."""
    folder = tmp_path_factory.mktemp("hub")
    mirror = example_mirror(folder, map(make_example, range(N)))
    with make_hub() as hub, client_at(hub, folder / "cache"):
        commit = put(hub, mirror, DATA, cache=folder / "cache").commit
        with LlmServer(UNREADABLE) as server:
            add(grading_plan(mirror, server.url, repo=DATA, revision=commit), folder, "out")
        put(hub, folder / "out", RESULTS, cache=folder / "cache", tag="v1")
        yield folder


@pytest.fixture(scope="module")
def chosen(made: Path) -> ChosenRun:
    """Return that run as exports take it."""
    return choose_run(made / "out")


def only_run(folder: Path) -> Path:
    """Return the one run of a results folder."""
    (found,) = (folder / "runs").iterdir()
    return found


# -- on the Hub


@pytest.mark.parametrize("options", [[], ["--full"], ["--full", "--with-data"]], ids=["fast", "full", "with its data"])
def test_a_published_run_verifies(made: Path, options: list[str]) -> None:
    """By the Hub's digests, by every number anew, and against the mirror that it names."""
    code, out, err = command("verify", RESULTS, *options)

    assert (0, "", f"{RESULTS}: ok") == (code, err, out.splitlines()[0]), out
    assert folder_digest(only_run(made / "out")) in out


def test_a_published_run_is_listed(made: Path) -> None:
    """With its one panel, its protocol and its judge."""
    code, out, _ = command("runs", RESULTS)

    assert (0, "1 run") == (code, out.splitlines()[-1])
    assert only_run(made / "out").name == out.splitlines()[0]
    assert f"{PROTOCOL}, judge judge-model" in out
    assert "2 of 3 cases graded" in out


def test_a_published_run_can_be_fetched(made: Path, tmp_path: Path) -> None:
    """All five tables come down, and every number is computed again."""
    name = only_run(made / "out").name
    code, _, err = command("fetch", RESULTS, name, "--out", tmp_path / "here")
    fetched = only_run(tmp_path / "here")

    assert (0, name) == (code, fetched.name), err
    assert folder_digest(only_run(made / "out")) == folder_digest(fetched)
    assert (fetched / "examples.parquet").is_file()


def test_runs_of_both_suites_share_a_dataset(made: Path, tmp_path: Path) -> None:
    """A BedsideBench run is published beside it: both verify, and the card loads both."""
    with make_hub() as hub, client_at(hub, tmp_path / "cache"):
        put(hub, made / "out", RESULTS, cache=tmp_path / "cache")
        results_of(write_journal(tmp_path / "y.jsonl", panels=["drug_safety"]), tmp_path / "other")
        put(hub, tmp_path / "other", RESULTS, cache=tmp_path / "cache")
        code, out, _ = command("verify", RESULTS, "--full")

    assert (0, True) == (code, "runs            2" in out.splitlines()), out


# -- in other formats


def test_a_models_page_shows_one_number(chosen: ChosenRun) -> None:
    """Its task is the config; judge, protocol, cases and bounds go with it, without a word of panels."""
    file = eval_results_file(chosen, source_url=None)
    (entry,) = parse_eval_result_entries(yaml.safe_load(file.content))

    assert isinstance(entry, EvalResultEntry)
    assert (DATA, "healthbench", chosen.row["overall_mean"]) == (entry.dataset_id, entry.task_id, entry.value)
    assert entry.notes is not None
    assert all(part in entry.notes for part in ("judge judge-model", f"protocol {PROTOCOL}", "2 of 3 cases graded"))
    assert not [word for word in ("panel", "official", "non-standard") if word in entry.notes]
    assert f"between {chosen.row['overall_worst']:.3f} and {chosen.row['overall_best']:.3f}" in entry.notes


def test_the_model_index_names_the_metric(chosen: ChosenRun) -> None:
    """healthbench, from 0 to 1, of the config."""
    (model,) = yaml.safe_load(model_index_file(chosen).content)["model-index"]
    (result,) = model["results"]

    assert ("healthbench", DATA) == (result["dataset"]["config"], result["dataset"]["type"])
    assert [("healthbench", chosen.row["overall_mean"])] == [(m["type"], m["value"]) for m in result["metrics"]]


def test_every_eval_ever_names_the_ungraded_example(chosen: ChosenRun) -> None:
    """One result, a line for each graded example; the third is named, never given a 0."""
    aggregate, cases = every_eval_ever_files(chosen)
    (result,) = json.loads(aggregate.content)["evaluation_results"]
    details = result["score_details"]["details"]
    graded = [row["case_id"] for row in chosen.scores if row["score"] is not None]

    assert aggregate.path.startswith("data/healthbench/unknown/answer-model/")
    assert chosen.row["overall_mean"] == result["score_details"]["score"]
    assert ("2", "3") == (details["n_graded"], details["n_expected"])
    assert graded == [json.loads(line)["sample_id"] for line in cases.content.splitlines()]
    assert 1 == len(json.loads(details["ungraded_cases"]))


def test_the_commands_export_it(made: Path, tmp_path: Path) -> None:
    """`eval-results --dry-run` and both forms of `export`, from the folder."""
    page = command("eval-results", made / "out", "--model-repo", "org/model", "--results-repo", RESULTS, "--dry-run")
    index = command("export", made / "out", "--format", "model-index", "--out", tmp_path)
    every = command("export", made / "out", "--format", "every-eval-ever", "--out", tmp_path)

    assert [0, 0, 0] == [page[0], index[0], every[0]], page[2] + index[2] + every[2]
    assert ["healthbench"] == [entry.task_id for entry in parse_eval_result_entries(yaml.safe_load(page[1]))]
    assert 3 == len([path for path in tmp_path.rglob("*") if path.is_file()])


def test_completions_are_no_models_result(made: Path, tmp_path: Path) -> None:
    """A physician's completions, graded, stay off a model's page, whoever graded them."""
    with LlmServer() as server:
        add(grading_plan(made / "mirror", server.url, answers="physician", repo=DATA), tmp_path, "physician")

    with pytest.raises(BadInput, match="expected a model's answers, found those of physician: it is no model"):
        choose_run(tmp_path / "physician")


def test_a_builtin_judge_shows_no_result(made: Path, tmp_path: Path) -> None:
    """Nor does a run whose decisions no model made."""
    with LlmServer() as server:
        add(grading_plan(made / "mirror", server.url, judge=VERBATIM, repo=DATA), tmp_path, "verbatim")

    with pytest.raises(BadInput, match="expected a judge model, found builtin:verbatim"):
        choose_run(tmp_path / "verbatim")


def test_a_run_on_a_folder_names_no_dataset(made: Path, tmp_path: Path) -> None:
    """A model's page needs the Hub dataset that was judged."""
    with LlmServer() as server:
        add(grading_plan(made / "mirror", server.url), tmp_path, "local")

    with pytest.raises(BadInput, match="expected a run on a Hub dataset"):
        eval_results_file(choose_run(tmp_path / "local"), source_url=None)
