"""Load the configs of a results repository at several revisions as its users do.

`python load_from_hub.py REPO OUT REVISION...` writes one JSON object: revision -> config -> the run_ids in its rows,
sorted. The Hub's address and the token are those of the environment, which must be there before `datasets` is imported:
hence a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.local_hub import LocalHub

CONFIGS = ("runs", "scores", "decisions", "answers")
ROOT = Path(__file__).parents[1]

Found = dict[str, dict[str, list[str]]]


def load_from_hub(hub: LocalHub, repo: str, revisions: Iterable[str], *, token: str, home: Path) -> Found:
    """Return the run_ids that `datasets` loads at each revision, with a fresh cache below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    env = os.environ | hub.env(token) | {"HF_HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, __file__, repo, str(home / "out.json"), *revisions]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: Found = json.loads((home / "out.json").read_bytes())
    return found


def main(repo: str, revisions: Iterable[str]) -> Found:
    """Return all that is loaded."""
    import datasets

    datasets.config.USE_PARQUET_EXPORT = False  # else the viewer's address is looked up, which no local Hub has
    datasets.disable_progress_bars()

    def run_ids(config: str, revision: str) -> list[str]:
        rows = datasets.load_dataset(repo, config, split="train", revision=revision)
        return sorted(set(rows["run_id"]))

    return {revision: {config: run_ids(config, revision) for config in CONFIGS} for revision in revisions}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main(sys.argv[1], sys.argv[3:])), encoding="utf-8")
