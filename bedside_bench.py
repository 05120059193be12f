"""The contract of a BedsideBench dataset: panels, case <-> row, and the digests that name a dataset.

In: case objects as the upstream layout holds them (six fields, `bedside.md` section 2). Out: the rows of the
Parquet configs, the same case objects back from those rows, and `dataset_sha256` / `content_sha256`.
Not done here: walking a source tree strictly and reporting its problems (`builder`), scoring (`eval`).

The module stands alone: the standard library, plus `orjson` where it is installed (the same bytes, sooner). With
`datasets` installed it also offers `BedsideBench`, a dataset builder to use directly in datasets 4 and 5:

    from bedside_bench import BedsideBench
    cases = BedsideBench("drug_safety", base_path="data")

The same file works as a loading script in datasets 3 (`trust_remote_code=True`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
    """Return the rows of the long `rubric_items` config: one an item, in file order; weight is null on points panels."""
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


def _array_json(cases: Sequence[Case]) -> bytes:
    """Return `canonical_json(cases)`, by orjson where it is installed and its bytes are the same."""
    try:
        import orjson

        # orjson writes strings, booleans and 64-bit integers as json.dumps does, floats not (1e16, 1e-05);
        # a sum is an int only if no point is a float.
        total = sum(map(itemgetter("points"), chain.from_iterable(map(itemgetter("rubric_items"), cases))))
        if type(total) is int:
            return orjson.dumps(cases, option=orjson.OPT_SORT_KEYS)
    except (ImportError, TypeError):  # not installed; or beyond 64 bits, or points that do not add up
        pass
    return canonical_json(cases)


class DatasetDigest:
    """Fold cases, in dataset order, into `dataset_sha256` (upstream's definition) and one digest a panel.

    Dataset order: panels in registry order; within a panel the manifest's order, then held-out cases by file name.
    Digest: SHA-256 of the UTF-8 of `json.dumps(cases, ensure_ascii=False, sort_keys=True, separators=(",", ":"))`;
    a panel's digest is the same over its cases alone.
    """

    def __init__(self, *, with_panels: bool = True) -> None:
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
        data = _array_json(cases)[1:-1]
        self._whole.update(b"," + data if self.n_cases else data)
        self.n_cases += len(cases)
        self.n_items += sum(len(case["rubric_items"]) for case in cases)
        if panel is not None:
            digest, n = self._panels.get(panel) or (hashlib.sha256(b"["), 0)
            digest.update(b"," + data if n else data)
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
    content["items"] = sorted([item["text"], item["points"]] for item in case["rubric_items"])
    return sha256_json(content)


def content_sha256(case_digests: Iterable[str]) -> str:
    """Return the id-independent digest of a dataset from its cases' `case_content_sha256`, in any order."""
    return hashlib.sha256("\n".join(sorted(case_digests)).encode()).hexdigest()
