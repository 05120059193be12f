"""A dataset folder on disk: written beside its place, then put there in one step, so that a reader sees all or nothing.

In: tables and bytes by path. Out: a folder that holds exactly them. Used for mirrors (the whole folder is exchanged)
and for results (only `runs/<run_id>/` is moved in, then the card is replaced). `digests.json` itself is `digests`' job.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from builder.dataset.digests import (
    Finding,
    Verified,
    file_digests,
    file_sha256,
    folder_digest,
    read_digests,
    split_order,
    verify_files,
    write_digests,
)
from builder.errors import BadInput

__all__ = [
    "Finding",
    "Verified",
    "check_replaceable",
    "file_digests",
    "file_sha256",
    "folder_digest",
    "parquet_path",
    "read_digests",
    "recover",
    "replace_file",
    "split_order",
    "staging",
    "swap_in",
    "verify_files",
    "write_digests",
    "write_files",
    "write_parquet",
]

LOCK_WAIT_S: Final = 30.0
"""Seconds to wait for another command that writes the same folder before giving up."""

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def parquet_path(config: str, split: str) -> str:
    """Return the path of a config's one file of a split inside a mirror."""
    return f"data/{config}/{split}-00000-of-00001.parquet"


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a table as one row group: zstd, page index, content-defined chunks, nothing but Arrow's own schema key.

    Content-defined chunks keep a re-upload small after an edit; several row groups would undo that.
    """
    pq.write_table(
        table.replace_schema_metadata(None),
        path,
        compression="zstd",
        row_group_size=max(1, table.num_rows),
        write_page_index=True,
        use_content_defined_chunking=True,
    )


def write_files(folder: Path, files: Mapping[str, pa.Table | bytes]) -> None:
    """Write tables (as Parquet) and bytes to their `/`-separated paths in a folder, each on disk when this returns."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            write_parquet(content, path)
        _sync(path)


@contextmanager
def staging(target: Path, *, wait_s: float = LOCK_WAIT_S) -> Iterator[Path]:
    """Give an empty folder beside `target` to write into; whatever is in it at the end is removed.

    Holds the target's lock all the while, and first clears what killed commands left.

    Raises:
        BadInput: another command holds the lock.
    """
    target = _real(target)
    with _lock(target, wait_s=wait_s):
        made = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear(target)
        staged = target.parent / f"{_stem(target)}.staging-{_host()}-{os.getpid()}"
        staged.mkdir()
        try:
            yield staged
        finally:
            shutil.rmtree(staged, ignore_errors=True)
            for folder in made:
                with suppress(OSError):  # not empty: the target is in it
                    folder.rmdir()


def swap_in(staged: Path, target: Path) -> None:
    """Put a finished folder in the target's place in one step; the old one is removed after it.

    Raises:
        BadInput: the target is no folder of ours (see `check_replaceable`), or one of another kind.
    """
    target = _real(target)
    check_replaceable(target, kind=read_digests(staged)["kind"])
    _sync_folders(staged)
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or not any(target.iterdir()):
        staged.replace(target)  # on an empty folder this is one step too
    elif _exchange(staged, target):
        shutil.rmtree(staged, ignore_errors=True)
    else:
        target.rename(_aside(target))
        staged.rename(target)
        shutil.rmtree(_aside(target), ignore_errors=True)
    _sync(target.parent)


def replace_file(staged: Path, target: Path) -> None:
    """Put a finished file in the target's place in one step."""
    _sync(staged)
    staged.replace(target)
    _sync(target.parent)


def recover(target: Path) -> None:
    """Finish or undo what a killed command left beside a folder; without such a left-over nothing is touched.

    Every command that reads or writes the folder calls this first. A live command's staging folder is left alone.
    """
    target = _real(target)
    if not _leftovers(target):
        return
    with suppress(BadInput, OSError), _lock(target, wait_s=0):
        _clear(target)


def check_replaceable(target: Path, *, kind: str | None = None) -> None:
    """Stop unless a folder may be replaced: absent, empty, or written by us (and of this kind).

    Raises:
        BadInput: it is a file, the current folder, a folder without `digests.json`, or of another kind.
    """
    target = _real(target)
    if not target.exists():
        return
    if not target.is_dir():
        raise BadInput(f"{target}: expected a folder or nothing, found a file; name another place")
    if Path.cwd().is_relative_to(target):
        raise BadInput(f"{target}: expected a folder of its own, found the current one; name one inside or beside it")
    if not any(target.iterdir()):
        return
    try:
        found = read_digests(target).get("kind")
    except BadInput as error:
        raise BadInput(f"{error}; a folder that is not ours is never replaced: remove it or name another") from None
    if kind is not None and found != kind:
        raise BadInput(f"{target}: expected a folder of kind {kind!r} to replace, found {found!r}; name another place")


def _real(path: Path) -> Path:
    """Return the path with links followed, so that a link to a folder stays and the folder behind it is exchanged."""
    return Path(os.path.realpath(path))


def _stem(target: Path) -> str:
    """Return the hidden name that all left-overs of one target begin with; short enough for any file system."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
    return f".{target.name[:40]}.{digest}"


def _aside(target: Path) -> Path:
    return target.parent / f"{_stem(target)}.old"


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _leftovers(target: Path) -> list[Path]:
    """Return what killed (or live) commands have beside a target: staging folders, and the old folder set aside."""
    stem = _stem(target)
    try:
        with os.scandir(target.parent) as entries:
            names = sorted(entry.name for entry in entries if entry.name.startswith(stem))
    except OSError:
        return []
    return [target.parent / name for name in names]


def _clear(target: Path) -> None:
    """Put back an old folder whose replacement never arrived and remove what dead commands left; needs the lock."""
    aside = _aside(target)
    if aside.exists() and not target.exists():
        aside.rename(target)
    for path in _leftovers(target):
        if path == aside or _is_dead(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_dead(staged: Path) -> bool:
    """Whether the command that made a staging folder is over: known only on the same machine."""
    host, _, pid = staged.name.rpartition(".staging-")[2].partition("-")
    if host != _host() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return True  # the lock is ours, so the folder is of an earlier life of this process id
    if sys.platform == "win32":
        return False  # there, signal 0 would end the process
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _lock(target: Path, *, wait_s: float) -> Iterator[None]:
    """Hold the one lock of a target on this machine; the lock file stays, so it lies with the temporary files."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"bedside-bench-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.fsencode(target)).hexdigest()[:32]
    try:
        with FileLock(folder / f"{name}.lock", timeout=wait_s):
            yield
    except Timeout:
        raise BadInput(f"{target}: another command is writing this folder; try again when it has ended") from None


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step (Linux); return False where the system cannot."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def _sync_folders(folder: Path) -> None:
    for where, _, _ in os.walk(folder):
        _sync(Path(where))


def _sync(path: Path) -> None:
    """Have the system write a file or a folder's entries to disk; some file systems cannot for folders."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
