"""The rules of files, folders, manifests and registry: a broken fixture a rule, with the line a person reads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from builder.rules.problems import Problem
from builder.rules.validate import check_tree
from builder.tree.sources import open_source
from tests.breaks import (
    DRUG,
    FILE0,
    FILE1,
    ID0,
    ID1,
    MANIFEST,
    OTHER,
    PLAN,
    Break,
    copied,
    in_place_of_case,
    item,
    manifest,
    panel_entry,
    raw_points,
    registry,
    report_of,
    reported,
    text,
)
from tests.trees import case_path, edit_json, read_json, write_tree

WARNINGS = {
    "license-conflict",
    "license-id",
    "license-unknown",
    "manifest-count",
    "registry-count",
    "registry-path",
    "stray-file",
}


def unlicensed(root: Path) -> None:
    """Take every statement of a licence out of a tree."""
    (root / "LICENSE").unlink()
    (root / "CITATION.cff").unlink()
    registry(license=None)(root)


BROKEN: dict[str, tuple[Break, str]] = {
    # reading
    "missing-file": (lambda r: case_path(r).unlink(), f"{FILE0}: expected a file, found none"),
    "not-a-file pipe": (
        in_place_of_case(os.mkfifo),
        f"{FILE0}: expected a regular file, found a named pipe",
    ),
    "not-a-file folder": (
        in_place_of_case(Path.mkdir),
        f"{FILE0}: expected a regular file, found a folder",
    ),
    "link-leaves-tree": (
        in_place_of_case(lambda path: path.symlink_to("/dev/zero")),
        f'{FILE0}: expected a path inside the source tree, found a link to "/dev/zero"; copy it into the tree',
    ),
    "byte-order-mark": (
        lambda r: case_path(r).write_bytes(b"\xef\xbb\xbf" + case_path(r).read_bytes()),
        f"{FILE0}: expected UTF-8 without one, found a byte order mark; save the file as plain UTF-8",
    ),
    "encoding": (
        lambda r: case_path(r).write_bytes(case_path(r).read_text().encode("utf-16")),
        f"{FILE0}: expected UTF-8, found UTF-16; save the file as UTF-8",
    ),
    "json-syntax": (
        text(FILE0, "{"),
        f"{FILE0}: expected one JSON value, found the end of the file at line 1, column 2",
    ),
    "nesting": (text(FILE0, "[" * 10**6), f"{FILE0}: expected at most three, found hundreds of levels of nesting"),
    "wrong-type file": (text(FILE0, "[]"), f"{FILE0}: expected an object, the case, found an empty array"),
    "duplicate-key": (
        lambda r: case_path(r).write_text(case_path(r).read_text().replace('"split"', '"split": "train", "split"')),
        f"{FILE0}: split: expected a member once, found it more than once",
    ),
    "non-finite-number": (
        raw_points("NaN"),
        f"{FILE0}: rubric_items[0].points: expected a finite number, found NaN",
    ),
    "lone-surrogate": (
        raw_points(r'2, "text": "5 \ud835g"'),
        f'{FILE0}: rubric_items[0].text: expected whole characters, found half a surrogate pair ("\\ud835")',
    ),
    "nul-character": (
        item(1, text="5\0mg"),
        f"{FILE0}: rubric_items[1].text: expected text without NUL, found a NUL character",
    ),  # manifests and folders
    "missing-panel": (
        lambda r: shutil.rmtree(r / "data" / PLAN),
        f"data/{PLAN}: expected a folder with this panel's cases, found none",
    ),
    "missing-manifest": (lambda r: (r / MANIFEST).unlink(), f"{MANIFEST}: expected a file, found none"),
    "wrong-type manifest": (text(MANIFEST, "[]"), f"{MANIFEST}: expected an object, found an empty array"),
    "manifest-id": (
        manifest(case_ids=[ID0, ID1, "../../../etc/passwd"], case_count=3),
        f'{MANIFEST}: case_ids[2]: expected 32 lower-case hex digits, found "../../../etc/passwd"',
    ),
    "manifest-duplicate": (
        manifest(case_ids=[ID0, ID1, ID0], case_count=3),
        f'{MANIFEST}: case_ids[2]: expected every id once, found "{ID0}", as in case_ids[0]',
    ),
    "manifest-count": (manifest(case_count=50), f"{MANIFEST}: case_count: expected 2, as case_ids has, found 50"),
    "manifest-benchmark": (
        manifest(benchmark="drugs"),
        f'{MANIFEST}: benchmark: expected "drug_safety", found "drugs"',
    ),
    "manifest-grading-method": (
        manifest(grading_method="points"),
        f'{MANIFEST}: grading_method: expected "points_rubric", found "points"',
    ),
    "unlisted-case": (
        manifest(case_ids=[ID0], case_count=1),
        (
            f"{FILE1}: expected a case that manifest.json lists, found one it does not list; "
            "add its id to case_ids, or remove the file"
        ),
    ),
    "stray-file": (
        text(f"data/{DRUG}/cases/notes.txt", "x"),
        f"data/{DRUG}/cases/notes.txt: expected only files named <case_id>.json, found another name",
    ),
    # registry and licence
    "missing-registry": (
        lambda r: (r / "registry.json").unlink(),
        "registry.json: expected a file, found none",
    ),
    "registry-panels": (registry(panels=7), "registry.json: panels: expected an array of panels, found 7"),
    "registry-panel": (
        lambda r: edit_json(
            r / "registry.json", panels=[*read_json(r / "registry.json")["panels"], {"id": "dentistry"}]
        ),
        'registry.json: panels[2].id: expected one of the ten panels\' ids, found "dentistry"',
    ),
    "registry-panel missing": (
        lambda r: edit_json(r / "registry.json", panels=read_json(r / "registry.json")["panels"][:1]),
        'registry.json: panels: expected every panel of the tree, found no "safety_diagnostic"',
    ),
    "registry-order": (
        lambda r: edit_json(r / "registry.json", panels=read_json(r / "registry.json")["panels"][::-1]),
        f"registry.json: panels: expected the order {DRUG}, {PLAN}, found {PLAN}, {DRUG}",
    ),
    "registry-method": (
        panel_entry(grading_method="f1_weighted_rubric"),
        'registry.json: panels[0].grading_method: expected "points_rubric" for drug_safety, found "f1_weighted_rubric"',
    ),
    "registry-path": (
        panel_entry(path="data/other"),
        'registry.json: panels[0].path: expected the folder of drug_safety, found "data/other"',
    ),
    "registry-count n": (
        panel_entry(n=50),
        "registry.json: panels[0].n: expected 2, as cases_per_panel, found 50",
    ),
    "registry-count published": (
        registry(published_cases_per_panel=25),
        "registry.json: published_cases_per_panel: expected 25 a panel, found 2 case files in drug_safety",
    ),
    "license-unknown": (
        unlicensed,
        (
            "registry.json: license: expected a licence, found none in the registry, citation, card or licence file; "
            'state it in registry.json as "license": "<id the Hub knows>", such as "cc-by-4.0"'
        ),
    ),
    "license-conflict": (
        registry(license="MIT"),
        (
            'registry.json: license: expected one licence throughout, found "mit" in registry.json, "cc-by-4.0" in '
            'CITATION.cff, "cc-by-4.0" in LICENSE; state it in registry.json as "license": "<id the Hub knows>", '
            'such as "cc-by-4.0"'
        ),
    ),
    "license-id": (
        registry(license="free of charge"),
        (
            'registry.json: license: expected a licence\'s id, found "free of charge"; '
            'state it in registry.json as "license": "<id the Hub knows>", such as "cc-by-4.0"'
        ),
    ),
    "not-a-file legal": (
        lambda r: os.mkfifo(r / "NOTICE"),
        "NOTICE: expected a regular file, found a named pipe",
    ),
    "file-name legal": (
        lambda r: Path(os.fsdecode(os.fsencode(r) + b"/LICENSE-\xff")).write_text("x"),
        "LICENSE-\\udcff: expected a name in plain text, found characters that do not print",
    ),
    # between cases
    "duplicate-prompt": (
        copied(case_id=OTHER),
        f"data/{DRUG}/cases/{OTHER}.json: prompt: expected a prompt of its own, found the prompt of {FILE0}",
    ),
    "duplicate-item-id": (
        lambda r: copied(case_id=OTHER, prompt="Another question?")(r),
        f"data/{DRUG}/cases/{OTHER}.json: rubric_items[*].item_id: expected ids of its own, found the ids of {FILE0}",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_reported_with_its_exact_line(tmp_path: Path, name: str) -> None:
    """Each fixture breaks one rule of a valid tree; the report names the rule, its severity and the exact line."""
    broken, line = BROKEN[name]

    rule = name.split()[0]
    severity = "warning" if {name, rule} & WARNINGS else "error"
    assert reported(tmp_path, broken)[line] == (rule, severity)


def errors_after(root: Path, broken: Break) -> list[Problem]:
    """Break a new tree and return the errors of its report."""
    broken(write_tree(root, panels=[DRUG, PLAN]))
    return [problem for problem in report_of(root).problems if problem.severity == "error"]


def test_a_missing_folder_of_cases_is_one_problem(tmp_path: Path) -> None:
    """Its cases are not reported one by one besides."""
    errors = errors_after(tmp_path, lambda root: shutil.rmtree(root / "data" / DRUG / "cases"))

    assert [(error.rule, error.file) for error in errors] == [("missing-folder", f"data/{DRUG}/cases")]


def test_a_folder_of_cases_behind_a_link_out_of_the_tree_is_not_read(tmp_path: Path) -> None:
    """The link is the problem, and no case behind it is taken."""

    def moved(root: Path) -> None:
        cases = root / "data" / DRUG / "cases"
        cases.rename(tmp_path / "elsewhere")
        cases.symlink_to(tmp_path / "elsewhere")

    assert [error.rule for error in errors_after(tmp_path / "tree", moved)] == ["link-leaves-tree"]
    assert report_of(tmp_path / "tree").panels == {DRUG: 0, PLAN: 2}


def test_a_manifest_without_a_list_is_one_problem(tmp_path: Path) -> None:
    """Where nothing is listed because there is no list, the case files are not called unlisted too."""
    errors = errors_after(tmp_path, manifest(case_ids="none"))

    assert [error.rule for error in errors] == ["manifest-case-ids"]


@pytest.mark.parametrize("folder", [f"data/{DRUG}", f"data/{DRUG}/cases", "data/other"])
@pytest.mark.parametrize("mode", [0o000, 0o600])
def test_a_folder_that_may_not_be_read_does_not_end_the_report(tmp_path: Path, folder: str, mode: int) -> None:
    """It is one problem of the report, if it is of a panel, and the rest of the tree is checked."""
    root = write_tree(tmp_path)
    (root / "data" / "other").mkdir()
    (root / folder).chmod(mode)
    try:
        if os.access(root / folder, os.X_OK):
            pytest.skip("this user may read everything")
        report = check_tree(open_source(root))
    finally:
        (root / folder).chmod(0o755)

    expected = [] if folder == "data/other" else [("unreadable", folder)]
    assert [(one.rule, one.file) for one in report.problems if one.severity == "error"] == expected
