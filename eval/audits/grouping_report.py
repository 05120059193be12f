"""The audit of one call a case against one call an item, as a JSON object and as a text of at most 80 columns.

In: two runs. Out: the object that `--json` prints, and what a person reads. The numbers are `grouping`'s, the
recommendations `recommendation`'s.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.audits.grouping import Agreement, Estimate, Halo, Order, PanelAudit, audit, looks
from eval.audits.recommendation import ATOMIC, RULE, agreement_floor, halo_seen, order_seen, recommend
from eval.audits.sides import AnswerName, Side, Sides, match, spent_on
from eval.audits.variance import panel_of
from eval.calls.reply import one_line
from eval.judging.graded import RunData
from eval.judging.suites import suite_of
from eval.numbers.defaults import ALPHA
from eval.showing.cells import interval_cell, number

FORMAT: Final = "bedside-bench/audit/1"
WIDTH: Final = 80
DEFINITIONS: Final = {
    "compared": "decisions of one judge at one repeat on one item of one answer, made in both modes; in cases of one "
    "item neither place nor neighbours can sway a decision: they enter only the scores",
    "wording": "BedsideBench judges read the same words in both modes; HealthBench's grader reads this project's "
    "wording for one criterion in the atomic mode and for all of them in the one call, so that a difference between "
    "the modes may be one between the wordings",
    "ci95": "percentile interval of resamples of cases within panels; the halo's share has the exact binomial one, "
    "which takes disagreements as independent",
    "ci_all_looks": "the interval at 1 - 0.05 / looks, so that those of all panels hold at once in 95% of audits",
    "mcnemar_p": "exact two-sided test that the two kinds of disagreement are as likely; it takes decisions as "
    "independent, which those of one case are not: the interval of `shift` does not",
    "shift": "share of true decisions, one call - atomic",
    "again": "share of pairs of repeats of one judge in one mode that agree: noise that is no effect of the mode",
    "order": "cases of three items and more, by third of the rubric; slope of (one call - atomic) on the place, 0 "
    "first item to 1 last, places centred within the items of one sign in one reply: an unlike treatment of wanted "
    "and harmful items does not show as order",
    "halo": "share of disagreements in which the one call sides with the majority of the case's other items by "
    "their atomic decisions of the same judge and repeat, ties left out; 0.5 without halo, as noise that is alike in "
    "both modes makes either mode the one that sides with them; `expected` is the share that a mode's saying true "
    "more often explains by itself",
    "halo.spread": "between-case variance of the matched share, one call / atomic; above 1 where one call makes the "
    "items of a case more alike",
    "score": "mean over cases of one call - atomic, the conservative score where a jury left items unresolved; "
    "overall the mean over panels",
    "cost": "judge calls on the compared answers, those asked again and those taken over from another file included; "
    "questions: what the design asks; ratio atomic / one call",
    "recommendation": RULE,
    "yardstick": "the atomic mode, as each question stands alone; which mode is right only people's labels say",
}


def audit_report(a: Side, b: Side, *, samples: int | None, seed: int, software: Mapping[str, str]) -> dict[str, Any]:
    """Return the audit of two runs, one in each mode, in either order.

    Args:
        samples: resamples of an interval; the suite's own number where not given.

    Raises:
        BadInput: the runs differ in anything but grouping, or have no graded answer in common.
    """
    sides = match(a, b)
    drawn = suite_of(sides.one_call.run.suite).samples if samples is None else samples
    panels, overall = audit(sides, samples=drawn, seed=seed)
    run = sides.one_call.run
    return {
        "format": FORMAT,
        "suite": run.suite,
        "config": run.config,
        "dataset_sha256": run.dataset_sha256,
        "answer_model": run.answer_model,
        "judges": [judge["model"] for judge in (run.identity or {})["judges"]],
        "repeats": (run.identity or {})["repeats"],
        "one_call": _run(sides.one_call),
        "atomic": _run(sides.atomic),
        "n_answers": len(sides.pairs),
        "n_in_one_run_only": sides.alone,
        "n_ungraded": sides.ungraded,
        "cost": _cost(sides, {(one.case_id, one.answer_repeat) for one, _ in sides.pairs}),
        "overall": _audit(overall),
        "panels": {panel.panel: {**_audit(panel), "cost": _panel_cost(sides, panel.panel)} for panel in panels},
        "looks": _looks(len(panels)),
        "bootstrap_samples": drawn,
        "bootstrap_seed": seed,
        "definitions": DEFINITIONS,
        "software": dict(software),
    }


def _run(side: Side) -> dict[str, Any]:
    run: RunData = side.run
    names = ("protocol_version", "identity_sha256", "finished_at")
    return {"where": side.where, **{name: getattr(run, name) for name in names}}


def _looks(panels: int) -> str:
    return (
        f"{looks(panels)} effects were looked for in {panels} panels: at 95% some are seen where there is none; "
        f"a panel gets {ATOMIC} only by an interval of {1 - ALPHA / looks(panels):.2%}"
    )


def _panel_cost(sides: Sides, panel: str) -> dict[str, Any]:
    run = sides.one_call.run
    return _cost(sides, {(one.case_id, one.answer_repeat) for one, _ in sides.pairs if panel_of(run, one) == panel})


def _cost(sides: Sides, names: set[AnswerName]) -> dict[str, Any]:
    """Return what both modes asked and cost; tokens null where a server did not say, or a folder holds other cases."""
    one, atomic = (_spent(side, names, sides) for side in (sides.one_call, sides.atomic))
    ratio = {name: _ratio(atomic[name], one[name]) for name in one}
    unknown = [name for name, value in ratio.items() if value is None]
    reason = f"not known of every call: {', '.join(unknown)}" if unknown else None
    return {"one_call": one, "atomic": atomic, "ratio": ratio, "reason": reason}


def _spent(side: Side, names: set[AnswerName], sides: Sides) -> dict[str, int | None]:
    pair = 0 if side is sides.one_call else 1
    graded = [found[pair] for found in sides.pairs if (found[0].case_id, found[0].answer_repeat) in names]
    each = [1 if pair == 0 else len(case.item_ids) for case in graded]
    asked = [sum(map(len, case.ballots)) for case in graded]
    spent = spent_on(side, names)
    return {
        "questions": sum(calls * times for calls, times in zip(each, asked, strict=True)),
        "calls": spent.calls or None,
        "input_tokens": spent.input,
        "output_tokens": spent.output,
    }


def _ratio(top: int | None, bottom: int | None) -> float | None:
    return top / bottom if top is not None and bottom else None


def _audit(found: PanelAudit) -> dict[str, Any]:
    recommended = recommend(found)
    return {
        "n_cases": found.n_cases,
        "n_compared_cases": found.n_compared,
        "n_answers": found.n_answers,
        "n_undecided": found.undecided,
        "recommendation": recommended.mode,
        "reasons": list(recommended.reasons),
        "agreement": _agreement(found.agreement),
        "order": {**_order(found.order), "seen": order_seen(found), "sure": order_seen(found, sure=True)},
        "halo": {**_halo(found.halo), "seen": halo_seen(found), "sure": halo_seen(found, sure=True)},
        "score": {**_json(found.score), "one_call": found.scores[0], "atomic": found.scores[1]},
    }


def _json(estimate: Estimate) -> dict[str, Any]:
    interval = None if estimate.low is None else [estimate.low, estimate.high]
    found = {"value": estimate.value, "ci95": interval, "n": estimate.n, "reason": estimate.reason}
    return found if estimate.sure is None else {**found, "ci_all_looks": list(estimate.sure)}


def _agreement(found: Agreement) -> dict[str, Any]:
    names = ("equal", "kappa", "one_call", "atomic", "shift", "again_one_call", "again_atomic")
    return {
        **{name: _json(getattr(found, name)) for name in names},
        "floor": agreement_floor(found.equal),
        "only_one_call": found.only_one_call,
        "only_atomic": found.only_atomic,
        "mcnemar_p": found.mcnemar_p,
        "mcnemar_reason": "no disagreement" if found.mcnemar_p is None else None,
    }


def _order(found: Order) -> dict[str, Any]:
    thirds = {name: {"shift": _json(found.shift[name]), "differ": _json(found.differ[name])} for name in found.shift}
    return {"thirds": thirds, "slope": _json(found.slope)}


def _halo(found: Halo) -> dict[str, Any]:
    return {
        "share": _json(found.share),
        "expected": found.expected,
        "ties": found.ties,
        "spread": _json(found.spread),
    }


def audit_text(report: Mapping[str, Any]) -> str:
    """Return an audit as text of at most 80 columns: a line a panel, then what is behind the overall one."""
    head = f"{'':<23}{'n':>7} {'equal':>6} {'95% CI':<12}{'kappa':>6} {'score':>7}  recommendation"
    lines = ["one call a case against one call an item", head, "-" * WIDTH]
    lines += [_line(name, panel) for name, panel in report["panels"].items()]
    lines += ["-" * WIDTH, _line("overall", report["overall"]), ""]
    lines += [*_effects(report["overall"]), *_cost_lines(report["cost"]), ""]
    for name, panel in report["panels"].items():
        for reason in panel["reasons"]:
            lines += _wrapped(f"{one_line(name)}: {panel['recommendation']}: {reason}")
    lines += ["", *_notes(report)]
    return "\n".join(line.rstrip() for line in lines)


def _line(name: str, panel: Mapping[str, Any]) -> str:
    equal, kappa, score = panel["agreement"]["equal"], panel["agreement"]["kappa"], panel["score"]["value"]
    moved = "-" if score is None else f"{score:+.3f}"
    cells = f"{equal['n']:>7} {number(equal['value']):>6} {interval_cell(equal['ci95']):<12}"
    return f"{one_line(name)[:23]:<23}{cells}{number(kappa['value']):>6} {moved:>7}  {panel['recommendation']}"


def _effects(overall: Mapping[str, Any]) -> Iterator[str]:
    agreement, order, halo = overall["agreement"], overall["order"], overall["halo"]
    rates = f"one call {_cell(agreement['one_call'])}, atomic {_cell(agreement['atomic'])}"
    yield from _wrapped(f"matched: {rates}; difference {_cell(agreement['shift'])}")
    only = f"{agreement['only_one_call']} true in one call only, {agreement['only_atomic']} in atomic only"
    p = agreement["mcnemar_p"]
    yield from _wrapped(f"disagreements: {only}; McNemar p = {'-' if p is None else f'{p:.3g}'}")
    again = (agreement["again_one_call"], agreement["again_atomic"])
    if again[0]["value"] is not None:
        yield from _wrapped(f"a judge's repeats agree: one call {_cell(again[0])}, atomic {_cell(again[1])}")
    for third, found in order["thirds"].items():
        yield from _wrapped(f"{third} third: difference {_cell(found['shift'])}, disagree {_cell(found['differ'])}")
    yield from _wrapped(f"order: slope {_cell(order['slope'])}")
    expected = "" if halo["expected"] is None else f", {halo['expected']:.3f} expected without it"
    yield from _wrapped(f"halo: {_cell(halo['share'])}{expected}; ties {halo['ties']}; spread {_cell(halo['spread'])}")
    yield from _wrapped(f"score, one call - atomic: {_cell(overall['score'])}")


def _cost_lines(cost: Mapping[str, Any]) -> Iterator[str]:
    for name, ratio in cost["ratio"].items():
        one, atomic = cost["one_call"][name], cost["atomic"][name]
        if ratio is not None:
            yield f"{name.replace('_', ' ')}: one call {one}, atomic {atomic}: {ratio:.1f} times as many"
    if cost["reason"]:
        yield from _wrapped(cost["reason"].replace("_", " "))


def _cell(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return f"- ({estimate['reason']})"
    ends = estimate["ci95"]
    interval = "no interval" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"
    return f"{estimate['value']:.3f} ({interval}; n = {estimate['n']})"


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
    yield from _wrapped(f"judges: {', '.join(map(one_line, report['judges']))}; repeats: {report['repeats']}")
    dropped = f"in one run only: {report['n_in_one_run_only']}; ungraded in a run: {report['n_ungraded']}"
    yield from _wrapped(f"answers: {report['n_answers']}; {dropped}")
    yield from _wrapped(report["looks"])
    if report["suite"] == HEALTHBENCH:
        yield from _wrapped(f"wording: {DEFINITIONS['wording']}")
    yield from _wrapped(f"yardstick: {DEFINITIONS['yardstick']}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
