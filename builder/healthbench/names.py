"""The names of HealthBench's data: its suite, the configs of its mirrors, and the one split they have."""

from __future__ import annotations

from typing import Final

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
