"""One call a case against one call an item: what is compared, what is counted, what is recommended."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import BadInput
from eval.audits.grouping_report import audit_report
from eval.audits.grouping_text import audit_text
from eval.audits.recommendation import LARGEST_SHIFT
from eval.audits.sides import Side, Spent
from eval.judging.graded import GradedCase
from tests.rated import cohen_kappa, ratings_of
from tests.runs import graded_case, run_of

JUDGE: dict[str, Any] = {
    "model": "judge",
    "endpoint": "https://judge/v1",
    "vendor": None,
    "params": {"temperature": 0, "max_completion_tokens": 5000, "response_format": {"type": "json_object"}},
    "system_sha256": "s",
    "template_sha256": "t",
}
Cells = Sequence[Sequence[int | None]]
"""Decisions on one answer by repeat, then item, of one judge."""


def _case(name: str, cells: Cells, *, panel: str = "drug_safety", points: Sequence[int] = ()) -> GradedCase:
    ballots = (tuple(tuple(None if m is None else bool(m) for m in cell) for cell in cells),)
    worth = tuple(points) or (1,) * len(cells[0])
    return graded_case(name, panel, worth, [m or 0 for m in cells[0]], ballots=ballots)


def _side(grouping: str, *cases: GradedCase, digest: str = "d", **changes: Any) -> Side:
    judges = [dict(JUDGE, **changes.pop("judge", {}))]
    repeats = len(cases[0].ballots[0])
    identity = {"grouping": grouping, "repeats": repeats, "judges": judges}
    answers = {(case.case_id, 0): digest for case in cases}
    run = run_of(*cases, identity=identity, **{"dataset_sha256": "data", **changes})
    return Side(grouping, run, answers, {name: Spent(1, 100, 10) for name in answers})


def _report(
    one: Mapping[str, Cells], atomic: Mapping[str, Cells], *, samples: int = 400, **changes: Any
) -> dict[str, Any]:
    sides = (
        _side(grouping, *(_case(name, cells, **changes) for name, cells in rows.items()))
        for grouping, rows in (("case", one), ("item", atomic))
    )
    return audit_report(*sides, samples=samples, seed=42, software={})


def test_agreement_is_counted_by_hand() -> None:
    """Of 8 decisions 6 agree; 5 of 8 true in both; kappa (6/8 - 34/64) / (1 - 34/64) = 7/15; discordant 1 and 1."""
    found = _report({"a": [[1, 1, 1, 0]], "b": [[1, 0, 1, 0]]}, {"a": [[1, 1, 1, 0]], "b": [[1, 1, 0, 0]]})
    agreement = found["overall"]["agreement"]

    assert (6 / 8, 8) == (agreement["equal"]["value"], agreement["equal"]["n"])
    assert 7 / 15 == pytest.approx(agreement["kappa"]["value"])
    assert (5 / 8, 5 / 8) == (agreement["one_call"]["value"], agreement["atomic"]["value"])
    assert (1, 1, 1.0) == (agreement["only_one_call"], agreement["only_atomic"], agreement["mcnemar_p"])


def test_mcnemar_is_exact() -> None:
    """Six decisions true in one call only and none in atomic only: p = 2 / 2^6."""
    found = _report({"a": [[1] * 6]}, {"a": [[0] * 6]})

    assert 2 / 64 == pytest.approx(found["overall"]["agreement"]["mcnemar_p"])


def test_kappa_is_that_of_scikit_learn() -> None:
    """On random decisions kappa is scikit-learn's."""
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(5)
    one = {f"c{i}": [[rng.randint(0, 1) for _ in range(5)]] for i in range(12)}
    atomic = {name: [[m if rng.random() < 0.8 else 1 - m for m in cells[0]]] for name, cells in one.items()}
    expected = metrics.cohen_kappa_score(
        [m for cells in one.values() for m in cells[0]], [m for cells in atomic.values() for m in cells[0]]
    )

    assert expected == pytest.approx(_report(one, atomic)["overall"]["agreement"]["kappa"]["value"])


@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=4), min_size=2, max_size=9))
@settings(max_examples=40, deadline=None)
def test_kappa_is_that_of_agree(table: list[list[tuple[bool, bool]]]) -> None:
    """Both commands give one Cohen's kappa, or none, for the same decisions of two modes or raters."""
    one, atomic = ({f"c{n}": [[int(p[at]) for p in pairs]] for n, pairs in enumerate(table)} for at in (0, 1))
    found = _report(one, atomic, samples=10)["overall"]["agreement"]["kappa"]["value"]

    assert cohen_kappa(ratings_of([pair for pairs in table for pair in pairs])).value == pytest.approx(found, abs=1e-12)


def test_an_undefined_kappa_is_null_with_a_reason() -> None:
    """Where both modes say true to everything, agreement is 1 and kappa undefined, not 1 and not 0."""
    agreement = _report({"a": [[1, 1]]}, {"a": [[1, 1]]})["overall"]["agreement"]

    assert 1.0 == agreement["equal"]["value"]
    assert (None, "all decisions of both modes are the same value") == (
        agreement["kappa"]["value"],
        agreement["kappa"]["reason"],
    )


def test_missing_decisions_are_left_out_and_counted() -> None:
    """A decision that one mode lacks has no partner: it is counted and enters nothing."""
    found = _report({"a": [[1, None, 0]], "b": [[1, 1, 1]]}, {"a": [[1, 1, 0]], "b": [[1, 1, None]]})["overall"]

    assert (2, 4) == (found["n_undecided"], found["agreement"]["equal"]["n"])


def test_thirds_and_slope_show_an_effect_of_place() -> None:
    """The one call misses only the last of four items: -1 in the last third, slope -0.9 by least squares on 0..1.

    Places 0, 1/3, 2/3, 1 centred: -1/2, -1/6, 1/6, 1/2; d = 0, 0, 0, -1: -1/2 / (5/9) = -0.9.
    """
    one, atomic = {f"c{i}": [[1, 1, 1, 0]] for i in range(12)}, {f"c{i}": [[1, 1, 1, 1]] for i in range(12)}
    panel = _report(one, atomic)["panels"]["drug_safety"]
    thirds = {name: found["shift"]["value"] for name, found in panel["order"]["thirds"].items()}

    assert {"first": 0, "middle": 0, "last": -1} == thirds
    assert -0.9 == pytest.approx(panel["order"]["slope"]["value"])
    assert (True, "atomic") == (panel["order"]["seen"], panel["recommendation"])


def test_unlike_treatment_of_signs_is_no_effect_of_place() -> None:
    """A mode that misses harmful items, which stand last, has no slope within the items of one sign."""
    one, atomic = {f"c{i}": [[1, 1, 0, 0]] for i in range(3)}, {f"c{i}": [[1, 1, 1, 1]] for i in range(3)}
    order = _report(one, atomic, points=(1, 1, -1, -1))["overall"]["order"]

    assert (0, False) == (order["slope"]["value"], order["seen"])
    assert -1 == order["thirds"]["last"]["shift"]["value"]


def test_halo_is_counted_against_the_other_items() -> None:
    """Case a: the third item is pulled to the two true ones; case b: away; case c: one true and one false, a tie."""
    one = {"a": [[1, 1, 1]], "b": [[1, 1, 0]], "c": [[1, 0, 1]]}
    atomic = {"a": [[1, 1, 0]], "b": [[0, 0, 0]], "c": [[1, 0, 0]]}
    halo = _report(one, atomic)["overall"]["halo"]

    # a: with the majority; b: its two disagreements against it; c: others of the third are 1 and 0.
    assert (1 / 3, 3, 1) == (halo["share"]["value"], halo["share"]["n"], halo["ties"])
    assert [0.0084, 0.9057] == pytest.approx(halo["share"]["ci95"], abs=1e-4)  # Clopper and Pearson, 1 of 3
    # all said true, the majority true in 1 of 3
    assert 1 / 3 == halo["expected"]


def _noisy(n: int, items: int, change: Callable[[random.Random, list[int], int], int]) -> dict[str, Any]:
    rng = random.Random(11)
    atomic = {f"c{i}": [[int(rng.random() < 0.7) for _ in range(items)]] for i in range(n)}
    one = {name: [[change(rng, cells[0], k) for k in range(items)]] for name, cells in atomic.items()}
    panel: dict[str, Any] = _report(one, atomic)["panels"]["drug_safety"]
    return panel


def test_a_planted_halo_is_seen_and_symmetric_noise_is_not() -> None:
    """A one call that gives way to most of its neighbours gets atomic; one that errs at random shows no halo."""

    def pulled(rng: random.Random, cells: list[int], k: int) -> int:
        return int(sum(cells) * 2 > len(cells)) if rng.random() < 0.3 else cells[k]

    halo = _noisy(60, 8, pulled)

    assert (True, "atomic") == (halo["halo"]["seen"], halo["recommendation"])
    assert halo["halo"]["spread"]["value"] > 1


def test_exchangeable_noise_shows_no_halo() -> None:
    """Two modes that err alike about one truth side with the majority in half of their disagreements."""
    rng = random.Random(2)

    def errs(truth: list[int]) -> Cells:
        return [[1 - m if rng.random() < 0.15 else m for m in truth]]

    truths = {f"c{i}": [int(rng.random() < 0.8) for _ in range(8)] for i in range(150)}
    one = {name: errs(truth) for name, truth in truths.items()}
    halo = _report(one, {name: errs(truth) for name, truth in truths.items()})["overall"]["halo"]

    assert halo["share"]["ci95"][0] < 0.5 < halo["share"]["ci95"][1]
    assert not halo["seen"]


def test_an_effect_that_many_looks_explain_is_only_a_hint() -> None:
    """A slope whose 95% interval leaves out 0, but not the one for all looks of an audit, decides nothing."""
    rows = {f"c{i}": [[1, 1, 1, 0 if i < 4 else 1]] for i in range(60)}
    found = _report(rows, {name: [[1, 1, 1, 1]] for name in rows})["panels"]["drug_safety"]

    assert (True, False) == (found["order"]["seen"], found["order"]["sure"])
    assert "not decided" == found["recommendation"]
    assert found["reasons"][0].startswith("hint of order: ")


def test_high_agreement_recommends_one_call() -> None:
    """Sixty cases of six items without a difference but two: one call, and the score stays within +-0.02."""
    panel = _noisy(60, 6, lambda rng, cells, k: 1 - cells[k] if rng.random() < 0.005 else cells[k])

    assert "one call" == panel["recommendation"]
    assert max(map(abs, panel["score"]["ci95"])) <= LARGEST_SHIFT


def test_nothing_is_recommended_overall() -> None:
    """Panels differ in what sways a judge: overall is null with the reason, and a dash in the text."""
    rows = {f"c{i}": [[1, 1, 1, 0]] for i in range(15)}
    report = _report(rows, rows)
    (line,) = (line for line in audit_text(report).splitlines() if line.startswith("overall"))

    assert (None, ["per panel only"]) == tuple(report["overall"][key] for key in ("recommendation", "reasons"))
    assert "-" == line.split()[-1]


def test_agreement_without_a_difference_shows_the_floor_of_the_rule() -> None:
    """60 of 60 decisions agree: the bootstrap has no width, the exact binomial lower end is 0.025^(1/60) = 0.940."""
    rows = {f"c{i}": [[1, 1, 1, 0]] for i in range(15)}
    report = _report(rows, rows)
    agreement = report["panels"]["drug_safety"]["agreement"]

    assert [1.0, 1.0] == agreement["equal"]["ci95"]
    assert 0.025 ** (1 / 60) == pytest.approx(agreement["floor"])
    assert "0.940-1.000" in audit_text(report)
    assert "1.000-1.000" not in audit_text(report)


def test_thirds_stand_in_the_text_only_where_an_order_effect_is_seen() -> None:
    """Without one the slope alone says so."""
    met = {f"c{i}": [[1, 1, 1, 1]] for i in range(12)}
    last = {name: [[1, 1, 1, 0]] for name in met}

    assert "last third" in audit_text(_report(last, met))
    assert "third" not in audit_text(_report(met, met))
    assert "order: slope" in audit_text(_report(met, met))


def test_few_cases_decide_nothing() -> None:
    """Three equal cases are no evidence, however equal."""
    panel = _report({"a": [[1, 0]], "b": [[1, 1]], "c": [[0, 1]]}, {"a": [[1, 0]], "b": [[1, 1]], "c": [[0, 1]]})
    found = panel["panels"]["drug_safety"]

    assert "not decided" == found["recommendation"]
    assert ["too few: 3 of at least 10 cases of two items and more"] == found["reasons"]


def test_wide_intervals_decide_nothing_and_say_what_is_missing() -> None:
    """Twelve cases with noise both ways: agreement may be too low, the score may move; more cases are asked for."""
    panel = _noisy(12, 4, lambda rng, cells, k: 1 - cells[k] if rng.random() < 0.1 else cells[k])

    assert "not decided" == panel["recommendation"]
    assert any("with --repeats of 2 and more" in reason for reason in panel["reasons"])


def test_a_panel_of_one_item_cases_can_be_judged_either_way() -> None:
    """Where each case has one item both modes send the same words: agreement is null, and either mode will do."""
    panel = _report({"a": [[1]], "b": [[0]]}, {"a": [[1]], "b": [[1]]})["panels"]["drug_safety"]

    assert ("either", None) == (panel["recommendation"], panel["agreement"]["equal"]["value"])
    assert -0.5 == panel["score"]["value"]


def test_repeats_show_the_noise_within_a_mode() -> None:
    """With two repeats the audit also says how often a judge agrees with itself: 3 of 4, and 4 of 4."""
    found = _report({"a": [[1, 1], [1, 0]], "b": [[1, 0], [1, 0]]}, {"a": [[1, 1]] * 2, "b": [[1, 0]] * 2})
    agreement = found["overall"]["agreement"]

    assert (3 / 4, 1.0) == (agreement["again_one_call"]["value"], agreement["again_atomic"]["value"])
    assert 7 / 8 == agreement["equal"]["value"]


def test_costs_are_counted_and_compared() -> None:
    """Two cases of three items: 2 questions against 6; tokens are what the calls said."""
    cost = _report({"a": [[1, 1, 1]], "b": [[1, 1, 1]]}, {"a": [[1, 1, 1]], "b": [[1, 1, 1]]})["cost"]

    assert (2, 6, 3.0) == (cost["one_call"]["questions"], cost["atomic"]["questions"], cost["ratio"]["questions"])
    assert 200 == cost["one_call"]["input_tokens"]


def test_either_order_gives_the_same_report() -> None:
    """Which run is named first changes nothing."""
    one, atomic = _side("case", _case("a", [[1, 0, 1]])), _side("item", _case("a", [[1, 1, 1]]))
    settings: dict[str, Any] = {"samples": 50, "seed": 1, "software": {}}

    assert audit_report(one, atomic, **settings) == audit_report(atomic, one, **settings)


REFUSED: dict[str, tuple[Side, str]] = {
    "data": (_side("item", _case("a", [[1, 1]]), dataset_sha256="other"), "dataset_sha256: 'data' in one run"),
    "model": (_side("item", _case("a", [[1, 1]]), judge={"model": "x"}), "judges.0.model: 'judge' in one run"),
    "temperature": (
        _side("item", _case("a", [[1, 1]]), judge={"params": {"temperature": 1}}),
        "judges.0.params.temperature",
    ),
    "vendor": (_side("item", _case("a", [[1, 1]]), judge={"vendor": "v"}), "judges.0.vendor"),
    "repeats": (_side("item", _case("a", [[1, 1], [1, 1]])), "repeats: 1 in one run, 2 in the other"),
    "grouping": (_side("case", _case("a", [[1, 1]])), "found case and case"),
    "answers": (_side("item", _case("a", [[1, 1]]), digest="e"), "the same answers in both runs, found 1 that differ"),
    "cases": (_side("item", _case("b", [[1, 1]])), "answers that both runs graded, found none"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_runs_that_differ_otherwise_are_refused(what: str) -> None:
    """Other data, judges, repeats or answers: one line that names the field."""
    other, message = REFUSED[what]
    with pytest.raises(BadInput, match=message.replace(".", r"\.")):
        audit_report(_side("case", _case("a", [[1, 1]])), other, samples=10, seed=1, software={})


def test_token_limits_and_reply_formats_may_differ() -> None:
    """A reply to one item is shorter and may have another form: that is no other judge."""
    other = _side("item", _case("a", [[1, 1]]), judge={"params": {"temperature": 0, "max_completion_tokens": 9}})
    report = audit_report(_side("case", _case("a", [[1, 1]])), other, samples=10, seed=1, software={})

    assert 1 == report["n_answers"]


def test_answers_of_one_run_only_are_counted() -> None:
    """A sample of a larger run is compared on what both graded; the rest is counted, ungraded answers apart."""
    failed = graded_case("c", "drug_safety", (1, 1), None)
    one = _side("case", _case("a", [[1, 1]]), _case("b", [[1, 1]]), _case("c", [[1, 1]]))
    report = audit_report(one, _side("item", _case("a", [[1, 1]]), failed), samples=10, seed=1, software={})

    assert (1, 1, 1) == (report["n_answers"], report["n_in_one_run_only"], report["n_ungraded"])


def test_the_report_is_json_and_the_text_fits_80_columns() -> None:
    """Two panels, one of them of one-item cases: no NaN in the JSON, no line over 80 columns in the text."""
    sides = [
        _side(g, *(_case(f"a{i}", [[1, 0, i % 2]]) for i in range(12)), _case("z", [[1]], panel="landmark_trials"))
        for g in ("case", "item")
    ]
    report = audit_report(*sides, samples=100, seed=1, software={})
    text = audit_text(report)

    assert "bedside-bench/audit/1" == json.loads(json.dumps(report, allow_nan=False))["format"]
    assert max(map(len, text.splitlines())) <= 80
    assert "either" in text
