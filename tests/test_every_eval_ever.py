"""Every Eval Ever: our mapping of a run, and the published schemas that both its files keep to."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from jsonschema import Draft7Validator

from eval.calls.plan import Model
from eval.exports.chosen import ChosenRun, choose_run
from eval.exports.every_eval_ever import VERSION, every_eval_ever_files
from tests.exported import DATA_REPO, exportable
from tests.journals import MODEL, answer_text
from tests.plans import case_set
from tests.tampering import PANELS

VENVS = os.environ.get("BEDSIDE_VENVS")
RESULTS = ("bedside-bench/all", "bedside-bench/drug_safety", "bedside-bench/safety_diagnostic")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with one run, without texts: four cases a panel, two of the first ungraded."""
    return exportable(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def run(results: Path) -> ChosenRun:
    """Return that run."""
    return choose_run(results)


def aggregate(run: ChosenRun, **options: str) -> dict[str, Any]:
    """Return the aggregate object."""
    loaded: dict[str, Any] = json.loads(every_eval_ever_files(run, **options)[0].content)
    return loaded


def escaped(text: str) -> str:
    """Return a text as it would stand in a JSON string."""
    return json.dumps(text)[1:-1]


def lines(run: ChosenRun) -> list[dict[str, Any]]:
    """Return the objects of the cases."""
    return [json.loads(line) for line in every_eval_ever_files(run)[1].content.decode().splitlines()]


# -- files


def test_paths_and_checksum(run: ChosenRun) -> None:
    """Both files lie under the model's name by one UUID, and the aggregate has the other's path, digest and length."""
    whole, cases = every_eval_ever_files(run)
    place = re.fullmatch(r"data/bedside-bench/test/Model A/([0-9a-f-]{36})\.json", whole.path)
    detail = aggregate(run)["detailed_evaluation_results"]

    assert place is not None
    assert 4 == uuid.UUID(place[1]).version
    assert cases.path == whole.path.replace(".json", "_samples.jsonl") == detail["file_path"]
    assert (hashlib.sha256(cases.content).hexdigest(), 6) == (detail["checksum"], detail["total_rows"])


def test_the_same_run_gives_the_same_files(run: ChosenRun, results: Path, tmp_path: Path) -> None:
    """No clock and no chance: names and bytes follow from the run alone, and another run has another name."""
    again = every_eval_ever_files(choose_run(results))
    other = every_eval_ever_files(choose_run(exportable(tmp_path, shift=1)))

    assert every_eval_ever_files(run) == again
    assert not {file.path for file in other} & {file.path for file in again}


NAMES = {
    "a flat name": ("gpt-x", {"developer": "maker"}, "maker/gpt-x", "maker"),
    "a flat name alone": ("gpt-x", {}, "unknown/gpt-x", None),
    "further slashes": ("org/part/m:1", {"developer": "ignored"}, "org/part_m_1", "org"),
    "a way out": ("../..", {}, "unknown/unknown", ".."),
    "a reserved name": ("data/nul.x", {}, "_data/_nul.x", "data"),
}


@pytest.mark.parametrize(("model", "options", "folder", "developer"), NAMES.values(), ids=NAMES.keys())
def test_folder_of_a_model(
    tmp_path: Path, model: str, options: dict[str, str], folder: str, developer: str | None
) -> None:
    """Whatever a model is called, its folder is two plain names; the model's id stays as it was."""
    run = choose_run(exportable(tmp_path, answer=Model(model, MODEL.endpoint)))
    whole, _ = every_eval_ever_files(run, **options)

    assert f"data/bedside-bench/{folder}" == whole.path.rpartition("/")[0]
    assert (model, developer) == (
        aggregate(run)["model_info"]["id"],
        aggregate(run, **options)["model_info"].get("developer"),
    )


# -- the aggregate


def test_scores_and_uncertainty(run: ChosenRun) -> None:
    """Each number has its interval, how many cases it is over, and with how many resamples it was drawn."""
    listed = aggregate(run)["evaluation_results"]
    panel = listed[1]["score_details"]

    assert list(RESULTS) == [result["evaluation_result_id"] for result in listed]
    assert [number.value for number in run.numbers] == [result["score_details"]["score"] for result in listed]
    assert {
        "confidence_interval": {
            "lower": 0.5,
            "upper": 0.5,
            "confidence_level": 0.95,
            "method": "percentile bootstrap over the panel's cases",
        },
        "num_samples": 2,
        "num_bootstrap_samples": 10_000,
    } == panel["uncertainty"]


def test_ungraded_cases_are_named_and_never_zero(run: ChosenRun) -> None:
    """A case without decisions has no line and no score; the aggregate names it and says what it could change."""
    ungraded = [case["case_id"] for case in run.scores if case["state"] == "failed"]
    details = aggregate(run)["evaluation_results"][1]["score_details"]["details"]

    assert 2 == len(ungraded)
    assert ungraded == json.loads(details["ungraded_cases"])
    assert ("2", "4", "0.25", "0.75") == tuple(details[name] for name in ("n_graded", "n_expected", "worst", "best"))
    assert not set(ungraded) & {line["sample_id"] for line in lines(run)}
    assert {case["case_id"]: case["score"] for case in run.scores if case["score"] is not None} == {
        line["sample_id"]: line["evaluation"]["score"] for line in lines(run)
    }


def test_judge(run: ChosenRun) -> None:
    """The judge is named with its temperature; of what it is told only the protocol and digests stand there."""
    scoring = aggregate(run)["evaluation_results"][0]["metric_config"]["llm_scoring"]
    (judge,) = scoring["judges"]

    assert ("test-judge", 0, 1.0) == (judge["model_info"]["id"], judge["temperature"], judge["weight"])
    assert "aggregation_method" not in scoring
    assert scoring["input_prompt"].startswith("bedside-bench-grading-v1: system sha256:190b4c1e549f79bd")


def test_where_the_cases_are_from(run: ChosenRun, tmp_path: Path) -> None:
    """A Hub dataset is named with the cases' ids; cases from a folder only by their digests."""
    on_hub = aggregate(run)["evaluation_results"][1]["source_data"]
    local = choose_run(exportable(tmp_path, repo=None))
    at_home = aggregate(local)["evaluation_results"][1]["source_data"]

    assert ("hf_dataset", DATA_REPO, 4) == (on_hub["source_type"], on_hub["hf_repo"], len(on_hub["sample_ids"]))
    assert ("other", run.row["dataset_sha256"]) == (
        at_home["source_type"],
        at_home["additional_details"]["dataset_sha256"],
    )


def test_times_are_the_runs(run: ChosenRun) -> None:
    """The run's own times stand there (2026-03-05, 09:59:59 to 10:00:07 UTC), not the day of the export."""
    whole = aggregate(run)

    assert "2026-03-05T09:59:59+00:00" == whole["evaluation_timestamp"]
    assert "1772704807" == whole["retrieved_timestamp"]
    assert "bedside-bench/test/Model A/1772704807" == whole["evaluation_id"]


def test_who_ran_it(run: ChosenRun) -> None:
    """Who ran it is what the command is told, else unknown."""
    unknown, named = aggregate(run), aggregate(run, organization="Clinic", source_url="https://hub.test/x")

    assert "unknown" == unknown["source_metadata"]["source_organization_name"]
    assert "Clinic" == named["source_metadata"]["source_organization_name"]
    assert "https://hub.test/x" == named["source_metadata"]["additional_details"]["results_url"]


# -- the cases


def test_a_line(run: ChosenRun) -> None:
    """A case's line has its panel's result, its tokens and time, and the answer's digest; correct is only a 1."""
    line = lines(run)[0]
    answer = run.answers[0]

    assert (RESULTS[1], RESULTS[1]) == (line["evaluation_name"], line["evaluation_result_id"])
    assert {"score": 0.5, "is_correct": False, "num_turns": 1} == line["evaluation"]
    assert {"input_tokens": 120, "output_tokens": 30, "total_tokens": 150} == line["token_usage"]
    assert ({"latency_ms": 12.5}, answer["answer_sha256"]) == (line["performance"], line["metadata"]["answer_sha256"])
    assert "answer-truncated" == lines(run)[2]["metadata"]["flags"]


def test_texts_only_where_the_run_holds_them(run: ChosenRun, tmp_path: Path) -> None:
    """No prompt or rubric is ever exported, and an answer only from a run with texts."""
    held = choose_run(exportable(tmp_path, with_texts=True))
    first = case_set(4, PANELS).cases[0]
    without, whole = (b"".join(file.content for file in every_eval_ever_files(which)).decode() for which in (run, held))

    assert [[]] * 6 == [line["output"]["raw"] for line in lines(run)]
    assert [answer_text(first, 0)] == lines(held)[0]["output"]["raw"]
    for case in case_set(4, PANELS).cases:
        assert escaped(case.prompt) not in without + whole
        assert not [item.text for item in case.items if escaped(item.text) in without]


# -- the published schemas


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the published schemas, fetched once to BEDSIDE_VENVS or for the session."""
    session = tmp_path_factory.getbasetemp()
    session = session.parent if "PYTEST_XDIST_WORKER" in os.environ else session  # the workers share one
    folder = (Path(VENVS) if VENVS else session / "venvs") / f"every-eval-ever-{VERSION}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    options = ["--quiet", "--no-deps", "--ignore-requires-python", "--upgrade", "--target", str(folder)]
    with FileLock(f"{folder}.lock"):
        if not (folder / "ready").exists():
            command = [sys.executable, "-m", "pip", "install", *options, f"every-eval-ever=={VERSION}"]
            subprocess.run(command, check=True)
            (folder / "ready").touch()
    return folder / "every_eval_ever" / "schemas"


def errors(schema: Path, loaded: object) -> list[str]:
    """Return what a schema says against an object."""
    rules = json.loads(schema.read_text())
    Draft7Validator.check_schema(rules)
    return [f"{error.json_path}: {error.message}" for error in Draft7Validator(rules).iter_errors(loaded)]


RUNS: dict[str, dict[str, Any]] = {
    "failed cases": {},
    "with texts, no Hub dataset": {"with_texts": True, "repo": None},
    "a panel without score": {"fail": dict.fromkeys(range(4), ("answer", "timeout"))},
    "one graded case a panel": {"fail": dict.fromkeys([1, 2, 3, 5, 6, 7], ("judge", "refused"))},
    "a flat name": {"answer": Model("gpt-x", MODEL.endpoint)},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS.keys())
def test_published_schemas(schemas: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """Both files of every kind of run keep to the schemas that Every Eval Ever publishes."""
    run = choose_run(exportable(tmp_path, **options))

    assert [] == errors(schemas / "eval.schema.json", aggregate(run))
    assert [[]] * len(lines(run)) == [errors(schemas / "instance_level_eval.schema.json", line) for line in lines(run)]


@pytest.mark.slow
def test_published_schemas_find_what_is_wrong(schemas: Path, run: ChosenRun) -> None:
    """The check itself can fail: a score that is null is refused."""
    line = lines(run)[0] | {"evaluation": {"score": None, "is_correct": False}}

    assert ["$.evaluation.score: None is not of type 'number'"] == errors(
        schemas / "instance_level_eval.schema.json", line
    )
