"""Verify a repository from the Hub's own digests: every file that `digests.json` lists, and no data downloaded.

In: a repository at one commit. Out: findings. Large files are compared by the SHA-256 that the Hub states for them;
what lies in git itself (cards, licences, small files) is read and hashed. Rows are not read: that takes the files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builder.dataset.digests import DIGESTS_NAME, HUB_FILES, Finding, Verified, digests_json, parse_digests
from builder.errors import BadInput
from builder.hub.remote import Head, Reader, RemoteFile


@dataclass(frozen=True, slots=True)
class FolderOnHub:
    """A dataset folder in a repository: its `digests.json` as read, and what is wrong with its files."""

    digests: Mapping[str, Any]
    folder_digest: str | None
    findings: tuple[Finding, ...]


def check_folder(head: Head, reader: Reader, *, at: str = "", expect: str | None = None) -> FolderOnHub:
    """Compare the files below a path (`runs/<run_id>/`; empty for the whole repository) with its `digests.json`.

    Args:
        expect: the folder digest that someone else vouches for (64 hex digits).
    """
    name = f"{at}{DIGESTS_NAME}"
    if name not in head.files:
        return FolderOnHub({}, None, (Finding(name, "missing", "the digests of this folder", "none"),))
    content = reader.read(head, [name])[name]
    digest = hashlib.sha256(content).hexdigest()
    try:
        digests = parse_digests(content, where=name)
    except BadInput as error:
        return FolderOnHub({}, digest, (Finding(name, "not readable", "the digests of this folder", str(error)),))
    findings = list(_check_files(head, reader, at=at, listed=digests["files"]))
    if expect is not None and digest != expect.strip().lower():
        findings.insert(0, Finding(name, "folder digest", expect.strip().lower(), digest))
    if content != digests_json(digests):
        findings.insert(0, Finding(name, "layout", "sorted keys, indent 1, one newline at the end", "another one"))
    return FolderOnHub(digests, digest, tuple(findings))


def check_mirror(head: Head, reader: Reader, *, expect: str | None = None) -> Verified:
    """Return every way in which the files of a mirror's repository are not those that its `digests.json` lists."""
    found = check_folder(head, reader, expect=expect)
    findings, digests = list(found.findings), found.digests
    if digests and digests.get("kind") != "mirror":
        findings.append(Finding(DIGESTS_NAME, "kind", "'mirror'", repr(digests.get("kind"))))
    return Verified(
        findings=tuple(findings),
        folder_digest=found.folder_digest,
        kind="mirror",
        n_cases=digests.get("n_cases"),
        n_items=digests.get("n_items"),
        dataset_sha256=digests.get("dataset_sha256"),
        facts={"content_sha256": str(digests.get("content_sha256"))},
    )


def _check_files(head: Head, reader: Reader, *, at: str, listed: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    # What lies in git itself has no SHA-256 on the Hub: it is small, and read.
    small = [f"{at}{name}" for name in listed if (file := head.files.get(f"{at}{name}")) and file.sha256 is None]
    contents = reader.read(head, small)
    for name, about in listed.items():
        path = f"{at}{name}"
        yield from _check_file(path, about, remote=head.files.get(path), content=contents.get(path))
    allowed = {DIGESTS_NAME, *listed, *(() if at else HUB_FILES)}
    for path in sorted(head.files):
        if path.startswith(at) and path.removeprefix(at) not in allowed:
            yield Finding(path, "stray file", f"only what {DIGESTS_NAME} lists", "a file that it does not list")


def _check_file(
    path: str, about: Mapping[str, Any], *, remote: RemoteFile | None, content: bytes | None
) -> Iterator[Finding]:
    if remote is None:
        yield Finding(path, "missing", "a file", "none")
        return
    if remote.size != about["bytes"]:
        yield Finding(path, "size", f"{about['bytes']} bytes", f"{remote.size} bytes")
        return
    found = remote.sha256 if content is None else hashlib.sha256(content).hexdigest()
    if f"sha256:{found}" != about["digest"]:
        yield Finding(path, "digest", about["digest"], f"sha256:{found}")
