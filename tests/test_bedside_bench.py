"""The contract: panels, cases and rows, and the digests that name a dataset."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bedside_bench
from bedside_bench import (
    PANEL_IDS,
    PANELS,
    DatasetDigest,
    canonical_json,
    case_content_sha256,
    case_to_row,
    content_sha256,
    dataset_sha256,
    item_id,
    polarity,
    row_to_case,
    rubric_rows,
    sha256_json,
)
from tests.trees import make_case

ROOT = Path(bedside_bench.__file__).parent
GOLDEN: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / "upstream_synthetic.json").read_bytes())
AWKWARD = '\x00\x1f\x7f\b\f\n\r\t"\\/\u2028\u2029\u0085é\u00a0\ufeff\uffff🩺'


def items(points: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Return rubrics with points of a kind."""
    return st.lists(st.fixed_dictionaries({"item_id": st.text(), "text": st.text(), "points": points}), max_size=4)


def cases(points: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return case objects with any text in every field."""
    fields = {"case_id": st.text(), "benchmark": st.sampled_from(PANEL_IDS), "grading_method": st.text()}
    return st.fixed_dictionaries({**fields, "prompt": st.text(), "rubric_items": items(points), "split": st.text()})


INTEGERS = st.integers() | st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**40])
NUMBERS = INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e16, 1e-05, -0.0, 1.0])
AWKWARD_CASE = {**make_case(), "prompt": AWKWARD, "case_id": AWKWARD}


def published_digest(value: list[dict[str, Any]]) -> str:
    """Return upstream's definition, word for word."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@given(cases(st.integers()))
@example(AWKWARD_CASE)
def test_case_to_row_and_back(case: dict[str, Any]) -> None:
    """A case comes back from its row as the same JSON: every character, every number, every position."""
    row = case_to_row(case)

    assert row.keys() == case.keys() - {"split"}
    assert canonical_json(row_to_case(row, case["split"])) == canonical_json(case)
    assert list(row_to_case(row, case["split"])) == list(bedside_bench.CASE_FIELDS)


def test_digest_golden() -> None:
    """The golden file's cases have the digest that the published runner gives them."""
    assert GOLDEN["dataset_sha256"] == dataset_sha256(GOLDEN["cases"])


@given(st.lists(cases(NUMBERS), max_size=3))
@example([AWKWARD_CASE])
@example([])
def test_digest_is_over_the_bytes_of_json_dumps(value: list[dict[str, Any]]) -> None:
    """The fast writer's bytes are `json.dumps`'s: control characters, U+2028, huge integers and floats included."""
    assert published_digest(value) == dataset_sha256(value)


@given(st.lists(cases(NUMBERS), max_size=2))
def test_digest_without_orjson(value: list[dict[str, Any]]) -> None:
    """A machine without orjson computes the same digest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "orjson", None)

        assert published_digest(value) == dataset_sha256(value)


@given(st.lists(cases(st.integers(-3, 3)), max_size=6), st.integers(1, 6))
def test_digest_batches(value: list[dict[str, Any]], size: int) -> None:
    """It does not matter in which batches the cases come, and each panel's digest is that of its cases alone."""
    value.sort(key=lambda case: PANEL_IDS.index(case["benchmark"]))
    digest = DatasetDigest()
    for start in range(0, len(value), size):
        digest.update(value[start : start + size])
    panels = {panel: [case for case in value if case["benchmark"] == panel] for panel in PANEL_IDS}

    assert digest.hexdigest() == dataset_sha256(value)
    assert digest.n_cases == len(value)
    assert digest.n_items == sum(len(case["rubric_items"]) for case in value)
    assert digest.panels() == [
        {"id": panel, "n": len(found), "sha256": published_digest(found)} for panel, found in panels.items() if found
    ]


@pytest.mark.parametrize("points", [float("nan"), float("inf")], ids=["nan", "infinity"])
def test_digest_refuses_what_json_has_not(points: float) -> None:
    """NaN and Infinity have no digest."""
    case = make_case()
    case["rubric_items"][0]["points"] = points

    with pytest.raises(ValueError, match="Out of range float"):
        dataset_sha256([case])


def test_content_digest_by_hand() -> None:
    """The content digest is the one formats.md defines: sorted digests of the cases, their items sorted without ids."""
    case = make_case()
    pairs = sorted([item["text"], item["points"]] for item in case["rubric_items"])
    said = {key: case[key] for key in ("case_id", "benchmark", "grading_method", "prompt", "split")} | {"items": pairs}
    other = case_content_sha256(make_case(number=1))

    assert sha256_json(said) == case_content_sha256(case)
    expected = hashlib.sha256("\n".join(sorted([sha256_json(said), other])).encode()).hexdigest()
    assert expected == content_sha256([sha256_json(said), other])


@given(cases(st.integers()), st.randoms(use_true_random=False))
def test_content_digest_ignores_ids_and_order(case: dict[str, Any], random: Any) -> None:
    """Renaming the items and putting them in another order leaves the content digest alone; new words change it."""
    renamed = [{**item, "item_id": f"item_{index}"} for index, item in enumerate(case["rubric_items"])]
    random.shuffle(renamed)

    assert case_content_sha256(case) == case_content_sha256({**case, "rubric_items": renamed})
    assert case_content_sha256(case) != case_content_sha256({**case, "prompt": case["prompt"] + "?"})


def test_content_digest_ignores_case_order() -> None:
    """The content digest of a dataset does not depend on the order of its cases; the dataset digest does."""
    one, two = make_case(number=0), make_case(number=1)

    assert content_sha256(map(case_content_sha256, [one, two])) == content_sha256(map(case_content_sha256, [two, one]))
    assert dataset_sha256([one, two]) != dataset_sha256([two, one])


def test_panels() -> None:
    """The ten panels stand in registry order, the last two graded by weighted F1."""
    assert PANEL_IDS[0] == "drug_safety"
    assert PANEL_IDS[7:] == ("calculators_conditional", "safety_diagnostic", "safety_therapeutic")
    assert [panel.grading_method for panel in PANELS] == ["points_rubric"] * 8 + ["f1_weighted_rubric"] * 2
    assert len(PANELS) == len(set(PANEL_IDS)) == 10


def test_rubric_rows() -> None:
    """Each item of a plan panel makes one long row with its place, polarity, severity class and weight."""
    rows = rubric_rows(make_case("safety_diagnostic"))

    assert [row["points"] for row in rows] == [3, 2, 1, 0, -1, -2, -3]
    assert [row["severity_class"] for row in rows] == [9, 8, 7, 5, 3, 2, 1]
    assert [row["weight"] for row in rows] == [72, 24, 3, 1, 3, 24, 72]
    assert [row["item_index"] for row in rows] == list(range(7))
    assert [row["polarity"] for row in rows] == ["positive"] * 3 + ["equivocal"] + ["negative"] * 3


def test_rubric_rows_of_points_panels() -> None:
    """Items of a points panel have no severity class and no weight."""
    rows = rubric_rows(make_case("drug_safety"))

    assert {(row["severity_class"], row["weight"]) for row in rows} == {(None, None)}


def test_item_id_and_polarity() -> None:
    """An item's id is the MD5 of the prompt's UTF-8 and its position; its polarity is the sign of its points."""
    assert item_id("", 3) == "d41d8cd98f00b204e9800998ecf8427e_3"
    assert [polarity(points) for points in (2, 0, -1)] == ["positive", "equivocal", "negative"]


def test_golden_item_ids() -> None:
    """The published runner's synthetic cases carry the same item ids."""
    case = GOLDEN["cases"][0]

    assert [item["item_id"] for item in case["rubric_items"]] == [
        item_id(case["prompt"], index) for index in range(len(case["rubric_items"]))
    ]


def run_python(code: str, *flags: str) -> str:
    """Return what a fresh interpreter prints, started where the module lies."""
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def test_import_is_light() -> None:
    """Importing the contract imports neither datasets nor any other heavy library, nor the other rooms."""
    heavy = ["builder", "datasets", "eval", "huggingface_hub", "numpy", "orjson", "pandas", "polars", "pyarrow"]

    assert run_python(f"import bedside_bench, sys; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_standard_library_is_enough() -> None:
    """Without any installed package the module imports and computes a digest."""
    code = "from bedside_bench import dataset_sha256; print(dataset_sha256([]))"

    assert run_python(code, "-S") == hashlib.sha256(b"[]").hexdigest()


def test_class_on_demand() -> None:
    """The builder class appears when asked for, and at once where datasets is imported already."""
    late = "import bedside_bench as b; print('BedsideBench' in vars(b), b.BedsideBench.__name__)"
    early = "import datasets, bedside_bench as b; print('BedsideBench' in vars(b), b.BedsideBench.__name__)"

    assert run_python(late) == "False BedsideBench"
    assert run_python(early) == "True BedsideBench"


def test_unknown_name() -> None:
    """Any other name the module lacks is an ordinary AttributeError."""
    with pytest.raises(AttributeError, match="has no attribute 'bedside'"):
        _ = bedside_bench.bedside  # type: ignore[attr-defined]
