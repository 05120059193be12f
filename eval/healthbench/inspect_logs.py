"""Read an Inspect log of the HealthBench tasks of inspect_evals into a `RunData`.

In: a log in Inspect's JSON format, whose schema is public (`inspect log schema`), or an `.eval` archive of such JSON,
and where the data is at hand its examples by prompt id, whose rubrics and tags must be the log's.
Out: the run with the log's own verdicts, to be scored again, and the numbers that the log states.

What the tasks healthbench, healthbench_hard and healthbench_consensus store (inspect_evals 0.28, log version 2): a
sample has metadata {rubrics, example_tags, prompt_id} and one score with metadata.detailed_results [{criterion, points,
met, explanation, tags}], whose tags are the item's with some of the example's behind them. Not importable:

- a judge reply that could not be read is stored as `met: false`. Two forms of it can be told: the explanation begins
  with "Failed to parse judge response", or is the task's own "No explanation provided". Both are taken as no decision,
  the second also where a judge left its explanation out: the log does not tell the two apart. A reply without a verdict
  but with an explanation is stored like any "not met" and cannot be found; a notice says so.
- the meta-evaluation task: its scores hold a grade and no reason, so a failed reply cannot be told from "not met".
- samples stored in chunks: their layout is not documented. `inspect log convert --to json` writes them as JSON.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from builder.errors import BadInput
from builder.healthbench.names import CONSENSUS, CORE, HARD, SUITE
from builder.rules.problems import shown
from eval.healthbench.foreign import (
    Judged,
    an_object,
    finite,
    judged_case,
    list_at,
    load,
    object_at,
    read_file,
    read_items,
    state_counts,
    text_at,
    texts_at,
    undecided_notices,
    uneven_notices,
)
from eval.healthbench.known import check_tags, known_example
from eval.healthbench.recorded import OVERALL, OVERALL_RAW, Imported, Recorded, RecordedMetric
from eval.judging.graded import GradedCase, RunData

if TYPE_CHECKING:
    from eval.cases import Case

PROTOCOL: Final = "healthbench+inspect-evals"
FAILED_REPLY: Final = "Failed to parse judge response"
NO_EXPLANATION: Final = "No explanation provided"
EXAMPLE_TAGS_ON_ITEMS: Final = ("theme:", "physician_agreed_category:")

_CONVERT: Final = "convert the log first: inspect log convert LOG --to json --output-dir DIR"
_TASKS: Final = {"healthbench": CORE, "healthbench_hard": HARD, "healthbench_consensus": CONSENSUS}
_SUBSETS: Final = {"full": CORE, "hard": HARD, "consensus": CONSENSUS}
_HEAD_BYTES: Final = 4096
_HEAD: Final = re.compile(rb'\A\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"')
_SAMPLE: Final = re.compile(r"samples/[^/]+\.json")
_GROUP_SCORE: Final = re.compile(r"(axis|theme)_(.+)_score")


@dataclass(frozen=True, slots=True)
class _Sample:
    """One answer of the log: its case, the rubric it was judged by, and the score that the log states for it."""

    case: GradedCase
    judged: Judged
    score: float | None


def is_inspect_log(path: Path) -> bool:
    """Whether a file looks like an Inspect log: an `.eval` archive, or JSON that begins as its logs do. Reads 4 KB."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return (path.suffix == ".eval" and head.startswith(b"PK")) or _HEAD.match(head) is not None


def read_inspect_log(path: Path, *, known: Mapping[str, Case] | None = None) -> Imported:
    """Return the run that a log holds, examples in the order of the log and their epochs as answers, and its numbers.

    Args:
        known: Prompt id -> example of the data that was run.

    Raises:
        BadInput: the log is not of a HealthBench task, has no samples, is packed in a way that is not documented, its
            verdicts do not fit together, or an example is not that of the data.
    """
    log = _read_archive(path) if zipfile.is_zipfile(path) else load(read_file(path), str(path))
    spec = an_object(log.get("eval"), f"{path}: eval")
    config = _config(path, spec)
    samples = _samples(path, log, config, known)
    cases = tuple(sample.case for sample in samples)
    arguments = _objects(spec, "task_args")
    times = _objects(log, "stats")
    settings = _objects(spec, "model_generate_config")
    run = RunData(
        protocol_version=PROTOCOL,
        cases=cases,
        file_order=tuple(index for index, case in enumerate(cases) if case.matched is not None),
        suite=SUITE,
        config=config,
        answer_model=_text(spec.get("model")),
        judge_model=_text(arguments.get("judge_model")),
        answer_temperature=finite(settings.get("temperature")),
        judge_temperature=finite(arguments.get("judge_temperature")),
        started_at=_text(times.get("started_at")),
        finished_at=_text(times.get("completed_at")),
        states=state_counts(cases),
        notices=tuple(_notices(log, spec, cases)),
    )
    return Imported(run, _recorded(log, samples))


def _read_archive(path: Path) -> dict[str, Any]:
    """Return an `.eval` archive as the one JSON log that it holds in pieces."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "header.json" not in names:
                raise BadInput(
                    f"{path}: expected header.json in the archive, found none; an unfinished log? {_CONVERT}"
                )
            if any(name.endswith("/sample.json") for name in names):
                raise BadInput(f"{path}: expected whole samples, found samples in chunks; {_CONVERT}")
            log = load(_member(archive, "header.json", path), f"{path}: header.json")
            found = [name for name in dict.fromkeys(names) if _SAMPLE.fullmatch(name)]
            samples = [load(_member(archive, name, path), f"{path}: {name}") for name in found]
    except NotImplementedError:  # how zipfile says that it cannot unpack a member
        raise BadInput(f"{path}: expected members packed by deflate or zstd, found another; {_CONVERT}") from None
    except (zipfile.BadZipFile, zlib.error, struct.error, pa.ArrowException, RuntimeError, OSError, EOFError) as error:
        raise BadInput(f"{path}: expected an archive that can be read, found a broken one: {error}") from None
    return log | {"samples": samples}


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    """Return a member's bytes, also where it is packed with zstd, which zipfile unpacks from Python 3.14 on only."""
    info = archive.getinfo(name)
    if info.compress_type != _ZSTD:
        return archive.read(info)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name_length, extra_length = struct.unpack("<26xHH", file.read(30))
        file.seek(name_length + extra_length, os.SEEK_CUR)
        packed = file.read(info.compress_size)
    unpacked: bytes = pa.decompress(packed, decompressed_size=info.file_size, codec="zstd", asbytes=True)
    if len(unpacked) != info.file_size or zlib.crc32(unpacked) != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 for file {name!r}")
    return unpacked


_ZSTD: Final = 93
"""The number of zstd among the ways of packing in a ZIP archive (APPNOTE 4.4.5)."""


def _config(path: Path, spec: Mapping[str, Any]) -> str:
    """Return the subset that a log's task ran.

    Raises:
        BadInput: it is another task, or the meta-evaluation.
    """
    task = text_at(spec, "task", f"{path}: eval").rpartition("/")[2]
    arguments = _objects(spec, "task_args")
    subset = arguments.get("subset")
    if task == "healthbench_meta_eval" or (task in _TASKS and subset == "meta_eval"):
        missing = "its scores hold no reason, so a reply that could not be read looks like one that says no"
        raise BadInput(f"{path}: expected verdicts that can be trusted, found a meta-evaluation log: {missing}")
    if task not in _TASKS:
        raise BadInput(f"{path}: eval.task: expected one of {', '.join(_TASKS)}, found {shown(task)}")
    if arguments.get("local_path"):
        return _TASKS[task]
    return _SUBSETS.get(subset, _TASKS[task]) if isinstance(subset, str) else _TASKS[task]


def _samples(path: Path, log: Mapping[str, Any], config: str, known: Mapping[str, Case] | None) -> list[_Sample]:
    """Return the answers of a log, sorted by where their example first appears, then by epoch."""
    values = log.get("samples")
    if not isinstance(values, list) or not values:
        raise BadInput(f"{path}: expected samples, found none; the log was written without them")
    first: dict[str, int] = {}
    rubrics: dict[str, Judged] = {}
    found: dict[tuple[int, int], _Sample] = {}
    for index, value in enumerate(values):
        where = f"{path}: samples[{index}]"
        sample = _sample(an_object(value, where), where, config, known)
        case = sample.case
        key = (first.setdefault(case.case_id, index), case.answer_repeat)
        if key in found:
            raise BadInput(
                f"{where}: expected every epoch of {case.case_id} once, found {case.answer_repeat + 1} again"
            )
        if not rubrics.setdefault(case.case_id, sample.judged).same_rubric(sample.judged):
            raise BadInput(f"{where}: expected the rubric of the first epoch of {case.case_id}, found another")
        found[key] = sample
    return [found[key] for key in sorted(found)]


def _sample(fields: Mapping[str, Any], where: str, config: str, known: Mapping[str, Case] | None) -> _Sample:
    metadata = object_at(fields, "metadata", where)
    at = f"{where}.metadata"
    case_id = text_at(metadata, "prompt_id", at)
    tags = texts_at(metadata, "example_tags", at)
    repeat = _epoch(fields, where) - 1
    name, score = _score(fields, where)
    if score is None:
        items = f"{at}.rubrics"
        judged = _undecided(list_at(metadata, "rubrics", at), items)
    else:
        items = f"{where}.scores.{name}.metadata.detailed_results"
        judged = _judged(object_at(score, "metadata", f"{where}.scores.{name}"), f"{where}.scores.{name}.metadata")
    judged = replace(judged, tags=tuple(_own_tags(own, tags) for own in judged.tags))
    if known is not None:
        check_tags(known_example(known, case_id, judged, where=where, items=items), tags, f"{at}.example_tags")
    answer = text_at(score, "answer", f"{where}.scores.{name}", may_be_empty=True) if score else ""
    case = judged_case(case_id, judged, config=config, answer_repeat=repeat, tags=tags, n_chars=len(answer))
    if score is None:
        return _Sample(_unanswered(case, fields), judged, None)
    value = score.get("value")
    return _Sample(case, judged, finite(value.get("healthbench_score")) if isinstance(value, dict) else None)


def _epoch(fields: Mapping[str, Any], where: str) -> int:
    epoch = fields.get("epoch", 1)
    if type(epoch) is not int or epoch < 1:
        raise BadInput(f"{where}.epoch: expected an integer from 1, found {shown(epoch)}")
    return epoch


def _score(fields: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any] | None]:
    """Return the one score of a sample that has verdicts, with its scorer's name; None if it has none."""
    scores = fields.get("scores") or {}
    found = {
        name: score
        for name, score in an_object(scores, f"{where}.scores").items()
        if isinstance(score, dict) and "detailed_results" in _objects(score, "metadata")
    }
    if len(found) > 1:
        raise BadInput(f"{where}.scores: expected verdicts of one scorer, found {', '.join(found)}; keep one of them")
    if fields.get("error") is not None or fields.get("invalidation") is not None:
        return "", None
    return next(iter(found.items()), ("", None))


def _judged(metadata: Mapping[str, Any], where: str) -> Judged:
    """Return a score's verdicts, those taken back that its explanation shows to be a reply that was not read."""
    results = list_at(metadata, "detailed_results", where)
    judged = read_items(results, f"{where}.detailed_results", verdict="met")
    decided = [None if _unread(item) else met for item, met in zip(results, judged.decided, strict=True)]
    return replace(judged, decided=tuple(decided))


def _unread(item: Mapping[str, Any]) -> bool:
    """Whether the log shows that an item's `met: false` stands for a judge reply that could not be read."""
    why = item.get("explanation")
    failed = isinstance(why, str) and why.startswith(FAILED_REPLY)
    return item.get("met") is not True and (failed or why in (None, NO_EXPLANATION))


def _undecided(rubrics: Sequence[Any], where: str) -> Judged:
    """Return the rubric of a sample that was never judged."""
    bare = [{**an_object(item, f"{where}[{index}]"), "met": None} for index, item in enumerate(rubrics)]
    return read_items(bare, where, verdict="met")


def _own_tags(tags: tuple[str, ...], example_tags: Sequence[str]) -> tuple[str, ...]:
    """Return an item's own tags: without the example's, which the task writes behind them."""
    added = tuple(tag for tag in example_tags if tag.startswith(EXAMPLE_TAGS_ON_ITEMS))
    return tags[: -len(added)] if added and tags[-len(added) :] == added else tags


def _unanswered(case: GradedCase, fields: Mapping[str, Any]) -> GradedCase:
    """Return the case of a sample without verdicts: the model gave no text, or the log holds an error in its place."""
    empty = bool(fields.get("scores")) and fields.get("error") is None and fields.get("invalidation") is None
    reason = "the log says that the model gave no text" if empty else "the log holds an error in place of an answer"
    state = "empty" if empty else "missing"
    case = replace(case, answer_state=None, decided=None, n_chars=None)
    return replace(case, failed_role="answer", failed_state=state, reason=reason)


def _recorded(log: Mapping[str, Any], samples: Sequence[_Sample]) -> Recorded:
    stated: dict[str, float] = {}
    listed = _objects(log, "results").get("scores")
    for score in listed if isinstance(listed, list) else ():
        if isinstance(score, dict):
            of_mean = score.get("name") == "healthbench_score"
            for name, metric in _objects(score, "metrics").items():
                value = finite(metric.get("value")) if isinstance(metric, dict) else None
                if value is not None and of_mean == (name == "mean"):
                    stated[name] = value
    metrics = dict(_metrics(stated))
    return Recorded(
        score=stated.get("bootstrap_score"),
        metrics=metrics,
        example_scores=tuple(sample.score for sample in samples),
        complete=False,
        example_tags=True,
        pooled=False,
    )


def _metrics(stated: Mapping[str, float]) -> Iterator[tuple[str, RecordedMetric]]:
    """Yield the metrics under our names: bootstrap_score is the clipped mean, axis_<x>_score the one of `axis:<x>`.

    Without the numbers of values: the log counts an example once, whatever its epochs.
    """
    if "bootstrap_score" in stated:
        yield OVERALL, RecordedMetric(stated["bootstrap_score"], bootstrap_std=stated.get("std"))
    if "mean" in stated:
        yield OVERALL_RAW, RecordedMetric(stated["mean"])
    for name, value in stated.items():
        if group := _GROUP_SCORE.fullmatch(name):
            deviation = stated.get(f"{group[1]}_{group[2]}_std")
            yield f"{group[1]}:{group[2]}", RecordedMetric(value, bootstrap_std=deviation)


def _notices(log: Mapping[str, Any], spec: Mapping[str, Any], cases: Sequence[GradedCase]) -> Iterator[str]:
    version = spec.get("task_version")
    yield f"read from an Inspect log of {spec['task']} (task version {shown(version)}); rescored from its verdicts"
    yield "a judge reply without a verdict but with an explanation is stored as not met in such a log: not to be found"
    yield "the task clips axis and theme scores example by example, and scores an answer without text 0: means differ"
    if log.get("status") != "success":
        yield f"the log's status is {shown(log.get('status'))}: it may lack samples"
    if unanswered := sum(case.failed_role == "answer" for case in cases):
        yield f"{unanswered} of {len(cases)} samples have no answer that was judged: ungraded"
    yield from undecided_notices(cases)
    yield from uneven_notices(cases)


def _objects(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a member that is an object, or an empty one: what such a member says is never needed for a verdict."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
