"""`conformance` as a user meets it: our own numbers, their scorer in this folder, wrong names, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from eval.conformance.cli import conformance
from eval.conformance.vectors import load_vectors

APP = typer.Typer()
APP.command()(conformance)

CLIPPING = """
from eval.conformance.deviations import DEVIATIONS, scorer_of
print("read me")
right = scorer_of()
clips = scorer_of(DEVIATIONS[0])
def talks(vector):
    print("thinking")
    return right(vector)
def skips(vector):
    return {"unsupported": "not yet"}
class Numbers:
    @staticmethod
    def score(vector):
        return right(vector)
async def waits(vector):
    return {}
seven = 7
"""


def _is_from(module: object, folder: Path) -> bool:
    return Path(getattr(module, "__file__", None) or "/").is_relative_to(folder)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in a folder with a scorer, and leave no trace of it behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_scorer.py").write_text(CLIPPING)
    (tmp_path / "needs_more.py").write_text("import surely_not_installed")
    (tmp_path / "breaks.py").write_text("raise RuntimeError('one\\ntwo')")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    yield tmp_path
    for name in [name for name, module in sys.modules.items() if _is_from(module, tmp_path)]:
        del sys.modules[name]


def _call(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(APP, list(arguments))
    return done.exit_code, done.stdout, done.stderr


def test_our_own_numbers_conform() -> None:
    """Without a scorer the program's own numbers are asked for, and all pass."""
    code, out, err = _call()

    assert (0, "") == (code, err)
    assert out.startswith("scorer: bedside-bench ")
    assert f"all{len(load_vectors()):>51}{0:>10}{0:>10}" == out.splitlines()[-1]


@pytest.mark.usefixtures("folder")
def test_suite_chooses_the_vectors() -> None:
    """--suite asks for one suite only."""
    code, out, _ = _call("--suite", "healthbench", "--scorer", "my_scorer:Numbers.score")

    assert 0 == code
    assert "healthbench_tags" in out
    assert "bedside_" not in out


@pytest.mark.usefixtures("folder")
def test_failures_are_listed_with_what_they_show() -> None:
    """Each failing vector has place, expected, found and why; then comes what the scorer does, and who does so."""
    code, out, err = _call("--scorer", "my_scorer:clips")

    assert (1, "read me\n") == (code, err)
    assert "  healthbench_examples/below-zero\n    score: expected -2.0, found 0.0\n    why: -10/5 = -2" in out
    assert "the scorer clips every example's score to [0, 1]" in out
    assert "openbench d03922c" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.usefixtures("folder")
def test_what_a_scorer_prints_is_kept_out_of_the_answer() -> None:
    """With --json stdout is JSON whatever the scorer prints; that goes to stderr."""
    code, out, err = _call("--json", "--scorer", "my_scorer:talks")
    report = json.loads(out)

    assert (0, True, len(load_vectors())) == (code, report["conforms"], report["passed"])
    assert {"read me", "thinking"} == set(err.splitlines())


@pytest.mark.usefixtures("folder")
def test_json_holds_every_vector_and_deviation() -> None:
    """The report as JSON says the same as the text."""
    code, out, _ = _call("--json", "--scorer", "my_scorer:clips", "--suite", "healthbench")
    report = json.loads(out)
    below = next(one for one in report["vectors"] if one["id"] == "healthbench_examples/below-zero")

    assert (1, "bedside-bench/conformance-report/1", False) == (code, report["format"], report["conforms"])
    assert [{"place": "score", "expected": -2.0, "found": 0.0}] == below["differences"]
    assert ["per-example-clip"] == [deviation["id"] for deviation in report["deviations"][0]["named"]]
    assert report["failed"] == report["deviations"][0]["explained"]


@pytest.mark.usefixtures("folder")
def test_scorer_that_skips_everything_does_not_conform() -> None:
    """Skipped vectors are counted with their reason; if all are, nothing was shown."""
    code, out, _ = _call("--scorer", "my_scorer:skips", "--suite", "healthbench")

    assert 1 == code
    assert "skipped:\n  not yet: healthbench_aggregate " in out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scorer", "my_scorer"], "expected module:function, found 'my_scorer'"),
        (["--scorer", "my scorer:x"], "expected module:function"),
        (["--scorer", ":x"], "expected module:function"),
        (["--scorer", "my_scorer:none"], "module my_scorer has no none"),
        (["--scorer", "my_scorer:seven"], "cannot be called: found a int"),
        (["--scorer", "my_scorer:waits"], "is a coroutine function"),
        (["--scorer", "surely_not_there:x"], "no module surely_not_there"),
        (["--suite", "noharm"], "'noharm' is not one of bedside-bench, healthbench"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_exits_with_2(arguments: list[str], message: str) -> None:
    """A scorer or suite that does not exist is wrong usage."""
    code, out, err = _call(*arguments)

    assert (2, "") == (code, out)
    assert message in " ".join(err.replace("│", " ").split())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("needs_more:x", "error: needs_more: the scorer's module needs surely_not_installed, which is not installed\n"),
        ("breaks:x", "error: breaks: the scorer's module could not be imported: RuntimeError: one two\n"),
        ("leaves:x", "error: leaves: the scorer's module could not be imported: SystemExit: 0\n"),
    ],
)
def test_module_that_cannot_be_imported_is_one_line(name: str, message: str) -> None:
    """A scorer's module that is there and breaks is an error of one line."""
    assert (1, "", message) == _call("--scorer", name)


@pytest.mark.usefixtures("folder")
def test_list_shows_every_vector_and_asks_nobody() -> None:
    """--list gives each vector's id, keys and reason in 80 columns, and does not even look for the scorer."""
    code, out, _ = _call("--list", "--scorer", "breaks:x")

    assert 0 == code
    assert "healthbench_examples/below-zero\n  core: score\n  -10/5 = -2" in out
    assert {vector.id for vector in load_vectors()} <= set(out.splitlines())
    assert max(map(len, out.splitlines())) <= 80


def test_list_as_json_is_the_vectors() -> None:
    """--list --json gives the vectors whole, for scorers in other languages."""
    _, out, _ = _call("--list", "--json", "--suite", "bedside-bench")

    assert [vector.whole for vector in load_vectors("bedside-bench")] == json.loads(out)


def test_scorer_of_this_folder_does_not_take_the_place_of_our_libraries(folder: Path) -> None:
    """A file called like a library of ours, beside the scorer, stays the scorer's own affair."""
    (folder / "json.py").write_text("raise RuntimeError('not the real one')")
    (folder / "numpy.py").write_text("raise RuntimeError('not the real one')")
    program = "from tests.test_cli_conformance import APP; APP()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "--scorer", "my_scorer:clips", "--json"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parent.parent)},
        check=False,
    )

    assert (1, "per-example-clip") == (done.returncode, json.loads(done.stdout)["deviations"][0]["named"][0]["id"])
