"""The vectors themselves: well-formed, worked out right, and each with its reason."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import eval.conformance as package
from eval.conformance.asking import PASSED, ask
from eval.conformance.deviations import scorer_of
from eval.conformance.ours import SUBJECTS, score_vector
from eval.conformance.vectors import BEDSIDE, FORMAT, HEALTHBENCH, SUITES, load_vectors
from eval.numbers.defaults import DIALECTS
from tests.naive_numbers import NAIVE

FOLDER = Path(package.__file__).parent / "vectors"
FILES = sorted(path for path in FOLDER.glob("*.json") if path.name != "schema.json")
VECTORS = load_vectors()
EXACT: dict[str, dict[str, Any]] = {
    vector["id"]: vector for path in FILES for vector in json.loads(path.read_bytes(), parse_float=Fraction)["vectors"]
}


def close(expected: Any, worked: Any, tolerance: Fraction) -> bool:
    """Tell whether two values have the same shape, and numbers within the tolerance."""
    if isinstance(expected, dict):
        return set(expected) == set(worked) and all(close(expected[k], worked[k], tolerance) for k in expected)
    if isinstance(expected, list):
        pairs = zip(expected, worked, strict=True)
        return len(expected) == len(worked) and all(close(e, w, tolerance) for e, w in pairs)
    if expected is None or worked is None:
        return expected is worked
    return abs(Fraction(expected) - Fraction(worked)) <= tolerance


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_is_as_its_schema_says(path: Path) -> None:
    """Each file holds what schema.json says, under its own name, with ids that say where they stand."""
    whole, schema = json.loads(path.read_bytes()), json.loads((FOLDER / "schema.json").read_bytes())
    jsonschema.Draft202012Validator(schema).validate(whole)

    assert (FORMAT, path.stem) == (whole["format"], whole["subject"])
    assert {(path.stem, path.stem)} == {(v["subject"], v["id"].partition("/")[0]) for v in whole["vectors"]}


def test_schema_is_a_schema() -> None:
    """schema.json is valid itself, and refuses a verdict that is no boolean."""
    schema = json.loads((FOLDER / "schema.json").read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    whole = json.loads((FOLDER / "bedside_points.json").read_bytes())
    whole["vectors"][0]["input"]["verdicts"][0] = 1

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, schema)


def test_ids_are_unique_and_both_suites_are_there() -> None:
    """A vector is known by its id; the suites divide them."""
    assert len({vector.id for vector in VECTORS}) == len(VECTORS)
    assert len(VECTORS) == sum(len(load_vectors(suite)) for suite in SUITES)
    assert {vector.subject for vector in VECTORS} == set(SUBJECTS) == set(NAIVE)


@pytest.mark.parametrize(
    ("suite", "variants"),
    [(BEDSIDE, {*DIALECTS}), (HEALTHBENCH, {"core", "hard", "consensus", "professional", "meta"})],
    ids=[BEDSIDE, HEALTHBENCH],
)
def test_every_variant_is_covered(suite: str, variants: set[str]) -> None:
    """Each dialect of BedsideBench and each published file of HealthBench has vectors."""
    assert variants == {vector.variant for vector in load_vectors(suite)}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_expected_numbers_are_worked_out_a_second_time(vector: Any) -> None:
    """Exact fractions and plain loops give the numbers that the file states."""
    exact = EXACT[vector.id]
    worked = NAIVE[vector.subject](exact)

    assert close(exact["expected"], {name: worked[name] for name in exact["expected"]}, Fraction(exact["tolerance"]))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_our_own_scorer_passes(vector: Any) -> None:
    """This package's numbers are the vectors' numbers, and so are those of a scorer that deviates in no way."""
    assert PASSED == ask(score_vector, vector).state
    assert PASSED == ask(scorer_of(), vector).state
