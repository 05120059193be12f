"""What publishing refuses, and how it says so: places, readers and licences that do not fit, and who may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder.dataset.digests import read_digests
from builder.errors import BadInput, BedsideError
from builder.hub.client import LOG_IN, make_api
from builder.hub.publication import Target
from tests.local_hub import LocalHub
from tests.mirrors import add_held_out, build
from tests.publishing import (
    MIRROR,
    READS,
    RESULTS,
    SECOND,
    TOKEN,
    TOKENS,
    UNKNOWN,
    commit_file,
    content,
    head_of,
    make_hub,
    make_repo,
    mirror_of,
    requests,
    run_of,
    send,
    state,
)
from tests.trees import write_json, write_tree


@pytest.fixture(scope="module")
def two_panels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of two panels, one more than `built` has."""
    folder = tmp_path_factory.mktemp("two")
    tree = write_tree(folder / "source", 2)
    return build(tree, folder / "mirror", panels=["drug_safety", "health_equity"]).folder


@pytest.mark.parametrize("private", [True, False])
def test_another_visibility_than_asked_is_refused(hub: LocalHub, built: Path, tmp_path: Path, private: bool) -> None:
    """--private on a public repository, or the reverse, stops; without either the repository is taken as it is."""
    make_repo(hub, MIRROR, private=private)
    asked, found = ("public", "private") if private else ("private", "public")

    with pytest.raises(BadInput, match=f"expected a {asked} repository, found a {found} one"):
        send(hub, mirror_of(built), Target(MIRROR, private=not private), cache=tmp_path / "cache")

    assert private == send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache").private


def test_a_pull_request_needs_a_repository(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """--create-pr makes no repository."""
    with pytest.raises(BadInput, match="no such repository, or hidden from you"):
        send(hub, mirror_of(built), Target(MIRROR, create_pr=True), cache=tmp_path / "cache")

    assert state(hub, MIRROR) is None


def test_a_repository_with_other_files_is_refused(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """What holds something that is not ours is no place for a mirror."""
    make_repo(hub, MIRROR)
    commit_file(hub, MIRROR, "notes.md")
    before = state(hub, MIRROR)

    with pytest.raises(BadInput, match="expected an empty repository or a mirror, found files that are not ours"):
        send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    assert before == state(hub, MIRROR)


def test_a_gitignore_cannot_halve_a_mirror(hub: LocalHub, built: Path, two_panels: Path, tmp_path: Path) -> None:
    """A .gitignore in the repository, by which the client would drop files without a word, is overruled."""
    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")
    commit_file(hub, MIRROR, ".gitignore", "*.parquet\n")

    send(hub, mirror_of(two_panels), Target(MIRROR), cache=tmp_path / "cache")

    found = state(hub, MIRROR)
    assert found is not None
    assert read_digests(two_panels)["files"].keys() <= found.files.keys()


def test_a_mirror_does_not_go_among_results(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A results dataset is no place for a mirror, even one that is proposed."""
    send(hub, run_of(tmp_path), Target(RESULTS), cache=tmp_path / "cache")

    for target in (Target(RESULTS), Target(RESULTS, create_pr=True)):
        with pytest.raises(BadInput, match="expected an empty repository or a mirror, found a results dataset"):
            send(hub, mirror_of(built), target, cache=tmp_path / "cache")


@pytest.mark.parametrize("text", ["---\nlicense: cc-by-4.0\n---\n", "---\nlicense: mit\n---\n\n  \n"])
def test_a_card_without_text_is_fresh(hub: LocalHub, built: Path, tmp_path: Path, text: str) -> None:
    """What the Hub's form for a new repository writes is replaced by our card."""
    make_repo(hub, MIRROR)
    commit_file(hub, MIRROR, "README.md", text)

    send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    assert (built / "README.md").read_bytes() == content(hub, MIRROR, "README.md")


def test_a_card_with_text_is_somebodys(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """A card that somebody wrote is never replaced by ours."""
    make_repo(hub, MIRROR)
    commit_file(hub, MIRROR, "README.md", "---\nlicense: mit\n---\n\n# My data\n")

    with pytest.raises(BadInput, match="expected an empty repository or a mirror"):
        send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")


def test_a_mirror_without_a_licence_is_not_for_everyone(hub: LocalHub, tmp_path: Path) -> None:
    """Without a licence nothing becomes public; a private repository may hold it."""
    tree = write_tree(tmp_path / "source", 1)
    (tree / "LICENSE").unlink()
    (tree / "CITATION.cff").unlink()
    registry = json.loads((tree / "registry.json").read_bytes())
    del registry["license"]
    write_json(tree / "registry.json", registry)
    mirror = build(tree, tmp_path / "mirror", panels=["drug_safety"]).folder

    with pytest.raises(BadInput, match=r"its source names no licence, so it cannot be public; build it again with"):
        send(hub, mirror_of(mirror), Target(MIRROR, private=False), cache=tmp_path / "cache")

    assert state(hub, MIRROR) is None
    assert send(hub, mirror_of(mirror), Target(MIRROR), cache=tmp_path / "cache").private


def test_held_out_cases_never_become_public(hub: LocalHub, tmp_path: Path) -> None:
    """A mirror with held-out cases is refused for a public repository, a new or an old one; private is fine."""
    tree = write_tree(tmp_path / "source", 1)
    add_held_out(tree)
    mirror = build(tree, tmp_path / "mirror", held_out=True, panels=["drug_safety"]).folder
    make_repo(hub, "org/old", private=False)

    for target in (Target(MIRROR, private=False), Target("org/old"), Target("org/old", create_pr=True)):
        with pytest.raises(BadInput, match=r"holds held-out cases \(split test\), which never go into a public"):
            send(hub, mirror_of(mirror), target, cache=tmp_path / "cache")

    assert state(hub, MIRROR) is None
    assert send(hub, mirror_of(mirror), Target(MIRROR), cache=tmp_path / "cache").private


def test_a_repository_made_public_meanwhile_is_named(hub: LocalHub, tmp_path: Path) -> None:
    """Where somebody opens the repository after the last look, the line says at once that it must be closed again."""
    tree = write_tree(tmp_path / "source", 1)
    add_held_out(tree)
    mirror = mirror_of(build(tree, tmp_path / "mirror", held_out=True, panels=["drug_safety"]).folder)

    def open_it(step: str) -> None:
        if step.startswith("committing"):
            make_api(hub.endpoint, TOKEN).update_repo_settings(MIRROR, repo_type="dataset", private=False)

    with pytest.raises(
        BadInput, match=r"was made public while this was sent: make it private again at once \(.*held-out"
    ):
        send(hub, mirror, Target(MIRROR), cache=tmp_path / "cache", on_step=open_it)


NO_TOKEN = f"the Hub does not accept your token: {LOG_IN}"
READS_ONLY = "You don't have the rights to write with this token"
FOREIGN = 'You don\'t have the rights to create a dataset under the namespace "other"'


@pytest.mark.parametrize(
    ("repo", "token", "line"),
    [
        ("org/new", None, NO_TOKEN),
        ("org/private", None, NO_TOKEN),
        ("org/public", None, NO_TOKEN),
        ("org/new", UNKNOWN, NO_TOKEN),
        ("org/public", UNKNOWN, NO_TOKEN),
        ("org/new", READS, READS_ONLY),
        ("org/public", READS, READS_ONLY),
        ("other/new", TOKEN, FOREIGN),
        ("other/private", TOKEN, FOREIGN),
        ("other/public", TOKEN, "You don't have the rights to write in other/public"),
    ],
)
def test_who_may_not_is_told_so(built: Path, tmp_path: Path, repo: str, token: str | None, line: str) -> None:
    """No token, an unknown one, one that only reads, or a foreign namespace: one line, and no token in it."""
    with make_hub(tmp_path / "hub", others={"carol": ["org", "other"]}) as hub:
        for name in ("org/private", "org/public", "other/private", "other/public"):
            make_repo(hub, name, private=name.endswith("private"))
        with pytest.raises(BadInput) as caught:
            send(hub, mirror_of(built), Target(repo), cache=tmp_path / "cache", token=token)

    if line == NO_TOKEN and token is None:
        line = f"you are not logged in: {LOG_IN}"
    elif line != NO_TOKEN:
        line = f"your token may not do this ({line}): writing needs write access to {repo.partition('/')[0]}"
    assert f"{repo}: {line}" == str(caught.value)
    assert_no_token(caught.value)


def assert_no_token(error: BaseException | None) -> None:
    """Fail if any text of an error, or of what caused it, names a token."""
    while error is not None:
        assert not any(token in f"{error} {error!r} {error.args}" for token in (*TOKENS, UNKNOWN))
        error = error.__cause__ or error.__context__


def test_a_gated_repository_says_so(built: Path, tmp_path: Path) -> None:
    """Reading back a card that is gated for this account ends in a line that says how to get access."""
    with make_hub(tmp_path / "hub") as hub:
        send(hub, mirror_of(built), Target("carol/mirror", private=False), cache=tmp_path / "cache", token=SECOND)
        make_api(hub.endpoint, SECOND).update_repo_settings("carol/mirror", repo_type="dataset", gated="auto")
        with pytest.raises(BadInput) as caught:
            send(hub, mirror_of(built), Target("carol/mirror"), cache=tmp_path / "other", token=TOKEN)

    assert (
        f"carol/mirror: digests.json: is gated: ask for access on its page with the account of your token, and {LOG_IN}"
        == str(caught.value)
    )


def test_a_revision_that_is_not_there(hub: LocalHub) -> None:
    """A branch, tag or commit that does not exist is named with its repository."""
    make_repo(hub, MIRROR)

    with pytest.raises(BadInput, match=f"^{MIRROR}@v9: no such branch, tag or commit in this repository$"):
        head_of(hub, MIRROR, "v9")


def test_a_refused_upload_says_why(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """What the storage refuses is told with the Hub's own words, at once, and without a signed address."""
    hub.fault(
        method="PUT", path="/_cdn/upload", times=100, status=403, body="", headers={"X-Error-Message": "Quota exceeded"}
    )

    with pytest.raises(BadInput, match=r"your token may not do this \(Quota exceeded.*\)") as caught:
        send(hub, mirror_of(built), Target(MIRROR), cache=tmp_path / "cache")

    assert "Signature" not in str(caught.value)
    assert 1 == requests(hub).count(f"POST /api/datasets/{MIRROR}/preupload/main")


def test_every_error_is_ours(hub: LocalHub, built: Path, tmp_path: Path) -> None:
    """Whatever the Hub refuses for good, at whichever request, ends in one line of ours without a token."""
    send(hub, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / "cache")
    for number in range(len(hub.log)):
        with make_hub(tmp_path / f"hub{number}") as other, pytest.raises(BedsideError) as caught:
            other.fault(after=number, status=400, body='{"error": "Not like this"}')
            send(other, mirror_of(built), Target(MIRROR, tag="v1"), cache=tmp_path / f"cache{number}")

        assert "\n" not in str(caught.value)
        assert_no_token(caught.value)
