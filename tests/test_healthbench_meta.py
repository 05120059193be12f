"""The grader against physicians: the published worked example, a second implementation, percentile, intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.healthbench.meta import THEMES, MetaExample, meta_evaluation, percentile, theme_of
from eval.healthbench.pairs import Agreement, ByClass, Value

Pair = tuple[bool, bool]
CATEGORIES = ("cluster:hedging_a_b", "cluster:hedging_c_d", "cluster:global_health_a_b", "odd")

# Labels [T, F, T] against [T, T, F], [T, F], [F] in categories a, a, b.
WORKED = (
    MetaExample("1", "a", True, (("p", True), ("q", True), ("r", False))),
    MetaExample("2", "a", False, (("p", True), ("q", False))),
    MetaExample("3", "b", True, (("p", False),)),
)

label = st.tuples(st.sampled_from("pqrs"), st.booleans())


def examples_with(labels: st.SearchStrategy[list[tuple[str, bool]]]) -> st.SearchStrategy[list[MetaExample]]:
    """Return records with such labels."""
    kinds = st.sampled_from(CATEGORIES), st.sampled_from([True, False, None])
    return st.lists(st.builds(MetaExample, st.just("c"), *kinds, labels.map(tuple)), max_size=14)


examples = examples_with(st.lists(label, max_size=4))
once = examples_with(st.lists(label, max_size=4, unique_by=lambda pair: pair[0]))


def measures(found: ByClass) -> list[tuple[float | None, int]]:
    """Return (value, n) of the positive class, the negative class and their balance."""
    return [(value.value, value.n) for value in (found.positive, found.negative, found.balanced)]


def naive_class(pairs: Sequence[Pair], label: bool) -> list[tuple[float | None, int]]:
    """Return (value, n) of precision, recall and F1 of a class, pair by pair."""
    given = [y == label for g, y in pairs if g == label]
    taken = [g == label for g, y in pairs if y == label]
    either = [pair for pair in pairs if label in pair]
    p = sum(given) / len(given) if given else None
    r = sum(taken) / len(taken) if taken else None
    f = None if p is None or r is None else (2 * p * r / (p + r) if p + r > 0 else 0.0)
    return [(p, len(given)), (r, len(taken)), (f, len(either))]


def naive(pairs: Sequence[Pair]) -> list[list[tuple[float | None, int]]]:
    """Return precision, recall and F1: each positive, negative, balanced."""
    out = []
    for pos, neg in zip(naive_class(pairs, True), naive_class(pairs, False), strict=True):
        both = None if pos[0] is None or neg[0] is None else (pos[0] + neg[0]) / 2
        out.append([pos, neg, (both, pos[1] + neg[1])])
    return out


def naive_f1(pairs: Sequence[Pair]) -> tuple[float | None, int]:
    """Return the balanced F1 and its n."""
    return naive(pairs)[2][2]


def naive_weighted(parts: Iterable[tuple[float | None, int]]) -> tuple[float | None, int]:
    """Return the n-weighted mean of the parts that have a value."""
    known = [(value, n) for value, n in parts if value is not None]
    total = sum(n for _, n in known)
    return (sum(value * n for value, n in known) / total, total) if known else (None, 0)


def pairs_of_grader(found: Iterable[MetaExample]) -> list[Pair]:
    """Return every (grader's label, physician's label)."""
    return [(e.grader, label) for e in found if e.grader is not None for _, label in e.labels]


def pairs_of(physician: str, found: Iterable[MetaExample]) -> list[Pair]:
    """Return every (this physician's label, another's label on the same record)."""
    return [
        (mine, other)
        for e in found
        for who, mine in e.labels
        if who == physician
        for them, other in e.labels
        if them != who
    ]


def close(found: Value, expected: tuple[float | None, int]) -> bool:
    """Tell whether a value and its n are the expected ones."""
    return found.n == expected[1] and (found.value == expected[0] or found.value == pytest.approx(expected[0], 1e-12))


def test_published_worked_example() -> None:
    """Precision 2/4 and 1/2, recall 2/3 and 1/3, F1 4/7 and 2/5, balanced 17/35."""
    found = meta_evaluation(WORKED).agreement

    assert measures(found.precision) == [(2 / 4, 4), (1 / 2, 2), (1 / 2, 6)]
    assert measures(found.recall) == [(2 / 3, 3), (1 / 3, 3), (1 / 2, 6)]
    assert [n for _, n in measures(found.f1)] == [5, 4, 9]
    assert [value for value, _ in measures(found.f1)] == pytest.approx([4 / 7, 2 / 5, 17 / 35], rel=1e-15)


def test_published_worked_example_by_category() -> None:
    """In b the grader never says no and no physician says yes: half of precision and recall, and F1, do not exist."""
    categories = meta_evaluation(WORKED).categories

    assert measures(categories["a"].agreement.precision)[:2] == [(2 / 3, 3), (1 / 2, 2)]
    assert measures(categories["a"].agreement.recall)[:2] == [(2 / 3, 3), (1 / 2, 2)]
    assert measures(categories["b"].agreement.precision) == [(0.0, 1), (None, 0), (None, 1)]
    assert measures(categories["b"].agreement.recall) == [(None, 0), (0.0, 1), (None, 1)]
    assert measures(categories["b"].agreement.f1) == [(None, 1), (None, 1), (None, 2)]


@settings(max_examples=80)
@given(examples)
def test_every_measure_equals_a_second_implementation(records: list[MetaExample]) -> None:
    """Overall, by category, by theme and by physician, each with its n."""
    found = meta_evaluation(records, samples=3, seed=1)
    used = [e for e in records if e.grader is not None and e.labels]
    by_category = {c: [e for e in used if e.category == c] for c in sorted({e.category for e in used})}

    def check(agreement: Agreement, pairs: Sequence[Pair]) -> None:
        ours = [agreement.precision, agreement.recall, agreement.f1]
        for by_class, expected in zip(ours, naive(pairs), strict=True):
            values = (by_class.positive, by_class.negative, by_class.balanced)
            assert all(close(v, e) for v, e in zip(values, expected, strict=True))

    check(found.agreement, pairs_of_grader(used))
    assert list(found.categories) == list(by_category)
    for category, members in by_category.items():
        check(found.categories[category].agreement, pairs_of_grader(members))
    for physician in found.physicians:
        assert close(physician.overall, naive_f1(pairs_of(physician.physician, used)))
    for theme, standing in found.themes.items():
        parts = [part for category, part in by_category.items() if theme_of(category) == theme]
        of_theme = {p: naive_weighted(naive_f1(pairs_of(p, part)) for part in parts) for p in "pqrs"}
        assert close(standing.grader, naive_weighted(naive_f1(pairs_of_grader(part)) for part in parts))
        assert close(standing.ceiling, naive_weighted(of_theme.values()))
        for physician in found.physicians:
            assert close(physician.themes.get(theme, Value(None, 0)), of_theme[physician.physician])
    overall = [naive_f1(pairs_of(physician, used)) for physician in "pqrs"]
    assert close(found.standing.ceiling, naive_weighted(overall))


@pytest.mark.slow
@given(once)
def test_others_by_id_are_others_by_position_where_nobody_labels_twice(records: list[MetaExample]) -> None:
    """The published evaluator goes by position: there all physicians' values are its own."""
    used = [e for e in records if e.grader is not None]
    for physician in meta_evaluation(records, samples=1).physicians:
        by_position = [
            (mine, other)
            for e in used
            for place, (who, mine) in enumerate(e.labels)
            if who == physician.physician
            for _, other in (*e.labels[:place], *e.labels[place + 1 :])
        ]
        assert close(physician.overall, naive_f1(by_position))


def test_a_second_label_of_a_physician_is_not_anothers() -> None:
    """p says yes and no, q yes: p has the pairs (yes, yes) and (no, yes), not also those with himself."""
    (p, q) = meta_evaluation([MetaExample("1", "odd", True, (("p", True), ("p", False), ("q", True)))]).physicians

    # F1 n: met 1 + 1 (both, others only), not met 1 (others only); q: (yes, yes) and (yes, no).
    assert (p.overall, q.overall) == (Value(None, 3), Value(None, 3))


@given(examples)
def test_every_record_is_used_or_counted(records: list[MetaExample]) -> None:
    """A record without the grader's label is neither a no nor gone."""
    found = meta_evaluation(records, samples=1)

    assert found.n_without_grader == sum(e.grader is None for e in records)
    assert found.n_records + found.n_without_grader + found.n_without_labels == len(records)
    assert sum(category.n_records for category in found.categories.values()) == found.n_records
    assert found.rates.labels.n == found.n_records


@pytest.mark.slow
@given(examples, st.randoms())
def test_order_of_records_leaves_the_values_alone(records: list[MetaExample], random: object) -> None:
    """Values, n and percentiles do not depend on the order; only the resamples do."""
    shuffled = list(records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = meta_evaluation(records, samples=1), meta_evaluation(shuffled, samples=1)

    assert measures(one.agreement.f1) == measures(other.agreement.f1)
    assert (one.physicians, one.no_theme) == (other.physicians, other.no_theme)
    assert {t: s.grader.value for t, s in one.themes.items()} == {t: s.grader.value for t, s in other.themes.items()}


def test_interval_resamples_records_not_pairs() -> None:
    """The 95% interval of the headline is that of literal resamples of whole records, for the drawn positions."""
    rng = np.random.default_rng(5)
    truth = rng.random((40, 4)) < 0.6
    records = [
        MetaExample(str(i), "odd", bool(row[0]), tuple(zip("pqr", map(bool, row[1:]), strict=True)))
        for i, row in enumerate(truth)
    ]
    found = meta_evaluation(records, samples=200, seed=42)
    drawn = np.random.default_rng(42).integers(0, 40, (200, 40)).tolist()
    values = [naive_f1(pairs_of_grader(records[i] for i in row))[0] for row in drawn]
    known = np.array([value for value in values if value is not None])
    headline = found.agreement.f1.balanced

    assert [headline.ci_low, headline.ci_high] == pytest.approx(np.percentile(known, [2.5, 97.5]).tolist(), rel=1e-12)
    assert headline.bootstrap_std == pytest.approx(float(known.std()), rel=1e-9)
    assert headline.n_undefined == 200 - len(known)
    assert found.categories["odd"].agreement == found.agreement


def test_interval_of_a_theme_weights_its_categories_in_every_resample() -> None:
    """Records of both categories are drawn together; each resample is averaged as the theme itself is."""
    rng = np.random.default_rng(6)
    records = [
        MetaExample(str(i), CATEGORIES[i % 3 // 2], bool(row[0]), (("p", bool(row[1])), ("q", bool(row[2]))))
        for i, row in enumerate(rng.random((30, 3)) < 0.5)
    ]
    value = meta_evaluation(records, samples=100, seed=42).themes["theme:hedging"].grader
    drawn = np.random.default_rng(42).integers(0, 30, (100, 30)).tolist()
    values = []
    for row in drawn:
        parts = [[records[i] for i in row if records[i].category == c] for c in CATEGORIES[:2]]
        values.append(naive_weighted(naive_f1(pairs_of_grader(part)) for part in parts)[0])
    known = [v for v in values if v is not None]

    assert [value.ci_low, value.ci_high] == pytest.approx(np.percentile(known, [2.5, 97.5]).tolist(), rel=1e-12)


def test_interval_of_the_ceiling_measures_every_physician_in_every_resample() -> None:
    """Its resamples of records are the headline's; a theme's ceiling has none: few records lie below their value."""
    rng = np.random.default_rng(7)
    records = [
        MetaExample(str(i), CATEGORIES[0], True, tuple((who, bool(x)) for who, x in zip("pqr", row, strict=True)))
        for i, row in enumerate(rng.random((30, 3)) < 0.5)
    ]
    found = meta_evaluation(records, samples=60, seed=42)
    values = []
    for row in np.random.default_rng(42).integers(0, 30, (60, 30)).tolist():
        drawn = [records[i] for i in row]
        values.append(naive_weighted(naive_f1(pairs_of(who, drawn)) for who in "pqr")[0])
    known = [value for value in values if value is not None]
    ceiling, of_theme = found.standing.ceiling, found.themes["theme:hedging"].ceiling

    assert [ceiling.ci_low, ceiling.ci_high] == pytest.approx(np.percentile(known, [2.5, 97.5]).tolist(), rel=1e-12)
    assert (of_theme.n, of_theme.ci_low, of_theme.bootstrap_std) == (ceiling.n, None, None)
    assert of_theme.value == pytest.approx(ceiling.value, rel=1e-12)


def test_resamples_without_a_class_are_counted() -> None:
    """Two records, one of each class: a resample that draws one twice has no balanced F1."""
    pair = (("p", True), ("q", True)), (("p", False), ("q", False))
    records = [MetaExample("1", "odd", True, pair[0]), MetaExample("2", "odd", False, pair[1])]
    headline = meta_evaluation(records, samples=1000).agreement.f1.balanced

    assert (headline.value, headline.ci_low, headline.ci_high) == (1.0, 1.0, 1.0)
    assert 400 < headline.n_undefined < 600


def test_one_record_has_no_interval() -> None:
    """Resampling one record says nothing."""
    (found,) = [meta_evaluation(WORKED[:1]).agreement.precision.positive]

    assert (found.value, found.n, found.ci_low, found.bootstrap_std) == (2 / 3, 3, None, None)


def test_base_rates() -> None:
    """The grader says yes twice of three; physicians' shares 2/3, 1/2 and 0; 3, 2 and 1 labels: a mean that no clip."""
    rates = meta_evaluation(WORKED).rates

    assert rates.grader_positive.value == pytest.approx(2 / 3, rel=1e-15)
    assert rates.physician_positive.value == pytest.approx((2 / 3 + 1 / 2 + 0) / 3, rel=1e-15)
    assert (rates.labels.value, rates.labels.n) == (2.0, 3)
    drawn = np.array([3.0, 2.0, 1.0])[np.random.default_rng(42).integers(0, 3, (1000, 3))].mean(axis=1)
    assert rates.labels.bootstrap_std == drawn.std()
    assert [rates.labels.ci_low, rates.labels.ci_high] == np.percentile(drawn, [2.5, 97.5]).tolist()


def test_base_rates_that_are_all_alike_have_an_interval_without_width() -> None:
    """One of a single record has none."""
    two, one = meta_evaluation([WORKED[0]] * 2).rates, meta_evaluation(WORKED[:1]).rates

    assert (two.physician_positive.bootstrap_std, two.physician_positive.ci_low) == (0.0, two.physician_positive.value)
    assert (one.physician_positive.bootstrap_std, one.physician_positive.ci_low) == (0.0, None)


def test_percentile_counts_ties_half() -> None:
    """Above one, level with two, below one: (1 + 2/2) of 4."""
    assert percentile(0.6, [0.5, 0.6, 0.6, 0.7]) == 50.0
    assert percentile(0.6, []) is None


def test_standing_among_physicians() -> None:
    """51 pairs put p and q into the distribution, 50 leave s and t to the ceiling; r, with no other, has no value."""

    def agreeing(n: int, one: str, other: str) -> list[MetaExample]:
        return [MetaExample(f"{one}{i}", "odd", i % 2 == 0, ((one, i % 2 == 0), (other, i % 2 == 0))) for i in range(n)]

    records = [*agreeing(51, "p", "q"), *agreeing(50, "s", "t"), MetaExample("r", "odd", True, (("r", True),))]
    found = meta_evaluation(records, samples=10)

    assert {p.physician: p.overall.n for p in found.physicians} == {"p": 51, "q": 51, "r": 0, "s": 50, "t": 50}
    assert (found.standing.distribution, found.standing.n_physicians) == ((1.0, 1.0), 4)
    assert found.standing.ceiling == Value(1.0, 202, 0.0, 1.0, 1.0)
    assert (found.standing.grader.value, found.standing.percentile) == (1.0, 50.0)


@pytest.mark.parametrize("theme", THEMES)
def test_category_belongs_to_the_theme_it_begins_with(theme: str) -> None:
    """The published form is cluster:<theme>_<situation>_<question>."""
    assert theme_of(f"cluster:{theme}_not-enough-context_helpful_safe") == f"theme:{theme}"


@pytest.mark.parametrize(
    "category", ["odd", "hedging_a_b", "cluster:hedgings_a", "cluster:health_a", "theme:hedging", ""]
)
def test_category_of_no_known_theme_is_not_guessed(category: str) -> None:
    """It is evaluated, and listed apart."""
    found = meta_evaluation([MetaExample("1", category, True, (("p", True),))], samples=1)

    assert theme_of(category) is None
    assert (found.no_theme, found.themes, list(found.categories)) == ((category,), {}, [category])


def test_nothing_to_evaluate() -> None:
    """No record: every value None with n 0, no interval, no percentile."""
    found = meta_evaluation([])

    assert measures(found.agreement.f1) == [(None, 0)] * 3
    assert (found.rates.labels.value, found.standing.percentile, found.physicians) == (None, None, ())


@pytest.mark.parametrize("label", [1, "yes", 0.0], ids=repr)
def test_label_that_is_no_boolean_is_refused(label: object) -> None:
    """Whoever reads labels must have made up their mind."""
    with pytest.raises(ValueError, match="case c: labels: expected true or false"):
        meta_evaluation([MetaExample("c", "odd", label, ())])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="case c: labels: expected true or false"):
        meta_evaluation([MetaExample("c", "odd", True, (("p", label),))])  # type: ignore[arg-type]


def test_missing_physician_label_is_refused() -> None:
    """A physician is listed because there is a label."""
    with pytest.raises(ValueError, match="case c: labels: expected true or false, found none"):
        meta_evaluation([MetaExample("c", "odd", True, (("p", None),))])  # type: ignore[arg-type]
