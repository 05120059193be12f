"""The audit of one call a case against one call an item, as a JSON object.

In: two runs. Out: the object that `--json` prints. The numbers are `grouping`'s, the recommendations, one a panel,
`recommendation`'s, the text for people `grouping_text`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from eval.audits.grouping import Agreement, Estimate, Halo, Order, PanelAudit, audit, looks
from eval.audits.recommendation import ATOMIC, RULE, Recommendation, agreement_floor, halo_seen, order_seen, recommend
from eval.audits.sides import Side, Sides, match, spent_on
from eval.audits.variance import panel_of
from eval.judging.graded import RunData
from eval.judging.suites import suite_of
from eval.numbers.defaults import ALPHA
from eval.results.answers import AnswerKey

FORMAT: Final = "bedside-bench/audit/1"
PER_PANEL: Final = "per panel only"
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
    "recommendation": f"{RULE}; overall: null, as panels differ in what sways a judge",
    "floor": "the lower end of agreement that the rule looks at: of the bootstrap's and the exact binomial interval "
    "the lower one, as the bootstrap's has no width where no decision differs",
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
        "overall": _audit(overall, None),
        "panels": {
            panel.panel: {**_audit(panel, recommend(panel)), "cost": _panel_cost(sides, panel.panel)}
            for panel in panels
        },
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
    where = "1 panel" if panels == 1 else f"{panels} panels"
    return (
        f"{looks(panels)} effects were looked for in {where}: at 95% some are seen where there is none; "
        f"a panel gets {ATOMIC} only by an interval of {1 - ALPHA / looks(panels):.2%}"
    )


def _panel_cost(sides: Sides, panel: str) -> dict[str, Any]:
    run = sides.one_call.run
    return _cost(sides, {(one.case_id, one.answer_repeat) for one, _ in sides.pairs if panel_of(run, one) == panel})


def _cost(sides: Sides, names: set[AnswerKey]) -> dict[str, Any]:
    """Return what both modes asked and cost; tokens null where a server did not say, or a folder holds other cases."""
    one, atomic = (_spent(side, names, sides) for side in (sides.one_call, sides.atomic))
    ratio = {name: _ratio(atomic[name], one[name]) for name in one}
    unknown = [name for name, value in ratio.items() if value is None]
    reason = f"not known of every call: {', '.join(unknown)}" if unknown else None
    return {"one_call": one, "atomic": atomic, "ratio": ratio, "reason": reason}


def _spent(side: Side, names: set[AnswerKey], sides: Sides) -> dict[str, int | None]:
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


def _audit(found: PanelAudit, recommended: Recommendation | None) -> dict[str, Any]:
    return {
        "n_cases": found.n_cases,
        "n_compared_cases": found.n_compared,
        "n_answers": found.n_answers,
        "n_undecided": found.undecided,
        "recommendation": recommended.mode if recommended else None,
        "reasons": list(recommended.reasons) if recommended else [PER_PANEL],
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
