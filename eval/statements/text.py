"""The report of listings as text of at most 80 columns, for people.

In: the object that `report` makes. Out: totals, judges, systems, statements, and what to know of them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from eval.calls.reply import one_line
from eval.showing.cells import interval_cell, number
from eval.statements.listed import FAILED, PENDING
from eval.statements.merge import CONFIRMED, CONFIRMING_JUDGES
from eval.statements.report import UNDERCOUNT

WIDTH: Final = 80
SHOWN_DOCUMENTS: Final = 20
"""Documents whose statements are printed; the JSON file holds all."""


def statements_text(report: Mapping[str, Any]) -> str:
    """Return the listings as text of at most 80 columns: totals, judges, systems, statements, what to know of them."""
    rule = "-" * WIDTH
    jury = "1 judge" if report["n_judges"] == 1 else f"{report['n_judges']} judges"
    title = f"{report['n_documents']} documents, {jury} x {report['repeats']} calls"
    head = f"{'':<36}{'n':>6}{'total':>8}{'a document':>13}  95% CI"
    lines = [
        f"unsupported statements: {title}",
        head,
        rule,
        *_row(f"confirmed ({CONFIRMING_JUDGES} judges or more)", report["confirmed"]),
        *_row("provisional (1 judge)", report["provisional"]),
        "each judge alone",
        *(line for judge in report["judges"] for line in _row(f"  {judge['model']}", judge["statements"])),
    ]
    if juries := list(_without(report)):
        lines.append("confirmed without")
        lines += [line for name, confirmed in juries for line in _row(f"  {name}", confirmed)]
    if len(report["systems"]) > 1:
        lines.append("confirmed by system")
        lines += [line for name, of_it in report["systems"].items() for line in _row(f"  {name}", of_it["confirmed"])]
    lines += [rule, *_listed(report["documents"]), rule, *_notes(report)]
    return "\n".join(line.rstrip() for line in lines)


def _without(report: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the smaller juries that can still confirm; without a vendor's only judge, the judge's row says it."""
    for left in report["without_judge"]:
        if left["n_judges"] >= CONFIRMING_JUDGES:
            yield left["model"], left["confirmed"]
    for left in report["without_vendor"]:
        if CONFIRMING_JUDGES <= left["n_judges"] < report["n_judges"] - 1:
            yield f"vendor {left['vendor']}", left["confirmed"]


def _row(name: str, value: Mapping[str, Any]) -> list[str]:
    left, above = one_line(name) if name.strip() == name else f"  {one_line(name.strip())}", []
    if len(left) > 36:
        above, left = textwrap.wrap(left, WIDTH, subsequent_indent="    "), ""
    total = "-" if value["total"] is None else f"{value['total']:,}"
    cells = f"{left:<36}{value['n']:>6}{total:>8}{number(value['per_document']):>13}  {interval_cell(value['ci95'])}"
    why = [f"    {value['reason']}"] if value["total"] is None else []
    return [*above, cells, *why]


def _listed(documents: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the statements of the first documents that have any, confirmed ones first."""
    flagged = [document for document in documents if document["statements"]]
    for document in flagged[:SHOWN_DOCUMENTS]:
        yield from _wrapped(f"{document['case_id']} ({document['system']})")
        for found in sorted(document["statements"], key=lambda found: bool(found["status"] != CONFIRMED)):
            judges = ", ".join(str(judge + 1) for judge in found["judges"])
            unlike = "" if found["quoted"] else ", not found in the document"
            yield from _wrapped(f"{found['status']}, judge {judges}{unlike}: {found['text']}", indent=2)
    if not flagged:
        yield "no statement was flagged"
    if (more := len(flagged) - SHOWN_DOCUMENTS) > 0:
        yield f"and {more} more documents: the JSON file holds them"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    digests = f"documents: {str(report['documents_sha256'])[:12]}  |  prompt: {report['template_sha256'][:12]}"
    notes = [
        UNDERCOUNT,
        *report["notices"],
        f"system: {report['system']}  |  protocol: {report['protocol']}",
        f"certificate: {report['certificate'] or 'none'}  |  {digests}",
        f"finished: {report['finished_at'] or '-'}",
    ]
    left = [f"{report[f'n_{state}']} {state}" for state in (FAILED, PENDING) if report[f"n_{state}"]]
    if left:
        notes.insert(0, f"documents without counts: {', '.join(left)}; they are in no number above")
    for note in notes:
        yield from _wrapped(note)


def _wrapped(text: str, *, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    )
