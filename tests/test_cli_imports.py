"""What the command line loads: little for its help, and never `datasets` to check, score or verify."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from builder.mirror import build_mirror
from builder.tree.sources import open_source
from eval.cases import read_cases
from tests.plans import make_plan, run
from tests.trees import write_tree

ROOT = Path(__file__).parent.parent
HEAVY = {
    *("numpy", "pyarrow", "polars", "pandas", "openai", "huggingface_hub", "datasets", "aiohttp", "datasketch"),
    *("rapidfuzz", "scipy", "jinja2", "yaml", "tenacity"),
}
HEALTHBENCH_COMMANDS = ("meta", "winrate", "conformance")
JURY_COMMANDS = ("certify", "agree", "audit", "variance", "statements")
HUB_COMMANDS = ("publish", "runs", "fetch", "eval-results", "export")
# Each command in one process, so that modules add up; the last line of stdout says what was loaded.
CALLS = """
import json, sys
from eval.cli import app
codes = []
for arguments in json.loads(sys.argv[1]):
    try:
        app(arguments)
    except SystemExit as end:
        codes.append(end.code)
print()
print(json.dumps([codes, sorted(sys.modules)]))
"""


def _loaded(*commands: list[str]) -> tuple[list[int], set[str]]:
    """Return the exit code of each command, and the top-level modules of the process that ran them."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS, json.dumps(commands)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    codes, modules = json.loads(done.stdout.splitlines()[-1])
    return codes, {name.partition(".")[0] for name in modules}


def test_help_loads_nothing_heavy() -> None:
    """--help and --version, of the whole and of every command, come without any library that takes long to load."""
    names = [
        *("check", "build", "card", "run", "score", "results", "verify", "demo"),
        *HEALTHBENCH_COMMANDS,
        *JURY_COMMANDS,
        *HUB_COMMANDS,
    ]
    codes, modules = _loaded(["--help"], ["--version"], *([name, "--help"] for name in names))

    assert [0] * (len(names) + 2) == codes
    assert not HEAVY & modules


def test_wrong_usage_loads_nothing_heavy_and_exits_with_2(tmp_path: Path) -> None:
    """An unknown panel, a missing option or a wrong suffix is answered at once, with exit code 2."""
    mirror, output = str(tmp_path), str(tmp_path / "x.jsonl")
    codes, modules = _loaded(
        ["run", mirror, "--output", output],
        ["run", mirror, "--output", str(tmp_path / "x.json"), "--answer-model", "m"],
        ["run", mirror, "--output", output, "--answer-model", "m", "--panel", "mine"],
        ["run", mirror, "--output", output, "--answer-model", "m", "--id-style", "long"],
        ["score", output, "--dialect", "mine"],
    )

    assert [2] * 5 == codes
    assert not HEAVY & modules


def test_check_score_and_verify_do_without_datasets(tmp_path: Path) -> None:
    """A tree is checked, a run scored, a mirror verified: all without the library that caches what it read."""
    tree, mirror = write_tree(tmp_path / "tree", 1), tmp_path / "mirror"
    build_mirror(open_source(tree), mirror)
    run(make_plan(read_cases(mirror)), tmp_path / "x.jsonl")
    codes, modules = _loaded(
        ["check", str(tree)],
        ["score", str(tmp_path / "x.jsonl"), "--data", str(mirror)],
        ["results", str(tmp_path / "x.jsonl"), "--out", str(tmp_path / "results")],
        ["verify", str(mirror)],
        ["verify", str(tmp_path / "results")],
    )

    assert [0] * 5 == codes
    assert not {"datasets", "openai", "huggingface_hub"} & modules
