"""A HealthBench mirror against the JSONL file that it was built from.

In: a mirror that holds by itself, and a file. Out: findings where the file gives other examples than the mirror has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from builder.dataset.digests import DIGESTS_NAME, Finding, read_digests
from builder.healthbench.mirror import build_healthbench
from builder.healthbench.names import config_of
from builder.healthbench.source import open_examples

MOST_FINDINGS: Final = 20
"""Errors of a file that are named, of what may be thousands."""


def check_source_file(mirror: Path, file: Path) -> list[Finding]:
    """Return where a mirror is not what a file gives: the file is built anew and the digests compared.

    Config and licence are taken from the mirror's digests. What is wrong with the file is named too.

    Raises:
        BadInput: the file cannot be read.
        DigestMismatch: what was built does not read back as the file.
    """
    stated = read_digests(mirror)
    with TemporaryDirectory(prefix="bedside-bench-") as folder:
        built = build_like(stated, file, Path(folder) / "mirror")
        if isinstance(built, list):
            return built
        true = read_digests(built)
    return list(_differences(true, stated))


def build_like(digests: Mapping[str, Any], file: Path, out: Path) -> Path | list[Finding]:
    """Build a file as the digests of a mirror or a run tell; return the mirror, or the first errors of the file."""
    license_id = None if open_examples(file).license else (digests.get("source") or {}).get("license")
    built = build_healthbench(file, out, config=config_of(digests), license_id=license_id)
    if built.report.ok:
        return built.folder
    errors = [problem for problem in built.report.problems if problem.severity == "error"]
    return [Finding(one.file, one.field or one.rule, one.expected, one.found) for one in errors[:MOST_FINDINGS]]


def _differences(true: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield where two mirrors' digests name other data."""
    pairs = {name: (true[name], stated[name]) for name in ("dataset_sha256", "content_sha256", "n_cases", "n_items")}
    pairs |= {f"source.{name}": (true["source"][name], stated["source"][name]) for name in ("sha256", "license")}
    for what, (expected, found) in pairs.items():
        if expected != found:
            yield Finding(DIGESTS_NAME, what, f"{expected}, as in the source", str(found))
