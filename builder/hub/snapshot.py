"""Bring files of a dataset repository down into the client's cache, at one commit.

In: a place on the Hub. Out: a local folder and the commit it is of. Not done here: reading what was fetched (`sources`,
`verify`). The Hub's address, the token and the cache are the client's own settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from huggingface_hub import HfApi

from builder.errors import BadInput
from builder.hub.client import TIMEOUT_S, Busy, hub_errors, patiently
from builder.hub.place import HubPlace
from builder.hub.remote import DATASET, read_head

SOURCE_PATTERNS: Final = ("*.json", "*LICENSE*", "*LICENCE*", "*NOTICE*", "*DISCLAIMER*", "*CITATION.cff", "README.md")
_COMMIT: Final = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files of a dataset repository in the local cache, and the commit they are of."""

    path: Path
    commit: str


def fetch_snapshot(
    api: HfApi, place: HubPlace, *, patterns: Sequence[str] | None = None, cache: Path | None = None
) -> Snapshot:
    """Fetch the files of a dataset repository; a branch or tag is resolved to its commit first.

    With the commit given and its files in the cache the Hub is not asked.

    Args:
        patterns: only the files that match one of these; all without.

    Raises:
        BadInput: the repository or revision does not exist, or the Hub gives no answer.
    """
    return patiently(place.words, lambda: _fetch(api, place, patterns=patterns, cache=cache))


def _fetch(api: HfApi, place: HubPlace, *, patterns: Sequence[str] | None, cache: Path | None) -> Snapshot:
    with hub_errors(place.words):
        revision = place.revision
        if revision is None or not _COMMIT.fullmatch(revision):
            revision = api.dataset_info(place.repo, revision=revision, timeout=TIMEOUT_S).sha
        if revision is None:
            raise BadInput(f"{place}: the Hub names no commit for it; give a revision")
        folder = api.snapshot_download(
            place.repo,
            repo_type=DATASET,
            revision=revision,
            allow_patterns=None if patterns is None else list(patterns),
            cache_dir=cache,
        )
    snapshot = Snapshot(Path(folder), revision)
    if not _is_listed(place.repo, revision, cache):
        _check_whole(api, place.repo, snapshot, patterns=patterns)
    return snapshot


def _is_listed(repo: str, commit: str, cache: Path | None) -> bool:
    """Whether the client has listed the files of a commit, and so compared a folder that it gives with them."""
    try:
        from huggingface_hub import get_cached_repo_tree
        from huggingface_hub.errors import CachedRepoTreeNotFoundError
    except ImportError:  # clients before 2 keep no lists
        return False
    try:
        get_cached_repo_tree(repo, repo_type=DATASET, revision=commit, cache_dir=cache)
    except CachedRepoTreeNotFoundError:
        return False
    return True


def _check_whole(api: HfApi, repo: str, snapshot: Snapshot, *, patterns: Sequence[str] | None) -> None:
    """Stop unless a folder holds all that was asked for.

    Where the Hub fails, the client gives without a word what an earlier command left in the cache: maybe one file.

    Raises:
        Busy: files are missing.
    """
    head = read_head(api, repo, revision=snapshot.commit)
    wanted = [path for path in head.files if patterns is None or any(fnmatch(path, pattern) for pattern in patterns)]
    if missing := [path for path in wanted if not (snapshot.path / path).is_file()]:
        raise Busy(f"{len(missing)} files did not come, {missing[0]} among them")
