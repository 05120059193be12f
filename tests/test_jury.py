"""Judges x repeats -> votes -> verdicts, and the same replies under a smaller jury."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.judging.jury import NO_VOTE, item_votes, judged_by, missing, verdict, vote
from tests.runs import graded_case, jury_case

T, F, N = True, False, None
Given = tuple[bool | None, ...]

# How many equal ones it takes, of so many: a judge's repeats are called 1 to 5 times, a jury has 1 to 6 judges.
EQUAL_REPEATS = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3}
EQUAL_VOTES = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4}


@pytest.mark.parametrize(("called", "needed"), EQUAL_REPEATS.items())
def test_every_way_that_repeats_can_come_out(called: int, needed: int) -> None:
    """A vote needs more than half of the repeats called, whatever became of the others (decided D2)."""
    for repeats in product((T, F, N), repeat=called):
        expected = T if repeats.count(T) >= needed else F if repeats.count(F) >= needed else N
        assert expected is vote(repeats), repeats


@pytest.mark.parametrize(("judges", "needed"), EQUAL_VOTES.items())
def test_every_way_that_a_jury_can_vote(judges: int, needed: int) -> None:
    """One judge decides alone, two must agree, three and more need a strict majority of the jury (decided D1)."""
    for votes in product((T, F, N), repeat=judges):
        expected = T if votes.count(T) >= needed else F if votes.count(F) >= needed else N
        assert expected is verdict(votes), votes
        assert missing(votes) is (votes.count(N) == judges)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [((T, F), N), ((T, T, F, F), N), ((T, T, T, F), T), ((T, T, F, N), N), ((T, T, T, F, F, F), N), ((F, F, N), F)],
)
def test_even_splits_give_no_verdict(votes: Given, expected: bool | None) -> None:
    """The lines of the spec by hand: an even split is undecided, and a vote that is not there counts in the jury."""
    assert expected is verdict(votes)


def test_majorities_are_of_majorities() -> None:
    """Nine calls pooled would say met, five of nine; two of the three judges say not met (decided D4)."""
    ballots = (((T,), (T,), (T,)), ((T,), (F,), (F,)), ((T,), (F,), (F,)))

    assert [(T, F, F)] == item_votes(ballots)
    assert verdict(item_votes(ballots)[0]) is F


def test_an_item_without_any_vote_is_missing_another_unresolved() -> None:
    """Where judges disagree the case is graded with that item open; where nobody has a vote it is ungraded."""
    split = jury_case("a", "drug_safety", [2, 1], (((T, T),), ((T, F),)))
    lost = jury_case("a", "drug_safety", [2, 1], (((T, N),), ((T, N),)))

    assert ("graded", (T, N), 1) == (split.state, split.matched, split.unresolved)
    assert ("failed", NO_VOTE, N, (T, N)) == (lost.state, lost.failed_state, lost.matched, lost.decided)


@pytest.mark.parametrize(
    ("judges", "state", "expected"),
    [((0,), "graded", (T, F)), ((1,), "graded", (F, F)), ((2,), "failed", N), ((0, 1), "graded", (N, F))],
)
def test_some_judges_alone_decide_by_the_rule_of_so_many(judges: Given, state: str, expected: Given | None) -> None:
    """The same replies under a smaller jury; where it leaves an item without any vote, the case is ungraded for it."""
    case = jury_case("a", "drug_safety", [2, 1], (((T, F),), ((F, F),), ((N, T),)))
    alone = judged_by(case, [int(judge or 0) for judge in judges])

    assert (state, expected) == (alone.state, alone.matched)


def test_a_case_whose_answer_failed_stays_so() -> None:
    """No jury decides on an answer that is not there."""
    failed = graded_case("a", "drug_safety", [1], None)

    assert failed == judged_by(failed, [0])


Ballots = st.integers(1, 4).flatmap(
    lambda judges: st.integers(1, 3).flatmap(
        lambda repeats: st.integers(1, 5).flatmap(
            lambda items: st.lists(
                st.lists(st.tuples(*[st.sampled_from((T, F, N))] * items), min_size=repeats, max_size=repeats).map(
                    tuple
                ),
                min_size=judges,
                max_size=judges,
            ).map(tuple)
        )
    )
)


@given(ballots=Ballots, shuffle=st.randoms())
def test_who_sits_where_changes_nothing(ballots: tuple[tuple[Given, ...], ...], shuffle: object) -> None:
    """Judges in another order, and each judge's repeats in another order, give the same verdicts and the same state."""
    judges = [list(of_judge) for of_judge in ballots]
    shuffle.shuffle(judges)  # type: ignore[attr-defined]
    for of_judge in judges:
        shuffle.shuffle(of_judge)  # type: ignore[attr-defined]
    points = [1] * len(ballots[0][0])
    one = jury_case("a", "drug_safety", points, ballots)
    other = jury_case("a", "drug_safety", points, tuple(map(tuple, judges)))

    assert (one.state, one.matched, one.decided) == (other.state, other.matched, other.decided)
