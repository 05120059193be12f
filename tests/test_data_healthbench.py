"""The sample examples in data/healthbench/: their shapes, ids, tags, canary, and numbers worked by hand."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[1] / "data"
FOLDER = DATA / "healthbench"
COUNTS = {
    "healthbench": 4,
    "healthbench_hard": 2,
    "healthbench_consensus": 3,
    "healthbench_professional": 3,
    "healthbench_meta": 12,
}
TAGGED = ("healthbench", "healthbench_hard", "healthbench_consensus")
PROFESSIONAL, META = "healthbench_professional", "healthbench_meta"
KEYS = {
    **dict.fromkeys(TAGGED, "prompt_id prompt rubrics example_tags ideal_completions_data canary"),
    PROFESSIONAL: "id conversation rubric_items use_case type difficulty specialty physician_response canary_string",
    META: "prompt completion completion_id prompt_id category rubric binary_labels anonymized_physician_ids",
}


def read(name: str) -> list[dict[str, Any]]:
    """Read a file's examples; lines end at the newline only."""
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_bytes().split(b"\n") if line]


def tagged() -> list[dict[str, Any]]:
    """Read the examples of the three files whose items have tags."""
    return [example for name in TAGGED for example in read(name)]


def turns(example: dict[str, Any]) -> list[dict[str, str]]:
    """Return the conversation of an example of any shape."""
    found: list[dict[str, str]] = example["prompt"] if "prompt" in example else example["conversation"]["messages"]
    return found


def score(rubric: list[tuple[str, float]], answer: str) -> float:
    """Score an answer by lines: a criterion is met if it stands there as a whole line."""
    met = sum(points for text, points in rubric if text in answer.split("\n"))
    return met / sum(points for _, points in rubric if points > 0)


def rubric(example: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the criteria and points of an example with a rubric."""
    if "rubrics" in example:
        return [(item["criterion"], item["points"]) for item in example["rubrics"]]
    return [(item["criterion_text"], item["points"]) for item in example["rubric_items"]]


def kinds(tags: list[str]) -> list[str]:
    """Return what stands before the colon of each tag."""
    return [tag.partition(":")[0] for tag in tags]


def test_the_folder_holds_one_file_a_shape() -> None:
    """There are the five published shapes, a handful of examples each, and nothing else."""
    assert COUNTS == {path.stem: len(read(path.stem)) for path in sorted(FOLDER.iterdir())}


@pytest.mark.parametrize("name", COUNTS)
def test_examples_have_the_keys_of_their_shape(name: str) -> None:
    """Every example has exactly the members of its published shape, in their order."""
    assert {tuple(KEYS[name].split())} == {tuple(example) for example in read(name)}


@pytest.mark.parametrize("name", COUNTS)
def test_files_are_lines_of_plain_json(name: str) -> None:
    """A file is what json.dumps writes with plain characters, one example a line, each ended."""
    written = "".join(json.dumps(example, ensure_ascii=False) + "\n" for example in read(name))

    assert written.encode() == (FOLDER / f"{name}.jsonl").read_bytes()


def test_ids_are_unique() -> None:
    """No two conversations share an id, in whatever file they are."""
    ids = [example["prompt_id"] for example in tagged()] + [example["id"] for example in read(PROFESSIONAL)]
    ids += {example["prompt_id"] for example in read(META)}

    assert len(ids) == len(set(ids)) == 18
    assert [] == [id_ for id_ in ids if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", id_)]


def test_every_conversation_is_cited() -> None:
    """data/SOURCES.md names every conversation, so that each fact can be looked up."""
    sources = (DATA / "SOURCES.md").read_text(encoding="utf-8")
    ids = [example["prompt_id"] for example in (*tagged(), *read(META))] + [e["id"] for e in read(PROFESSIONAL)]

    assert [] == [id_ for id_ in ids if id_ not in sources]


def test_the_canary_is_our_own() -> None:
    """Each example whose shape has a canary carries the one sentence with our GUID."""
    found = {example["canary"] for example in tagged()} | {example["canary_string"] for example in read(PROFESSIONAL)}

    assert len(found) == 1
    assert re.search(r"bedside-bench.* must not be used to train .*GUID [0-9a-f]{8}(-[0-9a-f]{4}){3}-", found.pop())


def test_conversations_alternate_and_end_with_the_user() -> None:
    """User and assistant take turns, from one turn to five, and the user has the last word."""
    conversations = [turns(example) for name in COUNTS for example in read(name)]
    roles = [[turn["role"] for turn in conversation] for conversation in conversations]

    assert [] == [found for found in roles if found != ["user", "assistant"] * (len(found) // 2) + ["user"]]
    assert {1, 3, 5} == {len(found) for found in roles}


def test_items_have_one_axis_and_one_level() -> None:
    """An item has one axis: and one level: tag, and a cluster: tag iff its level is cluster."""
    items = [item["tags"] for example in tagged() for item in example["rubrics"]]
    expected = {"level:example": ["axis", "level"], "level:cluster": ["axis", "cluster", "level"]}

    assert [] == [tags for tags in items if sorted(kinds(tags)) != expected[tags[0]]]


def test_consensus_items_are_all_of_clusters() -> None:
    """The consensus file has items of clusters only, the two others of both levels."""
    levels = {name: {item["tags"][0] for example in read(name) for item in example["rubrics"]} for name in TAGGED}

    assert levels.pop("healthbench_consensus") == {"level:cluster"}
    assert set(map(frozenset, levels.values())) == {frozenset({"level:cluster", "level:example"})}


def test_examples_have_one_theme() -> None:
    """An example has one theme: tag, and sometimes a physician_agreed_category: tag after it."""
    found = Counter(tuple(kinds(example["example_tags"])) for example in tagged())

    assert {("theme",): 5, ("theme", "physician_agreed_category"): 4} == found


def test_points_are_usual_and_one_is_fractional() -> None:
    """Points run from -10 to 10, each rubric has items for and against, and a fraction occurs."""
    rubrics = [rubric(example) for example in (*tagged(), *read(PROFESSIONAL))]
    values = [points for items in rubrics for _, points in items]

    assert [] == [value for value in values if not 1 <= abs(value) <= 10]
    assert [2.5, 2.5] == [value for value in values if type(value) is float]
    assert all(min(p for _, p in items) < 0 < max(p for _, p in items) for items in rubrics)


def test_every_group_of_completions_occurs() -> None:
    """Groups 1 to 3 and no completion at all occur; group 1 saw no references, the others four."""
    groups = [data["ideal_completions_group"] for e in tagged() if (data := e["ideal_completions_data"])]
    references = {
        (data["ideal_completions_group"], len(data["ideal_completions_ref_completions"] or ()))
        for e in tagged()
        if (data := e["ideal_completions_data"])
    }

    assert (["Group 1", "Group 2", "Group 3", "Group 1", "Group 2", "Group 3"], 3) == (groups, len(tagged()) - 6)
    assert {("Group 1", 0), ("Group 2", 4), ("Group 3", 4)} == references


def test_the_oddities_of_real_data_occur() -> None:
    """A line separator stands inside a string, and one conversation is in Spanish."""
    texts = [turns(example)[0]["content"] for example in read("healthbench")]

    assert [False, False, True, False] == ["\u2028" in text for text in texts]
    assert [False, True, False, False] == [text.startswith("Mi hijo") for text in texts]


def test_physicians_score_between_nothing_and_everything() -> None:
    """By whole lines the physicians' completions get 15/30, 12/32, 17/24; 16/29; 5/10 twice."""
    found = [
        score(rubric(e), data["ideal_completion"])
        for e in tagged()
        if (data := e["ideal_completions_data"]) is not None
    ]

    assert [15 / 30, 12 / 32, 17 / 24, 16 / 29, 5 / 10, 5 / 10] == found


def test_references_score_from_below_zero_up() -> None:
    """By whole lines the references of the core file get 7, -6, 12, 0 of 32 and 21, 1, -5, 11 of 24."""
    _, dengue, handover, _ = read("healthbench")
    found = {
        example["prompt_id"]: [
            score(rubric(example), text)
            for text in example["ideal_completions_data"]["ideal_completions_ref_completions"]
        ]
        for example in (dengue, handover)
    }

    assert [7 / 32, -6 / 32, 12 / 32, 0.0] == found[dengue["prompt_id"]]
    assert [21 / 24, 1 / 24, -5 / 24, 11 / 24] == found[handover["prompt_id"]]


def test_professional_responses_score_by_hand() -> None:
    """By whole lines the physicians' responses get 12/18, 10/15.5 and 5/16."""
    found = [score(rubric(example), example["physician_response"]) for example in read(PROFESSIONAL)]

    assert [12 / 18, 10 / 15.5, 5 / 16] == found


def test_judged_replies_have_their_published_shape() -> None:
    """Two to four physicians label a reply, each once; the completion's id is the hash of prompt id and text."""
    records = read(META)

    assert [3, 2, 2, 4, 2, 2, 3, 2, 3, 2, 4, 3] == [len(r["binary_labels"]) for r in records]
    assert all(len(r["binary_labels"]) == len(set(r["anonymized_physician_ids"])) for r in records)
    assert all(
        r["completion_id"] == hashlib.sha256((r["prompt_id"] + r["completion"]).encode()).hexdigest() for r in records
    )


def test_judged_replies_cover_four_categories_of_three_themes() -> None:
    """Categories begin with their theme; some records have physicians who disagree, some do not."""
    records = read(META)
    split = sum(len(set(record["binary_labels"])) == 2 for record in records)

    assert 5 == split
    assert {
        "cluster:emergency_referrals_care_now": 3,
        "cluster:emergency_referrals_no_alarm": 2,
        "cluster:hedging_states_uncertainty": 4,
        "cluster:context_seeking_asks_first": 3,
    } == Counter(record["category"] for record in records)


def test_the_line_judge_meets_the_physicians_as_worked_by_hand() -> None:
    """32 pairs: of 13 where the judge says met 11 agree, of 19 where it says not met 9 agree.

    So F1 is 22/34 for met (13 said, 21 labelled) and 18/30 for not met (19 said, 11 labelled); balanced 53/85.
    """
    pairs = Counter(
        (record["rubric"] in record["completion"].split("\n"), label)
        for record in read(META)
        for label in record["binary_labels"]
    )

    assert {(True, True): 11, (True, False): 2, (False, True): 10, (False, False): 9} == pairs
    assert abs((22 / 34 + 18 / 30) / 2 - 53 / 85) < 1e-15
