"""A whole tree in one report: order, counts, repeats between cases, and what is passed on to a build."""

from __future__ import annotations

import json
import time
from hashlib import md5
from pathlib import Path

import pytest

from bedside_bench import PANEL_IDS, Case, item_id
from builder.rules import similar
from builder.rules.validate import check_tree
from builder.tree.sources import open_source
from tests.breaks import (
    DRUG,
    FILE0,
    ID0,
    ID1,
    MANIFEST,
    MD5,
    PANELS,
    PLAN,
    PLAN0,
    PROMPT0,
    case,
    item,
    item_ids,
    lines,
    manifest,
    points,
    raw_points,
    registry,
    report_of,
)
from tests.trees import case_id_of, case_path, edit_json, make_case, read_json, write_json, write_panel, write_tree


def test_a_valid_tree_has_no_problem(tmp_path: Path) -> None:
    """Ten panels of three cases pass, and the report counts what it saw."""
    report = check_tree(open_source(write_tree(tmp_path, 3)))

    assert (report.problems, report.ok) == ((), True)
    assert (report.n_cases, report.n_items) == (30, 8 * 12 + 2 * 21)
    assert report.panels == dict.fromkeys(PANEL_IDS, 3)
    assert (report.id_dialects, report.license) == ({"md5": 30, "local": 0}, "cc-by-4.0")


def test_the_whole_tree_is_in_one_report(tmp_path: Path) -> None:
    """Problems of registry, manifest and every case come together, in dataset order."""
    root = write_tree(tmp_path, panels=PANELS)
    registry(panels=7)(root)
    manifest(case_count=9)(root)
    case(split="dev")(root)
    case_path(root, DRUG, 1).write_text("")
    item(0, PLAN, points=9)(root)

    assert [problem.rule for problem in report_of(root).problems] == [
        "registry-panels", "manifest-count", "split", "json-syntax", "points-range",
    ]  # fmt: skip


def test_a_file_with_a_fault_is_checked_all_the_same(tmp_path: Path) -> None:
    """A byte order mark does not hide the other problems of a file, and no place is reported twice."""
    root = write_tree(tmp_path, panels=PANELS)
    raw_points("NaN")(root)
    case(split="dev", prompt="x")(root)
    case_path(root).write_bytes(b"\xef\xbb\xbf" + case_path(root).read_bytes())

    rules = [problem.rule for problem in report_of(root).problems]

    assert rules == ["byte-order-mark", "non-finite-number", "split", "item-id-prefix"]


def test_problems_of_one_file_are_bounded(tmp_path: Path) -> None:
    """A file with ten thousand bad items gives a thousand problems and one that says so."""
    root = write_tree(tmp_path, panels=PANELS)
    case(rubric_items=[{}] * 10_000)(root)

    problems = report_of(root).problems

    assert (len(problems), problems[-1].rule) == (1001, "more-problems")


def test_local_item_ids_are_accepted_and_counted(tmp_path: Path) -> None:
    """The older ids item_0, item_1 ... pass, and the report says how many cases use them."""
    root = write_tree(tmp_path, panels=PANELS)
    item_ids("item_0", "item_1", "item_2", "item_3")(root)

    report = report_of(root)

    assert (report.problems, report.id_dialects) == ((), {"md5": 3, "local": 1})


def test_a_missing_manifest_is_one_error(tmp_path: Path) -> None:
    """Without a manifest the files are still checked, and none is called unlisted."""
    root = write_tree(tmp_path, panels=PANELS)
    (root / MANIFEST).unlink()
    case(split="dev")(root)

    assert [problem.rule for problem in report_of(root).problems] == ["missing-manifest", "split"]


def test_held_out_cases_need_the_switch(tmp_path: Path) -> None:
    """An unlisted case of another split is two errors, and none with held_out."""
    root = write_tree(tmp_path, panels=PANELS)
    held = make_case(DRUG, 7, split="test")
    write_json(root / f"data/{DRUG}/cases/{held['case_id']}.json", held)
    registry(cases_per_panel=None, panels=read_json(root / "registry.json")["panels"])(root)

    assert {problem.rule for problem in report_of(root).problems if problem.severity == "error"} == {
        "split", "unlisted-case",
    }  # fmt: skip
    assert report_of(root, held_out=True).ok


def test_held_out_cases_come_last_in_a_panel(tmp_path: Path) -> None:
    """The build gets a panel's listed cases in the manifest's order, then the held-out ones by file name."""
    root = write_tree(tmp_path, panels=[DRUG])
    held = sorted((make_case(DRUG, number, split="test") for number in (7, 8, 9)), key=lambda one: one["case_id"])
    for one in held:
        write_json(root / f"data/{DRUG}/cases/{one['case_id']}.json", one)
    seen: list[Case] = []

    check_tree(open_source(root), held_out=True, panels=[DRUG], on_case=seen.append)

    assert [one["case_id"] for one in seen] == [ID0, ID1, *(one["case_id"] for one in held)]


def test_only_valid_cases_are_passed_on(tmp_path: Path) -> None:
    """A case with an error is not passed on, one with a warning is."""
    root = write_tree(tmp_path, panels=PANELS)
    case(split="dev")(root)
    points(0, 0, 0, 0, 0, 0, 0, panel=PLAN)(root)
    seen: list[Case] = []

    check_tree(open_source(root), panels=PANELS, on_case=seen.append)

    assert [one["case_id"] for one in seen] == [ID1, case_id_of(PLAN, 0), case_id_of(PLAN, 1)]


def test_a_prompt_shared_by_panels_is_a_warning(tmp_path: Path) -> None:
    """The same prompt in two panels is named with both files; a third use within a panel is an error."""
    root = write_tree(tmp_path, panels=PANELS)
    for number in (0, 1):
        ids = [f"{MD5}_{i}" for i in range(7)]
        items = [{**old, "item_id": new} for old, new in zip(make_case(PLAN)["rubric_items"], ids, strict=True)]
        edit_json(case_path(root, PLAN, number), prompt=PROMPT0, rubric_items=items)

    plan1 = f"data/{PLAN}/cases/{case_id_of(PLAN, 1)}.json"

    assert [(problem.severity, problem.line()) for problem in report_of(root).problems] == [
        ("warning", f"{PLAN0}: prompt: expected a prompt of its own, found the prompt of {FILE0}"),
        ("error", f"{plan1}: prompt: expected a prompt of its own, found the prompt of {PLAN0}"),
    ]


def test_a_case_id_in_two_panels_is_an_error(tmp_path: Path) -> None:
    """A case id is unique in the whole tree."""
    root = write_tree(tmp_path, 1, panels=PANELS)
    twin = {**make_case(PLAN, 5), "case_id": ID0}
    write_json(root / f"data/{PLAN}/cases/{ID0}.json", twin)
    edit_json(root / f"data/{PLAN}/manifest.json", case_ids=[case_id_of(PLAN, 0), ID0], case_count=2)

    assert f"data/{PLAN}/cases/{ID0}.json: case_id: expected an id of its own, found the id of {FILE0}" in lines(root)


def test_near_duplicates_name_both_files(tmp_path: Path) -> None:
    """Two prompts that differ in one of 43 words share 38 of 44 sequences: a warning that names both files."""
    root = write_tree(tmp_path, panels=PANELS)
    near = PROMPT0.replace("5 mg", "50 mg")
    other = md5(near.encode(), usedforsecurity=False).hexdigest()
    items = [{**old, "item_id": f"{other}_{i}"} for i, old in enumerate(make_case(PLAN, 1)["rubric_items"])]
    edit_json(case_path(root, PLAN, 1), prompt=near, rubric_items=items)

    plan1 = f"data/{PLAN}/cases/{case_id_of(PLAN, 1)}.json"

    assert lines(root) == [
        f"{FILE0}: prompt: expected a prompt of its own, found one that shares 86% of its 3-word sequences with {plan1}"
    ]


def test_caps_on_near_duplicates_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When not all pairs are listed, or not all were compared, the report says so."""
    root = write_tree(tmp_path, panels=PANELS)
    alike = [make_case(DRUG, number) for number in range(4)]
    for one in alike:
        one["prompt"] = f"{PROMPT0} {one['case_id']}"
        one["rubric_items"] = [
            {**old, "item_id": item_id(one["prompt"], i)} for i, old in enumerate(one["rubric_items"])
        ]
    write_panel(root / "data" / DRUG, alike)
    registry(published_cases_per_panel=None, cases_per_panel=None)(root)
    monkeypatch.setattr(similar, "MAX_PAIRS", 1)
    monkeypatch.setattr(similar, "CROWD", 1)

    assert [line for line in lines(root) if line.startswith(".")] == [
        ".: prompt: expected at most 1, found 3 pairs of similar prompts; only the 1 most similar are listed",
        (
            ".: prompt: expected few enough pairs to compare them all, found too many prompts that share words; "
            "there may be more near-duplicates than are listed"
        ),
    ]


def test_an_unknown_panel_folder_is_an_error(tmp_path: Path) -> None:
    """A folder of cases that is none of the ten panels is named; other folders are not looked at."""
    root = write_tree(tmp_path)
    (root / "data" / "dentistry" / "cases").mkdir(parents=True)
    (root / "data" / "images").mkdir()

    problems = check_tree(open_source(root)).problems

    assert [problem.line() for problem in problems] == [
        'data/dentistry: expected one of the ten panels\' ids, found "dentistry"'
    ]


def test_selected_panels_need_no_others(tmp_path: Path) -> None:
    """With one panel selected the other nine may be absent; without a selection each is an error."""
    root = write_tree(tmp_path, panels=[DRUG])

    assert check_tree(open_source(root), panels=[DRUG]).ok
    assert sum(p.rule == "missing-panel" for p in check_tree(open_source(root)).problems) == 9


@pytest.mark.slow
def test_a_prompt_of_ten_megabytes_is_checked(tmp_path: Path) -> None:
    """A huge prompt is valid and takes seconds at most."""
    root = write_tree(tmp_path, panels=PANELS)
    prompt = "".join(f"word{i} " for i in range(1_000_000))
    digest = md5(prompt.encode(), usedforsecurity=False).hexdigest()
    items = [{**old, "item_id": f"{digest}_{i}"} for i, old in enumerate(make_case(DRUG)["rubric_items"])]
    case(prompt=prompt, rubric_items=items)(root)
    start = time.monotonic()

    assert (report_of(root).problems, time.monotonic() - start < 20) == ((), True)


def test_found_values_are_bounded(tmp_path: Path) -> None:
    """A wrong value of ten megabytes is quoted by its beginning and its length."""
    root = write_tree(tmp_path, panels=PANELS)
    case(split="x" * 10_000_000)(root)

    (line,) = lines(root)

    assert line.endswith(f'found "{"x" * 60}"… (10,000,000 characters); --held-out accepts held-out cases')


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in values and file names are shown as escapes."""
    root = write_tree(tmp_path, panels=PANELS)
    case(split="\x1b[2J\u202e")(root)
    (root / f"data/{DRUG}/cases/\x1b[31m.txt").write_text("")

    assert all(line.isprintable() for line in lines(root))


def test_the_report_is_the_same_every_time(tmp_path: Path) -> None:
    """The JSON report of a tree is ASCII, names its schema, and does not depend on the order of the disk."""
    root = write_tree(tmp_path, panels=PANELS)
    case(note="é", split="dev")(root)

    first, second = report_of(root).to_json(), report_of(root).to_json()
    report = json.loads(first)

    assert first == second
    assert first.isascii()
    assert report["schema"] == "bedside-bench/check/1"
    assert report["counts"] == {"error": 2, "warning": 0}
    assert report["problems"][0] == {
        "severity": "error",
        "rule": "unknown-field",
        "file": FILE0,
        "case_id": ID0,
        "field": "note",
        "found": '"é"',
        "expected": "no such field; a case has case_id, benchmark, grading_method, prompt, rubric_items, split",
        "hint": None,
    }
