"""The rules that registry, manifests and folders must keep.

In: a source, its panel folders, and how many cases were found. Out: problems.
Not done here: the rules of a case (`case_rules`) and between cases (`validate`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from bedside_bench import PANEL_IDS, PANELS_BY_ID
from builder.rules.problems import Problem, printable, shown
from builder.tree.sources import CASE_ID, REGISTRY, PanelFolder, Source

MAX_PROBLEMS_PER_LIST: Final = 1000


@dataclass(frozen=True, slots=True)
class Found:
    """How many case files a panel has, and how many of them are of the public split."""

    all: int
    public: int


def folder_problems(source: Source) -> Iterator[Problem]:
    """Yield an error for every folder that looks like a panel and is none of the ten."""
    try:
        names = sorted(os.listdir(source.data))  # noqa: PTH208 - names only
    except OSError:
        return  # then every panel is missing, which is reported
    for name in names:
        if name not in PANEL_IDS and _looks_like_a_panel(source.data / name):
            place = printable(source.path(name))
            yield Problem("error", "unknown-panel", place, None, None, shown(name), "one of the ten panels' ids")


def _looks_like_a_panel(folder: Path) -> bool:
    try:
        return (folder / "manifest.json").exists() or (folder / "cases").is_dir()
    except OSError:  # a folder that may not be searched
        return False


def manifest_problems(source: Source, folder: PanelFolder) -> Iterator[Problem]:
    """Yield what is wrong with a panel's manifest, and the names beside the case files."""
    file = source.path(folder.panel, "manifest.json")
    if folder.manifest is not None:
        yield from _contradictions(file, folder.manifest, folder.panel)
        yield from islice(_case_ids(file, folder.manifest), MAX_PROBLEMS_PER_LIST)
    for name in folder.strays:
        place = printable(source.path(folder.panel, "cases", name))
        yield Problem("warning", "stray-file", place, None, None, "another name", "only files named <case_id>.json")


def registry_problems(source: Source, panels: Sequence[str], found: Mapping[str, Found]) -> Iterator[Problem]:
    """Yield what is wrong with the registry, and where its counts differ from the case files found."""
    if source.registry is None:
        return  # why it could not be read is among the source's problems
    entries, per_panel = source.registry.get("panels"), source.registry.get("cases_per_panel")
    if isinstance(entries, list):
        yield from islice(_panel_list(entries, panels, per_panel), MAX_PROBLEMS_PER_LIST)
    elif "panels" in source.registry:
        yield _error("registry-panels", "panels", shown(entries), "an array of panels")
    else:
        yield _warning("registry-panels", "panels", "none", "the list of panels")
    yield from _counts(source.registry, panels, found)


def _error(rule: str, field: str, found: str, expected: str, file: str = REGISTRY) -> Problem:
    return Problem("error", rule, file, None, field, found, expected)


def _warning(rule: str, field: str, found: str, expected: str, file: str = REGISTRY) -> Problem:
    return Problem("warning", rule, file, None, field, found, expected)


def _contradictions(file: str, manifest: Mapping[str, Any], panel: str) -> Iterator[Problem]:
    wanted = {
        "benchmark": panel,
        "grading_method": PANELS_BY_ID[panel].grading_method,
        "type": PANELS_BY_ID[panel].kind,
    }
    for name, value in wanted.items():
        if name in manifest and manifest[name] != value:
            yield _error(f"manifest-{name.replace('_', '-')}", name, shown(manifest[name]), shown(value), file)


def _case_ids(file: str, manifest: Mapping[str, Any]) -> Iterator[Problem]:
    ids = manifest.get("case_ids")
    if not isinstance(ids, list):
        found = shown(ids) if "case_ids" in manifest else "none"
        yield _error("manifest-case-ids", "case_ids", found, "an array of case ids", file)
        return
    if "case_count" in manifest and (type(manifest["case_count"]) is not int or manifest["case_count"] != len(ids)):
        yield _warning(
            "manifest-count", "case_count", shown(manifest["case_count"]), f"{len(ids)}, as case_ids has", file
        )
    first: dict[str, int] = {}
    for i, case_id in enumerate(ids):
        if not isinstance(case_id, str) or not CASE_ID.fullmatch(case_id):
            yield _error("manifest-id", f"case_ids[{i}]", shown(case_id), "32 lower-case hex digits", file)
        elif (same := first.setdefault(case_id, i)) != i:
            found = f"{shown(case_id)}, as in case_ids[{same}]"
            yield _error("manifest-duplicate", f"case_ids[{i}]", found, "every id once", file)


def _panel_list(entries: list[Any], panels: Sequence[str], per_panel: object) -> Iterator[Problem]:
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            yield _error("registry-panels", f"panels[{i}]", shown(entry), "an object with the panel's id")
        elif not isinstance(ids[i], str) or ids[i] not in PANELS_BY_ID:
            yield _error("registry-panel", f"panels[{i}].id", shown(ids[i]), "one of the ten panels' ids")
        elif ids.index(ids[i]) < i:
            yield _error("registry-panel", f"panels[{i}].id", f"{shown(ids[i])} again", "every panel once")
        else:
            yield from _panel_entry(entry, i)
            if (n := entry.get("n", per_panel)) != per_panel and per_panel is not None:
                yield _warning("registry-count", f"panels[{i}].n", shown(n), f"{shown(per_panel)}, as cases_per_panel")
    known = list(dict.fromkeys(panel for panel in ids if isinstance(panel, str) and panel in PANELS_BY_ID))
    in_order = [panel for panel in PANEL_IDS if panel in known]
    if known != in_order:
        yield _error("registry-order", "panels", ", ".join(known), f"the order {', '.join(in_order)}")
    for panel in panels:
        if panel not in known:
            yield _error("registry-panel", "panels", f"no {shown(panel)}", "every panel of the tree")


def _panel_entry(entry: dict[str, Any], i: int) -> Iterator[Problem]:
    panel = PANELS_BY_ID[entry["id"]]
    for name, value in (("grading_method", panel.grading_method), ("type", panel.kind)):
        if entry.get(name, value) != value:
            yield _error("registry-method", f"panels[{i}].{name}", shown(entry[name]), f"{shown(value)} for {panel.id}")
    path = entry.get("path")
    if path is not None and (not isinstance(path, str) or Path(path).name != panel.id):
        yield _warning("registry-path", f"panels[{i}].path", shown(path), f"the folder of {panel.id}")


def _counts(registry: Mapping[str, Any], panels: Sequence[str], found: Mapping[str, Found]) -> Iterator[Problem]:
    public, whole = registry.get("published_cases_per_panel"), registry.get("cases_per_panel")
    differing = False
    for panel in panels:
        have = found[panel]
        field, stated, files = "published_cases_per_panel", public, have.public
        if have.all > have.public or public is None:  # a holder of the whole set
            field, stated, files = "cases_per_panel", whole, have.all
        if stated is not None and stated != files:
            differing = True
            yield _warning("registry-count", field, f"{_case_files(files)} in {panel}", f"{shown(stated)} a panel")
    if len(panels) == len(PANEL_IDS):
        yield from _totals(registry, sum(have.public for have in found.values()), differing)


def _totals(registry: Mapping[str, Any], n_public: int, differing: bool) -> Iterator[Problem]:
    if registry.get("panel_count", len(PANEL_IDS)) != len(PANEL_IDS):
        yield _warning("registry-count", "panel_count", shown(registry["panel_count"]), str(len(PANEL_IDS)))
    totals = registry.get("totals")
    stated = totals.get("published_cases", n_public) if isinstance(totals, dict) else n_public
    if stated != n_public and not differing:  # else the panels have said it already
        yield _warning("registry-count", "totals.published_cases", _case_files(n_public), shown(stated))


def _case_files(n: int) -> str:
    return f"{n:,} case file{'' if n == 1 else 's'}"
