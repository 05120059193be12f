"""Deviations: each is found by its name in a scorer that shows it, also among others, and nowhere else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from eval.conformance.asking import Scorer, ask_all
from eval.conformance.deviations import DEVIATIONS, Deviation, rules_of, scorer_of
from eval.conformance.diagnosis import Diagnosis, diagnose
from eval.conformance.ours import score_vector
from eval.conformance.vectors import BEDSIDE, HEALTHBENCH, load_vectors

BY_ID = {deviation.id: deviation for deviation in DEVIATIONS}
PAIRS = [(deviation, suite) for deviation in DEVIATIONS for suite in deviation.suites]


def _diagnosed(scorer: Scorer, suite: str) -> Diagnosis:
    (found,) = diagnose(ask_all(scorer, load_vectors(suite)))
    return found


def _ids(deviations: tuple[Deviation, ...]) -> set[str]:
    return {deviation.id for deviation in deviations}


@pytest.mark.parametrize(("deviation", "suite"), PAIRS, ids=lambda value: getattr(value, "id", value))
def test_every_deviation_is_named(deviation: Deviation, suite: str) -> None:
    """A scorer that deviates in one way is told so, and nothing else of it; the name explains every failure."""
    found = _diagnosed(scorer_of(deviation), suite)

    assert Diagnosis(suite, (deviation,), (), (), found.failed, found.failed) == found
    assert found.failed > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "ids",
    [
        ("per-example-clip", "unreadable-not-met"),
        ("per-example-clip", "negatives-in-denominator"),
        ("unreadable-shifted", "negatives-earn"),
        ("per-example-clip", "per-tag-clip", "unreadable-not-met"),
        ("per-tag-clip", "unreadable-not-met", "unclipped-headline", "majority-labels"),
        ("per-example-clip", "per-tag-clip", "negatives-in-denominator"),
    ],
    ids=" + ".join,
)
def test_several_deviations_at_once_are_all_named(ids: tuple[str, ...]) -> None:
    """Also where one hides another, since both change the same number."""
    found = _diagnosed(scorer_of(*(BY_ID[name] for name in ids)), HEALTHBENCH)

    assert (set(ids), found.failed) == (_ids(found.named), found.explained)


@pytest.mark.parametrize(
    "ids",
    [("veto", "rounded-plan"), ("veto", "class-5-critical"), ("no-veto", "unstratified-interval")],
    ids=" + ".join,
)
def test_several_deviations_in_plans_are_all_named(ids: tuple[str, ...]) -> None:
    """A scorer of the published runner's rules for the default dialect is told each of them."""
    found = _diagnosed(scorer_of(*(BY_ID[name] for name in ids)), BEDSIDE)

    assert (set(ids), found.failed) == (_ids(found.named), found.explained)


def test_right_scorer_has_no_diagnosis() -> None:
    """Without a failure there is nothing to explain."""
    assert () == diagnose(ask_all(score_vector, load_vectors()))


def test_scorer_written_apart_from_ours_is_recognised() -> None:
    """A dozen lines that clip an example, read a missing verdict as false, and know nothing but examples."""

    def scorer(vector: dict[str, Any]) -> dict[str, Any]:
        if vector["subject"] != "healthbench_examples":
            return {"unsupported": "example scores only"}
        points, met = vector["input"]["points"], vector["input"]["verdicts"]
        available = sum(point for point in points if point > 0)
        if not available:
            return {"score": None}
        earned = sum(point for point, verdict in zip(points, met, strict=True) if verdict)
        return {"score": float(max(Fraction(0), Fraction(earned) / Fraction(available)))}

    found = _diagnosed(scorer, HEALTHBENCH)

    assert {"per-example-clip", "unreadable-not-met"} == _ids(found.named)
    assert (4, 4) == (found.explained, found.failed)


def test_keys_that_a_scorer_lacks_do_not_hide_what_it_does() -> None:
    """A scorer without n is still seen to clip; what it does not give stays unexplained."""
    clipping = scorer_of(BY_ID["per-example-clip"])

    def scorer(vector: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = clipping(vector)
        return {"overall": {"value": found["overall"]["value"]}} if "overall" in found else found

    found = _diagnosed(scorer, HEALTHBENCH)

    assert {"per-example-clip"} == _ids(found.named)
    assert found.explained < found.failed


def test_deviations_that_cannot_be_told_apart_are_both_given() -> None:
    """Where only one vector is answered that two deviations answer alike, the second also fits."""
    not_met = scorer_of(BY_ID["unreadable-not-met"])

    def scorer(vector: dict[str, Any]) -> Any:
        return not_met(vector) if vector["id"] == "healthbench_examples/unreadable-harm" else {"unsupported": ""}

    found = _diagnosed(scorer, HEALTHBENCH)

    assert (("unreadable-not-met",), ("unreadable-shifted",)) == tuple(
        tuple(deviation.id for deviation in deviations) for deviations in (found.named, found.also)
    )


def test_deviation_shown_in_most_places_is_given_as_partial() -> None:
    """A scorer that deviates in examples and tags, but not in one aggregate, deviates in part."""
    clipping = scorer_of(BY_ID["per-example-clip"])

    def scorer(vector: dict[str, Any]) -> Any:
        return (score_vector if vector["id"] == "healthbench_aggregate/hard" else clipping)(vector)

    found = _diagnosed(scorer, HEALTHBENCH)
    (partial,) = found.partial

    assert ((), 0) == (found.named, found.explained)
    assert ("per-example-clip", partial.shows - 1) == (partial.deviation.id, partial.agrees)


@pytest.mark.parametrize(
    "scorer",
    [lambda _: {}, lambda _: 1 / 0, lambda vector: dict.fromkeys(vector["expected"], 0.123)],
    ids=["nothing", "raises", "the same for all"],
)
def test_other_failures_are_no_deviation(scorer: Scorer) -> None:
    """A scorer that is merely broken is not said to score like somebody."""
    for suite in (BEDSIDE, HEALTHBENCH):
        found = _diagnosed(scorer, suite)

        assert ((), (), (), 0) == (found.named, found.also, found.partial, found.explained)


def test_deviations_have_ids_sentences_and_sources() -> None:
    """Each says what it does and where it was seen; each changes one step, in a way of its own."""
    assert len(BY_ID) == len(DEVIATIONS) == len({(d.field, str(d.value)) for d in DEVIATIONS})
    assert all(d.does and d.seen_in and d.suites and rules_of([d]) != rules_of([]) for d in DEVIATIONS)
