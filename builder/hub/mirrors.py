"""A mirror on its way to the Hub and back: what its repository must hold, and what is gone from it.

In: a mirror's folder that was verified. Out: a `Publication`. The files are known by the digests that were verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builder.dataset.digests import DIGESTS_NAME, folder_digest, parse_digests, read_digests
from builder.errors import DigestMismatch
from builder.hub.guard import check_held_out, check_mirror_license, check_place, is_fresh
from builder.hub.publication import Changes, WantedFile
from builder.hub.remote import Head, Reader

A_MIRROR: Final = "a mirror"


@dataclass(frozen=True, slots=True)
class MirrorPublication:
    """A verified mirror; `message` is the commit's first line."""

    folder: Path
    digests: Mapping[str, Any]
    folder_digest: str
    message: str

    @property
    def digests_by_name(self) -> dict[str, str]:
        """What names the mirror, for people: 64 hex digits each."""
        return {"folder digest": self.folder_digest, "dataset_sha256": self.digests["dataset_sha256"]}

    @property
    def description(self) -> str:
        """The digests that name the mirror."""
        return f"folder digest sha256:{self.folder_digest}\ndataset_sha256 {self.digests['dataset_sha256']}"

    def check(self, private: bool) -> None:
        """Stop held-out cases, and a mirror without a licence, from becoming public."""
        what = str(self.folder)
        check_held_out(self.digests, private=private, what=what)
        check_mirror_license(self.digests["source"]["license"], private=private, what=what)

    def changes(self, head: Head, reader: Reader) -> Changes:
        """Return the whole mirror; what an older one there lists beside it is gone.

        Raises:
            BadInput: the repository holds something else.
        """
        old = _old_files(head, reader)
        files = {
            path: WantedFile(self.folder / path, about["digest"].removeprefix("sha256:"), about["bytes"])
            for path, about in self.digests["files"].items()
        }
        own = self.folder / DIGESTS_NAME
        files[DIGESTS_NAME] = WantedFile(own, self.folder_digest, own.stat().st_size)
        return Changes(files, tuple(sorted(old - files.keys())))


def mirror_publication(folder: Path, *, verified: str, message: str | None = None) -> MirrorPublication:
    """Return a mirror as something to publish.

    Args:
        verified: the folder digest that verifying it gave.

    Raises:
        DigestMismatch: the folder was changed since.
    """
    digests, digest = read_digests(folder), folder_digest(folder)
    if digest != verified:
        raise DigestMismatch(f"{folder}: was changed since it was verified; publish it again")
    title = message or f"Mirror of {digests['n_cases']:,} cases, folder digest {digest[:12]}"
    return MirrorPublication(folder, digests, digest, title)


def _old_files(head: Head, reader: Reader) -> set[str]:
    """Return the files of the mirror that a repository holds; none where it is fresh.

    Raises:
        BadInput: it holds something else.
    """
    if DIGESTS_NAME not in head.files:
        if not is_fresh(head, reader):
            check_place(head, expected=A_MIRROR, found="a results dataset" if head.below("runs") else None)
        return set()
    digests = parse_digests(reader.read(head, [DIGESTS_NAME])[DIGESTS_NAME], where=f"{head.repo}: {DIGESTS_NAME}")
    check_place(head, expected=A_MIRROR, found=A_MIRROR if digests.get("kind") == "mirror" else "something else")
    return set(digests["files"])
