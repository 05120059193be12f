"""The names of HealthBench's data: its suite, the configs of its mirrors, and the one split they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bedside_bench import PUBLIC_SPLIT

SUITE: Final = "healthbench"
"""The suite of a run, and the grading method of its cases."""

CORE: Final = "healthbench"
HARD: Final = "healthbench_hard"
CONSENSUS: Final = "healthbench_consensus"
PROFESSIONAL: Final = "healthbench_professional"
META: Final = "healthbench_meta"
CONFIGS: Final = (CORE, HARD, CONSENSUS, PROFESSIONAL, META)
"""One mirror a published file, its config named after the file."""

SPLIT: Final = "test"

ITEMS: Final = "rubric_items"
"""The config of the long table, a row an item."""


def config_of(digests: Mapping[str, Any]) -> str | None:
    """Return the config that a mirror's `digests.json` says it holds, or None where it is no mirror of this suite."""
    panels = digests.get("panels")
    if isinstance(panels, list) and len(panels) == 1 and isinstance(panels[0], dict) and panels[0].get("id") in CONFIGS:
        return str(panels[0]["id"])
    return None


def public_split(digests: Mapping[str, Any]) -> str:
    """Return the cases' own split that anyone may see: HealthBench publishes all that it has, as `test`."""
    return SPLIT if config_of(digests) else PUBLIC_SPLIT
