"""What is published: files as they shall be on the Hub, and what a `Publication` must be able to say.

In: verified files. Out: what of it a repository lacks. How it gets there is `publish`'s part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from builder.errors import DigestMismatch
from builder.hub.remote import DATASET, Head, Reader, RemoteFile


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file as it shall be on the Hub: bytes, or a local file whose SHA-256 (64 hex digits) was verified."""

    content: bytes | Path
    sha256: str
    size: int

    def is_at(self, remote: RemoteFile | None) -> bool:
        """Whether the Hub has it."""
        if remote is None or remote.size != self.size:
            return False
        if remote.sha256 is not None:
            return remote.sha256 == self.sha256
        return remote.holds(self.bytes())

    def source(self) -> bytes | Path:
        """Return what is to be sent.

        Raises:
            DigestMismatch: the local file was changed since it was verified.
        """
        if isinstance(self.content, bytes):
            return self.content
        with self.content.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != self.sha256:
            raise DigestMismatch(f"{self.content}: was changed since it was verified; verify and publish again")
        return self.content

    def bytes(self) -> bytes:
        """Return the content; errors as for `source`."""
        source = self.source()
        return source if isinstance(source, bytes) else source.read_bytes()


def wanted_bytes(content: bytes) -> WantedFile:
    """Return bytes as a file that is wanted."""
    return WantedFile(content, hashlib.sha256(content).hexdigest(), len(content))


@dataclass(frozen=True, slots=True)
class Changes:
    """What shall be so after the commit: files by path, and paths that are gone.

    `anew` are those of the files that are made anew for every state of the repository, such as a card of all its runs.
    """

    files: Mapping[str, WantedFile]
    gone: tuple[str, ...] = ()
    anew: frozenset[str] = frozenset()

    def missing(self, head: Head) -> Changes:
        """Return what of this is not so yet."""
        files = {path: file for path, file in self.files.items() if not file.is_at(head.files.get(path))}
        return Changes(files, tuple(path for path in self.gone if path in head.files))

    @property
    def own(self) -> Changes:
        """This without what is made anew: what tells whether another state of the repository holds it already."""
        return Changes({path: file for path, file in self.files.items() if path not in self.anew}, self.gone)

    @property
    def none(self) -> bool:
        """Whether there is nothing to change."""
        return not self.files and not self.gone


class Publication(Protocol):
    """Something to publish. It is asked anew for every state of the repository that is met."""

    @property
    def message(self) -> str:
        """The commit's first line."""

    @property
    def description(self) -> str:
        """What stands below it, and in the tag: the folder digest."""

    def check(self, private: bool) -> None:
        """Stop if a repository that everyone (or only some) can read must not hold this."""

    def changes(self, head: Head, reader: Reader) -> Changes:
        """Return what shall be so in this repository, or stop because it is no place for this."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to and how: `private` decides only for a repository that is made now; None lets an old one be as it is."""

    repo: str
    private: bool | None = None
    tag: str | None = None
    create_pr: bool = False
    repo_type: str = DATASET


@dataclass(frozen=True, slots=True)
class Published:
    """How it ended: the commit that holds everything, and what this command did for it.

    `sent` and `removed` count files: both 0 where all was there already. `url` is a pull request's if there is one.
    """

    repo: str
    commit: str
    sent: int
    removed: int
    created: bool
    private: bool
    url: str
    tag: str | None = None
    proposed: bool = False


@dataclass(frozen=True, slots=True)
class Preview:
    """What publishing would do: to a repository that is there (`private` or not), or to a new one (`head` is None)."""

    head: Head | None
    private: bool
    missing: Changes


@dataclass(frozen=True, slots=True)
class FilesPublication:
    """A few files by path, put into a repository as they are."""

    files: Mapping[str, bytes]
    message: str
    description: str = ""

    def check(self, private: bool) -> None:
        """Let anyone read them."""

    def changes(self, head: Head, reader: Reader) -> Changes:  # noqa: ARG002  # whatever else is there stays
        """Return the files."""
        return Changes({path: wanted_bytes(content) for path, content in self.files.items()})
