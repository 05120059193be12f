"""The meta-evaluation of a run: its graded meta examples, every number as a JSON object, and as a table.

In: a run on a `healthbench_meta` mirror. Out: the object that `--json` prints, and the text a person reads. The numbers
themselves are `meta`'s.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from builder.errors import BadInput
from builder.healthbench.names import META
from eval.calls.reply import one_line
from eval.healthbench.meta import MIN_N, MetaEvaluation, MetaExample, meta_evaluation
from eval.healthbench.pairs import Value
from eval.judging.graded import RunData
from eval.showing.cells import bar, interval_cell, number

FORMAT: Final = "bedside-bench/meta/1"
WIDTH: Final = 80
DEFINITIONS: Final = {
    "agreement": "over all pairs of the grader's decision and one physician's label on the same criterion",
    "balanced": "mean over the two classes; headline: f1.balanced; its n counts pairs twice, as published",
    "ci95": "2.5th to 97.5th percentile of resamples of records: the pairs of one record are not independent; "
    "null without a spread: fewer than two records, or no resample with a value",
    "rates": "means over records, not clipped; physician_positive is the mean of each record's share",
    "themes": "mean of the balanced F1 of the theme's categories, weighted by their n",
    "standing": f"among physicians measured against each other, those with n > {MIN_N}; ties count half; "
    "the ceiling is the n-weighted mean over all physicians; others are told by their id",
    "without interval": "percentile, distribution and single physicians, which describe those who labelled, and the "
    "ceiling of a theme: of the few records a physician has in a category most resamples lie below its value",
}


def meta_examples(run: RunData) -> list[MetaExample]:
    """Return the records of a run on meta examples; a record that the grader did not decide keeps None.

    Raises:
        BadInput: the run is none on such data, or a record has lost its category.
    """
    if run.config != META:
        raise BadInput(f"meta: expected a run on {META} data, found one on {run.suite} ({run.config})")
    if lost := next((case.case_id for case in run.cases if not case.tags), None):
        raise BadInput(f"meta: expected a category as the tag of every record, found none for {lost}; restore its line")
    return [
        MetaExample(
            case_id=case.case_id,
            category=case.tags[0],
            grader=case.matched[0] if case.matched else None,
            labels=case.labels,
        )
        for case in run.cases
    ]


def meta_report(run: RunData, *, samples: int, seed: int, software: Mapping[str, str]) -> dict[str, Any]:
    """Return every number of a run's meta-evaluation with what it was computed from.

    Raises:
        BadInput: as `meta_examples`.
    """
    records = meta_examples(run)
    found = meta_evaluation(records, samples=samples, seed=seed)
    return {
        "format": FORMAT,
        "protocol_version": run.protocol_version,
        "judge_model": run.judge_model,
        "identity_sha256": run.identity_sha256,
        "dataset_sha256": run.dataset_sha256,
        "finished_at": run.finished_at,
        "n_expected": len(records),
        "headline": _value(found.agreement.f1.balanced),
        **_numbers(found),
        "bootstrap_samples": samples,
        "bootstrap_seed": seed,
        "definitions": DEFINITIONS,
        "software": dict(software),
    }


def meta_member(run: RunData, *, samples: int, seed: int) -> dict[str, Any]:
    """Return the member `meta` of a run's summary: the headline and the agreement, from the labels that a run keeps."""
    found = meta_evaluation(meta_examples(run), samples=samples, seed=seed)
    numbers = _numbers(found)
    kept = ("n_records", "n_without_grader", "n_without_labels", "agreement", "rates")
    return {"headline": _value(found.agreement.f1.balanced), **{name: numbers[name] for name in kept}}


def _numbers(found: MetaEvaluation) -> dict[str, Any]:
    return {
        "n_records": found.n_records,
        "n_without_grader": found.n_without_grader,
        "n_without_labels": found.n_without_labels,
        "agreement": _json(asdict(found.agreement)),
        "rates": _json(asdict(found.rates)),
        "standing": _json(asdict(found.standing)),
        "themes": {name: _json(asdict(theme)) for name, theme in found.themes.items()},
        "categories": {name: _json(asdict(category)) for name, category in found.categories.items()},
        "no_theme": list(found.no_theme),
        "physicians": [_json(asdict(physician)) for physician in found.physicians],
    }


def _json(fields: Any) -> Any:
    """Return nested fields with each interval as one member `ci95`."""
    if isinstance(fields, dict):
        if "ci_low" in fields:
            low, high = fields["ci_low"], fields["ci_high"]
            kept = {name: value for name, value in fields.items() if not name.startswith("ci_")}
            return {**kept, "ci95": None if low is None else [low, high]}
        return {name: _json(value) for name, value in fields.items()}
    return [_json(value) for value in fields] if isinstance(fields, list | tuple) else fields


def _value(value: Value) -> Any:
    return _json(asdict(value))


def meta_text(report: Mapping[str, Any]) -> str:
    """Return a meta-evaluation as text of at most 80 columns: agreement, standing, themes, categories."""
    head = f"{'':<34}{'n':>7}  {'value':>5}  {'95% CI':<11}  0........1"
    lines = ["the grader against physicians", head, "-" * len(head), *_agreement(report["agreement"])]
    lines += ["-" * len(head), "balanced F1", *_row("overall", report["headline"])]
    for name, theme in report["themes"].items():
        lines += _row(name, theme["grader"])
    for name, category in report["categories"].items():
        lines += _row(name, category["agreement"]["f1"]["balanced"], indent=4)
    lines += ["-" * len(head), *_notes(report)]
    return "\n".join(line.rstrip() for line in lines)


def meta_headline(report: Mapping[str, Any]) -> str:
    """Return the headline of a meta-evaluation as one line."""
    headline = report["headline"]
    interval = f" ({interval_cell(headline['ci95'])})" if headline["ci95"] else ""
    return (
        f"grader against physicians: balanced F1 {number(headline['value'])}{interval}, {report['n_records']} records"
    )


def _agreement(agreement: Mapping[str, Any]) -> Iterator[str]:
    names = {"positive": "met", "negative": "not met", "balanced": "balanced"}
    for measure, by_class in agreement.items():
        for name, value in by_class.items():
            yield from _row(f"{measure}, {names[name]}", value)


def _row(name: str, value: Mapping[str, Any], *, indent: int = 2) -> list[str]:
    left = f"{'':<{indent}}{one_line(name)}"
    above = []
    if len(left) > 34:
        above, left = [left], ""
    interval = value["ci95"]
    cells = f"{value['n']:>7}  {number(value['value']):>5}  {interval_cell(interval):<11}"
    return [*above, f"{left:<34}{cells}  {bar(value['value'], interval, width=10)}"]


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    rates, standing = report["rates"], report["standing"]
    records = f"records: {report['n_records']} of {report['n_expected']}"
    for name, what in (("n_without_grader", "a decision of the grader"), ("n_without_labels", "a physician's label")):
        if report[name]:
            records += f"; without {what}: {report[name]}"
    met = f"grader says met: {number(rates['grader_positive']['value'])}"
    physicians = f"physicians: {number(rates['physician_positive']['value'])}"
    notes = [
        records,
        f"{met}; {physicians}; labels a record: {number(rates['labels']['value'])}",
        _standing(standing),
        f"judge: {one_line(str(report['judge_model']))}  |  protocol: {one_line(report['protocol_version'])}",
        f"data: {str(report['dataset_sha256'])[:12]}  |  finished: {report['finished_at'] or '-'}",
    ]
    if report["no_theme"]:
        notes.append(f"categories of no known theme: {', '.join(map(one_line, report['no_theme']))}")
    for note in notes:
        yield from textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _standing(standing: Mapping[str, Any]) -> str:
    n = len(standing["distribution"])
    ceiling = f"ceiling (mean over {standing['n_physicians']} physicians): {number(standing['ceiling']['value'])}"
    if standing["percentile"] is None:
        return f"{ceiling}; no percentile: no physician has more than n = {MIN_N}"
    return f"{ceiling}; the grader's percentile among {n} physicians: {standing['percentile']:.1f}"
