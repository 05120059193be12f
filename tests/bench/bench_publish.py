"""What publishing costs beside the client's own calls, and what many publishers cost each other, in one run.

    python -m tests.bench.bench_publish

A mirror of the sample cases and one run, against a Hub on 127.0.0.1. Floor: one `create_commit` and one `create_tag` of
the same files, which neither read the repository first nor compare what arrived. Best of five of each, taken in turn.
Then 20 publishers, each with a run of its own, on one results repository.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import CommitOperationAdd, constants

from builder.hub.client import make_api
from builder.hub.publication import Target
from builder.hub.publish import publish
from builder.hub.remote import Reader
from builder.mirror import build_mirror
from builder.tree.sources import open_source
from tests.local_hub import LocalHub
from tests.publishing import TOKEN, make_hub, mirror_of, run_of, send

TRIES, PUBLISHERS = 5, 20
FLOOR = "create_commit + create_tag"
ROOT = Path(__file__).parents[2]


def counted(hub: LocalHub, call: Callable[[], object]) -> tuple[float, int]:
    """Return the seconds of a call, and the requests it made."""
    hub.log.clear()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start, len(hub.log)


def bare(hub: LocalHub, folder: Path, repo: str) -> None:
    """Create, commit and tag with the client's own calls."""
    api = make_api(hub.endpoint, TOKEN)
    api.create_repo(repo, repo_type="dataset", private=True)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    operations = [CommitOperationAdd(path.relative_to(folder).as_posix(), path) for path in files]
    commit = api.create_commit(repo, operations, commit_message="bare", repo_type="dataset")
    api.create_tag(repo, tag="v1", revision=commit.oid, repo_type="dataset")


def measure(folder: Path) -> None:
    """Print seconds and requests of the floor, of a first publication, of a repeated one, and of a run added."""
    mirror = build_mirror(open_source(ROOT / "data"), folder / "mirror").folder
    publication, run = mirror_of(mirror), run_of(folder / "one")
    rows: dict[str, list[tuple[float, int]]] = {}
    for number in range(TRIES):
        with make_hub() as hub, make_hub() as other:
            to_send = partial(send, hub, cache=folder / f"cache{number}")
            steps: dict[str, Callable[[], object]] = {
                FLOOR: partial(bare, other, mirror, "org/bare"),
                "publish a mirror": partial(to_send, publication, Target("org/ours", tag="v1")),
                "publish it again": partial(to_send, publication, Target("org/ours", tag="v1")),
                "publish a run": partial(to_send, run, Target("org/results")),
            }
            for name, call in steps.items():
                rows.setdefault(name, []).append(counted(other if name == FLOOR else hub, call))
    floor = min(seconds for seconds, _ in rows[FLOOR])
    for name, tries in rows.items():
        seconds = min(seconds for seconds, _ in tries)
        say(f"{name:<28} {seconds:6.3f} s  {seconds / floor:5.2f} x floor  {tries[-1][1]:3} requests")


def crowd(folder: Path) -> None:
    """Print how 20 publishers on one repository fare: seconds, requests, commits that came too late."""
    runs = [run_of(folder / f"run{number}", shift=number) for number in range(PUBLISHERS)]
    with make_hub() as hub, ThreadPoolExecutor(PUBLISHERS) as executor:
        api = make_api(hub.endpoint, TOKEN)

        def one(number: int) -> None:
            api = make_api(hub.endpoint, TOKEN)
            publish(api, runs[number], Target("org/results"), reader=Reader(api, folder / f"own{number}"))

        seconds, requests = counted(hub, lambda: list(executor.map(one, range(PUBLISHERS))))
        late = sum(line["status"] == 412 for line in hub.log)
        commits = len(api.list_repo_commits("org/results", repo_type="dataset")) - 1
    say(f"{PUBLISHERS} publishers: {seconds:.1f} s, {commits} commits, {late} came too late, {requests} requests")


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    constants.HF_HUB_DISABLE_XET = True  # the Hub of the tests has no such storage
    with TemporaryDirectory() as temporary:
        measure(Path(temporary))
        crowd(Path(temporary))
