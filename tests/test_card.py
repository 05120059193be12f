"""The card of a mirror: right counts, right claims, and texts that nothing alters."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builder.cards.card import (
    CardConfig,
    CardSplit,
    PanelCounts,
    comparability,
    example_case,
    fenced,
    provenance_line,
    render_mirror_card,
    render_results_card,
)
from builder.cards.frontmatter import read_front_matter
from builder.dataset.tables import CASE_SCHEMA, RUBRIC_SCHEMA
from builder.tree.origin import BEDSIDEBENCH, OWN, SAMPLES, Origin
from builder.tree.sources import installed_card
from tests.trees import make_case

GOLDEN = Path(__file__).parent / "golden"
COUNTS = [PanelCounts("drug_safety", 25, 1200, 900, 300, 0), PanelCounts("safety_diagnostic", 25, 800, 400, 380, 20)]
DIGESTS: dict[str, Any] = {
    "dataset_sha256": "d" * 64,
    "content_sha256": "c" * 64,
    "n_cases": 50,
    "n_items": 2000,
    "splits": {"train": "train"},
    "source": {"kind": "tree", "repo": None, "revision": None, "license": "cc-by-4.0"},
    "made_by": {"bedside-bench": "0.1.0", "pyarrow": "26.0.1"},
}


def config(name: str, rows: int, *, default: bool = False, splits: tuple[str, ...] = ("train",)) -> CardConfig:
    """Return a config with one file a split and sizes that depend on its rows alone."""
    schema = RUBRIC_SCHEMA if name == "rubric_items" else CASE_SCHEMA
    files = (CardSplit(s, (f"data/{name}/{s}-00000-of-00001.parquet",), rows, 100 * rows, 40 * rows) for s in splits)
    return CardConfig(name, schema, tuple(files), default=default)


CONFIGS = [
    config("drug_safety", 25),
    config("safety_diagnostic", 25),
    config("all", 50, default=True),
    config("rubric_items", 2000),
]


def render(kind: str = OWN, *, attribution: str | None = None, **options: Any) -> str:
    """Return a card of two panels with 25 cases each."""
    source = {**DIGESTS["source"], **options.pop("source", {})}
    known: dict[str, Any] = {
        "origin": Origin(kind, "A title", attribution),
        "digests": {**DIGESTS, "source": source},
        "counts": COUNTS,
        "splits": [("train", "train")],
        "legal": ["LICENSE"],
    }
    return render_mirror_card(installed_card().read_text(encoding="utf-8"), CONFIGS, **{**known, **options})


def test_the_card_of_the_samples_is_the_golden_one() -> None:
    """The whole card, word for word; set BEDSIDE_UPDATE_GOLDEN=1 to write it anew, then read the difference."""
    card = render(SAMPLES, example=example_case(make_case()))
    golden = GOLDEN / "card_sample.md"
    if os.environ.get("BEDSIDE_UPDATE_GOLDEN"):
        golden.write_text(card, encoding="utf-8", newline="\n")

    assert golden.read_text(encoding="utf-8") == card


def test_counts_are_those_of_the_panels() -> None:
    """1,200 + 800 items, 900 + 400 of them positive: sums are computed, with thousands set apart."""
    card = render()

    assert "50 cases in 2 panels with 2,000 rubric items: 1,300 positive, 680 negative, 20 equivocal" in card
    assert "| `drug_safety` | points_rubric | 25 | 1,200 | 900 | 300 | 0 | interactions" in card
    assert "of which only the panels listed above were taken" in card
    assert ["n<1K"] == read_front_matter(card.encode())["size_categories"]


def test_samples_never_claim_to_be_the_benchmark() -> None:
    """The samples' card says what they are, and takes nothing from BedsideBench's metadata."""
    card = render(SAMPLES)
    front = read_front_matter(card.encode())

    assert "**not physician-validated**" in card
    assert "**not BedsideBench's cases**" in card
    assert "Doximity" not in card
    assert ["original"] == front["source_datasets"]
    assert "annotations_creators" not in front


def test_a_mirror_of_the_benchmark_attributes_and_limits_plainly() -> None:
    """Attribution, licence with its link, changes, and the limits of bedside.md section 8 are all there."""
    card = render(BEDSIDEBENCH, attribution="Doximity. BedsideBench.", source={"license": "cc-by-nc-sa-4.0"})
    for said in (
        "Doximity. BedsideBench.",
        "[CC BY-NC-SA 4.0](https://creativecommons.org/licenses/by-nc-sa/4.0/)",
        "**Changes made.**",
        "**For evaluation only.** Do not train",
        "not medical advice",
        "not a certificate of safety",
        "One company wrote the prompts and the rubrics",
        "Its publisher evaluates its own product with it",
        "in-house use for a commercial product too",
        "not the counts of the public half",
        "synthetic or de-identified",
        "Here n = 25 per panel (official: 50): intervals are wider than official ones, and scores are not comparable",
    ):
        assert said in card


def test_held_out_cases_are_announced() -> None:
    """A folder with a held-out split says that it must not be published."""
    card = render(splits=[("public", "train"), ("test", "test")])

    assert "**This folder holds held-out cases** (split test). Do not publish it." in card
    assert "The split `public` holds the cases whose own `split` is `train`" in card
    assert "held-out" not in render()
    assert "mirror of public and held-out cases of BedsideBench" in render(
        BEDSIDEBENCH, splits=[("train", "train"), ("test", "test")]
    )
    assert "mirror of public cases of BedsideBench" in render(BEDSIDEBENCH)


@pytest.mark.parametrize(
    ("license_id", "said"),
    [(None, "Licence: the source names none."), ("odbl", "Licence: `odbl`."), ("mit", "[MIT License](https://")],
)
def test_the_licence_is_the_sources(license_id: str | None, said: str) -> None:
    """Whatever the source names stands in text and metadata; without one the card says so."""
    card = render(source={"license": license_id})

    assert said in card
    assert (license_id or "unknown") == read_front_matter(card.encode())["license"]


def test_a_hub_source_is_named_with_its_commit() -> None:
    """Where the cases came from the Hub, the repository and the commit are in the text."""
    card = render(source={"kind": "hub", "repo": "org/name", "revision": "a" * 40})

    assert f"Made from `org/name` at commit `{'a' * 40}`." in card


def test_no_card_links_a_paper() -> None:
    """A link to a paper anywhere in a card would tag the dataset with that paper."""
    for kind in (BEDSIDEBENCH, SAMPLES, OWN):
        assert not re.search(r"arxiv\.org|co/papers", render(kind), re.IGNORECASE)


def test_the_card_carries_what_no_file_tells() -> None:
    """Source, versions and splits stand in the card, so that `verify` finds a change of them in digests.json."""
    assert provenance_line(DIGESTS) in render()


def test_a_full_set_needs_no_word_on_comparability() -> None:
    """With 50 cases in every panel nothing is said; with 3 to 5 the range is."""
    full = [PanelCounts("drug_safety", 50, 1, 1, 0, 0)]
    few = [PanelCounts("drug_safety", 3, 1, 1, 0, 0), PanelCounts("health_equity", 5, 1, 1, 0, 0)]

    assert comparability(full) == ""
    assert comparability(few).startswith("Here n = 3 to 5 per panel (official: 50)")


@pytest.mark.parametrize("text", ["a | b", "<script>", "`x`", "```\n```` four", "{{ x }} {% raw %}", "a*b_c"])
def test_a_text_of_the_data_stands_in_the_card_unaltered(text: str) -> None:
    """Bars, backticks, angle brackets and template marks come through as they are, inside a block they cannot close."""
    card = render(example=fenced(text, "json"))

    assert f"\n{text}\n" in card
    fence = re.search(r"^(`{3,})json\n" + re.escape(text) + r"\n\1$", card, re.MULTILINE)
    assert fence is not None
    assert fence[1] not in text


def test_a_case_too_long_or_like_a_link_is_no_example() -> None:
    """The card shows a short case, and none with a paper's link in it."""
    assert example_case(make_case()) is not None
    assert example_case({**make_case(), "prompt": "x" * 2000}) is None
    assert example_case({**make_case(), "prompt": "see arxiv.org/abs/2512.01241"}) is None


RUN: dict[str, Any] = {
    "run_id": "2026-09-14-m-12345678",
    "date": "2026-09-14",
    "answer_model": "a|b",
    "judge_models": ["gpt-5.6-sol"],
    "protocol": "bedside-bench-grading-v1",
    "semantics_sha256": "5e" * 32,
    "dataset_sha256": "da" * 32,
    "data_repo": None,
    "data_revision": None,
    "identity_json": '{"selection": {"limit": 9, "panels": ["drug_safety"], "smoke": false}}',
    "n_expected": 1000,
    "n_graded": 9,
    "n_failed": 1,
    "overall_mean": None,
    "overall_ci_low": None,
    "overall_ci_high": None,
    "panels": [],
}


def render_runs(*runs: dict[str, Any]) -> str:
    """Return the card of a results folder with these runs."""
    files = (CardSplit("train", ("runs/*/run.parquet",)),)
    config = CardConfig("runs", pa.schema([("run_id", pa.string())]), files, default=True)
    return render_results_card(runs, [config], license_id="cc-by-4.0")


def test_a_results_card_lists_its_runs() -> None:
    """One line a run: a bar in a model's name stays inside its cell, 1000 - 9 - 1 are pending, `none` is not known."""
    scored = {**RUN, "overall_mean": 0.5, "overall_ci_low": 0.25, "overall_ci_high": 0.75}
    card = render_runs(RUN, scored)
    line = "| 2026-09-14-m-12345678 | a\\|b | gpt-5.6-sol |"

    assert f"{line} none | 1,000 | 9 | 1 | 990 |" in card
    assert f"{line} 0.500 (0.25 to 0.75) | 1,000 | 9 | 1 | 990 |" in card
    assert "2 runs" in card


def test_a_results_card_names_rules_and_data_by_the_start_of_their_digests() -> None:
    """Beside the scores stand the date, the protocol, 12 digits of two digests, and the mirror's commit if known."""
    card = render_runs({**RUN, "data_repo": "org/bedside-bench", "data_revision": "0123456789abcdef"})

    row = "| `12345678` | 2026-09-14 | bedside-bench-grading-v1 | `5e5e5e5e5e5e` | `dadadadadada` |"
    assert f"{row} 1 panel, first 9 | org/bedside-bench@0123456789ab |" in card
    assert f"{row} 1 panel, first 9 | none |" in render_runs(RUN)


def test_a_results_card_without_scores_has_no_table_of_panels() -> None:
    """Where no run has a panel nothing is said of panels."""
    assert "Scores by panel" not in render_runs(RUN)
    panel = {"panel": "drug_safety", "n": 0, "n_expected": 25, "mean": None, "ci_low": None, "ci_high": None}
    assert "Scores by panel" in render_runs({**RUN, "panels": [panel]})
