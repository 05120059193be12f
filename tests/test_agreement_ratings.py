"""A run's decisions as ratings: votes, verdicts, repeats, people's labels, and the facts they are sliced by."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.agreement.coded import UNRESOLVED
from eval.agreement.measures import measure
from eval.agreement.ratings import (
    AS_THIRD,
    DROPPED,
    REPEATS,
    judge_names,
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
from eval.judging.graded import Ballots, GradedCase, RunData
from eval.judging.jury import item_votes, missing, verdict
from tests.labelled import graded
from tests.rated import cohen_kappa, unanimity
from tests.runs import graded_case, jury_case, jury_run, run_of

T, F, N = True, False, None
DRUGS, PLAN = "drug_safety", "safety_diagnostic"

# Two judges, three repeats, three items: judge 0 says T F T, T F F, T T N; judge 1 F F N, T F N, T F N.
TWO_BY_THREE: Ballots = (((T, F, T), (T, F, F), (T, T, N)), ((F, F, N), (T, F, N), (T, F, N)))


def test_votes_and_verdicts_are_the_jurys() -> None:
    """Item 0: both true; 1: both false; 2: no vote, of the one at odds with itself nor of the silent one."""
    judged = judged_items(jury_run(jury_case("a", DRUGS, [2, -1, 0], TWO_BY_THREE), repeats=3))

    assert [(T, T), (F, F), (N, N)] == [item.votes for item in judged.items]
    assert [T, F, None] == [item.verdict for item in judged.items]
    assert (1, 0) == (judged.missing, judged.unresolved)


def test_unresolved_and_missing_are_two_things() -> None:
    """Two judges apart leave an item unresolved, as does a vote against none; no vote at all is missing."""
    apart: Ballots = (((T, T, N),), ((F, N, N),))
    judged = judged_items(jury_run(jury_case("a", DRUGS, [2, 1, 1], apart)))

    assert [UNRESOLVED, UNRESOLVED, None] == [item.verdict for item in judged.items]
    assert (1, 2) == (judged.missing, judged.unresolved)


def test_what_was_not_judged_to_an_end_is_counted_and_left_out() -> None:
    """A pending case may still get votes; a failed answer has none to come; a failed judge's case has some."""
    one: Ballots = (((T, N),),)
    run = jury_run(
        jury_case("lost", DRUGS, [1, 1], one),
        replace(jury_case("pending", DRUGS, [1, 1], one), state="pending", matched=None),
    )
    run = replace(run, cases=(*run.cases, graded_case("failed", DRUGS, [1], None, failed_role="answer")))
    judged = judged_items(run)

    assert ["lost", "lost"] == [item.key[0] for item in judged.items]
    assert (3, 1, 1) == (judged.n_answers, judged.n_pending, judged.n_unjudged)


def test_judges_are_held_against_each_other_by_votes() -> None:
    """All together and in pairs: the third judge's missing vote drops the item from what needs it, not from others."""
    votes: Ballots = (((T, F, T),), ((T, T, T),), ((F, T, N),))
    judged = judged_items(jury_run(jury_case("a", DRUGS, [1, 1, 1], votes)))
    pairs = judge_pairs(judged)

    assert (2, 1) == (unanimity(judges_together(judged).ratings).n, unanimity(judges_together(judged).ratings).dropped)
    assert [("judge-0", "judge-1"), ("judge-0", "judge-2"), ("judge-1", "judge-2")] == [pair.raters for pair in pairs]
    assert [pytest.approx(2 / 3), 0.0, 0.5] == [unanimity(pair.ratings).value for pair in pairs]


def test_one_judge_has_nobody_to_agree_with() -> None:
    """Null with a reason, not 100 % (decided D10); and there are no pairs."""
    judged = judged_items(jury_run(jury_case("a", DRUGS, [1, 1], (((T, F),),))))
    together = judges_together(judged)

    assert "one judge: nobody to agree with" == together.reason
    assert (None, []) == (unanimity(together.ratings).value, judge_pairs(judged))


def test_repeats_are_held_against_each_other_judge_by_judge() -> None:
    """Judge 0: T T T, F F T, T F missing: pairs apart 0, 2 of 3, 1 of 1. One repeat: a reason."""
    judged = judged_items(jury_run(jury_case("a", DRUGS, [2, -1, 0], TWO_BY_THREE), repeats=3))
    first, second = judge_repeats(judged)
    (once,) = judge_repeats(judged_items(jury_run(jury_case("a", DRUGS, [1], (((T,),),)))))

    assert measure(first.ratings, "flip_rate").value == pytest.approx((0 + 2 / 3 + 1) / 3)
    assert measure(second.ratings, "flip_rate").value == pytest.approx((2 / 3 + 0) / 2)
    assert REPEATS == first.measures
    assert "one repeat: nothing to hold it against" == once.reason


def test_the_jury_against_a_person_in_both_treatments() -> None:
    """Of four labelled items one is unresolved: dropped and counted, or a category nobody else uses.

    Dropped: T T, F F, T F: po = 2/3, pe = 2/3 * 1/3 + 1/3 * 2/3 = 4/9: kappa 0.4. As a third: with ? T: po = 2/4,
    pe = (2 * 2 + 1 * 2) / 16 = 3/8: kappa 0.2.
    """
    ballots: Ballots = (((T, F, T, T, F),), ((T, F, T, F, F),))
    judged = judged_items(jury_run(jury_case("a", DRUGS, [1] * 5, ballots)))
    labels = {("a", 0, f"a_{n}"): label for n, label in enumerate((T, F, F, T))}
    dropped = jury_against(judged, "lee", labels, treatment=DROPPED)
    third = jury_against(judged, "lee", labels, treatment=AS_THIRD)

    assert ("jury", "lee") == dropped.raters
    assert (3, 1) == (cohen_kappa(dropped.ratings).n, cohen_kappa(dropped.ratings).dropped)
    assert cohen_kappa(dropped.ratings).value == pytest.approx(0.4)
    assert (4, 0) == (cohen_kappa(third.ratings).n, cohen_kappa(third.ratings).dropped)
    assert cohen_kappa(third.ratings).value == pytest.approx(0.2)


def test_people_among_each_other() -> None:
    """Over the items that anybody labelled; a pair is held against each other where both did."""
    judged = judged_items(jury_run(jury_case("a", DRUGS, [1] * 4, (((T, T, T, T),),))))
    labels = {"lee": {("a", 0, "a_0"): T, ("a", 0, "a_1"): F}, "kim": {("a", 0, "a_1"): F, ("a", 0, "a_2"): T}}
    together, (pair,) = raters_together(judged, labels), rater_pairs(judged, labels)

    assert (3, None) == (len(together.rows), together.reason)
    assert (1, 2, 1.0) == tuple(getattr(unanimity(pair.ratings), name) for name in ("n", "dropped", "value"))
    assert "one rater: nobody to agree with" == raters_together(judged, {"lee": labels["lee"]}).reason


def test_labels_on_answers_that_were_not_judged_are_counted() -> None:
    """They stand in no table, and the count says so."""
    judged = judged_items(jury_run(jury_case("a", DRUGS, [1], (((T,),),))))

    assert 1 == unjudged_labels(judged, {("a", 0, "a_0"): T, ("b", 0, "b_0"): T})


def test_answers_to_one_case_are_one_cluster() -> None:
    """Two answers to one case are no two cases."""
    ballots: Ballots = (((T,),),)
    cases = [jury_case(name, DRUGS, [1], ballots, answer_repeat=n) for name in "ab" for n in (0, 1)]

    assert [0, 0, 1, 1] == judged_items(jury_run(*cases)).clusters.tolist()


def test_slices_are_panels_signs_and_severities_that_occur() -> None:
    """Severity is a word of plan panels only; panels in registry order, HealthBench's items without points apart."""
    one: Ballots = (((T, F, T),),)
    run = jury_run(
        jury_case("plan", PLAN, [3, -2, 0], one),
        jury_case("drugs", DRUGS, [3, -1, 1], one),
        jury_case("meta", "healthbench_meta", [1], (((T,),),)),
    )
    meta = replace(run.cases[2], points=(None,), grading_method="healthbench")
    found = slices(judged_items(replace(run, cases=(*run.cases[:2], meta))))

    assert [DRUGS, PLAN, "healthbench_meta"] == list(found["panels"])
    assert {"positive": 3, "negative": 2, "zero": 1, "no points": 1} == {
        sign: int(rows.sum()) for sign, rows in found["signs"].items()
    }
    assert {"+3": 1, "0": 1, "-2": 1} == {level: int(rows.sum()) for level, rows in found["severities"].items()}


def test_a_file_that_only_has_verdicts_is_one_judges() -> None:
    """Another evaluator's run can be held against people too."""
    judged = judged_items(run_of(graded_case("a", DRUGS, [1, 1], [1, 0])))

    assert (("judge-model",), [(T,), (F,)]) == (judged.judges, [item.votes for item in judged.items])


def test_two_judges_of_one_model_keep_two_names() -> None:
    """One model at two temperatures is two judges; a name must tell them apart."""
    run = RunData("v1", (), (), identity={"judges": [{"model": "m"}, {"model": "n"}, {"model": "m"}]})

    assert ("m #1", "n", "m #3") == judge_names(run)


def test_nothing_judged_is_nothing_to_measure() -> None:
    """A run before its first judge call gives empty questions, no error."""
    judged = judged_items(run_of(graded("a", None, (1, 1))))

    assert (0, 1) == (len(judged.items), judged.n_unjudged)
    assert [None] == [measure(question.ratings, "gwet_ac1").value for question in judge_repeats(judged)]
    assert {"panels": {}, "signs": {}, "severities": {}} == slices(judged)


@st.composite
def cases_of_a_jury(draw: st.DrawFn) -> GradedCase:
    """Return a case with any ballots of one to three judges, one to three repeats, one to four items."""
    judges, repeats, items = (draw(st.integers(1, most)) for most in (3, 3, 4))
    said = st.tuples(*[st.sampled_from((T, F, N))] * items)
    ballots = tuple(tuple(draw(said) for _ in range(repeats)) for _ in range(judges))
    return jury_case("a", DRUGS, [1] * items, ballots)


@given(case=cases_of_a_jury())
def test_every_code_is_the_decision_it_stands_for(case: GradedCase) -> None:
    """Votes and verdicts as `jury` has them; repeats in the place of their item, judge and repeat."""
    judged = judged_items(jury_run(case, repeats=len(case.ballots[0])))
    votes = item_votes(case.ballots)
    words = {-1: N, 0: F, 1: T}

    assert votes == [item.votes for item in judged.items]
    for item, of_item in zip(judged.items, votes, strict=True):
        assert (item.verdict is None) == missing(of_item)
        assert item.verdict == (
            None if missing(of_item) else verdict(of_item) if verdict(of_item) is not N else UNRESOLVED
        )
    for at in range(len(votes)):
        for judge, of_judge in enumerate(case.ballots):
            assert [words[code] for code in judged.repeats[at, judge].tolist()] == [said[at] for said in of_judge]
