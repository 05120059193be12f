"""Where a dataset is: what a person types is a folder of this machine or a repository of the Hub, never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.errors import BadInput
from builder.hub.place import FoundMirror, HubPlace, check_repo_id, find_mirror, find_place, local_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ON_THE_HUB = {
    "hf://datasets/org/name": HubPlace("org/name"),
    "hf://datasets/org/name@v1.0": HubPlace("org/name", "v1.0"),
    f"hf://datasets/org/name@{COMMIT}": HubPlace("org/name", COMMIT),
    "hf://datasets/org/name@refs/pr/1": HubPlace("org/name", "refs/pr/1"),
    "hf://datasets/org/name@refs%2Fpr%2F1": HubPlace("org/name", "refs/pr/1"),
}
TYPED = {
    "org/name": HubPlace("org/name"),
    "org/my_data-set.2": HubPlace("org/my_data-set.2"),
    "org/name@main": HubPlace("org/name", "main"),
    "org/name@refs/pr/12": HubPlace("org/name", "refs/pr/12"),
}
NEITHER = ["", "name", "./org/name", "/org/name", "org/name/", "org/name/more", "org/name@", "org/name@a b", "ørg/name"]
NO_ADDRESS = ["hf://org/name", "hf://models/org/name", "hf://datasets/name", "hf://datasets/org/name@"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("where", "place"), (TYPED | ON_THE_HUB).items())
def test_a_repository_and_its_revision(where: str, place: HubPlace) -> None:
    """namespace/name, with a branch, tag, commit or pull request after an @, is a place on the Hub."""
    assert place == find_place(where)


@pytest.mark.parametrize("name", ["org/name", "org/name@v1", "name", "hf:"])
def test_an_existing_path_wins(here: Path, name: str) -> None:
    """A folder or file of that name is meant, whatever else it looks like."""
    (here / name).mkdir(parents=True)

    assert Path(name) == find_place(name)
    assert Path(here / name) == find_place(here / name)


def test_a_file_and_a_broken_link_are_paths_too(here: Path) -> None:
    """What is there but no folder is not looked for on the Hub: whoever reads it says what is wrong with it."""
    (here / "org").mkdir()
    (here / "org" / "file").touch()
    (here / "org" / "link").symlink_to("nowhere")

    assert [Path("org/file"), Path("org/link")] == [find_place("org/file"), find_place("org/link")]


@pytest.mark.parametrize(("where", "place"), ON_THE_HUB.items())
def test_an_address_always_means_the_hub(here: Path, where: str, place: HubPlace) -> None:
    """hf://datasets/... is never a folder, though one of that name is there."""
    (here / "org" / "name").mkdir(parents=True)
    (here / where).mkdir(parents=True)

    assert place == find_place(where)


@pytest.mark.parametrize("where", NEITHER)
def test_what_is_neither_is_refused(where: str) -> None:
    """Without such a path, and no repository's id, it is one line that says what was expected."""
    with pytest.raises(BadInput) as refused:
        find_place(where)

    assert f"{where}: expected a folder or a Hub dataset (namespace/name[@revision]), found none" == str(refused.value)


@pytest.mark.parametrize("where", NO_ADDRESS)
def test_another_address_is_refused(where: str) -> None:
    """Models, and addresses without a whole id or revision, are told which form is known."""
    with pytest.raises(BadInput) as refused:
        find_place(where)

    assert f"{where}: expected hf://datasets/namespace/name[@revision]" == str(refused.value)


@pytest.mark.parametrize("place", TYPED.values())
def test_a_place_is_said_as_it_is_typed(here: Path, place: HubPlace) -> None:
    """What a place is printed as finds it again; its address does so beside a folder of the same name as well."""
    assert place == find_place(str(place))
    (here / str(place)).mkdir(parents=True)

    assert place == find_place(place.address)


def test_a_folder_is_a_mirror_without_a_repository(here: Path) -> None:
    """A mirror of this machine has no repository and no commit; nothing named is nothing."""
    (here / "mirror").mkdir()

    assert FoundMirror(Path("mirror"), None, None) == find_mirror("mirror")
    assert (Path("mirror"), None) == (local_folder("mirror"), local_folder(None))


@pytest.mark.parametrize("repo", ["org/name", "a-b.c_d/e-f.g_h"])
def test_a_repository_id_is_namespace_and_name(repo: str) -> None:
    """A whole id is taken as it is."""
    assert repo == check_repo_id(repo)


@pytest.mark.parametrize("repo", ["", "name", "org/name@v1", "org/name/more", "hf://datasets/org/name", "-org/name"])
def test_another_repository_id_is_refused(repo: str) -> None:
    """A publication goes to a repository, not to a name, a revision, an address or an option."""
    with pytest.raises(BadInput) as refused:
        check_repo_id(repo)

    assert f"{repo}: expected a repository such as your-org/bedside-bench, found an address or another form" == str(
        refused.value
    )
