"""Load dataset repositories as their users do, in any environment: `python load_hub.py CALLS OUT`.

CALLS is a JSON file with a list of [repository, revision]; OUT gets for each the config names and, of every config, the
rows of every split, loaded and streamed, and those without a config name. `load_hub` runs it in a process
of its own, with the Python of an environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.local_hub import LocalHub

PLACES = ("PYTHONPATH", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


def load_hub(
    hub: LocalHub, calls: Sequence[tuple[str, str | None]], home: Path, *, python: str = sys.executable
) -> list[dict[str, Any]]:
    """Return what `datasets` loads of (repository, revision) pairs, with a fresh cache at `home`.

    Raises:
        RuntimeError: with the traceback there.
    """
    home.mkdir(parents=True, exist_ok=True)
    (home / "calls.json").write_text(json.dumps(calls))
    env = {name: value for name, value in os.environ.items() if name not in PLACES}
    env |= {"HF_HOME": str(home), "PYTHONWARNINGS": "ignore", **hub.env()}
    command = [python, __file__, str(home / "calls.json"), str(home / "out.json")]
    done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: list[dict[str, Any]] = json.loads((home / "out.json").read_text(encoding="utf-8"))
    return found


def load(repo: str, revision: str | None) -> dict[str, Any]:
    """Return all that is loaded of a repository."""
    import datasets

    def rows(*config: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
        splits = datasets.load_dataset(repo, *config, revision=revision, **options)
        return {name: list(split) for name, split in splits.items()}

    names = datasets.get_dataset_config_names(repo, revision=revision)
    return {
        "datasets": datasets.__version__,
        "names": names,
        "loaded": {name: rows(name) for name in names},
        "streamed": {name: rows(name, streaming=True) for name in names},
        "unnamed": rows(),
    }


if __name__ == "__main__":
    import datasets

    datasets.disable_progress_bars()
    datasets.config.USE_PARQUET_EXPORT = False  # else it asks a viewer, which a local Hub has none of
    loaded = [load(*call) for call in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))]
    Path(sys.argv[2]).write_text(json.dumps(loaded), encoding="utf-8")
