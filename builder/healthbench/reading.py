"""Read the examples of a mirror back, in the order of their file, after its digests matched.

In: a mirror's folder and the object of its `digests.json`. Out: example objects, equal to those that were built.
Reads Parquet itself, never through `load_dataset`, whose cache returns stale rows for a rebuilt local folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from builder.dataset.digests import DIGESTS_NAME, file_sha256
from builder.dataset.folder import parquet_path
from builder.dataset.rows import read_batches
from builder.errors import BadInput, DigestMismatch
from builder.healthbench.names import SPLIT, config_of
from builder.healthbench.objects import Example, ExampleDigest
from builder.healthbench.tables import batch_examples, schema_of


def read_examples(mirror: Path, digests: Mapping[str, Any]) -> list[Example]:
    """Return the examples of a mirror in order, points in the form in which they print.

    Args:
        digests: the object of the mirror's `digests.json`.

    Raises:
        BadInput: it is no mirror of a HealthBench file.
        DigestMismatch: the Parquet file or the rows are not those that the digests name.
    """
    config = config_of(digests)
    if config is None or digests.get("kind") != "mirror":
        raise BadInput(f"{mirror}: expected a mirror of a HealthBench file, found another; see bedside-bench build")
    name = parquet_path(config, SPLIT)
    if digests.get("splits") != {SPLIT: SPLIT} or name not in digests["files"]:
        raise BadInput(f"{mirror / DIGESTS_NAME}: expected the split {SPLIT} in {name}, found another; build again")
    _check_file(mirror / name, digests["files"][name]["digest"])
    digest = ExampleDigest(config, with_content=False)
    examples = []
    try:
        for batch in read_batches(mirror / name, schema_of(config)):
            part = batch_examples(batch, config)
            digest.update(part)
            examples += part
    except (BadInput, pa.ArrowException, OSError) as error:
        found = str(error).split("\n")[0]
        raise DigestMismatch(f"{mirror / name}: expected the rows of {config}, found {found}; build again") from None
    if digest.hexdigest() != digests.get("dataset_sha256"):
        raise DigestMismatch(
            f"{mirror}: expected dataset_sha256 {digests.get('dataset_sha256')}, found {digest.hexdigest()} in its "
            "rows; the folder was changed after it was built: build it again"
        )
    return examples


def _check_file(path: Path, expected: str) -> None:
    if not path.is_file():
        raise DigestMismatch(f"{path}: expected the file that {DIGESTS_NAME} lists, found none; build again")
    if (found := file_sha256(path)) != expected:
        raise DigestMismatch(f"{path}: expected {expected}, found {found}; build again")
