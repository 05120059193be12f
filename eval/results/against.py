"""A dataset against the data it names: runs against their mirror, a mirror against its source, wherever those are.

In: a folder that was verified by itself. Out: findings, and the places looked at. What must agree is `link`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bedside_bench import PUBLIC_SPLIT
from builder.dataset.digests import DIGESTS_NAME, Finding, read_digests
from builder.errors import BadInput
from builder.healthbench.against import build_like, check_source_file
from builder.healthbench.names import config_of
from builder.hub.place import HubPlace
from builder.mirror import build_mirror
from builder.tree.sources import Source, open_source
from eval.results.card import RUNS, run_folders, source_of
from eval.results.link import check_link, check_source

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def of_runs(
    folder: Path, given: Path | HubPlace | None, make_api: Callable[[], HfApi]
) -> tuple[list[Finding], list[str]]:
    """Return where runs differ from the data they name (or from those given), and which data that were.

    Raises:
        BadInput: a run names no data, or there are none at that place.
    """
    findings, against = [], []
    with ExitStack() as stack:
        mirrors: dict[tuple[str, ...], Path] = {}
        root = (folder / RUNS).is_dir()
        for run in run_folders(folder) if root else [folder]:
            digests = read_digests(run)
            data = given or _named(run, digests)
            key = (str(data), *(str(digests.get(name)) for name in ("splits", "dataset_sha256")))  # see `_built`
            if key not in mirrors:
                mirrors[key] = stack.enter_context(_mirror_at(data, digests, make_api))
            at = f"{RUNS}/{run.name}/" if root else ""
            found = check_link(run, mirrors[key])
            findings += [_at(_named_as(finding, mirrors[key], str(data)), at) for finding in found]
            against.append(str(data))
    return findings, against


def _at(finding: Finding, folder: str) -> Finding:
    own = not Path(finding.file).is_absolute() and "/" not in finding.file
    return replace(finding, file=f"{folder}{finding.file}") if own else finding


def _named_as(finding: Finding, folder: Path, what: str) -> Finding:
    """Return a finding that names data as a person does, not by the place where a copy of them lies."""
    inside = finding.file.removeprefix(f"{folder}/")
    return finding if inside == finding.file else replace(finding, file=f"{what}/{inside}")


def _named(run: Path, digests: dict[str, Any]) -> HubPlace:
    """Return the data that a run names.

    Raises:
        BadInput: it names none.
    """
    source = source_of(digests)
    if not source.get("repo"):
        raise BadInput(
            f"{run.name}: names no Hub dataset that it was made on; give the mirror with --data (a run made on "
            "namespace/name names its repository and commit)"
        )
    return HubPlace(source["repo"], source.get("revision"))


@contextmanager
def _mirror_at(data: Path | HubPlace, digests: dict[str, Any], make_api: Callable[[], HfApi]) -> Iterator[Path]:
    """Give the mirror at a place; where a source tree is, one built from it with the splits that a run states."""
    from builder.hub.snapshot import fetch_snapshot

    if isinstance(data, Path):
        folder, where = data, str(data)
    else:
        snapshot = fetch_snapshot(make_api(), data)
        folder, where = snapshot.path, HubPlace(data.repo, snapshot.commit).address
    if (folder / DIGESTS_NAME).is_file():
        yield folder
        return
    with TemporaryDirectory(prefix="bedside-bench-") as temporary:
        if folder.is_file():
            mirror = build_like(digests, folder, Path(temporary) / "mirror")
            built = None if isinstance(mirror, list) else mirror
        else:
            built = _built(open_source(where), digests, Path(temporary))
        if built is None:
            raise BadInput(f"{data}: expected a mirror or a source without errors; see bedside-bench check {data}")
        yield built


def _built(source: Source, digests: dict[str, Any], folder: Path) -> Path | None:
    """Build a source with the splits that a run states: all its panels, or the run's where those give its digest.

    None where the source has errors.
    """
    splits = digests.get("splits") or {PUBLIC_SPLIT: PUBLIC_SPLIT}
    found: list[Path] = []
    for panels in (None, [panel["id"] for panel in digests["panels"]]):
        built = build_mirror(
            source,
            folder / f"mirror-{len(found)}",
            panels=panels,
            split_name=next((name for name, own in splits.items() if own == PUBLIC_SPLIT), PUBLIC_SPLIT),
            held_out=any(own != PUBLIC_SPLIT for own in splits.values()),
            license_id=None if source.license else source_of(digests).get("license"),
        )
        if built.report.ok:
            found.append(built.folder)
        if built.dataset_sha256 == digests.get("dataset_sha256"):
            return built.folder
    return found[0] if found else None


def of_mirror(folder: Path, given: Path | HubPlace | None, *, what: str) -> tuple[list[Finding], list[str]]:
    """Return where a mirror differs from the source it names (or from the one given), and which source that was.

    Args:
        what: what a person calls the mirror.

    Raises:
        BadInput: it names none, or there is none at that place.
    """
    digests = read_digests(folder)
    if config_of(digests):
        return _of_examples(folder, given, what=what)
    source = digests["source"]
    named = HubPlace(source["repo"], source["revision"]) if source["repo"] else None
    data = given or named
    if data is None:
        raise BadInput(f"{what}: names no Hub dataset that it was built from; give its source with --data")
    found = check_source(folder, open_source(str(data) if isinstance(data, Path) else data.address))
    return [_named_as(finding, folder, what) for finding in found], [str(data)]


def _of_examples(folder: Path, given: Path | HubPlace | None, *, what: str) -> tuple[list[Finding], list[str]]:
    """Return where a HealthBench mirror differs from the JSONL file given, which alone can tell.

    Raises:
        BadInput: none was given.
    """
    if not isinstance(given, Path) or given.is_dir():
        found = "none" if given is None else str(given)
        raise BadInput(
            f"{what}: expected the JSONL file that it was built from, found {found}; give it with --data FILE"
        )
    findings = [replace(one, file=f"{what}/{one.file}") for one in check_source_file(folder, given)]
    return findings, [str(given)]
