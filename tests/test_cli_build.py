"""The commands `build` and `verify`: what is printed, and the exit code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from builder.cli import build
from eval.results.cli import verify
from tests.mirrors import DRUG_SAFETY, change_rows, remake_digests
from tests.trees import case_path, edit_json, write_tree

ROOT = Path(__file__).parent.parent
PROGRAM = """
import sys
import typer
from builder.cli import build
from eval.results.cli import verify
app = typer.Typer()
app.command("build")(build)
app.command("verify")(verify)
try:
    app(standalone_mode=False)
finally:
    print(sorted({"datasets", "pandas", "polars", "openai", "huggingface_hub"} & set(sys.modules)))
"""


app = typer.Typer()
app.command("build")(build)
app.command("verify")(verify)


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a command; return exit code, standard output and standard error."""
    done = CliRunner().invoke(app, [*arguments])
    return done.exit_code, done.stdout, done.stderr


def test_build_says_what_it_built_and_where(tmp_path: Path) -> None:
    """Counts, licence, the three digests and the places of the files are printed, and nothing on stderr."""
    code, out, err = run("build", str(write_tree(tmp_path / "source")), "--out", str(tmp_path / "mirror"))
    lines = out.splitlines()

    assert (0, "") == (code, err)
    assert f"built {tmp_path / 'mirror'}: 20 cases in 10 panels, 92 rubric items" == lines[0]
    assert "license         cc-by-4.0" == lines[1]
    for line, name in zip(lines[2:5], ("dataset_sha256", "content_sha256", "folder digest"), strict=True):
        assert re.fullmatch(rf"{name} +[0-9a-f]{{64}}", line)
    assert [f"digests         {tmp_path / 'mirror' / 'digests.json'}"] == [x for x in lines if x.startswith("digests")]


def test_verify_accepts_the_folder_digest_that_build_printed(tmp_path: Path) -> None:
    """What `build` prints is what `verify --expect` takes; another digest is a finding and exit code 1."""
    _, out, _ = run("build", str(write_tree(tmp_path / "source")), "--out", str(tmp_path / "mirror"))
    digest = next(line.split()[-1] for line in out.splitlines() if line.startswith("folder digest"))
    code, out, _ = run("verify", str(tmp_path / "mirror"), "--expect", digest)

    assert (0, f"{tmp_path / 'mirror'}: ok") == (code, out.splitlines()[0])
    assert f"folder digest   {digest}" in out
    code, out, _ = run("verify", str(tmp_path / "mirror"), "--expect", "0" * 64)
    assert (1, f"digests.json: folder digest: expected {'0' * 64}, found {digest}") == (code, out.splitlines()[0])


def test_verify_names_what_was_changed(tmp_path: Path) -> None:
    """Every finding is a line with file, what, expected and found; then the count; exit code 1."""
    run("build", str(write_tree(tmp_path / "source")), "--out", str(tmp_path / "mirror"))
    change_rows(tmp_path / "mirror", DRUG_SAFETY, lambda rows: rows[0].update(prompt="another"))
    remake_digests(tmp_path / "mirror")
    code, out, _ = run("verify", str(tmp_path / "mirror"))

    assert code == 1
    assert any(line.startswith(f"{DRUG_SAFETY}: rows of the panel: expected ") for line in out.splitlines())
    assert re.fullmatch(r".*/mirror: \d+ findings", out.splitlines()[-1])


def test_verify_leaves_results_to_their_own_verifier(tmp_path: Path) -> None:
    """A folder with runs/ in it is a results folder."""
    (tmp_path / "results" / "runs").mkdir(parents=True)
    code, out, _ = run("verify", str(tmp_path / "results"))

    assert (1, "runs: runs: expected at least one run, found none") == (code, out.splitlines()[0])


def test_build_prints_every_problem_and_builds_nothing(tmp_path: Path) -> None:
    """Two errors in two files are both told, with exit code 1 and no folder."""
    source = write_tree(tmp_path / "source")
    edit_json(case_path(source), prompt="")
    edit_json(case_path(source, "health_equity"), split="test")
    code, out, err = run("build", str(source), "--out", str(tmp_path / "mirror"))

    assert code == 1
    assert f"error: nothing was built: {source} has errors (above)\n" == err
    assert "data/drug_safety/cases/" in out
    assert "data/health_equity/cases/" in out
    assert not (tmp_path / "mirror").exists()


def test_options_reach_the_build(tmp_path: Path) -> None:
    """--panel twice, --split-name and --license make one mirror of two panels."""
    source = write_tree(tmp_path / "source")
    options = ["--panel", "safety_diagnostic", "--panel", "drug_safety", "--split-name", "public"]
    code, out, _ = run("build", str(source), "-o", str(tmp_path / "mirror"), *options, "--license", "cc-by-4.0")

    assert code == 0
    assert "4 cases in 2 panels, 22 rubric items" in out
    assert (tmp_path / "mirror/data/drug_safety/public-00000-of-00001.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "x"], "--out"),
        (["build", "x", "--out", "y", "--panel", "z"], "'z' is not one of drug_safety"),
        (["build", "x", "--out", "y", "--split-name", "held-out"], "split name: expected letters"),
        (["verify", "x", "--expect", "abc"], "expected 64 hex digits"),
        (["verify"], "DIR"),
    ],
    ids=["no out", "unknown panel", "split name", "no digest", "no folder"],
)
def test_wrong_usage_exits_2(arguments: list[str], message: str) -> None:
    """What could never work is told before anything is read."""
    code, _, err = run(*arguments)
    words = re.sub(r"[^\w\s',.:-]", " ", re.sub(r"\x1b\[[0-9;]*m", "", err))

    assert code == 2
    assert message in " ".join(words.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build", "{tmp}/nowhere/at/all", "--out", "{tmp}/mirror"], "error: "),
        (["build", "{tmp}/source", "--out", "{tmp}/source"], "expected a folder outside the source"),
        (["build", "{tmp}/source", "--out", "{tmp}/file"], "expected a folder or nothing, found a file"),
        (["build", "{tmp}/source", "--out", "{tmp}/file/mirror"], "error: "),
        (["verify", "{tmp}/nowhere"], "expected a folder or a Hub dataset (namespace/name[@revision]), found none"),
        (["verify", "{tmp}/file"], "expected a dataset folder, found a file"),
    ],
    ids=["no source", "over the source", "over a file", "below a file", "no folder", "a file"],
)
def test_what_a_person_can_mend_is_one_line_and_exits_1(tmp_path: Path, arguments: list[str], message: str) -> None:
    """No traceback: one line that begins with `error:`."""
    write_tree(tmp_path / "source")
    (tmp_path / "file").write_bytes(b"")
    code, _, err = run(*(argument.format(tmp=tmp_path) for argument in arguments))

    assert code == 1
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_folder_that_is_no_mirror_has_findings(tmp_path: Path) -> None:
    """Verifying a folder that no build wrote names what is missing."""
    code, out, _ = run("verify", str(tmp_path))

    assert (1, True) == (
        code,
        out.startswith("digests.json: not readable: expected the digests of this folder, found "),
    )


def test_build_and_verify_do_without_heavy_libraries(tmp_path: Path) -> None:
    """Neither imports datasets, polars, openai or the Hub's client."""
    write_tree(tmp_path / "source")
    for arguments in (["build", f"{tmp_path}/source", "--out", f"{tmp_path}/mirror"], ["verify", f"{tmp_path}/mirror"]):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
        )

        # pyarrow looks for pandas by itself, where it is installed
        assert "[]" == done.stdout.splitlines()[-1].replace("'pandas'", "")
