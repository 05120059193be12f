"""Verify what is on the Hub: fast from the Hub's own digests, without a byte of data, or in full as a folder is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bedside_bench import PANEL_IDS
from builder.dataset.digests import Verified, folder_digest, read_digests
from builder.errors import BadInput
from builder.hub.client import make_api
from builder.hub.place import HubPlace
from eval.results.anywhere import FAST, FULL, Depth, verify_place
from tests.at_hub import (
    MIRROR,
    RESULTS,
    TOKEN,
    after,
    changed,
    client_at,
    make_both,
    make_hub,
    put,
    put_files,
    run_names,
)
from tests.local_hub import LocalHub
from tests.mirrors import DRUG_SAFETY, build_small, digest_of, source_cases

CHOSEN = ("drug_safety", "health_equity")
WHOLE = Depth(full=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source, its mirror of two panels, and results of two runs."""
    return make_both(tmp_path_factory.mktemp("made"), *CHOSEN)


@pytest.fixture(scope="module")
def hub(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHub]:
    """A Hub with the mirror, tagged, and the results; the client has an empty cache."""
    cache = tmp_path_factory.mktemp("cache")
    with make_hub() as running, client_at(running, cache):
        put(running, made / "mirror", MIRROR, cache=cache, tag="v1")
        put(running, made / "out", RESULTS, cache=cache)
        yield running


def look(hub: LocalHub, place: HubPlace, depth: Depth | None = None, *, expect: str | None = None) -> Verified:
    """Verify a repository."""
    return verify_place(place, depth, expect=expect, make_api=lambda: make_api(hub.endpoint, TOKEN))


# -- what holds


@pytest.mark.parametrize("repo", [MIRROR, RESULTS])
def test_fast_asks_for_no_data(hub: LocalHub, repo: str) -> None:
    """A mirror and results hold by their digests: no Parquet file is asked for, and nothing of the file server."""
    paths = after(hub, lambda: look(hub, HubPlace(repo)))

    assert [] == [path for path in paths if ".parquet" in path or path.startswith("CDN")]
    assert [] == list(look(hub, HubPlace(repo)).findings)
    assert FAST == look(hub, HubPlace(repo)).facts["checked"]


@pytest.mark.parametrize("repo", [MIRROR, RESULTS])
def test_full_downloads_every_file(hub: LocalHub, made: Path, repo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In full every Parquet file is brought down once, every number computed again, and that is said."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(made / f"full-{repo.rpartition('/')[2]}"))
    paths = after(hub, lambda: look(hub, HubPlace(repo), WHOLE))
    verified = look(hub, HubPlace(repo), WHOLE)
    folder = made / ("mirror" if repo == MIRROR else "out")

    assert len(list(folder.rglob("*.parquet"))) == len([path for path in paths if path.startswith("CDN")])
    assert ([], FULL) == (list(verified.findings), verified.facts["checked"])


def test_the_digest_of_a_mirror_on_the_hub_is_its_sources(hub: LocalHub, made: Path) -> None:
    """`dataset_sha256`, fast and in full, is that of the source's files by the standard library alone."""
    true = digest_of(source_cases(made / "source", CHOSEN))

    assert true == look(hub, HubPlace(MIRROR)).dataset_sha256
    assert true == look(hub, HubPlace(MIRROR), WHOLE).dataset_sha256


def test_fast_and_full_say_the_same_of_a_mirror(hub: LocalHub, made: Path) -> None:
    """Counts, digests and commit do not depend on how far was looked; the folder digest is the local folder's."""
    fast, full = look(hub, HubPlace(MIRROR)), look(hub, HubPlace(MIRROR), WHOLE)

    assert (4, 16, folder_digest(made / "mirror")) == (fast.n_cases, fast.n_items, fast.folder_digest)
    assert {**fast.facts, "checked": FULL} == full.facts
    assert (fast.n_cases, fast.n_items, fast.folder_digest) == (full.n_cases, full.n_items, full.folder_digest)


def test_results_name_the_digest_of_each_run(hub: LocalHub, made: Path) -> None:
    """Of several runs each has its own folder digest, fast and in full."""
    digests = {f"runs/{name}": folder_digest(made / "out" / "runs" / name) for name in run_names(made)}

    for depth in (None, WHOLE):
        facts = look(hub, HubPlace(RESULTS), depth).facts
        assert digests.items() <= facts.items()
        assert "2" == facts["runs"]


def test_a_revision_is_what_is_verified(hub: LocalHub) -> None:
    """A broken branch does not touch what the tag or its commit names; each result says of which commit it is."""
    broken = changed(hub, MIRROR, "revision", {DRUG_SAFETY: b"PAR1"})
    at_tag = look(hub, HubPlace(MIRROR, "v1"))

    assert not look(hub, broken).ok
    assert at_tag.ok
    assert at_tag == look(hub, HubPlace(MIRROR, at_tag.facts["commit"]))
    assert at_tag.facts["commit"] != look(hub, broken).facts["commit"]


def test_all_ten_panels_are_verified(hub: LocalHub, tmp_path: Path) -> None:
    """A whole mirror holds, fast and in full."""
    put(hub, build_small(tmp_path).folder, "org/whole", cache=tmp_path / "cache")

    assert look(hub, HubPlace("org/whole")).ok
    assert 2 * len(PANEL_IDS) == look(hub, HubPlace("org/whole"), WHOLE).n_cases


# -- what somebody vouches for


@pytest.mark.parametrize("depth", [None, WHOLE], ids=["fast", "full"])
def test_a_mirror_has_the_expected_digest_or_not(hub: LocalHub, made: Path, depth: Depth | None) -> None:
    """The folder digest that `build` printed holds, in any case of letters; another is the one finding."""
    true = folder_digest(made / "mirror")

    assert look(hub, HubPlace(MIRROR), depth, expect=true.upper()).ok
    (finding,) = look(hub, HubPlace(MIRROR), depth, expect="0" * 64).findings
    assert f"digests.json: folder digest: expected {'0' * 64}, found {true}" == finding.line()


@pytest.mark.parametrize("depth", [None, WHOLE], ids=["fast", "full"])
def test_one_of_the_runs_has_the_expected_digest_or_none(hub: LocalHub, made: Path, depth: Depth | None) -> None:
    """Of results the folder digest of any run is enough."""
    for name in run_names(made):
        assert look(hub, HubPlace(RESULTS), depth, expect=folder_digest(made / "out" / "runs" / name)).ok
    (finding,) = look(hub, HubPlace(RESULTS), depth, expect="0" * 64).findings
    assert f"runs: folder digest: expected one run with {'0' * 64}, found none" == finding.line()


# -- what is no dataset of ours


def test_another_dataset_is_told_in_one_line(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """A source tree, files in a folder runs/ and an empty repository are no datasets that can be verified so."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "log.txt").write_text("-\n")
    put_files(hub, made / "source", "org/tree")
    put_files(hub, tmp_path, "org/logs")
    make_api(hub.endpoint, TOKEN).create_repo("org/empty", repo_type="dataset")

    for repo in ("org/tree", "org/logs", "org/empty"):
        with pytest.raises(BadInput, match=f"^{repo}: expected digests.json or runs/, found neither"):
            look(hub, HubPlace(repo))


@pytest.mark.parametrize("depth", [None, WHOLE], ids=["fast", "full"])
@pytest.mark.parametrize(
    ("place", "message"),
    [
        (HubPlace("org/none"), "no such repository, or hidden from you"),
        (HubPlace(MIRROR, "v9"), "no such branch, tag or commit"),
        (HubPlace(MIRROR, "f" * 40), "no such branch, tag or commit"),
    ],
    ids=["repository", "tag", "commit"],
)
def test_what_is_not_there_is_told_in_one_line(
    hub: LocalHub, place: HubPlace, message: str, depth: Depth | None
) -> None:
    """The repository or revision is named."""
    with pytest.raises(BadInput, match=f"{place}.*: {message}") as refused:
        look(hub, place, depth)

    assert "\n" not in str(refused.value)


def test_a_folder_is_verified_as_before(made: Path, tmp_path: Path) -> None:
    """A path needs no Hub: a mirror, results and one run of them hold, and what is none is told."""
    for folder in (made / "mirror", made / "out", made / "out" / "runs" / run_names(made)[0]):
        assert verify_place(folder, make_api=None).ok
    with pytest.raises(BadInput, match="expected a dataset folder, found none"):
        verify_place(tmp_path / "none")


def test_a_folder_fetched_in_parts_is_completed(hub: LocalHub, made: Path) -> None:
    """What only some files were brought down of before is brought down whole, at the same commit."""
    from builder.hub.snapshot import fetch_snapshot

    api = make_api(hub.endpoint, TOKEN)
    commit = look(hub, HubPlace(RESULTS)).facts["commit"]
    part = fetch_snapshot(api, HubPlace(RESULTS, commit), patterns=["README.md"], cache=made / "parts")
    whole = fetch_snapshot(api, HubPlace(RESULTS, commit), cache=made / "parts")

    assert part == whole
    assert verify_place(whole.path).ok
    assert {"train": "train"} == read_digests(whole.path / "runs" / run_names(made)[0])["splits"]
