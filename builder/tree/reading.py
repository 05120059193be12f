"""Read the files of a source tree without trusting what lies there.

In: a path and the boundary it must stay within. Out: the bytes, or the fault that keeps them from being had.
Nothing here follows a link out of the tree, waits for a pipe, or opens a device to read it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from builder.rules.problems import Fault, shown

MAX_FILE_BYTES: Final = 1 << 28
"""Files beyond 256 MiB are refused: no case is that long, and reading one could take all memory."""

_OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe for reading would wait for its writer
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Boundary:
    """The folder that links may not leave, and the blobs folder of the Hub cache if the tree is a snapshot in it."""

    root: str
    blobs: str | None

    @classmethod
    def around(cls, root: Path) -> Boundary:
        """Return the boundary of a tree."""
        real = root.resolve()
        for folder in (real, *real.parents):
            if folder.parent.name == "snapshots" and (folder.parent.parent / "blobs").is_dir():
                return cls(str(real), str(folder.parent.parent / "blobs"))
        return cls(str(real), None)

    def holds(self, real: str) -> bool:
        """Whether a real path (no links left in it) lies within."""
        return real == self.root or real.startswith(self.root + os.sep) or self._is_blob(real)

    def _is_blob(self, real: str) -> bool:
        return self.blobs is not None and Path(real).parent == Path(self.blobs)


def read_bytes(path: str, boundary: Boundary) -> bytes | Fault:
    """Return a regular file's bytes, or why they cannot be had."""
    try:
        if not hasattr(os, "O_NOFOLLOW") and Path(path).is_symlink():
            return _read_link(path, boundary)
        return _read_regular(path)
    except OSError as error:
        # os.path.islink, unlike Path.is_symlink, does not raise where the folder may not be searched
        return _read_link(path, boundary) if os.path.islink(path) else _os_fault(error)  # noqa: PTH114


def folder_fault(path: str, boundary: Boundary) -> Fault | None:
    """Return why a path cannot be listed as a folder of the tree, or None."""
    try:
        real = os.path.realpath(path, strict=True)
        if not boundary.holds(real):
            return _leaves(path)
        mode = Path(real).stat().st_mode
    except FileNotFoundError:
        return Fault("missing-folder", "none", "a folder")
    except OSError as error:
        return _os_fault(error)
    if not stat.S_ISDIR(mode):
        return Fault("not-a-folder", _kind(mode), "a folder")
    if not os.access(path, os.R_OK | os.X_OK):
        return Fault("unreadable", "permission denied", "a readable folder")
    return None


def _read_regular(path: str) -> bytes | Fault:
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Fault("not-a-file", _kind(status.st_mode), "a regular file")
        if status.st_size > MAX_FILE_BYTES:
            return Fault("file-too-large", f"{status.st_size:,} bytes", f"at most {MAX_FILE_BYTES:,} bytes")
        data = os.read(descriptor, status.st_size + 1)
        while len(data) < status.st_size and (more := os.read(descriptor, status.st_size - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)


def _read_link(path: str, boundary: Boundary) -> bytes | Fault:
    try:
        real = os.path.realpath(path, strict=True)
        return _read_regular(real) if boundary.holds(real) else _leaves(path)
    except OSError as error:
        return _os_fault(error)


def _leaves(path: str) -> Fault:
    link = Path(path)
    found = f"a link to {shown(str(link.readlink()))}" if link.is_symlink() else "a path behind a link out of the tree"
    return Fault("link-leaves-tree", found, "a path inside the source tree", hint="copy it into the tree")


def _os_fault(error: OSError) -> Fault:
    if isinstance(error, FileNotFoundError):
        return Fault("missing-file", "none", "a file")
    return Fault("unreadable", (error.strerror or type(error).__name__).lower(), "a readable file")


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "a regular file" if stat.S_ISREG(mode) else "something else")
