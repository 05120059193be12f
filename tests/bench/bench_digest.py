"""How much longer `dataset_sha256` takes than the raw SHA-256 of the same bytes, in one run; prints the ratio.

    python -m tests.bench.bench_digest

10,000 cases in memory, 12 items each; best of nine of each, taken in turn, in processor time (both use one thread).
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from typing import Any

from bedside_bench import PANEL_IDS, canonical_json, dataset_sha256
from tests.trees import make_case

N_CASES, N_ITEMS, TRIES = 10_000, 12, 9


def make_cases() -> list[dict[str, Any]]:
    """Return cases of a usual size (about 2.4 kB), in dataset order."""
    each = N_CASES // len(PANEL_IDS)
    cases = [make_case(panel, number) for panel in PANEL_IDS for number in range(each)]
    for case in cases:
        items = case["rubric_items"]
        case["rubric_items"] = [
            {**items[i % len(items)], "text": f"{i}: {case['prompt'][: 40 + 9 * i]}"} for i in range(N_ITEMS)
        ]
    return cases


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure() -> None:
    """Print digest time / raw time; both must give the same digest."""
    cases = make_cases()
    raw = canonical_json(cases)
    assert hashlib.sha256(raw).hexdigest() == dataset_sha256(cases)
    pairs = [(seconds(lambda: dataset_sha256(cases)), seconds(lambda: hashlib.sha256(raw))) for _ in range(TRIES)]
    ours, floor = (min(times) for times in zip(*pairs, strict=True))
    size = len(raw) / 1e6
    sys.stdout.write(f"{size:.1f} MB: raw {floor * 1e3:.1f} ms, digest {ours * 1e3:.1f} ms, {ours / floor:.2f} x\n")


if __name__ == "__main__":
    measure()
