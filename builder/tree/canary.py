"""Carry the canary statements of a source: lines by which a training corpus that swallowed the cases is recognised.

In: a source tree; or the text of a card that carries some. Out: the statements, word for word. A statement is a line or
a value that has the word canary and a GUID or a long hex id in it. Licence, notice and citation files are copied whole
and so not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from bedside_bench import PANEL_IDS
from builder.tree.reading import read_bytes
from builder.tree.sources import Source
from builder.tree.strict_json import parse

CANARY_HEADING: Final = "## Canary"

_WORD: Final = re.compile("canar(?:y|ies)", re.IGNORECASE)
_ID: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16,})(?![0-9A-Za-z])"
)
_FENCE: Final = re.compile("`{3,}")


def find_canaries(source: Source) -> list[str]:
    """Return the canary statements of a source's registry, manifests and README.md, each once, in that order."""
    values = [source.registry, *_manifests(source)]
    found = [text for value in values for text in _stated(value)]
    readme = read_bytes(str(source.root / "README.md"), source.boundary)
    if isinstance(readme, bytes):
        found += filter(_is_canary, (line.rstrip("\r") for line in readme.decode(errors="replace").split("\n")))
    return _once(found)


def canaries_of_card(text: str) -> list[str]:
    """Return the canary statements that a rendered card carries: the code blocks below its heading, in order."""
    found: list[str] = []
    fence, block, inside = "", [""], False
    for line in text.split("\n"):
        if fence:
            if line == fence:
                found += ["\n".join(block)] if inside else []
                fence = ""
            else:
                block.append(line)
        elif opened := _FENCE.match(line):
            fence, block = opened[0], []
        elif line.startswith("## "):
            inside = line == CANARY_HEADING
    return found


def _manifests(source: Source) -> Iterator[object]:
    for panel in PANEL_IDS:
        raw = read_bytes(str(source.data / panel / "manifest.json"), source.boundary)
        if isinstance(raw, bytes) and b"canar" in raw.lower():
            yield parse(raw)[0]


def _stated(value: object) -> Iterator[str]:
    """Yield the strings of a JSON value that are canaries, by themselves or by the name of the member they stand in."""
    waiting = [("", value)]  # not by recursion: a registry may be nested as deep as its parser goes
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            if _is_canary(value) or (_WORD.search(name) and _ID.search(value)):
                yield value
        elif isinstance(value, dict):
            named = _WORD.search(name)
            waiting += [(name if named else str(key), inner) for key, inner in reversed(value.items())]
        elif isinstance(value, list):
            waiting += [(name, inner) for inner in reversed(value)]


def _is_canary(text: str) -> bool:
    return bool(_WORD.search(text) and _ID.search(text))


def _once(found: Iterable[str]) -> list[str]:
    """Return the statements without those that another holds whole, such as a README's line of a registry's value."""
    kept = list(dict.fromkeys(found))
    return [text for text in kept if not any(text != other and text in other for other in kept)]
