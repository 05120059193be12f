"""The commands that HealthBench adds or gives more to, as a person types them: run, meta and winrate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.at_hub import command, refused
from tests.examples import example_id_of, make_criterion, make_example, make_meta, make_professional
from tests.gradings import example_mirror, grading_plan, write_answers
from tests.journals import write_journal
from tests.llm_server import LlmServer
from tests.mirrors import build_tiny
from tests.plans import run

POLICY = ["--answer-model", "builtin:positive-items", "--judge-model", "builtin:verbatim"]
VERBATIM = ["--judge-model", "builtin:verbatim"]
N = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a mirror, a meta mirror, and journals of runs on them."""
    folder = tmp_path_factory.mktemp("commands")
    mirror = example_mirror(folder / "core", map(make_example, range(N)))
    run(grading_plan(mirror), folder / "positive.jsonl")
    some = {example_id_of(n): make_criterion(n, n)["criterion"] for n in range(N)}
    run(grading_plan(mirror, answers=write_answers(folder / "some.json", some)), folder / "some.jsonl")
    # Grader: met, met, not, met. Labels by number: [0, 1], [1, 1, 0], [1, 0], [0, 1, 1].
    records = [make_meta(n, completion=f"The response hedges where it must ({n % 3}).") for n in range(4)]
    records[2]["completion"] = "No."
    meta = example_mirror(folder / "meta", records, config="healthbench_meta")
    run(grading_plan(meta, answers="given"), folder / "meta.jsonl")
    return folder


def usage_error(*words: str | Path) -> str:
    """Return what is said of a wrong usage, exit code 2, in one line."""
    code, _, err = command(*words)
    assert 2 == code
    return " ".join(err.replace("│", " ").split())


def widest(text: str) -> int:
    """Return the columns of the widest line."""
    return max(map(len, text.splitlines()))


# -- run


def test_run_grades_and_shows_a_mirror(made: Path, here: Path) -> None:
    """Every positive item and no other: 1.000, clipped and raw; the summary lies beside the journal."""
    code, out, err = command("run", made / "core" / "mirror", *POLICY, "-o", here / "x.jsonl")
    rows = [line.split()[:4] for line in out.splitlines()]

    assert (0, "3 cases: builtin:positive-items, judged by builtin:verbatim\n") == (code, err)
    assert ["healthbench", "3", "1.000", "1.000"] in rows
    assert widest(out) <= 80
    assert 1.0 == json.loads((here / "x.summary.json").read_bytes())["healthbench"]["overall"]["value"]


def test_dry_run_counts_every_call(made: Path, here: Path) -> None:
    """Three answers and twelve grades, times the answers to an example; nothing is sent or written."""
    models = ["--answer-model", "m", "--judge-model", "j", "--base-url", "http://127.0.0.1:1/v1"]
    code, out, _ = command("run", made / "core" / "mirror", *models, "-o", here / "x.jsonl", "--dry-run")
    thrice = command("run", made / "core" / "mirror", *models, "-o", "x.jsonl", "--dry-run", "--answer-repeats", "3")[1]

    assert (0, False) == (code, (here / "x.jsonl").exists())
    assert ["healthbench", "3", "3", "12"] in [line.split()[:4] for line in out.splitlines()]
    assert ["healthbench", "3", "9", "36"] in [line.split()[:4] for line in thrice.splitlines()]


def test_dry_run_of_completions_counts_grades_only(made: Path, here: Path) -> None:
    """Two examples have a physician's completion: no answer call, eight grades."""
    models = ["--answers", "physician", "--judge-model", "j", "--base-url", "http://127.0.0.1:1/v1"]
    code, out, _ = command("run", made / "core" / "mirror", *models, "-o", here / "x.jsonl", "--dry-run")

    assert (0, True) == (code, ["healthbench", "2", "0", "8"] in [line.split()[:4] for line in out.splitlines()])
    assert "answers: physician of the data\n" in out


def test_dry_run_fits_80_columns(tmp_path: Path, here: Path) -> None:
    """The longest name of a config too."""
    mirror = example_mirror(tmp_path, [make_professional()], config="healthbench_professional")
    out = command("run", mirror, "--answer-model", "m", *VERBATIM, "-o", here / "x.jsonl", "--dry-run")[1]

    assert "healthbench_professional     1" in out
    assert widest(out) <= 80


def test_the_config_must_be_the_mirrors(made: Path, here: Path) -> None:
    """Right: the run goes on. Wrong: one line with both, and nothing written."""
    words: list[str | Path] = ["run", made / "core" / "mirror", *POLICY, "-o", here / "x.jsonl"]

    assert refused(*words, "--config", "healthbench_hard").startswith(
        "error: --config healthbench_hard: expected healthbench, the config of "
    )
    assert not (here / "x.jsonl").exists()
    assert 0 == command(*words, "--config", "healthbench")[0]


def test_a_grader_template_is_taken_from_a_file(made: Path, here: Path) -> None:
    """The server gets its words; the table names its digest and says that it is the user's."""
    (here / "t.txt").write_text("MY RULES\n# Rubric item\n<<rubric_item>>\n\n# Chat\n<<conversation>>\ncriteria_met")
    with LlmServer() as server:
        models = ["--answer-model", "m", "--judge-model", "j", "--base-url", server.url]
        template = ["--grader-template", "t.txt", "-o", "x.jsonl"]
        code, out, err = command("run", made / "core" / "mirror", *models, *template)
        texts = [seen["body"]["messages"][0]["content"] for seen in server.requests if seen["role"] == "grader"]

    assert (0, 12) == (code, len(texts)), err
    assert all(text.startswith("MY RULES\n# Rubric item\n[") for text in texts)
    assert "protocol: healthbench+template-" in out
    assert "note: graded with a template of the user's" in out


def test_a_template_does_not_fit_case_panels(here: Path) -> None:
    """BedsideBench has its own judge message: one line says so."""
    (here / "t.txt").write_text("<<conversation>> <<rubric_item>>")
    mirror = build_tiny(here).folder

    assert refused("run", mirror, *POLICY, "-o", "x.jsonl", "--grader-template", "t.txt").startswith(
        "error: --grader-template: expected HealthBench data"
    )


def test_a_meta_mirror_is_graded_with_its_completions_only(made: Path, here: Path) -> None:
    """A model cannot answer it; --answers given grades it, exit code 0, and points to `meta`."""
    mirror = made / "meta" / "mirror"
    code, out, err = command("run", mirror, "--answers", "given", *VERBATIM, "-o", "x.jsonl")

    assert (0, True) == (code, "bedside-bench meta" in out), err
    assert "--answers given" in refused("run", mirror, *POLICY, "-o", here / "y.jsonl")


# -- meta


def test_meta_prints_every_number_in_80_columns(made: Path) -> None:
    """Agreement by class, the overall balanced F1, themes, standing, and what was judged by whom."""
    code, out, err = command("meta", made / "meta.jsonl")

    assert (0, "") == (code, err)
    assert widest(out) <= 80
    assert all(name in out for name in ("precision, met", "recall, not met", "f1, balanced", "theme:hedging", "judge:"))
    assert "records: 4 of 4" in out


def test_meta_as_json_holds_the_numbers_by_hand(made: Path) -> None:
    """Met 1, 1, 0, 1 against [0,1] [1,1,0] [1,0] [0,1,1]: 5 right of 8 met; not met: 1 right of 2, of 4 labels."""
    code, out, _ = command("meta", made / "meta.jsonl", "--json")
    report = json.loads(out)
    agreement = report["agreement"]

    assert (0, "bedside-bench/meta/1", 4, 4) == (code, report["format"], report["n_records"], report["n_expected"])
    assert (pytest.approx(5 / 8), pytest.approx(5 / 6)) == (
        agreement["precision"]["positive"]["value"],
        agreement["recall"]["positive"]["value"],
    )
    assert (pytest.approx(1 / 2), pytest.approx(1 / 4)) == (
        agreement["precision"]["negative"]["value"],
        agreement["recall"]["negative"]["value"],
    )
    assert pytest.approx((10 / 14 + 2 / 6) / 2) == report["headline"]["value"]


def test_meta_counts_what_the_grader_did_not_decide(made: Path, tmp_path: Path) -> None:
    """A record whose grade is missing is counted, never taken as "not met"."""
    lines = (made / "meta.jsonl").read_text().splitlines(keepends=True)
    judged = [n for n, line in enumerate(lines) if '"role":"judge"' in line]
    (tmp_path / "x.jsonl").write_text("".join(line for n, line in enumerate(lines) if n != judged[0]))
    report = json.loads(command("meta", tmp_path / "x.jsonl", "--json")[1])

    assert (1, 3) == (report["n_without_grader"], report["n_records"])


def test_meta_is_for_meta_runs(made: Path, here: Path) -> None:
    """A run with scores, of either suite, is refused with what it is."""
    write_journal(here / "y.jsonl", panels=["drug_safety"])

    assert "error: meta: expected a run on healthbench_meta data, found one on healthbench (healthbench)" == refused(
        "meta", made / "some.jsonl"
    )
    assert "found one on bedside-bench (all)" in refused("meta", "y.jsonl")
    assert "expected a result file" in refused("meta", "none.jsonl")


# -- winrate


def test_winrate_prints_both_rates_in_80_columns(made: Path) -> None:
    """A has every positive item, B one of four: A wins all three pairs; none is of equal length."""
    code, out, err = command("winrate", made / "positive.jsonl", made / "some.jsonl")
    rows = [line.split() for line in out.splitlines()]

    assert (0, "") == (code, err)
    assert widest(out) <= 80
    assert ["all", "pairs", "3", "3", "0", "1.000"] in [row[:6] for row in rows]
    assert ["length", "within", "10%", "0", "0", "0", "-", "-"] in rows


def test_winrate_as_json(made: Path) -> None:
    """Both ways round add up to 1; the counts stand beside."""
    ours = json.loads(command("winrate", made / "positive.jsonl", made / "some.jsonl", "--json")[1])
    theirs = json.loads(command("winrate", made / "some.jsonl", made / "positive.jsonl", "--json")[1])

    assert (1.0, 0.0) == (ours["plain"]["value"], theirs["plain"]["value"])
    assert ("bedside-bench/winrate/1", 3, 0) == tuple(ours[name] for name in ("format", "n_examples", "n_only_one"))
    assert (0, 3) == (ours["length_controlled"]["pairs"], ours["length_controlled"]["dropped"])


def test_winrate_counts_what_one_run_alone_graded(made: Path, tmp_path: Path) -> None:
    """An example without a score on one side is no loss: it is left out and counted."""
    some = write_answers(tmp_path / "a.json", {example_id_of(0): "x"})
    run(grading_plan(made / "core" / "mirror", answers=some), tmp_path / "one.jsonl")
    report = json.loads(command("winrate", made / "positive.jsonl", tmp_path / "one.jsonl", "--json")[1])

    assert (1, 2) == (report["n_examples"], report["n_only_one"])


def test_winrate_compares_like_with_like(made: Path, tmp_path: Path, here: Path) -> None:
    """Other data, another grader's words, a meta run or the other suite: one line that names what differs."""
    a = made / "positive.jsonl"
    other = example_mirror(tmp_path / "other", map(make_example, range(2)))
    run(grading_plan(other), here / "data.jsonl")
    (here / "t.txt").write_text("<<conversation>> <<rubric_item>>")
    run(grading_plan(made / "core" / "mirror", grader_template=here / "t.txt"), here / "template.jsonl")
    write_journal(here / "y.jsonl", panels=["drug_safety"])

    assert "dataset_sha256" in refused("winrate", a, "data.jsonl")
    assert "judges" in refused("winrate", a, "template.jsonl")
    assert "found healthbench_meta as B" in refused("winrate", a, made / "meta.jsonl")
    assert "found all as A" in refused("winrate", "y.jsonl", a)


@pytest.mark.parametrize("name", ["meta", "winrate"])
def test_settings_of_the_bootstrap_are_checked(made: Path, name: str) -> None:
    """No resample is wrong usage; other settings are taken and said."""
    names = {"meta": ["meta"], "winrate": ["positive", "some"]}[name]
    words: list[str | Path] = [name, *(made / f"{journal}.jsonl" for journal in names)]
    report = json.loads(command(*words, "--json", "--bootstrap-samples", "10", "--bootstrap-seed", "7")[1])

    assert (10, 7) == (report["bootstrap_samples"], report["bootstrap_seed"])
    assert "--bootstrap-samples" in usage_error(*words, "--bootstrap-samples", "0")
