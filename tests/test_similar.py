"""Near-duplicates: 99 in 100 pairs at the threshold are found, none below, and hostile sets stay affordable."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.rules import similar
from builder.rules.similar import MAX_PAIRS, Pair, SimilarTexts, near_duplicates, words

VIGNETTE = " ".join(f"word{i}" for i in range(40))


def unlike_words(rng: random.Random, n: int) -> list[str]:
    """Return words that no other text has."""
    return [f"w{rng.getrandbits(64)}" for _ in range(n)]


def jaccard(a: str, b: str) -> float:
    """Return the similarity by its definition."""
    first, second = ({tuple(w[i : i + 3]) for i in range(max(1, len(w) - 2))} for w in (words(a), words(b)))
    return len(first & second) / len(first | second)


def test_one_word_of_forty_changed_is_found() -> None:
    """38 sequences a text, of which 35 are shared: 35 / 41."""
    near = near_duplicates([VIGNETTE, "something else entirely", VIGNETTE.replace("word20", "other")])

    assert (near.pairs, near.n_found, near.capped) == ((Pair(0, 2, 35 / 41),), 1, False)


def test_case_and_punctuation_do_not_count() -> None:
    """Texts that differ in case, marks and blanks only are the same words."""
    near = near_duplicates(["What is the dose of digoxin?", "what is -- THE dose of Digoxin"])

    assert near.pairs == (Pair(0, 1, 1.0),)


def test_short_questions_about_other_things_are_not_alike() -> None:
    """One word of nine changed is another question: 4 of 10 sequences shared."""
    near = near_duplicates(
        ["what is the usual dose of digoxin in adults", "what is the usual dose of heparin in adults"]
    )

    assert near.pairs == ()


def test_texts_of_one_or_two_words() -> None:
    """Texts shorter than a sequence are compared whole; texts without words are never alike."""
    assert near_duplicates(["Hello", "hello!", "hello there", "???", "!", ""]).pairs == (Pair(0, 1, 1.0),)


def test_no_text_at_all() -> None:
    """Nothing gives nothing."""
    assert near_duplicates([]) == similar.Near((), 0, False)


def test_a_script_without_spaces_is_compared_by_character() -> None:
    """Of twenty Han characters one of the last is changed: 16 of 20 sequences are shared."""
    text = "患者每日口服阿司匹林一百毫克共服用十四天"
    other = text.replace("四", "五")

    assert words("口服 aspirin，100毫克") == ["口", "服", "aspirin", "100", "毫", "克"]
    assert near_duplicates([text, other]).pairs == (Pair(0, 1, 16 / 20),)


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12).map(" ".join), max_size=12))
def test_no_pair_below_the_threshold_is_given(texts: list[str]) -> None:
    """Whatever the texts, pairs come in order with their exact similarity, those of the same words among them."""
    every = {
        (i, j): jaccard(texts[i], texts[j]) for i, j in combinations(range(len(texts)), 2) if texts[i] and texts[j]
    }

    pairs = near_duplicates(texts).pairs

    assert pairs == tuple(Pair(i, j, s) for (i, j), s in every.items() if s >= 0.7 and Pair(i, j, s) in pairs)
    assert {pair for pair, s in every.items() if s == 1} <= {(pair.case_a, pair.case_b) for pair in pairs}


@pytest.mark.parametrize(("alone", "similarity", "recall"), [(12, 0.7, 0.98), (8, 0.8, 1), (4, 0.9, 1)])
def test_recall(alone: int, similarity: float, recall: float) -> None:
    """Of 500 pairs of prompts exactly at the threshold 99.2% are expected to be found, and all of the closer ones."""
    rng = random.Random(7)
    texts = []
    for _ in range(500):
        shared = unlike_words(rng, 82 - 2 * alone)  # 80 - 2 * alone shared sequences of 80 in all
        texts += [" ".join(shared + unlike_words(rng, alone)) for _ in range(2)]

    near = near_duplicates(texts)

    assert {pair.similarity for pair in near.pairs} == {similarity}
    assert near.n_found >= 500 * recall


def test_the_same_texts_give_the_same_pairs() -> None:
    """Finding is by chance but its seed is fixed: a second look reports the same pairs, those at the threshold too."""
    rng = random.Random(3)
    shared = unlike_words(rng, 58)
    texts = [" ".join(shared + unlike_words(rng, 12)) for _ in range(40)]

    assert near_duplicates(texts) == near_duplicates(texts)


def test_texts_may_be_added_after_asking() -> None:
    """Asking for the pairs does not end the collection."""
    texts = SimilarTexts()
    texts.add(VIGNETTE)
    first = texts.near()
    texts.add(VIGNETTE + " more")

    assert (len(first.pairs), len(texts.near().pairs)) == (0, 1)


def test_only_the_most_similar_pairs_are_given() -> None:
    """Sixty variants of one text make 1,770 pairs: the number is said, and the best thousand are given."""
    near = near_duplicates(VIGNETTE + " end" * (i % 2) + f" number{i}" for i in range(60))

    assert (near.n_found, len(near.pairs), near.capped) == (1770, MAX_PAIRS, False)
    assert min(pair.similarity for pair in near.pairs) >= 36 / 41
    assert list(near.pairs) == sorted(near.pairs, key=lambda pair: (pair.case_a, pair.case_b))


def test_one_template_in_many_dresses_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 44,850 pairs about as many as the cap are compared; the result says so."""
    monkeypatch.setattr(similar, "MAX_CANDIDATES", 10_000)

    near = near_duplicates(f"{VIGNETTE} for patient number{i}" for i in range(300))

    assert (near.capped, len(near.pairs)) == (True, MAX_PAIRS)
    assert 10_000 <= near.n_found < 10_300


def test_a_crowd_does_not_use_up_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a crowd is compared with its first texts only, and pairs after it are found; the result says so."""
    monkeypatch.setattr(similar, "CROWD", 10)
    monkeypatch.setattr(similar, "MAX_CANDIDATES", 10_000)

    crowd = [f"{VIGNETTE} for patient number{i}" for i in range(300)]
    near = near_duplicates([*crowd, "a b c d e f", "A B C D E F"])

    assert (near.capped, near.pairs[-1]) == (True, Pair(300, 301, 1.0))
    assert 10 * 290 <= near.n_found < 10_000


def test_huge_texts_are_bounded_by_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """When comparing would take too long, the first candidates are compared and the rest is said to be left."""
    monkeypatch.setattr(similar, "MAX_COMPARED", 100)

    near = near_duplicates([VIGNETTE, VIGNETTE + " a", VIGNETTE + " b"])

    assert (len(near.pairs), near.capped) == (1, True)


def test_unrelated_prose_gives_no_candidates() -> None:
    """Two thousand texts from one vocabulary are told apart, and twenty planted near-duplicates are all found."""
    rng = random.Random(1)
    vocabulary = [f"w{i}" for i in range(500)]
    texts = [" ".join(rng.choices(vocabulary, k=60)) for _ in range(2000)]
    texts[1000:1020] = [text + " indeed" for text in texts[:20]]

    near = near_duplicates(texts)

    assert [(pair.case_a, pair.case_b) for pair in near.pairs] == [(i, 1000 + i) for i in range(20)]
