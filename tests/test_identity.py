"""What a run is: its semantics digest, its protocol's name, and what differs between two runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedside_bench import sha256_json
from eval.calls.answers import GivenAnswers
from eval.calls.plan import Model
from eval.judging.identity import differences, semantics_sha256
from eval.judging.protocol import protocol_prompts
from tests.plans import VERBATIM, case_set, make_plan

URL = "http://127.0.0.1:1/v1"
_LEAVES = st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from([0.0, 1.0, "a"])
JSON_OBJECTS = st.dictionaries(
    st.sampled_from("ab"),
    st.recursive(_LEAVES, lambda c: st.lists(c, max_size=2) | st.dictionaries(st.sampled_from("ab"), c, max_size=2)),
    max_size=2,
)


def _identity(**choices: Any) -> dict[str, Any]:
    return make_plan(case_set(1, ["drug_safety"]), url=URL, **choices).identity()


def _sha(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()


def test_semantics_are_exactly_the_listed_facts() -> None:
    """The digest is the SHA-256 of the object of formats.md 9, written out here by hand, and of nothing else."""
    prompts = protocol_prompts()
    facts = {
        "scoring": {"dialect": "spec", "missing": "ungraded"},
        "prompts": {
            "answer_system": _sha(prompts.answer_system),
            "judge_system": _sha(prompts.judge_system),
            "judge_template": _sha(f"{prompts.judge_user}\n\n{prompts.judge_item}"),
        },
        "reply": {"format": "json_object", "id_style": "full", "fence": "whole reply, once"},
        "grouping": "case",
        "jury": {
            "judges": 1,
            "repeats": 1,
            "vote": "more than half of called",
            "verdict": "1 that judge; 2 unanimous; 3+ strict majority",
        },
        "temperatures": {"answer": 1, "judge": 0},
        "bootstrap": {"stream": "numpy default_rng, appendix H", "samples": 10000, "seed": 42, "alpha": 0.05},
    }
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    assert _sha(text) == _identity()["semantics_sha256"]


def test_models_endpoints_and_data_leave_the_semantics_alone() -> None:
    """Another judge, endpoint, effort, limit or dataset is another run, not another way of making numbers."""
    other = make_plan(
        case_set(2, ["health_equity"]),
        url="http://localhost:9/api",
        reasoning_effort="high",
        limits={"max_attempts": 5},
    )

    assert _identity()["semantics_sha256"] == other.identity()["semantics_sha256"]
    assert differences(_identity(), other.identity())


def test_another_dialect_or_bootstrap_has_other_semantics() -> None:
    """`score --dialect`, samples and seed each give another digest, all of them distinct."""
    identity = _identity()
    settings: list[dict[str, Any]] = [{}, {"dialect": "upstream"}, {"dialect": "upstream-veto"}, {"seed": 7}]

    assert 5 == len({semantics_sha256(identity, **s) for s in [*settings, {"samples": 500}]})


STANDARD: dict[str, dict[str, Any]] = {
    "models": {},
    "high effort": {"reasoning_effort": "high"},
    "more tries": {"limits": {"max_attempts": 5}},
    "policy": {"answer": Model("builtin:refuse")},
    "verbatim judge": {"judge": VERBATIM},
    "answers of a file": {"answer": Model("somebody"), "given": GivenAnswers({}, "somebody", "0" * 64)},
}


@pytest.mark.parametrize("choices", STANDARD.values(), ids=STANDARD.keys())
def test_a_standard_run_has_the_plain_protocol_name(choices: dict[str, Any]) -> None:
    """With the protocol's texts, form and temperatures nothing is appended; what is never sent cannot differ."""
    assert "bedside-bench-grading-v1" == _identity(**choices)["protocol"]


CHANGED: dict[str, dict[str, Any]] = {
    "system text": {"prompts": replace(protocol_prompts(), answer_system="Be brief.")},
    "judge text": {"prompts": replace(protocol_prompts(), judge_item="[<<item_id>>] <<text>>")},
    "answer temperature": {"answer_temperature": 0},
    "judge temperature": {"judge_temperature": 1},
    "short ids": {"id_style": "short"},
    "schema": {"judge_format": "json_schema"},
    "no format": {"judge_format": "none"},
    "repeats": {"repeats": 3},
}


@pytest.mark.parametrize("reading", CHANGED.values(), ids=CHANGED.keys())
def test_any_change_of_the_protocol_shows_in_its_name(reading: dict[str, Any]) -> None:
    """Another text, temperature, form or jury appends the first 8 hex of the run's own semantics."""
    identity = _identity(reading=reading)

    assert f"bedside-bench-grading-v1+{identity['semantics_sha256'][:8]}" == identity["protocol"]
    assert identity["semantics_sha256"] != _identity()["semantics_sha256"]


DIFFERENT: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "equal": ({"a": {"b": [1, {"c": None}]}}, {"a": {"b": [1, {"c": None}]}}, []),
    "nested": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b: 1 in the file, 2 now"]),
    "list": ({"a": ["x", {"b": 1}]}, {"a": ["x", {"b": 2}]}, ["a.1.b: 1 in the file, 2 now"]),
    "longer list": ({"a": ["x"]}, {"a": ["x", "y"]}, ["a: ['x'] in the file, ['x', 'y'] now"]),
    "int and float": ({"a": 1}, {"a": 1.0}, ["a: 1 in the file, 1.0 now"]),
    "int and bool": ({"a": [1]}, {"a": [True]}, ["a.0: 1 in the file, True now"]),
    "null and object": ({"a": None}, {"a": {"b": 1}}, ["a: None in the file, {'b': 1} now"]),
    "new member": ({}, {"a": 3}, ["a: nothing in the file, 3 now"]),
    "new null": ({"b": 1}, {"a": None, "b": 1}, ["a: nothing in the file, None now"]),
    "lost null": ({"a": {"b": None}}, {"a": {}}, ["a.b: None in the file, nothing now"]),
    "two": ({"b": 1, "a": 1}, {"a": 2, "b": 2}, ["a: 1 in the file, 2 now", "b: 1 in the file, 2 now"]),
}


@pytest.mark.parametrize(("old", "new", "lines"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_differences_name_the_field_to_the_leaf(old: dict[str, Any], new: dict[str, Any], lines: list[str]) -> None:
    """Each differing leaf is one line with its path; 1, 1.0 and true differ, and so do null and absent."""
    assert lines == differences(old, new)


@given(JSON_OBJECTS, JSON_OBJECTS)
def test_no_difference_means_the_same_digest(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Two identities without a differing field have one digest; two with one have two."""
    assert (not differences(old, new)) == (sha256_json(old) == sha256_json(new))
