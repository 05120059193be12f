"""The YAML front matter of a card: written without surprises, read strictly."""

from __future__ import annotations

import pyarrow as pa
import pytest
import yaml

from builder.cards.frontmatter import CardConfig, CardSplit, front_matter, read_front_matter, yaml_features
from builder.dataset.tables import CASE_SCHEMA
from builder.errors import BadInput

BLOCK = "---\nlicense: mit\n---\n\n# A card\n"


def test_features_of_a_case_are_written_as_datasets_reads_them() -> None:
    """A list of structs is `list:` with fields, the one form that datasets 3, 4 and 5 all read (hub.md section 1)."""
    items = [
        {"name": "item_id", "dtype": "string"},
        {"name": "text", "dtype": "string"},
        {"name": "points", "dtype": "int64"},
    ]

    assert {"name": "rubric_items", "list": items} == yaml_features(CASE_SCHEMA)[-1]
    assert {"name": "case_id", "dtype": "string"} == yaml_features(CASE_SCHEMA)[0]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.duration("s")], ids=str)
def test_a_type_that_readers_disagree_on_is_refused(kind: pa.DataType) -> None:
    """Types that come back differently from datasets, polars or pandas never get into a card."""
    with pytest.raises(ValueError, match="no card type for Arrow's"):
        yaml_features(pa.schema([("a", kind)]))


def test_configs_are_written_with_their_files_rows_and_sizes() -> None:
    """Rows and bytes of several splits add up, and a list of files stays in its order."""
    splits = (CardSplit("train", ("b.parquet", "a.parquet"), 5, 70, 40), CardSplit("test", ("c.parquet",), 2, 30, 20))
    text = front_matter({"license": "mit"}, [CardConfig("all", pa.schema([("x", pa.int64())]), splits, default=True)])

    assert {
        "license": "mit",
        "configs": [
            {
                "config_name": "all",
                "default": True,
                "data_files": [
                    {"split": "train", "path": ["b.parquet", "a.parquet"]},
                    {"split": "test", "path": "c.parquet"},
                ],
            }
        ],
        "dataset_info": [
            {
                "config_name": "all",
                "features": [{"name": "x", "dtype": "int64"}],
                "splits": [
                    {"name": "train", "num_bytes": 70, "num_examples": 5},
                    {"name": "test", "num_bytes": 30, "num_examples": 2},
                ],
                "download_size": 60,
                "dataset_size": 100,
            }
        ],
    } == read_front_matter(text.encode())


def test_equal_parts_are_written_out_in_full() -> None:
    """YAML anchors, which PyYAML would use for the same features twice, never appear."""
    schema = pa.schema([("x", pa.int64())])
    configs = [CardConfig(name, schema, (CardSplit("train", (name,), 1, 1, 1),)) for name in "ab"]

    assert "&id" not in front_matter({}, configs)


@pytest.mark.parametrize("name", ["no", "1.0", "2026-09-14", "~", "a: b", "# not a comment", "é|`<"])
def test_a_text_that_yaml_would_read_as_something_else_stays_a_text(name: str) -> None:
    """Names such as `no` and `1.0` are quoted."""
    assert {"pretty_name": name, "configs": [], "dataset_info": []} == read_front_matter(
        front_matter({"pretty_name": name}, []).encode()
    )


@pytest.mark.parametrize(
    ("card", "message"),
    [
        (f"\ufeff{BLOCK}", "no byte order mark"),
        ("# A card\n", "at the very beginning, found none"),
        ("---\n- a\n---\n", "at the very beginning, found none"),
        ("---\nconfigs: [1]\nconfigs: []\n---\n", "the key 'configs' stands twice"),
        ("---\na: {b: 1, b: 2}\n---\n", "the key 'b' stands twice"),
        ("---\na: [\n---\n", "expected a YAML block"),
        ("---\na: &a [1]\nb: *a\n---\n", "an alias"),
        ("---\na: !!python/object:os.system x\n---\n", "expected a YAML block"),
    ],
    ids=["BOM", "no block", "a list", "top key twice", "inner key twice", "broken", "alias", "code"],
)
def test_a_block_that_libraries_read_differently_is_refused(card: str, message: str) -> None:
    """What one version of a library ignores and another takes is named, not guessed at."""
    with pytest.raises(BadInput, match=message):
        read_front_matter(card.encode())


def test_a_plain_block_is_read() -> None:
    """The block ends at the second line of three dashes."""
    assert {"license": "mit"} == read_front_matter(BLOCK.encode()) == yaml.safe_load("license: mit")
