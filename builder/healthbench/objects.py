"""The example objects of a mirror, whatever shape their line had, and the digests that are taken over them.

In: the parsed object of a line that breaks no rule. Out: one object a line with the columns of its shape's row, points
in the form in which they print. Not done here: the rules (`example_rules`), Arrow (`tables`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from bedside_bench import canonical_json, content_sha256, sha256_json
from builder.errors import BadInput
from builder.healthbench.names import CONFIGS, META, PROFESSIONAL, SPLIT, SUITE

Example: TypeAlias = dict[str, Any]
"""An example object: the columns of its mirror's row, in their order."""

CORE_SHAPE: Final = "core"
PROFESSIONAL_SHAPE: Final = "professional"
META_SHAPE: Final = "meta"
SHAPES: Final = (CORE_SHAPE, PROFESSIONAL_SHAPE, META_SHAPE)

LARGEST: Final = 1 << 53
"""Largest points in size: beyond it a column of float64 does not give every integer back."""

TAG_FIELDS: Final = ("use_case", "type", "difficulty", "specialty")
"""The members of a Professional example that become its example tags, in this order."""


def shape_of_config(config: str) -> str:
    """Return the shape that the lines of a config's file have."""
    return {PROFESSIONAL: PROFESSIONAL_SHAPE, META: META_SHAPE}.get(config, CORE_SHAPE)


def configs_of_shape(shape: str) -> tuple[str, ...]:
    """Return the configs whose files have this shape."""
    return tuple(config for config in CONFIGS if shape_of_config(config) == shape)


def printed_points(points: float | None) -> int | float | None:
    """Return points as a number that prints without ".0" where it is integral: a grader's prompt shows it so.

    Raises:
        BadInput: they are not finite.
    """
    if points is None or type(points) is int:
        return points
    if not math.isfinite(points):
        raise BadInput(f"points: expected a finite number, found {points}")
    return int(points) if float(points).is_integer() else points


def make_object(record: Mapping[str, Any], shape: str, *, case_id: str) -> Example:
    """Return the example object of a valid line.

    Args:
        case_id: its id: that of the line, or of a meta record the one that `meta_id` makes.
    """
    return _MAKERS[shape](record, case_id)


def meta_id(record: Mapping[str, Any]) -> str:
    """Return the id of a meta record, which has none of its own: 32 hex digits of what it is about."""
    named = {name: record[name] for name in ("prompt_id", "completion_id", "category", "rubric")}
    return sha256_json(named)[:32]


def canary_of(record: Mapping[str, Any]) -> str | None:
    """Return the canary string that a line carries under either of its names."""
    found: str | None = record.get("canary") or record.get("canary_string")
    return found


def turns_of(conversation: Any) -> Any:
    """Return the list of turns, which Professional wraps into an object."""
    return conversation.get("messages") if isinstance(conversation, dict) else conversation


def _core(record: Mapping[str, Any], case_id: str) -> Example:
    ideal = record.get("ideal_completions_data") or {}
    items = [(item["criterion"], item["points"], item["tags"]) for item in record["rubrics"]]
    return {
        "case_id": case_id,
        "prompt": _turns(record["prompt"]),
        "rubric_items": _items(case_id, items),
        "example_tags": list(record["example_tags"]),
        "ideal_completion": ideal.get("ideal_completion"),
        "ideal_completions_group": ideal.get("ideal_completions_group"),
        "ideal_completions_ref_completions": ideal.get("ideal_completions_ref_completions"),
        "canary": canary_of(record),
    }


def _professional(record: Mapping[str, Any], case_id: str) -> Example:
    items = [(item["criterion_text"], item["points"], item.get("tags") or []) for item in record["rubric_items"]]
    stated = {name: record.get(name) or None for name in TAG_FIELDS}
    return {
        "case_id": case_id,
        "prompt": _turns(turns_of(record["conversation"])),
        "rubric_items": _items(case_id, items),
        "example_tags": list(dict.fromkeys(value for value in stated.values() if value)),
        "ideal_completion": None,
        "ideal_completions_group": None,
        "ideal_completions_ref_completions": None,
        "canary": canary_of(record),
        **stated,
        "physician_response": record.get("physician_response") or None,
    }


def _meta(record: Mapping[str, Any], case_id: str) -> Example:
    category = record["category"]
    return {
        "case_id": case_id,
        "prompt": _turns(record["prompt"]),
        "rubric_items": _items(case_id, [(record["rubric"], None, [category])]),
        "example_tags": [category],
        "ideal_completion": None,
        "ideal_completions_group": None,
        "ideal_completions_ref_completions": None,
        "canary": canary_of(record),
        "prompt_id": record["prompt_id"],
        "completion": record["completion"],
        "completion_id": record["completion_id"],
        "category": category,
        "binary_labels": list(record["binary_labels"]),
        "anonymized_physician_ids": [str(physician) for physician in record["anonymized_physician_ids"]],
    }


_MAKERS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Example]]] = {
    CORE_SHAPE: _core,
    PROFESSIONAL_SHAPE: _professional,
    META_SHAPE: _meta,
}


def _turns(turns: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns]


def _items(case_id: str, items: Iterable[tuple[str, float | None, list[str]]]) -> list[dict[str, Any]]:
    return [
        {"item_id": f"{case_id}_{i}", "criterion": criterion, "points": printed_points(points), "tags": list(tags)}
        for i, (criterion, points, tags) in enumerate(items)
    ]


def example_content_sha256(example: Example, config: str) -> str:
    """Return the digest of what an example asks and what is asked of its answer (formats.md 2)."""
    return sha256_json(
        {
            "case_id": example["case_id"],
            "benchmark": config,
            "grading_method": SUITE,
            "prompt": example["prompt"],
            "split": SPLIT,
            "items": sorted([item["criterion"], item["points"]] for item in example["rubric_items"]),
        }
    )


class ExampleDigest:
    """Fold examples, in the order of their file, into `dataset_sha256` and `content_sha256`."""

    def __init__(self, config: str, *, with_content: bool = True) -> None:
        """Begin with no example; without the content digest it takes half the time."""
        self._config = config
        self._whole = hashlib.sha256(b"[")
        self._contents: list[str] | None = [] if with_content else None
        self.n_examples = 0
        self.n_items = 0

    def update(self, examples: Iterable[Example]) -> None:
        """Fold in the next examples.

        Raises:
            BadInput: a number in one is not finite.
        """
        for example in examples:
            try:
                data = canonical_json(example)
            except ValueError as error:
                raise BadInput(f"{example['case_id']}: expected finite numbers, found {error}") from None
            self._whole.update(b"," + data if self.n_examples else data)
            self.n_examples += 1
            self.n_items += len(example["rubric_items"])
            if self._contents is not None:
                self._contents.append(example_content_sha256(example, self._config))

    def hexdigest(self) -> str:
        """Return `dataset_sha256` of the examples so far: the SHA-256 of their list as canonical JSON."""
        done = self._whole.copy()
        done.update(b"]")
        return done.hexdigest()

    def content(self) -> str:
        """Return `content_sha256` of the examples so far; that of none where it was not asked for."""
        return content_sha256(self._contents or ())

    def panels(self) -> list[dict[str, Any]]:
        """Return what `digests.json` says of the one config."""
        return [{"id": self._config, "n": self.n_examples, "sha256": self.hexdigest()}]
