"""The settings that numbers are computed with where nobody says otherwise: the dialect and the bootstrap's."""

from __future__ import annotations

from typing import Final

SPEC: Final = "spec"
UPSTREAM: Final = "upstream"
UPSTREAM_VETO: Final = "upstream-veto"
DIALECTS: Final = (SPEC, UPSTREAM, UPSTREAM_VETO)

SAMPLES: Final = 10_000
HEALTHBENCH_SAMPLES: Final = 1_000
SEED: Final = 42
ALPHA: Final = 0.05
