"""The YAML front matter of a card: written from Arrow schemas and counts, read back strictly.

In: the configs of a folder. Out: the YAML block that `load_dataset` and the Hub go by. Whether it and the Parquet files
agree is `footers`' question; the prose below it is `card`'s.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt
import yaml

from builder.errors import BadInput

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML without its C library: the same text, ten times slower
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]

_BLOCK: Final = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)

# Arrow's name of a type -> the card's. Types beyond these do not come back the same from every reader.
_DTYPES: Final = {
    pa.string(): "string",
    pa.bool_(): "bool",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float64(): "float64",
    pa.date32(): "date32",
    pa.timestamp("us", tz="UTC"): "timestamp[us, tz=UTC]",
}


@dataclass(frozen=True, slots=True)
class CardSplit:
    """One split of a config: its files (paths or patterns, in order), rows, Arrow bytes and file bytes.

    Without counts the card gives none: `load_dataset` refuses a file more or less than they say, and others add runs.
    """

    name: str
    paths: tuple[str, ...]
    rows: int | None = None
    num_bytes: int = 0
    download_size: int = 0


@dataclass(frozen=True, slots=True)
class CardConfig:
    """One config of a folder: what `load_dataset(folder, name)` loads."""

    name: str
    schema: pa.Schema
    splits: tuple[CardSplit, ...]
    default: bool = False


def yaml_features(schema: pa.Schema) -> list[dict[str, Any]]:
    """Return the `features` of a card: equal to `datasets`' `Features.from_arrow_schema(schema)._to_yaml_list()`.

    Raises:
        ValueError: a type that readers do not agree on.
    """
    return [_yaml_field(field) for field in schema]


def _yaml_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, **_yaml_type(field.type)}


def _yaml_type(kind: pa.DataType) -> dict[str, Any]:
    if pt.is_struct(kind):
        return {"struct": [_yaml_field(field) for field in kind]}
    if pt.is_list(kind):
        inner = _yaml_type(kind.value_type)
        # `list: string` and `list: [fields]` are the short forms; datasets 3 reads no other of a list of structs.
        return {"list": inner["dtype"] if "dtype" in inner else inner.get("struct", inner)}
    if kind not in _DTYPES:
        raise ValueError(f"no card type for Arrow's {kind}; expected one of {', '.join(_DTYPES.values())}")
    return {"dtype": _DTYPES[kind]}


class _Dumper(SafeDumper):
    """Write equal parts out in full: the Hub's readers need no anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML's signature
        """Never write an anchor."""
        return True


def front_matter(about: Mapping[str, object], configs: Sequence[CardConfig]) -> str:
    """Return the YAML block of a card, with its `---` lines: the given keys, then `configs` and `dataset_info`."""
    whole = {
        **about,
        "configs": [_config_yaml(config) for config in configs],
        "dataset_info": [_info_yaml(config) for config in configs],
    }
    text = yaml.dump(whole, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{text}---\n"


def _config_yaml(config: CardConfig) -> dict[str, object]:
    files_of = [
        {"split": split.name, "path": split.paths[0] if len(split.paths) == 1 else list(split.paths)}
        for split in config.splits
    ]
    default = {"default": True} if config.default else {}
    return {"config_name": config.name, **default, "data_files": files_of}


def _info_yaml(config: CardConfig) -> dict[str, object]:
    about: dict[str, object] = {"config_name": config.name, "features": yaml_features(config.schema)}
    if any(split.rows is None for split in config.splits):
        return about
    return {
        **about,
        "splits": [
            {"name": split.name, "num_bytes": split.num_bytes, "num_examples": split.rows} for split in config.splits
        ],
        "download_size": sum(split.download_size for split in config.splits),
        "dataset_size": sum(split.num_bytes for split in config.splits),
    }


class _StrictLoader(SafeLoader):
    """Refuse a key that stands twice: PyYAML, and so `datasets`, lets the last one win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping whose keys are all different."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def read_front_matter(card: bytes) -> dict[str, Any]:
    """Return the YAML object that a card begins with.

    Raises:
        BadInput: a byte order mark, no block, broken YAML, an alias, or a key that stands twice.
    """
    if card.startswith(b"\xef\xbb\xbf"):
        raise BadInput("expected no byte order mark, found one: some versions of datasets then ignore the card")
    try:
        block = _BLOCK.match(card.decode())
        value = _strictly(block[1]) if block else None
    except (UnicodeDecodeError, RecursionError, ValueError, yaml.YAMLError) as error:
        raise BadInput(f"expected a YAML block in UTF-8, found: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise BadInput("expected a YAML block between two lines `---` at the very beginning, found none")
    return value


def _strictly(text: str) -> object:
    """Return the value of YAML without aliases: few lines of nested ones stand for more text than a machine holds."""
    for event in yaml.parse(text, Loader=SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"an alias (*{event.anchor}), where the value itself must stand")
    return yaml.load(text, Loader=_StrictLoader)  # a SafeLoader
