"""Everything that must hold before a commit: `python -m tests` lints, checks types and runs the tests.

Arguments go to pytest: `python -m tests -k journal`, `python -m tests -m slow`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROCESSES = "3"
"""One more than the two cores that the time in the README is of: many tests wait for a server or a lock."""


def run(*words: str) -> int:
    """Say and run a tool, and return its exit code."""
    print(f"== {' '.join(words)}", flush=True)  # noqa: T201
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=False).returncode


def main() -> int:
    """Run the linters, then pytest with the type checker beside it; return the first exit code that is not 0."""
    if code := run("ruff", "check", ".") or run("ruff", "format", "--check", "."):
        return code
    types = subprocess.Popen([sys.executable, "-m", "mypy"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    code = run("pytest", "-n", PROCESSES, *sys.argv[1:])
    said, _ = types.communicate()
    print(f"== mypy\n{said}", end="", flush=True)  # noqa: T201
    return code or types.returncode


if __name__ == "__main__":
    sys.exit(main())
