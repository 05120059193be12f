"""`score` and `run --dry-run` as a user meets them: what is written where, and what is never written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from builder.mirror import build_mirror
from builder.sources import open_source
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
