"""Results and mirrors against the data they name, on the Hub: the commit that was judged, the source that was built."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builder.dataset.digests import Verified, read_digests
from builder.errors import BadInput
from builder.hub.client import make_api
from builder.hub.place import FoundMirror, HubPlace, find_mirror
from eval.calls.plan import Model
from eval.cases import read_cases
from eval.results.anywhere import FULL, Depth, verify_place
from eval.results.folder import add_run, current_summary, write_results
from tests.at_hub import MIRROR, RESULTS, TOKEN, after, changed, client_at, make_hub, process, put, put_files
from tests.journals import SOFTWARE
from tests.local_hub import LocalHub
from tests.mirrors import DRUG_SAFETY, add_held_out, build, change_rows, digest_of, source_cases
from tests.plans import make_plan, run
from tests.tampering import results_folder
from tests.trees import case_path, edit_json, read_json, write_tree

pytestmark = pytest.mark.slow

SOURCE = "org/cases"
CHOSEN = ("drug_safety", "health_equity")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source tree and its mirror."""
    made = tmp_path_factory.mktemp("against")
    build(write_tree(made / "tree", 2, CHOSEN), made / "mirror", panels=CHOSEN)
    return made


@pytest.fixture(scope="module")
def hub(folder: Path) -> Iterator[LocalHub]:
    """A Hub for which the client has an empty cache."""
    with make_hub() as running, client_at(running, folder / "cache"):
        yield running


@pytest.fixture(scope="module")
def judged(hub: LocalHub, folder: Path) -> str:
    """The commit of the mirror on the Hub on which `bedside-bench run` made the results in `folder`/results.

    After the run the mirror's repository was changed.
    """
    first = put(hub, folder / "mirror", MIRROR, cache=folder / "cache", tag="v1").commit
    models = ["--answer-model", "builtin:positive-items", "--judge-model", "builtin:verbatim"]
    for words in (
        ["run", f"{MIRROR}@v1", *models, "--output", "x.jsonl"],
        ["results", "x.jsonl", "--out", "results"],
    ):
        done = process(hub, folder, *words)
        assert 0 == done.returncode, done.stderr
    edited = Path(shutil.copytree(folder / "tree", folder / "edited"))
    edit(edited)
    build(edited, folder / "second", panels=CHOSEN)
    put(hub, folder / "second", MIRROR, cache=folder / "cache", tag="v2")
    return first


def edit(tree: Path) -> None:
    """Give an item of a source another number of points."""
    first, *others = read_json(case_path(tree))["rubric_items"]
    edit_json(case_path(tree), rubric_items=[{**first, "points": 1}, *others])


def look(hub: LocalHub, place: Path | HubPlace, data: Path | HubPlace | None = None) -> Verified:
    """Verify a dataset and what it says of its data."""
    depth = Depth(with_data=True, data=data)
    return verify_place(place, depth, make_api=lambda: make_api(hub.endpoint, TOKEN))


def result_of(mirror: FoundMirror, to: Path, *, answer: str = "builtin:all-items") -> Path:
    """Run builtin models on a mirror and return the results folder."""
    to.mkdir()
    data = read_cases(mirror.folder, repo=mirror.repo, revision=mirror.revision)
    run(make_plan(data, answer=Model(answer)), to / "x.jsonl")
    write_results(to / "x.jsonl", to / "out", summary_bytes=current_summary(to / "x.jsonl", software=SOFTWARE))
    return to / "out"


# -- runs on a mirror on the Hub


def test_a_run_names_the_mirrors_repository_and_commit(folder: Path, judged: str) -> None:
    """A run on org/name@tag holds the repository, the commit that the tag was then, and the digest of its cases."""
    (path,) = (folder / "results" / "runs").iterdir()
    (row,) = pq.read_table(path / "run.parquet", partitioning=None).to_pylist()
    digests, true = read_digests(path), digest_of(source_cases(folder / "tree", CHOSEN))

    assert (MIRROR, judged, true) == (row["data_repo"], row["data_revision"], row["dataset_sha256"])
    assert {"kind": "hub", "repo": MIRROR, "revision": judged, "license": "cc-by-4.0"} == digests["source"]
    assert f"{MIRROR}@{judged[:12]}" in (folder / "results" / "README.md").read_text(encoding="utf-8")


def test_a_run_still_links_to_its_commit(hub: LocalHub, folder: Path, judged: str) -> None:
    """Though the mirror's repository holds other cases now, the commit that was judged is brought down and fits."""
    verified = look(hub, folder / "results")

    assert [] == list(verified.findings)
    assert f"{MIRROR}@{judged}" == verified.facts["data"]


def test_one_runs_own_folder_links_too(hub: LocalHub, folder: Path, judged: str) -> None:
    """The folder of a single run is checked like the results it lies in."""
    (path,) = (folder / "results" / "runs").iterdir()

    assert f"{MIRROR}@{judged}" == look(hub, path).facts["data"]


def test_results_on_the_hub_link_as_well(hub: LocalHub, folder: Path, judged: str) -> None:
    """Published results are downloaded, computed again and held against the mirror they name."""
    put(hub, folder / "results", RESULTS, cache=folder / "cache")
    verified = look(hub, HubPlace(RESULTS))

    assert [] == list(verified.findings)
    assert (f"{MIRROR}@{judged}", FULL) == (verified.facts["data"], verified.facts["checked"])


@pytest.mark.usefixtures("judged")
def test_what_is_in_the_cache_is_not_asked_for_again(hub: LocalHub, folder: Path) -> None:
    """The link to a commit that was brought down before needs no request."""
    look(hub, folder / "results")

    assert [] == after(hub, lambda: look(hub, folder / "results"))


@pytest.mark.parametrize("where", ["folder", "tag", "branch"])
@pytest.mark.usefixtures("judged")
def test_another_mirror_gives_findings(hub: LocalHub, folder: Path, where: str) -> None:
    """Against data given with --data that were not judged, run and cases are named, and the data as they were given."""
    places: dict[str, Path | HubPlace] = {
        "folder": folder / "second",
        "tag": HubPlace(MIRROR, "v2"),
        "branch": HubPlace(MIRROR),
    }
    data = places[where]
    (path,) = (folder / "results" / "runs").iterdir()
    verified = look(hub, folder / "results", data)

    assert {f"runs/{path.name}/run.parquet", f"runs/{path.name}/digests.json"} <= {
        finding.file for finding in verified.findings
    }
    assert "run: dataset_sha256" in {finding.what for finding in verified.findings}
    assert str(data) == verified.facts["data"]


@pytest.mark.usefixtures("judged")
def test_the_same_mirror_elsewhere_fits(hub: LocalHub, folder: Path) -> None:
    """With --data the local mirror, the tag, or the source tree do as well: the digests decide, not the place."""
    places: list[Path | HubPlace] = [folder / "mirror", HubPlace(MIRROR, "v1"), folder / "tree"]
    for data in places:
        assert [] == list(look(hub, folder / "results", data).findings)


@pytest.mark.usefixtures("judged")
def test_a_mirror_that_does_not_hold_is_named_as_a_person_does(hub: LocalHub, folder: Path) -> None:
    """What is wrong with the mirror itself is said with its repository, not with a path in the cache."""
    damaged = Path(shutil.copytree(folder / "mirror", folder / "damaged"))
    change_rows(damaged, DRUG_SAFETY, lambda rows: rows.reverse())
    place = changed(hub, MIRROR, "damaged", {DRUG_SAFETY: damaged / DRUG_SAFETY})
    (path,) = (folder / "results" / "runs").iterdir()

    assert f"{MIRROR}@damaged/{DRUG_SAFETY}" in {finding.file for finding in look(hub, path, place).findings}
    assert f"{damaged}/{DRUG_SAFETY}" in {finding.file for finding in look(hub, path, damaged).findings}


def test_a_run_that_names_no_data_is_one_line(hub: LocalHub, tmp_path: Path) -> None:
    """A run on a folder of somebody's machine can only be linked with --data."""
    out = results_folder(tmp_path)
    (path,) = (out / "runs").iterdir()

    with pytest.raises(BadInput, match=f"^{path.name}: names no Hub dataset .* give the mirror with --data") as refused:
        look(hub, out)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("judged")
def test_results_that_do_not_hold_are_not_linked(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    """What was changed is named, and nothing is said of its data."""
    out = Path(shutil.copytree(folder / "results", tmp_path / "out"))
    (path,) = (out / "runs").iterdir()
    (path / "scores.parquet").write_bytes(b"PAR1")
    verified = look(hub, out)

    assert "data" not in verified.facts
    assert not verified.ok


def test_a_commit_that_is_gone_is_one_line(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    """A run whose mirror cannot be found any more says which it was."""
    out = result_of(FoundMirror(folder / "mirror", "org/gone", "a" * 40), tmp_path / "run")

    with pytest.raises(BadInput, match=f"^org/gone@{'a' * 40} .*: no such repository, or hidden from you"):
        look(hub, out)


# -- runs on a local mirror of a source on the Hub


@pytest.fixture(scope="module")
def from_source(hub: LocalHub, folder: Path) -> str:
    """The commit of a source tree on the Hub, of which `folder`/built is the local mirror; main has changed since."""
    tree = write_tree(folder / "source")
    commit = put_files(hub, tree, SOURCE)
    build(Path(f"{SOURCE}@{commit}"), folder / "built")
    edit(tree)
    put_files(hub, tree, SOURCE)
    return commit


def test_a_run_on_a_local_mirror_links_to_the_source(
    hub: LocalHub, folder: Path, from_source: str, tmp_path: Path
) -> None:
    """Its run names the source's repository and commit: the mirror is built from it again, and fits."""
    verified = look(hub, result_of(find_mirror(folder / "built"), tmp_path / "run"))

    assert [] == list(verified.findings)
    assert f"{SOURCE}@{from_source}" == verified.facts["data"]


def test_runs_with_other_splits_link_to_one_source(hub: LocalHub, tmp_path: Path) -> None:
    """Held-out cases and renamed splits are built as each run states them, of two runs in one folder."""
    tree = write_tree(tmp_path / "tree")
    add_held_out(tree)
    place = Path(f"org/held-out@{put_files(hub, tree, 'org/held-out')}")
    build(place, tmp_path / "plain", held_out=True)
    build(place, tmp_path / "renamed", held_out=True, split_name="public")
    out = result_of(find_mirror(tmp_path / "plain"), tmp_path / "run")
    other = result_of(find_mirror(tmp_path / "renamed"), tmp_path / "other", answer="builtin:positive-items")
    (second,) = (other / "runs").iterdir()
    add_run(second, out)

    assert ["public", "train"] == sorted(
        name
        for path in (out / "runs").iterdir()
        for name, own in read_digests(path)["splits"].items()
        if own == "train"
    )
    assert [] == list(look(hub, out).findings)


def test_a_run_on_a_mirror_of_some_panels_links_to_the_source(hub: LocalHub, from_source: str, tmp_path: Path) -> None:
    """Where the local mirror took some of the source's panels, those alone give the digest of the run."""
    build(Path(f"{SOURCE}@{from_source}"), tmp_path / "some", panels=CHOSEN)

    assert [] == list(look(hub, result_of(find_mirror(tmp_path / "some"), tmp_path / "run")).findings)


@pytest.mark.usefixtures("from_source")
def test_the_source_as_it_is_now_does_not_fit(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    """Against main, which was changed since, the run's digests differ."""
    verified = look(hub, result_of(find_mirror(folder / "built"), tmp_path / "run"), HubPlace(SOURCE))

    assert {"run: dataset_sha256", "run: content_sha256"} <= {finding.what for finding in verified.findings}
    assert SOURCE == verified.facts["data"]


@pytest.mark.usefixtures("from_source")
def test_a_source_with_errors_is_one_line(hub: LocalHub, folder: Path, tmp_path: Path) -> None:
    """A source that breaks a rule gives no mirror to compare with."""
    tree = write_tree(tmp_path / "tree")
    edit_json(case_path(tree), prompt="")
    out = result_of(find_mirror(folder / "built"), tmp_path / "run")

    with pytest.raises(BadInput, match=f"^{tree}: expected a mirror or a source without errors"):
        look(hub, out, tree)


def test_an_address_is_never_a_folder(
    hub: LocalHub, folder: Path, from_source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder called like the repository, beside the person who asks, takes no part."""
    out = result_of(find_mirror(folder / "built"), tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    for name in (SOURCE, f"{SOURCE}@{from_source}"):
        write_tree(tmp_path / name, 1)

    assert [] == list(look(hub, out, HubPlace(SOURCE, from_source)).findings)
    assert [] == list(look(hub, folder / "built", HubPlace(SOURCE, from_source)).findings)
    assert [] == list(look(hub, folder / "built").findings)


# -- mirrors and their sources


def test_a_mirror_on_the_hub_is_held_against_its_source_there(hub: LocalHub, folder: Path, from_source: str) -> None:
    """A mirror of a source on the Hub names it: both are brought down, the source is built again, and they agree."""
    put(hub, folder / "built", "org/built", cache=folder / "cache")
    verified = look(hub, HubPlace("org/built"))

    assert [] == list(verified.findings)
    assert (f"{SOURCE}@{from_source}", FULL) == (verified.facts["data"], verified.facts["checked"])


@pytest.mark.usefixtures("judged")
def test_a_mirror_is_not_that_of_a_changed_source(hub: LocalHub, folder: Path) -> None:
    """Against another source tree the panel that differs is named, in the repository that was asked about."""
    verified = look(hub, HubPlace(MIRROR, "v1"), folder / "edited")

    assert {(f"{MIRROR}@v1/digests.json", "panels: drug_safety")} <= {
        (finding.file, finding.what) for finding in verified.findings
    }
    assert [] == list(look(hub, HubPlace(MIRROR, "v1"), folder / "tree").findings)


@pytest.mark.usefixtures("judged")
def test_a_mirror_that_names_no_source_is_one_line(hub: LocalHub, folder: Path) -> None:
    """A mirror built from a folder can only be held against its source with --data; it is named as it was given."""
    places: list[Path | HubPlace] = [HubPlace(MIRROR, "v1"), folder / "mirror"]
    for place in places:
        with pytest.raises(BadInput) as refused:
            look(hub, place)
        expected = "names no Hub dataset that it was built from; give its source with --data"
        assert f"{place}: {expected}" == str(refused.value)
