"""Describe a mirror as an evaluation of the Hub: `eval.yaml`, with a task a panel and one over all.

In: a mirror's folder and the object of its `digests.json`. Out: the text of `eval.yaml`. The Hub takes only frameworks
that it knows: until `FRAMEWORK` is registered there, it refuses a push that holds this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from bedside_bench import ALL_PANELS, PUBLIC_SPLIT
from builder.cards.card import card_summary
from builder.dataset.folder import parquet_path
from builder.dataset.footers import CARD
from builder.errors import BadInput

EVAL_YAML_NAME: Final = "eval.yaml"
FRAMEWORK: Final = "bedside-bench"


def eval_yaml(folder: Path, digests: Mapping[str, Any]) -> bytes:
    """Return the bytes of a mirror's `eval.yaml`; its tasks are over the public split only.

    The Hub takes a task without `split` to be over `test`, so each names its own.

    Raises:
        BadInput: the mirror has no public cases, or its card cannot be read.
    """
    split = next((name for name, own in digests["splits"].items() if own == PUBLIC_SPLIT), None)
    if split is None:
        raise BadInput(f"{EVAL_YAML_NAME}: expected public cases to evaluate on, found held-out ones only")
    panels = [panel["id"] for panel in digests["panels"] if parquet_path(panel["id"], split) in digests["files"]]
    summary = card_summary((folder / CARD).read_bytes())
    whole = {
        "name": summary.title,
        "description": summary.description,
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": config, "config": config, "split": split} for config in (*panels, ALL_PANELS)],
    }
    text: str = yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=10_000)
    return text.encode()
