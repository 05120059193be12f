"""Verify a dataset wherever it is, and against the data it names, wherever those are.

In: a folder, or a repository of the Hub at one revision. Out: findings. A repository is compared by the digests that
the Hub states (fast, nothing downloaded), or brought down and computed again as a folder is (full).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from builder.dataset.digests import DIGESTS_NAME, Verified
from builder.dataset.rows import Progress
from builder.dataset.verify import folder_kind, verify_mirror
from builder.errors import BadInput
from builder.hub.place import HubPlace

if TYPE_CHECKING:
    from huggingface_hub import HfApi

FAST: Final = "the Hub's file digests against digests.json (fast); --full downloads and recomputes"
FULL: Final = "the Hub's file digests, and every number recomputed from the files themselves (full)"
OFFLINE: Final = "every number recomputed from the local cache of this commit (full); the Hub was not asked"


@dataclass(frozen=True, slots=True)
class Depth:
    """How far to look: `full` downloads a repository; `with_data` goes on to the data (at `data`, or where it says)."""

    full: bool = False
    with_data: bool = False
    data: Path | HubPlace | None = None


def verify_place(
    place: Path | HubPlace,
    depth: Depth | None = None,
    *,
    expect: str | None = None,
    on_progress: Progress | None = None,
    make_api: Callable[[], HfApi] | None = None,
) -> Verified:
    """Return every way in which a dataset is not what it says.

    Args:
        expect: the folder digest (64 hex digits) that someone else vouches for.
        make_api: gives the Hub's client; without it, the client with its own settings.

    Raises:
        BadInput: there is no such dataset, it names no data to look at, or the Hub gives no answer.
    """
    depth, make_api = depth or Depth(), make_api or _client
    if isinstance(place, Path):
        verified = verify_folder(place, expect=expect, on_progress=on_progress)
        return _with_data(place, verified, depth, make_api, what=str(place))
    if not (depth.full or depth.with_data):
        return _fast(make_api(), place, expect)
    folder, verified = _full(make_api(), place, expect, on_progress)
    return _with_data(folder, verified, depth, make_api, what=str(place))


def _full(api: HfApi, place: HubPlace, expect: str | None, on_progress: Progress | None) -> tuple[Path, Verified]:
    """Compare what the Hub states, then compute everything from the files; without the Hub, from the cache alone."""
    from huggingface_hub import constants

    known = None if constants.HF_HUB_OFFLINE else _fast(api, place, expect)
    pinned = HubPlace(place.repo, known.facts["commit"], explicit=True) if known else place
    folder, commit = _download(api, pinned)
    verified = verify_folder(folder, expect=expect, on_progress=on_progress)
    findings = dict.fromkeys([*(known.findings if known else ()), *verified.findings])
    facts = {**verified.facts, "commit": commit, "checked": FULL if known else OFFLINE}
    return folder, replace(verified, findings=tuple(findings), facts=facts)


def verify_folder(folder: Path, *, expect: str | None = None, on_progress: Progress | None = None) -> Verified:
    """Return every way in which a mirror, a results folder or one run's folder is not what it says."""
    if folder_kind(folder) == "run":
        from eval.results.verify import verify_run

        return verify_run(folder, expect=expect)
    return verify_mirror(folder, expect=expect, on_progress=on_progress)


def _client() -> HfApi:
    from builder.hub.client import make_api

    return make_api()


def _fast(api: HfApi, place: HubPlace, expect: str | None) -> Verified:
    from builder.hub.check import check_mirror
    from builder.hub.client import patiently
    from builder.hub.remote import Head, Reader, read_head
    from eval.hub.index import check_results, run_ids

    def look() -> tuple[Head, Verified]:
        head = read_head(api, place.repo, revision=place.revision, what=place.words)
        if DIGESTS_NAME in head.files:
            return head, check_mirror(head, Reader(api), expect=expect)
        if run_ids(head):
            return head, check_results(head, Reader(api), expect=expect)
        raise BadInput(f"{place}: expected {DIGESTS_NAME} or runs/, found neither: no dataset that we made")

    head, verified = patiently(place.words, look)
    return replace(verified, facts={**verified.facts, "commit": head.commit, "checked": FAST})


def _download(api: HfApi, place: HubPlace) -> tuple[Path, str]:
    """Return a local folder with all files of a repository, and the commit they are of."""
    from builder.hub.snapshot import fetch_snapshot

    snapshot = fetch_snapshot(api, place)
    return snapshot.path, snapshot.commit


def _with_data(folder: Path, verified: Verified, depth: Depth, make_api: Callable[[], HfApi], *, what: str) -> Verified:
    """Add what is wrong between a dataset, `what` to the person who asked, and the data it names, if that was asked."""
    if not depth.with_data or verified.findings:
        return verified  # what does not hold by itself says nothing of its data
    from eval.results.against import of_mirror, of_runs

    if verified.kind == "run":
        findings, against = of_runs(folder, depth.data, make_api)
    else:
        findings, against = of_mirror(folder, depth.data, what=what)
    facts = {**verified.facts, "data": "; ".join(dict.fromkeys(against))}
    return replace(verified, findings=tuple(findings), facts=facts)
