"""Other evaluators' files on the command line: with lost answers, with the data they are of, two of them compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.at_hub import command
from tests.examples import make_example
from tests.gradings import example_mirror
from tests.test_inspect_logs import log_of, sample, silent
from tests.test_simple_evals import RUBRICS, TAGS, example, file_of, whole

SIMPLE = "healthbench_hard_m_20260101_000000_allresults.json"


def write(folder: Path, value: dict[str, Any], name: str = SIMPLE) -> Path:
    """Write another evaluator's file."""
    (folder / name).write_text(json.dumps(value))
    return folder / name


def summary(*words: str | Path) -> dict[str, Any]:
    """Return the summary that `score` prints."""
    code, out, err = command("score", *words, "--json")
    assert (0, "") == (code, err)
    found: dict[str, Any] = json.loads(out)
    return found


def refused(*words: str | Path) -> str:
    """Return the one line by which a command is refused with exit code 1."""
    code, out, err = command(*words)
    assert (1, "") == (code, out)
    (line,) = err.splitlines()
    return line


def mirror_of(folder: Path, *more: str) -> Path:
    """Return a mirror whose examples have the rubrics of the files, and some more examples."""
    lines = [
        make_example(
            n,
            prompt_id=prompt_id,
            example_tags=list(TAGS[prompt_id]),
            rubrics=[
                {"criterion": f"Says {i}.", "points": points, "tags": [tag]} for i, (points, tag) in enumerate(items)
            ],
        )
        for n, (prompt_id, items) in enumerate(RUBRICS.items())
    ]
    return example_mirror(folder, [*lines, *(make_example(9, prompt_id=name) for name in more)])


# -- lost answers


def test_an_example_with_a_lost_answer_is_left_out_of_the_repeats(here: Path) -> None:
    """p-1: 5/8 and 4/8, p-2: -5/10 alone. The mean is (0.5625 - 0.5)/2; the worst of two answers is p-1's 0.5."""
    found = summary(write(here, file_of(*whole()["metadata"]["example_level_metadata"][:3])))
    repeats = found["healthbench"]["repeats"]

    assert (0.03125, 2) == (found["healthbench"]["overall"]["raw"], found["n_graded"])
    assert (1, 1, 0.5) == (repeats["n_examples"], repeats["n_left_out"], repeats["worst_at_k"]["2"]["value"])
    assert [0.625, 0.5] == [run["value"] for run in repeats["runs"]]
    assert [n for n in found["notices"] if n.startswith("1 of 2 examples have fewer than 2 answers")]
    assert 0 == summary(write(here, whole()))["healthbench"]["repeats"]["n_left_out"]


def test_a_log_with_a_lost_epoch_is_scored(here: Path) -> None:
    """p-2: 0 and 1 in two epochs, p-1: 3.5/7.5 in the second alone."""
    samples = [
        sample("p-2", False, False),
        sample("p-2", True, False, epoch=2),
        sample("p-1", True, True, True, epoch=2),
    ]
    repeats = summary(write(here, log_of(*samples), "log.json"))["healthbench"]["repeats"]

    assert (1, 1, [0.0, 1.0]) == (repeats["n_examples"], repeats["n_left_out"], [r["value"] for r in repeats["runs"]])


def test_a_judge_that_was_never_asked_gave_no_invalid_reply(here: Path) -> None:
    """The answer failed: no state of the judge's, and bounds as wide as a rubric that nothing is known of."""
    found = summary(write(here, log_of(silent("p-1"), sample("p-2", True, False)), "log.json"))

    assert {"ok": 2} == found["states"]["judge"]
    assert pytest.approx(0.5 * (1 - 4 / 7.5)) == found["overall_worst"]
    assert 1.0 == found["overall_best"]


# -- with the data


def test_the_data_give_config_and_digests(tmp_path: Path, here: Path) -> None:
    """The file's name says healthbench_hard, the mirror healthbench: the mirror holds the rubrics, so it is right."""
    mirror, file = mirror_of(tmp_path), write(here, whole())
    digests = json.loads((mirror / "digests.json").read_bytes())
    bare, found = summary(file), summary(file, "--data", mirror)

    assert (["healthbench_hard"], None) == (list(bare["panels"]), bare["dataset_sha256"])
    assert (["healthbench"], digests["dataset_sha256"], digests["content_sha256"]) == (
        list(found["panels"]),
        found["dataset_sha256"],
        found["content_sha256"],
    )
    assert bare["healthbench"]["overall"] == found["healthbench"]["overall"]
    assert 2 == found["data"]["n_cases"]
    assert not [n for n in found["notices"] if "a part of it was run" in n]


def test_a_part_of_the_data_is_said(tmp_path: Path, here: Path) -> None:
    """Three examples of the data, two in the file: scored, with a notice."""
    found = summary(write(here, whole()), "--data", mirror_of(tmp_path, "p-3"))

    assert "1 of the 3 examples of the data are not in the file: a part of it was run" in found["notices"]


def test_other_points_than_the_datas_are_refused(tmp_path: Path, here: Path) -> None:
    """File, place, case, expected and found; so for a log."""
    value = whole()
    for one in value["metadata"]["example_level_metadata"][::2]:
        one["rubric_items"][1]["points"] = 4
    mirror = mirror_of(tmp_path)

    assert (
        f"error: {here / SIMPLE}: metadata.example_level_metadata[0].rubric_items[1].points: case p-1: expected 3, as "
        "in the data that was named, found 4"
    ) == refused("score", write(here, value), "--data", mirror)
    assert "case p-1: expected 3, as in the data that was named, found 2.5" in refused(
        "score", write(here, log_of(sample("p-1", True, True, True) | {"scores": None}), "log.json"), "--data", mirror
    )


def test_data_without_points_of_their_own_are_refused(tmp_path: Path, here: Path) -> None:
    """A meta mirror and case panels are not what such a file is of."""
    from tests.examples import make_meta
    from tests.mirrors import build_tiny

    meta = example_mirror(tmp_path, [make_meta()], config="healthbench_meta")
    file = write(here, whole())

    assert "expected a HealthBench mirror of examples with points, found healthbench_meta" in refused(
        "score", file, "--data", meta
    )
    assert "found bedside-bench" in refused("score", file, "--data", build_tiny(here).folder)


# -- two files


def test_two_files_of_one_kind_are_compared(here: Path) -> None:
    """p-1 0.625 to 0.5, p-2 -0.5 to 1: one win each; that no grader and no data are named is said."""
    first, second = whole()["metadata"]["example_level_metadata"][:2], whole()["metadata"]["example_level_metadata"][2:]
    files = [
        write(here, file_of(*part), f"healthbench_{name}_allresults.json")
        for name, part in (("a", first), ("b", second))
    ]
    code, out, err = command("winrate", *files)

    assert (0, "") == (code, err)
    assert ["all", "pairs", "2", "2", "0", "0.500"] in [line.split()[:6] for line in out.splitlines()]
    assert "note: neither file names its grader" in out
    assert "note: neither file says which data it is on" in out


def points(value: dict[str, Any]) -> None:
    """Give the first item of the first example other points."""
    value["metadata"]["example_level_metadata"][0]["rubric_items"][0]["points"] = 6


def tags(value: dict[str, Any]) -> None:
    """Give the first item of the first example another tag."""
    value["metadata"]["example_level_metadata"][0]["rubric_items"][0]["tags"] = ["axis:x"]


@pytest.mark.parametrize(("change", "found"), [(points, "points"), (tags, "item tags")])
def test_files_with_other_rubrics_are_not_compared(
    here: Path, change: Callable[[dict[str, Any]], None], found: str
) -> None:
    """The example under one id must be one example."""
    ours, theirs = file_of(example("p-1", True, True, True)), file_of(example("p-1", True, True, False))
    change(theirs)
    a, b = write(here, ours, "healthbench_a_allresults.json"), write(here, theirs, "healthbench_b_allresults.json")

    assert f"error: winrate: case p-1: expected the same rubric in both runs, found other {found} in B" == refused(
        "winrate", a, b
    )


def test_files_of_other_subsets_or_evaluators_are_not_compared(here: Path) -> None:
    """Two subsets by their names, simple-evals to Inspect: the line names what differs."""
    hard, core = write(here, whole()), write(here, whole(), "healthbench_a_allresults.json")
    log = write(here, log_of(sample("p-2", True, False)), "log.json")

    assert refused("winrate", hard, core).endswith("found another config")
    assert refused("winrate", core, log).endswith("found another judge_model, protocol_version")
