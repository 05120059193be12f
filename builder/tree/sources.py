"""Walk a source tree in the upstream layout, on disk or from the Hub, in dataset order.

In: a folder or a Hub dataset id. Out: the source (registry, licence, where its panels are) and its case files, each
read strictly. Not done here: whether registry, manifests and cases keep the rules (`validate`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bedside_bench import PANEL_IDS, Case
from builder.errors import BadInput
from builder.hub.place import HubPlace, find_place
from builder.rules.problems import Fault, Problem, printable, shown
from builder.tree.licence import LICENCE_HINT, Statement, legal_files, licence_statements, stated_license
from builder.tree.reading import Boundary, folder_fault, read_bytes
from builder.tree.strict_json import parse

REGISTRY: Final = "registry.json"
CASE_ID: Final = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Source:
    """A source tree: `root` holds registry.json, `data` the panel folders; `problems` are those of reading the root.

    `license` is the Hub's lower-case id; `legal` are the files beside the registry that a mirror must carry;
    `revision` is the commit if `kind` is "hub".
    """

    root: Path
    data: Path
    registry: dict[str, Any] | None
    kind: str
    repo: str | None
    revision: str | None
    license: str | None
    legal: tuple[Path, ...]
    problems: tuple[Problem, ...]
    boundary: Boundary

    def path(self, *parts: str) -> str:
        """Return the posix path, relative to the root, of something below the data folder."""
        return "/".join(parts if self.data == self.root else (self.data.name, *parts))


@dataclass(frozen=True, slots=True)
class PanelFolder:
    """One panel as found: the manifest's usable ids in order and once each, and the case files it does not list.

    `manifest` is None without a readable one; then every file is unlisted. `strays` are the other names in `cases/`.
    """

    panel: str
    manifest: dict[str, Any] | None
    case_ids: tuple[str, ...]
    unlisted: tuple[str, ...]
    strays: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def lists_cases(self) -> bool:
        """Whether there is a list that a case file can be missing from."""
        return isinstance((self.manifest or {}).get("case_ids"), list)


@dataclass(frozen=True, slots=True)
class CaseFile:
    """A case file: `case` is its parsed object, not to be trusted while `problems` (of reading it) are there."""

    path: str
    panel: str
    listed: bool
    raw: bytes | None
    case: Case | None
    problems: tuple[Problem, ...]

    @property
    def case_id(self) -> str | None:
        """Return the id that the case gives, else the one its file name gives."""
        own = self.case.get("case_id") if self.case else None
        if isinstance(own, str) and CASE_ID.fullmatch(own):
            return own
        return _named_id(self.path)


def open_source(where: str | Path, *, revision: str | None = None) -> Source:
    """Open a local tree (its root or its data folder), or fetch one from the Hub (`org/name[@revision]`).

    Raises:
        BadInput: there is no such tree, or the Hub cannot be read.
    """
    place = find_place(where)
    if isinstance(place, Path):
        if not place.is_dir():
            raise BadInput(
                f"{where}: expected a source folder or a Hub dataset (namespace/name[@revision]), found a file"
            )
        return _open_folder(place)
    from builder.hub.client import make_api
    from builder.hub.snapshot import SOURCE_PATTERNS, fetch_snapshot

    place = HubPlace(place.repo, revision or place.revision)
    snapshot = fetch_snapshot(make_api(), place, patterns=SOURCE_PATTERNS)
    return _open_folder(snapshot.path, repo=place.repo, revision=snapshot.commit)


def walk(source: Source, *, panels: Sequence[str] | None = None) -> Iterator[CaseFile]:
    """Yield every case file in dataset order: panels, the manifest's order, then unlisted files by name."""
    for panel in PANEL_IDS:
        if panels is None or panel in panels:
            yield from read_panel(source, open_panel(source, panel))


def open_panel(source: Source, panel: str) -> PanelFolder:
    """List one panel's folder and read its manifest."""
    if fault := folder_fault(str(source.data / panel), source.boundary):
        rule = "missing-panel" if fault.rule == "missing-folder" else fault.rule
        missing = Problem(
            "error", rule, source.path(panel), None, None, fault.found, "a folder with this panel's cases"
        )
        return PanelFolder(panel, None, (), (), (), (missing,))
    manifest, problems = _read_object(
        source.data / panel / "manifest.json", source.path(panel, "manifest.json"), source.boundary
    )
    ids = _usable_ids(manifest)
    cases = source.data / panel / "cases"
    if fault := folder_fault(str(cases), source.boundary):
        return PanelFolder(panel, manifest, (), (), (), (*problems, _problem(fault, source.path(panel, "cases"))))
    names = sorted(os.listdir(cases))  # noqa: PTH208 - names only: a panel may hold a million files
    listed = {f"{case_id}.json" for case_id in ids}
    unlisted = tuple(name for name in names if name.endswith(".json") and name not in listed)
    strays = tuple(name for name in names if not name.endswith(".json"))
    return PanelFolder(panel, manifest, ids, unlisted, strays, problems)


def read_panel(source: Source, folder: PanelFolder) -> Iterator[CaseFile]:
    """Read the case files of a panel, one at a time."""
    beside = os.path.join(source.data, folder.panel, "cases", "")  # noqa: PTH118 - joined to each name as text
    shown_beside = source.path(folder.panel, "cases", "")
    for case_id in folder.case_ids:
        yield _read_case(f"{beside}{case_id}.json", f"{shown_beside}{case_id}.json", folder.panel, True, source)
    for name in folder.unlisted:
        yield _read_case(beside + name, shown_beside + name, folder.panel, False, source)


def installed_data() -> Path:
    """Return the sample tree shipped with the package, wherever this installation keeps it."""
    return _installed("data")


def installed_card() -> Path:
    """Return the dataset card's prose shipped with the package."""
    return _installed("dataset_card.md")


def _installed(name: str) -> Path:
    package = Path(__file__).parents[1]
    for place in (package / name, package.parent / name):  # in a wheel; in a checkout or editable installation
        if place.exists():
            return place
    raise BadInput(f"{package / name}: expected the file that is shipped with bedside-bench, found none; reinstall it")


def _open_folder(folder: Path, *, repo: str | None = None, revision: str | None = None) -> Source:
    root, data = _layout(folder.absolute(), named=repo or str(folder))
    boundary = Boundary.around(root)
    registry, problems = _read_object(root / REGISTRY, REGISTRY, boundary)
    statements = licence_statements(root, registry, boundary)
    return Source(
        root=root,
        data=data,
        registry=registry,
        kind="hub" if repo else "tree",
        repo=repo,
        revision=revision,
        license=statements[0].license if statements else None,
        legal=legal_files(root),
        problems=(*problems, *_licence_problems(registry, statements), *_legal_problems(root, boundary)),
        boundary=boundary,
    )


def _layout(folder: Path, *, named: str) -> tuple[Path, Path]:
    """Return the folder of the registry and the folder of the panels."""
    if os.path.lexists(folder / REGISTRY):
        return folder, folder if _holds_panels(folder) else folder / "data"
    if os.path.lexists(folder / "digests.json"):
        raise BadInput(f"{named}: expected a source tree, found a dataset folder that was built; `verify` checks those")
    if _holds_panels(folder):
        beside = folder.name == "data" and os.path.lexists(folder.parent / REGISTRY)
        return folder.parent if beside else folder, folder
    if os.path.lexists(folder / "data" / REGISTRY):
        return folder / "data", folder / "data"
    if _holds_panels(folder / "data"):
        return folder, folder / "data"
    raise BadInput(f"{named}: expected {REGISTRY} or panel folders such as data/{PANEL_IDS[0]}, found neither")


def _holds_panels(folder: Path) -> bool:
    return any((folder / panel).is_dir() for panel in PANEL_IDS)


def _licence_problems(registry: dict[str, Any] | None, statements: Sequence[Statement]) -> Iterator[Problem]:
    stated = (registry or {}).get("license")
    if stated not in (None, "") and not stated_license(stated):
        yield _licence_warning("license-id", shown(stated), "a licence's id")
    elif not statements:
        yield _licence_warning("license-unknown", "none in the registry, citation, card or licence file", "a licence")
    elif any(one.license != statements[0].license for one in statements):
        found = ", ".join(f"{shown(one.license)} in {one.file}" for one in statements)
        yield _licence_warning("license-conflict", found, "one licence throughout")


def _legal_problems(root: Path, boundary: Boundary) -> Iterator[Problem]:
    """Yield an error for each licence, notice or citation file that a mirror must carry and could not."""
    for path in legal_files(root):
        raw = read_bytes(str(path), boundary)
        if isinstance(raw, Fault):
            yield _problem(raw, path.name)
        elif not path.name.isprintable():
            yield _problem(Fault("file-name", "characters that do not print", "a name in plain text"), path.name)


def _licence_warning(rule: str, found: str, expected: str) -> Problem:
    return Problem("warning", rule, REGISTRY, None, "license", found, expected, LICENCE_HINT)


def _read_object(path: Path, file: str, boundary: Boundary) -> tuple[dict[str, Any] | None, tuple[Problem, ...]]:
    """Return the object a JSON file of the tree holds, and what is wrong with the file."""
    raw = read_bytes(str(path), boundary)
    if isinstance(raw, Fault):
        rule = f"missing-{path.stem}" if raw.rule == "missing-file" else None
        return None, (_problem(raw, file, rule=rule),)
    value, faults = parse(raw)
    problems = tuple(_problem(fault, file) for fault in faults)
    if isinstance(value, dict):
        return value, problems
    return None, problems or (Problem("error", "wrong-type", file, None, None, shown(value), "an object"),)


def _usable_ids(manifest: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the ids that may name a file: only well-formed ones, so that none is ever followed as a path."""
    ids = (manifest or {}).get("case_ids")
    usable = [x for x in ids if isinstance(x, str) and CASE_ID.fullmatch(x)] if isinstance(ids, list) else []
    return tuple(dict.fromkeys(usable))


def _read_case(path: str, file: str, panel: str, listed: bool, source: Source) -> CaseFile:
    raw = read_bytes(path, source.boundary)
    if isinstance(raw, Fault):
        return CaseFile(printable(file), panel, listed, None, None, (_problem(raw, file),))
    value, faults = parse(raw)
    problems = tuple(_problem(fault, file) for fault in faults) if faults else ()
    if isinstance(value, dict):
        return CaseFile(printable(file), panel, listed, raw, value, problems)
    problems = problems or (_problem(Fault("wrong-type", shown(value), "an object, the case"), file),)
    return CaseFile(printable(file), panel, listed, raw, None, problems)


def _problem(fault: Fault, file: str, *, rule: str | None = None) -> Problem:
    case_id = _named_id(file)
    return Problem(
        "error", rule or fault.rule, printable(file), case_id, fault.field, fault.found, fault.expected, fault.hint
    )


def _named_id(file: str) -> str | None:
    name = file.rpartition("/")[2].removesuffix(".json")
    return name if CASE_ID.fullmatch(name) else None
