"""Whose cases a source holds, and how they ask to be cited.

In: the registry, the licence and the legal files beside it. Out: the name and the attribution that a card carries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import yaml

BEDSIDEBENCH: Final = "bedsidebench"
SAMPLES: Final = "samples"
OWN: Final = "own"

SAMPLES_NAME: Final = "bedside-bench-samples"
"""The name in the registry of the cases that we ship."""

UPSTREAM_LICENSE: Final = "cc-by-nc-sa-4.0"
UPSTREAM_REPO: Final = "doximity/bedside-bench"

# The Hub tags a dataset with a paper for every such link in its card, wherever it stands.
PAPER_LINK: Final = re.compile(
    r"(?:https?://)?(?:www\.)?(?:arxiv\.org/(?:abs|pdf)|(?:hf|huggingface)\.co/papers)/", re.I
)

_COPYRIGHT: Final = re.compile(r"\bCopyright\s+(?:\(c\)|©|\d{4})", re.I)


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose cases they are: `BEDSIDEBENCH`, `SAMPLES` (ours) or `OWN` (someone's), under which name, by whom."""

    kind: str
    title: str
    attribution: str | None


def find_origin(
    registry: Mapping[str, Any] | None, license_id: str | None, *, legal: Mapping[str, bytes], repo: str | None = None
) -> Origin:
    """Tell whose cases a source holds, from its CITATION.cff, LICENSE, registry and Hub repository.

    BedsideBench's are those from its own repository, and those under its licence whose CITATION.cff or LICENSE names
    Doximity; nothing else is called so.
    """
    cited = _citation(legal)
    copyright_line = _copyright(legal)
    name = _plain(str((registry or {}).get("name") or "Clinical cases with rubrics"))
    attribution = " ".join(part for part in (cited, copyright_line) if part) or None
    if repo == UPSTREAM_REPO or (license_id == UPSTREAM_LICENSE and "doximity" in (attribution or "").lower()):
        return Origin(BEDSIDEBENCH, "BedsideBench (Parquet mirror)", attribution)
    if name == SAMPLES_NAME:
        return Origin(SAMPLES, "Sample cases for bedside-bench", attribution)
    return Origin(OWN, name, attribution)


def _citation(legal: Mapping[str, bytes]) -> str | None:
    """Return `Authors. Title. Version 1.0.0, 2026-09-14.` from a CITATION.cff, or None."""
    try:
        cff = yaml.safe_load(legal.get("CITATION.cff", b""))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(cff, dict):
        return None
    listed = cff.get("authors")
    authors = [_author(author) for author in listed if isinstance(author, dict)] if isinstance(listed, list) else []
    version = _scalar(cff.get("version"))
    release = ", ".join(part for part in (version and f"Version {version}", _scalar(cff.get("date-released"))) if part)
    parts = [", ".join(filter(None, authors)), _scalar(cff.get("title")), release]
    return _plain(" ".join(f"{part.rstrip('.')}." for part in parts if part)) or None


def _author(author: Mapping[str, object]) -> str:
    names = (_scalar(author.get(key)) for key in ("given-names", "family-names"))
    return _scalar(author.get("name")) or " ".join(filter(None, names))


def _scalar(value: object) -> str:
    """Return a YAML scalar as text, nothing for a collection: one of nested aliases would print without end."""
    return str(value) if isinstance(value, str | int | float | date) else ""


def _copyright(legal: Mapping[str, bytes]) -> str | None:
    """Return the first line of a licence or notice that states a copyright with its year or sign, or None."""
    texts = [text.decode(errors="replace") for name, text in legal.items() if name.startswith(("LICEN", "NOTICE"))]
    lines = (line for text in texts for line in text.split("\n"))
    return next((_plain(line) for line in lines if _COPYRIGHT.search(line)), None)


def _plain(text: str) -> str:
    """Return text on one line, papers named in words: the Hub would take a link for a paper of this dataset."""
    return PAPER_LINK.sub("arXiv:", " ".join(text.split()))
