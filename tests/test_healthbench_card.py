"""The card of a HealthBench mirror: what it is, what it holds, how it is scored, and its canary word for word."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.cards.frontmatter import read_front_matter
from builder.healthbench.mirror import build_healthbench, healthbench_card
from builder.tree.canary import canaries_of_card
from builder.tree.sources import installed_data
from tests.examples import (
    CANARY,
    PROFESSIONAL_CANARY,
    make_criterion,
    make_example,
    make_meta,
    make_professional,
    write_examples,
    write_jsonl,
)

Maker = Callable[..., dict[str, Any]]


def card_of(folder: Path, *examples: object, name: str = "x.jsonl", **options: Any) -> str:
    """Return the card of the mirror of a file."""
    path = write_jsonl(folder / name, examples)
    built = build_healthbench(path, folder / "out", **{"license_id": "mit", **options})
    return (built.folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "name", "title"),
    [
        (make_example, "oss.jsonl", "HealthBench (Parquet mirror of a file)"),
        (make_example, "hard.jsonl", "HealthBench Hard (Parquet mirror of a file)"),
        (make_example, "consensus.jsonl", "HealthBench Consensus (Parquet mirror of a file)"),
        (make_professional, "x.jsonl", "HealthBench Professional (Parquet mirror of a file)"),
        (make_meta, "x.jsonl", "HealthBench meta-evaluation (Parquet mirror of a file)"),
    ],
)
def test_a_card_says_what_the_file_is(tmp_path: Path, make: Maker, name: str, title: str) -> None:
    """By shape and name; that it is unofficial, and for evaluation only."""
    card = card_of(tmp_path, make(0), make(1), name=name)

    assert title == read_front_matter(card.encode())["pretty_name"]
    assert f"\n# {title}\n" in card
    assert "An unofficial Parquet mirror of a file in the shape of HealthBench" in card
    assert "Do not train on these examples." in card
    assert not re.search(r"\n\n\n", card)


def test_a_card_counts(tmp_path: Path) -> None:
    """Examples, criteria by sign, turns, ungraded ones, themes and axes: all by hand."""
    unscorable = make_example(3, rubrics=[make_criterion(3, 3), make_criterion(3, 0, points=0)])
    card = card_of(tmp_path, *map(make_example, range(3)), unscorable)

    for line in (
        "4 examples with 14 criteria: 9 positive, 4 negative, 1 of 0 points. A model",
        "| with 1 turn | 2 |",
        "| with 3 turns | 2 |",
        "| of 0 points | 1 |",
        "| examples without positive points, which no run can score | 1 |",
        "| examples with an ideal completion by physicians | 2 |",
        "| theme:hedging | examples | 2 |",
        "| axis:accuracy | criteria | 8 |",
        "| level:cluster | criteria | 3 |",
    ):
        assert line in card, line


def test_a_meta_card_counts_labels(tmp_path: Path) -> None:
    """Two records with 2 and 3 labels, of which (k % 3 != 0) are true: 1 and 2; three physicians."""
    card = card_of(tmp_path, make_meta(0), make_meta(1))

    assert "2 records: each is" in card
    assert "5 labels by 3 physicians, 3 of them true." in card
    assert "balanced F1 is the headline" in card


def test_the_score_is_told_apart_from_the_other_suites(tmp_path: Path) -> None:
    """An example's score is not clipped here; BedsideBench clips a case's."""
    card = card_of(tmp_path, make_example())

    assert "It can be below 0, and is **not clipped**." in card
    assert "**clipped to 0 to 1 after averaging**" in card
    assert "This is not the points score of BedsideBench, which clips every case before the mean" in card


def test_canaries_are_carried_word_for_word(tmp_path: Path) -> None:
    """Each distinct one, in order, also one with a fence in it; the program reads them back from the card."""
    odd = "canary\n```\n## Not a heading ````"
    card = card_of(tmp_path, make_example(0), make_example(1, canary=odd), make_example(2), make_example(3, canary=...))

    assert [CANARY, odd] == canaries_of_card(card)
    assert [PROFESSIONAL_CANARY] == canaries_of_card(card_of(tmp_path / "p", make_professional()))
    assert [] == canaries_of_card(card_of(tmp_path / "m", make_meta()))


def test_our_samples_are_called_samples() -> None:
    """They are not HealthBench's data, and the card says so, with our licence."""
    for name in ("healthbench", "healthbench_professional", "healthbench_meta"):
        report, card = healthbench_card(installed_data() / "healthbench" / f"{name}.jsonl")
        assert (report.ok, "cc-by-4.0") == (True, read_front_matter(str(card).encode())["license"])
        assert "they are **not HealthBench's data**" in str(card)
        assert "unofficial" not in str(card)


def test_a_licence_is_named_or_asked_for(tmp_path: Path) -> None:
    """What lies beside the file is listed; without any the reader is told to ask."""
    known = build_healthbench(write_examples(tmp_path / "source"), tmp_path / "known").folder / "README.md"
    unknown = card_of(tmp_path, make_example(), license_id=None)

    assert "Licence: [MIT License](https://opensource.org/license/mit)." in known.read_text(encoding="utf-8")
    assert "The source's own files lie beside this card: `LICENSE`." in known.read_text(encoding="utf-8")
    assert "Copyright (c) 2026 Test Authors" in known.read_text(encoding="utf-8")
    assert "Licence: none was named." in unknown
    assert "unknown" == read_front_matter(unknown.encode())["license"]


def test_the_repository_can_be_named(tmp_path: Path) -> None:
    """The lines to load it then work as they stand."""
    card = card_of(tmp_path, make_example(), repo_id="org/healthbench")

    assert 'load_dataset("org/healthbench", "healthbench", split="test")' in card
    assert 'load_dataset("org/healthbench", "rubric_items", split="test")' in card


def test_a_file_with_errors_has_no_card(tmp_path: Path) -> None:
    """The report says why."""
    report, card = healthbench_card(write_jsonl(tmp_path / "x.jsonl", [{}]))

    assert (False, None) == (report.ok, card)
