"""Read a Croissant file with `mlcroissant`, alone in a process: `python -m tests.read_croissant FILE OUT CONFIG...`.

Writes one JSON object: errors, warnings, and the rows of each record set asked for, without the ids of their fields.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import mlcroissant


def plain(value: Any) -> Any:
    """Return a streamed value as the Parquet file has it: text for bytes, plain numbers, names for field ids."""
    if isinstance(value, dict):
        return {name.rpartition("/")[2]: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if hasattr(value, "item") else value


def main(file: str, *record_sets: str) -> dict[str, Any]:
    """Return what is found; an exception of the library is an error under its message."""
    try:
        dataset = mlcroissant.Dataset(jsonld=file)
        issues = dataset.metadata.ctx.issues
        rows = {name: [plain(row) for row in dataset.records(name)] for name in record_sets}
    except Exception as error:
        return {"errors": [f"{error} {error.__cause__ or ''}"], "warnings": [], "rows": {}}
    return {"errors": sorted(issues.errors), "warnings": sorted(issues.warnings), "rows": rows}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main(sys.argv[1], *sys.argv[3:])), encoding="utf-8")
    os._exit(0)  # all is written; the libraries' threads may abort a process that ends while they still start
