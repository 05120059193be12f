"""Find which licence a source tree states, and which of its legal texts a mirror must carry.

In: the folder of a tree's registry. Out: every statement met, as the lower-case ids that the Hub uses.
Not done here: judging whether a licence permits a use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builder.tree.reading import Boundary, read_bytes

LEGAL_PREFIXES: Final = ("LICENSE", "LICENCE", "NOTICE", "DISCLAIMER", "CITATION.cff")
LICENSE_ID: Final = re.compile(r"[a-z0-9][a-z0-9.+-]*")
"""The form of the Hub's licence ids."""
LICENCE_HINT: Final = 'state it in registry.json as "license": "<id the Hub knows>", such as "cc-by-4.0"'

_YAML_LICENCE: Final = re.compile(r"^license:[ \t]*[\"']?([A-Za-z0-9][\w.+-]*)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)
_FRONT_MATTER: Final = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_CC: Final = re.compile(
    r"\b(?:CC[ -]BY(?P<short>(?:-(?:NC|SA|ND))*)"
    r"|Attribution(?P<long>(?:-(?:Non-?Commercial|ShareAlike|NoDerivatives))*))"
    r"[\s-]+(?P<version>\d\.\d)",
    re.IGNORECASE,
)
_CC_PARTS: Final = {
    "noncommercial": "nc",
    "sharealike": "sa",
    "noderivatives": "nd",
    "nc": "nc",
    "sa": "sa",
    "nd": "nd",
}
_OTHER_TEXTS: Final = (
    (re.compile(r"CC0|Creative Commons Zero", re.IGNORECASE), "cc0-1.0"),
    (re.compile(r"Apache License,?\s+Version 2\.0"), "apache-2.0"),
    (re.compile(r"\bMIT License\b"), "mit"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A licence that a file of the tree states."""

    file: str
    license: str


def legal_files(root: Path) -> tuple[Path, ...]:
    """Return the licence, notice, disclaimer and citation files beside the registry, by name."""
    try:
        names = sorted(path.name for path in root.iterdir())
    except OSError:
        return ()
    return tuple(root / name for name in names if name.startswith(LEGAL_PREFIXES) and not (root / name).is_dir())


def licence_statements(root: Path, registry: dict[str, Any] | None, boundary: Boundary) -> tuple[Statement, ...]:
    """Return what the tree states, the most deliberate statement first: registry, citation, card, licence text."""
    stated = stated_license((registry or {}).get("license"))
    first = [Statement("registry.json", stated)] if stated else []
    return (*first, *_from_files(root, boundary))


def stated_license(stated: object) -> str | None:
    """Return the id of a licence stated by its id or by its usual name, None for anything else."""
    if not isinstance(stated, str):
        return None
    name = stated.strip().lower()
    return name if LICENSE_ID.fullmatch(name) else licence_of_text(stated)


def _from_files(root: Path, boundary: Boundary) -> Iterator[Statement]:
    if found := _YAML_LICENCE.search(_text(root / "CITATION.cff", boundary)):
        yield Statement("CITATION.cff", found[1].lower())
    if (front := _FRONT_MATTER.match(_text(root / "README.md", boundary))) and (
        found := _YAML_LICENCE.search(front[1])
    ):
        yield Statement("README.md", found[1].lower())
    for path in legal_files(root):
        if path.name.startswith(("LICENSE", "LICENCE")) and (named := licence_of_text(_text(path, boundary))):
            yield Statement(path.name, named)


def licence_of_text(text: str) -> str | None:
    """Return the licence that a text names first, or None."""
    if found := _CC.search(text):
        parts = (found["short"] or found["long"] or "").lower().replace("non-commercial", "noncommercial").split("-")
        return "-".join(["cc", "by", *(_CC_PARTS[part] for part in parts if part), found["version"]])
    return next((name for pattern, name in _OTHER_TEXTS if pattern.search(text)), None)


def _text(path: Path, boundary: Boundary) -> str:
    data = read_bytes(str(path), boundary)
    return data.decode(errors="replace") if isinstance(data, bytes) else ""
