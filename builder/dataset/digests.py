"""`digests.json`: what every file of a dataset folder must be, and the digest that names the folder as a whole.

In: a folder. Out: its file digests, `digests.json` written or read strictly, and findings where the two disagree.
Used for mirrors and for runs; what the rows must be is not known here (`mirror`, `eval.results.folder`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bedside_bench import PUBLIC_SPLIT
from builder.errors import BadInput
from builder.tree.strict_json import parse

DIGESTS_NAME: Final = "digests.json"
DIGESTS_FORMAT: Final = "bedside-bench/digests/1"

# What the Hub, git and huggingface_hub put into a copy of a dataset folder; no config can reach any of it.
HUB_FILES: Final = frozenset({".gitattributes"})
HUB_FOLDERS: Final = (".git", ".cache/huggingface")

_FILE_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be: in which file, what, and the two values."""

    file: str
    what: str
    expected: str
    found: str

    def line(self) -> str:
        """Return the finding as one line of text."""
        return f"{self.file}: {self.what}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Verified:
    """What verifying a folder gave: no findings means that all holds. `facts` are further lines to print."""

    findings: tuple[Finding, ...]
    folder_digest: str | None
    kind: str | None
    n_cases: int | None = None
    n_items: int | None = None
    dataset_sha256: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def file_sha256(path: Path) -> str:
    """Return the digest of a file's bytes as `sha256:<hex>`."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def walk_files(folder: Path) -> Iterator[str]:
    """Yield the path of everything in a folder that is not a folder, `/`-separated, sorted; links are not followed."""
    found = []
    for where, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        found += [(Path(where) / name).relative_to(folder).as_posix() for name in names + links]
    yield from sorted(found)


def file_digests(folder: Path) -> dict[str, dict[str, Any]]:
    """Return `{path: {"digest", "bytes", "rows"}}` of every file but `digests.json`; rows are null outside Parquet."""
    return {
        name: {
            "digest": file_sha256(folder / name),
            "bytes": (folder / name).stat().st_size,
            "rows": pq.read_metadata(folder / name).num_rows if name.endswith(".parquet") else None,
        }
        for name in walk_files(folder)
        if name != DIGESTS_NAME
    }


def write_digests(folder: Path, digests: Mapping[str, Any]) -> str:
    """Write `digests.json` from its members, `format` and `files` added here; return the folder digest."""
    whole = {**digests, "format": DIGESTS_FORMAT, "files": file_digests(folder)}
    (folder / DIGESTS_NAME).write_bytes(digests_json(whole))
    return folder_digest(folder)


def digests_json(digests: Mapping[str, Any]) -> bytes:
    """Return the bytes of `digests.json`: sorted keys, indent 1, one newline at the end."""
    return (json.dumps(digests, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 hex of the bytes of a folder's `digests.json`."""
    return file_sha256(folder / DIGESTS_NAME).removeprefix("sha256:")


def read_digests(folder: Path) -> dict[str, Any]:
    """Return the object of a folder's `digests.json`.

    Raises:
        BadInput: there is none, or it is not one of ours.
    """
    path = folder / DIGESTS_NAME
    if not path.is_file():
        raise BadInput(f"{path}: expected the digests of a dataset folder, found none; make one: bedside-bench build")
    return parse_digests(path.read_bytes(), where=str(path))


def parse_digests(content: bytes, *, where: str) -> dict[str, Any]:
    """Return the object that the bytes of a `digests.json` hold.

    Args:
        where: what an error names.

    Raises:
        BadInput: it is not one of ours.
    """
    digests, faults = parse(content)
    if faults:
        raise BadInput(f"{where}: expected {faults[0].expected}, found {faults[0].found}")
    if not isinstance(digests, dict) or digests.get("format") != DIGESTS_FORMAT:
        found = digests.get("format") if isinstance(digests, dict) else type(digests).__name__
        raise BadInput(f"{where}: expected format {DIGESTS_FORMAT!r}, found {found!r}")
    if wrong := _wrong_files(digests.get("files")):
        raise BadInput(f"{where}: files: expected {{path: {{digest, bytes, rows}}}} inside the folder, found {wrong}")
    return digests


def _wrong_files(files: object) -> str | None:
    """Return what is wrong with the `files` member, or None."""
    if not isinstance(files, dict):
        return type(files).__name__
    for name, about in files.items():
        if not _is_inside(name):
            return f"the path {name!r}"
        if not isinstance(about, dict) or set(about) != {"digest", "bytes", "rows"}:
            return f"{name!r} with other members"
        rows_fit = about["rows"] is None or type(about["rows"]) is int
        if not (_FILE_DIGEST.fullmatch(str(about["digest"])) and type(about["bytes"]) is int and rows_fit):
            return f"{name!r} with a value of another form"
    return None


def _is_inside(name: str) -> bool:
    """Whether a path of `files` is relative, normal and stays in the folder."""
    path = PurePosixPath(name)
    normal = path.as_posix() == name and "\\" not in name and "\0" not in name
    return normal and not path.is_absolute() and ".." not in path.parts and name not in ("", ".", DIGESTS_NAME)


def split_order(splits: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (Parquet split, the cases' own split) in dataset order: the public one first, then the others by name."""
    return sorted(splits.items(), key=lambda pair: (pair[1] != PUBLIC_SPLIT, pair[1]))


def verify_files(folder: Path, *, expect: str | None = None) -> list[Finding]:
    """Compare a folder with its `digests.json`: every file listed is there and equal, and no other is.

    Args:
        expect: the folder digest that someone else vouches for (64 hex digits, upper case allowed).
    """
    try:
        digests = read_digests(folder)
    except BadInput as error:
        return [Finding(DIGESTS_NAME, "not readable", "the digests of this folder", str(error))]
    findings = []
    if expect is not None and folder_digest(folder) != expect.strip().lower():
        findings.append(Finding(DIGESTS_NAME, "folder digest", expect.strip().lower(), folder_digest(folder)))
    if (folder / DIGESTS_NAME).read_bytes() != digests_json(digests):
        findings.append(Finding(DIGESTS_NAME, "layout", "sorted keys, indent 1, one newline at the end", "another one"))
    for name, about in digests["files"].items():
        findings += _verify_file(folder / name, name, about)
    strays = (name for name in walk_files(folder) if name not in digests["files"] and name != DIGESTS_NAME)
    findings += [
        Finding(name, "stray file", "only what digests.json lists", "a file that it does not list")
        for name in strays
        if not _of_the_hub(name)
    ]
    return findings


def _of_the_hub(name: str) -> bool:
    return name in HUB_FILES or any(name.startswith(f"{folder}/") for folder in HUB_FOLDERS)


def _verify_file(path: Path, name: str, about: Mapping[str, Any]) -> list[Finding]:
    # A regular file, or a link to one (the Hub's cache is made of links): what it holds decides.
    if not path.exists() or not stat.S_ISREG(path.stat().st_mode):
        return [Finding(name, "missing", "a file", "something else" if path.exists() else "none")]
    if (size := path.stat().st_size) != about["bytes"]:
        return [Finding(name, "size", f"{about['bytes']} bytes", f"{size} bytes")]
    if (found := file_sha256(path)) != about["digest"]:
        return [Finding(name, "digest", about["digest"], found)]
    if name.endswith(".parquet"):
        return _verify_rows(path, name, about["rows"])
    return []


def _verify_rows(path: Path, name: str, rows: int | None) -> list[Finding]:
    try:
        found = pq.read_metadata(path).num_rows
    except (pa.ArrowException, OSError) as error:
        return [Finding(name, "Parquet footer", "a readable one", str(error).splitlines()[0])]
    return [] if found == rows else [Finding(name, "rows", str(rows), str(found))]
