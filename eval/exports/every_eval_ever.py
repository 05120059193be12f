"""A run -> Every Eval Ever 0.3.0: one aggregate JSON, and one JSONL line for each graded case.

In: a run. Out: two files under `data/<suite>/<developer>/<model>/`, named by a UUID made from the run's digest, so that
the same run gives the same files. Their keys are that format's words, not ours. It has no null score: an ungraded case
has no line, and the aggregate names it. No prompt and no rubric is in either file; answers are, where the run has them.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from bedside_bench import PANELS_BY_ID, canonical_json
from eval.exports.chosen import ALL, SOURCE_NAME, ChosenRun, Number, metric_of
from eval.exports.every_eval_ever_cases import case_object
from eval.exports.files import ExportFile
from eval.exports.notes import notes
from eval.numbers.defaults import ALPHA

VERSION: Final = "0.3.0"
UNKNOWN: Final = "unknown"

# What their datastore refuses in the name of a folder, by their validator.
_UNSAFE: Final = re.compile(r'[<>:"\\|?*\x00-\x1f]')
_RESERVED: Final = re.compile(r"(data|(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?)", re.IGNORECASE)


def every_eval_ever_files(
    run: ChosenRun, *, organization: str = UNKNOWN, developer: str | None = None, source_url: str | None = None
) -> list[ExportFile]:
    """Return the aggregate file of a run, and the file of its cases.

    Args:
        organization: who ran the evaluation.
        developer: who made the model, where its name does not begin with `<developer>/`.
        source_url: the commit of the results dataset that holds the run.
    """
    model = _model_info(str(run.row["answer_model"]), developer or run.row["answer_vendor"])
    place = f"{_folder(run, model)}/{_uuid4(run.row['run_sha256'])}"
    evaluation_id = f"{run.row['suite']}/{model['id']}/{_seconds(run)}"
    lines = _case_lines(run, evaluation_id=evaluation_id, model_id=model["id"])
    cases = ExportFile(f"{place}_samples.jsonl", "".join(f"{line}\n" for line in lines).encode())
    aggregate = {
        "schema_version": VERSION,
        "evaluation_id": evaluation_id,
        "evaluation_timestamp": _started(run),
        "retrieved_timestamp": _seconds(run),
        "source_metadata": _source(run, organization, source_url),
        "eval_library": {"name": "bedside-bench", "version": _version(run)},
        "model_info": model,
        "evaluation_results": [_result(run, number) for number in run.numbers],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": cases.path,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(cases.content).hexdigest(),
            "total_rows": len(lines),
        },
    }
    text = json.dumps(aggregate, indent=1, sort_keys=True, allow_nan=False)
    return [ExportFile(f"{place}.json", f"{text}\n".encode()), cases]


def _case_lines(run: ChosenRun, **ids: str) -> list[str]:
    """Return a line for each graded case, in dataset order; of its panel's result, as the overall is made of those."""
    answers = {(answer["case_id"], answer["answer_repeat"]): answer for answer in run.answers}
    return [
        json.dumps(
            case_object(
                score,
                answers[score["case_id"], score["answer_repeat"]],
                schema_version=VERSION,
                result_id=_result_id(run, score["benchmark"]),
                **ids,
            ),
            sort_keys=True,
            allow_nan=False,
        )
        for score in run.scores
        if score["score"] is not None
    ]


def _uuid4(digest: str) -> str:
    """Return a UUID of the form of version 4, its other bits the first of a digest's."""
    return str(uuid.UUID(bytes=bytes.fromhex(digest)[:16], version=4))


def _folder(run: ChosenRun, model: Mapping[str, Any]) -> str:
    """Return `data/<suite>/<developer>/<model>`: a model's further slashes become underscores."""
    before, slash, after = model["id"].partition("/")
    developer, name = (before, after) if slash else (model.get("developer", UNKNOWN), before)
    return "/".join(["data", *(_folder_name(part) for part in (str(run.row["suite"]), developer, name))])


def _folder_name(text: str) -> str:
    safe = _UNSAFE.sub("_", text.replace("/", "_"))[:100].rstrip(". ") or UNKNOWN
    return f"_{safe}" if _RESERVED.fullmatch(safe) else safe


def _model_info(model: str, developer: str | None) -> dict[str, Any]:
    name = model.partition("/")[0] if "/" in model else developer
    about = {"deployment_type": UNKNOWN, "model_availability": UNKNOWN}  # nothing in a run says either
    return {"name": model, "id": model, "additional_details": about} | ({"developer": name} if name else {})


def _source(run: ChosenRun, organization: str, url: str | None) -> dict[str, Any]:
    names = ("run_id", "run_sha256", "identity_sha256", "dataset_sha256", "content_sha256")
    return {
        "source_name": SOURCE_NAME,
        "source_type": "evaluation_run",
        "source_organization_name": organization,
        "evaluator_relationship": "other",
        "additional_details": _texts({name: run.row[name] for name in names} | {"results_url": url}),
    }


def _version(run: ChosenRun) -> str:
    software = run.summary.get("software")
    return str(software.get("bedside-bench", UNKNOWN)) if isinstance(software, dict) else UNKNOWN


def _time(run: ChosenRun, member: str) -> datetime:
    """Return a time of the run; where its summary states none, the beginning of its day."""
    try:
        time = datetime.fromisoformat(run.summary[member])
    except (KeyError, TypeError, ValueError):
        time = datetime.fromisoformat(run.row["date"])
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _started(run: ChosenRun) -> str:
    return _time(run, "started_at").astimezone(UTC).isoformat()


def _seconds(run: ChosenRun) -> str:
    """Return the end of the run in seconds since 1970: its results are from then, whenever they are exported."""
    return str(int(_time(run, "finished_at").timestamp()))


def _result_id(run: ChosenRun, task: str) -> str:
    return f"{run.row['suite']}/{task}"


def _result(run: ChosenRun, number: Number) -> dict[str, Any]:
    """Return one number with what it was measured on, how, and how sure it is."""
    cases = [case for case in run.scores if number.task in (ALL, case["benchmark"])]
    return {
        "evaluation_result_id": _result_id(run, number.task),
        "evaluation_name": _result_id(run, number.task),
        "evaluation_timestamp": _started(run),
        "source_data": _source_data(run, number, case_ids=[case["case_id"] for case in cases]),
        "metric_config": _metric(run, number),
        "score_details": {
            "score": number.value,
            "details": _texts(
                {
                    "n_graded": number.n_graded,
                    "n_expected": number.n_expected,
                    "ungraded_cases": [case["case_id"] for case in cases if case["score"] is None],
                    "worst": number.worst,
                    "best": number.best,
                    "notes": notes(run, number),
                }
            ),
            "uncertainty": _uncertainty(run, number),
        },
        **_generation(run),
    }


def _source_data(run: ChosenRun, number: Number, *, case_ids: Sequence[str]) -> dict[str, Any]:
    about = {name: run.row[name] for name in ("dataset_sha256", "content_sha256", "cases_sha256", "data_revision")}
    name = {"dataset_name": str(run.row["data_repo"] or run.row["suite"])}
    if not run.row["data_repo"]:
        return name | {"source_type": "other", "additional_details": _texts(about)}
    return name | {
        "source_type": "hf_dataset",
        "hf_repo": run.row["data_repo"],
        "sample_ids": list(case_ids),
        "additional_details": _texts(about | {"config": number.task}),
    }


def _metric(run: ChosenRun, number: Number) -> dict[str, Any]:
    metric, panel = metric_of(run, number), PANELS_BY_ID.get(number.task)
    what = "mean of the panel means" if number.task == ALL else panel.tests if panel else number.task
    names = ("protocol", "dialect", "semantics_sha256", "grouping", "certificate")
    return {
        "evaluation_description": f"Rubric-graded clinical question answering: {what}",
        "metric_id": f"{run.row['suite']}.{metric}",
        "metric_name": metric,
        "metric_kind": metric,
        "metric_unit": "proportion",
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": 0,
        "max_score": 1,
        "llm_scoring": _judging(run),
        "additional_details": _texts({name: run.row[name] for name in names}),
    }


def _judging(run: ChosenRun) -> dict[str, Any]:
    """Return who judged; of the judge's message only digests, as its texts are the protocol's."""
    judges = run.identity["judges"]
    digests = [f"system sha256:{judge['system_sha256']}, message sha256:{judge['template_sha256']}" for judge in judges]
    jury = {"aggregation_method": "majority_vote"} if len(judges) > 1 else {}
    return {
        "judges": [_judge(judge, weight=1 / len(judges)) for judge in judges],
        "input_prompt": f"{run.row['protocol']}: {'; '.join(dict.fromkeys(digests))}",
        "additional_details": _texts({"repeats": run.row["repeats"], "grouping": run.row["grouping"]}),
        **jury,
    }


def _judge(judge: Mapping[str, Any], *, weight: float) -> dict[str, Any]:
    about = {"format": judge["format"], "id_style": judge["id_style"], "params": judge["params"]}
    temperature = judge["params"].get("temperature")
    return {
        "model_info": _model_info(judge["model"], judge.get("vendor")),
        "weight": weight,
        "additional_details": _texts(about),
        **({"temperature": temperature} if _is_number(temperature) else {}),
    }


def _uncertainty(run: ChosenRun, number: Number) -> dict[str, Any]:
    if number.ci_low is None or number.ci_high is None:
        return {"num_samples": number.n_graded}
    how = "stratified by panel" if number.task == ALL else "over the panel's cases"
    return {
        "confidence_interval": {
            "lower": number.ci_low,
            "upper": number.ci_high,
            "confidence_level": 1 - ALPHA,
            "method": f"percentile bootstrap {how}",
        },
        "num_samples": number.n_graded,
        "num_bootstrap_samples": run.summary["bootstrap_samples"],
    }


def _generation(run: ChosenRun) -> dict[str, Any]:
    """Return how the answers were asked for; nothing where they were given in a file."""
    answer = run.identity["answer"]
    if answer.get("source") != "model":
        return {}
    limit = answer["params"].get("max_completion_tokens")
    return {
        "generation_config": {
            "generation_args": {
                "temperature": run.row["answer_temperature"],
                **({"max_tokens": limit} if type(limit) is int and limit > 0 else {}),
            },
            "additional_details": _texts({"params": answer["params"], "system_sha256": answer["system_sha256"]}),
        }
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return what is not null or empty as text, as the format's open places want it: lists and objects as JSON."""
    given = {name: value for name, value in values.items() if value is not None and value != []}
    return {name: value if isinstance(value, str) else canonical_json(value).decode() for name, value in given.items()}
