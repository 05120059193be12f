"""The agreement of a run's judges, of each with itself, and of the jury with people, as a JSON object.

In: a run, and where there are any the labels of people. Out: the object that `agree --json` prints. The measures are
`measures`' and `intervals`', who is held against whom is `ratings`', the text for people is `table`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eval.agreement.coded import NOT_RATED, base_rates
from eval.agreement.correction import corrected_scores
from eval.agreement.intervals import Answered, Asked, measure_all
from eval.agreement.labels import ItemKey
from eval.agreement.measures import AC1, ALPHA, COHEN, FLEISS, FLIPS, UNANIMITY, Measure
from eval.agreement.ratings import (
    TREATMENTS,
    Judged,
    Question,
    judge_pairs,
    judge_repeats,
    judged_items,
    judges_together,
    jury_against,
    rater_pairs,
    raters_together,
    slices,
    unjudged_labels,
)
from eval.agreement.sensitivity import RATES, Rates, sensitivity
from eval.judging.graded import RunData

FORMAT: Final = "bedside-bench/agreement/1"
DEFINITIONS: Final = {
    "unit": "an item of an answer that was judged; cluster: its case. Overall pools items of all panels",
    "vote": "a judge's rating is what more than half of its called repeats say; where they say nothing it has none",
    "jury": "one judge: its vote; two: both must agree; three and more: a strict majority; else unresolved. Missing: "
    "no judge has a vote",
    UNANIMITY: "share of the units rated by all on which all agree; chance is not taken off: it is high where one "
    "category is rare, as the base rates show, while a kappa may be near 0 or below",
    COHEN: "(po - pe) / (1 - pe), pe from the two raters' own shares (Cohen 1960); units rated by both",
    FLEISS: "(P - Pe) / (1 - Pe), P the mean share of agreeing pairs, Pe from the pooled shares (Fleiss 1971); units "
    "rated by all, the others dropped; for two raters Scott's pi, not Cohen's kappa",
    ALPHA: "1 - Do / De for nominal data (Krippendorff 2011); units with two ratings and more",
    AC1: "(pa - pe) / (1 - pe), pe = sum of p (1 - p) / (K - 1) over the K categories offered (Gwet 2008): 2, or 3 "
    "with unresolved as one; pa over units with two ratings and more, p over units with any",
    FLIPS: "mean over items of the share of pairs of repeats that differ: how often asking again changes the decision",
    "repeats": "calls of one judge are no raters: their measures say how steady it is, not whether it is right, and a "
    "provider that answers from a cache makes them 1",
    "unresolved_dropped": "items without a verdict are left out and counted as dropped, which flatters a jury that "
    "leaves the hard ones open",
    "unresolved_third": "unresolved is a category of its own, in which no person can agree with the jury",
    "n": "units used; dropped: units of the question that too few raters rated",
    "base_rates": "shares of the categories among the ratings used; beside a rater among all ratings of that rater",
    "ci95": "percentile interval of resamples of cases (clusters); resamples in which a measure is undefined are left "
    "out and counted (undefined); degenerate: all others gave one value, which says little",
    "null": "undefined, with the reason: never 0 or 1",
}


@dataclass(frozen=True, slots=True)
class _Setting:
    """What every question's numbers depend on besides its ratings."""

    slices: Mapping[str, Mapping[str, NDArray[np.bool_]]]
    samples: int
    seed: int


def agreement_report(
    run: RunData,
    *,
    labels: Mapping[str, Mapping[ItemKey, bool]] | None,
    samples: int,
    seed: int,
    software: Mapping[str, str],
    error_rates: Sequence[Rates] | None = None,
) -> dict[str, Any]:
    """Return every number of a run's agreement with what it was computed from.

    Args:
        labels: of people, by rater, as `labels.read_labels` gives them.
        error_rates: of the judge, to try on the scores; where neither they nor labels are given, the standard ones.

    Raises:
        BadInput: error rates are out of range, or a rubric does not fit its grading method.
    """
    judged = judged_items(run)
    setting = _Setting(slices(judged), samples, seed)
    tried = error_rates or (None if labels else RATES)
    return {
        "format": FORMAT,
        **_facts(run, judged),
        "bootstrap_samples": samples,
        "bootstrap_seed": seed,
        "counts": _counts(judged, labels or {}),
        **_questions(judged, labels, setting),
        "corrected": corrected_scores(run, labels) if labels else None,
        "sensitivity": sensitivity(run, rates=tried, seed=seed) if tried else None,
        "definitions": DEFINITIONS,
        "software": dict(software),
    }


def _facts(run: RunData, judged: Judged) -> dict[str, Any]:
    identity = run.identity or {}
    judges = identity.get("judges") or [{}] * len(judged.judges)
    return {
        "suite": run.suite,
        "config": run.config,
        "protocol_version": run.protocol_version,
        "answer_model": run.answer_model,
        "judges": [
            {"name": name, "endpoint": judge.get("endpoint"), "vendor": judge.get("vendor")}
            for name, judge in zip(judged.judges, judges, strict=True)
        ],
        "repeats": int(judged.repeats.shape[2]) if judged.items else identity.get("repeats"),
        "grouping": identity.get("grouping"),
        "dataset_sha256": run.dataset_sha256,
        "identity_sha256": run.identity_sha256,
        "semantics_sha256": run.semantics_sha256,
        "finished_at": run.finished_at,
    }


def _counts(judged: Judged, labels: Mapping[str, Mapping[ItemKey, bool]]) -> dict[str, Any]:
    return {
        "answers": judged.n_answers,
        "answers_pending": judged.n_pending,
        "answers_unjudged": judged.n_unjudged,
        "cases": len(np.unique(judged.clusters)),
        "items": len(judged.items),
        "items_missing": judged.missing,
        "items_unresolved": judged.unresolved,
        "labels": {
            rater: {"n": len(of_rater), "unjudged": unjudged_labels(judged, of_rater)}
            for rater, of_rater in labels.items()
        },
    }


def _questions(
    judged: Judged, labels: Mapping[str, Mapping[ItemKey, bool]] | None, setting: _Setting
) -> dict[str, Any]:
    """Return the answers to all questions; they are asked at once, so that they share what is drawn."""
    asked: dict[str, list[Question]] = {
        "together": [judges_together(judged)],
        "pairs": judge_pairs(judged),
        "repeats": judge_repeats(judged),
    }
    by_treatment = {
        treatment: [jury_against(judged, rater, given, treatment=treatment) for rater, given in (labels or {}).items()]
        for treatment in TREATMENTS
    }
    asked |= by_treatment
    asked["raters"] = [raters_together(judged, labels)] if labels else []
    asked["rater_pairs"] = rater_pairs(judged, labels or {})
    answers = iter(_answers([question for some in asked.values() for question in some], setting))
    found = {name: [next(answers) for _ in some] for name, some in asked.items()}
    against = [
        {"rater": rater, **{treatment: found[treatment][place] for treatment in TREATMENTS}}
        for place, rater in enumerate(labels or {})
    ]
    return {
        "between_judges": {"together": found["together"][0], "pairs": found["pairs"]},
        "judge_repeats": [
            {"judge": judge, **answer} for judge, answer in zip(judged.judges, found["repeats"], strict=True)
        ],
        "jury_against_raters": against,
        "between_raters": {"together": found["raters"][0], "pairs": found["rater_pairs"]} if labels else None,
    }


def _answers(questions: Sequence[Question], setting: _Setting) -> list[dict[str, Any]]:
    parts = [list(_parts(question, setting)) for question in questions]
    asked = [
        Asked(question.ratings.of(rows), question.measures)
        for question, some in zip(questions, parts, strict=True)
        for _, _, rows in some
    ]
    answered = iter(measure_all(asked, samples=setting.samples, seed=setting.seed))
    return [
        _answer(question, [(kind, name, next(answered)) for kind, name, _ in some])
        for question, some in zip(questions, parts, strict=True)
    ]


def _parts(question: Question, setting: _Setting) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield the slices of a question: kind, name, and which of its units are in it. Without raters, only overall."""
    yield "overall", "", np.ones(len(question.rows), dtype=np.bool_)
    if question.reason is None:
        for kind, by_name in setting.slices.items():
            for name, items in by_name.items():
                if (rows := items[question.rows]).any():
                    yield kind, name, rows


def _answer(question: Question, parts: Sequence[tuple[str, str, Answered]]) -> dict[str, Any]:
    found: dict[str, Any] = {"overall": None, "panels": {}, "signs": {}, "severities": {}}
    for kind, name, answered in parts:
        part = {
            "n_clusters": answered.n_clusters,
            "measures": {measure: _measure(one, question.reason) for measure, one in answered.measures.items()},
        }
        if kind == "overall":
            found[kind] = part
        else:
            found[kind][name] = part
    return {"raters": list(_raters(question)), "n_units": len(question.rows), "reason": question.reason, **found}


def _raters(question: Question) -> Iterator[dict[str, Any]]:
    for name, codes in zip(question.raters, question.ratings.codes.T, strict=True):
        given = np.bincount(codes[codes != NOT_RATED], minlength=len(question.ratings.categories)).astype(np.int64)
        yield {"name": name, "n": int(given.sum()), "base_rates": base_rates(given, question.ratings.categories)}


def _measure(found: Measure, reason: str | None) -> dict[str, Any]:
    fields = asdict(found)
    return {
        **fields,
        "reason": reason or found.reason,
        "ci95": None if found.ci95 is None else list(found.ci95),
    }
