"""What was changed in a repository of ours is found: fast by its digests, and what only rows show in full."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.dataset.digests import Verified, folder_digest
from builder.hub.client import make_api
from builder.hub.place import HubPlace
from eval.results.anywhere import Depth, verify_place
from tests.at_hub import MIRROR, RESULTS, TOKEN, changed, client_at, make_hub, put, run_names
from tests.local_hub import LocalHub
from tests.mirrors import DRUG_SAFETY, change_card, change_rows, remake_digests
from tests.tampering import another, tamper

pytestmark = pytest.mark.slow

WHOLE = Depth(full=True)


@pytest.fixture(scope="module")
def hub(made: Path) -> Iterator[LocalHub]:
    """A Hub with the mirror and the results; the client has an empty cache."""
    with make_hub() as running, client_at(running, made / "cache"):
        put(running, made / "mirror", MIRROR, cache=made / "cache")
        put(running, made / "out", RESULTS, cache=made / "cache")
        yield running


def look(hub: LocalHub, place: HubPlace, depth: Depth | None = None, *, expect: str | None = None) -> Verified:
    """Verify a repository."""
    return verify_place(place, depth, expect=expect, make_api=lambda: make_api(hub.endpoint, TOKEN))


def named(verified: Verified) -> set[tuple[str, str]]:
    """Return what was found, by file and what."""
    return {(finding.file, finding.what) for finding in verified.findings}


def copies(made: Path, to: Path) -> tuple[Path, Path]:
    """Return a mirror and a results folder to change."""
    return Path(shutil.copytree(made / "mirror", to / "mirror")), Path(shutil.copytree(made / "out", to / "out"))


# -- mirrors


def _parquet(path: Path) -> bytes:
    """Return another Parquet file of the same form: its rows in another order."""
    change_rows(path.parents[2], DRUG_SAFETY, lambda rows: rows.reverse())
    return path.read_bytes()


MIRROR_TAMPERED: dict[str, tuple[Callable[[Path], dict[str, bytes | None]], tuple[str, str]]] = {
    "changed Parquet": (lambda mirror: {DRUG_SAFETY: _parquet(mirror / DRUG_SAFETY)}, (DRUG_SAFETY, "digest")),
    "shorter Parquet": (lambda mirror: {DRUG_SAFETY: (mirror / DRUG_SAFETY).read_bytes()[:-1]}, (DRUG_SAFETY, "size")),
    "missing Parquet": (lambda _: {DRUG_SAFETY: None}, (DRUG_SAFETY, "missing")),
    "missing licence": (lambda _: {"LICENSE": None}, ("LICENSE", "missing")),
    "stray Parquet": (
        lambda mirror: {"data/drug_safety/train-00001-of-00002.parquet": (mirror / DRUG_SAFETY).read_bytes()},
        ("data/drug_safety/train-00001-of-00002.parquet", "stray file"),
    ),
    "stray text": (lambda _: {"NEWS.md": b"New.\n"}, ("NEWS.md", "stray file")),
    "stray script": (lambda _: {"bedside-bench.py": b"\n"}, ("bedside-bench.py", "stray file")),
    "changed card": (
        lambda mirror: {"README.md": (mirror / "README.md").read_bytes().replace(b"clinical", b"CLINICAL")},
        ("README.md", "digest"),
    ),
    "missing card": (lambda _: {"README.md": None}, ("README.md", "missing")),
    "no digests": (lambda _: {"digests.json": b"{}\n"}, ("digests.json", "not readable")),
    "digests laid out otherwise": (
        lambda mirror: {"digests.json": (mirror / "digests.json").read_bytes() + b"\n"},
        ("digests.json", "layout"),
    ),
    "digests of another file": (
        lambda mirror: {"digests.json": (mirror / "digests.json").read_bytes().replace(b"sha256:", b"sha256:00", 1)},
        ("digests.json", "not readable"),
    ),
    "another kind": (
        lambda mirror: {"digests.json": (mirror / "digests.json").read_bytes().replace(b'"mirror"', b'"run"')},
        ("digests.json", "kind"),
    ),
}


@pytest.mark.parametrize("how", MIRROR_TAMPERED)
def test_a_mirror_tampered_with_is_found_fast(hub: LocalHub, made: Path, tmp_path: Path, how: str) -> None:
    """Whatever was committed to a mirror beside or over its files is named, without a look at any data."""
    tampering, finding = MIRROR_TAMPERED[how]
    mirror, _ = copies(made, tmp_path)
    place = changed(hub, MIRROR, how.replace(" ", "-"), tampering(mirror))
    hub.log.clear()
    verified = look(hub, place)

    assert finding in named(verified)
    assert [] == [line["path"] for line in hub.log if ".parquet" in line["path"]]
    if how != "another kind":  # which is verified as a run, and is none
        assert finding[0] in {found.file for found in look(hub, place, WHOLE).findings}


def test_rows_changed_with_new_digests_are_found_in_full(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """Where digests.json was made again for another row, only the rows give it away; or someone else's digest."""
    mirror, _ = copies(made, tmp_path)
    change_rows(mirror, DRUG_SAFETY, lambda rows: rows[0].update(prompt="another"))
    remake_digests(mirror)
    files: dict[str, bytes | Path | None] = {name: mirror / name for name in (DRUG_SAFETY, "digests.json")}
    place = changed(hub, MIRROR, "remade", files)

    assert look(hub, place).ok
    assert (DRUG_SAFETY, "rows of the panel") in named(look(hub, place, WHOLE))
    assert {("digests.json", "folder digest")} == named(look(hub, place, expect=folder_digest(made / "mirror")))


def test_a_card_that_says_something_else_is_found_in_full(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """A card with another licence, and digests made for it, is held against the rest of the folder."""
    mirror, _ = copies(made, tmp_path)
    change_card(mirror, lambda text: text.replace("license: cc-by-4.0", "license: mit", 1))
    place = changed(hub, MIRROR, "licence", {name: mirror / name for name in ("README.md", "digests.json")})

    assert look(hub, place).ok
    assert "README.md" in {finding.file for finding in look(hub, place, WHOLE).findings}


# -- results


def _moved(run: Path, to: str) -> dict[str, bytes | None]:
    """Return a run's files under another name."""
    files = {path.name: path.read_bytes() for path in run.iterdir()}
    gone: dict[str, bytes | None] = {f"runs/{run.name}/{name}": None for name in files}
    return gone | {f"runs/{to}/{name}": content for name, content in files.items()}


RESULTS_TAMPERED: dict[str, tuple[Callable[[Path], dict[str, bytes | None]], tuple[str, str]]] = {
    "changed table": (
        lambda run: {f"runs/{run.name}/scores.parquet": (run / "answers.parquet").read_bytes()},
        ("runs/RUN/scores.parquet", "size"),
    ),
    "missing table": (
        lambda run: {f"runs/{run.name}/decisions.parquet": None},
        ("runs/RUN/decisions.parquet", "missing"),
    ),
    "missing digests": (lambda run: {f"runs/{run.name}/digests.json": None}, ("runs/RUN/digests.json", "missing")),
    "stray table": (
        lambda run: {f"runs/{run.name}/more.parquet": (run / "run.parquet").read_bytes()},
        ("runs/RUN/more.parquet", "stray file"),
    ),
    "stray between the runs": (lambda _: {"runs/NOTES.md": b"-\n"}, ("runs/NOTES.md", "stray")),
    "stray at the root": (lambda _: {"scores.csv": b"-\n"}, ("scores.csv", "stray")),
    "renamed run": (
        lambda run: _moved(run, "2026-01-01-gpt-00000000"),
        ("runs/2026-01-01-gpt-00000000/digests.json", "run_id"),
    ),
    "unlisted run": (
        lambda run: {"README.md": (run.parents[1] / "README.md").read_bytes().replace(b"| 2026", b"| 1026", 1)},
        ("README.md", "table of runs"),
    ),
    "removed run": (
        lambda run: {f"runs/{run.name}/{path.name}": None for path in run.iterdir()},
        ("README.md", "table of runs"),
    ),
    "card that loads other files": (
        lambda run: {
            "README.md": (run.parents[1] / "README.md")
            .read_bytes()
            .replace(b"runs/*/run", b"https://elsewhere.org/run")
        },
        ("README.md", "front matter"),
    ),
    "another card": (lambda _: {"README.md": b"---\nlicense: mit\n---\n# Mine\n"}, ("README.md", "generated part")),
    "no card": (lambda _: {"README.md": None}, ("README.md", "missing")),
}


@pytest.mark.parametrize("how", RESULTS_TAMPERED)
def test_results_tampered_with_are_found_fast(hub: LocalHub, made: Path, how: str) -> None:
    """Whatever was committed to results beside or over their files is named, without a look at any table."""
    tampering, (file, what) = RESULTS_TAMPERED[how]
    run = made / "out" / "runs" / run_names(made)[0]
    place = changed(hub, RESULTS, how.replace(" ", "-"), tampering(run))
    hub.log.clear()
    verified = look(hub, place)

    assert (file.replace("RUN", run.name), what) in named(verified)
    assert [] == [line["path"] for line in hub.log if ".parquet" in line["path"]]
    assert not look(hub, place, WHOLE).ok


def test_scores_changed_with_new_digests_are_found_in_full(hub: LocalHub, made: Path, tmp_path: Path) -> None:
    """A score that its decisions do not give is found where every number is computed again, or against a digest."""
    run = copies(made, tmp_path)[1] / "runs" / run_names(made)[0]
    true = folder_digest(run)
    tamper(run, "scores", 0, "score", another)
    at = f"runs/{run.name}/"
    place = changed(hub, RESULTS, "score", {f"{at}{name}": run / name for name in ("scores.parquet", "digests.json")})

    assert look(hub, place).ok
    assert f"{at}scores.parquet" in {finding.file for finding in look(hub, place, WHOLE).findings}
    assert {("runs", "folder digest")} == named(look(hub, place, expect=true))


def test_a_score_changed_in_the_card_is_found_in_full(hub: LocalHub, made: Path) -> None:
    """The card's table is what the runs make it."""
    card = (made / "out" / "README.md").read_bytes()
    place = changed(hub, RESULTS, "table", {"README.md": card.replace(b"| 0.", b"| 1.", 1)})

    assert look(hub, place).ok
    assert {("README.md", "generated part")} == named(look(hub, place, WHOLE))


def test_what_people_added_to_the_card_of_results_holds(hub: LocalHub, made: Path) -> None:
    """Words below the generated part, a licence file and the Hub's own file are no tampering."""
    card = (made / "out" / "README.md").read_bytes() + b"\n## Contact\n\nUs.\n"
    place = changed(hub, RESULTS, "words", {"README.md": card, "LICENSE.txt": b"CC-BY-4.0\n", ".gitattributes": b"\n"})

    assert look(hub, place).ok
    assert look(hub, place, WHOLE).ok
