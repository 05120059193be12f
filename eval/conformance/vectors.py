"""The conformance vectors: what goes into a scorer, what must come out, and why; JSON files beside this module.

In: a suite, or nothing for all. Out: vectors in a fixed order. Not done here: asking a scorer (`asking`), comparing
its answer (`places`). The files are plain JSON so that a scorer in any language can be held against them;
`vectors/schema.json` says what they hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

FORMAT: Final = "bedside-bench/conformance/1"
BEDSIDE: Final = "bedside-bench"
HEALTHBENCH: Final = "healthbench"
SUITES: Final = (BEDSIDE, HEALTHBENCH)
SCHEMA: Final = "schema.json"

ANY_STREAM: Final = 0.01
"""From this tolerance on, a vector's interval or deviation holds for any random stream."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One question to a scorer. `whole` is the JSON object as it stands in the file, which is what a scorer is given.

    `tolerance` is the largest absolute difference of a number; `reason` is the hand calculation in short.
    """

    id: str
    suite: str
    subject: str
    variant: str
    reason: str
    input: Mapping[str, Any]
    expected: Mapping[str, Any]
    tolerance: float
    whole: Mapping[str, Any]

    @property
    def any_stream(self) -> bool:
        """Whether the expected numbers hold for any random stream, within the tolerance."""
        return self.tolerance >= ANY_STREAM


@cache
def load_vectors(suite: str | None = None) -> tuple[Vector, ...]:
    """Return all vectors, or those of a suite: files by name, each in its own order."""
    folder = files("eval.conformance") / "vectors"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json") and entry.name != SCHEMA)
    wholes = [whole for name in names for whole in json.loads((folder / name).read_bytes())["vectors"]]
    return tuple(_vector(whole) for whole in wholes if suite in (None, whole["suite"]))


def _vector(whole: dict[str, Any]) -> Vector:
    return Vector(**{name: whole[name] for name in Vector.__slots__ if name != "whole"}, whole=whole)
