"""Verify a mirror: its files, its card against the Parquet files, and its rows against every digest it states.

In: a mirror folder. Out: findings, each with file, what, expected and found. Nothing is read through `load_dataset`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bedside_bench import PANEL_IDS, DatasetDigest, case_content_sha256, content_sha256
from builder.card import UNKNOWN_LICENSE, provenance_line
from builder.digests import DIGESTS_NAME, Finding, Verified, folder_digest, read_digests, split_order, verify_files
from builder.errors import BadInput
from builder.folder import parquet_path, recover
from builder.footers import CARD, SPLIT_NAME, check_card
from builder.tables import CASE_SCHEMA, RUBRIC_SCHEMA, batch_cases, rows_at_once, rubric_table

Progress = Callable[[str, int], None]
"""Told the step (`check`, `read back`) and how many cases are through it."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MEMBERS: Final = frozenset(
    {"format", "kind", "dataset_sha256", "content_sha256", "n_cases", "n_items", "panels", "splits", "source"}
    | {"made_by", "files"}
)


def verify_mirror(
    folder: Path, *, expect: str | None = None, contents: bool = True, on_progress: Progress | None = None
) -> Verified:
    """Return every way in which a mirror is not what its `digests.json` says; none means that all holds.

    A folder changed throughout, `digests.json` included, shows only against a digest that someone else vouches for.

    Args:
        expect: that digest (64 hex digits): the folder digest which `build` printed.
        contents: compute `content_sha256` from the rows; needless where both digests come from the same cases.
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
    findings += _Rows(folder, digests, bad=bad, contents=contents, on_progress=on_progress).check()
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
        raise BadInput(f"{folder}: expected a dataset folder, found {'a file' if folder.exists() else 'none'}")
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
    splits = digests["splits"]
    if not isinstance(splits, dict) or not splits or not all(SPLIT_NAME.fullmatch(str(name)) for name in splits):
        yield wrong("splits", "an object from Parquet split to the cases' own")
    elif not all(isinstance(own, str) for own in splits.values()) or len(set(splits.values())) != len(splits):
        yield wrong("splits", "an object from Parquet split to the cases' own, each once")
    if not _is_object(digests["source"], {"kind", "repo", "revision", "license"}):
        yield wrong("source", "an object of kind, repo, revision, license")
    if not _is_object(digests["made_by"], {"bedside-bench", "pyarrow"}):
        yield wrong("made_by", "an object of bedside-bench, pyarrow")


def _is_object(value: object, members: set[str]) -> bool:
    return isinstance(value, dict) and set(value) == members


def _are_panels(panels: object) -> bool:
    if not isinstance(panels, list) or not all(_is_object(panel, {"id", "n", "sha256"}) for panel in panels):
        return False
    ids = [panel["id"] for panel in panels]
    return bool(ids) and ids == [panel for panel in PANEL_IDS if panel in ids]


def _expected_configs(digests: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return config -> split -> files of a mirror, in the order of its card."""
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


class _Rows:
    """One pass over the rows in dataset order: digests, counts, nulls, and the long table beside the panels."""

    def __init__(
        self, folder: Path, digests: Mapping[str, Any], *, bad: set[str], contents: bool, on_progress: Progress | None
    ) -> None:
        self._folder = folder
        self._digests = digests
        self._files = {name for name in digests["files"] if name not in bad}
        self._whole = not any(name.endswith(".parquet") for name in bad)
        self._on_progress = on_progress
        self._digest = DatasetDigest()
        self._contents: list[str] | None = [] if contents else None
        self._long = {split: self._long_rows(split) for split in digests["splits"]}
        self._findings: list[Finding] = []

    def check(self) -> list[Finding]:
        """Return what the rows contradict."""
        for panel in self._digests["panels"]:
            for split, own in split_order(self._digests["splits"]):
                name = parquet_path(panel["id"], split)
                if name in self._files:
                    self._check_file(name, split, own)
        for split, long in self._long.items():
            if long is not None and (rest := long.rest()) and self._whole:
                self._add(parquet_path("rubric_items", split), "rows", "no more than the panels' items", f"{rest} more")
        self._check_digests()
        return self._findings

    def _add(self, file: str, what: str, expected: object, found: object) -> None:
        self._findings.append(Finding(file, what, str(expected), str(found)))

    def _long_rows(self, split: str) -> _LongRows | None:
        name = parquet_path("rubric_items", split)
        return _LongRows(_read(self._folder / name, RUBRIC_SCHEMA)) if name in self._files else None

    def _check_file(self, name: str, split: str, own: str) -> None:
        try:
            for batch in _read(self._folder / name, CASE_SCHEMA):
                if _has_null(batch):
                    raise BadInput("expected a value everywhere, found null")
                self._check_batch(batch, split, own)
        except (BadInput, pa.ArrowException, OSError) as error:
            self._add(name, "rows", "cases", str(error).split("\n")[0])
            self._whole = False

    def _check_batch(self, batch: pa.RecordBatch, split: str, own: str) -> None:
        cases = batch_cases(batch, own)
        self._digest.update(cases)
        if self._contents is not None:
            self._contents.extend(map(case_content_sha256, cases))
        long = self._long[split]
        if long is not None and (different := long.compare(rubric_table(pa.Table.from_batches([batch])))):
            self._add(parquet_path("rubric_items", split), *different)
            self._long[split] = None  # one row off puts all later ones off
        if self._on_progress:
            self._on_progress("read back", self._digest.n_cases)

    def _check_digests(self) -> None:
        found = {panel["id"]: panel for panel in self._digest.panels()}
        for panel in self._digests["panels"]:
            mine = found.pop(panel["id"], None)
            name = next((file for file in sorted(self._files) if file.startswith(f"data/{panel['id']}/")), None)
            if name is not None and mine != panel:
                self._add(name, "rows of the panel", panel, mine)
        for left in found:
            self._add(DIGESTS_NAME, "panels", "every panel that has rows", f"rows of {left!r}")
        if not self._whole:
            return
        found_of = {
            "dataset_sha256": self._digest.hexdigest(),
            "n_cases": self._digest.n_cases,
            "n_items": self._digest.n_items,
        }
        if self._contents is not None:
            found_of["content_sha256"] = content_sha256(self._contents)
        for what, value in found_of.items():
            if value != self._digests[what]:
                self._add(DIGESTS_NAME, what, f"{value}, as in the rows", self._digests[what])


class _LongRows:
    """The long table's rows, taken in step with the cases they belong to."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._held = RUBRIC_SCHEMA.empty_table()
        self._row = 0

    def compare(self, expected: pa.Table) -> tuple[str, object, object] | None:
        """Take as many rows as expected; return (where, expected, found) of the first difference, or None."""
        try:
            found = self._take(expected.num_rows)
        except (BadInput, pa.ArrowException, OSError) as error:
            return "rows", "rubric items", str(error).split("\n")[0]
        start, self._row = self._row, self._row + expected.num_rows
        if found.equals(expected):
            return None
        for index, (mine, theirs) in enumerate(zip(expected.to_pylist(), found.to_pylist(), strict=False)):
            for column in mine:
                if mine[column] != theirs[column]:
                    return f"row {start + index}: {column}", repr(mine[column]), repr(theirs[column])
        return "rows", f"at least {start + expected.num_rows}", start + found.num_rows

    def rest(self) -> int:
        """Return how many rows are left."""
        return int(self._held.num_rows) + sum(int(batch.num_rows) for batch in self._batches)

    def _take(self, n: int) -> pa.Table:
        while self._held.num_rows < n:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._held = pa.concat_tables([self._held, pa.Table.from_batches([batch])])
        taken, self._held = self._held.slice(0, n), self._held.slice(n)
        return taken


def _read(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a Parquet file's rows in batches of bounded size.

    Raises:
        BadInput: its columns are not those of the schema.
    """
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema):
            found = ", ".join(f"{field.name} {field.type}" for field in file.schema_arrow)
            raise BadInput(f"expected the columns {', '.join(schema.names)} with their types, found {found}")
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        yield from file.iter_batches(rows_at_once(size / max(file.metadata.num_rows, 1)))


def _has_null(batch: pa.RecordBatch) -> bool:
    items = pc.list_flatten(batch.column("rubric_items"))
    columns = [*batch.columns, items, *items.flatten()]
    return any(column.null_count for column in columns)
