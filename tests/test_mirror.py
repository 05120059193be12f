"""A build writes the source's cases as they are, or nothing at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bedside_bench import PANEL_IDS, Case
from builder.cards.frontmatter import read_front_matter
from builder.dataset import tables
from builder.dataset.digests import read_digests
from builder.dataset.tables import CASE_SCHEMA, RUBRIC_SCHEMA
from builder.errors import BadInput, DigestMismatch
from builder.mirror import Built, verify_mirror
from tests.mirrors import CARD, DRUG_SAFETY, ITEMS, build, build_small, build_tiny, digest_of, rows, source_cases
from tests.trees import case_path, edit_json, read_json, write_tree


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return a build of all ten panels, two cases each."""
    return build_small(tmp_path_factory.mktemp("built"))


def test_every_case_is_in_its_panels_rows(built: Built) -> None:
    """Each panel's rows are its cases in the manifest's order, less `split`."""
    cases = source_cases(built.folder.parent / "source", PANEL_IDS)
    found = [row for panel in PANEL_IDS for row in rows(built.folder, f"data/{panel}/train-00000-of-00001.parquet")]

    assert cases == [{**row, "split": "train"} for row in found]


def test_the_digests_are_those_of_the_format(built: Built) -> None:
    """digests.json has the members of formats.md section 3, and dataset_sha256 is upstream's formula over the files."""
    cases = source_cases(built.folder.parent / "source", PANEL_IDS)
    digests = read_digests(built.folder)

    assert digest_of(cases) == digests["dataset_sha256"] == built.dataset_sha256
    assert {
        "format": "bedside-bench/digests/1",
        "kind": "mirror",
        "n_cases": 20,
        "n_items": sum(len(case["rubric_items"]) for case in cases),
        "panels": [
            {"id": panel, "n": 2, "sha256": digest_of([case for case in cases if case["benchmark"] == panel])}
            for panel in PANEL_IDS
        ],
        "splits": {"train": "train"},
        "source": {"kind": "tree", "repo": None, "revision": None, "license": "cc-by-4.0"},
    } == {
        name: value
        for name, value in digests.items()
        if name not in ("dataset_sha256", "content_sha256", "files", "made_by")
    }
    assert pa.__version__ == digests["made_by"]["pyarrow"]


def test_the_content_digest_is_that_of_the_format(built: Built) -> None:
    """content_sha256 joins sorted digests of each case without its ids, its items sorted (formats.md section 2)."""

    def sha(case: Case) -> str:
        content = {name: case[name] for name in ("case_id", "benchmark", "grading_method", "prompt", "split")}
        content["items"] = sorted([item["text"], item["points"]] for item in case["rubric_items"])
        return hashlib.sha256(
            json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()

    digests = sorted(map(sha, source_cases(built.folder.parent / "source", PANEL_IDS)))

    assert hashlib.sha256("\n".join(digests).encode()).hexdigest() == built.content_sha256


def test_all_files_have_the_two_schemas(built: Built) -> None:
    """Ten panel files have byte-equal schemas; nothing but Parquet, card, digests and legal files is there."""
    names = sorted(path.relative_to(built.folder).as_posix() for path in built.folder.rglob("*") if path.is_file())
    panels = [f"data/{panel}/train-00000-of-00001.parquet" for panel in PANEL_IDS]

    assert sorted(["CITATION.cff", "LICENSE", "README.md", ITEMS, "digests.json", *panels]) == names
    assert len({pq.read_schema(built.folder / name).serialize().to_pybytes() for name in panels}) == 1
    assert pq.read_schema(built.folder / DRUG_SAFETY).equals(CASE_SCHEMA)
    assert pq.read_schema(built.folder / ITEMS).equals(RUBRIC_SCHEMA)


def test_the_sources_legal_files_are_carried_unchanged(built: Built) -> None:
    """LICENSE and CITATION.cff of the source lie in the mirror, byte for byte."""
    for name in ("LICENSE", "CITATION.cff"):
        assert (built.folder.parent / "source" / name).read_bytes() == (built.folder / name).read_bytes()


def test_the_same_input_gives_the_same_bytes(built: Built, tmp_path: Path) -> None:
    """Built again in another process, elsewhere, every file is the same; so is the folder digest."""
    source = shutil.copytree(built.folder.parent / "source", tmp_path / "elsewhere")
    code = (
        "import sys; from pathlib import Path; from builder.mirror import build_mirror; "
        "from builder.tree.sources import open_source; build_mirror(open_source(sys.argv[1]), Path(sys.argv[2]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(source), str(tmp_path / "again")],
        check=True,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONHASHSEED": "5", "TZ": "Asia/Tokyo"},
    )

    assert (built.folder / "digests.json").read_bytes() == (tmp_path / "again" / "digests.json").read_bytes()
    assert verify_mirror(tmp_path / "again", expect=built.folder_digest).ok


def test_with_an_error_in_the_source_nothing_is_built(tmp_path: Path) -> None:
    """Every problem is in the report, and the old mirror stays as it was."""
    old = build_small(tmp_path)
    edit_json(case_path(tmp_path / "source"), grading_method="f1_weighted_rubric")
    edit_json(case_path(tmp_path / "source", "safety_therapeutic", 1), prompt="")
    done = build(tmp_path / "source", old.folder)

    assert done.folder_digest is None
    assert not done.report.ok
    assert {"drug_safety", "safety_therapeutic"} == {problem.file.split("/")[1] for problem in done.report.problems}
    assert verify_mirror(old.folder, expect=old.folder_digest).ok
    assert ["mirror", "source"] == sorted(path.name for path in tmp_path.iterdir())


def test_chosen_panels_make_a_mirror_of_their_own(tmp_path: Path) -> None:
    """--panel gives those panels, `all` over them and `rubric_items`, in registry order; the digest is over them."""
    done = build_small(tmp_path, panels=["safety_diagnostic", "landmark_trials"])
    chosen = ("landmark_trials", "safety_diagnostic")
    front = read_front_matter((done.folder / "README.md").read_bytes())

    assert [*chosen, "all", "rubric_items"] == [config["config_name"] for config in front["configs"]]
    assert digest_of(source_cases(tmp_path / "source", chosen)) == done.dataset_sha256
    assert verify_mirror(done.folder).ok


def test_two_builds_of_one_folder_do_not_mix(tmp_path: Path) -> None:
    """At the same time, one waits for the other; in the end the folder is one of the two, whole."""
    sources = [write_tree(tmp_path / name, n, ["drug_safety"]) for name, n in (("one", 2), ("two", 3))]
    with ThreadPoolExecutor(2) as both:
        one, two = both.map(lambda source: build(source, tmp_path / "mirror", panels=["drug_safety"]), sources)
    verified = verify_mirror(tmp_path / "mirror")

    assert verified.ok
    assert verified.folder_digest in (one.folder_digest, two.folder_digest)
    assert one.folder_digest != two.folder_digest
    assert ["mirror", "one", "two"] == sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize("place", ["source", "source/data", "source/data/drug_safety/mirror", "."])
def test_a_mirror_is_never_put_over_or_into_its_source(tmp_path: Path, place: str) -> None:
    """The source stays as it is."""
    source = write_tree(tmp_path / "source")

    with pytest.raises(BadInput, match="expected a folder outside the source"):
        build(source, tmp_path / place)


def test_a_link_among_the_legal_files_may_not_leave_the_tree(tmp_path: Path) -> None:
    """A LICENSE that is a link to a file elsewhere would copy that file into the mirror."""
    source = write_tree(tmp_path / "source")
    (tmp_path / "secret").write_text("mine", encoding="utf-8")
    (source / "NOTICE").symlink_to(tmp_path / "secret")

    done = build(source, tmp_path / "mirror")

    assert ["link-leaves-tree"] == [problem.rule for problem in done.report.problems]
    assert not (tmp_path / "mirror").exists()


@pytest.mark.parametrize(
    ("stated", "codes"),
    [("es", "- es"), (["en", "zh-Hans"], "- en\n- zh-Hans"), (5, "- en"), ([{"a": 1}, None, "EN US"], "- en")],
    ids=["one", "two", "a number", "no code"],
)
def test_the_cards_languages_are_the_registrys_codes(tmp_path: Path, stated: object, codes: str) -> None:
    """What is no language code is left out; where none is stated it is English."""
    source = write_tree(tmp_path / "source", panels=["drug_safety"])
    edit_json(source / "registry.json", language=stated)

    card = (build(source, tmp_path / "mirror", panels=["drug_safety"]).folder / "README.md").read_text(encoding="utf-8")

    assert f"language:\n{codes}\ntask_categories:" in card


def test_the_licence_is_the_sources_or_the_one_given(tmp_path: Path) -> None:
    """--license fills in what the source does not say; it never contradicts what it says."""
    source = write_tree(tmp_path / "source", panels=["drug_safety"])
    with pytest.raises(BadInput, match=r"--license mit: expected the licence that the source names, cc-by-4\.0"):
        build(source, tmp_path / "mirror", license_id="mit", panels=["drug_safety"])
    for name in ("LICENSE", "CITATION.cff"):
        (source / name).unlink()
    registry = read_json(source / "registry.json")
    del registry["license"]
    (source / "registry.json").write_text(json.dumps(registry), encoding="utf-8")

    assert build(source, tmp_path / "mirror", panels=["drug_safety"]).license is None
    assert "license: unknown" in (tmp_path / "mirror" / "README.md").read_text(encoding="utf-8")
    assert "mit" == build(source, tmp_path / "mirror", license_id="mit", panels=["drug_safety"]).license
    with pytest.raises(BadInput, match="--license: expected the Hub's id of a licence"):
        build(source, tmp_path / "mirror", license_id="MIT License", panels=["drug_safety"])


def test_what_does_not_read_back_is_not_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the rows on disk were not the source's, the build would stop and the old folder stay."""
    old = build_small(tmp_path, panels=["drug_safety"])
    coerced = tables.case_batch

    def rounding(cases: list[Case]) -> pa.RecordBatch:
        return coerced([{**case, "prompt": case["prompt"].strip("?.") + "!"} for case in cases])

    monkeypatch.setattr(tables, "case_batch", rounding)
    with pytest.raises(DigestMismatch, match="what was written does not read back as the source: data/drug_safety/"):
        build(tmp_path / "source", old.folder, panels=["drug_safety"])

    assert verify_mirror(old.folder, expect=old.folder_digest).ok


@pytest.mark.skipif(
    "BEDSIDE_UPSTREAM" not in os.environ, reason="needs real cases: set BEDSIDE_UPSTREAM to their folder"
)
def test_real_cases_come_through(tmp_path: Path) -> None:
    """A folder of real BedsideBench cases builds, verifies and has upstream's digest."""
    source = Path(os.environ["BEDSIDE_UPSTREAM"])
    done = build(source, tmp_path / "mirror")
    card = (done.folder / "README.md").read_text(encoding="utf-8")

    assert done.report.ok
    assert digest_of(source_cases(source, PANEL_IDS)) == done.dataset_sha256
    assert verify_mirror(done.folder, expect=done.folder_digest).ok
    assert "license: cc-by-nc-sa-4.0" in card
    assert "Doximity" in card


@pytest.mark.parametrize(("repo", "shown"), [("org/mine", "org/mine"), (None, "THIS_REPOSITORY_OR_FOLDER")])
def test_the_card_shows_how_to_load_the_repository_it_is_built_for(
    tmp_path: Path, repo: str | None, shown: str
) -> None:
    """Its lines name the Hub dataset that was given, else a place to fill in; the rows are the same."""
    card = (build_tiny(tmp_path, repo_id=repo).folder / CARD).read_text(encoding="utf-8")

    assert f'load_dataset("{shown}", "drug_safety", split="train")' in card
