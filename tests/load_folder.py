"""Load every config of a dataset folder as its users do, in any environment: `python load_folder.py FOLDER CACHE OUT`.

Writes one JSON object: the version of `datasets`, config names, the rows of every config, loaded and streamed, and
those without a config name. `load_folder` runs it in a process of its own, offline, with the Python of an environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "PYTHONWARNINGS": "ignore",
}


def load_folder(folder: Path, home: Path, *, python: str = sys.executable) -> dict[str, Any]:
    """Return what `datasets` loads of a folder in the environment of a Python, with a fresh cache below `home`."""
    home.mkdir(parents=True, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | OFFLINE | {"HF_HOME": str(home)}
    command = [python, __file__, str(folder), str(home / "cache"), str(home / "out.json")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads((home / "out.json").read_text(encoding="utf-8"))
    return found


def main(folder: str, cache: str) -> dict[str, Any]:
    """Return all that is loaded."""
    import datasets

    datasets.disable_progress_bars()

    def rows(*config: str, **options: Any) -> dict[str, list[dict[str, Any]]]:
        splits = datasets.load_dataset(folder, *config, **options)
        return {name: list(split) for name, split in splits.items()}

    names = datasets.get_dataset_config_names(folder)
    return {
        "datasets": datasets.__version__,
        "names": names,
        "loaded": {name: rows(name, cache_dir=cache) for name in names},
        "streamed": {name: rows(name, streaming=True) for name in names},
        "unnamed": rows(cache_dir=cache),
    }


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(json.dumps(main(sys.argv[1], sys.argv[2])), encoding="utf-8")
