"""Judges x repeats -> votes -> verdicts."""

from __future__ import annotations

import pytest

from eval.judging.jury import verdict, vote

T, F, N = True, False, None


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [((T,), T), ((F,), F), ((N,), N), ((T, F), N), ((T, T, F), T), ((T, N, N), N), ((F, F, N), F), ((T, F, N), N)],
)
def test_a_judge_votes_what_more_than_half_of_its_repeats_say(
    repeats: tuple[bool | None, ...], expected: bool | None
) -> None:
    """A repeat without decision counts among those called: one valid answer of three is no vote (decided D2)."""
    assert vote(repeats) is expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ((T,), T),
        ((F,), F),
        ((T, T), T),
        ((T, F), N),
        ((F, N), N),
        ((T, T, F), T),
        ((T, F, N), N),
        ((T, T, F, F), N),
        ((T, T, T, F), T),
        ((N, N, N), N),
    ],
)
def test_the_verdict_rule_scales_with_the_jury(votes: tuple[bool | None, ...], expected: bool | None) -> None:
    """One judge decides alone, two must agree, three and more need a strict majority of the jury (decided D1)."""
    assert verdict(votes) is expected
