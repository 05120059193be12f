"""What a build gathers while the checked cases pass: Parquet files, counts, digests, and the configs of the card.

In: valid cases in dataset order. Out: the files of a mirror's configs in a staging folder, and what `digests.json` says
of the cases. Card, legal files and `digests.json` itself are `mirror`'s.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from bedside_bench import (
    PANEL_IDS,
    PUBLIC_SPLIT,
    Case,
    DatasetDigest,
    __version__,
    case_content_sha256,
    content_sha256,
)
from builder.cards.card import CardConfig, CardSplit, PanelCounts, example_case
from builder.dataset.digests import split_order
from builder.dataset.folder import parquet_path, write_files
from builder.dataset.footers import SPLIT_NAME
from builder.dataset.rows import Progress
from builder.dataset.tables import (
    BATCH_CASES,
    BATCH_CHARS,
    CASE_SCHEMA,
    RUBRIC_SCHEMA,
    CaseTables,
    count_items,
    rubric_table,
)
from builder.errors import BadInput
from builder.tree.sources import Source

EXAMPLE_TRIES: Final = 20
"""Public cases looked at for one that is short enough to show in the card of our samples. Of a benchmark's cases a card
shows none: cards are crawled as text, and what was crawled is trained on."""


def check_split_name(name: str) -> None:
    """Stop unless `datasets` takes a name for a split (`all` would mean every split there).

    Raises:
        BadInput: it does not.
    """
    if not SPLIT_NAME.fullmatch(name) or name == "all":
        raise BadInput(f"split name: expected letters, digits, _ and dots between them (not 'all'), found {name!r}")


class MirrorWriter:
    """Everything a build gathers while the cases pass: files written, digests, counts, the card's example."""

    def __init__(self, staged: Path, split_name: str, *, executor: Executor, on_progress: Progress | None) -> None:
        """Begin with no case; files go below `staged`, written by the executor's one thread."""
        self.example: str | None = None
        self._staged = staged
        self._splits = {PUBLIC_SPLIT: split_name}
        self._executor = executor
        self._writing: dict[tuple[str, str], Future[CardSplit]] = {}
        self._files: dict[tuple[str, str], CardSplit] = {}
        self._long: dict[str, list[Future[pa.Table]]] = defaultdict(list)
        self._counts: dict[str, Counter[str]] = {}
        self._tries = EXAMPLE_TRIES
        self._on_progress = on_progress
        self._tables = CaseTables(self._write_panel)
        self._digest = DatasetDigest()
        self._contents: list[str] = []
        self._last = ("", (False, ""))
        self._cases: list[Case] = []
        self._chars = 0
        self._stopped: BadInput | None = None

    def add(self, case: Case) -> None:
        """Take the next valid case, in dataset order. What cannot be written is told by `finish`, after the check."""
        self._cases.append(case)
        self._chars += len(case["prompt"])
        if len(self._cases) >= BATCH_CASES or self._chars >= BATCH_CHARS:
            self._end_batch()

    def finish(self) -> None:
        """Write what is still held, the last panel and the long tables; return when every file is on disk.

        Raises:
            BadInput: there was no case, or one that a mirror could not give back.
        """
        self._end_batch()
        if self._stopped is not None:
            raise self._stopped
        if not self._digest.n_cases:
            raise BadInput("expected at least one case, found none in the chosen panels; nothing was built")
        self._tables.finish()
        for own, parts in self._long.items():
            self._write("rubric_items", own, pa.concat_tables(part.result() for part in parts))
        self._long.clear()
        self._files = {key: written.result() for key, written in self._writing.items()}

    def digests(self, source: Source, license_id: str | None) -> dict[str, Any]:
        """Return the members of `digests.json` but `files` and `format`."""
        used = {own for _, own in self._files}
        return {
            "kind": "mirror",
            "dataset_sha256": self._digest.hexdigest(),
            "content_sha256": content_sha256(self._contents),
            "n_cases": self._digest.n_cases,
            "n_items": self._digest.n_items,
            "panels": self._digest.panels(),
            "splits": {name: own for own, name in self._splits.items() if own in used},
            "source": {
                "kind": source.kind,
                "repo": source.repo,
                "revision": source.revision,
                "license": license_id,
            },
            "made_by": {"bedside-bench": __version__, "pyarrow": pa.__version__},
        }

    def configs(self) -> list[CardConfig]:
        """Return the configs of a mirror: its panels in registry order, `all` over their files, and the long table."""
        owns = [own for _, own in split_order({name: own for own, name in self._splits.items()})]
        panels = [panel for panel in PANEL_IDS if panel in self._counts]

        def of(*configs: str) -> tuple[CardSplit, ...]:
            groups = ([self._files[name, own] for name in configs if (name, own) in self._files] for own in owns)
            return tuple(_together(group) for group in groups if group)

        return [
            *(CardConfig(panel, CASE_SCHEMA, of(panel)) for panel in panels),
            CardConfig("all", CASE_SCHEMA, of(*panels), default=True),
            CardConfig("rubric_items", RUBRIC_SCHEMA, of("rubric_items")),
        ]

    def counts(self) -> list[PanelCounts]:
        """Return what each panel holds, in registry order."""
        return [PanelCounts(id=panel, **counts) for panel, counts in self._counts.items()]

    def _end_batch(self) -> None:
        cases, self._cases, self._chars = self._cases, [], 0
        if self._stopped is not None:
            return
        try:
            self._take(cases)
        except BadInput as error:
            self._stopped = error
        if self._on_progress:
            self._on_progress("check", self._digest.n_cases)

    def _take(self, cases: list[Case]) -> None:
        for case in cases:
            self._check_order(case)
        if self.example is None:
            self._choose_example(cases)
        self._digest.update(cases)
        self._contents.extend(map(case_content_sha256, cases))
        self._tables.add(cases)

    def _check_order(self, case: Case) -> None:
        """Stop where the splits of a panel are mixed: the mirror keeps them apart and could not give the order back."""
        split = case["split"]
        here = (split != PUBLIC_SPLIT, split)
        panel, last = self._last
        if case["benchmark"] == panel and here < last:
            raise BadInput(
                f"{panel}: case {case['case_id']}: expected the cases of split {split!r} before those of {last[1]!r}, "
                "found one after; list the public cases first in the manifest"
            )
        self._last = (case["benchmark"], here)

    def _choose_example(self, cases: Iterable[Case]) -> None:
        for case in cases:
            if self._tries and case["split"] == PUBLIC_SPLIT and self.example is None:
                self._tries -= 1
                self.example = example_case(case)

    def _write_panel(self, panel: str, own: str, table: pa.Table) -> None:
        self._counts.setdefault(panel, Counter()).update(count_items(table))
        self._write(panel, own, table)
        self._long[own].append(self._executor.submit(rubric_table, table))

    def _write(self, config: str, own: str, table: pa.Table) -> None:
        name = self._split_of(own)
        self._writing[config, own] = self._executor.submit(_written, self._staged, config, name, table)

    def _split_of(self, own: str) -> str:
        if own not in self._splits:
            check_split_name(own)
            if own in self._splits.values():
                raise BadInput(f"--split-name {own}: expected a name that no split of the cases has, found cases in it")
            self._splits[own] = own
        return self._splits[own]


def _written(staged: Path, config: str, split: str, table: pa.Table) -> CardSplit:
    """Write a config's table of one split and return what the card says of the file."""
    path = parquet_path(config, split)
    write_files(staged, {path: table})
    return CardSplit(split, (path,), table.num_rows, table.nbytes, (staged / path).stat().st_size)


def _together(splits: Sequence[CardSplit]) -> CardSplit:
    """Return one split over the files of several, in their order (a pattern would sort them)."""
    return CardSplit(
        name=splits[0].name,
        paths=tuple(path for split in splits for path in split.paths),
        rows=sum(split.rows or 0 for split in splits),
        num_bytes=sum(split.num_bytes for split in splits),
        download_size=sum(split.download_size for split in splits),
    )
