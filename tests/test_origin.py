"""A card says whose cases it holds, and claims to be BedsideBench's only where the source shows it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from builder.tree.origin import BEDSIDEBENCH, OWN, SAMPLES, find_origin

CITATION = b"""cff-version: 1.2.0
title: "Cases: a set"
version: "1.0.0"
date-released: "2026-09-14"
authors:
  - name: "Doximity"
  - given-names: Ada
    family-names: Lovelace
license: CC-BY-NC-SA-4.0
"""
LICENSE = b"Copyright (c) 2026 Doximity, Inc. All rights reserved.\n\nSome terms.\n"


def test_upstream_cases_carry_their_citation_and_copyright() -> None:
    """Authors, title, version, date and the licence's copyright line are the attribution."""
    origin = find_origin({"name": "x"}, "cc-by-nc-sa-4.0", legal={"CITATION.cff": CITATION, "LICENSE": LICENSE})

    assert BEDSIDEBENCH == origin.kind
    assert (
        "Doximity, Ada Lovelace. Cases: a set. Version 1.0.0, 2026-09-14. "
        "Copyright (c) 2026 Doximity, Inc. All rights reserved."
    ) == origin.attribution


@pytest.mark.parametrize(
    ("license_id", "legal", "repo", "kind"),
    [
        ("cc-by-nc-sa-4.0", {"LICENSE": LICENSE}, None, BEDSIDEBENCH),
        ("cc-by-4.0", {"LICENSE": LICENSE}, None, OWN),
        ("cc-by-nc-sa-4.0", {}, None, OWN),
        (None, {}, "doximity/bedside-bench", BEDSIDEBENCH),
        (None, {}, "someone/bedside-bench", OWN),
    ],
    ids=["licence and name", "another licence", "no name", "its repository", "another repository"],
)
def test_cases_are_bedsidebenchs_only_by_evidence(
    license_id: str | None, legal: dict[str, bytes], repo: str | None, kind: str
) -> None:
    """The licence with Doximity's name, or Doximity's own repository: a registry called bedside-bench is not enough."""
    assert kind == find_origin({"name": "bedside-bench"}, license_id, legal=legal, repo=repo).kind


def test_our_samples_are_known_by_the_name_of_their_registry() -> None:
    """The registry's whole name decides: someone's cases about samples are not called ours."""
    assert SAMPLES == find_origin({"name": "bedside-bench-samples"}, "cc-by-4.0", legal={}).kind
    assert OWN == find_origin({"name": "Reading blood samples"}, "cc-by-4.0", legal={}).kind


@pytest.mark.parametrize(
    ("text", "attribution"),
    [
        (b"copyright and certain other rights. Our licenses are\n", None),
        (b"MIT License\n\nCopyright 2026 The authors\n", "Copyright 2026 The authors"),
        ("Some cases. Copyright © Ada.\n".encode(), "Some cases. Copyright © Ada."),
    ],
    ids=["legal prose", "a year", "a sign"],
)
def test_a_copyright_is_a_line_with_its_year_or_sign(text: bytes, attribution: str | None) -> None:
    """The word alone, which every licence's text is full of, states none."""
    assert attribution == find_origin(None, None, legal={"NOTICE": text}).attribution


@pytest.mark.parametrize("cff", [b"", b"[1, 2", b"- a", b"authors: 5\n", b"authors: [x, {}]\n", b"\xff\xfe"], ids=repr)
def test_a_broken_citation_is_no_attribution(cff: bytes) -> None:
    """A CITATION.cff that cannot be read leaves the attribution out; `check` is where it is reported."""
    assert find_origin(None, None, legal={"CITATION.cff": cff}).attribution is None


def test_a_papers_link_in_a_title_becomes_words() -> None:
    """The Hub would tag the dataset with a paper for every such link in its card."""
    legal = {"CITATION.cff": b"title: see https://arxiv.org/abs/2512.01241\n"}

    assert "see arXiv:2512.01241." == find_origin(None, None, legal=legal).attribution


def test_a_citation_of_nested_aliases_is_not_written_out() -> None:
    """A few lines of YAML can stand for more text than any machine holds: only plain values are taken."""
    levels = "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in pairwise("abcdefghijkl"))
    cff = f"a: &a [x]\n{levels}title: *l\nversion: *l\nauthors: [name: *l, given-names: Ada]\n".encode()

    assert "Ada." == find_origin(None, None, legal={"CITATION.cff": cff}).attribution
