"""Read a HealthBench mirror's rows back and hold them against every digest and against the long table.

In: a mirror folder and the object of its `digests.json`. Out: findings. Files and card are checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from builder.dataset.digests import DIGESTS_NAME, Finding
from builder.dataset.folder import parquet_path
from builder.dataset.rows import LongTable, Progress, read_batches
from builder.errors import BadInput
from builder.healthbench.names import ITEMS, SPLIT
from builder.healthbench.objects import ExampleDigest
from builder.healthbench.tables import ITEMS_SCHEMA, batch_examples, items_table, schema_of


def check_example_rows(
    folder: Path,
    digests: Mapping[str, Any],
    config: str,
    *,
    bad: set[str],
    brief: bool = False,
    on_progress: Progress | None = None,
) -> list[Finding]:
    """Return what a mirror's rows contradict: types and nulls, digests, counts, and the long table beside them.

    Args:
        bad: files not to read; without all of them the digests of the whole cannot be told.
        brief: compute `dataset_sha256` alone. Where it is right, the content digest is too.
    """
    name, items = parquet_path(config, SPLIT), parquet_path(ITEMS, SPLIT)
    if name in bad or name not in digests["files"]:
        return []
    long = LongTable(folder, items, ITEMS_SCHEMA) if items in digests["files"] and items not in bad else None
    digest = ExampleDigest(config, with_content=not brief)
    findings: list[Finding] = []
    try:
        for batch in read_batches(folder / name, schema_of(config)):
            examples = batch_examples(batch, config)
            digest.update(examples)
            if long:
                findings += filter(None, [long.check(items_table(examples, config))])
            if on_progress:
                on_progress("read back", digest.n_examples)
    except (BadInput, pa.ArrowException, OSError) as error:
        return [*findings, Finding(name, "rows", "examples", str(error).split("\n")[0])]
    if long:
        findings += filter(None, [long.check_end()])
    return [*findings, *_totals(digest, digests, name, brief=brief)]


def _totals(digest: ExampleDigest, digests: Mapping[str, Any], name: str, *, brief: bool) -> Iterator[Finding]:
    if digests["panels"] != digest.panels():
        yield Finding(name, "rows of the panel", repr(digests["panels"]), repr(digest.panels()))
    found = {
        "dataset_sha256": digest.hexdigest(),
        "n_cases": digest.n_examples,
        "n_items": digest.n_items,
        **({} if brief else {"content_sha256": digest.content()}),
    }
    for what, value in found.items():
        if value != digests[what]:
            yield Finding(DIGESTS_NAME, what, f"{value}, as in the rows", str(digests[what]))
