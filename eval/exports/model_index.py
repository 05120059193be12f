"""A run -> `model-index` YAML, the older form in which a model card's front matter holds results.

In: a run on a Hub dataset. Out: a file whose text goes into the front matter of a model's README.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eval.exports.chosen import SOURCE_NAME, ChosenRun, Number, data_repo, metric_of
from eval.exports.files import ExportFile
from eval.exports.notes import notes

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

TASK: Final = "question-answering"
TASK_NAME: Final = "Rubric-graded clinical question answering"


def model_index_file(run: ChosenRun, *, source_url: str | None = None, model_name: str | None = None) -> ExportFile:
    """Return the `model-index` of a run's numbers, values from 0 to 1.

    Args:
        source_url: the commit of the results dataset that holds the run.
        model_name: the model's name in the card; without it the one that was asked for.

    Raises:
        BadInput: the run names no Hub dataset.
    """
    from huggingface_hub import ModelCardData

    repo, name = data_repo(run), model_name or str(run.row["answer_model"])
    results = [_result(run, number, repo=repo, source_url=source_url) for number in run.numbers]
    text = ModelCardData(model_name=name, eval_results=results).to_yaml(line_break="\n")
    return ExportFile(f"model-index-{run.run_id}.yaml", f"{text.rstrip()}\n".encode())


def _result(run: ChosenRun, number: Number, *, repo: str, source_url: str | None) -> EvalResult:
    from huggingface_hub import EvalResult

    metric = metric_of(run, number)
    return EvalResult(
        task_type=TASK,
        task_name=TASK_NAME,
        dataset_type=repo,
        dataset_name=f"{repo}: {number.task}",
        dataset_config=number.task,
        dataset_revision=run.row["data_revision"],
        metric_type=metric,
        metric_name=f"{metric} (0 to 1)",
        metric_value=number.value,
        metric_args=_facts(run, number),
        source_name=SOURCE_NAME if source_url else None,
        source_url=source_url,
    )


def _facts(run: ChosenRun, number: Number) -> dict[str, Any]:
    interval = None if number.ci_low is None else [number.ci_low, number.ci_high]
    return {
        "judge_models": list(run.row["judge_models"]),  # of its own, or YAML makes it an alias
        "protocol": run.row["protocol"],
        "n_graded": number.n_graded,
        "n_expected": number.n_expected,
        "ci95": interval,
        "notes": notes(run, number),
    }
