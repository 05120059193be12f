"""Small valid source trees in the upstream layout, written for tests to use as they are or to break on purpose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bedside_bench import F1_WEIGHTED_RUBRIC, PANEL_IDS, PANELS, PANELS_BY_ID, PUBLIC_SPLIT, item_id

LICENSE_ID = "cc-by-4.0"
POINTS_PATTERN = (2, 1, 1, -1)
PLAN_PATTERN = (3, 2, 1, 0, -1, -2, -3)


def case_id_of(panel: str, number: int) -> str:
    """Return the id of a panel's case by its 0-based number; ids do not sort in the order of the manifest."""
    return hashlib.md5(f"case/{panel}/{number}".encode(), usedforsecurity=False).hexdigest()


def make_case(panel: str = "drug_safety", number: int = 0, *, split: str = PUBLIC_SPLIT) -> dict[str, Any]:
    """Return a valid case whose words depend on its panel and number, so that no two are near-duplicates."""
    words = _words(f"{panel}/{number}")
    prompt = f"{words[0].capitalize()} {' '.join(words[1:20])} ≥ 5 mg/m²?\n\n{' '.join(words[20:])}."
    pattern = PLAN_PATTERN if PANELS_BY_ID[panel].grading_method == F1_WEIGHTED_RUBRIC else POINTS_PATTERN
    items = [
        {"item_id": item_id(prompt, i), "text": f'Says "{words[i]}" [{words[i + 8]}] +1', "points": points}
        for i, points in enumerate(pattern)
    ]
    return {
        "case_id": case_id_of(panel, number),
        "benchmark": panel,
        "grading_method": PANELS_BY_ID[panel].grading_method,
        "prompt": prompt,
        "rubric_items": items,
        "split": split,
    }


def write_tree(root: Path, cases_per_panel: int = 2, panels: Iterable[str] | None = None) -> Path:
    """Write a valid tree (registry.json, LICENSE, CITATION.cff, data/<panel>/...) and return its root.

    Args:
        root: the folder to hold it; made if absent.
        panels: the ids to write, in this order; all ten in registry order if None.
    """
    chosen = PANEL_IDS if panels is None else tuple(panels)
    for panel in chosen:
        write_panel(root / "data" / panel, [make_case(panel, number) for number in range(cases_per_panel)])
    write_json(root / "registry.json", make_registry(chosen, cases_per_panel))
    (root / "LICENSE").write_text("Creative Commons Attribution 4.0 International\n", encoding="utf-8")
    (root / "CITATION.cff").write_text("cff-version: 1.2.0\nlicense: CC-BY-4.0\n", encoding="utf-8")
    return root


def write_panel(folder: Path, cases: list[dict[str, Any]]) -> None:
    """Write one panel's manifest and case files; the manifest keeps the order of `cases`."""
    (folder / "cases").mkdir(parents=True, exist_ok=True)
    for case in cases:
        write_json(folder / "cases" / f"{case['case_id']}.json", case)
    ids = [case["case_id"] for case in cases]
    write_json(folder / "manifest.json", {"benchmark": folder.name, "case_count": len(ids), "case_ids": ids})


def make_registry(panels: Iterable[str], cases_per_panel: int) -> dict[str, Any]:
    """Return a registry that fits a tree of these panels."""
    chosen = [panel for panel in PANELS if panel.id in set(panels)]
    total = len(chosen) * cases_per_panel
    return {
        "name": "test-tree",
        "version": "0.2.1",
        "seed": 42,
        "license": LICENSE_ID,
        "cases_per_panel": cases_per_panel,
        "published_cases_per_panel": cases_per_panel,
        "panel_count": len(chosen),
        "panels": [
            {
                "id": panel.id,
                "type": panel.kind,
                "grading_method": panel.grading_method,
                "path": f"data/{panel.id}",
                "n": cases_per_panel,
            }
            for panel in chosen
        ],
        "totals": {"all_cases": total, "published_cases": total, "expected_cases": total},
    }


def case_path(root: Path, panel: str = "drug_safety", number: int = 0) -> Path:
    """Return where `write_tree` put a case."""
    return root / "data" / panel / "cases" / f"{case_id_of(panel, number)}.json"


def read_json(path: Path) -> Any:
    """Return the value of a JSON file."""
    return json.loads(path.read_bytes())


def write_json(path: Path, value: object) -> None:
    """Write a JSON file as upstream writes them: two-space indent, non-ASCII as itself, a newline at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def edit_json(path: Path, **changes: object) -> None:
    """Change members of a JSON object file in place."""
    write_json(path, {**read_json(path), **changes})


def _words(seed: str) -> list[str]:
    """Return 40 pronounceable words that a seed determines."""
    digest = hashlib.sha512(seed.encode()).digest() + hashlib.sha512(f"{seed}+".encode()).digest()
    onset, vowel = "bdfgklmnprstvz", "aeiou"
    return [
        "".join(onset[digest[k] % 14] + vowel[digest[k] // 14 % 5] for k in range(i, i + 3))
        for i in range(0, 3 * 40, 3)
    ]
