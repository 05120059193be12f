"""Read the cases of a dataset folder, after its digests matched, into the one shape that every suite is run with.

In: a folder that `bedside-bench build` wrote. Out: a `CaseSet` in dataset order. Reads Parquet with polars, never
through `load_dataset`, whose cache returns stale rows for a rebuilt local folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from bedside_bench import (
    PANEL_IDS,
    DatasetDigest,
    case_content_sha256,
    content_sha256,
    row_to_case,
)
from bedside_bench import Case as CaseObject
from builder.dataset.digests import file_sha256, read_digests, split_order
from builder.dataset.folder import recover
from builder.dataset.footers import CARD
from builder.errors import BadInput, DigestMismatch
from builder.healthbench.names import META, SUITE, config_of
from builder.healthbench.objects import example_content_sha256
from builder.healthbench.reading import read_examples
from builder.tree.canary import canaries_of_card


@dataclass(frozen=True, slots=True)
class Item:
    """One rubric item: its id, its text, its signed points in the number's literal form, None where its data have none.

    `tags` are those of a HealthBench criterion.
    """

    item_id: str
    text: str
    points: int | float | None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One case of any suite: a conversation of (role, content) turns that ends with the user, and its rubric items.

    HealthBench only: `tags` are the example's; `completions` are answers that the data themselves hold, by who gave
    them (physician, reference, given); `group` is the physicians' group; `labels` are (physician, label) of a meta
    example.
    """

    case_id: str
    benchmark: str
    grading_method: str
    conversation: tuple[tuple[str, str], ...]
    items: tuple[Item, ...]
    tags: tuple[str, ...] = ()
    completions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    group: str | None = None
    labels: tuple[tuple[str, bool], ...] = ()

    @property
    def prompt(self) -> str:
        """The last user turn: the whole prompt of a single-turn case."""
        return self.conversation[-1][1]


@dataclass(frozen=True, slots=True)
class CaseSet:
    """The cases of a mirror in dataset order, and the digests and source that name them.

    `splits` maps the mirror's Parquet splits to the cases' own, of which all but `train` are held out; `canaries` are
    the statements by which a corpus that took the cases in can be told.
    """

    cases: tuple[Case, ...]
    dataset_sha256: str
    content_sha256: str
    repo: str | None
    revision: str | None
    license: str | None
    splits: Mapping[str, str] = field(default_factory=dict)
    canaries: tuple[str, ...] = ()
    suite: str = "bedside-bench"
    config: str = "all"

    @property
    def panels(self) -> tuple[str, ...]:
        """The panels present, in registry order; the one config of a HealthBench mirror."""
        present = dict.fromkeys(case.benchmark for case in self.cases)
        return tuple(sorted(present, key=lambda panel: PANEL_IDS.index(panel) if panel in PANEL_IDS else 0))


def read_cases(mirror: Path, *, repo: str | None = None, revision: str | None = None) -> CaseSet:
    """Return the cases of a mirror of any suite.

    Args:
        repo: the repository that the mirror itself was read from, named instead of the one its source came from.
        revision: the commit of `repo`.

    Raises:
        BadInput: the folder is no mirror.
        DigestMismatch: a file or the rows are not those that `digests.json` names.
    """
    recover(mirror)
    digests = read_digests(mirror)
    if digests.get("kind") != "mirror":
        raise BadInput(f"{mirror}: expected a mirror, found kind {digests.get('kind')!r}; see bedside-bench build")
    data = _read_panels(mirror, digests) if config_of(digests) is None else _read_examples(mirror, digests)
    if repo is None:
        return data
    return replace(data, repo=repo, revision=revision)


def _read_panels(mirror: Path, digests: Mapping[str, Any]) -> CaseSet:
    """Return the cases of a BedsideBench mirror."""
    try:
        panels, splits = [panel["id"] for panel in digests["panels"]], split_order(digests["splits"])
        expected, source = digests["dataset_sha256"], dict(digests["source"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BadInput(
            f"{mirror / 'digests.json'}: expected dataset_sha256, panels, splits and source as build writes them, "
            "found another form; build again"
        ) from None
    cases = [
        case
        for panel in panels
        for split, own_split in splits
        for case in _read_split(mirror, f"data/{panel}/{split}-00000-of-00001.parquet", own_split, digests["files"])
    ]
    digest = DatasetDigest()
    digest.update(cases)
    found = digest.hexdigest()
    if found != expected:
        raise DigestMismatch(
            f"{mirror}: expected dataset_sha256 {expected}, found {found} in its rows; "
            "the folder was changed after it was built: build it again"
        )
    return CaseSet(
        cases=tuple(_case(case) for case in cases),
        dataset_sha256=found,
        content_sha256=content_sha256(map(case_content_sha256, cases)),
        repo=source.get("repo"),
        revision=source.get("revision"),
        license=source.get("license"),
        splits=dict(splits),
        canaries=_canaries(mirror),
    )


def _read_examples(mirror: Path, digests: Mapping[str, Any]) -> CaseSet:
    """Return the examples of a HealthBench mirror as cases."""
    config = str(config_of(digests))
    source = digests["source"]
    examples = read_examples(mirror, digests)
    return CaseSet(
        cases=tuple(_example(example, config) for example in examples),
        dataset_sha256=digests["dataset_sha256"],
        content_sha256=content_sha256(example_content_sha256(example, config) for example in examples),
        repo=source.get("repo"),
        revision=source.get("revision"),
        license=source.get("license"),
        splits=dict(digests["splits"]),
        canaries=_canaries(mirror),
        suite=SUITE,
        config=config,
    )


def _example(example: Mapping[str, Any], config: str) -> Case:
    items = tuple(
        Item(item["item_id"], item["criterion"], item["points"], tuple(item["tags"]))
        for item in example["rubric_items"]
    )
    physician = example["ideal_completion"] or example.get("physician_response")
    completions = {
        "physician": (physician,) if physician else (),
        "reference": tuple(example["ideal_completions_ref_completions"] or ()),
        "given": (example["completion"],) if config == META else (),
    }
    labels = zip(example["anonymized_physician_ids"], example["binary_labels"], strict=True) if config == META else ()
    return Case(
        case_id=example["case_id"],
        benchmark=config,
        grading_method=SUITE,
        conversation=tuple((turn["role"], turn["content"]) for turn in example["prompt"]),
        items=items,
        tags=tuple(example["example_tags"]),
        completions={kind: texts for kind, texts in completions.items() if texts},
        group=example["ideal_completions_group"],
        labels=tuple(labels),
    )


def _canaries(mirror: Path) -> tuple[str, ...]:
    card = mirror / CARD
    return tuple(canaries_of_card(card.read_text(encoding="utf-8", errors="replace"))) if card.is_file() else ()


def _read_split(mirror: Path, name: str, own_split: str, files: dict[str, Any]) -> list[CaseObject]:
    """Return the cases of one Parquet file whose bytes are its digest's; none where the panel lacks the split."""
    path = mirror / name
    if name not in files:
        return []
    if not path.is_file():
        raise DigestMismatch(f"{path}: expected the file that digests.json lists, found none; build again")
    found = file_sha256(path)
    if found != files[name]["digest"]:
        raise DigestMismatch(f"{path}: expected {files[name]['digest']}, found {found}; build again")
    try:
        return [row_to_case(row, own_split) for row in pl.read_parquet(path, glob=False).iter_rows(named=True)]
    except (pl.exceptions.PolarsError, KeyError, TypeError) as error:
        found = type(error).__name__
        raise DigestMismatch(f"{path}: expected a panel's Parquet file, found another ({found}); build again") from None


def _case(case: CaseObject) -> Case:
    items = tuple(Item(item["item_id"], item["text"], item["points"]) for item in case["rubric_items"])
    return Case(
        case_id=case["case_id"],
        benchmark=case["benchmark"],
        grading_method=case["grading_method"],
        conversation=(("user", case["prompt"]),),
        items=items,
    )


def selected_by(cases: Sequence[Case], selection: Mapping[str, Any]) -> list[Case]:
    """Return the cases that a run's `selection` takes (formats.md 4).

    Raises:
        BadInput: as `select_cases`; also a member that no selection has.
    """
    try:
        return select_cases(cases, **selection)
    except TypeError:
        raise BadInput(f"selection: expected panels, smoke, limit, completions, groups, found {selection}") from None


def select_cases(
    cases: Sequence[Case],
    *,
    panels: Sequence[str] | None = None,
    smoke: bool = False,
    limit: int | None = None,
    completions: str | None = None,
    groups: Sequence[str] | None = None,
) -> list[Case]:
    """Return the selected cases in dataset order; the arguments are the members of a run's `selection`.

    Args:
        panels: only these.
        smoke: one fixed case a panel: its first in dataset order, which is the first id of its manifest.
        limit: only the first so many, after all else.
        completions: only cases whose data hold answers of this kind.
        groups: only cases whose completion is of one of these physicians' groups.

    Raises:
        BadInput: a panel, a group or a kind of completions is unknown or not in the data, or nothing is left.
    """
    present = {case.benchmark for case in cases}
    for panel in panels or ():
        if panel not in present:
            raise BadInput(f"--panel {panel}: expected one of {', '.join(sorted(present))}, the panels of this dataset")
    for group in groups or ():
        if group not in {case.group for case in cases}:
            known = ", ".join(sorted({case.group for case in cases if case.group})) or "none"
            raise BadInput(f"--group {group}: expected one of the groups of this dataset ({known})")
    if completions and not any(case.completions.get(completions) for case in cases):
        held = sorted({kind for case in cases for kind, texts in case.completions.items() if texts})
        there = f"only {' and '.join(held)}" if held else "none"
        raise BadInput(f"--answers {completions}: expected completions of that kind in the data, found {there}")
    chosen = [case for case in cases if not panels or case.benchmark in panels]
    chosen = [case for case in chosen if not completions or case.completions.get(completions)]
    chosen = [case for case in chosen if not groups or case.group in groups]
    if smoke:
        first = {case.benchmark: case for case in reversed(chosen)}
        chosen = [case for case in chosen if first[case.benchmark] is case]
    if limit is not None:
        chosen = chosen[:limit]
    if not chosen:
        raise BadInput("the selection is empty: expected at least one case; widen --panel, --group or --limit")
    return chosen
