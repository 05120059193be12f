"""A run -> `.eval_results/*.yaml` for a model's repository, one value an entry, by the Hub client's own class.

In: a run on a Hub dataset, and where its results are published. Out: the file. Not done here: pushing it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import yaml

from builder.errors import BadInput
from eval.exports.chosen import SOURCE_NAME, ChosenRun, Number, data_repo
from eval.exports.files import ExportFile
from eval.exports.notes import notes

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry


def eval_results_file(run: ChosenRun, *, source_url: str | None) -> ExportFile:
    """Return the file of a run's numbers: the overall score as task `all`, each panel's as the panel's id.

    Values are the run's own, from 0 to 1.

    Args:
        source_url: the commit of the results dataset that holds the run; None where it is not published.

    Raises:
        BadInput: the run names no Hub dataset, or the Hub client is too old for these files.
    """
    repo = data_repo(run)
    try:
        from huggingface_hub import eval_result_entries_to_yaml
    except ImportError:
        raise BadInput("huggingface_hub: expected 1.5 or later, which writes .eval_results; upgrade it") from None
    listed = [_entry(run, number, repo=repo, source_url=source_url) for number in run.numbers]
    text = yaml.safe_dump(eval_result_entries_to_yaml(listed), sort_keys=False, allow_unicode=True, width=2**16)
    return ExportFile(f".eval_results/bedside-bench-{run.run_id}.yaml", text.encode())


def _entry(run: ChosenRun, number: Number, *, repo: str, source_url: str | None) -> EvalResultEntry:
    from huggingface_hub import EvalResultEntry

    about = {"date": run.row["date"], "notes": notes(run, number)}
    if source_url is not None:
        about |= {"source_url": source_url, "source_name": SOURCE_NAME}
    # Clients differ in which optional fields they know.
    if run.row["data_revision"] and "dataset_revision" in {field.name for field in fields(EvalResultEntry)}:
        about["dataset_revision"] = run.row["data_revision"]
    return EvalResultEntry(dataset_id=repo, task_id=number.task, value=number.value, **about)
