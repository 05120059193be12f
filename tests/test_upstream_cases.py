"""The whole walk on real BedsideBench cases, whose licence keeps them out of this project: name their folder to run it.

BEDSIDE_UPSTREAM=<folder with registry.json and data/> python -m tests -k upstream_cases
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import dataset_sha256
from builder.tree.sources import open_source, walk

pytestmark = pytest.mark.skipif(
    "BEDSIDE_UPSTREAM" not in os.environ, reason="needs real cases: set BEDSIDE_UPSTREAM to their folder"
)
COMMAND = [sys.executable, "-c", "from eval.cli import main; main()"]


def _bedside(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([*COMMAND, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_real_cases_go_through_the_whole_walk(tmp_path: Path) -> None:
    """Check, build, load, run, score in every dialect, results and verify take the real cases unchanged."""
    source = Path(os.environ["BEDSIDE_UPSTREAM"])
    _bedside("check", source, cwd=tmp_path)
    _bedside("build", source, "--out", "mirror", cwd=tmp_path)
    run = ["run", "mirror", "--judge-model", "builtin:verbatim"]
    _bedside(*run, "--answer-model", "builtin:positive-items", "--output", "best.jsonl", cwd=tmp_path)
    for dialect in ("spec", "upstream", "upstream-veto"):
        _bedside("score", "best.jsonl", "--dialect", dialect, cwd=tmp_path)
    _bedside("results", "best.jsonl", "--out", "results", cwd=tmp_path)
    _bedside("verify", "mirror", cwd=tmp_path)
    _bedside("verify", "results", cwd=tmp_path)
    summary: dict[str, Any] = json.loads((tmp_path / "best.summary.json").read_text(encoding="utf-8"))
    cases = [file.case for file in walk(open_source(source)) if file.case]

    assert 1.0 == summary["overall_macro_mean"]
    assert (len(cases), 0) == (summary["n_graded"], summary["errors"])
    assert dataset_sha256(cases) == summary["dataset_sha256"]


def test_real_cases_load_by_panel(tmp_path: Path) -> None:
    """`load_dataset(mirror, panel)` gives each panel's real cases with the prompt and points that its files hold."""
    source = Path(os.environ["BEDSIDE_UPSTREAM"])
    _bedside("build", source, "--out", "mirror", cwd=tmp_path)
    code = (
        "import json; from datasets import load_dataset\n"
        "print(json.dumps([row for row in load_dataset('mirror', 'drug_safety', split='train', cache_dir='cache')]))"
    )
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=offline, capture_output=True, check=True)
    cases = [file.case for file in walk(open_source(source), panels=["drug_safety"]) if file.case]

    assert [{name: case[name] for name in case if name != "split"} for case in cases] == json.loads(done.stdout)
