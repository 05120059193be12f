"""The walk of a build from a JSONL file: checked, typed, written with its card, read back and put in place.

In: a file in one of HealthBench's published shapes. Out: a mirror that gives its examples back exactly.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from bedside_bench import __version__
from builder.builds import Built, built_of, seal
from builder.cards.card import ANYWHERE
from builder.cards.frontmatter import CardConfig, CardSplit
from builder.dataset.folder import check_replaceable, parquet_path, staging, swap_in, write_files
from builder.dataset.footers import CARD
from builder.dataset.rows import Progress
from builder.dataset.tables import BATCH_CASES, BATCH_CHARS
from builder.errors import BadInput
from builder.healthbench.card import render_example_card
from builder.healthbench.check import check_examples, kind_of
from builder.healthbench.counts import ExampleCounts
from builder.healthbench.names import ITEMS, SPLIT
from builder.healthbench.objects import Example, ExampleDigest
from builder.healthbench.source import ExampleFile, license_of, open_examples
from builder.healthbench.tables import ITEMS_SCHEMA, example_batch, items_table, schema_of
from builder.rules.problems import Report

__all__ = ["build_healthbench", "check_healthbench", "healthbench_card"]


def build_healthbench(
    path: Path,
    out: Path,
    *,
    config: str | None = None,
    license_id: str | None = None,
    with_croissant: bool = False,
    repo_id: str | None = None,
    on_progress: Progress | None = None,
) -> Built:
    """Check a JSONL file and, if it has no error, write its mirror to `out`: the old folder stays whole until the end.

    Args:
        config: the config of the mirror, where the file's name does not tell it.
        license_id: the Hub's id of the licence, for a file beside which none lies.
        with_croissant: write `croissant.json` too.
        repo_id: the repository that the card's `load_dataset` lines name.

    Raises:
        BadInput: the file cannot be read, an argument does not fit it, or `out` may not be replaced.
        DigestMismatch: what was written does not read back as the source; nothing was put in place.
    """
    file = open_examples(path)
    license_id = license_of(file, license_id)
    _check_place(path, out)
    gathered = _Gathered(kind_of(file, config=config).config)
    report = check_examples(
        file, config=config, license_id=license_id, on_example=gathered.add, on_progress=on_progress
    )
    if not report.ok:
        return Built(report, out)
    gathered.finish()
    digests = _digests(gathered, file, license_id)
    with staging(out) as staged:
        configs = _write_tables(staged, gathered)
        card = render_example_card(
            configs, digests=digests, counts=gathered.counts, file=file, place=repo_id or ANYWHERE
        )
        write_files(staged, {**file.legal, CARD: card.encode()})
        folder_digest = seal(staged, digests, croissant=with_croissant, on_progress=on_progress)
        swap_in(staged, out)
    return built_of(report, out, digests, folder_digest=folder_digest, license_id=license_id)


def check_healthbench(path: Path, *, config: str | None = None) -> Report:
    """Return the report of a JSONL file.

    Raises:
        BadInput: it cannot be read.
    """
    return check_examples(open_examples(path), config=config)


def healthbench_card(path: Path, *, config: str | None = None) -> tuple[Report, str | None]:
    """Return the report of a file, and the card that its mirror would have unless there are errors in it."""
    with tempfile.TemporaryDirectory() as folder:
        built = build_healthbench(path, Path(folder) / "mirror", config=config)
        if built.folder_digest is None:
            return built.report, None
        return built.report, (built.folder / CARD).read_bytes().decode()


class _Gathered:
    """What a build gathers while the checked examples pass: Arrow batches of both tables, digests and counts."""

    def __init__(self, config: str) -> None:
        self.config = config
        self.digest = ExampleDigest(config)
        self.counts = ExampleCounts()
        self._batches: list[pa.RecordBatch] = []
        self._items: list[pa.Table] = []
        self._held: list[Example] = []
        self._chars = 0

    def add(self, example: Example) -> None:
        """Take the next example, which breaks no rule."""
        self._held.append(example)
        self._chars += sum(len(turn["content"]) for turn in example["prompt"])
        if len(self._held) >= BATCH_CASES or self._chars >= BATCH_CHARS:
            self.finish()

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the examples' table and the long one."""
        examples = pa.Table.from_batches(self._batches, schema=schema_of(self.config))
        return examples, pa.concat_tables([ITEMS_SCHEMA.empty_table(), *self._items])

    def finish(self) -> None:
        """Take in what is still held."""
        held, self._held, self._chars = self._held, [], 0
        if not held:
            return
        self.digest.update(held)
        self._batches.append(example_batch(held, self.config))
        self._items.append(items_table(held, self.config))
        for example in held:
            self.counts.add(example)


def _write_tables(staged: Path, gathered: _Gathered) -> list[CardConfig]:
    """Write the two Parquet files of a mirror and return its configs for the card."""
    tables = dict(zip((gathered.config, ITEMS), gathered.tables(), strict=True))
    return [_written(staged, name, table, default=name != ITEMS) for name, table in tables.items()]


def _written(staged: Path, name: str, table: pa.Table, *, default: bool) -> CardConfig:
    path = parquet_path(name, SPLIT)
    write_files(staged, {path: table})
    split = CardSplit(SPLIT, (path,), table.num_rows, table.nbytes, (staged / path).stat().st_size)
    return CardConfig(name, table.schema, (split,), default=default)


def _digests(gathered: _Gathered, file: ExampleFile, license_id: str | None) -> dict[str, Any]:
    """Return the members of `digests.json` but `files` and `format`."""
    digest = gathered.digest
    return {
        "kind": "mirror",
        "dataset_sha256": digest.hexdigest(),
        "content_sha256": digest.content(),
        "n_cases": digest.n_examples,
        "n_items": digest.n_items,
        "panels": digest.panels(),
        "splits": {SPLIT: SPLIT},
        "source": {
            "kind": "file",
            "repo": None,
            "revision": None,
            "license": license_id,
            "sha256": file.sha256,
        },
        "made_by": {"bedside-bench": __version__, "pyarrow": pa.__version__},
    }


def _check_place(path: Path, out: Path) -> None:
    """Stop unless a mirror may be put at `out`: never over the source."""
    source, place = Path(os.path.realpath(path)), Path(os.path.realpath(out))
    if source.is_relative_to(place) or Path(path.absolute()).is_relative_to(place):
        raise BadInput(f"--out {out}: expected a folder outside the source, found one that holds it")
    check_replaceable(out, kind="mirror")
