"""What may go into which repository: licences, held-out cases, and places that hold something else.

In: what is to be published, and who can read the repository. Out: nothing, or the one line that stops it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from builder.dataset.digests import DIGESTS_NAME, HUB_FILES
from builder.dataset.footers import CARD
from builder.errors import BadInput
from builder.healthbench.names import public_split
from builder.hub.remote import Head, Reader
from builder.tree.licence import LEGAL_PREFIXES

_BODY: Final = re.compile(r"\A\s*(?:---\n.*?\n---[ \t]*(?:\n|\Z))?(?P<body>.*)\Z", re.DOTALL)
_TELLS_NOTHING: Final = frozenset({"unknown", "other"})
_NON_COMMERCIAL: Final = re.compile(r"(?:^|-)nc(?:-|$)|non-?commercial")


def check_held_out(digests: Mapping[str, Any], *, private: bool, what: str) -> None:
    """Stop held-out cases, and what was measured on them, from going where everyone can read.

    Args:
        digests: the `digests.json` of a mirror or a run: its `splits` map Parquet splits to the cases' own.

    Raises:
        BadInput: there are held-out cases and the repository is public.
    """
    public = public_split(digests)
    held_out = sorted(own for own in (digests.get("splits") or {}).values() if own != public)
    if held_out and not private:
        raise BadInput(
            f"{what}: holds held-out cases (split {', '.join(held_out)}), which never go into a public repository: "
            "publish it to a private one"
        )


def check_mirror_license(license_id: str | None, *, private: bool, what: str) -> None:
    """Stop a mirror without a licence from going where everyone can read.

    Raises:
        BadInput: its source names no licence and the repository is public.
    """
    if license_id is None and not private:
        raise BadInput(
            f"{what}: its source names no licence, so it cannot be public; "
            "build it again with --license ID, or publish it to a private repository"
        )


def check_texts(license_id: str, *, allowed: str | None, private: bool, what: str) -> None:
    """Stop answer texts on cases that are not free to use from going where everyone can read.

    Args:
        license_id: the licence of the cases that were answered; `unknown` where none was stated.
        allowed: the licence that the publisher names and accepts for these texts.

    Raises:
        BadInput: the repository is public, and the licence tells nothing or is non-commercial and was not named.
    """
    free = license_id not in _TELLS_NOTHING and not _NON_COMMERCIAL.search(license_id)
    if private or free:
        return
    if license_id in _TELLS_NOTHING:
        raise BadInput(
            f"{what}: holds texts of answers to cases whose licence is {license_id}: publish it to a private "
            "repository, or without texts"
        )
    if allowed == license_id:
        return
    if allowed is not None:
        raise BadInput(f"{what}: expected --texts-license {license_id}, the licence of the cases, found {allowed}")
    raise BadInput(
        f"{what}: holds texts of answers to cases under {license_id}: publish it to a private repository, or without "
        f"texts, or name the licence that you publish them under: --texts-license {license_id}"
    )


def is_fresh(head: Head, reader: Reader) -> bool:
    """Whether a repository holds nothing but what the Hub or its form for a new one puts there."""
    others = [path for path in head.files if path not in HUB_FILES and not path.startswith(LEGAL_PREFIXES)]
    if others == [CARD]:
        found = _BODY.match(reader.read(head, others)[CARD].decode(errors="replace").replace("\r\n", "\n"))
        return found is not None and not found["body"].strip()
    return not others


def check_place(head: Head, *, expected: str, found: str | None) -> None:
    """Stop unless a repository holds what is to be renewed there.

    Args:
        expected: what is published, in words: `a mirror`.
        found: the same for what the repository holds; None for something that is not ours.

    Raises:
        BadInput: they differ.
    """
    if found != expected:
        there = found or f"files that are not ours (no {DIGESTS_NAME})"
        raise BadInput(
            f"{head.repo}: expected an empty repository or {expected}, found {there}; name another repository"
        )
