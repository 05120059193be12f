"""Where a dataset is: a folder of this machine, or a dataset repository of the Hub at one revision.

In: what a person typed. Out: a path or a `HubPlace`. An existing path wins; `hf://datasets/...` always means the Hub.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from builder.errors import BadInput

HUB_ADDRESS: Final = "hf://datasets/"
REPO_ID: Final = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_PLACE: Final = re.compile(rf"(?P<repo>{REPO_ID.pattern})(?:@(?P<revision>[\w./-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubPlace:
    """A dataset repository (`namespace/name`) and a branch, tag or commit of it; None means its main branch.

    `explicit` tells that it was given as an address of the Hub, and so is no path.
    """

    repo: str
    revision: str | None = None
    explicit: bool = field(default=False, compare=False)

    @property
    def words(self) -> str:
        """What an error calls it: a name that could be a path too may be a slip in one."""
        return str(self) if self.explicit else f"{self} (no folder here has that name)"

    def __str__(self) -> str:
        """Return `namespace/name@revision`, as it is typed."""
        return f"{self.repo}@{self.revision}" if self.revision else self.repo

    @property
    def address(self) -> str:
        """The same as an address that means the Hub whatever folders there are."""
        return f"{HUB_ADDRESS}{self}"


def find_place(where: str | Path) -> Path | HubPlace:
    """Return the folder or the Hub repository that a person means.

    Raises:
        BadInput: it is neither an existing path nor the id of a repository.
    """
    text = str(where)
    if text.startswith("hf://"):
        return _on_the_hub(text)
    if os.path.lexists(where):  # as it is typed: Path("") would be the current folder
        return Path(where)
    if found := _PLACE.fullmatch(text):
        return HubPlace(found["repo"], found["revision"])
    raise BadInput(f"{where}: expected a folder or a Hub dataset (namespace/name[@revision]), found none")


def _on_the_hub(text: str) -> HubPlace:
    found = _PLACE.fullmatch(text.removeprefix(HUB_ADDRESS).replace("%2F", "/"))
    if not text.startswith(HUB_ADDRESS) or found is None:
        raise BadInput(f"{text}: expected {HUB_ADDRESS}namespace/name[@revision]")
    return HubPlace(found["repo"], found["revision"], explicit=True)


@dataclass(frozen=True, slots=True)
class FoundMirror:
    """A mirror's folder on this machine; of one from the Hub also its repository and commit."""

    folder: Path
    repo: str | None = None
    revision: str | None = None


def find_mirror(where: str | Path) -> FoundMirror:
    """Return the mirror that a person means; one on the Hub is brought down into the client's cache.

    Raises:
        BadInput: there is none, or the Hub gives no answer.
    """
    place = find_place(where)
    if isinstance(place, Path):
        return FoundMirror(place)
    from builder.hub.client import make_api
    from builder.hub.snapshot import fetch_snapshot

    snapshot = fetch_snapshot(make_api(), place)
    if (snapshot.path / "runs").is_dir() and not (snapshot.path / "digests.json").exists():
        raise BadInput(f"{place}: expected a mirror, found a results dataset; name the mirror's repository")
    return FoundMirror(snapshot.path, place.repo, snapshot.commit)


def local_folder(where: str | None) -> Path | None:
    """Return the folder of the mirror that a person means; None where none was named. Errors as for `find_mirror`."""
    return None if where is None else find_mirror(where).folder


def check_repo_id(repo: str) -> str:
    """Return a repository's id.

    Raises:
        BadInput: it is not `namespace/name`.
    """
    if not REPO_ID.fullmatch(repo):
        raise BadInput(
            f"{repo}: expected a repository such as your-org/bedside-bench, found an address or another form"
        )
    return repo
