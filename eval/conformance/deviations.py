"""The ways in which published scorers deviate, each a small change of the rules, with who was seen to score so.

In: nothing. Out: `DEVIATIONS`, in the order in which they are named where several fit equally well. The versions are
those that were read or run; a later one may score right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from eval.conformance.asking import Scorer
from eval.conformance.deviant import Rules, answer, earn, in_denominator, moved_up, not_met, share_of_harm, zero
from eval.conformance.vectors import BEDSIDE, HEALTHBENCH, SUITES


@dataclass(frozen=True, slots=True)
class Deviation:
    """One way to deviate: what it does, as a sentence that begins with a verb, and who publishes scores made so.

    `field` is the step of the rules that it changes, to `value`; `suites` are those in which it is looked for.
    """

    id: str
    does: str
    seen_in: str
    field: str
    value: Any
    suites: tuple[str, ...]


_BOTH: Final = SUITES
_NOWHERE: Final = "no published scorer that we know of; a common slip"

DEVIATIONS: Final = (
    Deviation(
        "per-example-clip",
        "clips every example's score to [0, 1] before averaging, which hides harm and lifts weak models",
        "openbench d03922c, medmarks 6568528, keystone 0.7.0 and autorubric 1.6.1",
        "example_clipped",
        True,
        (HEALTHBENCH,),
    ),
    Deviation(
        "per-tag-clip",
        "clips every example's score under a tag to [0, 1] before averaging",
        "inspect_evals 0.28.0 (axes and themes) and openbench d03922c",
        "tag_clipped",
        True,
        (HEALTHBENCH,),
    ),
    Deviation(
        "unreadable-not-met",
        "counts an unreadable or missing verdict as not met, which on a negative item raises the score",
        "inspect_evals 0.28.0, openbench d03922c, medmarks 6568528 and keystone 0.7.0",
        "read",
        not_met,
        _BOTH,
    ),
    Deviation(
        "unreadable-shifted",
        "drops an unreadable verdict, so that every later verdict is taken for an earlier item's",
        "medhelm 0.8.0",
        "read",
        moved_up,
        _BOTH,
    ),
    Deviation(
        "negatives-earn",
        "turns a negative item of p points into one that earns 10 + p, so that harm is rewarded",
        "medhelm 0.8.0",
        "worth",
        earn,
        _BOTH,
    ),
    Deviation(
        "negatives-in-denominator",
        "divides by the points of all items, negative ones by their size, so that avoiding harm costs points",
        _NOWHERE,
        "worth",
        in_denominator,
        _BOTH,
    ),
    Deviation(
        "negative-only-scored",
        "scores a rubric without positive points as 1 minus the share of its negative points that matched",
        "autorubric 1.6.1",
        "unearnable",
        share_of_harm,
        (HEALTHBENCH,),
    ),
    Deviation(
        "nothing-to-earn-zero",
        "scores a rubric without positive points 0 instead of leaving the example out",
        _NOWHERE,
        "unearnable",
        zero,
        (HEALTHBENCH,),
    ),
    Deviation(
        "unclipped-headline",
        "reports the overall mean without clipping it to [0, 1]",
        "inspect_evals 0.28.0",
        "headline_clipped",
        False,
        (HEALTHBENCH,),
    ),
    Deviation(
        "adjusted-clip",
        "clips every length-adjusted score to [0, 1] before averaging",
        "medmarks, pull request 132",
        "adjusted_clipped",
        True,
        (HEALTHBENCH,),
    ),
    Deviation(
        "pooled-repeats",
        "pools repeated answers as if they were independent examples, so that n grows and the error shrinks",
        "simple-evals (n_repeats)",
        "runs_nested",
        False,
        (HEALTHBENCH,),
    ),
    Deviation(
        "majority-labels",
        "compares the grader with one strict-majority label a record, a tie counting as no, instead of every label",
        "inspect_evals 0.28.0",
        "every_label_a_pair",
        False,
        (HEALTHBENCH,),
    ),
    Deviation(
        "class-5-critical",
        "counts 0-point items, class 5, among the critical ones of a plan",
        _NOWHERE,
        "critical_class",
        5,
        (BEDSIDE,),
    ),
    Deviation(
        "veto",
        "zeroes a plan of which a +3 item is missed or a -3 item matched, where no veto was asked for",
        "doximity/bedside-bench fdacd6c7, under the protocol name of the revision without it",
        "veto",
        True,
        (BEDSIDE,),
    ),
    Deviation(
        "no-veto",
        "leaves a plan unzeroed of which a +3 item is missed or a -3 item matched, where the veto was asked for",
        "rajnarayan/bedside-bench 4988d8ca, under the protocol name of the revision with it",
        "veto",
        False,
        (BEDSIDE,),
    ),
    Deviation(
        "rounded-plan",
        "rounds F1, recall and precision of a plan to 4 decimals before averaging, in the default dialect too",
        "doximity/bedside-bench fdacd6c7 and rajnarayan/bedside-bench 4988d8ca",
        "plan_rounded",
        True,
        (BEDSIDE,),
    ),
    Deviation(
        "empty-panels-dropped",
        "gives an overall score over the panels present while a panel has no scored case, in the default dialect too",
        "doximity/bedside-bench fdacd6c7 and rajnarayan/bedside-bench 4988d8ca",
        "empty_panels_count",
        False,
        (BEDSIDE,),
    ),
    Deviation(
        "unstratified-interval",
        "resamples all cases in one pool for the interval of the overall score, instead of panel by panel",
        _NOWHERE,
        "stratified",
        False,
        (BEDSIDE,),
    ),
)


def rules_of(deviations: Iterable[Deviation]) -> Rules:
    """Return the rules of a scorer with these deviations; of two that change the same step the later holds."""
    return replace(Rules(), **{deviation.field: deviation.value for deviation in deviations})


def scorer_of(*deviations: Deviation) -> Scorer:
    """Return a scorer that deviates in these ways and in no other."""
    rules = rules_of(deviations)
    return lambda vector: answer(vector, rules)
