"""`score` of HealthBench results on the command line: a journal against its mirror, files of other evaluators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.at_hub import command, refused
from tests.examples import make_example
from tests.gradings import example_mirror, grading_plan
from tests.plans import run
from tests.test_inspect_logs import whole as inspect_log
from tests.test_simple_evals import RUBRICS, TAGS
from tests.test_simple_evals import whole as simple_evals

SIMPLE = "healthbench_m_20260101_000000_allresults.json"


def widest(text: str) -> int:
    """Return the columns of the widest line."""
    return max(map(len, text.splitlines()))


def test_score_holds_a_journal_against_its_mirror(tmp_path: Path) -> None:
    """The right one changes nothing; another is refused; so is a case line whose tags are not the data's."""
    mirror, journal = example_mirror(tmp_path, map(make_example, range(2))), tmp_path / "x.jsonl"
    other = example_mirror(tmp_path / "other", map(make_example, range(3)))
    run(grading_plan(mirror), journal)
    text = journal.read_text()
    (tmp_path / "tags.jsonl").write_text(text.replace('"tags":["theme:hedging"]', '"tags":["theme:other"]', 1))
    (tmp_path / "item.jsonl").write_text(text.replace('"axis:accuracy"', '"axis:other"', 1))

    assert command("score", journal)[:2] == command("score", journal, "--data", mirror)[:2]
    assert "expected the run's dataset_sha256" in refused("score", journal, "--data", other)
    for name in ("tags.jsonl", "item.jsonl"):
        assert "its cases are not those of the journal's case lines" in refused(
            "score", tmp_path / name, "--data", mirror
        )


def write(folder: Path, value: dict[str, Any], name: str) -> Path:
    """Write another evaluator's file."""
    (folder / name).write_text(json.dumps(value))
    return folder / name


def test_score_of_a_simple_evals_file_lists_what_differs(here: Path) -> None:
    """Rescored from its own verdicts; a score that these do not give is a line of the table and of the summary."""
    value = simple_evals()
    value["metadata"]["example_level_metadata"][1]["score"] = 0.0
    code, out, err = command("score", write(here, value, SIMPLE))
    listed = json.loads(command("score", SIMPLE, "--json")[1])["healthbench"]["recorded"]

    assert (0, "") == (code, err)
    assert "case p-2, answer 0: recorded score 0.0, rescored -0.5" in listed["differences"]
    assert "case p-2, answer 0: recorded score 0.0, rescored -0.5" in out
    assert f"{len(listed['differences'])} numbers in it to note beside ours" in out
    assert widest(out) <= 80
    assert not list(here.glob("*.summary.json"))


def mirror_of_file(folder: Path, **changes: Any) -> Path:
    """Build the mirror of the examples that the simple-evals file is of; changes go to the first one's first item."""
    lines = [
        make_example(
            n,
            prompt_id=prompt_id,
            example_tags=list(TAGS[prompt_id]),
            rubrics=[
                {"criterion": f"Says {i}.", "points": points, "tags": [tag]} | (changes if n == i == 0 else {})
                for i, (points, tag) in enumerate(items)
            ],
        )
        for n, (prompt_id, items) in enumerate(RUBRICS.items())
    ]
    return example_mirror(folder, lines)


def test_score_of_a_simple_evals_file_takes_tags_from_the_data(tmp_path: Path, here: Path) -> None:
    """Example tags are not in the file: with --data they are compared too."""
    file, mirror = write(here, simple_evals(), SIMPLE), mirror_of_file(tmp_path / "m")
    without, with_data = command("score", file)[1], command("score", file, "--data", mirror)[1]

    assert "not compared: theme:a, theme:b" in " ".join(without.split())
    assert "not compared" not in with_data
    assert "theme:a" in with_data


def test_score_against_other_data_is_refused(tmp_path: Path, here: Path) -> None:
    """A rubric that is not the file's: its place, what the data have, what the file has."""
    mirror = mirror_of_file(tmp_path / "m", points=6)
    line = refused("score", write(here, simple_evals(), SIMPLE), "--data", mirror)

    assert line.endswith("points: case p-1: expected 6, as in the data that was named, found 5")


def test_score_of_an_adjusted_file_compares_what_is_asked_for(here: Path) -> None:
    """Without a centre and a penalty the recorded score stands apart; with them it is compared."""
    value = simple_evals()
    # Lengths 12, 12, 3, 0 ("Rest.\nDrink.", "Go.", ""): with penalty 0.5 and centre 0 they cost 0.012, twice, 0.003, 0.
    value["metrics"]["overall_score_length_adjusted"] = (0.625 - 0.5 + 0.5 + 1.0 - 0.027) / 4
    file = write(here, value, SIMPLE)
    asked = ["--length-center", "0", "--length-penalty", "0.5"]
    apart, same, other = (
        json.loads(command("score", file, "--json", *more)[1])["healthbench"]["recorded"]["differences"]
        for more in ([], asked, [*asked[:3], "0.9"])
    )

    assert [True] == [line.startswith("not compared: overall_score_length_adjusted") for line in apart if "adj" in line]
    assert [] == [line for line in same if "adjusted" in line]
    assert [True] == ["recorded mean 0.39" in line for line in other if "adjusted" in line]


def test_score_of_an_inspect_log_lists_what_differs(here: Path) -> None:
    """The log's own numbers are beside ours, and its differences printed."""
    code, out, err = command("score", write(here, inspect_log(), "log.json"))
    recorded = json.loads(command("score", "log.json", "--json")[1])["healthbench"]["recorded"]

    assert (0, "") == (code, err)
    assert recorded["differences"]
    assert "in it to note beside ours" in out
    assert widest(out) <= 80
