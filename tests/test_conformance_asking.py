"""Asking a scorer: whatever it does is the outcome of one vector, in one line, and never ours to crash on."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eval.conformance.asking import FAILED, PASSED, SKIPPED, Outcome, ask, ask_all
from eval.conformance.ours import score_vector
from eval.conformance.places import NOTHING, Difference, alike, differences, leaves
from eval.conformance.vectors import Vector, load_vectors

VECTORS = {vector.id: vector for vector in load_vectors()}
HALF = VECTORS["healthbench_examples/harm-met"]
TAGS = VECTORS["healthbench_tags/one-name-in-both"]


def _raise(error: BaseException) -> Callable[[dict[str, Any]], Any]:
    def scorer(_: dict[str, Any]) -> Any:
        raise error

    return scorer


class _NoWords(Exception):
    """An error that cannot be put into words."""

    def __str__(self) -> str:
        raise ValueError


def _deep() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["score"] = value
    return value


@pytest.mark.parametrize(
    ("scorer", "reason"),
    [
        (_raise(RuntimeError("no\nway")), "the scorer raised RuntimeError: no way"),
        (_raise(KeyError("a")), "the scorer raised KeyError: 'a'"),
        (_raise(SystemExit(3)), "the scorer raised SystemExit: 3"),
        (_raise(_NoWords()), "the scorer raised _NoWords"),
        (_raise(ValueError("\x1b[2J" + "x" * 999)), "the scorer raised ValueError: \\u001b[2J" + "x" * 139 + "..."),
        (lambda _: [0.5], "expected a dict, found a list"),
        (lambda _: None, "expected a dict, found None"),
        (lambda _: 0.5, "expected a dict, found a float"),
        (lambda _: {"score": math.nan}, "score: expected a number or None, found nan: JSON has no such number"),
        (lambda _: {"score": -math.inf}, "score: expected a number or None, found -inf: JSON has no such number"),
        (lambda _: {"score": (0.5,)}, "score: expected JSON, found a tuple; return a list"),
        (lambda _: {"score": {0.5}}, "score: expected JSON, found a set"),
        (
            lambda _: {"score": np.float64(0.5)},
            "score: expected JSON, found a numpy.float64; convert it with .item()",
        ),
        (
            lambda _: {"a": [1, np.zeros(2)]},
            "a[1]: expected JSON, found a numpy.ndarray; convert it with .tolist()",
        ),
        (lambda _: {"a": {1: 0.5}}, "a: expected text as every key, found a int"),
        (lambda _: {"score": 10**400}, "score: expected a number, found an integer of 1,329 bits"),
        (lambda _: _deep(), "the answer: expected JSON, found more than 50 levels of nesting"),
    ],
)
def test_broken_scorer_fails_the_vector_with_one_line(scorer: Callable[[dict[str, Any]], Any], reason: str) -> None:
    """A scorer that raises, or gives what JSON does not have, fails with its reason, not with a traceback."""
    assert Outcome(HALF, FAILED, reason=reason) == ask(scorer, HALF)


def test_interrupt_is_not_the_scorers() -> None:
    """Ctrl-C ends the program, whoever is being asked."""
    with pytest.raises(KeyboardInterrupt):
        ask(_raise(KeyboardInterrupt()), HALF)


def test_endless_recursion_of_a_scorer_is_its_own() -> None:
    """A scorer that never stops calling itself fails the vector."""

    def scorer(vector: dict[str, Any]) -> Any:
        return scorer(vector)

    outcome = ask(scorer, HALF)

    assert FAILED == outcome.state
    assert "the scorer raised RecursionError" in (outcome.reason or "")
    assert sys.getrecursionlimit() > 0


def test_missing_key_fails() -> None:
    """What is asked for and not given is a difference at its place."""
    assert (Difference("score", 0.5, NOTHING),) == ask(lambda _: {}, HALF).differences


def test_more_keys_than_asked_for_are_passed_over() -> None:
    """A scorer may say more than it is asked, but no tag more than there are."""
    assert PASSED == ask(lambda _: {"score": 0.5, "model": "m"}, HALF).state

    right = score_vector(dict(TAGS.whole))
    right["rubric_tags"]["safety"]["raw"] = 0.0
    assert (Difference("rubric_tags.safety.raw", NOTHING, 0.0),) == ask(lambda _: right, TAGS).differences


@pytest.mark.parametrize("value", [True, "0.5", None, [0.5], {"value": 0.5}, 0.5 + 1e-11])
def test_another_kind_of_value_fails(value: Any) -> None:
    """Text is no number, true is not 1, and a number beyond the tolerance is another."""
    assert FAILED == ask(lambda _: {"score": value}, HALF).state


@pytest.mark.parametrize("value", [0.5, 0.5 + 1e-13, 0.5 - 1e-13])
def test_number_within_the_tolerance_passes(value: float) -> None:
    """The last bits are nobody's rule."""
    assert PASSED == ask(lambda _: {"score": value}, HALF).state


def test_unsupported_is_skipped_with_its_reason() -> None:
    """A scorer says what it does not compute, and that is no failure; beside numbers the word means nothing."""
    assert Outcome(HALF, SKIPPED, reason="no such thing") == ask(lambda _: {"unsupported": "no such\nthing"}, HALF)
    assert PASSED == ask(lambda _: {"unsupported": "", "score": 0.5}, HALF).state


def test_scorer_cannot_change_the_vectors() -> None:
    """Every scorer gets a copy of its own."""

    def scorer(vector: dict[str, Any]) -> dict[str, Any]:
        vector["input"]["points"].clear()
        vector["expected"]["score"] = 9
        return {"score": 9}

    assert (FAILED, PASSED) == (ask(scorer, HALF).state, ask(score_vector, HALF).state)


def test_scorer_gets_the_whole_vector() -> None:
    """What a scorer is given is the object of the file."""
    given: list[dict[str, Any]] = []
    ask_all(lambda vector: given.append(vector) or {}, VECTORS.values())  # type: ignore[func-returns-value]

    assert [vector.whole for vector in VECTORS.values()] == given


def test_leaves_are_the_single_values_by_place() -> None:
    """Objects and arrays come down to places; an empty one is a value itself."""
    value = {"a": [1, None], "b": {"axis:x y": True, "c": {}}, "d": []}

    assert {"a[0]": 1, "a[1]": None, 'b["axis:x y"]': True, "b.c": {}, "d": []} == leaves(value)


def test_differences_are_in_the_order_expected() -> None:
    """First what was expected, then what was found beyond it."""
    found = differences({"b": 1, "a": 2, "e": {}}, {"z": 3, "a": 2.0, "e": []}, 0)

    assert (Difference("b", 1, NOTHING), Difference("e", {}, []), Difference("z", NOTHING, 3)) == found


def test_true_is_not_one() -> None:
    """A boolean is like a boolean only."""
    assert (False, False, True, True) == (alike(True, 1, 9), alike(0, False, 9), alike(True, True, 0), alike(1, 1.0, 0))


def test_tolerance_is_the_vectors_own() -> None:
    """Where a vector allows more, more passes."""
    wide: Vector = replace(HALF, tolerance=0.1)

    assert PASSED == ask(lambda _: {"score": 0.59}, wide).state
