"""Compare a card with the Parquet files it names: what `load_dataset` would pass over in silence, or refuse too late.

In: a dataset folder. Out: findings. The rows themselves are not read, only the files' footers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from builder.cards.frontmatter import read_front_matter, yaml_features
from builder.dataset.digests import Finding, walk_files
from builder.errors import BadInput

CARD: Final = "README.md"
SPLIT_NAME: Final = re.compile(r"\w+(\.\w+)*", re.ASCII)
"""What `datasets` takes for a split name: no dash."""

Expected = Mapping[str, Mapping[str, Sequence[str]]]
"""Config -> split -> its files, in order."""

_CONFIG_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_CONFIG_KEYS: Final = frozenset({"config_name", "default", "data_files", "description"})
_OVERRIDES: Final = (".huggingface.yaml", "dataset_infos.json")
_FOREIGN_METADATA: Final = (b"huggingface", b"pandas")


@dataclass(frozen=True, slots=True)
class _Footer:
    """What a Parquet file's footer says."""

    rows: int
    row_groups: int
    schema: pa.Schema
    size: int


def check_card(
    folder: Path,
    *,
    expected: Expected | None = None,
    about: Mapping[str, object] | None = None,
    counted: bool = True,
) -> list[Finding]:
    """Return where a folder's card and its Parquet files disagree.

    Args:
        expected: the configs there must be, with their files; None takes the card's word for which there are.
        about: other members of the front matter that must have these values.
        counted: whether the card must state rows and sizes; that of a results folder must not.
    """
    try:
        front = read_front_matter(_card_bytes(folder / CARD))
    except (BadInput, OSError) as error:
        return [Finding(CARD, "front matter", "the card of this folder", str(error))]
    wanted = about or {}
    findings = [*_overrides(folder)]
    findings += [
        _card(name, repr(wanted[name]), repr(front.get(name))) for name in wanted if front.get(name) != wanted[name]
    ]
    if shapes := list(_config_shapes(front.get("configs"))):
        return findings + shapes  # below, the shape of `configs` is relied on
    footers, broken = _read_footers(folder)
    findings += broken
    used: set[str] = set()
    for config in front["configs"]:
        found = {one["split"]: _matches(folder, one["path"]) for one in config["data_files"]}
        findings += _check_files(config["config_name"], found, footers)
        infos = front.get("dataset_info")
        findings += _check_info(config["config_name"], found, footers=footers, infos=infos, counted=counted)
        findings += _check_expected(config["config_name"], found, expected)
        used.update(name for names in found.values() for name in names)
    findings += _check_names([config["config_name"] for config in front["configs"]], front, expected)
    findings += [_card(f"file {name}", "in a config", "in none") for name in footers if name not in used]
    return list(dict.fromkeys(findings))  # a file is in its own config and in `all`


def _card_bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():  # reading a pipe would wait for its writer
        raise BadInput("expected a regular file, found something else")
    return path.read_bytes()


def _card(what: str, expected: object, found: object) -> Finding:
    return Finding(CARD, what, str(expected), str(found))


def _overrides(folder: Path) -> Iterator[Finding]:
    """Yield the files that would overrule the card, and scripts: `load_dataset` refuses a repository named like one."""
    for path in sorted(folder.iterdir()):
        if path.name in _OVERRIDES:
            yield Finding(path.name, "overrules the card", "no such file", "one")
        if path.suffix == ".py":
            yield Finding(path.name, "script", "none: a repository of that name would not load", "one")


def _config_shapes(configs: object) -> Iterator[Finding]:
    if not isinstance(configs, list) or not configs:
        yield _card("configs", "a list of configs", "none" if not configs else type(configs).__name__)
        return
    for config in configs:
        yield from _config_shape(config)
    names = [config.get("config_name") for config in configs if isinstance(config, dict)]
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield _card("configs", "every name once", f"{name} twice")
    defaults = [config for config in configs if isinstance(config, dict) and config.get("default") is True]
    if len(defaults) != 1:
        yield _card("configs", "exactly one with default: true", len(defaults))


def _config_shape(config: object) -> Iterator[Finding]:
    name = config.get("config_name") if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(name, str) or not _CONFIG_NAME.fullmatch(name):
        yield _card("configs", "a config_name of letters, digits, _ . -", repr(name))
        return
    if name == "default":
        yield _card("configs", "no config called default: it would be a second default", "one")
    if unknown := sorted(set(map(str, config)) - _CONFIG_KEYS):
        yield _card(f"config {name}", "no other key than " + ", ".join(sorted(_CONFIG_KEYS)), ", ".join(unknown))
    if config.get("default", True) is not True:
        yield _card(f"config {name}", "default: true or no such key", repr(config["default"]))
    data_files = config.get("data_files")
    if not isinstance(data_files, list) or not data_files:
        yield _card(f"config {name}", "data_files: a list of {split, path}", repr(data_files))
        return
    splits = [one.get("split") if isinstance(one, dict) else None for one in data_files]
    for one, split in zip(data_files, splits, strict=True):
        yield from _data_files_shape(name, one, split)
    if len(set(map(str, splits))) != len(splits):
        yield _card(f"config {name}", "every split once", ", ".join(map(str, splits)))


def _data_files_shape(config: str, one: object, split: object) -> Iterator[Finding]:
    if not isinstance(one, dict) or set(one) != {"split", "path"}:
        yield _card(f"config {config}", "data_files: a list of {split, path}", repr(one))
        return
    if not isinstance(split, str) or not SPLIT_NAME.fullmatch(split):
        yield _card(f"config {config}", "a split name of letters, digits, _ and dots between them", repr(split))
    paths = one["path"] if isinstance(one["path"], list) else [one["path"]]
    for path in paths or [None]:
        if not isinstance(path, str) or not path or path.startswith("/") or ".." in path.split("/") or "://" in path:
            yield _card(f"config {config}, split {split}", "paths inside this folder", repr(path))


def _matches(folder: Path, paths: str | list[str]) -> list[str]:
    """Return the files that paths or patterns name, in order; a file that two of them name comes twice."""
    patterns = [paths] if isinstance(paths, str) else paths
    found = []
    for pattern in patterns:
        hits = sorted(path for path in folder.glob(pattern) if path.is_file())
        found += [path.relative_to(folder).as_posix() for path in hits]
    return found


def _read_footers(folder: Path) -> tuple[dict[str, _Footer], list[Finding]]:
    footers, findings = {}, []
    for name in walk_files(folder):
        if not name.endswith(".parquet") or name.startswith("."):
            continue
        try:
            footers[name] = _read_footer(folder / name)
        except (pa.ArrowException, OSError) as error:
            findings.append(Finding(name, "Parquet footer", "a readable one", str(error).split("\n")[0]))
    return footers, findings


def _read_footer(path: Path) -> _Footer:
    with pq.ParquetFile(path) as file:
        return _Footer(file.metadata.num_rows, file.metadata.num_row_groups, file.schema_arrow, path.stat().st_size)


def _check_files(config: str, found: Mapping[str, list[str]], footers: Mapping[str, _Footer]) -> Iterator[Finding]:
    for split, names in found.items():
        where = f"config {config}, split {split}"
        if not names:
            yield _card(where, "at least one file", "none: its paths match nothing")
        yield from (
            _card(where, "every file once", f"{name} twice") for name in sorted(set(names)) if names.count(name) > 1
        )
        yield from (_card(where, "Parquet files", name) for name in names if name not in footers)
    names = [name for files in found.values() for name in dict.fromkeys(files)]
    yield from (_card(f"config {config}", "a file in one split", name) for name in set(names) if names.count(name) > 1)
    known = [name for name in names if name in footers]
    for name in known:
        yield from _check_footer(name, footers[name], first=footers[known[0]])


def _check_footer(name: str, footer: _Footer, *, first: _Footer) -> Iterator[Finding]:
    if footer.row_groups > 1:
        yield Finding(name, "row groups", "one", str(footer.row_groups))
    for key in footer.schema.metadata or ():
        if key in _FOREIGN_METADATA:
            yield Finding(name, "schema metadata", "none of another library's", repr(key.decode()))
    if not footer.schema.equals(first.schema):
        yield Finding(name, "columns", _columns(first.schema), _columns(footer.schema))


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _check_info(
    config: str, found: Mapping[str, list[str]], *, footers: Mapping[str, _Footer], infos: object, counted: bool
) -> Iterator[Finding]:
    """Compare a config's `dataset_info` with its files: features, splits, rows and sizes."""
    entries = [one for one in infos if isinstance(one, dict)] if isinstance(infos, list) else []
    matching = [one for one in entries if one.get("config_name") == config]
    if len(matching) != 1:
        yield _card(f"dataset_info of {config}", "one", len(matching))
        return
    info, where = matching[0], f"dataset_info of {config}"
    files = {split: [footers[name] for name in names if name in footers] for split, names in found.items()}
    flat = [footer for group in files.values() for footer in group]
    if flat:
        yield from _check_features(where, info.get("features"), flat[0].schema)
    if not counted:
        if counts := sorted(info.keys() - {"config_name", "features"}):
            yield _card(where, "config_name and features only: others may add runs", ", ".join(counts))
        return
    splits = _split_entries(info.get("splits"))
    rows = {one.get("name"): one.get("num_examples") for one in splits}
    true_rows = {split: sum(footer.rows for footer in group) for split, group in files.items()}
    if rows != true_rows:
        yield _card(f"{where}: splits and num_examples", true_rows, rows)
    size = sum(footer.size for footer in flat)
    if info.get("download_size") != size:
        yield _card(f"{where}: download_size", size, info.get("download_size"))
    num_bytes = [n if type(n := one.get("num_bytes")) is int else -1 for one in splits]
    if min(num_bytes, default=0) < 0 or info.get("dataset_size") != sum(num_bytes):
        yield _card(f"{where}: dataset_size", "the sum of num_bytes", info.get("dataset_size"))


def _split_entries(splits: object) -> list[dict[str, Any]]:
    return [one for one in splits if isinstance(one, dict)] if isinstance(splits, list) else []


def _check_features(where: str, stated: object, schema: pa.Schema) -> Iterator[Finding]:
    try:
        true = yaml_features(schema)
    except ValueError as error:
        yield _card(where, "column types that every reader knows", error)
        return
    if stated == true:
        return
    stated_list = stated if isinstance(stated, list) else []
    for mine, theirs in zip(true, stated_list, strict=False):
        if mine != theirs:
            yield _card(f"{where}: feature {mine['name']}", mine, theirs)
    if len(stated_list) != len(true):
        yield _card(f"{where}: features", f"{len(true)} columns", f"{len(stated_list)}")


def _check_expected(config: str, found: Mapping[str, list[str]], expected: Expected | None) -> Iterator[Finding]:
    if expected is None or config not in expected:
        return
    wanted = {split: list(names) for split, names in expected[config].items()}
    if list(found) != list(wanted):
        yield _card(f"config {config}: splits", ", ".join(wanted), ", ".join(found))
    for split in found.keys() & wanted.keys():
        if found[split] != wanted[split]:
            yield _card(f"config {config}, split {split}: files", ", ".join(wanted[split]), ", ".join(found[split]))


def _check_names(names: list[str], front: Mapping[str, Any], expected: Expected | None) -> Iterator[Finding]:
    if expected is not None and names != list(expected):
        yield _card("configs", ", ".join(expected), ", ".join(names))
    infos = front.get("dataset_info")
    named = [str(one.get("config_name")) for one in infos if isinstance(one, dict)] if isinstance(infos, list) else []
    for name in named:
        if name not in names:
            yield _card(f"dataset_info of {name}", "a config of that name", "none")
