"""`eval.yaml`: what the Hub would take of it, and what `verify` makes of a changed one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from bedside_bench import PANEL_IDS, case_to_row
from builder.cards.eval_yaml import EVAL_YAML_NAME
from builder.cli import build as build_command
from builder.errors import BadInput
from tests.load_folder import load_folder
from tests.local_hub import EVAL_FRAMEWORKS, validate_eval_yaml
from tests.mirrors import add_held_out, build, build_small, lines, remake_digests, source_cases
from tests.trees import case_path, edit_json, write_tree


def text_of(folder: Path) -> str:
    """Return the text of a mirror's eval.yaml."""
    return (folder / EVAL_YAML_NAME).read_bytes().decode()


def test_the_hub_refuses_it_for_the_framework_name_only(tmp_path: Path) -> None:
    """Until the name is registered that is all that is wrong; then nothing is."""
    text = text_of(build_small(tmp_path, with_eval_yaml=True).folder)

    assert ["Invalid input → at evaluation_framework"] == validate_eval_yaml(text)
    assert [] == validate_eval_yaml(text, EVAL_FRAMEWORKS | {"bedside-bench"})


def test_there_is_a_task_a_panel_and_one_over_all(tmp_path: Path) -> None:
    """Each task names its config and the split of the public cases: the Hub would take `test` else."""
    found: dict[str, Any] = yaml.safe_load(text_of(build_small(tmp_path, with_eval_yaml=True, split_name="pub").folder))

    assert [{"id": name, "config": name, "split": "pub"} for name in (*PANEL_IDS, "all")] == found["tasks"]
    assert ("test-tree", "bedside-bench") == (found["name"], found["evaluation_framework"])
    assert "20 cases in 10 panels" in found["description"]


def test_held_out_cases_are_no_task(tmp_path: Path) -> None:
    """A panel with held-out cases only has no task, and a mirror of nothing else gets no eval.yaml."""
    source = write_tree(tmp_path / "source", 1)
    add_held_out(source)
    edit_json(case_path(source, "health_equity"), split="test")
    mirror = build(source, tmp_path / "mirror", held_out=True, with_eval_yaml=True).folder
    tasks = yaml.safe_load(text_of(mirror))["tasks"]

    assert [*(panel for panel in PANEL_IDS if panel != "health_equity"), "all"] == [task["id"] for task in tasks]
    assert {"train"} == {task["split"] for task in tasks}
    with pytest.raises(BadInput, match="expected public cases to evaluate on"):
        build(source, tmp_path / "none", panels=["health_equity"], held_out=True, with_eval_yaml=True)
    assert not (tmp_path / "none").exists()


def test_without_the_options_there_is_neither_file(mirror: Path) -> None:
    """A mirror is as it was: the optional files are not there."""
    assert not (mirror / EVAL_YAML_NAME).exists()
    assert not (mirror / "croissant.json").exists()


def test_verify_names_a_changed_task(tmp_path: Path) -> None:
    """A task over another split, with new digests, is found by its line."""
    folder = build_small(tmp_path, panels=["drug_safety"], with_eval_yaml=True).folder
    assert [] == lines(folder)
    (folder / EVAL_YAML_NAME).write_text(text_of(folder).replace("split: train", "split: test", 1), encoding="utf-8")
    remake_digests(folder)

    assert ['eval.yaml: line 7: expected "split: train", found "split: test"'] == lines(folder)


def test_build_says_where_the_optional_files_are_and_what_the_hub_needs_first(tmp_path: Path) -> None:
    """Two places, and one line on the framework's name; without the options not a word of them."""
    app = typer.Typer()
    app.command("build")(build_command)
    app.command("other")(lambda: None)
    command = ["build", str(write_tree(tmp_path / "source", 1)), "--out", str(tmp_path / "mirror")]
    said = CliRunner().invoke(app, [*command, "--croissant", "--eval-yaml"]).stdout.splitlines()

    assert [
        f"Croissant       {tmp_path / 'mirror' / 'croissant.json'}",
        f"evaluation      {tmp_path / 'mirror' / 'eval.yaml'}",
        "note: the Hub must know the framework name bedside-bench first: until it does, it refuses eval.yaml",
    ] == said[-3:]
    assert "eval.yaml" not in CliRunner().invoke(app, command).stdout


@pytest.mark.slow
def test_a_mirror_with_the_optional_files_loads_as_without(tmp_path: Path) -> None:
    """`datasets` reads the configs of the card and is not led astray by a JSON or YAML file beside it."""
    source = write_tree(tmp_path / "source", 1)
    mirror = build(source, tmp_path / "mirror", with_croissant=True, with_eval_yaml=True).folder
    found = load_folder(mirror, tmp_path / "home")

    assert list(map(case_to_row, source_cases(source, PANEL_IDS))) == found["loaded"]["all"]["train"]
    assert {*PANEL_IDS, "all", "rubric_items"} == set(found["names"])
