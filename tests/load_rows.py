"""Load cases in whatever environment runs this file: a call a line in, what came a line out, both JSON.

`{"how": "class", "config": "all", "base_path": "data"}` -> `{"rows": {split: [row, ...]}, "cache_dir": ..., ...}`.
Ways: `class` and `stream` use the builder class, `script` and `script-stream` the loading script of datasets 3.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import datasets


def load(how: str, config: str, base_path: str, **options: Any) -> dict[str, Any]:
    """Return the rows of every split and, of the class, where it reads and caches."""
    if how.startswith("script"):
        options |= {"trust_remote_code": True, "streaming": how == "script-stream"}
        splits = datasets.load_dataset(base_path, config, **options)
        return {"rows": {split: list(rows) for split, rows in splits.items()}}
    from bedside_bench import BedsideBench

    builder = BedsideBench(config, base_path=base_path, **options)
    if how == "stream":
        splits = builder.as_streaming_dataset()
    else:
        builder.download_and_prepare()
        splits = builder.as_dataset()
    rows = {split: list(rows) for split, rows in splits.items()}
    return {"rows": rows, "cache_dir": builder.cache_dir, "base_path": builder.base_path}


def answer(line: str) -> dict[str, Any]:
    """Return what a call gives, or its traceback."""
    try:
        return load(**json.loads(line))
    except Exception:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    datasets.disable_progress_bars()
    for call in sys.stdin:
        sys.stdout.write(json.dumps(answer(call)) + "\n")
        sys.stdout.flush()
