"""The older `model-index` form: what a model card's front matter gets, read back by the client."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData

from builder.errors import BadInput
from eval.exports.chosen import ChosenRun, choose_run
from eval.exports.model_index import model_index_file
from eval.exports.notes import notes
from tests.exported import DATA_REPO, REVISION, exportable

SOURCE = "https://hub.test/datasets/org/results/tree/abc/runs/x"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ChosenRun:
    """Return a run over two panels of four cases, two of which are ungraded."""
    return choose_run(exportable(tmp_path_factory.mktemp("results")))


def results(run: ChosenRun, **options: str) -> list[EvalResult]:
    """Return what the client reads in a model card with the run's `model-index`."""
    front = model_index_file(run, **options).content.decode()
    data = ModelCard(f"---\n{front}---\n\n# A model\n").data

    assert isinstance(data, ModelCardData)
    return list(data.eval_results or [])


def test_every_number_comes_back(run: ChosenRun) -> None:
    """Each number is a result of its own: the overall's metric is the mean of means, a panel's its grading method."""
    assert [(number.task, number.value) for number in run.numbers] == [
        (result.dataset_config, result.metric_value) for result in results(run)
    ]
    assert ["macro_mean", "points_rubric", "f1_weighted_rubric"] == [result.metric_type for result in results(run)]


def test_what_each_result_names(run: ChosenRun) -> None:
    """Each names the dataset at its revision, the source, and in its arguments judge, counts, interval and notes."""
    panel, number = results(run, source_url=SOURCE)[1], run.numbers[1]

    assert (DATA_REPO, REVISION, SOURCE) == (panel.dataset_type, panel.dataset_revision, panel.source_url)
    assert {
        "judge_models": ["test-judge"],
        "protocol": "bedside-bench-grading-v1",
        "n_graded": 2,
        "n_expected": 4,
        "ci95": [0.5, 0.5],
        "notes": notes(run, number),
    } == panel.metric_args


def test_the_models_name(run: ChosenRun) -> None:
    """The model is called what it was asked for under, or as the card calls it."""
    own, given = (
        yaml.safe_load(file.content)["model-index"][0]["name"]
        for file in (model_index_file(run), model_index_file(run, model_name="Model A"))
    )

    assert ("test/Model A", "Model A") == (own, given)


def test_text_is_plain_yaml(run: ChosenRun) -> None:
    """The text has no aliases and ends in a newline, so that it can be put into a card by hand."""
    text = model_index_file(run).content.decode()

    assert f"model-index-{run.run_id}.yaml" == model_index_file(run).path
    assert not {"&id", "*id"} & {word[:3] for word in text.split()}
    assert text.endswith("\n")


def test_a_run_on_no_hub_dataset(tmp_path: Path) -> None:
    """A result needs a dataset on the Hub that it is of."""
    with pytest.raises(BadInput, match="expected a run on a Hub dataset"):
        model_index_file(choose_run(exportable(tmp_path, repo=None)))
