"""The contract of a BedsideBench dataset: panels, case <-> row, and the digests that name a dataset.

In: case objects as the upstream layout holds them (six fields, `bedside.md` section 2). Out: the rows of the
Parquet configs, the same case objects back from those rows, and `dataset_sha256` / `content_sha256`.
Not done here: walking a source tree strictly and reporting its problems (`builder`), scoring (`eval`).

The module stands alone: the standard library, plus `orjson` where it is installed (the same bytes, sooner). With
`datasets` installed it also offers `BedsideBench`, a dataset builder to use directly in datasets 4 and 5:

    from bedside_bench import BedsideBench
    builder = BedsideBench("drug_safety", base_path="data")  # or "hf://datasets/org/name@<commit>"
    builder.download_and_prepare()
    cases = builder.as_dataset(split="train")

The same file works as a loading script in datasets 3 (`trust_remote_code=True`).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from hashlib import _Hash

__version__ = "0.1.0"

Case: TypeAlias = dict[str, Any]
"""A case object as its JSON file holds it: the keys of `CASE_FIELDS`."""

Row: TypeAlias = dict[str, Any]
"""One row of a Parquet config."""

POINTS_RUBRIC: Final = "points_rubric"
F1_WEIGHTED_RUBRIC: Final = "f1_weighted_rubric"

CASE_FIELDS: Final = ("case_id", "benchmark", "grading_method", "prompt", "rubric_items", "split")
ITEM_FIELDS: Final = ("item_id", "text", "points")
PUBLIC_SPLIT: Final = "train"
"""The `split` of every public case upstream: a naming habit, it does not mean "train on it"."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the ten panels: its id, kind and grading method, and what it tests in one line."""

    id: str
    kind: str
    grading_method: str
    tests: str


# The order of this table is the registry order: it fixes the digest, the smoke cases and every table we print.
PANELS: Final = (
    Panel(
        "drug_safety", "Rubric", POINTS_RUBRIC, "interactions, contraindications, organ-function dosing, cross-allergy"
    ),
    Panel("guideline_adherence", "Rubric", POINTS_RUBRIC, "guideline-concordant care"),
    Panel("landmark_trials", "Rubric", POINTS_RUBRIC, "trial evidence and outcomes"),
    Panel("medical_hallucination", "Rubric", POINTS_RUBRIC, "invented entities, proper refusal"),
    Panel("health_equity", "Rubric", POINTS_RUBRIC, "equity scenarios, language and culture fit"),
    Panel("clinical_calculations", "Rubric", POINTS_RUBRIC, "exact numbers: dose, score, unit conversion"),
    Panel("calculators_numerical", "Rubric", POINTS_RUBRIC, "calculator tasks, numeric criteria"),
    Panel("calculators_conditional", "Rubric", POINTS_RUBRIC, "calculator tasks, branching or mixed criteria"),
    Panel(
        "safety_diagnostic", "ManagementPlan", F1_WEIGHTED_RUBRIC, "tests, referral, procedures, follow-up in free text"
    ),
    Panel("safety_therapeutic", "ManagementPlan", F1_WEIGHTED_RUBRIC, "drugs, education, treatment plan in free text"),
)
PANEL_IDS: Final = tuple(panel.id for panel in PANELS)
PANELS_BY_ID: Final = {panel.id: panel for panel in PANELS}

OFFICIAL_CASES_PER_PANEL: Final = 50
"""Cases a panel in the official set; the public half has 25."""

# Signed points of a management plan -> severity class and weight (NOHARM's 24/8/1/(1/3), times 3; the factor cancels).
SEVERITY_CLASS: Final = {3: 9, 2: 8, 1: 7, 0: 5, -1: 3, -2: 2, -3: 1}
SEVERITY_WEIGHT: Final = {3: 72, 2: 24, 1: 3, 0: 1, -1: 3, -2: 24, -3: 72}


def polarity(points: int) -> str:
    """Name the sign of an item: positive, negative or equivocal (0 points)."""
    return "positive" if points > 0 else "negative" if points < 0 else "equivocal"


def item_id(prompt: str, index: int) -> str:
    """Return the current id of the item at a 0-based position: `<md5 of the prompt's UTF-8 bytes>_<index>`."""
    return f"{hashlib.md5(prompt.encode(), usedforsecurity=False).hexdigest()}_{index}"


def case_to_row(case: Case) -> Row:
    """Return the row of a case's panel config: the case without `split`, which is the Parquet file's."""
    return {field: case[field] for field in CASE_FIELDS if field != "split"}


def row_to_case(row: Mapping[str, Any], split: str = PUBLIC_SPLIT) -> Case:
    """Return the case object of a row, equal to the one the row was made from.

    Args:
        split: the cases' own `split` value (digests.json maps a Parquet split to it).
    """
    items = [{field: item[field] for field in ITEM_FIELDS} for item in row["rubric_items"]]
    return {**{field: row[field] for field in CASE_FIELDS[:4]}, "rubric_items": items, "split": split}


def rubric_rows(case: Case) -> list[Row]:
    """Return the rows of the long `rubric_items` config, one an item, in file order; no weight on points panels."""
    weighted = case["grading_method"] == F1_WEIGHTED_RUBRIC
    return [
        {
            "case_id": case["case_id"],
            "benchmark": case["benchmark"],
            "item_index": index,
            "item_id": item["item_id"],
            "text": item["text"],
            "points": item["points"],
            "polarity": polarity(item["points"]),
            "severity_class": SEVERITY_CLASS[item["points"]] if weighted else None,
            "weight": SEVERITY_WEIGHT[item["points"]] if weighted else None,
        }
        for index, item in enumerate(case["rubric_items"])
    ]


def canonical_json(value: object) -> bytes:
    """Return the one JSON form that digests are taken over: sorted keys, compact, UTF-8, no NaN."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode()


def sha256_json(value: object) -> str:
    """Return the lower-case SHA-256 hex of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _exact_json(value: object, points: Iterable[Any]) -> bytes:
    """Return `canonical_json(value)`, by orjson where it is installed and its bytes are the same.

    Args:
        points: every number in the value.
    """
    try:
        import orjson

        # orjson writes strings, booleans and 64-bit integers as json.dumps does, floats not (1e16, 1e-05);
        # a sum is an int only if no point is a float.
        if type(sum(points)) is int:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (ImportError, TypeError):  # not installed; or beyond 64 bits, or points that do not add up
        pass
    return canonical_json(value)


class DatasetDigest:
    """Fold cases, in dataset order, into `dataset_sha256` (upstream's definition) and one digest a panel.

    Dataset order: panels in registry order; within a panel the manifest's order, then held-out cases by file name.
    Digest: SHA-256 of the UTF-8 of `json.dumps(cases, ensure_ascii=False, sort_keys=True, separators=(",", ":"))`;
    a panel's digest is the same over its cases alone.
    """

    def __init__(self, *, with_panels: bool = True) -> None:
        """Start with no cases; without panels it is a little faster."""
        self._whole = hashlib.sha256(b"[")
        self._panels: dict[str, tuple[_Hash, int]] = {}
        self._with_panels = with_panels
        self.n_cases = 0
        self.n_items = 0

    def update(self, cases: Sequence[Case]) -> None:
        """Fold in the next cases."""
        if self._with_panels:
            for panel, run in groupby(cases, key=itemgetter("benchmark")):
                self._fold(panel, list(run))
        elif cases:
            self._fold(None, cases)

    def _fold(self, panel: str | None, cases: Sequence[Case]) -> None:
        points = map(itemgetter("points"), chain.from_iterable(map(itemgetter("rubric_items"), cases)))
        data = memoryview(_exact_json(cases, points))[1:-1]
        self._whole.update(b"," if self.n_cases else b"")
        self._whole.update(data)
        self.n_cases += len(cases)
        self.n_items += sum(len(case["rubric_items"]) for case in cases)
        if panel is not None:
            digest, n = self._panels.get(panel) or (hashlib.sha256(b"["), 0)
            digest.update(b"," if n else b"")
            digest.update(data)
            self._panels[panel] = (digest, n + len(cases))

    def hexdigest(self) -> str:
        """Return `dataset_sha256` of the cases so far."""
        return _closed(self._whole)

    def panels(self) -> list[dict[str, Any]]:
        """Return `{"id", "n", "sha256"}` of each panel present, in the order in which they came."""
        return [{"id": panel, "n": n, "sha256": _closed(digest)} for panel, (digest, n) in self._panels.items()]


def _closed(digest: _Hash) -> str:
    done = digest.copy()
    done.update(b"]")
    return done.hexdigest()


def dataset_sha256(cases: Iterable[Case]) -> str:
    """Return the digest of cases given in dataset order (see `DatasetDigest`)."""
    digest = DatasetDigest(with_panels=False)
    rest = iter(cases)
    while batch := list(islice(rest, 256)):
        digest.update(batch)
    return digest.hexdigest()


def case_content_sha256(case: Case) -> str:
    """Return the digest of what a case says, whatever its item ids and their order are."""
    content = {field: case[field] for field in CASE_FIELDS if field != "rubric_items"}
    content["items"] = items = sorted([item["text"], item["points"]] for item in case["rubric_items"])
    return hashlib.sha256(_exact_json(content, map(itemgetter(1), items))).hexdigest()


def content_sha256(case_digests: Iterable[str]) -> str:
    """Return the id-independent digest of a dataset from its cases' `case_content_sha256`, in any order."""
    return hashlib.sha256("\n".join(sorted(case_digests)).encode()).hexdigest()


# From here on: the builder class for `datasets`. It refuses what it cannot load exactly; `builder` lists all problems.

ALL_PANELS: Final = "all"
HELD_OUT_SPLIT: Final = "test"

_HUB_PATH: Final = re.compile(
    r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)"
    r"(?:(?:@|/resolve/)(?P<revision>refs/(?:pr|convert)/[^/]+|[^/]+))?(?:/(?P<folder>.+?))?/?"
)


class _Source(NamedTuple):
    """A place, the cache key of what it holds, and per split a local tree's case files with their SHA-256."""

    base_path: str
    key: str
    files: dict[str, dict[str, str | None]] | None = None


def _builder_class() -> type[Any]:
    import datasets

    class BedsideBench(datasets.GeneratorBasedBuilder):  # type: ignore[misc]  # datasets is untyped
        """Cases in the upstream layout as a dataset: a config a panel, and `all` (the default).

        Read from `base_path` (or `data_dir`): a folder that holds the panel folders, itself or in `data/`, or
        `hf://datasets/org/name[@revision][/folder]`, pinned to its commit. Split `train` holds the public cases; the
        held-out ones of a local tree, where there are any, are `test`. The cache is keyed by the `dataset_sha256` of
        the config's cases, on the Hub by the commit. What cannot be loaded exactly is a ValueError.
        """

        __qualname__ = "BedsideBench"  # where pickle looks for it
        DEFAULT_CONFIG_NAME = ALL_PANELS
        BUILDER_CONFIGS: ClassVar = [
            datasets.BuilderConfig(name, datasets.Version("1.0.0"), description=tests)
            for name, tests in [*((panel.id, panel.tests) for panel in PANELS), (ALL_PANELS, "every panel present")]
        ]

        def __init__(self, config_name: str | None = None, *, base_path: str | None = None, **options: Any) -> None:
            self._panels = [panel for panel in PANEL_IDS if config_name in (None, ALL_PANELS, panel)]
            if self._panels:  # else the config is unknown, as the base class will say
                place = str(options.get("data_dir") or base_path or ".")
                self._source = _find_source(place, self._panels, token=options.get("token"))
                base_path, key, _ = self._source
                script = options.get("hash")  # the script loader of datasets 3 gives one of the code
                options["hash"] = f"{key}-{script[:16]}" if script else key
            super().__init__(config_name=config_name, base_path=base_path, **options)

        def _info(self) -> datasets.DatasetInfo:
            text = datasets.Value("string")
            items = [{"item_id": text, "text": text, "points": datasets.Value("int64")}]  # datasets 3 has no List
            features = datasets.Features({**dict.fromkeys(CASE_FIELDS[:4], text), "rubric_items": items})
            return datasets.DatasetInfo(description="Rubric-graded clinical cases, one a row.", features=features)

        def download_and_prepare(self, *args: Any, **options: Any) -> None:
            """Fill the cache as `datasets` does, but not once the tree differs from what the cache key names."""
            if self._source.files and _read_tree(self.base_path, self._panels) != self._source:
                raise ValueError(f"{self.base_path}: changed since this builder was made; make a new one")
            super().download_and_prepare(*args, **options)

        def _split_generators(self, dl_manager: Any) -> list[Any]:
            files = self._source.files
            if files is None:
                files = {PUBLIC_SPLIT: self._hub_files(dl_manager)}
            elif dl_manager.is_streaming:  # nothing is cached: the tree as it stands now
                files = _read_tree(self.base_path, self._panels).files or {}
            return [datasets.SplitGenerator(name, {"split": name, "files": files[name]}) for name in files]

        def _hub_files(self, dl_manager: Any) -> dict[str, str | None]:
            from huggingface_hub import HfFileSystem

            hub = HfFileSystem(endpoint=datasets.config.HF_ENDPOINT, token=self.token)
            folders = _panel_folders(self.base_path, self._panels, hub.isdir)
            manifests = dl_manager.download([f"{folder}/manifest.json" for folder in folders])
            cases = [
                f"{folder}/{name}" for folder, path in zip(folders, manifests, strict=True) for name in _listed(path)
            ]
            return dict.fromkeys(dl_manager.download(cases))

        def _generate_examples(self, split: str, files: Mapping[str, str | None]) -> Iterator[tuple[str, Row]]:
            for path, expected in files.items():
                case, sha256 = _read_case(path)
                if expected not in (None, sha256):
                    raise ValueError(f"{path}: changed while it was read; start again")
                if _split_of(case) != split:
                    raise ValueError(f"{path}: split: expected {PUBLIC_SPLIT}, found {case['split']}")
                yield case["case_id"], case_to_row(case)

    return BedsideBench


def _find_source(place: str, panels: Sequence[str], *, token: str | bool | None) -> _Source:
    """Read a local tree, or pin a place on the Hub to a commit."""
    from datasets import config

    # The script loader of datasets 3 names a repo by the web address of its files.
    match = _HUB_PATH.fullmatch(place.replace(f"{config.HF_ENDPOINT}/", "hf://", 1))
    if match is None:
        return _read_tree(str(Path(place).absolute()), panels)
    folder, commit = match["folder"], unquote(match["revision"] or "main")
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        from huggingface_hub import HfApi

        commit = str(HfApi(config.HF_ENDPOINT, token=token).dataset_info(match["repo"], revision=commit).sha)
    base_path = f"hf://datasets/{match['repo']}@{commit}"
    if not folder:
        return _Source(base_path, commit)
    return _Source(f"{base_path}/{folder}", f"{commit}-{quote(folder, safe='')}")


def _panel_folders(base: str, panels: Sequence[str], is_folder: Callable[[str], bool]) -> list[str]:
    """Return the folders of the panels that are there, in registry order."""
    for parent in (f"{base}/data", base):
        if found := [f"{parent}/{panel}" for panel in panels if is_folder(f"{parent}/{panel}")]:
            return found
    raise FileNotFoundError(f"{base}: expected a folder {' or '.join(panels)}, here or in data/; found none")


def _read_tree(base: str, panels: Sequence[str]) -> _Source:
    """Read and check every case of a local tree, in dataset order."""
    digest = DatasetDigest(with_panels=False)
    files: dict[str, dict[str, str | None]] = {}
    for folder in _panel_folders(base, panels, lambda path: Path(path).is_dir()):
        listed = _listed(f"{folder}/manifest.json")
        names = {f"cases/{path.name}" for path in Path(folder, "cases").glob("[!.]*.json")}
        for name in [*listed, *sorted(names.difference(listed))]:
            path = f"{folder}/{name}"
            case, sha256 = _read_case(path)
            if case["split"] == PUBLIC_SPLIT and name not in listed:
                raise ValueError(f"{path}: expected in manifest.json, or with a split other than {PUBLIC_SPLIT}")
            digest.update([case])
            files.setdefault(_split_of(case), {})[path] = sha256
    return _Source(base, digest.hexdigest(), files)


def _listed(manifest: str) -> dict[str, None]:
    """Return the case files that a manifest lists, named from its folder, in its order."""
    value, _ = _read_json(manifest)
    ids = value.get("case_ids") if isinstance(value, dict) else None
    ids = ids if isinstance(ids, list) else [None]
    names = {f"cases/{name}.json": None for name in ids if isinstance(name, str) and re.fullmatch(r"\w[\w.-]*", name)}
    if len(names) < len(ids):
        raise ValueError(f"{manifest}: case_ids: expected an array of case ids, each once")
    return names


def _split_of(case: Case) -> str:
    return PUBLIC_SPLIT if case["split"] == PUBLIC_SPLIT else HELD_OUT_SPLIT


def _read_case(path: str) -> tuple[Case, str]:
    """Return a case and its file's SHA-256, types checked: `datasets` would take 1.5, "2" and true for 1, 2 and 1."""
    case, sha256 = _read_json(path)
    panel, _, name = Path(path).parts[-3:]
    where = f"{path}: case {Path(name).stem}"
    known = {"case_id": Path(name).stem, "benchmark": panel, "grading_method": PANELS_BY_ID[panel].grading_method}
    _expect_fields(where, case, {**known, "prompt": str, "rubric_items": list, "split": str})
    for index, item in enumerate(case["rubric_items"]):
        item_id = item.get("item_id") if isinstance(item, dict) else None
        _expect_fields(f"{where}: item {index} ({item_id})", item, {"item_id": str, "text": str, "points": int})
    return case, sha256


def _expect_fields(where: str, value: object, fields: Mapping[str, object]) -> None:
    """Raise ValueError unless a value is an object of just these fields, each of its type or equal to its text."""
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise ValueError(f"{where}: expected an object of {', '.join(fields)}, found {json.dumps(value)[:120]}")
    for field, want in fields.items():
        if type(value[field]) is not want and value[field] != want:
            wanted = {str: "a string", int: "an integer", list: "an array"}.get(want, want)  # type: ignore[call-overload]
            raise ValueError(f"{where}: {field}: expected {wanted}, found {json.dumps(value[field])[:120]}")


def _read_json(path: str) -> tuple[Any, str]:
    """Return the JSON value of a file, read strictly, and the SHA-256 of its bytes."""
    with open(path, "rb") as stream:  # noqa: PTH123  datasets puts its own `open` here, which also reads hf://
        raw = stream.read()
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_unique_keys)
        canonical_json(value)  # refuses unpaired surrogates
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected strict JSON in UTF-8: {error}") from None
    return value, hashlib.sha256(raw).hexdigest()


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(value := dict(pairs)) < len(pairs):
        raise ValueError("a key comes twice in an object")
    return value


BedsideBench: type[Any]  # made when it is asked for, so that the contract itself never imports `datasets`

if not TYPE_CHECKING:  # a type checker would take a module that answers to one name for one that answers to all

    def __getattr__(name: str) -> Any:
        if name != "BedsideBench":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, _builder_class())


if hasattr(sys.modules.get("datasets"), "GeneratorBasedBuilder"):
    BedsideBench = _builder_class()  # the script loader of datasets 3 looks in the module's `__dict__`
