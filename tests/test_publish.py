"""Publishing a mirror: what comes onto the Hub and how, what is left alone, and what stops it half-way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.dataset.digests import folder_digest, read_digests
from builder.errors import BadInput, DigestMismatch
from builder.hub.check import check_mirror
from builder.hub.client import make_api
from builder.hub.publication import Target
from builder.hub.publish import preview
from tests.local_hub import LocalHub
from tests.mirrors import DRUG_SAFETY, build, change_rows, remake_digests
from tests.publishing import (
    MIRROR,
    TOKEN,
    commit_file,
    commit_message,
    head_of,
    methods,
    mirror_of,
    reader_of,
    send,
    state,
    tag_message,
)
from tests.trees import write_tree

CASES = 2


@pytest.fixture(scope="module")
def two_panels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of two panels, one more than `built` has."""
    folder = tmp_path_factory.mktemp("two")
    tree = write_tree(folder / "source", CASES)
    return build(tree, folder / "mirror", panels=["drug_safety", "health_equity"]).folder


def test_one_commit_then_the_tag(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A mirror arrives whole in one commit on a private repository, with the tag at it; both name its digest."""
    published = send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    digest = folder_digest(built)
    title = f"Mirror of {CASES} cases, folder digest {digest[:12]}"
    named = f"folder digest sha256:{digest}\ndataset_sha256 {read_digests(built)['dataset_sha256']}"
    listed = {name: about["digest"].removeprefix("sha256:") for name, about in read_digests(built)["files"].items()}
    assert ("initial commit", title) == found.titles
    assert listed | {"digests.json": digest} == {k: v for k, v in found.files.items() if k != ".gitattributes"}
    assert {"v1": 1} == found.tags
    assert (named, named) == (commit_message(hub, MIRROR), tag_message(hub, MIRROR, "v1"))
    assert found.private
    assert (len(listed) + 1, 0, True) == (published.sent, published.removed, published.created)


def test_what_was_published_verifies(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """Verifying the repository by its digests finds nothing, and the folder digest is the local one."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    verified = check_mirror(head_of(hub, MIRROR), reader_of(hub, tmp_path / "other"), expect=folder_digest(built))
    assert () == verified.findings


def test_the_message_is_the_commits(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """--message is the first line of the commit; the digests stay below it."""
    send(hub, mirror_of(built, message="A first mirror"), Target(MIRROR), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    assert "A first mirror" == found.titles[-1]
    assert commit_message(hub, MIRROR).startswith(f"folder digest sha256:{folder_digest(built)}")


@pytest.mark.parametrize("tag", [None, "v1"], ids=["no tag", "tag"])
def test_again_changes_nothing(hub: LocalHub, built: Path, tmp_path: Path, tag: str | None) -> None:
    """The same mirror once more is only looked at: nothing is sent but questions."""
    send(hub, mirror_of(built), Target(MIRROR, tag=tag), cache=tmp_path / "cache")
    before = state(hub, MIRROR)
    hub.log.clear()

    published = send(hub, mirror_of(built), Target(MIRROR, tag=tag), cache=tmp_path / "other")

    assert before == state(hub, MIRROR)
    assert {"GET", "HEAD"} == set(methods(hub))
    assert (0, 0, False) == (published.sent, published.removed, published.created)


def test_a_tag_can_come_later(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """What is on main already only gets its tag, without another commit."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    assert (2, {"v1": 1}) == (found.commits, found.tags)


def test_vanished_files_go_in_the_same_commit(hub: LocalHub, built: Path, two_panels: Path, tmp_path: Path) -> None:
    """A mirror with a panel less: its file is gone in that very commit; a file that somebody else added stays."""
    send(hub, mirror_of(two_panels), Target(MIRROR), cache=tmp_path / "cache")
    commit_file(hub, MIRROR, "notes.md")

    published = send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    kept = {".gitattributes", "digests.json", "notes.md", *read_digests(built)["files"]}
    assert kept == set(found.files)
    assert 4 == found.commits
    assert 1 == published.removed


def test_a_commit_of_somebody_else_in_between(hub: LocalHub, built: Path, two_panels: Path, tmp_path: Path) -> None:
    """A commit that comes between reading and committing is built upon, not overwritten."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    send(hub, mirror_of(two_panels), Target(MIRROR, tag="v2"), cache=tmp_path / "cache", on_step=at_commit(hub))

    found = state(hub, MIRROR)
    assert found is not None
    assert ["Add notes.md", "Mirror of 4 cases"] == [title.partition(",")[0] for title in found.titles[-2:]]
    assert (4, {"v2": 3}) == (found.commits, found.tags)
    assert "notes.md" in found.files
    assert [412, 200] == [line["status"] for line in hub.log if "/commit/main" in line["path"]][-2:]


def at_commit(hub: LocalHub, path: str = "notes.md") -> Callable[[str], None]:
    """Return an `on_step` that has somebody else commit a file just before our first commit."""
    left = [path]

    def on_step(step: str) -> None:
        if step.startswith("committing") and left:
            commit_file(hub, MIRROR, left.pop())

    return on_step


def test_a_tag_is_never_moved(hub: LocalHub, built: Path, two_panels: Path, tmp_path: Path) -> None:
    """A tag that stands for another mirror stops before anything is sent."""
    send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")
    before = state(hub, MIRROR)
    hub.log.clear()

    with pytest.raises(BadInput, match=r"the tag v1 stands for other content \(commit [0-9a-f]{12}\)"):
        send(hub, mirror_of(two_panels), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")

    assert before == state(hub, MIRROR)
    assert {"GET", "HEAD"} == set(methods(hub))


def test_a_branch_of_the_same_name_is_not_the_tag(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """Where a branch holds the mirror and a tag of its name does not, the tag stands for other content."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")
    api = make_api(hub.endpoint, TOKEN)
    first = api.list_repo_commits(MIRROR, repo_type="dataset")[-1].commit_id
    api.create_tag(MIRROR, tag="v1", revision=first, repo_type="dataset")
    api.create_branch(MIRROR, branch="v1", repo_type="dataset")

    with pytest.raises(BadInput, match="the tag v1 stands for other content"):
        send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")


def test_a_tag_at_an_edited_card_is_other_content(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A mirror's card is part of it: a tag on the same data with a card that somebody edited is not this mirror's."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")
    commit_file(hub, MIRROR, "README.md", "---\nlicense: cc-by-4.0\n---\nEdited.\n")
    make_api(hub.endpoint, TOKEN).create_tag(MIRROR, tag="v1", repo_type="dataset")

    with pytest.raises(BadInput, match="the tag v1 stands for other content"):
        send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")


def test_what_was_not_read_back_gets_no_tag(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A tag is never moved, so it comes last: as long as the card cannot be read back there is none."""
    fault = hub.fault(method="HEAD", path="/resolve/.*README", status=403, times=9)
    with pytest.raises(BadInput, match="your token may not do this"):
        send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")
    before = state(hub, MIRROR)
    hub.faults.remove(fault)

    assert 0 == send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache").sent

    after = state(hub, MIRROR)
    assert before is not None
    assert after is not None
    assert ({}, {"v1": 1}, before.files) == (before.tags, after.tags, after.files)


def test_a_tag_at_the_same_content_is_enough(hub: LocalHub, built: Path, two_panels: Path, tmp_path: Path) -> None:
    """An old release published again is there under its tag: main, which moved on, is not turned back."""
    first = send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")
    send(hub, mirror_of(two_panels), Target(MIRROR, tag="v2"), cache=tmp_path / "cache")
    before = state(hub, MIRROR)

    again = send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")

    assert before == state(hub, MIRROR)
    assert (first.commit, 0) == (again.commit, again.sent)


@pytest.mark.parametrize(("asked", "private"), [(None, True), (True, True), (False, False)])
def test_a_new_repository_is_private_unless_asked(
    hub: LocalHub, built: Path, tmp_path: Path, asked: bool | None, private: bool
) -> None:
    """Without --public nobody else can read what was published."""
    published = send(hub, mirror_of(built), Target(MIRROR, private=asked), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    assert (private, private) == (found.private, published.private)


def test_one_pull_request(hub: LocalHub, built: Path, two_panels: Path, tmp_path: Path) -> None:
    """--create-pr leaves main as it is; the same once more finds that pull request."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")
    proposal = Target(MIRROR, create_pr=True)

    first = send(hub, mirror_of(two_panels), proposal, cache=tmp_path / "cache")
    again = send(hub, mirror_of(two_panels), proposal, cache=tmp_path / "other")

    found = state(hub, MIRROR)
    assert found is not None
    assert (2, 3, 1) == (len(found.titles), found.commits, len(found.proposals))
    assert read_digests(two_panels)["files"].keys() <= found.proposals[0].keys()
    assert first.url == again.url == f"{hub.endpoint}/datasets/{MIRROR}/discussions/1"
    assert (first.commit, 0) == (again.commit, again.sent)


def test_what_is_read_back_must_be_what_was_sent(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A Hub that states another digest for a file than was sent is found out."""
    send(hub, mirror_of(built), Target("org/twin"), cache=tmp_path / "cache")
    tree = f"/api/datasets/org/twin/tree/{head_of(hub, 'org/twin').commit}"
    entries = json.loads(ask(hub, f"{tree}?recursive=true"))
    (wrong,) = (entry for entry in entries if entry["path"] == DRUG_SAFETY)
    wrong["lfs"]["oid"] = "0" * 64
    hub.fault(path=f"{MIRROR}/tree/", after=1, times=100, status=200, body=json.dumps(entries))

    with pytest.raises(DigestMismatch, match=f"does not hold what was sent: {DRUG_SAFETY}"):
        send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")


def ask(hub: LocalHub, path: str) -> bytes:
    """Return what the Hub answers."""
    from huggingface_hub import get_session

    return bytes(get_session().get(hub.endpoint + path, headers={"Authorization": f"Bearer {TOKEN}"}).content)


def test_a_card_that_comes_back_changed_is_not_believed(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A card whose bytes are not those of its git id stops; once they are right again, so is the next try."""

    def tamper(step: str) -> None:
        if step == "reading back":
            path = stored_card(hub)
            path.write_bytes(path.read_bytes().replace(b"Bedside", b"Badside"))

    with pytest.raises(BadInput, match=r"README\.md came with other bytes than the Hub says it has"):
        send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache", on_step=tamper)

    stored_card(hub).write_bytes((built / "README.md").read_bytes())
    assert 0 == send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache").sent


def stored_card(hub: LocalHub) -> Path:
    """Return where the Hub keeps the mirror's card."""
    found = state(hub, MIRROR)
    if found is None:
        raise ValueError(MIRROR)
    return Path(hub.store.blob_path(found.files["README.md"]))


def test_a_folder_changed_since_it_was_verified_is_refused(hub: LocalHub, mirror: Path, tmp_path: Path) -> None:
    """A file, or the digests, that change between verifying and sending stop before anything is committed."""
    publication = mirror_of(mirror)
    change_rows(mirror, DRUG_SAFETY, lambda rows: rows[0].update(prompt="Another?"))

    with pytest.raises(DigestMismatch, match="was changed since it was verified"):
        send(hub, publication, Target(MIRROR), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    assert ("initial commit",) == found.titles


def test_digests_changed_since_they_were_verified_are_refused(mirror: Path) -> None:
    """New digests for a changed file do not help: they are not those that were verified."""
    from builder.hub.mirrors import mirror_publication

    verified = folder_digest(mirror)
    remake_digests(mirror, n_cases=3)

    with pytest.raises(DigestMismatch, match="was changed since it was verified"):
        mirror_publication(mirror, verified=verified)


def test_a_preview_changes_nothing(hub: LocalHub, built: Path) -> None:
    """What publishing would do is told without a repository being made."""
    seen = preview(make_api(hub.endpoint, TOKEN), mirror_of(built), Target(MIRROR, tag="v1"))

    assert (None, True) == (seen.head, seen.private)
    assert {"digests.json", *read_digests(built)["files"]} == set(seen.missing.files)
    assert state(hub, MIRROR) is None


@pytest.mark.parametrize("path", ["LICENSE", "digests.json", DRUG_SAFETY])
def test_what_others_broke_is_put_right(hub: LocalHub, built: Path, tmp_path: Path, path: str) -> None:
    """A file of the mirror that somebody else overwrote is replaced by the right one, and nothing else is sent."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")
    before = state(hub, MIRROR)
    text = (
        "Not ours.\n" if path != "digests.json" else (built / path).read_text().replace('"n_cases": 2', '"n_cases": 3')
    )
    commit_file(hub, MIRROR, path, text)

    published = send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    after = state(hub, MIRROR)
    assert before is not None
    assert after is not None
    assert before.files == after.files
    assert 1 == published.sent
