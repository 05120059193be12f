"""The listings of a run as one JSON object, every number with its n.

In: a journal of listings. Out: what `X.statements.json` holds (`text` shows it). Who flags what is `merge`'s; means and
intervals are over documents. A count that is not known is null with its reason, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from eval.calls.journal import JournalData
from eval.judging.certified import certificate_label
from eval.judging.graded import RunData
from eval.judging.grading import grade_journal
from eval.numbers.bootstrap import panel_interval
from eval.numbers.defaults import SAMPLES, SEED
from eval.numbers.jury import NO_VENDOR, ONE_JUDGE
from eval.numbers.jury_notices import vendor_notices
from eval.statements.listed import FAILED, LISTED, PENDING, ListedDocument, listed_documents
from eval.statements.merge import LIST_RULE, NEEDS_JUDGES, SAME_RULE, UNION_RULE, Merged

FORMAT: Final = "bedside-bench/statements/1"
UNDERCOUNT: Final = (
    "quotations are compared as text, not by meaning: judges who quote one thing differently do not confirm each "
    "other, so confirmed undercounts"
)
DEFINITIONS: Final = {
    "statement": "what a judge quotes from the document as not supported by its source; what the source supports is "
    "never flagged, whatever list of required content there is",
    "counts for a judge": LIST_RULE + "; a failed call is a list that is not there",
    "status": UNION_RULE,
    "one statement": f"the same text after {SAME_RULE}; a sign before a digit, % and raised digits are kept; "
    + UNDERCOUNT,
    "ci95": "2.5th to 97.5th percentile of resamples of documents; documents of one source are not independent, so "
    "read it by system",
    "quoted": "whether the statement stands in the document but for case, blanks and edge punctuation; shown, not used",
    "null": "confirmed with a single judge; every count of a document where a judge has no list; reason says which",
}


def statements_report(
    data: JournalData, *, samples: int = SAMPLES, seed: int = SEED, software: Mapping[str, str]
) -> dict[str, Any]:
    """Return everything that is known of a run's listings.

    Raises:
        BadInput: the journal is of another kind of run.
    """
    documents = listed_documents(data)
    run, identity = grade_journal(data), data.identity
    merged = [document.merged() for document in documents]
    how = _Means(samples, seed)
    return {
        "format": FORMAT,
        **_identity(run, identity),
        "certificate": certificate_label(run),
        "certified": run.certified,
        "n_judges": len(identity["judges"]),
        "repeats": identity["repeats"],
        "n_documents": len(documents),
        **{f"n_{state}": sum(one.state == state for one in documents) for state in (LISTED, FAILED, PENDING)},
        "without_counts": [
            _without(document, of_it)
            for document, of_it in zip(documents, merged, strict=True)
            if document.state != LISTED
        ],
        "confirmed": how.confirmed(merged),
        "provisional": how.provisional(merged),
        "n_unanimous": _unanimous(merged, len(identity["judges"])),
        "judges": [_judge(identity, documents, judge, how) for judge in range(len(identity["judges"]))],
        **_without_some(identity, documents, how),
        "systems": {
            system: {
                "n_documents": sum(document.system == system for document in documents),
                "confirmed": how.confirmed(_of_system(system, documents, merged)),
                "provisional": how.provisional(_of_system(system, documents, merged)),
            }
            for system in dict.fromkeys(document.system for document in documents)
        },
        "documents": [_document(document, of_it) for document, of_it in zip(documents, merged, strict=True)],
        "notices": [*_notices(identity), *run.notices],
        "states": run.states,
        "usage": run.usage,
        "bootstrap_samples": samples,
        "bootstrap_seed": seed,
        "definitions": DEFINITIONS,
        "software": dict(software),
    }


def _identity(run: RunData, identity: Mapping[str, Any]) -> dict[str, Any]:
    answer = identity["answer"]
    judges = identity["judges"]
    return {
        "suite": run.suite,
        "protocol": run.protocol_version,
        "identity_sha256": run.identity_sha256,
        "semantics_sha256": run.semantics_sha256,
        "dataset_sha256": run.dataset_sha256,
        "documents_sha256": answer["file_sha256"],
        "template_sha256": judges[0]["template_sha256"],
        "system": answer["model"],
        "system_vendor": answer.get("vendor"),
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


@dataclass(frozen=True, slots=True)
class _Means:
    """How counts over documents become one value with its interval."""

    samples: int
    seed: int

    def confirmed(self, merged: Sequence[Merged]) -> dict[str, Any]:
        """Return the confirmed statements of documents as a value."""
        reasons = {one.confirmed_reason for one in merged if one.confirmed is None}
        return self.value([one.confirmed for one in merged], NEEDS_JUDGES if NEEDS_JUDGES in reasons else None)

    def provisional(self, merged: Sequence[Merged]) -> dict[str, Any]:
        """Return the provisional statements of documents as a value."""
        return self.value([one.provisional for one in merged])

    def value(self, counts: Sequence[int | None], why: str | None = None) -> dict[str, Any]:
        """Return sum, mean and interval of the known counts; null with a reason where there is none."""
        known = [count for count in counts if count is not None]
        if not known:
            reason = why or "no document with a list of every judge"
            return {"total": None, "n": 0, "per_document": None, "ci95": None, "ci_degenerate": None, "reason": reason}
        interval = panel_interval(known, samples=self.samples, seed=self.seed)
        return {
            "total": sum(known),
            "n": len(known),
            "per_document": fmean(known),
            "ci95": [interval.low, interval.high] if interval else None,
            "ci_degenerate": interval.degenerate if interval else None,
            "reason": None if interval else "an interval needs two documents",
        }


def _of_system(system: str, documents: Sequence[ListedDocument], merged: Sequence[Merged]) -> list[Merged]:
    return [of_it for document, of_it in zip(documents, merged, strict=True) if document.system == system]


def _unanimous(merged: Sequence[Merged], n_judges: int) -> int | None:
    """Return how many statements every judge flags, over documents with counts; None for a single judge."""
    counted = [one for one in merged if one.confirmed is not None]
    return sum(len(found.judges) == n_judges for one in counted for found in one.statements) if counted else None


def _without(document: ListedDocument, merged: Merged) -> dict[str, Any]:
    return {
        "case_id": document.case_id,
        "system": document.system,
        "state": document.state,
        "judges": list(merged.without),
        "reason": merged.provisional_reason,
        "first_failure": document.reason,
    }


def _document(document: ListedDocument, merged: Merged) -> dict[str, Any]:
    """Return one document with its statements, and below them every list as it was given."""
    return {
        "case_id": document.case_id,
        "system": document.system,
        "state": document.state,
        "confirmed": merged.confirmed,
        "provisional": merged.provisional,
        "reason": merged.confirmed_reason,
        "statements": [
            {"text": found.text, "status": found.status, "judges": list(found.judges), "quoted": found.quoted}
            for found in merged.statements
        ],
        "failed_calls": sum(state not in (None, "ok") for of_judge in document.states for state in of_judge),
        "lists": [[None if listed is None else list(listed) for listed in of_judge] for of_judge in document.lists],
    }


def _judge(identity: Mapping[str, Any], documents: Sequence[ListedDocument], judge: int, how: _Means) -> dict[str, Any]:
    asked = identity["judges"][judge]
    alone = [document.merged([judge]) for document in documents]
    lists = [listed for document in documents for listed in document.lists[judge]]
    return {
        "judge": judge,
        **{name: asked[name] for name in ("model", "endpoint", "vendor", "params", "format")},
        "n_calls": len(lists),
        "n_lists": sum(listed is not None for listed in lists),
        "statements": how.provisional(alone),
    }


def _without_some(identity: Mapping[str, Any], documents: Sequence[ListedDocument], how: _Means) -> dict[str, Any]:
    """Return what would be confirmed without each judge, and without each vendor, as a summary's `jury` has it."""
    judges = list(enumerate(identity["judges"]))

    def of(seats: Sequence[int]) -> dict[str, Any]:
        return {"n_judges": len(seats), "confirmed": how.confirmed([document.merged(seats) for document in documents])}

    several = judges if len(judges) > 1 else []
    vendors = list(dict.fromkeys(judge["vendor"] for _, judge in judges if judge["vendor"] is not None))
    return {
        "without_judge": [
            {"judge": n, "model": judge["model"], **of([other for other, _ in judges if other != n])}
            for n, judge in several
        ],
        "without_judge_reason": None if several else ONE_JUDGE,
        "without_vendor": [
            {"vendor": vendor, **of([n for n, judge in judges if judge["vendor"] != vendor])} for vendor in vendors
        ],
        "without_vendor_reason": None if vendors else NO_VENDOR,
    }


def _notices(identity: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader must know of the jury: whose vendor is whose, and a number of calls that can tie."""
    yield from vendor_notices(identity, of="the documents' model")
    if identity["repeats"] % 2 == 0:
        yield f"{identity['repeats']} calls of each judge: of an even number half is not most; take an odd one"
