"""The words that models read and the parameters they are sent with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from eval.cases import Case, Item
from eval.judging.protocol import (
    answer_messages,
    answer_params,
    asked_ids,
    judge_messages,
    judge_params,
    protocol_prompts,
)
from eval.judging.texts import Prompts, fill

GOLDEN = Path(__file__).parent / "golden" / "upstream_synthetic.json"


def _case(items: int = 1, prompt: str = "p") -> Case:
    rubric = tuple(Item(f"x_{i}", f"t{i}", 1) for i in range(items))
    return Case("c", "drug_safety", "points_rubric", (("user", prompt),), rubric)


@pytest.mark.parametrize(
    ("name", "characters", "sha256"),
    [("answer_system", 268, "809ad9229903af9c"), ("judge_system", 833, "190b4c1e549f79bd")],
)
def test_prompt_texts_are_the_protocols_to_the_byte(name: str, characters: int, sha256: str) -> None:
    """Both system texts have the length and the SHA-256 that the protocol gives for them."""
    text = getattr(protocol_prompts(), name)

    assert characters == len(text)
    assert sha256 == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_judge_message_equals_the_published_runners() -> None:
    """The judge's user message is the published runner's to the byte, floats, quotes and signs included."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    cases = {case["case_id"]: case for case in golden["cases"]}
    for expected in golden["expected"]:
        raw = cases[expected["case_id"]]
        items = tuple(Item(i["item_id"], i["text"], i["points"]) for i in raw["rubric_items"])
        case = Case(raw["case_id"], raw["benchmark"], raw["grading_method"], (("user", raw["prompt"]),), items)
        messages = judge_messages(
            case, "Answer line 1\n\nline 2", items=items, ids=asked_ids(items), prompts=protocol_prompts()
        )

        assert expected["judge_user"] == messages[1]["content"]


def test_answer_message_is_the_prompt_unchanged() -> None:
    """The prompt goes out as the single user turn, blanks and typographic characters as they are."""
    prompt = " SpO₂ ≥ 92 %\u2028\n\n- a  "

    assert [
        {"role": "system", "content": protocol_prompts().answer_system},
        {"role": "user", "content": prompt},
    ] == answer_messages(_case(prompt=prompt), prompts=protocol_prompts())


def test_places_in_data_are_not_filled() -> None:
    """An answer that holds a place of the template stays as it is: no text can forge another section."""
    prompts = Prompts("", "", "<<prompt>>|<<answer>>|<<items>>", "[<<item_id>>] <<text>>")
    messages = judge_messages(_case(prompt="<<answer>>"), "<<items>>", items=(), ids=(), prompts=prompts)

    assert "<<answer>>|<<items>>|" == messages[1]["content"]


def test_fill_refuses_a_place_without_value() -> None:
    """A template that names an unknown place is an error, never an empty text."""
    with pytest.raises(KeyError):
        fill("<<nobody>>", {})


@pytest.mark.parametrize(("items", "tokens"), [(1, 5_000), (50, 5_000), (51, 5_080), (100, 9_000)])
def test_judge_token_cap_grows_with_the_items(items: int, tokens: int) -> None:
    """The judge may write max(5000, 1000 + 80 x items) tokens (spec section 4)."""
    params = judge_params(asked_ids(_case(items).items), judge_format="json_object")

    assert {
        "max_completion_tokens": tokens,
        "response_format": {"type": "json_object"},
        "temperature": 0,
    } == params


def test_answer_parameters_are_the_protocols() -> None:
    """The answer model is asked for 32,000 tokens at temperature 1, with reasoning effort only where it was chosen."""
    assert {"max_completion_tokens": 32_000, "temperature": 1} == answer_params(temperature=1, reasoning_effort=None)
    assert "high" == answer_params(temperature=None, reasoning_effort="high")["reasoning_effort"]
    assert "temperature" not in answer_params(temperature=None, reasoning_effort=None)


def test_schema_format_names_exactly_the_asked_ids() -> None:
    """With a JSON schema the judge can name no other id and no other number of decisions."""
    ids = asked_ids(_case(2).items)
    schema = judge_params(ids, judge_format="json_schema")["response_format"]["json_schema"]["schema"]
    decisions = schema["properties"]["decisions"]

    assert ["x_0", "x_1"] == decisions["items"]["properties"]["item_id"]["enum"]
    assert (2, 2) == (decisions["minItems"], decisions["maxItems"])


def test_short_ids_are_positions() -> None:
    """Short style shows the judge item_0, item_1 ... in file order."""
    assert ("item_0", "item_1") == asked_ids(_case(2).items, id_style="short")
