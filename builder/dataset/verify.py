"""Verify a mirror: its files, its card against the Parquet files, and its rows against every digest it states.

In: a mirror folder. Out: findings, each with file, what, expected and found. Nothing is read through `load_dataset`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from bedside_bench import PANEL_IDS
from builder.cards.card import UNKNOWN_LICENSE, provenance_line
from builder.cards.croissant import CROISSANT_NAME, croissant_json
from builder.cards.eval_yaml import EVAL_YAML_NAME, eval_yaml
from builder.dataset.digests import (
    DIGESTS_NAME,
    Finding,
    Verified,
    folder_digest,
    read_digests,
    split_order,
    verify_files,
)
from builder.dataset.folder import parquet_path, recover
from builder.dataset.footers import CARD, SPLIT_NAME, check_card
from builder.dataset.rows import Progress, check_rows
from builder.errors import BadInput
from builder.healthbench.names import ITEMS, SPLIT, config_of
from builder.healthbench.rows import check_example_rows
from builder.rules.problems import shown

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MEMBERS: Final = frozenset(
    {"format", "kind", "dataset_sha256", "content_sha256", "n_cases", "n_items", "panels", "splits", "source"}
    | {"made_by", "files"}
)
_MADE_FROM_THE_REST: Final = {CROISSANT_NAME: croissant_json, EVAL_YAML_NAME: eval_yaml}
"""The optional files of a mirror, and what makes each from the folder's other files and its digests."""


def verify_mirror(
    folder: Path, *, expect: str | None = None, brief: bool = False, on_progress: Progress | None = None
) -> Verified:
    """Return every way in which a mirror is not what its `digests.json` says; none means that all holds.

    A folder changed throughout, `digests.json` included, shows only against a digest that someone else vouches for.

    Args:
        expect: that digest (64 hex digits): the folder digest which `build` printed.
        brief: of the rows compute `dataset_sha256` alone, which the other digests follow from.
    """
    recover(folder)
    findings = verify_files(folder, expect=expect)
    try:
        digests = read_digests(folder)
    except BadInput:
        return Verified(tuple(findings), None, None)
    if wrong := list(_wrong_members(digests)):
        return Verified((*findings, *wrong), folder_digest(folder), str(digests.get("kind")))
    # A file whose bytes are not the listed ones is named already; its content says nothing more.
    bad = {finding.file for finding in findings}
    if not any(name.endswith(".parquet") for name in bad):
        about = {"license": digests["source"]["license"] or UNKNOWN_LICENSE}
        findings += check_card(folder, expected=_expected_configs(digests), about=about)
    if CARD not in bad:
        findings += _check_provenance(folder, digests)
    if not bad & digests["files"].keys():
        findings += _check_extras(folder, digests)
    if config := config_of(digests):
        findings += check_example_rows(folder, digests, config, bad=bad, brief=brief, on_progress=on_progress)
    else:
        findings += check_rows(folder, digests, bad=bad, brief=brief, on_progress=on_progress)
    return Verified(
        tuple(findings),
        folder_digest(folder),
        digests["kind"],
        n_cases=digests["n_cases"],
        n_items=digests["n_items"],
        dataset_sha256=digests["dataset_sha256"],
        facts={"content_sha256": digests["content_sha256"]},
    )


def folder_kind(folder: Path) -> str:
    """Return what a folder is to be verified as: `run` for results or one run of them, else `mirror`.

    Raises:
        BadInput: there is no such folder.
    """
    recover(folder)
    if not folder.is_dir():
        found = "a file" if folder.exists() else "none"
        raise BadInput(f"{folder}: expected a dataset folder, found {found}; give one that build or results wrote")
    if (folder / DIGESTS_NAME).is_file():
        with suppress(BadInput):
            return "run" if read_digests(folder).get("kind") == "run" else "mirror"
        return "mirror"
    return "run" if (folder / "runs").is_dir() else "mirror"


def _wrong_members(digests: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the members of a mirror's `digests.json` that do not have the form of formats.md section 3."""

    def wrong(what: str, expected: str) -> Finding:
        return Finding(DIGESTS_NAME, what, expected, repr(digests.get(what)))

    if set(digests) != _MEMBERS:
        yield Finding(DIGESTS_NAME, "members", ", ".join(sorted(_MEMBERS)), ", ".join(sorted(digests)))
        return
    if digests["kind"] != "mirror":
        yield wrong("kind", "'mirror'")
    for name in ("dataset_sha256", "content_sha256"):
        if not _SHA256.fullmatch(str(digests[name])):
            yield wrong(name, "64 hex digits")
    for name in ("n_cases", "n_items"):
        if type(digests[name]) is not int:
            yield wrong(name, "an integer")
    if not _are_panels(digests["panels"]):
        yield wrong("panels", "a list of {id, n, sha256}, panels in registry order")
    elif config_of(digests) and digests["splits"] != {SPLIT: SPLIT}:
        yield wrong("splits", repr({SPLIT: SPLIT}))
    splits = digests["splits"]
    if not isinstance(splits, dict) or not splits or not all(SPLIT_NAME.fullmatch(str(name)) for name in splits):
        yield wrong("splits", "an object from Parquet split to the cases' own")
    elif not all(isinstance(own, str) for own in splits.values()) or len(set(splits.values())) != len(splits):
        yield wrong("splits", "an object from Parquet split to the cases' own, each once")
    members = ("kind", "repo", "revision", "license", *(("sha256",) if config_of(digests) else ()))
    if not _is_object(digests["source"], set(members)):
        yield wrong("source", f"an object of {', '.join(members)}")
    if not _is_object(digests["made_by"], {"bedside-bench", "pyarrow"}):
        yield wrong("made_by", "an object of bedside-bench, pyarrow")


def _is_object(value: object, members: set[str]) -> bool:
    return isinstance(value, dict) and set(value) == members


def _are_panels(panels: object) -> bool:
    if not isinstance(panels, list) or not all(_is_object(panel, {"id", "n", "sha256"}) for panel in panels):
        return False
    ids = [panel["id"] for panel in panels]
    if config_of({"panels": panels}):
        return True
    return bool(ids) and ids == [panel for panel in PANEL_IDS if panel in ids]


def _expected_configs(digests: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return config -> split -> files of a mirror, in the order of its card."""
    if config := config_of(digests):
        return {name: {SPLIT: [parquet_path(name, SPLIT)]} for name in (config, ITEMS)}
    splits = [name for name, _ in split_order(digests["splits"])]
    panels = [panel["id"] for panel in digests["panels"]]

    def of(*configs: str) -> dict[str, list[str]]:
        paths = {split: [parquet_path(config, split) for config in configs] for split in splits}
        present = {split: [path for path in names if path in digests["files"]] for split, names in paths.items()}
        return {split: names for split, names in present.items() if names}

    return {**{panel: of(panel) for panel in panels}, "all": of(*panels), "rubric_items": of("rubric_items")}


def _check_provenance(folder: Path, digests: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare what no file or row tells (source, versions, licence) with what the card, itself digested, says of it."""
    if provenance_line(digests).encode() not in (folder / CARD).read_bytes():
        what = "content_sha256, dataset_sha256, made_by, source, splits"
        yield Finding(DIGESTS_NAME, what, f"as in the last block of {CARD}", "other values")


def _check_extras(folder: Path, digests: Mapping[str, Any]) -> Iterator[Finding]:
    """Make the optional files anew and name the first line in which one differs."""
    for name, make in _MADE_FROM_THE_REST.items():
        if name not in digests["files"]:
            continue
        try:
            expected = make(folder, digests).split(b"\n")
        except (BadInput, OSError) as error:
            yield Finding(name, "content", "what the folder's other files say", str(error))
            continue
        found = (folder / name).read_bytes().split(b"\n")
        if found != expected:
            yield _first_difference(name, expected, found)


def _first_difference(name: str, expected: list[bytes], found: list[bytes]) -> Finding:
    pairs = zip_longest(expected, found)
    number, (mine, theirs) = next((i, pair) for i, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    return Finding(name, f"line {number}", _shown_line(mine), _shown_line(theirs))


def _shown_line(line: bytes | None) -> str:
    return "no such line" if line is None else shown(line.decode(errors="replace").strip())
