"""Canary statements go word for word from a source into every card made of it, and come back from there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.cards.card import fenced
from builder.cards.upstream_card import upstream_card
from builder.tree.canary import canaries_of_card, find_canaries
from builder.tree.sources import open_source
from tests.mirrors import build
from tests.trees import edit_json, write_tree

GUID = "5f0e4a3c-1b2d-4c6e-8f90-a1b2c3d4e5f6"
LINE = f"<!-- BENCHMARK DATA | *canary* GUID {GUID} `x` -->"
VALUE = "Not for training.\nCanary: hash_of {{ it }} 0123456789abcdef0123\n```\nend"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a canary in its registry, in a manifest and in its README."""
    root = write_tree(tmp_path / "source", 1)
    edit_json(root / "registry.json", notes={"deep": [VALUE]}, about="the canary of a mine")
    edit_json(root / "data" / "health_equity" / "manifest.json", canary_id=GUID.upper())
    (root / "README.md").write_bytes(f"# Cases\r\n\r\n{LINE}\r\nA canary sings.\r\n{GUID}\r\n".encode())
    return root


def test_registry_manifests_and_readme_are_looked_into(tree: Path) -> None:
    """Values, members called canary and lines are found; the word or a hex id alone is no canary."""
    assert [VALUE, GUID.upper(), LINE] == find_canaries(open_source(tree))


def test_a_mirrors_card_carries_them_word_for_word(tree: Path, tmp_path: Path) -> None:
    """Backticks, template marks and several lines come through, and the reader gives the same list back."""
    mirror = build(tree, tmp_path / "mirror").folder
    card = (mirror / "README.md").read_bytes().decode()

    assert [VALUE, GUID.upper(), LINE] == canaries_of_card(card)
    assert f"\n{VALUE}\n" in card
    assert f"\n{LINE}\n" in card


def test_they_survive_in_a_card_of_the_source_too(tree: Path) -> None:
    """The upstream card in the README's place carries them, so that a mirror made after that still does."""
    _, card = upstream_card(open_source(tree))
    assert card is not None
    (tree / "README.md").write_bytes(card.encode())

    assert [VALUE, GUID.upper(), LINE] == canaries_of_card(card)
    assert [VALUE, GUID.upper(), LINE] == find_canaries(open_source(tree))


def test_a_source_without_any_has_a_card_without_the_section(mirror: Path) -> None:
    """Nothing is said of canaries where there are none."""
    card = (mirror / "README.md").read_text(encoding="utf-8")

    assert "anary" not in card
    assert [] == canaries_of_card(card)


def test_a_line_that_a_value_holds_is_carried_once(tree: Path) -> None:
    """A README that repeats a line of the registry's statement adds nothing."""
    (tree / "README.md").write_text(VALUE.split("\n")[1] + "\n", encoding="utf-8")

    assert [VALUE, GUID.upper()] == find_canaries(open_source(tree))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3))
def test_whatever_stands_in_them_comes_back(statements: list[str]) -> None:
    """Any texts below the heading come back, and code blocks before or after it are none."""
    blocks = "\n\n".join(fenced(text, "") for text in statements)
    card = f"# T\n\n```python\n## Canary\n```\n\n## Canary\n\n{blocks}\n\n## Check it\n\n```json\n{{}}\n```\n"

    assert statements == canaries_of_card(card)
