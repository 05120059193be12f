"""The agreement of a run as text of at most 80 columns: overall first, then by panel, sign and severity, then notes.

In: the object that `report` makes. Out: lines. Unanimity stands beside the kappas and the share of true ratings: where
one category is rare, 94% unanimity goes with a kappa of -0.02, and only both together say so.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval.agreement.correction_text import correction_text
from eval.agreement.measures import AC1, ALPHA, COHEN, FLEISS, FLIPS, UNANIMITY
from eval.agreement.ratings import AS_THIRD, DROPPED
from eval.agreement.sensitivity_text import sensitivity_text
from eval.calls.reply import one_line
from eval.showing.cells import number

WIDTH: Final = 80
_NAME: Final = 24
_INTERVAL: Final = 12
_SHOWN: Final = {DROPPED: "dropped", AS_THIRD: "as a category"}
_KINDS: Final = {"panels": "by panel", "signs": "by sign of the points", "severities": "by severity (plan panels)"}

Report = Mapping[str, Any]


def agreement_text(report: Report) -> str:
    """Return a report of agreement as text; sensitivity is shown where people's labels do not say it, overall only."""
    titles = f"{'n':>6}{'drop':>5}{'unan.':>6}{'kappa':>7} {'95% CI':<{_INTERVAL}}{'AC1':>7}{'alpha':>7}{'true':>5}"
    head = f"{'':<{_NAME}}{titles}"
    rule = "-" * WIDTH
    lines = ["agreement", head, rule, *_overall(report), rule]
    for title, question in _sliced(report):
        lines += [*_slices(title, question), rule]
    marked = ["* all resamples gave one value: that says little"] if any("*" in line for line in lines) else []
    for note in [*_notes(report), *marked]:
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    if report["corrected"]:
        lines += ["", *correction_text(report["corrected"])]
    if report["sensitivity"]:
        lines += ["", *sensitivity_text(report["sensitivity"])]
    return "\n".join(line.rstrip() for line in lines)


def _overall(report: Report) -> Iterator[str]:
    yield "judges among each other"
    between = report["between_judges"]
    yield from _row_or_reason(f"all {len(report['judges'])}", between["together"])
    for pair in between["pairs"]:
        yield from _row(_names(pair), pair["overall"])
    reasons = dict.fromkeys(judge["reason"] for judge in report["judge_repeats"] if judge["reason"])
    yield "each judge over its repeats" if reasons else f"each judge over its {report['repeats'] or '-'} repeats"
    yield from (f" {reason}" for reason in reasons)
    for judge in report["judge_repeats"]:
        if judge["reason"] is None:
            yield from _row(judge["judge"], judge["overall"])
    if report["jury_against_raters"]:
        shown = _treatments(report)
        yield "the jury against people" + ("; what it left unresolved is" if len(shown) > 1 else "")
        for against in report["jury_against_raters"]:
            for treatment, words in shown.items():
                name = f"{against['rater']}: {words}" if len(shown) > 1 else against["rater"]
                yield from _row(name, against[treatment]["overall"])
    people = report["between_raters"]
    if people and people["pairs"]:
        yield "people among each other"
        yield from _row(f"all {len(people['together']['raters'])}", people["together"]["overall"])
        for pair in people["pairs"]:
            yield from _row(_names(pair), pair["overall"])


def _row_or_reason(name: str, question: Report) -> Iterator[str]:
    if question["reason"] is None:
        yield from _row(name, question["overall"])
    else:
        yield f" {question['reason']}"


def _treatments(report: Report) -> Mapping[str, str]:
    """Return what may become of unresolved items and its words; where there are none, only the first."""
    return _SHOWN if report["counts"]["items_unresolved"] else {DROPPED: _SHOWN[DROPPED]}


def _sliced(report: Report) -> Iterator[tuple[str, Report]]:
    """Yield the questions whose slices are shown: the judges together, else each over repeats, and each person."""
    together = report["between_judges"]["together"]
    if together["reason"] is None:
        yield "judges among each other", together
    else:
        for judge in report["judge_repeats"]:
            if judge["reason"] is None:
                yield f"{judge['judge']} over repeats", judge
    left_out = ", unresolved dropped" if len(_treatments(report)) > 1 else ""
    for against in report["jury_against_raters"]:
        yield f"the jury against {against['rater']}{left_out}", against[DROPPED]


def _slices(title: str, question: Report) -> Iterator[str]:
    for kind, shown in _KINDS.items():
        if question[kind]:
            yield f"{one_line(title)[: WIDTH - len(shown) - 2]}, {shown}"
            for name, part in question[kind].items():
                yield from _row(name, part)


def _names(question: Report) -> str:
    return " x ".join(one_line(rater["name"]) for rater in question["raters"])


def _row(name: str, part: Report) -> Iterator[str]:
    """Yield a row, below its name where that is too long."""
    left = f" {one_line(name)}"
    if len(left) > _NAME:
        yield left[:WIDTH]
        left = ""
    measures = part["measures"]
    all_rated, kappa = measures[UNANIMITY], measures.get(COHEN) or measures[FLEISS]
    rates = all_rated["base_rates"] or {}
    yield (
        f"{left:<{_NAME}}{all_rated['n']:>6}{_short(all_rated['dropped']):>5}{number(all_rated['value']):>6}"
        f"{number(kappa['value']):>7} {_interval(kappa):<{_INTERVAL}}{number(measures[AC1]['value']):>7}"
        f"{number(measures[ALPHA]['value']) if ALPHA in measures else '':>7}{_share(rates.get('true')):>5}"
    )


def _short(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1_000:.0f}k"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _interval(measure: Report) -> str:
    """Return an interval with two decimals, whose ends may be negative; marked where it has no width."""
    if measure["ci95"] is None:
        return "-"
    low, high = (value + 0.0 for value in measure["ci95"])
    if measure["degenerate"]:
        return f"{low:.2f}..{high:.2f}*" if low >= 0 else f"{low:.2f}*"
    return f"{low:.2f}..{high:.2f}"


def _notes(report: Report) -> Iterator[str]:
    yield from _said_of(report["counts"], report)
    yield from _explained(report)
    for judge in report["judge_repeats"]:
        flips = judge["overall"]["measures"][FLIPS]
        if flips["value"] is not None:
            yield f"{one_line(judge['judge'])}: {flips['value']:.1%} of pairs of its repeats differ (n = {flips['n']})"
    yield from _undefined(report)
    yield from _facts(report)


def _explained(report: Report) -> Iterator[str]:
    """Yield what the columns are, where there is a row."""
    asked = [report["between_judges"]["together"], *report["judge_repeats"]]
    if not report["jury_against_raters"] and all(question["reason"] for question in asked):
        return
    yield "kappa: Cohen's of a pair, Fleiss' in `all` and over repeats; 95% CI: of kappa, cases resampled"
    yield (
        "unan.: share on which all agree; true: share of true ratings; drop: items that not all rated; where true is "
        "near 0 or 1, unanimity is high by chance and kappa low: read AC1 beside them"
    )


def _said_of(counts: Report, report: Report) -> Iterator[str]:
    answers = f"answers: {counts['answers']:,}"
    for name, shown in (("answers_pending", "pending"), ("answers_unjudged", "not judged")):
        answers += f"; {shown} {counts[name]:,}" if counts[name] else ""
    items = f"items judged: {counts['items']:,} of {counts['cases']:,} cases"
    yield f"{answers}  |  {items}; unresolved {counts['items_unresolved']:,}, missing {counts['items_missing']:,}"
    for against in report["jury_against_raters"]:
        labels = counts["labels"][against["rater"]]
        lost = f", {labels['unjudged']:,} on answers that were not judged" if labels["unjudged"] else ""
        yield f"{one_line(against['rater'])}: {labels['n']:,} labels{lost}"


def _undefined(report: Report) -> Iterator[str]:
    """Yield why a kappa of the overall table, or its interval, is not defined; of the slices the JSON says it."""
    together = report["between_judges"]["together"]
    questions = {"judges among each other": together} if together["reason"] is None else {}
    questions |= {_names(pair): pair for pair in report["between_judges"]["pairs"]}
    repeated = [judge for judge in report["judge_repeats"] if judge["reason"] is None]
    questions |= {f"{judge['judge']} over repeats": judge for judge in repeated}
    for against in report["jury_against_raters"]:
        shown = _treatments(report).items()
        questions |= {f"jury against {against['rater']} ({words})": against[name] for name, words in shown}
    for name, question in questions.items():
        measures = question["overall"]["measures"]
        kappa = measures.get(COHEN) or measures[FLEISS]
        why = kappa["reason"] or (kappa["ci95"] is None and f"no interval: {kappa['ci_reason']}")
        if why:
            yield f"{one_line(name)}: {why}"


def _facts(report: Report) -> Iterator[str]:
    for judge in report["judges"]:
        yield f"judge: {one_line(judge['name'])}  |  vendor: {one_line(judge['vendor'] or 'unknown')}"
    answers = one_line(report["answer_model"] or "unknown")
    yield f"answers by: {answers}  |  protocol: {one_line(report['protocol_version'])}"
    drawn = f"{report['bootstrap_samples']:,} resamples, seed {report['bootstrap_seed']}"
    data, run = ((report[name] or "-")[:12] for name in ("dataset_sha256", "identity_sha256"))
    yield f"data: {data}  |  run: {run}  |  {drawn}"
