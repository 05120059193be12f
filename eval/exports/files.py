"""Files that an export makes: their place and bytes, and how they come to disk.

In: paths relative to wherever they go, a folder or a repository. Out: the files below a folder, each whole or absent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from builder.errors import BadInput


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file to be written or pushed; `path` is relative, with forward slashes."""

    path: str
    content: bytes


def write_below(out: Path, files: Iterable[ExportFile]) -> list[Path]:
    """Write files below a folder, in the order given, and return where they are; older ones are replaced.

    Raises:
        BadInput: `out` is a file.
    """
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: expected a folder or nothing, found a file; name another place")
    return [_write(out / file.path, file.content) for file in files]


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        new.write_bytes(content)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return path
