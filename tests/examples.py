"""Small valid JSONL in every shape that HealthBench is published in, for tests to use as it is or to break on purpose.

lines = [make_example(number) for number in range(3)]
write_jsonl(tmp_path / "healthbench.jsonl", lines)          # also for make_professional and make_meta
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CANARY = "test-examples:1b7e6a52-40c1-4d09-9a53-000000000000"
PROFESSIONAL_CANARY = "test-examples-professional:1b7e6a52-40c1-4d09-9a53-000000000001"

POINTS = (7, 5, 10, -6)
THEMES = ("theme:hedging", "theme:communication", "theme:emergency_referrals")
AXES = ("axis:accuracy", "axis:completeness", "axis:context_awareness", "axis:accuracy")
PHYSICIANS = ("ph-1", "ph-2", "ph-3")


def example_id_of(number: int) -> str:
    """Return the id of an example by its 0-based number; ids do not sort in the order of the file."""
    return str(uuid.UUID(hashlib.md5(f"example/{number}".encode(), usedforsecurity=False).hexdigest()))


def make_example(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a valid example of the core shape: even ones have one turn and ideal completions, odd ones three turns.

    Args:
        changes: members to set instead; one that is ... is left out.
    """
    example: dict[str, Any] = {
        "example_tags": [THEMES[number % 3], *(["physician_agreed_category:enough"] if number % 2 else [])],
        "ideal_completions_data": None if number % 2 else make_ideal(number),
        "prompt": make_turns(number),
        "prompt_id": example_id_of(number),
        "rubrics": [make_criterion(number, index) for index in range(4)],
        "canary": CANARY,
    }
    return _changed(example, changes)


def make_criterion(number: int = 0, index: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a rubric item of the core shape; the second of each example is on the cluster level."""
    level = ["level:cluster", "cluster:hedging_hedges"] if index == 1 else ["level:example"]
    criterion = {
        "criterion": f"Says fact {number}.{index}, with a dose ≥ 5 mg/m²",
        "points": POINTS[index % 4],
        "tags": [*level, AXES[index % 4]],
    }
    return _changed(criterion, changes)


def make_turns(number: int = 0) -> list[dict[str, str]]:
    """Return a conversation that ends with the user."""
    last = {"role": "user", "content": f"Question {number}: what now?\u2028It still hurts."}
    if number % 2 == 0:
        return [last]
    first = {"role": "user", "content": f"Question {number}: is this bad?"}
    return [first, {"role": "assistant", "content": "Tell me more."}, last]


def make_ideal(number: int = 0, group: str = "Group 1") -> dict[str, Any]:
    """Return the member `ideal_completions_data` of an example."""
    return {
        "ideal_completion": f"Fact {number}.0 and fact {number}.1.",
        "ideal_completions_group": group,
        "ideal_completions_ref_completions": [f"Reference {number}.{k}" for k in range(4)],
    }


def make_professional(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a valid example of HealthBench Professional's shape."""
    example: dict[str, Any] = {
        "id": f"pro-{number:04}",
        "conversation": {"messages": make_turns(number)},
        "rubric_items": [
            {"criterion_text": f"Names option {number}.{index}", "points": POINTS[index]} for index in range(4)
        ],
        "use_case": ("consult", "writing", "research")[number % 3],
        "type": ("good_faith", "red_teaming")[number % 2],
        "difficulty": ("difficult", "typical")[number % 2],
        "specialty": ("cardiology", "nephrology")[number % 2],
        "physician_response": f"I would do {number}.0.",
        "canary_string": PROFESSIONAL_CANARY,
    }
    return _changed(example, changes)


def make_meta(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a valid record of the meta-evaluation's shape: one criterion, a completion, two or three labels."""
    n_labels = 2 + number % 2
    record: dict[str, Any] = {
        "prompt": make_turns(number),
        "completion": f"Completion {number}.",
        "completion_id": hashlib.sha256(f"completion/{number}".encode()).hexdigest(),
        "prompt_id": example_id_of(number // 2),
        "category": ("cluster:hedging_hedges", "cluster:communication_clear")[number % 2],
        "rubric": f"The response hedges where it must ({number % 3}).",
        "binary_labels": [(number + k) % 3 != 0 for k in range(n_labels)],
        "anonymized_physician_ids": list(PHYSICIANS[:n_labels]),
    }
    return _changed(record, changes)


def write_jsonl(path: Path, lines: Iterable[object]) -> Path:
    """Write a JSON value a line, or bytes as they are, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(_line(line) + b"\n" for line in lines))
    return path


def write_examples(folder: Path, n: int = 3) -> Path:
    """Write `healthbench.jsonl` with n core examples beside an MIT licence, as a source of its own; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "LICENSE").write_text("MIT License\n\nCopyright (c) 2026 Test Authors\n", encoding="utf-8")
    return write_jsonl(folder / "healthbench.jsonl", map(make_example, range(n)))


def _line(line: object) -> bytes:
    return line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode()


def _changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {name: new for name, new in {**value, **changes}.items() if new is not ...}
