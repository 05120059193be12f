"""Describe a mirror in Croissant 1.1: its Parquet files with their SHA-256, and a record set a config.

In: a mirror's folder and the object of its `digests.json`. Out: the text of `croissant.json`, the same for the same
folder: no clock, no address. The card gives name, licence and description, CITATION.cff version, date and citation.
Not done here: writing the file (`mirror`), comparing it (`verify`), reading one (that takes `mlcroissant`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt
import yaml

from bedside_bench import PANELS_BY_ID
from builder.cards.card import LICENSES, UNKNOWN_LICENSE, card_summary
from builder.dataset.footers import CARD
from builder.errors import BadInput
from builder.healthbench.names import CONFIGS, public_split
from builder.tree.licence import legal_files
from builder.tree.origin import find_origin

CROISSANT_NAME: Final = "croissant.json"
SPECIFICATION: Final = "http://mlcommons.org/croissant/1.1"

_LANGUAGE_MAP: Final = {"@container": "@language"}
# The context of the 1.1 specification, in full: nothing is fetched to read the file.
_CONTEXT: Final[Mapping[str, object]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **dict.fromkeys(("description", "name"), _LANGUAGE_MAP),
    **{name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field"),
            *("fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath"),
            *("key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
            *("samplingRate", "separator", "source", "subField", "transform"),
        )
    },
}
_DATA_TYPES: Final = {
    pa.string(): "sc:Text",
    pa.bool_(): "sc:Boolean",
    pa.int32(): "cr:Int32",
    pa.int64(): "cr:Int64",
    pa.float64(): "cr:Float64",
    pa.date32(): "sc:Date",
    pa.timestamp("us", tz="UTC"): "sc:DateTime",
}
_PARQUET: Final = re.compile(r"data/(?P<config>[^/]+)/(?P<split>[^/]+)-\d{5}-of-\d{5}\.parquet")
_VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class _Table:
    """A Parquet file of a mirror: one split of one config, and the name of its record set."""

    path: str
    name: str
    about: str
    schema: pa.Schema


def croissant_json(folder: Path, digests: Mapping[str, Any]) -> bytes:
    """Return the bytes of a mirror's `croissant.json`.

    A record set has the name of its config, `all` is left out (it is the panels, in their order), and cases of another
    split than the public one are in `<config>@<split>`.

    Args:
        digests: the members of `digests.json`, `files` among them.

    Raises:
        BadInput: the card or a Parquet file cannot be read, or has a column that Croissant has no type for.
    """
    try:
        tables = list(_tables(folder, digests))
    except (pa.ArrowException, OSError) as error:
        raise BadInput(
            f"{CROISSANT_NAME}: expected readable Parquet files, found: {str(error).splitlines()[0]}"
        ) from None
    whole = {
        "@context": dict(sorted(_CONTEXT.items())),
        "@type": "sc:Dataset",
        "conformsTo": SPECIFICATION,
        **_about(folder, digests),
        "distribution": [_file_object(table.path, digests["files"][table.path]) for table in tables],
        "recordSet": [_record_set(table) for table in tables],
    }
    return (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode()


def _tables(folder: Path, digests: Mapping[str, Any]) -> Iterator[_Table]:
    """Yield the Parquet files of a mirror: panels in registry order, then the rest by name; the public split first."""
    panels = [panel["id"] for panel in digests["panels"]]
    own_public = public_split(digests)
    public = next((name for name, own in digests["splits"].items() if own == own_public), None)

    def place(found: re.Match[str]) -> tuple[int, str, bool, str]:
        config, split = found["config"], found["split"]
        return (panels.index(config) if config in panels else len(panels), config, split != public, split)

    for found in sorted(filter(None, map(_PARQUET.fullmatch, digests["files"])), key=place):
        config, split = found["config"], found["split"]
        name = config if split == public else f"{config}@{split}"
        yield _Table(found[0], name, f"{_rows_of(config)}. Split {split}.", pq.read_schema(folder / found[0]))


def _rows_of(config: str) -> str:
    if config in CONFIGS:
        return "Conversations with rubric items, one a row"
    return f"Cases, one a row: {PANELS_BY_ID[config].tests}" if config in PANELS_BY_ID else "One rubric item a row"


def _about(folder: Path, digests: Mapping[str, Any]) -> dict[str, str]:
    """Return what is said of the whole; citation and date only where the source's CITATION.cff or licence tells."""
    summary = card_summary((folder / CARD).read_bytes())
    license_id = digests["source"]["license"] or UNKNOWN_LICENSE
    legal = {path.name: path.read_bytes() for path in legal_files(folder)}
    cited = find_origin(None, license_id, legal=legal, repo=digests["source"]["repo"]).attribution
    citation = _citation(legal)
    stated = citation.get("version", "")
    version = stated if _VERSION.fullmatch(stated) else "0.0.0"
    released = citation.get("date-released", "")
    return {
        "name": summary.title,
        "description": summary.description,
        "license": LICENSES.get(license_id, (None, license_id))[1],
        "version": f"{version}+{digests['dataset_sha256'][:12]}",
        **({"citeAs": cited} if cited else {}),
        **({"datePublished": released} if _DAY.fullmatch(released) else {}),
    }


def _citation(legal: Mapping[str, bytes]) -> dict[str, str]:
    """Return the members of a CITATION.cff as text; none where there is no readable one."""
    cff: object = None
    with suppress(yaml.YAMLError, ValueError, RecursionError):
        cff = yaml.safe_load(legal.get("CITATION.cff", b""))
    return (
        {str(name): str(cff[name]) for name in ("version", "date-released") if name in cff}
        if isinstance(cff, dict)
        else {}
    )


def _file_object(path: str, about: Mapping[str, Any]) -> dict[str, str]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path.rpartition("/")[2],
        "contentUrl": path,
        "contentSize": f"{about['bytes']} B",
        "encodingFormat": "application/x-parquet",
        "sha256": about["digest"].removeprefix("sha256:"),
    }


def _record_set(table: _Table) -> dict[str, object]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.about,
        "field": [_column(table, column) for column in table.schema],
    }


def _column(table: _Table, column: pa.Field) -> dict[str, object]:
    """Return the field of a column; a list of objects is one field with a sub-field for each member."""
    source: dict[str, object] = {"fileObject": {"@id": table.path}, "extract": {"column": column.name}}
    about = _named(f"{table.name}/{column.name}")
    kind = column.type
    if not pt.is_list(kind) or not pt.is_struct(kind.value_type):
        return {**about, **_typed(kind), "source": source}
    parts = [
        {
            **_named(f"{about['@id']}/{part.name}"),
            **_typed(part.type),
            "source": {**source, "transform": {"jsonPath": part.name}},
        }
        for part in kind.value_type
    ]
    return {**about, "isArray": True, "arrayShape": "-1", "subField": parts}


def _named(uid: str) -> dict[str, str]:
    return {"@type": "cr:Field", "@id": uid, "name": uid.rpartition("/")[2]}


def _typed(kind: pa.DataType) -> dict[str, object]:
    """Return the type of a value, or of each value of a list."""
    inner = kind.value_type if pt.is_list(kind) else kind
    if inner not in _DATA_TYPES:
        raise BadInput(f"{CROISSANT_NAME}: expected columns of types that Croissant knows, found {kind}")
    array = {"isArray": True, "arrayShape": "-1"} if pt.is_list(kind) else {}
    return {"dataType": _DATA_TYPES[inner], **array}
