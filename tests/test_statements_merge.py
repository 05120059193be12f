"""Lists of several judges become one list of statements, each confirmed or provisional, and counts that may be null."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.statements.merge import NEEDS_JUDGES, judge_list, merge_lists, normal_form

A, B, C = "Aspirin 75 mg daily.", "No known allergies.", "Review in 2 weeks."

# Lists by judge, then repeat -> the statements with the judges that flag them, confirmed, provisional, judges without.
TABLE = {
    "no judge": ([], {}, None, None, ()),
    "1 judge lists nothing": ([[[]]], {}, None, 0, ()),
    "1 judge": ([[[A, B]]], {A: (0,), B: (0,)}, None, 2, ()),
    "1 judge, 2 of 3 lists": ([[[A], [A, B], []]], {A: (0,)}, None, 1, ()),
    "1 judge, 1 of 2 lists is not most": ([[[A], []]], {}, None, 0, ()),
    "1 judge, both of 2 lists": ([[[A], [A]]], {A: (0,)}, None, 1, ()),
    "1 judge, one list with it twice": ([[[A, A], [], []]], {}, None, 0, ()),
    "1 judge, 2 lists and a failed call": ([[[A], [A, B], None]], {A: (0,)}, None, 1, ()),
    "1 judge, 1 list and 2 failed calls": ([[[A], None, None]], {}, None, None, (0,)),
    "1 judge, every call failed": ([[None, None, None]], {}, None, None, (0,)),
    "1 judge, 1 of 2 calls failed": ([[[A], None]], {}, None, None, (0,)),
    "2 judges agree": ([[[A]], [[A]]], {A: (0, 1)}, 1, 0, ()),
    "2 judges differ": ([[[A]], [[B]]], {A: (0,), B: (1,)}, 0, 2, ()),
    "2 judges list nothing": ([[[]], [[]]], {}, 0, 0, ()),
    "2 judges, one without a list": ([[[A]], [None]], {A: (0,)}, None, None, (1,)),
    "3 judges": ([[[A, C]], [[B, A]], [[A, B]]], {A: (0, 1, 2), C: (0,), B: (1, 2)}, 2, 1, ()),
    "3 judges, 2 agree, one has no list": ([[[A]], [[A]], [None]], {A: (0, 1)}, None, None, (2,)),
    "2 x 3": ([[[A], [A], [B]], [[B, A], [B], [A]]], {A: (0, 1), B: (1,)}, 1, 1, ()),
    "4 judges, half": ([[[A]], [[A]], [[]], [[]]], {A: (0, 1)}, 1, 0, ()),
    "5 x 5, 3 of 5 and 2 of 5": ([[[A]] * 3 + [[B]] * 2] * 5, {A: (0, 1, 2, 3, 4)}, 1, 0, ()),
    "6 judges, one flags": ([[[A]], *[[[]]] * 5], {A: (0,)}, 0, 1, ()),
}


@pytest.mark.parametrize(
    ("lists", "flagged", "confirmed", "provisional", "without"), TABLE.values(), ids=list(TABLE.keys())
)
def test_the_truth_table(
    lists: list[list[list[str] | None]],
    flagged: dict[str, tuple[int, ...]],
    confirmed: int | None,
    provisional: int | None,
    without: tuple[int, ...],
) -> None:
    """A statement counts for a judge in more than half of its calls; two judges confirm it; no list, no count."""
    merged = merge_lists(lists, "")

    assert flagged == {found.text: found.judges for found in merged.statements}
    assert (confirmed, provisional, without) == (merged.confirmed, merged.provisional, merged.without)
    assert (confirmed is None) == (merged.confirmed_reason is not None)
    assert (provisional is None) == (merged.provisional_reason is not None)


def test_a_single_judge_confirms_nothing() -> None:
    """With one judge the confirmed count is null and says what it needs, while the list stands as provisional."""
    merged = merge_lists([[[A]]], A)

    assert NEEDS_JUDGES == merged.confirmed_reason == "needs >= 2 judges"
    assert ["provisional"] == [found.status for found in merged.statements]


SAME = {
    "case": ("ASPIRIN 75 mg", "aspirin 75 MG"),
    "blanks": ("aspirin  75\n\tmg ", " aspirin 75 mg"),
    "full width": ("ａｓｐｉｒｉｎ ７５ mg", "aspirin 75 mg"),
    "edge punctuation": ("- “Aspirin 75 mg”.", "aspirin 75 mg"),
    "sharp s": ("Große Milz", "GROSSE MILZ"),
    "Chinese full stop": ("每日服用阿司匹林。", "每日服用阿司匹林"),
    "another bullet": ("• No fever", "* no fever;"),
}
OTHER = {
    "a sign": ("-5 dioptres", "5 dioptres"),
    "a percent sign": ("fell by 5%", "fell by 5"),
    "a decimal point": ("0.5 mg", "05 mg"),
    "a raised digit": ("10⁵ cells", "105 cells"),
    "less than": ("<90", "90"),
    "a negation": ("no fever", "fever"),
    "a paraphrase": ("takes aspirin", "is on aspirin"),
    "punctuation within": ("120/80", "12080"),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=list(SAME.keys()))
def test_one_statement_in_two_writings_is_confirmed(one: str, other: str) -> None:
    """Case, blanks, compatibility forms and punctuation at the ends do not tell statements apart."""
    merged = merge_lists([[[one]], [[other]]], "")

    assert 1 == merged.confirmed
    assert [one] == [found.text for found in merged.statements]


@pytest.mark.parametrize(("one", "other"), OTHER.values(), ids=list(OTHER.keys()))
def test_what_moves_the_meaning_keeps_statements_apart(one: str, other: str) -> None:
    """A sign, a percent sign, a decimal point or a negation makes another statement; so does a paraphrase."""
    assert 2 == merge_lists([[[one]], [[other]]], "").provisional


@pytest.mark.parametrize("blank", ["", " \n", "...", "“”"])
def test_blank_strings_flag_nothing(blank: str) -> None:
    """A string without a word in it is no statement."""
    assert () == merge_lists([[[blank]], [[blank]]], "").statements


@pytest.mark.parametrize(("text", "quoted"), [("aspirin 75 mg DAILY", True), ("Warfarin 5 mg daily.", False)])
def test_an_invented_quotation_is_seen(text: str, quoted: bool) -> None:
    """A statement that does not stand in the document is marked, and counted like any other."""
    merged = merge_lists([[[text]], [[text]]], f"Plan:\n{A}\n{B}")

    assert [quoted] == [found.quoted for found in merged.statements]
    assert 1 == merged.confirmed


statement_texts = st.sampled_from([A, A.upper(), f" {A} ", B, f"“{B}”", C, "", "...", "-5 mg", "5 mg"])
a_list = st.none() | st.lists(statement_texts, max_size=4)
juries = st.integers(1, 5).flatmap(
    lambda repeats: st.lists(st.lists(a_list, min_size=repeats, max_size=repeats), min_size=1, max_size=6)
)


def _flagged(lists: list[list[list[str] | None]], names: list[int]) -> dict[str, frozenset[int]]:
    """Return the statements by normal form with the judges that flag them under their names."""
    return {found.form: frozenset(names[at] for at in found.judges) for found in merge_lists(lists, "").statements}


@given(juries, st.randoms(use_true_random=False))
def test_the_order_of_judges_and_of_repeats_changes_nothing(
    lists: list[list[list[str] | None]], chance: random.Random
) -> None:
    """Permuted judges flag the same statements, and permuted repeats too."""
    names = list(range(len(lists)))
    mixed = chance.sample(names, len(names))
    repeats = chance.sample(range(len(lists[0])), len(lists[0]))
    permuted = [[lists[judge][repeat] for repeat in repeats] for judge in mixed]
    before, after = merge_lists(lists, ""), merge_lists(permuted, "")

    assert _flagged(lists, names) == _flagged(permuted, mixed)
    assert (before.confirmed, before.provisional) == (after.confirmed, after.provisional)


@given(juries)
def test_the_union_holds_what_every_judge_lists(lists: list[list[list[str] | None]]) -> None:
    """A statement is in the union exactly when some judge has it, and names exactly those that do."""
    own = [judge_list(of_judge) or {} for of_judge in lists]
    expected = {form: {at for at, listed in enumerate(own) if form in listed} for listed in own for form in listed}

    assert expected == {found.form: set(found.judges) for found in merge_lists(lists, "").statements}


@given(juries, st.lists(st.lists(statement_texts, max_size=4), min_size=1, max_size=5))
def test_another_judge_only_adds_confirmed_statements(
    lists: list[list[list[str] | None]], more: list[list[str]]
) -> None:
    """What two judges confirm stays confirmed whatever a further judge lists."""

    def confirmed(of: list[list[list[str] | None]]) -> set[str]:
        return {found.form for found in merge_lists(of, "").statements if found.status == "confirmed"}

    assert confirmed(lists) <= confirmed([*lists, list(more)])


@given(st.text())
def test_a_normal_form_is_its_own(text: str) -> None:
    """Normalising twice is normalising once, so that a form can stand for its class."""
    assert normal_form(text) == normal_form(normal_form(text))
