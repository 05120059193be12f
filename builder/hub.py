"""Talk to the Hugging Face Hub: the only file that does.

In: a dataset id and a revision. Out: a local snapshot of its source files at one commit.
Not done here: reading what was fetched (`sources`). The Hub's address and token are the library's own settings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from builder.errors import BadInput

SOURCE_PATTERNS: Final = ("*.json", "*LICENSE*", "*LICENCE*", "*NOTICE*", "*DISCLAIMER*", "*CITATION.cff", "README.md")
_COMMIT: Final = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files of a dataset repository in the local cache, and the commit they are of."""

    path: Path
    commit: str


def fetch_snapshot(repo: str, revision: str | None = None) -> Snapshot:
    """Fetch the source files of a dataset repository; a branch or tag is resolved to its commit first.

    Raises:
        BadInput: the repository or revision does not exist, or the Hub cannot be reached.
    """
    from huggingface_hub import HfApi, errors, snapshot_download

    # The parent of the client's own HTTP error is the error of the HTTP library it is built on (which has changed).
    transport_error: type[Exception] = errors.HfHubHTTPError.__mro__[1]
    asked = f"{repo}@{revision}" if revision else repo
    try:
        exact = revision is not None and _COMMIT.fullmatch(revision)
        commit = revision if exact else HfApi().dataset_info(repo, revision=revision).sha
        if commit is None:
            raise BadInput(f"{asked}: the Hub names no commit for it; give a revision")
        folder = snapshot_download(repo, repo_type="dataset", revision=commit, allow_patterns=list(SOURCE_PATTERNS))
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise BadInput(
            f"{asked}: expected a folder or a Hub dataset, found neither ({type(error).__name__})"
        ) from error
    except (errors.HfHubHTTPError, transport_error, OSError, ValueError) as error:
        raise BadInput(f"{asked}: no such folder, and the Hub could not be read: {_first_line(error)}") from error
    return Snapshot(Path(folder), commit)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
