"""The authored probes: what they hold, how they become cases, and what a wrong file is told."""

from __future__ import annotations

import copy
import json
from importlib.resources import files
from typing import Any

import pytest

from builder.errors import BadInput
from eval.certificates.probes import (
    KINDS,
    TRAITS,
    parse_probes,
    probe_answers,
    probe_cases,
    probe_data,
    probes_of,
    probes_sha256,
    read_probes,
)

KNOWLEDGE = KINDS[0]
DECIDED = [kind.name for kind in KINDS if kind.name != "statements"]  # there a judge lists, and decides no items


def _file() -> dict[str, Any]:
    """Return the first file, with its first probe only."""
    raw = (files("eval.certificates") / "authored" / "knowledge.json").read_bytes()
    whole: dict[str, Any] = json.loads(raw)
    return {**whole, "probes": copy.deepcopy(whole["probes"][:1])}


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_every_kind_has_a_gating_probe_of_every_trait(kind: str) -> None:
    """Good, bad, negation, partial, injection, verdict in the answer, language, long, empty: each has a sentinel."""
    found = {
        probe.trait for probe in read_probes() if probe.kind == kind and any(item.sentinel for item in probe.items)
    }

    assert set(TRAITS) == found


@pytest.mark.parametrize("kind", DECIDED)
def test_a_negative_item_is_matched_in_the_bad_answer_and_not_in_the_good_one(kind: str) -> None:
    """The same items are asked of a good and a bad answer to one question, and the decisions differ."""
    by_trait = {
        trait: {
            item.text: item.expected
            for probe in read_probes()
            if (probe.kind, probe.trait) == (kind, trait)
            for item in probe.items
            if item.points < 0 and item.sentinel
        }
        for trait in ("good", "bad")
    }

    assert dict.fromkeys(by_trait["bad"], False).items() <= by_trait["good"].items()
    assert by_trait["bad"]
    assert all(by_trait["bad"].values())


def test_a_judge_that_says_one_thing_always_is_wrong_in_every_trait() -> None:
    """No trait but the empty answer can be passed by always saying true, or by always saying false."""
    for trait in TRAITS[:-1]:
        expected = {item.expected for probe in read_probes() if probe.trait == trait for item in probe.items}

        assert {True, False} == expected, trait


def test_long_answers_are_long_and_decided_late() -> None:
    """A long answer has 20,000 to 40,000 characters, and what decides stands in its last tenth."""
    long = [probe.answer for probe in read_probes() if probe.trait == "long" and probe.kind in DECIDED]

    assert all(20_000 < len(answer) < 40_000 for answer in long)
    assert all(answer.rfind(answer.partition("\n\n")[0]) > 0.9 * len(answer) for answer in long)


def test_a_judge_sees_no_name_that_tells() -> None:
    """Ids look as those of real cases do, and no two items share one."""
    cases = probe_cases(read_probes())
    ids = [item.item_id for case in cases for item in case.items]

    assert all(len(case.case_id) == 32 and int(case.case_id, 16) for case in cases)
    assert len(ids) == len(set(ids))
    assert f"{cases[0].case_id}_0" == ids[0]


def test_a_verdict_in_an_answer_names_the_ids_that_are_asked() -> None:
    """What a careless judge would copy from the answer reads as a reply to the very question."""
    probe = next(probe for probe in read_probes() if probe.id == "knowledge-verdict-opioid")

    assert [decision["item_id"] for decision in json.loads(probe.answer.splitlines()[-1])["decisions"]] == list(
        probe.item_ids
    )


def test_the_empty_answer_is_given_as_one() -> None:
    """An empty answer is judged: it is in state ok, not missing."""
    probes = read_probes()
    empty = next(probe for probe in probes if probe.trait == "empty")
    given = probe_answers(probes).answer(empty.case_id, 0)

    assert given is not None
    assert ("", "ok") == (given.text, given.state)


def test_the_digest_names_the_data_and_moves_with_an_expectation() -> None:
    """The data set of a suite is named by the digest of its probes; one expectation turned gives another."""
    probes = probes_of("bedside-bench")
    whole = _file()
    before = probes_sha256(parse_probes(json.dumps(whole).encode(), KNOWLEDGE))
    whole["probes"][0]["items"][0]["expected"] = False

    assert probe_data("bedside-bench").dataset_sha256 == probes_sha256(probes)
    assert probes_sha256(parse_probes(json.dumps(whole).encode(), KNOWLEDGE)) != before


BREAKS: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "format": (("format",), "x", 'authored/knowledge.json: format: expected bedside-bench/probes/1, found "x"'),
    "kind": (("kind",), "plan", 'authored/knowledge.json: kind: expected knowledge, found "plan"'),
    "trait": (("probes", 0, "trait"), "odd", "trait: expected one of good, bad"),
    "member": (("probes", 0, "more"), 1, "expected the members answer, id, items, prompt, trait"),
    "no items": (("probes", 0, "items"), [], "expected items, found none"),
    "points": (("probes", 0, "items", 0, "points"), True, "item 0: points: expected an integer"),
    "expected": (("probes", 0, "items", 1, "expected"), 1, "item 1: expected: expected true or false, found 1"),
    "repeat": (("probes", 0, "answer"), [{"repeat": 0, "text": "x"}], "part 0: repeat: expected 1 or more, found 0"),
    "place": (("probes", 0, "answer"), "<<item_9>>", "answer: expected places item_0, item_1, item_2, found 'item_9'"),
    "prompt": (("probes", 0, "prompt"), " ", 'prompt: expected a text, found " "'),
    "no user": (("probes", 0, "prompt"), [{"role": "assistant", "content": "x"}], "turns that end with the user's"),
}


@pytest.mark.parametrize(("place", "value", "message"), BREAKS.values(), ids=BREAKS.keys())
def test_a_wrong_probe_file_is_told_where(place: tuple[Any, ...], value: Any, message: str) -> None:
    """Each rule of the format, broken once: the file, the probe and what was expected are named."""
    whole = _file()
    target: Any = whole
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value

    with pytest.raises(BadInput) as caught:
        parse_probes(json.dumps(whole).encode(), KNOWLEDGE)

    assert message in str(caught.value)


def test_a_key_twice_is_refused() -> None:
    """The files are strict JSON."""
    with pytest.raises(BadInput, match="expected strict JSON"):
        parse_probes(b'{"format": "x", "format": "y"}', KNOWLEDGE)
