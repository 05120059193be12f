"""Does a run belong to the data it names, and a mirror to its source: whatever differs is found and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import PANEL_IDS, canonical_json, sha256_json
from builder.dataset.folder import Finding, read_digests, write_digests
from builder.tree.sources import open_source
from eval.calls.plan import Plan
from eval.cases import read_cases, select_cases
from eval.results.folder import current_summary, write_results
from eval.results.link import check_link, check_source
from tests.journals import SOFTWARE
from tests.mirrors import DRUG_SAFETY, add_held_out, build, change_card, change_rows, remake_digests
from tests.plans import make_plan, run
from tests.tampering import another, tamper
from tests.trees import case_id_of, case_path, edit_json, read_json, write_tree

PANELS = ["drug_safety", "safety_diagnostic"]
FIRST = case_id_of("drug_safety", 0)


def plan_of(mirror: Path, **selection: Any) -> Plan:
    """Return a plan over a mirror's cases, with builtin models."""
    data = read_cases(mirror)
    chosen = {"panels": None, "smoke": False, "limit": None, **selection}
    plan = make_plan(data)
    cases = select_cases(data.cases, panels=chosen["panels"] or (), smoke=chosen["smoke"], limit=chosen["limit"])
    return Plan(data, tuple(cases), chosen, plan.answer, plan.judges, plan.reading, limits=plan.limits)


def results_of(plan: Plan, folder: Path) -> Path:
    """Run a plan and return the run's folder in a results folder."""
    folder.mkdir()
    run(plan, folder / "x.jsonl")
    summary = current_summary(folder / "x.jsonl", software=SOFTWARE)
    return write_results(folder / "x.jsonl", folder / "out", summary_bytes=summary).path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source tree, its mirror and a run on it."""
    folder = tmp_path_factory.mktemp("made")
    tree = write_tree(folder / "tree", 2, PANELS)
    build(tree, folder / "mirror", panels=PANELS)
    shutil.move(results_of(plan_of(folder / "mirror"), folder / "results"), folder / "run")
    return folder


@pytest.fixture
def there(made: Path, tmp_path: Path) -> Path:
    """A copy of all three to change."""
    return Path(shutil.copytree(made, tmp_path / "made"))


def found(there: Path) -> dict[str, Finding]:
    """Return what is found between the run and the mirror: by file and what, the mirror's path cut short."""
    findings = check_link(there / "run", there / "mirror")
    named = {
        f"{finding.file.replace(str(there / 'mirror'), 'mirror')}: {finding.what}": finding for finding in findings
    }
    assert len(named) == len(findings)
    return named


def rebuild(there: Path, change: Callable[[Path], None], **options: Any) -> None:
    """Change the source and build the mirror again."""
    change(there / "tree")
    build(there / "tree", there / "mirror", **{"panels": PANELS, **options})


def test_a_run_belongs_to_the_mirror_it_was_made_on(made: Path) -> None:
    """Nothing is found between a run and the data that were judged."""
    assert {} == found(made)


@pytest.mark.parametrize(
    "selection", [{"panels": ["safety_diagnostic"]}, {"smoke": True}, {"limit": 3}], ids=["panels", "smoke", "limit"]
)
def test_a_part_of_the_data_belongs_too(made: Path, tmp_path: Path, selection: dict[str, Any]) -> None:
    """A run over selected cases is held against those of the mirror alone."""
    path = results_of(plan_of(made / "mirror", **selection), tmp_path / "part")

    assert [] == check_link(path, made / "mirror")


def test_a_run_on_held_out_cases_belongs_to_the_mirror_that_has_them(tmp_path: Path) -> None:
    """Held-out cases come after the public ones of their panel, in the mirror and in the run, under their own split."""
    tree = write_tree(tmp_path / "tree", 2)
    add_held_out(tree)
    build(tree, tmp_path / "mirror", split_name="public", held_out=True)
    path = results_of(plan_of(tmp_path / "mirror"), tmp_path / "results")

    assert [] == check_link(path, tmp_path / "mirror")
    assert {"public": "train", "test": "test"} == read_digests(path)["splits"]


def test_another_mirror_is_found(there: Path) -> None:
    """Against other data every digest differs, and each case that is not there is named, as is each left out."""
    build(write_tree(there / "other", 2, PANELS), there / "mirror", panels=["safety_diagnostic"])
    named = found(there)

    assert {"run.parquet: run: dataset_sha256", "run.parquet: run: content_sha256"} <= named.keys()
    assert {"run.parquet: run: cases_sha256", "digests.json: rubric_sha256"} <= named.keys()
    assert "none with this id there" == named[f"scores.parquet: case {FIRST}"].found
    assert ("2", "4") == (
        named["run.parquet: run: identity_json: n_cases"].expected,
        named["run.parquet: run: identity_json: n_cases"].found,
    )


def _points(tree: Path) -> None:
    items = read_json(case_path(tree))["rubric_items"]
    edit_json(case_path(tree), rubric_items=[{**items[0], "points": 1}, *items[1:]])


def test_one_changed_point_is_named(there: Path) -> None:
    """An item that was judged at 2 points and has 1 in the data is named, beside the digests that it changes."""
    rebuild(there, _points)
    named = found(there)
    finding = named.pop(f"decisions.parquet: case {FIRST}, item 0: points")

    assert ("1.0", "2.0") == (finding.expected, finding.found)
    assert [
        "digests.json: rubric_sha256",
        "run.parquet: run: content_sha256",
        "run.parquet: run: dataset_sha256",
    ] == sorted(named)


def _reworded(tree: Path) -> None:
    items = read_json(case_path(tree))["rubric_items"]
    edit_json(case_path(tree), rubric_items=[{**items[0], "text": "Says another thing"}, *items[1:]])


def test_a_reworded_item_shows_in_the_digests_of_the_data(there: Path) -> None:
    """A run holds no text: of a changed word only the two digests tell."""
    rebuild(there, _reworded)

    assert ["run.parquet: run: content_sha256", "run.parquet: run: dataset_sha256"] == sorted(found(there))


def _fewer_items(tree: Path) -> None:
    edit_json(case_path(tree), rubric_items=read_json(case_path(tree))["rubric_items"][:-1])


def test_an_item_too_many_or_too_few_is_named(there: Path) -> None:
    """What was judged and is no item of the data is named, and so is an item that was not judged."""
    original = read_json(case_path(there / "tree"))["rubric_items"]
    rebuild(there, _fewer_items)
    assert "one of the 3 items of the mirror" == found(there)[f"decisions.parquet: case {FIRST}, item 3"].expected

    shutil.rmtree(there / "run")
    shutil.move(results_of(plan_of(there / "mirror"), there / "shorter"), there / "run")
    rebuild(there, lambda tree: edit_json(case_path(tree), rubric_items=original))
    assert "none" == found(there)[f"decisions.parquet: case {FIRST}, item 3"].found


def test_a_missing_case_is_named(there: Path, tmp_path: Path) -> None:
    """A run that leaves out a case of its own selection is found, though all the rest is right."""
    plan = plan_of(there / "mirror")
    fewer = Plan(plan.data, plan.cases[1:], plan.selection, plan.answer, plan.judges, plan.reading, limits=plan.limits)
    (finding,) = check_link(results_of(fewer, tmp_path / "fewer"), there / "mirror")

    assert (f"case {FIRST}", "none") == (finding.what, finding.found)


def test_a_case_beside_the_selection_is_named(there: Path, tmp_path: Path) -> None:
    """A run that says it took one panel and has cases of another is found."""
    plan, part = plan_of(there / "mirror"), plan_of(there / "mirror", panels=["safety_diagnostic"])
    more = Plan(plan.data, plan.cases, part.selection, plan.answer, plan.judges, plan.reading, limits=plan.limits)
    findings = check_link(results_of(more, tmp_path / "more"), there / "mirror")

    assert ["no row: the run's selection lacks it"] * 2 == [finding.expected for finding in findings]


def test_cases_in_another_order_are_named(there: Path, tmp_path: Path) -> None:
    """Intervals depend on the order of cases: it must be that of the data."""
    plan = plan_of(there / "mirror")
    cases = (plan.cases[1], plan.cases[0], *plan.cases[2:])
    other = Plan(plan.data, cases, plan.selection, plan.answer, plan.judges, plan.reading, limits=plan.limits)
    (finding,) = check_link(results_of(other, tmp_path / "other"), there / "mirror")

    assert ("order of cases: place 0", FIRST) == (finding.what, finding.expected)


def test_another_split_is_named(there: Path) -> None:
    """The splits that a run states are the mirror's: a renamed one changes no digest of the data and is found."""
    rebuild(there, lambda _: None, split_name="public")
    finding = found(there).pop("digests.json: splits")

    assert ('{"public": "train"}', '{"train": "train"}') == (finding.expected, finding.found)


def test_another_licence_is_named(there: Path) -> None:
    """A run states the licence of its data, which decides where it may go."""
    digests = read_digests(there / "run")
    kept = {name: value for name, value in digests.items() if name not in ("format", "files")}
    write_digests(there / "run", {**kept, "source": {**kept["source"], "license": "mit"}})

    assert ["digests.json: source.license"] == list(found(there))


@pytest.mark.parametrize(
    ("table", "column", "named"),
    [
        ("run", "dataset_sha256", "run.parquet: run: dataset_sha256"),
        ("run", "content_sha256", "run.parquet: run: content_sha256"),
        ("run", "cases_sha256", "run.parquet: run: cases_sha256"),
        ("scores", "benchmark", f"scores.parquet: case {FIRST}: benchmark"),
        ("scores", "grading_method", f"scores.parquet: case {FIRST}: grading_method"),
        ("scores", "case_id", f"scores.parquet: case x{FIRST}"),
        ("decisions", "benchmark", f"decisions.parquet: case {FIRST}, item 0: benchmark"),
        ("decisions", "item_id", f"decisions.parquet: case {FIRST}, item 0: item_id"),
        ("decisions", "points", f"decisions.parquet: case {FIRST}, item 0: points"),
    ],
)
def test_a_changed_cell_is_named(there: Path, table: str, column: str, named: str) -> None:
    """Every cell that the data determine is held against them, though the run's digests were made again."""
    tamper(there / "run", table, 0, column, another)

    assert named in found(there)


def test_a_mirror_that_does_not_hold_is_named_first(there: Path) -> None:
    """Where the mirror itself was changed nothing else is compared: its own findings say so, with its path."""
    change_rows(there / "mirror", DRUG_SAFETY, lambda rows: rows.reverse())

    assert [True] == sorted({name.startswith("mirror/") for name in found(there)})


def test_what_is_no_mirror_or_no_run_is_named(there: Path) -> None:
    """A run in the place of a mirror, a folder that is not there and a broken table are findings, not errors."""
    assert check_link(there / "run", there / "run")[0].file.startswith(str(there / "run"))
    assert "not readable" == check_link(there / "run", there / "none")[0].what
    assert ("digests.json", "not readable") == _first(check_link(there / "none", there / "mirror"))
    (there / "run" / "scores.parquet").write_bytes(b"PAR1")
    assert ("scores.parquet", "file") == _first(check_link(there / "run", there / "mirror"))


def _first(findings: list[Finding]) -> tuple[str, str]:
    return findings[0].file, findings[0].what


def test_a_wrong_content_digest_of_the_mirror_is_named(there: Path) -> None:
    """The digest that a brief look leaves out is computed from the rows, so a run cannot share a wrong one."""
    true = read_digests(there / "mirror")["content_sha256"]
    remake_digests(there / "mirror", content_sha256="0" * 64)
    change_card(there / "mirror", lambda text: text.replace(true, "0" * 64))

    assert ["mirror/digests.json: content_sha256"] == list(found(there))


@pytest.mark.parametrize("selection", [None, [], {"panels": 1}, {"panels": None, "smoke": False, "limit": "3"},
                                       {"panels": ["health_equity"], "smoke": False, "limit": None}])  # fmt: skip
def test_a_selection_of_nothing_is_named(there: Path, selection: object) -> None:
    """A selection that is none of this mirror's is one finding."""

    def change(text: str) -> str:
        return canonical_json({**json.loads(text), "selection": selection}).decode()

    before = tamper(there / "run", "run", 0, "identity_json", change)
    digest = sha256_json({**json.loads(before["identity_json"]), "selection": selection})
    tamper(there / "run", "run", 0, "identity_sha256", lambda _: digest)

    assert ["run.parquet: run: identity_json: selection"] == list(found(there))


def test_many_findings_are_counted(made: Path, tmp_path: Path) -> None:
    """A run held against quite other data names the first findings of a table and counts the rest."""
    build(write_tree(tmp_path / "tree", 30), tmp_path / "large")
    findings = check_link(made / "run", tmp_path / "large")

    (more,) = [finding for finding in findings if finding.what == "further cells"]
    assert ("scores.parquet", f"{30 * len(PANEL_IDS) - 4 - 50} others") == (more.file, more.found)


def test_a_mirror_is_that_of_its_source(made: Path) -> None:
    """Nothing is found between a mirror and the tree it was built from."""
    assert [] == check_source(made / "mirror", open_source(made / "tree"))


def test_a_mirror_is_that_of_its_source_whatever_it_took(tmp_path: Path) -> None:
    """Chosen panels, a renamed split, held-out cases and a given licence are taken from the mirror's digests."""
    tree = write_tree(tmp_path / "tree", 2)
    add_held_out(tree)
    for name in ("LICENSE", "CITATION.cff"):
        (tree / name).unlink()
    edit_json(tree / "registry.json", license=None)
    chosen = {"panels": ["drug_safety", "health_equity"], "license_id": "odbl"}
    build(tree, tmp_path / "mirror", split_name="public", held_out=True, **chosen)

    assert [] == check_source(tmp_path / "mirror", open_source(tree))


def test_a_changed_source_is_named_by_its_panel(there: Path) -> None:
    """A mirror is no longer that of a source in which one point was changed; the panel is named."""
    _points(there / "tree")
    findings = check_source(there / "mirror", open_source(there / "tree"))

    assert ["dataset_sha256", "content_sha256", "panels: drug_safety"] == [finding.what for finding in findings]


def test_another_licence_of_the_source_is_named(there: Path) -> None:
    """A source that states another licence than the mirror is found."""
    edit_json(there / "tree" / "registry.json", license="cc-by-nc-4.0")
    (finding,) = check_source(there / "mirror", open_source(there / "tree"))

    assert ("source.license", '"cc-by-4.0"') == (finding.what, finding.found)


def test_a_source_with_errors_is_named(there: Path) -> None:
    """Where the source itself breaks a rule, that is the finding."""
    edit_json(case_path(there / "tree"), prompt="")
    findings = check_source(there / "mirror", open_source(there / "tree"))

    assert any(finding.file.endswith(f"{FIRST}.json") and finding.what == "prompt" for finding in findings)


def test_a_mirror_that_does_not_hold_is_not_held_against_a_source(there: Path) -> None:
    """A mirror whose files are not those of its digests is named as such."""
    (there / "mirror" / DRUG_SAFETY).unlink()
    (finding,) = check_source(there / "mirror", open_source(there / "tree"))[:1]

    assert ("missing", f"{there / 'mirror'}/{DRUG_SAFETY}") == (finding.what, finding.file)
