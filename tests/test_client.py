"""The client's errors: what passes is tried again, what a person must mend is one line, this machine's own stay."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, errors

from builder.errors import BadInput
from builder.hub.client import Busy, hub_errors, make_api
from builder.hub.place import HubPlace
from builder.hub.remote import Reader, read_head
from builder.hub.snapshot import fetch_snapshot
from tests.at_hub import process, put_files
from tests.local_hub import LocalHub
from tests.publishing import TOKEN, commit_file, make_hub

REPO = "org/cases"
XET = "Request error: HTTP status client error ({}), domain: http://127.0.0.1/xet-write-token/main"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """Run a Hub with a repository of two files."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.json").write_text('{"a": 1}')
    (folder / "b.json").write_text('{"b": 2}')
    with make_hub(tmp_path / "hub") as running:
        put_files(running, folder, REPO)
        yield running


def api_of(hub: LocalHub) -> HfApi:
    """Return a client."""
    return make_api(hub.endpoint, TOKEN)


@pytest.mark.parametrize(
    "error",
    [
        OSError("Consistency check failed: file should be of size 8 but has size 3 (a.json)"),
        ConnectionError("Network error: connection reset"),
        ConnectionError(f"Rate limited: {XET.format('429 Too Many Requests')}"),
        PermissionError("Authentication error: the token for large files is too old"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        errors.XetDownloadError("no block"),
        KeyError("commitOid"),
        AttributeError("'list' object has no attribute 'get'"),
    ],
    ids=["length", "connection", "rate", "xet token", "reset", "xet download", "no member", "no object"],
)
def test_what_passes_is_worth_another_try(error: Exception) -> None:
    """Transfers that broke off, and answers of something that is not the Hub, are no end."""
    with pytest.raises(Busy, match=r"^no answer from the Hub"), hub_errors(REPO):
        raise error


def test_a_full_disk_is_not_the_hubs() -> None:
    """An error of this machine stays what it is, with the file that it names."""
    with pytest.raises(OSError, match="No space left"), hub_errors(REPO):
        raise OSError(errno.ENOSPC, "No space left on device", "blobs/ab")


def test_storage_that_refuses_is_one_line() -> None:
    """hf_xet calls a refusal a network error too; its words tell, and trying again is no use."""
    line = f"{REPO}: the Hub's storage of large files refuses this: Network error: {XET.format('403 Forbidden')}"

    with pytest.raises(BadInput) as stop, hub_errors(REPO):
        raise ConnectionError(f"Network error: {XET.format('403 Forbidden')}")

    assert line == str(stop.value)


def test_what_the_cache_holds_is_not_asked_for_again(hub: LocalHub, tmp_path: Path) -> None:
    """A file that did not change comes from the cache at a later commit too, without a request."""
    Reader(api_of(hub), tmp_path / "cache").read(read_head(api_of(hub), REPO), ["a.json"])
    commit_file(hub, REPO, "b.json", "{}", token=TOKEN)
    head = read_head(api_of(hub), REPO)
    hub.log.clear()

    assert {"a.json": b'{"a": 1}'} == Reader(api_of(hub), tmp_path / "cache").read(head, ["a.json"])
    assert [] == hub.log


def test_a_broken_cache_and_a_busy_hub_are_no_end(hub: LocalHub, tmp_path: Path) -> None:
    """A file that is broken in the cache is fetched anew, and where the Hub is busy just then, later."""
    head, cache = read_head(api_of(hub), REPO), tmp_path / "cache"
    Reader(api_of(hub), cache).read(head, ["a.json"])
    (blob,) = (path for path in cache.rglob("blobs/*") if path.is_file())
    blob.write_bytes(b"broken")
    hub.fault(method="HEAD", path="/resolve/", status=503)

    with pytest.raises(Busy, match=r"^the Hub answered 503$"):
        Reader(api_of(hub), cache).read(head, ["a.json"])

    assert {"a.json": b'{"a": 1}'} == Reader(api_of(hub), cache).read(head, ["a.json"])


def test_a_file_of_another_length_is_no_end(hub: LocalHub, tmp_path: Path) -> None:
    """What comes whole but with another length than was stated is asked for again."""
    head = read_head(api_of(hub), REPO)
    hub.fault(method="GET", path="/resolve/", status=200, body="{}")

    with pytest.raises(Busy, match=r"^no answer from the Hub"):
        Reader(api_of(hub), tmp_path / "cache").read(head, ["a.json"])


def test_a_part_of_a_snapshot_is_never_taken_for_all(hub: LocalHub, tmp_path: Path) -> None:
    """With one file of a commit in the cache and a Hub that does not list the others, nothing is given."""
    head, cache = read_head(api_of(hub), REPO), tmp_path / "cache"
    Reader(api_of(hub), cache).read(head, ["a.json"])
    place = HubPlace(REPO, head.commit)
    fault = hub.fault(path="/tree/", status=403, times=9, body='{"error": "Not now"}')

    with pytest.raises(BadInput, match="your token may not do this"):
        fetch_snapshot(api_of(hub), place, cache=cache)
    hub.faults.remove(fault)

    snapshot = fetch_snapshot(api_of(hub), place, patterns=["*.json"], cache=cache)
    assert ["a.json", "b.json"] == sorted(path.name for path in snapshot.path.iterdir())


def test_a_hub_without_storage_for_large_files(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """Where hf_xet moves the Parquet files and the Hub refuses, the command ends at once with one line."""
    done = process(hub, tmp_path, "publish", built, "org/bedside-bench", HF_HUB_DISABLE_XET="0", HF_TOKEN=TOKEN)

    assert (1, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: org/bedside-bench: the Hub's storage of large files refuses this: ")
    assert 1 == len(done.stderr.splitlines())
