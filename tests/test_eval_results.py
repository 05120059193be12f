"""`.eval_results/*.yaml`: what stands in it, what is refused, and how it comes to a model's repository on the Hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import CommitOperationAdd, EvalResultEntry, HfApi, parse_eval_result_entries

from bedside_bench import PANEL_IDS
from builder.errors import BadInput, DigestMismatch
from builder.hub.place import HubPlace
from builder.hub.publication import Published
from builder.hub.publish import publish_files
from eval.calls.plan import Model
from eval.exports.chosen import SOURCE_NAME, ChosenRun, choose_run
from eval.exports.eval_results import eval_results_file
from eval.exports.source import results_source
from tests.exported import DATA_REPO, REVISION, exportable
from tests.local_hub import LocalHub
from tests.tampering import another, copy_of_run, tamper

TOKEN = "hf_alice"
SOURCE = "https://hub.test/datasets/org/results/tree/abc/runs/x"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with one run: two panels of four cases, two of which are ungraded."""
    return exportable(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def run(results: Path) -> ChosenRun:
    """Return that run."""
    return choose_run(results)


def entries(run: ChosenRun, source_url: str | None = SOURCE) -> list[EvalResultEntry]:
    """Return what the Hub's client reads in a run's file."""
    return parse_eval_result_entries(yaml.safe_load(eval_results_file(run, source_url=source_url).content))


# -- what stands in the file


def test_one_value_an_entry(run: ChosenRun, results: Path) -> None:
    """The overall score and each panel's come back through the client to the last digit, in the run's own scale."""
    row = pq.read_table(next((results / "runs").iterdir()) / "run.parquet", partitioning=None).to_pylist()[0]
    means = {"all": row["overall_mean"], **{panel["panel"]: panel["mean"] for panel in row["panels"]}}

    assert means == {entry.task_id: entry.value for entry in entries(run)}
    assert 0.5 == means["drug_safety"]  # two graded cases, each 0.5
    assert (means["drug_safety"] + means["safety_diagnostic"]) / 2 == means["all"]


def test_what_each_entry_names(run: ChosenRun) -> None:
    """Each entry names the dataset at its revision, the run's date, and the results commit as its source."""
    for entry in entries(run):
        assert (DATA_REPO, REVISION, "2026-03-05") == (entry.dataset_id, entry.dataset_revision, entry.date)
        assert (SOURCE, SOURCE_NAME) == (entry.source_url, entry.source_name)


def test_notes(run: ChosenRun) -> None:
    """The notes say what a lone number hides: scale, judge, cases, interval, bounds, scope, protocol and digests."""
    overall, panel, complete = (str(entry.notes).split("; ") for entry in entries(run))
    row = run.row

    assert [
        "score from 0 to 1",
        "answer model as asked: test/Model A",
        "judge test-judge",
        "6 of 8 cases graded",
        f"95% interval {row['overall_ci_low']:.3f} to {row['overall_ci_high']:.3f} (sampling of cases only)",
        f"between {row['overall_worst']:.3f} and {row['overall_best']:.3f} whatever the ungraded cases would give",
        "mean of the panel means",
        "only over 2 of 10 panels: drug_safety, safety_diagnostic",
        "4 cases a panel (official: 50), not comparable with official 50-case numbers",
        "protocol bedside-bench-grading-v1",
        f"semantics sha256:{row['semantics_sha256']}",
        f"dataset sha256:{row['dataset_sha256']}",
        "judge not certified against a reference",
        f"run {run.run_id}",
    ] == overall
    assert {
        "2 of 4 cases graded",
        "between 0.250 and 0.750 whatever the ungraded cases would give",
        "95% interval 0.500 to 0.500 (sampling of cases only, its zero width is not certainty)",
    } <= set(panel)
    assert not [part for part in complete if part.startswith("between")]


def test_a_panel_without_score_has_no_entry(tmp_path: Path) -> None:
    """Where no case of a panel was graded, neither the panel nor the overall is there: a null is no number."""
    run = choose_run(exportable(tmp_path, fail=dict.fromkeys(range(4), ("answer", "timeout"))))

    assert ["safety_diagnostic"] == [entry.task_id for entry in entries(run)]


def test_all_panels(tmp_path: Path) -> None:
    """A run over all ten panels has eleven entries, and its notes say so."""
    listed = entries(choose_run(exportable(tmp_path, panels=PANEL_IDS, fail={})))

    assert ["all", *PANEL_IDS] == [entry.task_id for entry in listed]
    assert "; all 10 panels; 4 cases a panel (official: 50), " in str(listed[0].notes)


def test_unpublished_results_have_no_source(run: ChosenRun) -> None:
    """Without a results dataset no source is named at all."""
    assert {(None, None)} == {(entry.source_url, entry.source_name) for entry in entries(run, None)}


def test_one_file_a_run(run: ChosenRun) -> None:
    """The file is called after the run, and the same run gives the same bytes."""
    file = eval_results_file(run, source_url=SOURCE)

    assert f".eval_results/bedside-bench-{run.run_id}.yaml" == file.path
    assert file == eval_results_file(run, source_url=SOURCE)


# -- which run, and what is refused


def test_a_run_of_several(tmp_path: Path) -> None:
    """Of several runs one is chosen by its name, or by its own folder; without a choice all names are given."""
    exportable(tmp_path)
    results = exportable(tmp_path, shift=1)
    first, second = sorted(path.name for path in (results / "runs").iterdir())

    assert second == choose_run(results, second).run_id == choose_run(results / "runs" / second).run_id
    with pytest.raises(BadInput, match=rf"out: expected one run, found {first}, {second}; choose with --run$"):
        choose_run(results)
    with pytest.raises(BadInput, match="expected one run called 2026-x, found none"):
        choose_run(results, "2026-x")
    with pytest.raises(BadInput, match="expected the run 2026-x, found a run's own folder"):
        choose_run(results / "runs" / second, "2026-x")


def test_a_changed_run_is_refused(results: Path, tmp_path: Path) -> None:
    """A run that does not verify is not exported: every finding is named, on a line each."""
    changed = copy_of_run(results, tmp_path)
    tamper(changed, "run", 0, "overall_mean", another)

    with pytest.raises(DigestMismatch, match=r"does not verify, nothing is exported\nrun\.parquet: run: overall_mean"):
        choose_run(changed)


def test_a_run_under_another_name_is_refused(results: Path, tmp_path: Path) -> None:
    """In a results folder a run stands under its own name."""
    copy = copy_of_run(results, tmp_path)
    copy.rename(copy.with_name("2026-03-05-better-00000000"))

    with pytest.raises(BadInput, match="expected the run 2026-03-05-better-00000000, found 2026-03-05-test-model-a-"):
        choose_run(tmp_path)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a policy": ({"answer": Model("builtin:all-items")}, "found those of builtin:all-items: it is no model"),
    "a stand-in judge": ({"judge": Model("builtin:verbatim")}, "expected a judge model, found builtin:verbatim"),
    "pending": ({"fail": {7: ("judge", "pending")}}, "expected a finished run, found 1 of 8 cases pending"),
    "nothing graded": ({"fail": dict.fromkeys(range(8), ("answer", "timeout"))}, "no case was graded"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_result_of_a_model(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """Stand-ins, unfinished runs and runs without any score are refused in one line."""
    with pytest.raises(BadInput, match=message):
        choose_run(exportable(tmp_path, **options))


def test_a_run_on_no_hub_dataset(tmp_path: Path) -> None:
    """A run on a local folder has no benchmark on the Hub to be listed under."""
    with pytest.raises(BadInput, match="expected a run on a Hub dataset, found one on a folder that names none; build"):
        eval_results_file(choose_run(exportable(tmp_path, repo=None)), source_url=None)


def test_a_mirror_is_no_run(mirror: Path) -> None:
    """A mirror, or a folder that is not there, is named for what it is."""
    with pytest.raises(BadInput, match="expected a results folder or a run's, found another"):
        choose_run(mirror)
    with pytest.raises(BadInput, match="none: expected a dataset folder, found none"):
        choose_run(mirror / "none")


# -- the Hub


@pytest.fixture(scope="module")
def hub() -> Iterator[LocalHub]:
    """Run a Hub on the loopback interface."""
    with LocalHub(tokens={TOKEN: "alice:write"}, orgs={"alice": ["org"]}) as running:
        yield running


@pytest.fixture(scope="module")
def api(hub: LocalHub) -> HfApi:
    """Return a client that may write."""
    return HfApi(hub.endpoint, token=TOKEN)


def push(api: HfApi, repo: str, run: ChosenRun, *, create_pr: bool = False) -> Published:
    """Push a run's file to a model's repository as the command does."""
    file = eval_results_file(run, source_url=SOURCE)
    return publish_files(api, repo, {file.path: file.content}, message="m", repo_type="model", create_pr=create_pr)


def published(api: HfApi, repo: str, results: Path) -> str:
    """Put the digests of a results folder's run where publishing puts them, and return the commit."""
    (digests,) = results.glob("runs/*/digests.json")
    api.create_repo(repo, repo_type="dataset")
    add = CommitOperationAdd(digests.relative_to(results).as_posix(), digests)
    return str(api.create_commit(repo, [add], commit_message="run", repo_type="dataset").oid)


def test_values_reach_the_models_page(api: HfApi, run: ChosenRun) -> None:
    """After the push the Hub lists the run's values for the model; pushing again changes nothing."""
    api.create_repo("org/model")
    commits = {push(api, "org/model", run).commit for _ in range(2)}
    listed = api.model_info("org/model", expand=["evalResults"]).eval_results

    assert entries(run) == listed
    assert 1 == len(commits)


def test_a_proposal_leaves_the_model_alone(api: HfApi, run: ChosenRun) -> None:
    """--create-pr opens one pull request, however often it is asked for; main stays as it was."""
    api.create_repo("org/theirs")
    file = eval_results_file(run, source_url=SOURCE)
    urls = {push(api, "org/theirs", run, create_pr=True).url for _ in range(2)}

    assert {f"{api.endpoint}/org/theirs/discussions/1"} == urls
    assert file.path not in api.list_repo_files("org/theirs")
    assert file.path in api.list_repo_files("org/theirs", revision="refs/pr/1")


def test_source_is_the_commit_that_holds_the_run(api: HfApi, run: ChosenRun, results: Path) -> None:
    """The source is the results dataset at the commit that its branch is now, at the run's own folder."""
    commit = published(api, "org/results", results)
    expected = f"{api.endpoint}/datasets/org/results/tree/{commit}/runs/{run.run_id}"

    assert expected == results_source(api, HubPlace("org/results"), run=run)
    assert expected == results_source(api, HubPlace("org/results", commit), run=run)


def test_a_source_without_the_run_is_refused(api: HfApi, run: ChosenRun, tmp_path: Path) -> None:
    """A dataset without the run, with another form of it, or none at all is never named as the source."""
    with_texts = exportable(tmp_path, with_texts=True)
    published(api, "org/texts", with_texts)
    published(api, "org/others", exportable(tmp_path / "other", shift=1))

    with pytest.raises(BadInput, match=rf"^org/others: expected runs/{run.run_id}/digests.json, found none; publish"):
        results_source(api, HubPlace("org/others"), run=run)
    with pytest.raises(BadInput, match=r"^org/texts: runs/.* is not that of .*; fetch the published run"):
        results_source(api, HubPlace("org/texts"), run=run)
    with pytest.raises(BadInput, match=r"^org/nowhere: no such repository"):
        results_source(api, HubPlace("org/nowhere"), run=run)
