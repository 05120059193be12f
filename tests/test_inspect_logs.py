"""Inspect logs of the HealthBench tasks: read with their own verdicts, refused where a log cannot say them."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builder.errors import BadInput
from eval.cases import Case, Item
from eval.healthbench.inspect_logs import is_inspect_log, read_inspect_log
from eval.healthbench.recorded import OVERALL, OVERALL_RAW, RecordedMetric, differences, rescore
from eval.judging.graded import GradedCase

ACCURACY, COMPLETENESS = "axis:accuracy", "axis:completeness"
RUBRICS: dict[str, list[tuple[float, str]]] = {
    "p-1": [(5, ACCURACY), (2.5, COMPLETENESS), (-4, ACCURACY)],
    "p-2": [(10, ACCURACY), (-5, COMPLETENESS)],
}
TAGS = {"p-1": ["theme:a", "physician_agreed_category:x"], "p-2": ["theme:b"]}


KNOWN = {
    prompt_id: Case(
        case_id=prompt_id,
        benchmark="healthbench",
        grading_method="healthbench",
        conversation=(("user", "Hello?"),),
        items=tuple(Item(f"{prompt_id}_{i}", f"Says {i}.", points, (tag,)) for i, (points, tag) in enumerate(items)),
        tags=tuple(TAGS[prompt_id]),
    )
    for prompt_id, items in RUBRICS.items()
}


def rubric(prompt_id: str) -> list[dict[str, Any]]:
    """Return an example's items as the task stores them: the example's tags behind each item's own."""
    return [
        {"criterion": f"Says {i}.", "points": points, "tags": [tag, *TAGS[prompt_id]]}
        for i, (points, tag) in enumerate(RUBRICS[prompt_id])
    ]


def sample(prompt_id: str, *met: Any, epoch: int = 1, score: float = 0.0, why: str = "why") -> dict[str, Any]:
    """Return a sample of a log with its verdicts."""
    judged = [{**item, "met": m, "explanation": why} for item, m in zip(rubric(prompt_id), met, strict=True)]
    return {
        "id": prompt_id,
        "epoch": epoch,
        "input": [{"role": "user", "content": "Hello?"}],
        "scores": {
            "_scorer": {
                "value": {"healthbench_score": score, "criteria_met": 1, "total_criteria": len(met)},
                "answer": "Rest.",
                "metadata": {"detailed_results": judged, "total_possible": 1, "achieved_points": 0},
            }
        },
        "metadata": {"rubrics": rubric(prompt_id), "example_tags": TAGS[prompt_id], "prompt_id": prompt_id},
    }


def silent(prompt_id: str, **changes: Any) -> dict[str, Any]:
    """Return a sample whose model gave no text, as the task scores it."""
    bare = sample(prompt_id, *[True] * len(RUBRICS[prompt_id]))
    value = {"healthbench_score": 0.0, "criteria_met": 0, "total_criteria": 0}
    return bare | {"scores": {"_scorer": {"value": value, "answer": "", "explanation": "No model response"}}} | changes


def metric(**values: float) -> dict[str, Any]:
    """Return metrics as a log lists them."""
    return {name: {"name": name, "value": value, "params": {}} for name, value in values.items()}


def log_of(*samples: Any, **arguments: Any) -> dict[str, Any]:
    """Return a whole log, with the results of the two examples worked by hand below."""
    stated = metric(bootstrap_score=0.0, std=0.2, criteria_met_rate=0.4, axis_accuracy_score=0.5, axis_accuracy_std=0.3)
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "inspect_evals/healthbench",
            "task_version": "3-B",
            "task_args": {"judge_model": "openai/j", "judge_temperature": 0.0} | arguments,
            "model": "openai/m",
            "model_generate_config": {"temperature": 0.5},
        },
        "results": {
            "scores": [
                {"name": "_scorer", "scored_samples": 2, "metrics": stated},
                {"name": "healthbench_score", "scored_samples": 2, "metrics": metric(mean=-1 / 12)},
            ]
        },
        "stats": {"started_at": "2026-01-01T00:00:00+00:00", "completed_at": "2026-01-01T00:09:00+00:00"},
        "samples": list(samples),
    }


def whole() -> dict[str, Any]:
    """Return a log of two examples: (5 - 4) / 7.5 = 2/15 for the first, -5/10 for the second."""
    return log_of(sample("p-1", True, False, True, score=2 / 15), sample("p-2", False, True, score=-0.5))


def write(tmp_path: Path, value: Any, name: str = "log.json") -> Path:
    """Write a log in the JSON format."""
    file = tmp_path / name
    file.write_text(json.dumps(value, indent=2))
    return file


def archive(tmp_path: Path, value: dict[str, Any], method: int = zipfile.ZIP_DEFLATED, more: str = "notes") -> Path:
    """Write a log as an archive of JSON, with one more member."""
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w", method) as packed:
        for one in value["samples"]:
            packed.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        packed.writestr("summaries.json", "[]")
        packed.writestr("header.json", json.dumps({k: v for k, v in value.items() if k != "samples"}))
        packed.writestr(f"{more}.json", "{}")
    return file


def only_case(file: Path) -> GradedCase:
    """Return the one case of a log."""
    (case,) = read_inspect_log(file).run.cases
    return case


def test_samples_become_cases_with_their_own_tags(tmp_path: Path) -> None:
    """The example's tags are taken off the items, where the task writes them, and stand with the example."""
    case, other = read_inspect_log(write(tmp_path, whole())).run.cases

    assert (case.case_id, case.answer_repeat, case.matched, case.n_chars) == ("p-1", 0, (True, False, True), 5)
    assert (case.points, case.item_ids) == ((5, 2.5, -4), ("p-1_0", "p-1_1", "p-1_2"))
    assert case.item_tags == ((ACCURACY,), (COMPLETENESS,), (ACCURACY,))
    assert (case.tags, other.tags) == (("theme:a", "physician_agreed_category:x"), ("theme:b",))


def test_the_run_says_what_the_log_says(tmp_path: Path) -> None:
    """Models, temperatures and times are the log's; the judge is the one that the task was given."""
    run = read_inspect_log(write(tmp_path, whole())).run

    assert (run.suite, run.config, run.protocol_version) == ("healthbench", "healthbench", "healthbench+inspect-evals")
    assert (run.answer_model, run.answer_temperature) == ("openai/m", 0.5)
    assert (run.judge_model, run.judge_temperature) == ("openai/j", 0.0)
    assert (run.started_at, run.finished_at) == ("2026-01-01T00:00:00+00:00", "2026-01-01T00:09:00+00:00")


def test_scores_are_those_worked_by_hand(tmp_path: Path) -> None:
    """2/15 and -1/2: raw mean -11/60, clipped 0; accuracy (1/5 + 0)/2, completeness 0/2.5 of the first alone."""
    imported = read_inspect_log(write(tmp_path, whole()))
    found = rescore(imported)

    assert found.by_example == (2 / 15, -0.5)
    assert found.overall.raw == pytest.approx(-11 / 60)
    assert found.overall.value == 0.0
    assert {name: (m.value, m.n) for name, m in found.rubric_tags.items()} == {
        ACCURACY: (0.1, 2),
        COMPLETENESS: (0.0, 1),
    }


def test_recorded_numbers_are_set_against_ours(tmp_path: Path) -> None:
    """The log's clipped mean is compared with our value, its plain mean with our raw one, its axes with our tags."""
    imported = read_inspect_log(write(tmp_path, whole()))
    ours = rescore(imported)
    lines = differences(imported, ours)

    assert imported.recorded.example_scores == (2 / 15, -0.5)
    assert dict(imported.recorded.metrics) == {
        OVERALL: RecordedMetric(0.0, bootstrap_std=0.2),
        OVERALL_RAW: RecordedMetric(-1 / 12),
        ACCURACY: RecordedMetric(0.5, bootstrap_std=0.3),
    }
    assert [line for line in lines if " deviation " not in line] == [
        "axis:accuracy: recorded mean 0.5, rescored 0.1",
        f"overall_score:raw: recorded mean {-1 / 12!r}, rescored {ours.overall.raw!r}",
    ]


def test_epochs_are_further_answers(tmp_path: Path) -> None:
    """A sample's epochs are the answers 0, 1, ... to its case, whatever their order in the log."""
    samples = [sample("p-2", True, False, epoch=2), sample("p-1", True, True, True), sample("p-2", False, False)]
    run = read_inspect_log(write(tmp_path, log_of(*samples))).run

    assert [(c.case_id, c.answer_repeat) for c in run.cases] == [("p-2", 0), ("p-2", 1), ("p-1", 0)]
    assert [c.matched for c in run.cases[:2]] == [(False, False), (True, False)]


def test_epochs_are_averaged_before_examples(tmp_path: Path) -> None:
    """The log averages an example's epochs first: (0 + 1)/2 and 3.5/7.5 count once each, so do ours beside them."""
    samples = [sample("p-2", False, False), sample("p-2", True, False, epoch=2), sample("p-1", True, True, True)]
    found = rescore(read_inspect_log(write(tmp_path, log_of(*samples))))

    assert (found.overall.raw, found.overall.n) == ((0.5 + 3.5 / 7.5) / 2, 2)


@pytest.mark.parametrize(
    ("met", "why"),
    [
        (False, "Failed to parse judge response: timed out"),
        (False, "No explanation provided"),
        (False, None),
        ("no", "why"),
        (None, "why"),
        (0, "why"),
    ],
)
def test_a_reply_that_was_not_read_is_no_decision(tmp_path: Path, met: Any, why: Any) -> None:
    """What the task stores for a reply it could not read is never scored as not met."""
    value = log_of(sample("p-2", True, True))
    value["samples"][0]["scores"]["_scorer"]["metadata"]["detailed_results"][1] |= {"met": met, "explanation": why}
    case = only_case(write(tmp_path, value))

    assert (case.matched, case.decided, case.failed_role) == (None, (True, None), "judge")


def test_a_met_verdict_without_explanation_stands(tmp_path: Path) -> None:
    """A failed reply is only ever stored as not met: a "met" was read."""
    case = only_case(write(tmp_path, log_of(sample("p-2", True, True, why="No explanation provided"))))

    assert case.matched == (True, True)


def test_what_cannot_be_found_is_said(tmp_path: Path) -> None:
    """The run warns of replies that the log makes look like any "not met", and of the task's own means."""
    value = whole() | {"status": "cancelled"}
    notices = "\n".join(read_inspect_log(write(tmp_path, value)).run.notices)

    assert "a judge reply without a verdict but with an explanation is stored as not met" in notices
    assert "clips axis and theme scores example by example" in notices
    assert 'the log\'s status is "cancelled": it may lack samples' in notices


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        (silent("p-1"), "empty"),
        (silent("p-1", scores=None), "missing"),
        (sample("p-1", True, True, True) | {"error": {"message": "boom"}}, "missing"),
        (sample("p-1", True, True, True) | {"invalidation": {"reason": "wrong prompt"}}, "missing"),
    ],
    ids=["no text", "no score", "error", "invalid"],
)
def test_a_sample_without_an_answer_is_ungraded(tmp_path: Path, bad: dict[str, Any], state: str) -> None:
    """The task scores such a sample 0 or leaves it out; here it keeps its rubric and has no score."""
    imported = read_inspect_log(write(tmp_path, log_of(bad, sample("p-2", True, False))))
    case = imported.run.cases[0]

    assert (case.matched, case.failed_role, case.failed_state, case.answer_state) == (None, "answer", state, None)
    assert (case.points, case.decided) == ((5, 2.5, -4), None)
    assert imported.run.states == {"answer": dict(sorted({state: 1, "ok": 1}.items())), "judge": {"ok": 2}}
    assert "1 of 2 samples have no answer that was judged: ungraded" in imported.run.notices


@pytest.mark.parametrize(
    ("task", "arguments", "config"),
    [
        ("healthbench", {"subset": "hard"}, "healthbench_hard"),
        ("inspect_evals/healthbench", {"subset": "full"}, "healthbench"),
        ("inspect_evals/healthbench_consensus", {}, "healthbench_consensus"),
        ("healthbench", {"subset": "hard", "local_path": "mine.jsonl"}, "healthbench"),
    ],
)
def test_the_subset_is_that_of_the_task(tmp_path: Path, task: str, arguments: dict[str, Any], config: str) -> None:
    """A task says what it ran; a file of the user's own overrides the subset there, so it does here."""
    value = log_of(sample("p-2", True, False), **arguments)
    value["eval"]["task"] = task

    assert config == read_inspect_log(write(tmp_path, value)).run.config


def test_archives_are_read_like_json(tmp_path: Path) -> None:
    """A packed log gives the very run of the same log in JSON."""
    value = whole()

    assert read_inspect_log(archive(tmp_path, value)) == read_inspect_log(write(tmp_path, value))


def test_scores_that_are_not_numbers_pass(tmp_path: Path) -> None:
    """Inspect writes NaN for a score that was not given; it is no score, and the verdicts are read all the same."""
    imported = read_inspect_log(write(tmp_path, log_of(sample("p-2", True, False, score=float("nan")))))

    assert (imported.recorded.example_scores, imported.run.cases[0].matched) == ((None,), (True, False))


def test_logs_are_told_by_how_they_begin(tmp_path: Path) -> None:
    """A log is known whatever its name; other JSON, a folder and a missing file are not one."""
    assert is_inspect_log(write(tmp_path, whole(), "any.json"))
    assert is_inspect_log(archive(tmp_path, whole()))
    assert not is_inspect_log(write(tmp_path, {"score": 1, "metrics": {}}, "other.json"))
    assert not is_inspect_log(tmp_path) and not is_inspect_log(tmp_path / "none.eval")


def at(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that puts a value at a place of the log."""

    def change(fields: Any) -> None:
        for step in path[:-1]:
            fields = fields[step]
        fields[path[-1]] = value

    return change


def doubled(value: dict[str, Any]) -> None:
    """Let the log's first sample be scored by a second scorer too."""
    found = value["samples"][0]["scores"]
    found["again"] = found["_scorer"]


BROKEN: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (at("eval", value=None), r": eval: expected an object, found null"),
    (at("eval", "task", value="gpqa"), r": eval\.task: expected one of healthbench, .*, found \"gpqa\""),
    (
        at("eval", "task", value="inspect_evals/healthbench_meta_eval"),
        r"found a meta-evaluation log: its scores hold no",
    ),
    (at("eval", "task_args", "subset", value="meta_eval"), r"found a meta-evaluation log"),
    (at("samples", value=None), r": expected samples, found none; the log was written without them"),
    (at("samples", 1, value=7), r": samples\[1\]: expected an object, found 7"),
    (at("samples", 1, "epoch", value=0), r": samples\[1\]\.epoch: expected an integer from 1, found 0"),
    (
        at("samples", 1, value=sample("p-1", True, True, True)),
        r"\[1\]: expected every epoch of p-1 once, found 1 again",
    ),
    (at("samples", 1, "metadata", "prompt_id", value=None), r"\[1\]\.metadata\.prompt_id: expected text, found null"),
    (lambda v: v["samples"][1]["metadata"].pop("example_tags"), r"\[1\]\.metadata: expected the member example_tags"),
    (doubled, r"\[0\]\.scores: expected verdicts of one scorer, found _scorer, again; keep one of them"),
    (
        at("samples", 0, "scores", "_scorer", "metadata", "detailed_results", 0, "points", value="5"),
        r"\.scores\._scorer\.metadata\.detailed_results\[0\]\.points: expected a finite number, found \"5\"",
    ),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_bad_logs_are_refused_with_their_place(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    """A log that cannot be scored for certain is refused: file, place, expected, found."""
    value = whole()
    change(value)
    file = write(tmp_path, value)

    with pytest.raises(BadInput, match=message) as caught:
        read_inspect_log(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_rubric_that_changes_between_epochs_is_refused(tmp_path: Path) -> None:
    """Two epochs of one example have one rubric."""
    value = log_of(sample("p-2", True, False), sample("p-2", True, False, epoch=2))
    value["samples"][1]["scores"]["_scorer"]["metadata"]["detailed_results"][0]["points"] = 9

    with pytest.raises(BadInput, match=r"samples\[1\]: expected the rubric of the first epoch of p-2, found another"):
        read_inspect_log(write(tmp_path, value))


def test_a_log_of_the_named_data_is_read_as_without(tmp_path: Path) -> None:
    """Items and tags are the data's, also of a sample that was never judged."""
    file = write(tmp_path, log_of(silent("p-1"), sample("p-2", True, False)))

    assert read_inspect_log(file, known=KNOWN) == read_inspect_log(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            at("samples", 0, "metadata", "rubrics", 1, "points", value=3),
            "metadata.rubrics[1].points: case p-1: expected 2.5, as in the data that was named, found 3",
        ),
        (
            at("samples", 0, "metadata", "example_tags", value=["theme:a"]),
            (
                'metadata.rubrics[0].tags: case p-1: expected "axis:accuracy", as in the data that was named, '
                'found "axis:accuracy", "theme:a", "physician_agreed_category:x"'
            ),
        ),
        (
            at("samples", 0, "metadata", "example_tags", value=[*TAGS["p-1"], "more"]),
            (
                'metadata.example_tags: case p-1: expected "theme:a", "physician_agreed_category:x", as in the data '
                'that was named, found "theme:a", "physician_agreed_category:x", "more"'
            ),
        ),
    ],
    ids=["points", "item tags", "example tags"],
)
def test_a_log_of_other_data_than_was_named_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    """File, place, case, expected, found."""
    value = log_of(silent("p-1"))
    change(value)
    file = write(tmp_path, value)

    with pytest.raises(BadInput) as caught:
        read_inspect_log(file, known=KNOWN)
    assert str(caught.value) == f"{file}: samples[0].{message}"


def test_a_key_that_stands_twice_in_an_archive_is_refused(tmp_path: Path) -> None:
    """A member with two verdicts on one item says none."""
    file = tmp_path / "log.eval"
    value = whole()
    header = json.dumps({k: v for k, v in value.items() if k != "samples"})
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("header.json", header)
        text = json.dumps(value["samples"][0]).replace('"met": true', '"met": false, "met": true', 1)
        packed.writestr("samples/p-1_epoch_1.json", text)

    with pytest.raises(BadInput, match=r'samples/p-1_epoch_1\.json: .* key "met" stands twice in one object'):
        read_inspect_log(file)


def test_a_lost_epoch_is_said(tmp_path: Path) -> None:
    """An example that lacks an epoch which others have is left out of what is over repeats."""
    samples = [sample("p-2", False, False), sample("p-2", True, False, epoch=2), sample("p-1", True, True, True)]
    run = read_inspect_log(write(tmp_path, log_of(*samples))).run

    assert "1 of 2 examples have fewer than 2 answers: left out of spread and worst-at-k" in run.notices


def test_an_archive_without_its_header_is_refused(tmp_path: Path) -> None:
    """An interrupted run leaves an archive without header.json."""
    file = tmp_path / "log.eval"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("samples/p-1_epoch_1.json", "{}")

    with pytest.raises(BadInput, match=r"expected header\.json in the archive, found none"):
        read_inspect_log(file)


def test_samples_in_chunks_are_refused_with_the_way_out(tmp_path: Path) -> None:
    """A layout that is not documented is not guessed at: the log's own tool writes it as JSON."""
    file = archive(tmp_path, whole(), more="samples/p-9_epoch_1/sample")

    with pytest.raises(BadInput, match="found samples in chunks; convert the log first: inspect log convert"):
        read_inspect_log(file)


def test_a_packing_that_python_cannot_unpack_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """Method 99 is nobody's."""
    file = archive(tmp_path, whole(), zipfile.ZIP_STORED)
    raw = bytearray(file.read_bytes())
    for sign, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = raw.find(sign)
        while place >= 0:
            raw[place + offset : place + offset + 2] = (99).to_bytes(2, "little")
            place = raw.find(sign, place + 1)
    file.write_bytes(raw)

    with pytest.raises(BadInput, match="expected members packed by deflate or zstd, found another; convert"):
        read_inspect_log(file)


def _packed_with_zstd(file: Path) -> Path:
    """Write an archive anew with every member packed by zstd, as Inspect does now."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, pa.compress(content, codec="zstd", asbytes=True))
    raw = bytearray(file.read_bytes())
    for sign, method, crc, size in ((b"PK\x03\x04", 8, 14, 22), (b"PK\x01\x02", 10, 16, 24)):
        place = -1
        for content in members.values():
            place = raw.find(sign, place + 1)
            struct.pack_into("<H", raw, place + method, 93)
            struct.pack_into("<I", raw, place + crc, zlib.crc32(content))
            struct.pack_into("<I", raw, place + size, len(content))
    file.write_bytes(raw)
    return file


def test_an_archive_packed_with_zstd_is_read(tmp_path: Path) -> None:
    """Python's own zipfile cannot unpack it before 3.14; the run is the same as from the other packing."""
    plain = read_inspect_log(archive(tmp_path, whole(), zipfile.ZIP_DEFLATED))

    assert plain == read_inspect_log(_packed_with_zstd(archive(tmp_path, whole(), zipfile.ZIP_STORED)))


def test_a_damaged_zstd_member_is_refused(tmp_path: Path) -> None:
    """One line says that the archive is broken, whatever the codec says."""
    file = _packed_with_zstd(archive(tmp_path, whole(), zipfile.ZIP_STORED))
    raw = bytearray(file.read_bytes())
    at = raw.find(b"\x28\xb5\x2f\xfd") + 12
    raw[at : at + 8] = b"\xff" * 8
    file.write_bytes(raw)

    with pytest.raises(BadInput, match="found a broken one"):
        read_inspect_log(file)
