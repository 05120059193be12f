"""Ways to break a valid tree on purpose, one rule at a time, and what its report then says."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5
from pathlib import Path

from builder.rules.problems import Report
from builder.rules.validate import check_tree
from builder.tree.sources import open_source
from tests.trees import case_id_of, case_path, edit_json, make_case, read_json, write_json, write_tree

DRUG, PLAN = "drug_safety", "safety_diagnostic"
PANELS = (DRUG, PLAN)
ID0, ID1 = case_id_of(DRUG, 0), case_id_of(DRUG, 1)
PROMPT0 = make_case(DRUG, 0)["prompt"]
MD5 = md5(PROMPT0.encode(), usedforsecurity=False).hexdigest()
FILE0, FILE1 = (f"data/{DRUG}/cases/{case_id}.json" for case_id in (ID0, ID1))
PLAN0 = f"data/{PLAN}/cases/{case_id_of(PLAN, 0)}.json"
MANIFEST = f"data/{DRUG}/manifest.json"


Break = Callable[[Path], object]

OTHER = "0" * 32


def report_of(root: Path, *, held_out: bool = False) -> Report:
    """Check the two panels that the trees of these tests have."""
    return check_tree(open_source(root), panels=PANELS, held_out=held_out)


def lines(root: Path, *, held_out: bool = False) -> list[str]:
    """Return what a person reads about a tree."""
    return [problem.line() for problem in report_of(root, held_out=held_out).problems]


def case(**changes: object) -> Break:
    """Return a way to change members of the first drug_safety case."""
    return lambda root: edit_json(case_path(root), **changes)


def case_without(field: str) -> Break:
    """Return a way to take a member away."""
    return lambda root: write_json(case_path(root), {k: v for k, v in read_json(case_path(root)).items() if k != field})


def item(index: int, panel: str = DRUG, **changes: object) -> Break:
    """Return a way to change members of one rubric item of a panel's first case."""

    def broken(root: Path) -> None:
        items = read_json(case_path(root, panel))["rubric_items"]
        items[index] = {key: value for key, value in {**items[index], **changes}.items() if value is not ...}
        edit_json(case_path(root, panel), rubric_items=items)

    return broken


def item_ids(*ids: str) -> Break:
    """Return a way to give the four items of the first case other ids."""

    def broken(root: Path) -> None:
        items = read_json(case_path(root))["rubric_items"]
        edit_json(case_path(root), rubric_items=[{**old, "item_id": new} for old, new in zip(items, ids, strict=True)])

    return broken


def points(*values: object, panel: str = DRUG) -> Break:
    """Return a way to give the items of a panel's first case other points."""

    def broken(root: Path) -> None:
        items = read_json(case_path(root, panel))["rubric_items"]
        changed = [{**old, "points": new} for old, new in zip(items, values, strict=True)]
        edit_json(case_path(root, panel), rubric_items=changed)

    return broken


def raw_points(text: str) -> Break:
    """Return a way to write the first case's first points as a given JSON text."""

    def broken(root: Path) -> None:
        path = case_path(root)
        path.write_text(path.read_text().replace('"points": 2', f'"points": {text}', 1))

    return broken


def manifest(**changes: object) -> Break:
    """Return a way to change members of the drug_safety manifest."""
    return lambda root: edit_json(root / MANIFEST, **changes)


def registry(**changes: object) -> Break:
    """Return a way to change members of the registry."""
    return lambda root: edit_json(root / "registry.json", **changes)


def panel_entry(**changes: object) -> Break:
    """Return a way to change members of the registry's first panel."""

    def broken(root: Path) -> None:
        panels = read_json(root / "registry.json")["panels"]
        edit_json(root / "registry.json", panels=[{**panels[0], **changes}, *panels[1:]])

    return broken


def text(path: str, content: str | bytes) -> Break:
    """Return a way to write a file."""
    data = content.encode() if isinstance(content, str) else content
    return lambda root: (root / path).write_bytes(data)


def copied(**changes: object) -> Break:
    """Return a way to add the first case to the manifest a second time, changed."""

    def broken(root: Path) -> None:
        new = {**read_json(case_path(root)), **changes}
        write_json(root / f"data/{DRUG}/cases/{new['case_id']}.json", new)
        edit_json(root / MANIFEST, case_ids=[ID0, ID1, new["case_id"]], case_count=3)
        edit_json(root / "registry.json", published_cases_per_panel=None, cases_per_panel=None, panels=[])

    return broken


def in_place_of_case(put: Callable[[Path], object]) -> Break:
    """Return a way to put something else where the first case's file is."""

    def broken(root: Path) -> None:
        case_path(root).unlink()
        put(case_path(root))

    return broken


def reported(root: Path, broken: Break) -> dict[str, tuple[str, str]]:
    """Break a new tree; return the rule and severity of each line of its report."""
    broken(write_tree(root, panels=PANELS))
    return {problem.line(): (problem.rule, problem.severity) for problem in report_of(root).problems}
