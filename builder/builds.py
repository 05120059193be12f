"""What every build ends with, whatever its source: optional files, reading back, and what it gives to the command.

In: a staged mirror, written but for `digests.json` and what is made from it. Out: the same, proven. What a build walks
through before is `mirror`'s for source trees, `healthbench.mirror`'s for JSONL files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.cards.croissant import CROISSANT_NAME, croissant_json
from builder.cards.eval_yaml import EVAL_YAML_NAME, eval_yaml
from builder.dataset.digests import file_digests
from builder.dataset.folder import write_digests, write_files
from builder.dataset.rows import Progress
from builder.dataset.verify import verify_mirror
from builder.errors import DigestMismatch
from builder.rules.problems import Report


@dataclass(frozen=True, slots=True)
class Built:
    """What a build gave. `folder_digest` is None where the source has errors: then nothing was written."""

    report: Report
    folder: Path
    folder_digest: str | None = None
    dataset_sha256: str | None = None
    content_sha256: str | None = None
    n_cases: int = 0
    n_items: int = 0
    license: str | None = None


def seal(
    staged: Path,
    digests: Mapping[str, Any],
    *,
    croissant: bool = False,
    eval_task: bool = False,
    on_progress: Progress | None = None,
) -> str:
    """Write the optional files and `digests.json` into a staged mirror, read all of it back, and return its digest.

    Raises:
        DigestMismatch: what was written does not read back as the source.
    """
    write_files(staged, _extras(staged, digests, croissant=croissant, eval_task=eval_task))
    folder_digest = write_digests(staged, digests)
    _read_back(staged, folder_digest, on_progress)
    return folder_digest


def built_of(
    report: Report, folder: Path, digests: Mapping[str, Any], *, folder_digest: str, license_id: str | None
) -> Built:
    """Return what a build that came to its end gave."""
    return Built(
        report=report,
        folder=folder,
        folder_digest=folder_digest,
        dataset_sha256=digests["dataset_sha256"],
        content_sha256=digests["content_sha256"],
        n_cases=digests["n_cases"],
        n_items=digests["n_items"],
        license=license_id,
    )


def _extras(staged: Path, digests: Mapping[str, Any], *, croissant: bool, eval_task: bool) -> dict[str, bytes]:
    """Return the optional files asked for: both say what the card and the Parquet files in the folder say."""
    if not croissant and not eval_task:
        return {}
    whole = {**digests, "files": file_digests(staged)}
    makers = {CROISSANT_NAME: croissant_json} if croissant else {}
    makers |= {EVAL_YAML_NAME: eval_yaml} if eval_task else {}
    return {name: make(staged, whole) for name, make in makers.items()}


def _read_back(staged: Path, folder_digest: str, on_progress: Progress | None) -> None:
    """Stop unless the written rows give the source's digest: equal canonical JSON means equal values and types."""
    if verify_mirror(staged, expect=folder_digest, brief=True, on_progress=on_progress).ok:
        return
    found = verify_mirror(staged, expect=folder_digest).findings
    raise DigestMismatch(f"what was written does not read back as the source: {found[0].line()}")
