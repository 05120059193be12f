"""`check`, `build`, `card` and `verify` of a JSONL file on the command line: output, options that fit, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.at_hub import command
from tests.examples import make_example, make_meta, write_examples, write_jsonl
from tests.trees import write_tree


def test_check_reports_a_file(here: Path) -> None:
    """All problems at once, exit code 1 for an error; the counts name the config."""
    write_jsonl(here / "hard.jsonl", [make_example(), make_example(1, rubrics=[]), b'{"torn'])
    code, out, _ = command("check", "hard.jsonl")

    assert 1 == code
    assert "  hard.jsonl:2\n    rubrics: expected at least one rubric item, found an empty array [no-items]" in out
    assert "  hard.jsonl:3\n    expected one JSON value, found" in out
    assert "2 cases, 4 items: healthbench_hard 2\nlicense: unknown\n2 errors, 1 warning" in out


def test_check_prints_json(here: Path) -> None:
    """The report of trees, with the config where the panels are."""
    write_examples(here)
    code, out, _ = command("check", "healthbench.jsonl", "--json")
    report = json.loads(out)

    assert (0, True, {"healthbench": 3}, 12, "mit") == (
        code,
        report["ok"],
        report["panels"],
        report["n_items"],
        report["license"],
    )


def test_build_and_verify(here: Path) -> None:
    """The folder digest that `build` prints is the one that `verify` finds; --data takes the file."""
    write_examples(here)
    code, out, err = command("build", "healthbench.jsonl", "--out", "mirror", "--croissant", "--repo-id", "org/hb")

    assert (0, "") == (code, err)
    assert "built mirror: 3 cases of healthbench, 12 rubric items\nlicense         mit\n" in out
    digest = next(line.split()[-1] for line in out.splitlines() if line.startswith("folder digest"))
    assert (here / "mirror" / "croissant.json").is_file()
    assert 'load_dataset("org/hb", "healthbench"' in (here / "mirror" / "README.md").read_text()
    code, out, err = command("verify", "mirror", "--expect", digest, "--data", "healthbench.jsonl")
    assert (0, "") == (code, err)
    assert "mirror: ok" in out
    assert "data            healthbench.jsonl" in out


def test_build_takes_config_and_licence(here: Path) -> None:
    """Where neither the name nor the folder tells them."""
    write_jsonl(here / "x.jsonl", [make_example()])
    code, out, _ = command("build", "x.jsonl", "-o", "m", "--config", "healthbench_consensus", "--license", "mit")

    assert (0, True, True) == (code, "1 cases of healthbench_consensus" in out, "license         mit" in out)
    code, out, err = command("build", "x.jsonl", "-o", "m", "--config", "healthbench_meta")
    assert 1 == code
    assert "--config: expected healthbench or" in out
    assert "error: nothing was built: x.jsonl has errors (above)" in err


def test_card_prints_the_card(here: Path) -> None:
    """The one that the mirror would have, or the report where there are errors."""
    write_jsonl(here / "meta.jsonl", [make_meta()])
    code, out, _ = command("card", "meta.jsonl")

    assert (0, True) == (code, "# HealthBench meta-evaluation (Parquet mirror of a file)" in out)
    write_jsonl(here / "meta.jsonl", [make_meta(rubric=1)])
    code, _, err = command("card", "meta.jsonl")
    assert (1, True) == (code, "error: no card was made: meta.jsonl has errors (above)" in err)


@pytest.mark.parametrize(
    "words",
    [
        ["check", "healthbench.jsonl", "--panel", "drug_safety"],
        ["check", "healthbench.jsonl", "--held-out"],
        ["check", "healthbench.jsonl", "--no-similar"],
        ["build", "healthbench.jsonl", "--out", "m", "--panel", "drug_safety"],
        ["build", "healthbench.jsonl", "--out", "m", "--split-name", "public"],
        ["build", "healthbench.jsonl", "--out", "m", "--held-out"],
        ["build", "healthbench.jsonl", "--out", "m", "--eval-yaml"],
        ["card", "healthbench.jsonl", "--upstream"],
    ],
    ids=lambda words: " ".join([words[0], *words[2:]]),
)
def test_options_of_trees_do_not_fit_a_file(here: Path, words: list[str]) -> None:
    """Wrong usage: exit code 2, a line that names the option, and nothing written."""
    write_examples(here)
    code, _, err = command(*words)
    option = next(word for word in reversed(words) if word.startswith("--") and word != "--out")

    assert 2 == code
    assert f"{option} is for source trees" in " ".join(err.replace("│", " ").split())
    assert not (here / "m").exists()


@pytest.mark.parametrize("command_name", ["check", "build", "card"])
def test_the_option_of_files_does_not_fit_a_tree(here: Path, command_name: str) -> None:
    """--config on a tree, and one that does not exist, are wrong usage."""
    write_tree(here / "tree")
    write_examples(here)
    out = ["--out", "m"] if command_name == "build" else []

    assert 2 == command(command_name, "tree", *out, "--config", "healthbench")[0]
    code, _, err = command(command_name, "healthbench.jsonl", *out, "--config", "healthbench_soft")
    assert (2, True) == (code, "'healthbench_soft' is not one of" in " ".join(err.replace("│", " ").split()))


def test_what_is_no_file_is_one_line(here: Path) -> None:
    """A link to nothing ends in an error, not in a traceback."""
    (here / "x.jsonl").symlink_to(here / "gone")

    assert (1, "error: x.jsonl: expected a file, found none\n") == command("check", "x.jsonl")[::2]
