"""Publishing runs to a results dataset that others write to as well: what is added, kept and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builder.dataset.digests import read_digests, write_digests
from builder.errors import BadInput, DigestMismatch
from builder.hub.client import make_api
from builder.hub.publication import Target
from builder.hub.publish import publish_files
from eval.hub.publish import ResultsPublication
from eval.results.card import END, listed_runs
from tests.load_from_hub import CONFIGS, load_from_hub
from tests.local_hub import LocalHub
from tests.mirrors import build_tiny
from tests.publishing import (
    RESULTS,
    SECOND,
    TOKEN,
    card,
    commit_file,
    content,
    findings,
    history,
    make_repo,
    methods,
    mirror_of,
    only,
    publication_of,
    run_folder,
    run_of,
    send,
    state,
    tag_message,
)

pytestmark = pytest.mark.slow

NOT_FREE = "cc-by-nc-sa-4.0"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[ResultsPublication]:
    """Return three runs."""
    work = tmp_path_factory.mktemp("runs")
    return [run_of(work, shift) for shift in range(3)]


def test_two_runs_of_two_people(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """Each adds a commit with its own path and the card, which lists both; each tag names its run's digest."""
    send(hub, runs[0], Target(RESULTS, tag="a"), cache=tmp_path / "alice")
    before = state(hub, RESULTS)
    send(hub, runs[1], Target(RESULTS, tag="b"), cache=tmp_path / "carol", token=SECOND)

    after, names = state(hub, RESULTS), sorted(only(run).run_id for run in runs[:2])
    assert before is not None
    assert after is not None
    added = {path for path in after.files if after.files[path] != before.files.get(path)}
    own = f"runs/{only(runs[1]).run_id}/"
    assert {"README.md", f"{own}digests.json", *(f"{own}{name}" for name in only(runs[1]).digests["files"])} == added
    assert (3, {"a": 1, "b": 2}) == (after.commits, after.tags)
    assert names == listed_runs(card(hub))
    assert f"{only(runs[1]).run_id}: folder digest sha256:{only(runs[1]).folder_digest}" == tag_message(
        hub, RESULTS, "b"
    )
    assert [] == findings(hub, tmp_path / "check")


def test_the_same_run_again_changes_nothing(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """A run that is there is only looked at, by whoever publishes it, also after others were added."""
    send(hub, runs[0], Target(RESULTS, tag="a"), cache=tmp_path / "alice")
    send(hub, runs[1], Target(RESULTS), cache=tmp_path / "alice")
    before = state(hub, RESULTS)
    hub.log.clear()

    for token, tag in ((TOKEN, "a"), (SECOND, None)):
        assert 0 == send(hub, runs[0], Target(RESULTS, tag=tag), cache=tmp_path / token, token=token).sent

    assert before == state(hub, RESULTS)
    assert {"GET", "HEAD"} == set(methods(hub))


def test_another_run_under_the_same_path_is_refused(
    hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path
) -> None:
    """A run whose id is taken by a run with other decisions stops; what is published stays."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    before, run = state(hub, RESULTS), only(runs[0])
    forged = replace(run, digests={**run.digests, "run_sha256": "0" * 64})

    with pytest.raises(
        BadInput, match=f"{run.run_id}/: expected run_sha256 0000.* of another; a published run is never"
    ):
        send(hub, replace(runs[0], runs=[forged]), Target(RESULTS), cache=tmp_path / "cache")

    assert before == state(hub, RESULTS)


def test_a_run_that_was_tampered_with_is_named(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """A published run whose file somebody replaced is not taken for this run: the line says which file it is."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    path = f"runs/{only(runs[0]).run_id}/scores.parquet"
    commit_file(hub, RESULTS, path, "PAR1")

    with pytest.raises(BadInput, match=f"holds this run's path, but changed: {path}: size"):
        send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")


@pytest.mark.parametrize("file", ["run.parquet", "digests.json"])
def test_a_broken_run_of_somebody_else_is_named(
    hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path, file: str
) -> None:
    """A run whose index row or digests cannot be read stops the next publication: the card could not list it."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    path = f"runs/{only(runs[0]).run_id}/{file}"
    commit_file(hub, RESULTS, path, "PAR1")
    before = state(hub, RESULTS)

    with pytest.raises(BadInput, match=f"^{RESULTS}: {path}: expected"):
        send(hub, runs[1], Target(RESULTS), cache=tmp_path / "cache")

    assert before == state(hub, RESULTS)


def test_what_people_wrote_below_is_kept(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """Text below the generated part of the card stays to the byte through two more runs."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    below = "\n\n## Notes\n\n| 2026-01-01-mine-00000000 | ≥ 5 mg |\r\nno newline at the end"
    commit_file(hub, RESULTS, "README.md", card(hub).partition(END)[0] + END + below)

    for run in runs[1:]:
        send(hub, run, Target(RESULTS), cache=tmp_path / "cache")

    assert below == card(hub).partition(END)[2]
    assert 3 == len(listed_runs(card(hub)))
    assert [] == findings(hub, tmp_path / "check")


def test_a_new_repository_takes_the_folders_own_text(hub: LocalHub, tmp_path: Path) -> None:
    """A results folder goes up whole: its runs, what stands below its card's generated part, its legal files."""
    for shift in range(2):
        run_folder(tmp_path, shift)
    folder = tmp_path / "results"
    (folder / "README.md").write_bytes((folder / "README.md").read_bytes() + b"\nOur own words.\n")
    (folder / "LICENSE").write_text("The licence.\n")

    published = send(hub, publication_of(folder), Target(RESULTS), cache=tmp_path / "cache")

    assert "\n\nOur own words.\n" == card(hub).partition(END)[2]
    assert b"The licence.\n" == content(hub, RESULTS, "LICENSE")
    assert 2 * 5 + 2 == published.sent
    assert [] == findings(hub, tmp_path / "check")


def test_the_repositorys_own_text_and_files_win(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """In a repository that has a card, legal files and runs, a folder adds its runs and changes nothing of these."""
    send(hub, runs[2], Target(RESULTS), cache=tmp_path / "cache")
    commit_file(hub, RESULTS, "LICENSE", "Theirs.\n")
    commit_file(hub, RESULTS, "README.md", card(hub) + "\nTheir words.\n")
    run_folder(tmp_path, 0)
    folder = tmp_path / "results"
    (folder / "README.md").write_bytes((folder / "README.md").read_bytes() + b"\nOur own words.\n")
    (folder / "LICENSE").write_text("Ours.\n")

    send(hub, publication_of(folder), Target(RESULTS), cache=tmp_path / "cache")

    assert card(hub).endswith("Their words.\n")
    assert "Our own words" not in card(hub)
    assert b"Theirs.\n" == content(hub, RESULTS, "LICENSE")
    assert 2 == len(listed_runs(card(hub)))


@pytest.mark.parametrize("first", [True, False], ids=["texts there", "texts here"])
def test_a_run_with_and_without_texts_are_not_the_same(hub: LocalHub, tmp_path: Path, first: bool) -> None:
    """The same run with its texts never replaces the one without them, nor the reverse."""
    there = run_of(tmp_path / "there", with_texts=first)
    here = run_of(tmp_path / "here", with_texts=not first)
    send(hub, there, Target(RESULTS), cache=tmp_path / "cache")
    how = "with" if first else "without"

    with pytest.raises(BadInput, match=f"holds this run {how} its texts; a published run is never replaced"):
        send(hub, here, Target(RESULTS), cache=tmp_path / "cache")


def test_data_of_another_licence_need_another_repository(
    hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path
) -> None:
    """A card states one licence: a run on data of another one is refused."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    other = run_of(tmp_path, 1, license_id="mit")

    with pytest.raises(
        BadInput, match=r"expected runs on data of one licence, found cc-by-4\.0, mit; use a repository"
    ):
        send(hub, other, Target(RESULTS), cache=tmp_path / "cache")


@pytest.mark.parametrize("license_id", [NOT_FREE, "cc-by-nc-4.0"])
def test_texts_on_data_that_are_not_free(hub: LocalHub, tmp_path: Path, license_id: str) -> None:
    """They go to a private repository, or to a public one only with their licence named; another name does not do."""
    run = run_of(tmp_path / "run", with_texts=True, license_id=license_id)
    for named, words in ((None, "name the licence that you publish them under:"), ("mit", "the licence of the cases")):
        with pytest.raises(BadInput, match=words):
            send(hub, replace(run, texts_license=named), Target(RESULTS, private=False), cache=tmp_path / "cache")

    assert state(hub, RESULTS) is None
    assert send(hub, run, Target("org/private"), cache=tmp_path / "cache").private
    named_right = replace(run, texts_license=license_id)
    assert not send(hub, named_right, Target(RESULTS, private=False), cache=tmp_path / "cache").private


@pytest.mark.parametrize(("license_id", "stated"), [(None, "unknown"), ("other", "other")])
def test_texts_on_data_without_a_licence_are_private(
    hub: LocalHub, tmp_path: Path, license_id: str | None, stated: str
) -> None:
    """A licence that says nothing cannot be named either."""
    run = replace(run_of(tmp_path / "run", with_texts=True, license_id=license_id), texts_license=stated)
    with pytest.raises(BadInput, match=f"cases whose licence is {stated}: publish it to a private repository"):
        send(hub, run, Target(RESULTS, private=False), cache=tmp_path / "cache")

    assert send(hub, run, Target(RESULTS), cache=tmp_path / "cache").private


def test_without_texts_results_may_be_public(hub: LocalHub, tmp_path: Path) -> None:
    """Ids, decisions and scores on non-commercial data are free to publish, and so are texts on free data."""
    for number, run in enumerate(
        (run_of(tmp_path / "nc", license_id=NOT_FREE), run_of(tmp_path / "by", with_texts=True))
    ):
        assert not send(hub, run, Target(f"org/r{number}", private=False), cache=tmp_path / "cache").private


def test_results_on_held_out_cases_never_become_public(hub: LocalHub, tmp_path: Path) -> None:
    """Not even scores of held-out cases go where everyone can read."""
    folder = run_folder(tmp_path)
    digests = {name: value for name, value in read_digests(folder).items() if name not in ("format", "files")}
    write_digests(folder, {**digests, "splits": {"train": "train", "held_out": "test"}})
    run = publication_of(folder)

    with pytest.raises(BadInput, match=r"holds held-out cases \(split test\)"):
        send(hub, run, Target(RESULTS, private=False), cache=tmp_path / "cache")

    assert state(hub, RESULTS) is None
    assert send(hub, run, Target(RESULTS), cache=tmp_path / "cache").private


def test_texts_of_unknown_splits_are_private(hub: LocalHub, tmp_path: Path) -> None:
    """A run that keeps texts and does not tell its cases' splits may hold held-out ones."""
    folder = run_folder(tmp_path, with_texts=True)
    digests = {name: value for name, value in read_digests(folder).items() if name not in ("format", "files")}
    write_digests(folder, {**digests, "splits": {}})

    with pytest.raises(BadInput, match="holds texts and does not say of which splits its cases are"):
        send(hub, publication_of(folder), Target(RESULTS, private=False), cache=tmp_path / "cache")


def test_a_run_does_not_go_into_a_mirror(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """A mirror's repository is no place for results."""
    send(hub, mirror_of(build_tiny(tmp_path).folder), Target(RESULTS), cache=tmp_path / "cache")

    with pytest.raises(BadInput, match="expected an empty repository or a results dataset, found a mirror"):
        send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")


@pytest.mark.parametrize("path", ["notes.md", "README.md"])
def test_a_repository_with_other_files_is_refused(
    hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path, path: str
) -> None:
    """What holds something that is not ours, be it only a card, is no place for results."""
    make_repo(hub, RESULTS)
    commit_file(hub, RESULTS, path, "---\nlicense: mit\n---\n# Mine\n")

    with pytest.raises(BadInput, match="expected an empty repository or a results dataset, found files that are not"):
        send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")


def test_a_run_changed_since_it_was_verified_is_refused(hub: LocalHub, tmp_path: Path) -> None:
    """A file that changes between verifying and sending stops before anything is committed."""
    folder = run_folder(tmp_path)
    run = publication_of(folder)
    (folder / "scores.parquet").write_bytes(b"PAR1")

    with pytest.raises(DigestMismatch, match=r"scores\.parquet: was changed since it was verified"):
        send(hub, run, Target(RESULTS), cache=tmp_path / "cache")

    found = state(hub, RESULTS)
    assert found is not None
    assert ("initial commit",) == found.titles


def test_one_pull_request_for_a_run(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """A proposed run is proposed once; another run is another pull request."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    proposal = Target(RESULTS, create_pr=True)

    urls = [send(hub, run, proposal, cache=tmp_path / "cache").url for run in (runs[1], runs[1], runs[2], runs[1])]

    found = state(hub, RESULTS)
    assert found is not None
    assert [1, 1, 2, 1] == [int(url.rpartition("/")[2]) for url in urls]
    assert (2, 2) == (len(found.titles), len(found.proposals))


def test_a_proposed_run_is_not_proposed_again_when_main_gains_another(
    hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path
) -> None:
    """The card that a pull request brings is an older one by then, but the run is there."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    proposal = Target(RESULTS, create_pr=True)
    first = send(hub, runs[1], proposal, cache=tmp_path / "cache")
    send(hub, runs[2], Target(RESULTS), cache=tmp_path / "cache")

    assert first == replace(send(hub, runs[1], proposal, cache=tmp_path / "cache"), sent=first.sent)


def test_a_closed_pull_request_proposes_nothing(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """Once its pull request was closed, a run is proposed anew."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    proposal = Target(RESULTS, create_pr=True)
    send(hub, runs[1], proposal, cache=tmp_path / "cache")
    make_api(hub.endpoint, TOKEN).change_discussion_status(RESULTS, 1, "closed", repo_type="dataset")

    assert send(hub, runs[1], proposal, cache=tmp_path / "cache").url.endswith("/discussions/2")


def test_a_tag_holds_a_run_whatever_card_lies_beside_it(
    hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path
) -> None:
    """Another version words the card otherwise; the same run under its tag is still there, and nothing is sent."""
    send(hub, runs[0], Target(RESULTS), cache=tmp_path / "cache")
    api, words = make_api(hub.endpoint, TOKEN), card(hub).replace("Check it", "Verify it")
    publish_files(api, RESULTS, {"README.md": words.encode()}, message="another version's words")
    api.create_tag(RESULTS, tag="v1", repo_type="dataset")

    again = send(hub, runs[0], Target(RESULTS, tag="v1"), cache=tmp_path / "cache")

    assert (0, "v1", words) == (again.sent, again.tag, card(hub))


def test_every_commit_loads(hub: LocalHub, runs: list[ResultsPublication], tmp_path: Path) -> None:
    """load_dataset gives the runs of each commit, by its id or its tag, in all four configs."""
    names = [only(run).run_id for run in runs]
    for number, run in enumerate(runs):
        send(hub, run, Target(RESULTS, tag=f"v{number}"), cache=tmp_path / "cache")
    commits = history(hub, RESULTS)[1:]

    loaded = load_from_hub(hub, RESULTS, [*commits, "v0", "main"], token=TOKEN, home=tmp_path / "home")

    expected = [sorted(names[: number + 1]) for number in (0, 1, 2, 0, 2)]
    assert [dict.fromkeys(CONFIGS, run_ids) for run_ids in expected] == list(loaded.values())
