"""One judge reply -> exactly one decision for every asked item, or a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.judging.judge import RefusedReplyError, parse_decisions

IDS = ("x_0", "x_1")


def _reply(*decisions: tuple[Any, Any], **extra: Any) -> str:
    rows = [{"item_id": id_, "matched": matched, **extra} for id_, matched in decisions]
    return json.dumps({"decisions": rows, **extra})


GOOD = _reply(("x_0", True), ("x_1", False))


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"\n {GOOD} \n",
        _reply(("x_1", False), ("x_0", True)),
        _reply(("x_0", True), ("x_1", False), explanation="because"),
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"```JSON\n{GOOD}```",
    ],
    ids=["bare", "blanks", "other order", "extra members", "json fence", "plain fence", "closed on the line"],
)
def test_complete_replies_are_read(reply: str) -> None:
    """A complete reply is read in the order of the asked ids, bare or in one fence around the whole of it."""
    assert (True, False) == parse_decisions(reply, IDS)


BAD = {
    "prose": "I cannot decide.",
    "empty": "",
    "empty object": "{}",
    "object of decisions": '{"decisions":{}}',
    "no decisions": '{"decisions":[]}',
    "missing item": _reply(("x_0", True)),
    "unknown item": _reply(("x_0", True), ("x_1", False), ("x_9", True)),
    "repeated, equal": _reply(("x_0", True), ("x_0", True), ("x_1", False)),
    "repeated, conflicting": _reply(("x_0", True), ("x_0", False), ("x_1", False)),
    "string false": _reply(("x_0", "false"), ("x_1", False)),
    "number": _reply(("x_0", 1), ("x_1", 0)),
    "float": _reply(("x_0", 1.0), ("x_1", False)),
    "null": _reply(("x_0", None), ("x_1", False)),
    "list": _reply(("x_0", []), ("x_1", False)),
    "id in brackets": _reply(("[x_0]", True), ("x_1", False)),
    "id with blanks": _reply((" x_0", True), ("x_1", False)),
    "id in other case": _reply(("X_0", True), ("x_1", False)),
    "number as id": _reply((0, True), (1, False)),
    "think block": f"<think>{GOOD}</think>{GOOD}",
    "chatty": f"Sure!\n```json\n{GOOD}\n```",
    "trailing prose": f"{GOOD}\nHope this helps",
    "two objects": f"{GOOD}{GOOD}",
    "two fences": f"```\n{GOOD}\n```\n```\n{GOOD}\n```",
    "python literals": "{'decisions': [{'item_id': 'x_0', 'matched': True}]}",
    "trailing comma": GOOD[:-2] + ",]}",
    "key twice": '{"decisions":[{"item_id":"x_0","matched":true,"matched":false},{"item_id":"x_1","matched":true}]}',
    "decisions twice": GOOD[:-1] + ',"decisions":[]}',
    "NaN": '{"decisions":[{"item_id":"x_0","matched":NaN},{"item_id":"x_1","matched":true}]}',
    "zero-width space": f"\u200b{GOOD}",
    "byte order mark": f"\ufeff{GOOD}",
    "cut": GOOD[:-20],
    "strings": '{"decisions":["x_0","x_1"]}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
def test_anything_else_is_refused(reply: str) -> None:
    """A reply that is not exactly one boolean for exactly each asked id gives no decision at all."""
    with pytest.raises(RefusedReplyError) as refused:
        parse_decisions(reply, IDS)

    assert "\n" not in str(refused.value)


def test_refusal_names_the_ids() -> None:
    """The reason lists the missing, unknown and repeated ids."""
    with pytest.raises(RefusedReplyError) as refused:
        parse_decisions(_reply(("x_0", True), ("x_0", True), ("x_9", True)), IDS)

    assert (
        "expected exactly one decision for each of 2 items; missing 1 (x_1), unknown 1 (x_9), repeated 1 (x_0)"
        == str(refused.value)
    )


@given(st.dictionaries(st.text(min_size=1), st.booleans(), min_size=1), st.randoms(use_true_random=False))
def test_any_complete_reply_round_trips(decisions: dict[str, bool], random: Any) -> None:
    """Whatever the ids are, a complete reply in any order gives back exactly its decisions."""
    rows = list(decisions.items())
    random.shuffle(rows)

    assert tuple(decisions.values()) == parse_decisions(_reply(*rows), list(decisions))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_no_json_value_is_guessed_at(value: Any) -> None:
    """No JSON value that is not a complete reply ever becomes decisions, or a traceback."""
    with pytest.raises(RefusedReplyError):
        parse_decisions(json.dumps({"decisions": value}), IDS)


def test_a_refusal_is_short_and_plain_whatever_ids_a_reply_names() -> None:
    """An unknown id of any length, with broken or control characters, is named shortly and without them."""
    reply = r'{"decisions":[{"item_id":"\ud800\n\u001b' + "x" * 100_000 + '","matched":true}]}'
    with pytest.raises(RefusedReplyError) as refused:
        parse_decisions(reply, IDS)

    assert 400 > len(str(refused.value))
    assert str(refused.value).isprintable()
