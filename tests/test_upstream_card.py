"""The card of a source itself makes its JSON files loadable, and the command `card` prints or writes either card."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bedside_bench import PANEL_IDS, Case
from builder.cards.frontmatter import read_front_matter
from builder.cards.upstream_card import upstream_card
from builder.cli import card
from builder.tree.licence import licence_statements
from builder.tree.reading import Boundary
from builder.tree.sources import installed_data, open_source
from tests.load_folder import load_folder
from tests.mirrors import build, source_cases
from tests.trees import case_path, edit_json, make_case, read_json, write_json, write_tree

app = typer.Typer()
app.command("card")(card)
app.command("other")(lambda: None)

DOXIMITY = """cff-version: 1.2.0
title: BedsideBench
license: CC-BY-NC-SA-4.0
authors:
- name: Doximity
"""


def run(*arguments: str) -> tuple[int, str, str]:
    """Run `card`; return exit code, standard output and standard error."""
    done = CliRunner().invoke(app, ["card", *arguments])
    return done.exit_code, done.stdout, done.stderr


def card_of(source: Path) -> str:
    """Return the upstream card of a tree without errors."""
    report, text = upstream_card(open_source(source))
    assert report.ok
    assert text is not None
    return text


def in_name_order(cases: list[Case]) -> list[Case]:
    """Return cases by panel in registry order, then by file name: what patterns over the files give."""
    return sorted(cases, key=lambda case: (PANEL_IDS.index(case["benchmark"]), case["case_id"]))


@pytest.fixture(scope="module")
def carded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tree of three cases a panel with its upstream card as README.md."""
    source = write_tree(tmp_path_factory.mktemp("carded") / "source", 3)
    assert 0 == run(str(source), "--upstream", "--out", str(source / "README.md"))[0]
    return source


def check_loaded(found: dict[str, Any], source: Path) -> None:
    """Hold what was loaded against the case files: every panel, `all` in registry order, streamed alike."""
    cases = in_name_order(source_cases(source, PANEL_IDS))
    assert {*PANEL_IDS, "all"} == set(found["names"])
    assert cases == found["loaded"]["all"]["train"]
    for panel in PANEL_IDS:
        assert {"train": [case for case in cases if case["benchmark"] == panel]} == found["loaded"][panel]
    assert found["loaded"] == found["streamed"]
    assert found["loaded"]["all"] == found["unnamed"]


@pytest.mark.slow
def test_the_source_loads_as_it_is(carded: Path, tmp_path: Path) -> None:
    """load_dataset(folder, panel) and `all` give the very objects of the case files, `split` among them."""
    check_loaded(load_folder(carded, tmp_path / "home"), carded)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.6", "4.8"])
def test_the_source_loads_elsewhere(
    carded: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, version: str
) -> None:
    """It loads the same in datasets 3 and 4."""
    from tests.test_builder_class import make_venv

    found = load_folder(carded, tmp_path / "home", python=make_venv(version, tmp_path_factory))

    assert found["datasets"].startswith(version)
    check_loaded(found, carded)


@pytest.mark.slow
def test_the_shipped_samples_load_as_they_are(tmp_path: Path) -> None:
    """A registry that lies in the data folder itself: the patterns begin at the panels."""
    source = Path(shutil.copytree(installed_data(), tmp_path / "samples"))
    (source / "README.md").write_text(card_of(source), encoding="utf-8")
    found = load_folder(source, tmp_path / "home")["loaded"]["all"]["train"]
    files = [sorted((source / panel / "cases").glob("*.json")) for panel in PANEL_IDS]

    assert [read_json(path) for panel in files for path in panel] == found
    assert "`<panel>/cases/*.json`" in card_of(source)


def test_the_front_matter_has_patterns_and_no_counts(carded: Path) -> None:
    """One default config; a case more or less leaves the card right."""
    front = read_front_matter((carded / "README.md").read_bytes())
    everything = front["configs"][-1]

    assert [*PANEL_IDS, "all"] == [config["config_name"] for config in front["configs"]]
    assert ["all"] == [config["config_name"] for config in front["configs"] if config.get("default")]
    assert [f"data/{panel}/cases/*.json" for panel in PANEL_IDS] == everything["data_files"][0]["path"]
    assert "split" in [feature["name"] for feature in front["dataset_info"][0]["features"]]
    assert {"config_name", "features"} == {key for info in front["dataset_info"] for key in info}
    assert "size_categories" not in front


def test_the_order_of_the_rows_is_told(carded: Path) -> None:
    """Patterns sort by file name: the card says whether the manifests do too."""
    assert "not in that of the manifests" in card_of(carded)
    for panel in PANEL_IDS:
        manifest = carded / "data" / panel / "manifest.json"
        before = read_json(manifest)
        write_json(manifest, {**before, "case_ids": sorted(before["case_ids"])})

    assert "which is that of the manifests too" in card_of(carded)


def test_a_panel_that_the_tree_lacks_is_an_error(tmp_path: Path) -> None:
    """Every error of the source is printed to stderr, nothing to stdout; exit code 1."""
    code, out, err = run(str(write_tree(tmp_path / "source", panels=["drug_safety"])), "--upstream")

    assert (1, "") == (code, out)
    assert "data/health_equity expected a folder" in " ".join(err.split())
    assert err.endswith("has errors (above)\n")


def test_the_benchmarks_own_files_are_attributed(tmp_path: Path) -> None:
    """BedsideBench's cases keep name, author and licence, and nothing calls these files a mirror."""
    source = write_tree(tmp_path / "source", 1)
    (source / "CITATION.cff").write_text(DOXIMITY, encoding="utf-8")
    (source / "LICENSE").write_text("Attribution-NonCommercial-ShareAlike 4.0 International\n", encoding="utf-8")
    edit_json(source / "registry.json", license="CC-BY-NC-SA-4.0")
    text = card_of(source)
    front = read_front_matter(text.encode())

    assert ("BedsideBench", "cc-by-nc-sa-4.0", ["original"]) == (
        front["pretty_name"],
        front["license"],
        front["source_datasets"],
    )
    assert "Doximity. BedsideBench." in text
    assert "mirror" not in text.lower()


def test_the_card_in_its_place_states_the_same_licence(carded: Path) -> None:
    """`check` finds no conflict between the card and the registry."""
    statements = licence_statements(carded, read_json(carded / "registry.json"), Boundary.around(carded))

    assert "README.md" in [statement.file for statement in statements]
    assert {"cc-by-4.0"} == {statement.license for statement in statements}


def test_card_prints_the_card_that_a_mirror_has(tmp_path: Path) -> None:
    """Byte for byte what `build` writes, and nothing else on the screen; the source stays as it was."""
    source = write_tree(tmp_path / "source", 1)
    before = sorted(path for path in tmp_path.rglob("*"))
    code, out, err = run(str(source))

    assert (0, "") == (code, err)
    assert before == sorted(path for path in tmp_path.rglob("*"))
    assert (build(source, tmp_path / "mirror").folder / "README.md").read_bytes().decode() == out


@pytest.mark.parametrize("option", [[], ["--upstream"]], ids=["mirror", "upstream"])
def test_a_source_with_errors_gets_no_card(tmp_path: Path, option: list[str]) -> None:
    """The problems go to stderr, no file is written, exit code 1."""
    source = write_tree(tmp_path / "source", 1)
    edit_json(case_path(source), prompt="")
    code, out, err = run(str(source), *option, "--out", str(tmp_path / "card.md"))

    assert (1, "") == (code, out)
    assert "prompt" in err
    assert not (tmp_path / "card.md").exists()


def test_held_out_cases_get_no_upstream_card(tmp_path: Path) -> None:
    """Patterns would serve them as the public split: a tree that holds some is refused."""
    source = write_tree(tmp_path / "source", 1)
    case = make_case("drug_safety", 7, split="test")
    write_json(source / "data" / "drug_safety" / "cases" / f"{case['case_id']}.json", case)

    assert 1 == run(str(source), "--upstream")[0]


def test_a_card_never_replaces_another_file(tmp_path: Path) -> None:
    """Writing the same card twice is fine; a README.md that someone wrote stays."""
    source, out = write_tree(tmp_path / "source", 1), tmp_path / "card.md"
    assert (0, f"card            {out}\n") == run(str(source), "--upstream", "-o", str(out))[:2]
    assert 0 == run(str(source), "--upstream", "-o", str(out))[0]
    out.write_text("mine", encoding="utf-8")
    code, _, err = run(str(source), "--upstream", "-o", str(out))

    assert (
        1,
        f"error: {out}: expected no file or this very card, found another; remove it or name another place\n",
    ) == (
        code,
        err,
    )
    assert "mine" == out.read_text(encoding="utf-8")
