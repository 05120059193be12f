"""The command `agree` as a person types it: a sheet first, then labels, on a jury's journal and on its results."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from eval.agreement.cli import agree
from eval.calls.endpoint import Endpoint
from eval.calls.plan import Judge, Model
from eval.cases import read_cases
from tests.gradings import results_of
from tests.llm_server import LlmServer
from tests.mirrors import build_small
from tests.plans import make_plan, run

ROOT = Path(__file__).parent.parent
HEAVY = {"numpy", "scipy", "polars", "pyarrow", "aiohttp"}
app = typer.Typer(pretty_exceptions_enable=False)
app.command()(agree)


def command(*words: str | Path) -> tuple[int, str, str]:
    """Run `agree` in this process; return exit code, standard output and standard error."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a mirror of two panels, a jury's journal on it, and results without texts."""
    folder = tmp_path_factory.mktemp("agree")
    mirror = build_small(folder, panels=["drug_safety", "safety_diagnostic"]).folder
    with LlmServer(judge="strict") as strict, LlmServer(judge="moody") as moody:
        judges = [Judge(Model(f"judge-{n}", Endpoint(at.url, None))) for n, at in enumerate((strict, moody))]
        plan = make_plan(
            read_cases(mirror), answer=Model("builtin:positive-items"), judges=judges, reading={"repeats": 3}
        )
        run(plan, folder / "x.jsonl")
    results_of(folder / "x.jsonl", folder / "results")
    return folder


def labelled(sheet: Path, to: Path) -> Path:
    """Write a sheet back as a spreadsheet would, every second row labelled yes, the others no."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with to.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": "no" if number % 2 else "yes"} for number, row in enumerate(rows))
    return to


def test_agreement_of_a_journal_and_of_its_results(made: Path) -> None:
    """Both say the same; the text fits 80 columns and holds judges, repeats and panels."""
    code, text, err = command(made / "x.jsonl", "--bootstrap-samples", "50")
    of_journal = json.loads(command(made / "x.jsonl", "--json", "--bootstrap-samples", "50")[1])
    of_results = json.loads(command(made / "results", "--json", "--bootstrap-samples", "50")[1])

    assert (0, "") == (code, err)
    assert of_journal == of_results
    assert "bedside-bench/agreement/1" == of_journal["format"]
    assert 80 >= max(map(len, text.splitlines()))
    for words in ("judge-0 x judge-1", "each judge over its 3 repeats", "safety_diagnostic"):
        assert words in text


def test_a_sheet_goes_out_and_comes_back_as_agreement(made: Path, tmp_path: Path) -> None:
    """Written blind, labelled, read again: the jury against that person, and scores corrected by the labels."""
    sheet = tmp_path / "sheet.csv"
    code, out, _ = command(made / "x.jsonl", "--write-sheet", sheet, "--data", made / "mirror", "--share", "1")
    back = labelled(sheet, tmp_path / "dr_lee.csv")
    report = json.loads(command(made / "x.jsonl", "--labels", back, "--json", "--bootstrap-samples", "50")[1])
    shown = command(made / "results", "--labels", back, "--bootstrap-samples", "50")[1]

    assert 0 == code
    assert "cases    4, answers 4, items to label" in out
    assert "Write yes or no under `label`." in " ".join(out.split())
    assert "judge" not in sheet.read_text(encoding="utf-8-sig").splitlines()[0]
    assert ["dr_lee"] == [against["rater"] for against in report["jury_against_raters"]]
    assert report["counts"]["items"] == report["counts"]["labels"]["dr_lee"]["n"]
    assert 4 == report["corrected"]["overall"]["n_labelled"]
    assert "scores corrected by human labels" in shown


def test_a_sheet_for_two_has_their_names_in_it(made: Path, tmp_path: Path) -> None:
    """Every rater gets all rows; as JSON the command says how many."""
    words: list[str | Path] = ["--data", made / "mirror", "--rater", "lee", "--rater", "kim", "--json"]
    written = json.loads(command(made / "x.jsonl", "--write-sheet", tmp_path / "s.csv", *words)[1])
    report = json.loads(
        command(made / "x.jsonl", "--labels", labelled(tmp_path / "s.csv", tmp_path / "back.csv"), "--json")[1]
    )

    assert 2 * written["n_items"] == written["n_rows"]
    assert ["lee", "kim"] == [against["rater"] for against in report["jury_against_raters"]]
    assert "cohen_kappa" in report["between_raters"]["pairs"][0]["overall"]["measures"]


def test_error_rates_are_tried_on_the_scores(made: Path) -> None:
    """Two pairs, as given."""
    words = ["--error-rates", "0,0", "--error-rates", "0.1,0.05", "--bootstrap-samples", "20"]
    report = json.loads(command(made / "x.jsonl", *words, "--json")[1])

    assert [(0.0, 0.0), (0.1, 0.05)] == [(pair["fp"], pair["fn"]) for pair in report["sensitivity"]["rates"]]
    assert "scores under assumed error rates of the judge" in command(made / "x.jsonl", *words)[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--error-rates", "0.1"], "expected two numbers such as 0.05,0.1"),
        (["--error-rates", "0.6,0.6"], "expected numbers from 0, below 1 together"),
        (["--error-rates", "nan,0"], "expected numbers from 0, below 1 together"),
        (["--write-sheet", "s.csv"], "give their mirror with --data"),
        (["--write-sheet", "s.csv", "--labels", "l.csv"], "leave --labels and --error-rates out"),
        (["--share", "2"], "--share"),
        (["--share", "0"], "expected a share above 0"),
        (["--bootstrap-samples", "0"], "--bootstrap-samples"),
    ],
)
def test_wrong_usage_exits_with_2(words: list[str], said: str) -> None:
    """Before anything is read."""
    code, _, err = command("x.jsonl", *words)

    assert 2 == code
    assert said in " ".join(err.replace("│", " ").split())


def test_bad_input_is_one_line(made: Path, tmp_path: Path) -> None:
    """No such run, labels that are none, a sheet that holds labels, other data: exit code 1."""
    sheet = tmp_path / "s.csv"
    command(made / "x.jsonl", "--write-sheet", sheet, "--data", made / "mirror")
    empty = command(made / "x.jsonl", "--labels", sheet)
    mine = labelled(sheet, tmp_path / "mine.csv")
    kept = command(made / "x.jsonl", "--write-sheet", mine, "--data", made / "mirror")
    other = build_small(tmp_path, panels=["health_equity"]).folder
    wrong = [command(tmp_path / "none.jsonl"), command(made / "x.jsonl", "--data", other)]
    textless = command(made / "results", "--write-sheet", tmp_path / "t.csv", "--data", made / "mirror")

    for code, out, err in (empty, kept, *wrong, textless):
        assert (1, "", 1) == (code, out, err.count("\n"))
        assert err.startswith("error: ")
    assert "expected at least one label" in empty[2]
    assert "name another file" in kept[2]
    assert "expected results with texts" in textless[2]


def test_help_loads_nothing_heavy() -> None:
    """--help and wrong usage come without any library that takes long to load."""
    code = (
        "import sys, typer; from eval.agreement.cli import agree; app = typer.Typer(); app.command()(agree)\n"
        "for words in (['--help'], ['x.jsonl', '--write-sheet', 's.csv']):\n"
        "    try: app(words)\n"
        "    except SystemExit: pass\n"
        "print(); print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)

    assert not HEAVY & set(done.stdout.splitlines()[-1].split())
