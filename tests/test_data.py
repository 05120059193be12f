"""The sample cases in data/: their files, ids, rubric shapes, sources and typographic variety."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

import pytest

DATA = Path(__file__).parents[1] / "data"


class Item(TypedDict):
    """One rubric item of a case file."""

    item_id: str
    text: str
    points: int


class Case(TypedDict):
    """One case file."""

    case_id: str
    benchmark: str
    grading_method: str
    prompt: str
    rubric_items: list[Item]
    split: str


class Shape(NamedTuple):
    """What a panel promises: how it is graded and the fewest and most items of a case."""

    type: str
    grading_method: str
    fewest: int
    most: int


PANELS = {
    "calculators_conditional": Shape("Rubric", "points_rubric", 1, 3),
    "calculators_numerical": Shape("Rubric", "points_rubric", 1, 2),
    "clinical_calculations": Shape("Rubric", "points_rubric", 1, 3),
    "drug_safety": Shape("Rubric", "points_rubric", 1, 12),
    "guideline_adherence": Shape("Rubric", "points_rubric", 1, 12),
    "health_equity": Shape("Rubric", "points_rubric", 4, 7),
    "landmark_trials": Shape("Rubric", "points_rubric", 1, 12),
    "medical_hallucination": Shape("Rubric", "points_rubric", 2, 2),
    "safety_diagnostic": Shape("ManagementPlan", "f1_weighted_rubric", 24, 40),
    "safety_therapeutic": Shape("ManagementPlan", "f1_weighted_rubric", 24, 40),
}
SAFETY_PANELS = [panel for panel, shape in PANELS.items() if shape.type == "ManagementPlan"]

each_panel = pytest.mark.parametrize("panel", PANELS)
each_safety_panel = pytest.mark.parametrize("panel", SAFETY_PANELS)


def case_files(panel: str) -> list[Path]:
    """List the case files of a panel by name."""
    return sorted((DATA / panel / "cases").iterdir())


def read_cases(panel: str) -> list[Case]:
    """Read the cases of a panel in file-name order."""
    return [cast(Case, json.loads(path.read_bytes())) for path in case_files(panel)]


def read_all_cases() -> list[Case]:
    """Read the cases of every panel."""
    return [case for panel in PANELS for case in read_cases(panel)]


def manifest_ids(panel: str) -> list[str]:
    """Read the case ids of a panel's manifest in their order."""
    manifest = cast(dict[str, object], json.loads((DATA / panel / "manifest.json").read_bytes()))
    return cast(list[str], manifest["case_ids"])


def points(case: Case) -> list[int]:
    """List the points of a case in item order."""
    return [item["points"] for item in case["rubric_items"]]


def item_texts(case: Case) -> list[str]:
    """List the item texts of a case in order."""
    return [item["text"] for item in case["rubric_items"]]


def texts(case: Case) -> list[str]:
    """List every text of a case: the prompt, then the items."""
    return [case["prompt"], *item_texts(case)]


def md5(text: str) -> str:
    """Give the lower-case MD5 hex of a text's UTF-8 bytes."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def test_there_are_exactly_ten_panels() -> None:
    """The data folder holds the ten panels, and beside them only HealthBench's shapes and documents."""
    folders = sorted(path.name for path in DATA.iterdir() if path.is_dir())

    assert sorted([*PANELS, "healthbench", "documents"]) == folders


@each_panel
def test_each_panel_has_five_cases(panel: str) -> None:
    """A panel has five case files, and nothing but the manifest beside their folder."""
    beside = sorted(path.name for path in (DATA / panel).iterdir())

    assert (["cases", "manifest.json"], 5) == (beside, len(case_files(panel)))


@each_panel
def test_the_manifest_lists_exactly_the_files(panel: str) -> None:
    """A manifest names each case file once and no file that is not there."""
    names = [path.name for path in case_files(panel)]

    assert names == sorted(f"{case_id}.json" for case_id in manifest_ids(panel))


@each_panel
def test_the_manifest_order_is_its_own(panel: str) -> None:
    """A manifest's order is not the order of the names, so that a reader that sorts is caught."""
    ids = manifest_ids(panel)

    assert sorted(ids) != ids


@each_panel
def test_the_manifest_says_how_the_panel_is_graded(panel: str) -> None:
    """A manifest has the eight keys in their order and the values of its panel."""
    manifest = cast(dict[str, object], json.loads((DATA / panel / "manifest.json").read_bytes()))
    expected = {
        "benchmark": panel,
        "version": "1.0.0",
        "seed": 42,
        "type": PANELS[panel].type,
        "grading_method": PANELS[panel].grading_method,
        "description": manifest.get("description"),
        "case_count": 5,
        "case_ids": manifest.get("case_ids"),
    }

    assert list(expected.items()) == list(manifest.items())


@each_panel
def test_files_round_trip_byte_for_byte(panel: str) -> None:
    """Every JSON file is what json.dumps writes with two spaces, plain characters and one newline at the end."""
    files = [DATA / panel / "manifest.json", *case_files(panel)]
    written = {path: json.dumps(json.loads(path.read_bytes()), indent=2, ensure_ascii=False) + "\n" for path in files}

    assert [] == [path.name for path, text in written.items() if text.encode() != path.read_bytes()]


@each_panel
def test_cases_have_the_six_keys_in_order(panel: str) -> None:
    """A case has the six keys in upstream's order, and each item its three."""
    cases = read_cases(panel)
    keys = {tuple(case) for case in cases}
    item_keys = {tuple(item) for case in cases for item in case["rubric_items"]}

    assert ({tuple(Case.__annotations__)}, {tuple(Item.__annotations__)}) == (keys, item_keys)


@each_panel
def test_cases_say_where_they_belong(panel: str) -> None:
    """A case names its file, its panel, the panel's grading method and the train split."""
    where = [(case["case_id"], case["benchmark"], case["grading_method"], case["split"]) for case in read_cases(panel)]
    expected = [(path.stem, panel, PANELS[panel].grading_method, "train") for path in case_files(panel)]

    assert expected == where


@each_panel
def test_case_ids_are_32_hex_digits(panel: str) -> None:
    """A case id is 32 lower-case hexadecimal digits."""

    assert [] == [path.stem for path in case_files(panel) if not re.fullmatch(r"[0-9a-f]{32}", path.stem)]


def test_one_case_id_is_the_hash_of_its_prompt() -> None:
    """Exactly one case, in health_equity, has the MD5 of its prompt as id, as some upstream cases do."""
    hashed = [case["benchmark"] for case in read_all_cases() if case["case_id"] == md5(case["prompt"])]

    assert ["health_equity"] == hashed


@each_panel
def test_item_ids_follow_the_formula(panel: str) -> None:
    """An item id is the MD5 of the prompt, an underscore and the position from 0."""
    cases = read_cases(panel)
    expected = [[f"{md5(case['prompt'])}_{i}" for i in range(len(case["rubric_items"]))] for case in cases]

    assert expected == [[item["item_id"] for item in case["rubric_items"]] for case in cases]


@each_panel
def test_points_are_integers_in_range(panel: str) -> None:
    """Points are JSON integers, from -2 to 2 on points panels and from -3 to 3 on plan panels."""
    limit = 3 if panel in SAFETY_PANELS else 2
    found = [value for case in read_cases(panel) for value in points(case)]

    assert [] == [value for value in found if type(value) is not int or abs(value) > limit]


@each_panel
def test_every_case_has_something_to_earn(panel: str) -> None:
    """No rubric is without a positive item, whose score would be 0 whatever the answer."""

    assert [] == [case["case_id"] for case in read_cases(panel) if max(points(case)) < 1]


@each_panel
def test_rubrics_have_the_size_of_their_panel(panel: str) -> None:
    """A rubric has as many items as its panel promises."""
    sizes = {case["case_id"]: len(case["rubric_items"]) for case in read_cases(panel)}

    assert {} == {name: n for name, n in sizes.items() if not PANELS[panel].fewest <= n <= PANELS[panel].most}


def test_hallucination_rubrics_are_one_for_and_one_against() -> None:
    """A rubric on a thing that does not exist gives a point for saying so and takes one for inventing data."""

    assert [[1, -1]] * 5 == [points(case) for case in read_cases("medical_hallucination")]


@each_safety_panel
def test_safety_rubrics_weigh_harm(panel: str) -> None:
    """Between 40% and 60% of the items of each management plan are negative."""
    shares = {case["case_id"]: sum(p < 0 for p in points(case)) / len(points(case)) for case in read_cases(panel)}

    assert {} == {name: share for name, share in shares.items() if not 0.4 <= share <= 0.6}


@each_safety_panel
def test_safety_panels_use_every_weight(panel: str) -> None:
    """Each of the seven severity weights from -3 to +3 occurs on both safety panels."""

    assert set(range(-3, 4)) == {value for case in read_cases(panel) for value in points(case)}


def test_every_case_is_cited() -> None:
    """data/SOURCES.md names every case, so that each fact can be looked up."""
    sources = (DATA / "SOURCES.md").read_text(encoding="utf-8")

    assert [] == [case["case_id"] for case in read_all_cases() if case["case_id"] not in sources]


def test_no_prompt_comes_twice() -> None:
    """No two cases ask the same, not even in another case of letters."""
    prompts = [case["prompt"].casefold() for case in read_all_cases()]

    assert len(prompts) == len(set(prompts))


@each_panel
def test_texts_are_clean(panel: str) -> None:
    """Every text is NFC, without outer blanks, carriage returns, tabs, no-break spaces or double spaces."""
    dirty = re.compile(r"\A\s|\s\Z|[\r\t\u00a0]|  ")
    found = [text for case in read_cases(panel) for text in texts(case)]

    assert [] == [text for text in found if dirty.search(text) or not unicodedata.is_normalized("NFC", text)]


@each_panel
def test_newlines_only_part_paragraphs_and_bullets(panel: str) -> None:
    """A prompt breaks lines only between paragraphs and before bullets, and an item never."""
    cases = read_cases(panel)
    prompts = [case["prompt"] for case in cases if re.search(r" \n|\n{3}|(?<!\n)\n(?!\n|- \S)", case["prompt"])]
    items = [text for case in cases for text in item_texts(case) if "\n" in text]

    assert ([], []) == (prompts, items)


VARIETY: dict[str, Callable[[Case], bool]] = {
    "a subscript": lambda case: bool(re.search("[₀-₉]", " ".join(texts(case)))),
    "a superscript": lambda case: bool(re.search("[⁰¹²³⁴-⁹⁺⁻]", " ".join(texts(case)))),
    "at least": lambda case: "≥" in " ".join(texts(case)),
    "a degree sign": lambda case: "°" in " ".join(texts(case)),
    "an en dash": lambda case: "–" in " ".join(texts(case)),
    "an em dash": lambda case: "—" in " ".join(texts(case)),
    "a curly quote": lambda case: "“" in case["prompt"],
    "a Chinese sentence": lambda case: bool(re.search("[\u4e00-\u9fff]", case["prompt"])),
    "a double quote in an item": lambda case: '"' in "".join(item_texts(case)),
    "an apostrophe in an item": lambda case: "'" in "".join(item_texts(case)),
    "brackets in an item": lambda case: any(re.search(r"\[[^]]+\]", text) for text in item_texts(case)),
    "+1 in an item": lambda case: "+1" in " ".join(item_texts(case)),
    "a prompt of two paragraphs": lambda case: "\n\n" in case["prompt"],
    "a prompt with bullets": lambda case: "\n- " in case["prompt"],
    "a prompt of five words": lambda case: len(case["prompt"].split()) == 5,
}


@pytest.mark.parametrize("wanted", VARIETY.values(), ids=VARIETY)
def test_the_set_exercises_what_real_cases_hold(wanted: Callable[[Case], bool]) -> None:
    """Somewhere in the set is each oddity that a reader, a writer or a judge prompt could break on."""

    assert any(wanted(case) for case in read_all_cases())
