"""Load a mirror as its users do, with `datasets` and no network: `python -m tests.load_mirror FOLDER CACHE`.

Prints one JSON object: config names, every config's rows and features loaded and streamed, the rows without a config
name, and what `datasets` makes of Arrow schemas for a card.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from builder.dataset.tables import CASE_SCHEMA, RUBRIC_SCHEMA

MIXED_SCHEMA = pa.schema(
    [
        ("names", pa.list_(pa.string())),
        ("panels", pa.list_(pa.struct([("n", pa.int64()), ("ends", pa.list_(pa.float64()))]))),
        ("about", pa.struct([("ok", pa.bool_()), ("tags", pa.list_(pa.struct([("day", pa.date32())])))])),
        ("grid", pa.list_(pa.list_(pa.int32()))),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
SCHEMAS = (CASE_SCHEMA, RUBRIC_SCHEMA, MIXED_SCHEMA)


def rows(splits: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every split."""
    return {name: list(split) for name, split in splits.items()}


def main(folder: str, cache: str) -> dict[str, Any]:
    """Return all that is loaded."""
    names = datasets.get_dataset_config_names(folder)
    loaded = {name: datasets.load_dataset(folder, name, cache_dir=cache) for name in names}
    return {
        "names": names,
        "loaded": {name: rows(splits) for name, splits in loaded.items()},
        "features": {name: splits["train"].features._to_yaml_list() for name, splits in loaded.items()},
        "streamed": {
            name: rows(datasets.load_dataset(folder, name, streaming=True)) for name in ("all", "rubric_items")
        },
        "unnamed": rows(datasets.load_dataset(folder, cache_dir=cache)),
        "one split": list(datasets.load_dataset(folder, "drug_safety", split="train", cache_dir=cache)),
        "yaml": [datasets.Features.from_arrow_schema(schema)._to_yaml_list() for schema in SCHEMAS],
    }


if __name__ == "__main__":
    datasets.disable_progress_bars()
    Path(sys.argv[3]).write_text(json.dumps(main(sys.argv[1], sys.argv[2])), encoding="utf-8")
