"""A certificate for people: what was asked and decided right, by kind and trait, and every wrong sentinel.

In: the JSON object. Out: text of at most 80 columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builder.rules.problems import printable
from eval.certificates.certificate import Certificate, Decision
from eval.judging.certified import VALID

WIDTH: Final = 80
_ROW: Final = "  {:<24}{:>12}{:>12}"


def certificate_report(whole: Mapping[str, Any]) -> str:
    """Return the table, the wrong sentinels, and the verdict."""
    certificate = Certificate(whole)
    judge, grouping = certificate.judge, whole["grouping"]
    title = f"{judge['model']} at {judge['endpoint']}: {whole['suite']}, grouping {grouping}"
    lines = [
        *textwrap.wrap(printable(title), WIDTH, break_on_hyphens=False),
        "",
        _ROW.format("", "items", "sentinels").rstrip(),
    ]
    for name, counts in _rows(whole["counts"]):
        lines.append(name if counts is None else _ROW.format(name, _cell(counts, "items"), _cell(counts, "sentinels")))
    wrong = [one for one in certificate.decisions if one.sentinel and not one.right]
    if wrong:
        lines += ["", "wrong on sentinels (probe, item, expected, found)", *map(_wrong_line, wrong)]
    return "\n".join([*lines, "", *textwrap.wrap(verdict_line(whole), WIDTH, break_on_hyphens=False)])


def _rows(counts: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    for part in ("kind", "trait"):
        yield f"by {part}", None
        yield from counts[f"by_{part}"].items()
    yield "in all", None
    yield "", counts


def _cell(counts: Mapping[str, Any], name: str) -> str:
    return f"{counts[name]['right']}/{counts[name]['n']}"


def _wrong_line(one: Decision) -> str:
    found = "no decision" if one.found is None else str(one.found).lower()
    number = one.item_id.rpartition("_")[2]
    return f"  {one.probe_id:<36} {number:>3}  {str(one.expected).lower():<6} {found}"


def verdict_line(whole: Mapping[str, Any]) -> str:
    """Return the verdict with what it rests on."""
    sentinels, names = whole["counts"]["sentinels"], whole["models_returned"]
    as_ = f", answering as {printable(', '.join(names))}" if names else ", by a server that names no model"
    if whole["verdict"] == VALID:
        return f"valid: all {sentinels['n']} sentinel items right on {whole['date'][:10]}{as_}"
    wrong = sentinels["n"] - sentinels["right"]
    return f"failed: {wrong} of {sentinels['n']} sentinel items wrong on {whole['date'][:10]}{as_}"
