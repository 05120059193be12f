"""Write a large valid source tree, the same for the same seed: `python -m tests.bench.make_tree ROOT --cases 100000`.

Twelve items a case, about 2.8 kB a file. One case in a hundred has a near-duplicate of the prompt before it.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import orjson

from bedside_bench import F1_WEIGHTED_RUBRIC, PANEL_IDS, PANELS_BY_ID, PUBLIC_SPLIT, item_id
from tests.trees import make_registry, write_json

ITEMS_PER_CASE = 12
POINTS = (2, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1)
PLAN_POINTS = (3, 2, 2, 1, 1, 1, 0, -1, -1, -2, -2, -3)
NEAR_DUPLICATES = 0.01
_AS_UPSTREAM = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def make_tree(root: Path, n_cases: int, *, seed: int = 42) -> Path:
    """Write a tree of ten panels with `n_cases` cases together and return its root."""
    rng = random.Random(seed)
    vocabulary = _vocabulary(rng)
    per_panel = n_cases // len(PANEL_IDS)
    for panel in PANEL_IDS:
        folder = root / "data" / panel
        (folder / "cases").mkdir(parents=True, exist_ok=True)
        ids = [_write_case(folder, case) for case in _cases(panel, per_panel, rng, vocabulary)]
        write_json(folder / "manifest.json", {"benchmark": panel, "case_count": len(ids), "case_ids": ids})
    write_json(root / "registry.json", make_registry(PANEL_IDS, per_panel))
    return root


def _cases(panel: str, n: int, rng: random.Random, vocabulary: list[str]) -> list[dict[str, Any]]:
    words: list[str] = []
    cases = []
    for _ in range(n):
        if words and rng.random() < NEAR_DUPLICATES:
            words = [*words[:-2], *rng.choices(vocabulary, k=2)]
        else:
            words = rng.choices(vocabulary, k=rng.randint(40, 90))
        cases.append(_case(panel, words, rng, vocabulary))
    return cases


def _case(panel: str, words: list[str], rng: random.Random, vocabulary: list[str]) -> dict[str, Any]:
    method = PANELS_BY_ID[panel].grading_method
    half = len(words) // 2
    unit = "≥ 5 mg/m²" if len(words) % 3 == 0 else ">= 5 mg"
    prompt = f"{' '.join(words[:half])} {unit}.\n\n{' '.join(words[half:])}?"
    items = [
        {"item_id": item_id(prompt, i), "text": f"States {' '.join(rng.choices(vocabulary, k=9))}", "points": points}
        for i, points in enumerate(PLAN_POINTS if method == F1_WEIGHTED_RUBRIC else POINTS)
    ]
    return {
        "case_id": f"{rng.getrandbits(128):032x}",
        "benchmark": panel,
        "grading_method": method,
        "prompt": prompt,
        "rubric_items": items,
        "split": PUBLIC_SPLIT,
    }


def _write_case(folder: Path, case: dict[str, Any]) -> str:
    case_id: str = case["case_id"]
    (folder / "cases" / f"{case_id}.json").write_bytes(orjson.dumps(case, option=_AS_UPSTREAM))
    return case_id


def _vocabulary(rng: random.Random) -> list[str]:
    """Return words of which some are frequent and most are rare, as in prose."""
    letters = "aeioubcdfglmnprst"
    rare = ["".join(rng.choices(letters, k=rng.randint(4, 9))) for _ in range(4000)]
    return rare + 8 * rare[:200] + 40 * rare[:20]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=42)
    arguments = parser.parse_args()
    make_tree(arguments.root, arguments.cases, seed=arguments.seed)
