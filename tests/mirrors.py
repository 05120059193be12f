"""Small mirrors built from the trees of `tests.trees`, and ways to change one, for tests to read or to break."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bedside_bench import Case
from builder.dataset.folder import write_digests, write_parquet
from builder.mirror import Built, build_mirror, verify_mirror
from builder.tree.sources import open_source
from tests.trees import make_case, read_json, write_json, write_tree

CARD = "README.md"
DRUG_SAFETY = "data/drug_safety/train-00000-of-00001.parquet"
ITEMS = "data/rubric_items/train-00000-of-00001.parquet"


def build_small(folder: Path, **options: Any) -> Built:
    """Build a mirror of a tree of all ten panels, two cases each, at `folder`/mirror."""
    return build_mirror(open_source(write_tree(folder / "source")), folder / "mirror", **options)


def build_tiny(folder: Path, **options: Any) -> Built:
    """Build a mirror of one panel with two cases at `folder`/mirror: the least there can be to verify."""
    return build_small(folder, panels=["drug_safety"], **options)


def add_held_out(root: Path, panel: str = "drug_safety", *, numbers: tuple[int, ...] = (7, 8)) -> list[Case]:
    """Put held-out cases, which no manifest lists, beside a panel's public ones; return them in file-name order."""
    cases = [make_case(panel, number, split="test") for number in numbers]
    for case in cases:
        write_json(root / "data" / panel / "cases" / f"{case['case_id']}.json", case)
    return sorted(cases, key=lambda case: str(case["case_id"]))


def source_cases(root: Path, panels: tuple[str, ...]) -> list[Case]:
    """Return the cases that the manifests of a tree list, in dataset order, read with the standard library alone."""
    return [
        read_json(root / "data" / panel / "cases" / f"{case_id}.json")
        for panel in panels
        for case_id in read_json(root / "data" / panel / "manifest.json")["case_ids"]
    ]


def change_card(mirror: Path, change: Callable[[str], str]) -> None:
    """Change a mirror's card and make its digests again, so that only the card itself can give it away."""
    text = (mirror / CARD).read_bytes().decode()
    changed = change(text)
    if changed == text:
        raise ValueError("the change changes nothing")
    (mirror / CARD).write_bytes(changed.encode())
    remake_digests(mirror)


def change_rows(mirror: Path, name: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change rows of a Parquet file of a mirror in place; its digests are left as they were."""
    table = pq.read_table(mirror / name)
    rows = table.to_pylist()
    change(rows)
    write_parquet(pa.Table.from_pylist(rows, schema=table.schema), mirror / name)


def remake_digests(mirror: Path, **members: object) -> str:
    """Write `digests.json` anew for the files as they are, with some members changed; return the folder digest."""
    old = json.loads((mirror / "digests.json").read_bytes())
    return write_digests(mirror, {**old, **members})


def build(source: Path, out: Path, **options: Any) -> Built:
    """Build a tree."""
    return build_mirror(open_source(source), out, **options)


def digest_of(cases: list[Case]) -> str:
    """Return upstream's dataset digest of cases, by the standard library alone."""
    text = json.dumps(cases, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def rows(mirror: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file of a mirror."""
    found: list[dict[str, Any]] = pq.read_table(mirror / name).to_pylist()
    return found


def lines(mirror: Path, **options: Any) -> list[str]:
    """Return the findings of a mirror, a line each."""
    return [finding.line() for finding in verify_mirror(mirror, **options).findings]
