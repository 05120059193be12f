"""Bring files of a dataset repository down into the client's cache, at one commit.

In: a place on the Hub. Out: a local folder and the commit it is of. Not done here: reading what was fetched (`sources`,
`verify`). The Hub's address, the token and the cache are the client's own settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from huggingface_hub import HfApi

from builder.errors import BadInput
from builder.hub.client import TIMEOUT_S, hub_errors, patiently
from builder.hub.place import HubPlace

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
    what = f"{place} (no folder here has that name)"
    return patiently(what, lambda: _fetch(api, place, what, patterns=patterns, cache=cache))


def _fetch(api: HfApi, place: HubPlace, what: str, *, patterns: Sequence[str] | None, cache: Path | None) -> Snapshot:
    with hub_errors(what):
        revision = place.revision
        if revision is None or not _COMMIT.fullmatch(revision):
            revision = api.dataset_info(place.repo, revision=revision, timeout=TIMEOUT_S).sha
        if revision is None:
            raise BadInput(f"{place}: the Hub names no commit for it; give a revision")
        folder = api.snapshot_download(
            place.repo,
            repo_type="dataset",
            revision=revision,
            allow_patterns=None if patterns is None else list(patterns),
            cache_dir=cache,
        )
    return Snapshot(Path(folder), revision)
