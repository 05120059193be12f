"""What tests of publishing share: a Hub, things to publish, clients with a cache each, and a repository's state.

with make_hub() as hub:
    send(hub, mirror_of(folder), Target("org/mirror", tag="v1"), cache=tmp_path)
    assert state(hub, "org/mirror").tags == {"v1": 1}
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.dataset.verify import verify_mirror
from builder.hub.client import make_api
from builder.hub.mirrors import MirrorPublication, mirror_publication
from builder.hub.publication import Publication, Published, Target
from builder.hub.publish import Pauses, publish
from builder.hub.remote import Head, Reader, read_head
from eval.hub.index import check_results
from eval.hub.publish import LocalRun, ResultsPublication, results_publication
from eval.results.folder import write_results
from eval.results.verify import verify_run
from tests.journals import write_journal, write_summary
from tests.local_hub import LocalHub

TOKEN = "hf_alicesecret"
SECOND = "hf_carolsecret"
READS = "hf_bobsecret"
UNKNOWN = "hf_nobodyssecret"
TOKENS = {TOKEN: "alice:write", SECOND: "carol:write", READS: "bob:read"}
ORGS = {"alice": ["org"], "carol": ["org"], "bob": ["org"]}
MIRROR = "org/bedside-bench"
RESULTS = "org/bedside-bench-results"
QUICK = Pauses(0.01, 0.01)
ONE_PANEL = ("drug_safety",)

_VARIABLE = re.compile(r"\?.*|(?<=/)[0-9a-f]{40,64}\b")


@dataclass(frozen=True, slots=True)
class State:
    """A repository as it lies in the Hub's storage, without ids that depend on the time.

    `titles` are the commits of main, oldest first; `files` is what main holds, path -> SHA-256; `tags` give the number
    of the commit on main; `proposals` are the files of pull requests; `commits` counts all that were ever made.
    """

    private: bool
    titles: tuple[str, ...]
    files: Mapping[str, str]
    tags: Mapping[str, int]
    proposals: tuple[Mapping[str, str], ...]
    commits: int


def make_hub(root: Path | None = None, *, others: Mapping[str, list[str]] | None = None) -> LocalHub:
    """Return a Hub with two writers and a reader, whose storage is a temporary folder or an old Hub's at `root`.

    Args:
        others: user -> all organisations, where not only `org`.
    """
    return LocalHub(root, tokens=TOKENS, orgs={**ORGS, **(others or {})})


def copy_of_hub(root: Path, to: Path) -> LocalHub:
    """Return a Hub that begins with a copy of another one's storage."""
    return make_hub(Path(shutil.copytree(root, to)))


def send(
    hub: LocalHub,
    publication: Publication,
    target: Target,
    *,
    cache: Path,
    token: str | None = TOKEN,
    pauses: Pauses = QUICK,
    on_step: Callable[[str], None] = lambda _: None,
) -> Published:
    """Publish as a client of its own does, without long pauses; a token of None sends none."""
    api = make_api(hub.endpoint, token)
    if token is None:
        api.token = False  # not even that of whoever runs the tests
    return publish(api, publication, target, pauses=pauses, reader=Reader(api, cache), on_step=on_step)


def mirror_of(folder: Path, *, message: str | None = None) -> MirrorPublication:
    """Return a mirror's folder, verified, to be published."""
    verified = verify_mirror(folder)
    if verified.findings:
        raise ValueError(verified.findings[0].line())
    return mirror_publication(folder, verified=str(verified.folder_digest), message=message)


def run_of(folder: Path, shift: int = 0, **options: Any) -> ResultsPublication:
    """Return a run of one case, verified, to be published; another `shift` is another run. Options as in `run_folder`.

    What it is of lies at `folder`.
    """
    return publication_of(run_folder(folder, shift, **options))


def publication_of(folder: Path, **options: Any) -> ResultsPublication:
    """Return a run's or a results folder, verified, to be published."""
    verified = verify_run(folder)
    if verified.findings:
        raise ValueError(verified.findings[0].line())
    return results_publication(folder, verified=verified, **options)


def run_folder(folder: Path, shift: int = 0, *, with_texts: bool = False, **options: Any) -> Path:
    """Write a run of one case into the results folder `folder`/results and return the run's own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"x{shift}{'-texts' if with_texts else ''}.jsonl"
    journal = write_journal(folder / name, cases_per_panel=1, panels=ONE_PANEL, shift=shift, **options)
    summary = write_summary(journal)
    return write_results(journal, folder / "results", summary_bytes=summary, with_texts=with_texts).path


def head_of(hub: LocalHub, repo: str, revision: str | None = None) -> Head:
    """Return what a client sees of a repository."""
    return read_head(make_api(hub.endpoint, TOKEN), repo, revision=revision)


def reader_of(hub: LocalHub, cache: Path) -> Reader:
    """Return a reader of the Hub's files."""
    return Reader(make_api(hub.endpoint, TOKEN), cache)


def state(hub: LocalHub, repo: str) -> State | None:
    """Return a repository's state; None where there is none."""
    folder = hub.store.root / "repos" / "datasets" / repo
    if not (folder / "repo.json").exists():
        return None
    meta = json.loads((folder / "repo.json").read_bytes())
    commits = {found["oid"]: found for found in map(_read, sorted((folder / "commits").glob("*.json")))}
    main, at = [], meta["branches"]["main"]
    while at:
        main.append(commits[at])
        at = main[-1]["parent"]
    main.reverse()
    numbers = {commit["oid"]: number for number, commit in enumerate(main)}
    return State(
        private=meta["private"],
        titles=tuple(commit["title"] for commit in main),
        files=_digests(main[-1]),
        tags={name: numbers[oid] for name, oid in meta["tags"].items()},
        proposals=tuple(_digests(commits[oid]) for oid in meta["prs"].values()),
        commits=len(commits),
    )


def history(hub: LocalHub, repo: str) -> list[str]:
    """Return the ids of the commits of main, oldest first."""
    commits = make_api(hub.endpoint, TOKEN).list_repo_commits(repo, repo_type="dataset")
    return [commit.commit_id for commit in reversed(commits)]


def tag_message(hub: LocalHub, repo: str, tag: str) -> str:
    """Return the message of a tag."""
    return str(_read(hub.store.root / "repos" / "datasets" / repo / "repo.json")["tagMessages"][tag])


def commit_message(hub: LocalHub, repo: str) -> str:
    """Return what stands below the first line of the newest commit's message."""
    newest = max((hub.store.root / "repos" / "datasets" / repo / "commits").glob("*.json"))
    return str(_read(newest)["message"])


def content(hub: LocalHub, repo: str, path: str) -> bytes:
    """Return a file's bytes on main, as they lie in the Hub's storage."""
    found = state(hub, repo)
    if found is None:
        raise ValueError(repo)
    stored: Path = hub.store.blob_path(found.files[path])
    return stored.read_bytes()


def requests(hub: LocalHub) -> list[str]:
    """Return what the Hub was asked, `METHOD path`, without ids and signatures."""
    return [f"{line['method']} {_VARIABLE.sub('', line['path'])}" for line in hub.log]


def methods(hub: LocalHub) -> Counter[str]:
    """Return how often which HTTP method was used; `GET` and `HEAD` change nothing."""
    return Counter(line["method"] for line in hub.log)


def only(publication: ResultsPublication) -> LocalRun:
    """Return the one run of a publication."""
    (run,) = publication.runs
    return run


def findings(hub: LocalHub, cache: Path) -> list[str]:
    """Return what verifying the results on main by their digests finds."""
    return [found.line() for found in check_results(head_of(hub, RESULTS), reader_of(hub, cache)).findings]


def card(hub: LocalHub) -> str:
    """Return the card of the results on main."""
    return content(hub, RESULTS, "README.md").decode()


def commit_file(hub: LocalHub, repo: str, path: str, text: str = "Not ours.\n", *, token: str = SECOND) -> None:
    """Commit a file to a repository as somebody else does."""
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(hub.endpoint, token=token)
    operation = CommitOperationAdd(path, text.encode())
    api.create_commit(repo, [operation], commit_message=f"Add {path}", repo_type="dataset")


def make_repo(hub: LocalHub, repo: str, *, private: bool = True) -> None:
    """Make an empty repository as somebody else does."""
    from huggingface_hub import HfApi

    HfApi(hub.endpoint, token=SECOND).create_repo(repo, repo_type="dataset", private=private)


def _read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def _digests(commit: Mapping[str, Any]) -> dict[str, str]:
    return {path: file["sha256"] for path, file in commit["files"].items()}
