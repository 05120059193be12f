"""Everything that must hold before a commit: `python -m tests` lints, checks types and runs the tests.

Arguments go to pytest: `python -m tests -k journal`, `python -m tests -m slow`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECKS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
)


def main() -> int:
    """Run the checks, then pytest on two processes; return the first exit code that is not 0."""
    for check in CHECKS:
        print(f"== {' '.join(check)}", flush=True)  # noqa: T201
        if code := subprocess.run([sys.executable, "-m", *check], cwd=ROOT, check=False).returncode:
            return code
    command = [sys.executable, "-m", "pytest", "-n", "2", *sys.argv[1:]]
    print(f"== pytest {' '.join(command[3:])}", flush=True)  # noqa: T201
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
