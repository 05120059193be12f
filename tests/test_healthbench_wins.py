"""Win rates: hand-worked pairs, the length control, and a second implementation of plain loops."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.healthbench.metrics import metric
from eval.healthbench.wins import Answer, control_effect, win_rates

answer = st.builds(Answer, st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), st.sampled_from([0, 19, 20, 21, 1000, 1100]))
table = st.lists(st.tuples(st.lists(answer, max_size=4), st.lists(answer, max_size=4)), max_size=6)


def naive(a: list[list[Answer]], b: list[list[Answer]], tolerance: float | None) -> tuple[list[float], list[int]]:
    """Return the examples' win rates, and pairs, ties, dropped pairs and examples without a pair."""
    rates: list[float] = []
    pairs = ties = dropped = without = 0
    for ours, theirs in zip(a, b, strict=True):
        won: list[int] = []
        for x in ours:
            for y in theirs:
                if tolerance is not None and (
                    x.n_chars == 0
                    or y.n_chars == 0
                    or abs(x.n_chars - y.n_chars) / ((x.n_chars + y.n_chars) / 2) > tolerance
                ):
                    dropped += 1
                elif x.score == y.score:
                    ties += 1
                else:
                    won.append(int(x.score > y.score))
        pairs += len(won)
        without += not won
        rates += [sum(won) / len(won)] if won else []
    return rates, [pairs, ties, dropped, without]


@settings(max_examples=80)
@given(table)
def test_win_rates_equal_a_second_implementation(rows: list[tuple[list[Answer], list[Answer]]]) -> None:
    """Plain and length-controlled: the rate, its bootstrap, and all that was counted."""
    a, b = [list(x) for x, _ in rows], [list(y) for _, y in rows]
    found = win_rates(a, b, samples=20, seed=3)

    for ours, tolerance in ((found.plain, None), (found.controlled, 0.1)):
        rates, counts = naive(a, b, tolerance)
        assert [ours.pairs, ours.ties, ours.dropped, ours.without_pair] == counts
        assert ours.rate == metric(rates, samples=20, seed=3)


def test_win_rate_by_hand() -> None:
    """Example 1: of four pairs one ties, two are won; example 2 is lost; example 3 ties only: (2/3 + 0) / 2."""
    a = [[Answer(0.5, 100), Answer(0.8, 100)], [Answer(0.1, 100)], [Answer(0.4, 100)]]
    b = [[Answer(0.5, 100), Answer(0.6, 100)], [Answer(0.2, 100)], [Answer(0.4, 100)]]
    plain = win_rates(a, b).plain

    assert plain.rate.value == pytest.approx((2 / 3 + 0) / 2, rel=1e-15)
    assert (plain.rate.n, plain.pairs, plain.ties, plain.without_pair, plain.dropped) == (2, 4, 2, 1, 0)


@pytest.mark.parametrize(
    ("ours", "theirs", "kept"),
    [(95, 105, True), (105, 95, True), (19, 21, True), (94, 105, False), (0, 0, False), (0, 100, False)],
)
def test_length_control_keeps_answers_within_a_tenth_of_their_mean(ours: int, theirs: int, kept: bool) -> None:
    """10 of 100 is within, 11 of 99.5 is not; an empty answer is never as long as another."""
    controlled = win_rates([[Answer(1.0, ours)]], [[Answer(0.0, theirs)]]).controlled

    assert (controlled.pairs, controlled.dropped) == (int(kept), int(not kept))


def test_effect_of_the_control() -> None:
    """A lead of 0.3 that shrinks to 0.1 loses two thirds; without a lead there is nothing to lose."""
    assert control_effect(0.8, 0.6) == pytest.approx(2 / 3, rel=1e-12)
    assert control_effect(0.5, 0.6) is None
    assert control_effect(None, 0.6) is None
    assert control_effect(0.8, None) is None


def test_effect_is_none_where_the_control_leaves_no_pair() -> None:
    """A long answer beats a short one; among equals nothing is known."""
    found = win_rates([[Answer(1.0, 1000)]], [[Answer(0.0, 100)]])

    assert (found.plain.rate.value, found.controlled.rate.value, found.effect) == (1.0, None, None)


@given(table)
def test_the_other_side_wins_what_this_side_loses(rows: list[tuple[list[Answer], list[Answer]]]) -> None:
    """The two win rates of a pair of systems add up to 1."""
    a, b = [list(x) for x, _ in rows], [list(y) for _, y in rows]
    ours, theirs = win_rates(a, b, samples=1).plain.rate, win_rates(b, a, samples=1).plain.rate

    assert ours.n == theirs.n
    if ours.value is not None:
        assert theirs.value == pytest.approx(1 - ours.value, abs=1e-12)


def test_systems_must_answer_the_same_examples() -> None:
    """A shifted list would compare answers to different questions."""
    with pytest.raises(ValueError, match="expected the same examples of both systems, found 1 and 2"):
        win_rates([[]], [[], []])
    with pytest.raises(ValueError, match="expected a finite score and a length >= 0"):
        win_rates([[Answer(float("nan"), 5)]], [[]])
    with pytest.raises(ValueError, match="expected a finite score and a length >= 0"):
        win_rates([[]], [[Answer(1.0, -1)]])
