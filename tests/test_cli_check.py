"""The command `check`: what is printed, and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from builder.cli import check
from tests.trees import case_path, edit_json, write_tree

ROOT = Path(__file__).parent.parent
UPSTREAM = os.environ.get("BEDSIDE_UPSTREAM")
PROGRAM = """
import typer
from builder.cli import check
app = typer.Typer()
app.command("check")(check)
app()
"""

app = typer.Typer()
app.command("check")(check)


def run(*arguments: str) -> tuple[int, str, str]:
    """Run the command; return exit code, standard output and standard error."""
    done = CliRunner().invoke(app, [*arguments])
    return done.exit_code, done.stdout, done.stderr


def test_a_valid_tree_exits_0(tmp_path: Path) -> None:
    """A tree without problems says what it holds."""
    code, out, err = run(str(write_tree(tmp_path, 1)))

    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "10 cases, 46 items: drug_safety 1, guideline_adherence 1, landmark_trials 1,",
        "  medical_hallucination 1, health_equity 1, clinical_calculations 1,",
        "  calculators_numerical 1, calculators_conditional 1, safety_diagnostic 1,",
        "  safety_therapeutic 1",
        "item ids: <md5 of prompt>_<i> in 10 cases; license: cc-by-4.0",
        "0 errors, 0 warnings",
    ]


def test_warnings_alone_exit_0(tmp_path: Path) -> None:
    """Warnings are shown and do not fail."""
    root = write_tree(tmp_path, 1)
    edit_json(root / "registry.json", published_cases_per_panel=25)

    code, out, _ = run(str(root))

    assert (code, out.splitlines()[0]) == (0, "10 warnings:")


def test_an_error_exits_1(tmp_path: Path) -> None:
    """One error fails, and the report names file, field, rule, expectation and finding."""
    root = write_tree(tmp_path, 1)
    edit_json(case_path(root), split="test")

    code, out, _ = run(str(root))

    assert code == 1
    assert out.splitlines()[:4] == [
        "1 error:",
        f"  {case_path(root).relative_to(root)}",
        '    split: expected "train", found "test"; --held-out accepts held-out cases',
        "      [split]",
    ]


def test_held_out_is_accepted_with_the_switch(tmp_path: Path) -> None:
    """--held-out lets other splits pass."""
    root = write_tree(tmp_path, 1)
    edit_json(case_path(root), split="test")

    assert run(str(root), "--held-out")[0] == 0


def test_panels_can_be_selected(tmp_path: Path) -> None:
    """With --panel the other panels may be missing."""
    root = write_tree(tmp_path, 1, panels=["drug_safety", "health_equity"])

    assert run(str(root))[0] == 1
    assert run(str(root), "--panel", "drug_safety", "--panel", "health_equity")[0] == 0


def test_json_is_printed_alone(tmp_path: Path) -> None:
    """--json prints one JSON report and nothing else."""
    root = write_tree(tmp_path, 1)
    edit_json(case_path(root), split="test")

    code, out, err = run(str(root), "--json")

    assert (code, err) == (1, "")
    assert json.loads(out)["counts"] == {"error": 1, "warning": 1}


def test_no_such_source_is_one_line(tmp_path: Path) -> None:
    """A path that is no source ends in one line on standard error."""
    code, out, err = run(str(tmp_path / "none"))

    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_an_unknown_panel_is_wrong_usage(tmp_path: Path) -> None:
    """A panel that does not exist exits 2 before anything is read."""
    assert run(str(tmp_path), "--panel", "dentistry")[0] == 2


def test_near_duplicates_can_be_left_out(tmp_path: Path) -> None:
    """--no-similar does not look for near-duplicates, nor import numpy."""
    root = write_tree(tmp_path, 1)
    code = (
        f"import sys; sys.argv = ['x', {str(root)!r}, '--no-similar']\n"
        f"try:\n  exec({PROGRAM!r})\nexcept SystemExit as end: print(end.code, 'numpy' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines()[-1] == "0 False"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "cp1252"])
def test_any_terminal_can_show_the_report(tmp_path: Path, encoding: str) -> None:
    """A console that lacks a character shows an escape in its place."""
    root = write_tree(tmp_path, 1)
    edit_json(case_path(root), split="≥")
    env = {**os.environ, "PYTHONIOENCODING": encoding}

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root)], cwd=ROOT, env=env, capture_output=True, check=False, timeout=60
    )

    shown = "≥".encode(encoding, errors="backslashreplace")
    assert (done.returncode, done.stderr) == (1, b"")
    assert b'found "' + shown + b'"' in done.stdout


@pytest.mark.skipif(UPSTREAM is None, reason="BEDSIDE_UPSTREAM names no folder with upstream's cases")
def test_upstream_passes() -> None:
    """Real cases pass the check, with warnings where fewer are present than the registry says."""
    code, out, _ = run(str(UPSTREAM), "--json")

    assert (code, json.loads(out)["counts"]["error"]) == (0, 0)
