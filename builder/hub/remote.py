"""What is on the Hub: the files of a repository at one commit, by their digests, and the bytes of the small ones.

In: a repository and a revision. Out: a `Head`; bytes read through the client's cache and checked against the digests
that the Hub states. Nothing is changed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from huggingface_hub import HfApi, constants, errors
from huggingface_hub.hf_api import RepoFile

from builder.errors import BadInput
from builder.hub.client import TIMEOUT_S, Busy, hub_errors

DATASET: Final = "dataset"
AT_ONCE: Final = 8
"""Small files fetched at the same time."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the Hub: its size, git blob id, and SHA-256 where it lies in large-file storage (else None)."""

    size: int
    blob_id: str
    sha256: str | None

    def holds(self, content: bytes) -> bool:
        """Whether these bytes are its content."""
        if self.sha256 is not None:
            return self.sha256 == hashlib.sha256(content).hexdigest()
        return self.blob_id == git_blob_id(content)


@dataclass(frozen=True, slots=True)
class Head:
    """A repository at one commit: who sees it, and its files by path."""

    repo: str
    repo_type: str
    commit: str
    private: bool
    files: Mapping[str, RemoteFile]

    def below(self, folder: str) -> list[str]:
        """Return the paths in a folder, sorted."""
        return sorted(path for path in self.files if path.startswith(f"{folder}/"))


def git_blob_id(content: bytes) -> str:
    """Return the id that git gives a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def read_head(
    api: HfApi, repo: str, *, revision: str | None = None, repo_type: str = DATASET, what: str | None = None
) -> Head:
    """Return what a repository holds at a revision (its main branch without one), resolved to a commit first.

    Args:
        what: what an error calls it; its id and revision without.

    Raises:
        BadInput: there is no such repository or revision, or the token may not see it.
        Busy: the Hub gave no answer.
    """
    with hub_errors(what or (f"{repo}@{revision}" if revision else repo)):
        try:
            info = api.repo_info(repo, revision=revision, repo_type=repo_type, timeout=TIMEOUT_S)
        except errors.RevisionNotFoundError as error:
            if revision is not None:
                raise
            # Somebody is just making it: its first commit is a moment away.
            raise Busy("the repository has no commit yet") from error
        if info.sha is None:
            raise BadInput(f"{repo}: the Hub names no commit for it; give a revision")
        entries = api.list_repo_tree(repo, revision=info.sha, repo_type=repo_type, recursive=True)
        files = {
            entry.path: RemoteFile(entry.size, entry.blob_id, entry.lfs.sha256 if entry.lfs else None)
            for entry in entries
            if isinstance(entry, RepoFile)
        }
    return Head(repo, repo_type, info.sha, bool(info.private), files)


@dataclass(frozen=True, slots=True)
class Reader:
    """Read small files of the Hub; what was read once is not asked for again, at whatever commit it stands."""

    api: HfApi
    cache: Path | None = None
    _known: dict[str, bytes] = field(default_factory=dict)

    def read(self, head: Head, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the content of files by path.

        Raises:
            BadInput: a file is not there.
            Busy: the Hub gave no answer, or not the bytes that it says it has.
        """
        wanted = list(paths)
        for path in wanted:
            if path not in head.files:
                raise BadInput(f"{head.repo}: expected the file {path}, found none")
        missing = [path for path in wanted if head.files[path].blob_id not in self._known]
        with ThreadPoolExecutor(AT_ONCE) as executor:
            for path, content in zip(missing, executor.map(lambda path: self._fetch(head, path), missing), strict=True):
                self._known[head.files[path].blob_id] = content
        return {path: self._known[head.files[path].blob_id] for path in wanted}

    def _fetch(self, head: Head, path: str) -> bytes:
        if (content := self._held(head, path)) is not None:
            return content
        for again in (False, True):  # what the cache holds may be broken itself: then only a new download helps
            with hub_errors(f"{head.repo}: {path}"):
                local = self.api.hf_hub_download(
                    head.repo,
                    path,
                    revision=head.commit,
                    repo_type=head.repo_type,
                    cache_dir=self.cache,
                    force_download=again,
                )
            content = Path(local).read_bytes()
            if head.files[path].holds(content):
                return content
        raise Busy(f"{path} came with other bytes than the Hub says it has")

    def _held(self, head: Head, path: str) -> bytes | None:
        """Return a content that the client's cache has from some commit: asking for it at this one takes a request."""
        remote = head.files[path]
        folder = self.cache or Path(constants.HF_HUB_CACHE)
        name = f"{head.repo_type}s--{head.repo.replace('/', '--')}"  # as the client names it
        held = folder / name / "blobs" / (remote.sha256 or remote.blob_id)
        try:
            content = held.read_bytes()
        except OSError:
            return None
        return content if remote.holds(content) else None
