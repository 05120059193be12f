"""`score` and `run --dry-run` as a user meets them: what is written where, and what is never written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bedside_bench import sha256_json
from builder.mirror import build_mirror
from builder.tree.sources import open_source
from eval.cli import app
from tests.plans import make_plan, run
from tests.trees import case_id_of, write_tree


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return the journal of a run of stand-ins over one case a panel."""
    run(make_plan(), tmp_path / "x.jsonl")
    return tmp_path / "x.jsonl"


def _call(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    return done.exit_code, done.stdout, done.stderr


def test_score_keeps_the_runs_own_summary_up_to_date(journal: Path) -> None:
    """With the run's own settings X.summary.json holds exactly what --json prints, and nothing else is printed."""
    code, out, err = _call("score", journal, "--json")

    assert (0, "") == (code, err)
    assert out == journal.with_suffix(".summary.json").read_text()
    assert "spec" == json.loads(out)["dialect"]


@pytest.mark.parametrize("option", [["--dialect", "upstream"], ["--bootstrap-seed", "1"], ["--bootstrap-samples", "9"]])
def test_other_settings_never_take_its_place(journal: Path, option: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another dialect, seed or number of samples goes where it is told, but never to X.summary.json."""
    monkeypatch.chdir(journal.parent)
    written = _call("score", "x.jsonl", *option, "--output", "other.json")
    refused = _call("score", "x.jsonl", *option, "--output", journal.with_suffix(".summary.json"))

    assert (0, 1) == (written[0], refused[0])
    assert "holds the run's own dialect and settings only" in refused[2]
    assert (True, False) == (Path("other.json").exists(), Path("x.summary.json").exists())


def test_score_never_writes_over_the_file_it_reads(journal: Path) -> None:
    """--output with the journal's own name would end paid work: refused, the file as it was."""
    before = journal.read_bytes()
    code, _, err = _call("score", journal, "--output", journal.parent / "." / "x.jsonl")

    assert (1, before) == (code, journal.read_bytes())
    assert err.startswith(f"error: {journal}: is the result file itself")


def test_a_dry_run_says_who_answers_and_sends_nothing(tmp_path: Path) -> None:
    """Given answers come from their file, a model from its endpoint; no key is needed and no file is written."""
    build_mirror(open_source(write_tree(tmp_path / "tree", 1)), tmp_path / "mirror")
    line = {"case_id": case_id_of("drug_safety", 0), "answer": "a", "answer_model": "m"}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    common: list[str | Path] = ["run", tmp_path / "mirror", "--output", tmp_path / "x.jsonl", "--dry-run"]
    file, model = _call(*common, "--answers", tmp_path / "a.jsonl"), _call(*common, "--answer-model", "m")

    assert file[1].startswith("answers: m of the file\njudge:   gpt-5.6-sol at https://api.openai.com/v1\n")
    assert model[1].startswith("answers: m at https://api.openai.com/v1\n")
    assert ["total", "10", "0", "1"] == next(row for row in file[1].split("\n") if row.startswith("total")).split()[:4]
    assert [0, 0, False] == [file[0], model[0], (tmp_path / "x.jsonl").exists()]


def test_a_summary_that_cannot_be_written_is_said_after_the_table(journal: Path) -> None:
    """Where the summary has no place the table is printed all the same, then one line says so and nothing is left."""
    journal.with_suffix(".summary.json").mkdir()
    code, out, err = _call("score", journal)

    assert (1, 1) == (code, err.count("\n"))
    assert "overall (macro mean)" in out
    assert err.startswith(f"error: {journal.with_suffix('.summary.json')}: the summary could not be written: ")
    assert [] == list(journal.parent.glob("*.new"))


def test_a_summary_never_takes_the_place_of_another_journal(journal: Path) -> None:
    """--output with another run's journal would end its paid work: refused; a copy's summary is not the run's own."""
    other = journal.with_name("y.jsonl")
    other.write_bytes(journal.read_bytes())
    code, _, err = _call("score", journal, "--output", other)
    copy = journal.with_suffix(".bak")
    copy.write_bytes(journal.read_bytes())
    journal.with_suffix(".summary.json").unlink()

    assert (1, journal.read_bytes()) == (code, other.read_bytes())
    assert "is the journal of a run" in err
    assert (0, False) == (_call("score", copy)[0], journal.with_suffix(".summary.json").exists())


def test_case_lines_that_are_not_the_mirrors_are_refused(tmp_path: Path) -> None:
    """With --data the points in a journal are compared with the mirror's: a changed or missing line is refused."""
    build_mirror(open_source(write_tree(tmp_path / "tree", 1)), tmp_path / "mirror")
    path, mirror = tmp_path / "x.jsonl", tmp_path / "mirror"
    asked: list[str | Path] = [
        "run",
        mirror,
        "--answer-model",
        "builtin:refuse",
        "--judge-model",
        "builtin:verbatim",
        "--output",
        path,
    ]
    codes = [_call(*asked)[0], _call("score", path, "--data", mirror)[0]]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'_0",2]', b'_0",3]', 1))
    changed = _call("score", path, "--data", mirror)
    path.write_bytes(whole.replace(whole.split(b"\n")[3] + b"\n", b""))
    missing = _call("score", path, "--data", mirror)

    assert ([0, 0], 1, 1) == (codes, changed[0], missing[0])
    assert "are not those of the journal's case lines" in changed[2]


def test_a_name_that_no_request_can_carry_is_refused(tmp_path: Path) -> None:
    """An empty model name, or bytes that are no text, end in one line and not in a traceback."""
    build_mirror(open_source(write_tree(tmp_path / "tree", 1)), tmp_path / "mirror")
    for name in ("", "m\udcff"):
        common: list[str | Path] = ["run", tmp_path / "mirror", "--judge-model", "builtin:verbatim"]
        asked = [*common, "--output", tmp_path / "x.jsonl", "--base-url", "http://127.0.0.1:9"]
        code, _, err = _call(*asked, "--answer-model", name)

        assert (1, f"error: --answer-model {name!a}: expected a name of printable characters\n") == (code, err)


def test_a_console_without_a_character_still_gets_its_table(journal: Path) -> None:
    """On a console that knows only ASCII other characters are escaped, and the command ends well."""
    text = journal.read_text()
    identity = json.loads(text.split("\n")[0])["identity"]
    changed = {**identity, "answer": {**identity["answer"], "model": "modèle"}}
    old, new = sha256_json(identity), sha256_json(changed)
    journal.write_text(text.replace(old, new, 1).replace('"model":"builtin:all-items"', '"model":"modèle"', 1))
    code = "from eval.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "score", str(journal)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        cwd=Path(__file__).parent.parent,
    )

    assert (0, True) == (done.returncode, b"answers: mod\\xe8le" in done.stdout)
