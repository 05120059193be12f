"""The summary of a run: its keys, its numbers, and what it says about what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bedside_bench import PANEL_IDS
from builder.errors import BadInput
from eval.judging.graded import RunData
from eval.numbers.panels import wilson95
from eval.numbers.summary import dumps_summary, summarise
from tests.reference_bootstrap import loop_overall, loop_panel, loop_upstream
from tests.runs import full_run, graded_case, jury_identity, run_of

UPSTREAM_KEYS = [
    "protocol_version",
    "dataset_sha256",
    "answer_model",
    "judge_model",
    "answer_temperature",
    "judge_temperature",
    "judge_passes_per_answer",
    "started_at",
    "finished_at",
    "completed_cases",
    "errors",
    "overall_macro_mean",
    "overall_ci95",
    "benchmarks",
    "bootstrap_samples",
    "bootstrap_seed",
]
OWN_KEYS = [
    "identity_sha256",
    "semantics_sha256",
    "content_sha256",
    "dialect",
    "data",
    "n_expected",
    "n_graded",
    "n_failed",
    "n_pending",
    "states",
    "failed_cases",
    "overall_worst",
    "overall_best",
    "overall_reason",
    "panels",
    "usage",
    "certificate",
    "certified",
    "notices",
    "software",
]
PANEL_KEYS = [
    "n_expected",
    "worst",
    "best",
    "ci_degenerate",
    "recall",
    "precision",
    "severe_matched",
    "minus3_matched",
    "severe_rate",
    "negatives_judged",
    "negative_hit_rate",
]
DRUGS, EQUITY, PLAN = "drug_safety", "health_equity", "safety_diagnostic"


def summary_of(run: RunData, *, samples: int = 200, seed: int = 42, **settings: Any) -> dict[str, Any]:
    """Return a run's summary with few resamples."""
    return summarise(run, samples=samples, seed=seed, software={"numpy": "x"}, **settings)


def two_panels() -> RunData:
    """Return three points cases (2/3, 1, 0) and two plan cases (1, and 2 x 72 / (75 + 96) with a -2 matched)."""
    return run_of(
        graded_case("a", DRUGS, [1, 1, 1], [1, 1, 0]),
        graded_case("b", DRUGS, [1, -1], [1, 0]),
        graded_case("c", DRUGS, [1, -1], [1, 1]),
        graded_case("d", PLAN, [3, 1, -2], [1, 1, 0]),
        graded_case("e", PLAN, [3, 1, -2], [1, 0, 1]),
    )


def test_keys_are_upstreams_then_ours() -> None:
    """The 16 keys of the published runner come first, in its order; ours follow."""
    summary = summary_of(two_panels())

    assert list(summary)[:16] == UPSTREAM_KEYS
    assert [key for key in summary if key in OWN_KEYS] == OWN_KEYS
    assert set(PANEL_KEYS) <= set(summary["panels"][DRUGS])
    assert [list(value) for value in summary["benchmarks"].values()] == [["n", "mean", "ci95"]] * 2


def test_means_and_intervals_are_those_of_the_reference() -> None:
    """Panel means, macro-average, and the intervals of the reference loops over the same scores."""
    summary = summary_of(two_panels(), samples=300)
    drugs, plan = [2 / 3, 1.0, 0.0], [1.0, 2 * 72 / (75 + 96)]
    found = summary["benchmarks"]

    assert found[DRUGS] == {"n": 3, "mean": sum(drugs) / 3, "ci95": [*loop_panel(drugs, samples=300, seed=42)]}
    assert found[PLAN]["mean"] == pytest.approx(sum(plan) / 2, rel=1e-15)
    assert summary["overall_macro_mean"] == pytest.approx((sum(drugs) / 3 + sum(plan) / 2) / 2, rel=1e-15)
    assert summary["overall_ci95"] == pytest.approx(loop_overall([drugs, plan], samples=300, seed=42), rel=1e-12)


def test_panels_come_in_registry_order_and_by_name_in_the_upstream_dialect() -> None:
    """Whatever order the cases have, panels outside the registry come last."""
    run = run_of(
        graded_case("z", "a_panel_of_mine", [1], [1]),
        graded_case("a", PLAN, [1], [1]),
        graded_case("b", EQUITY, [1], [1]),
        graded_case("c", DRUGS, [1], [1]),
    )

    assert list(summary_of(run)["benchmarks"]) == [DRUGS, EQUITY, PLAN, "a_panel_of_mine"]
    assert list(summary_of(run, dialect="upstream")["benchmarks"]) == ["a_panel_of_mine", DRUGS, EQUITY, PLAN]


def test_failed_and_pending_cases_leave_the_mean_and_widen_the_bounds() -> None:
    """Scores 1, failed, pending, 0: mean 0.5 over two, worst (1 + 0 + 0 + 0) / 4, best (1 + 1 + 1 + 0) / 4."""
    run = run_of(
        graded_case("a", DRUGS, [1, -1], [1, 0]),
        graded_case("b", DRUGS, [1, -1], None),
        graded_case("c", DRUGS, [1, -1], None, state="pending", failed_role=None, failed_state=None, reason=None),
        graded_case("d", DRUGS, [1, -1], [0, 0]),
    )
    summary = summary_of(run)

    assert [summary[key] for key in ("n_expected", "n_graded", "n_failed", "n_pending", "errors")] == [4, 2, 1, 1, 1]
    assert summary["benchmarks"][DRUGS]["mean"] == 0.5
    assert (summary["overall_worst"], summary["overall_best"]) == (0.25, 0.75)
    assert (summary["panels"][DRUGS]["worst"], summary["panels"][DRUGS]["best"]) == (0.25, 0.75)
    assert summary["failed_cases"] == [
        {"case_id": "b", "benchmark": DRUGS, "role": "judge", "state": "timeout", "reason": "no reply within 1800 s"}
    ]
    assert summary["notices"][0].startswith("incomplete: of 4 selected cases 1 failed and 1 pending;")


def test_bounds_of_a_complete_run_are_its_mean() -> None:
    """Nothing is missing, so nothing can move."""
    summary = summary_of(two_panels())

    assert summary["overall_worst"] == summary["overall_best"] == summary["overall_macro_mean"]


def test_failed_case_whose_rubric_is_unknown_could_be_anything() -> None:
    """An upstream failure row does not hold its items: 0 to 1."""
    run = run_of(graded_case("a", DRUGS, [1], [1]), graded_case("b", DRUGS, [], None))

    assert (summary_of(run)["overall_worst"], summary_of(run)["overall_best"]) == (0.5, 1.0)


def test_overall_is_null_while_a_panel_has_no_graded_case() -> None:
    """A macro-average over the rest would be another number; the upstream dialect gives it and says so."""
    run = run_of(graded_case("a", DRUGS, [1], [1]), graded_case("b", EQUITY, [1], None))
    spec, upstream = summary_of(run), summary_of(run, dialect="upstream")

    assert (spec["overall_macro_mean"], spec["overall_ci95"]) == (None, None)
    assert spec["overall_reason"] == f"no graded case in: {EQUITY}"
    assert spec["benchmarks"][EQUITY] == {"n": 0, "mean": None, "ci95": None}
    assert f"overall is null: no graded case in: {EQUITY}" in spec["notices"]
    assert (upstream["overall_macro_mean"], list(upstream["benchmarks"])) == (1.0, [DRUGS])
    assert f"overall is over the panels present only; no graded case in: {EQUITY}" in upstream["notices"]


@pytest.mark.parametrize("dialect", ["spec", "upstream", "upstream-veto"])
def test_run_without_any_graded_case_is_null_not_nan(dialect: str) -> None:
    """The published runner writes NaN here, which is not JSON."""
    summary = summary_of(run_of(graded_case("a", DRUGS, [1], None)), dialect=dialect)

    assert (summary["overall_macro_mean"], summary["overall_ci95"]) == (None, None)
    assert summary["overall_reason"]
    assert "NaN" not in dumps_summary(summary)


def test_one_case_has_no_interval() -> None:
    """A panel of one: null with a notice; the published runner prints [x, x]."""
    run = run_of(graded_case("a", DRUGS, [1, 1], [1, 0]))
    spec, upstream = summary_of(run), summary_of(run, dialect="upstream")

    assert (spec["benchmarks"][DRUGS]["ci95"], spec["overall_ci95"]) == (None, None)
    assert f"n = 1 gives no interval: {DRUGS}" in spec["notices"]
    assert upstream["benchmarks"][DRUGS]["ci95"] == [0.5, 0.5]
    assert upstream["panels"][DRUGS]["ci_degenerate"] is True


def test_equal_scores_are_flagged_with_wilsons_interval_beside() -> None:
    """Four cases at 1: [1, 1] flagged; Wilson gives 4 / (4 + 1.96^2) = 0.510 as the lower end."""
    run = run_of(*(graded_case(str(i), DRUGS, [1], [1]) for i in range(4)))
    summary = summary_of(run)
    panel = summary["panels"][DRUGS]

    assert summary["benchmarks"][DRUGS]["ci95"] == [1.0, 1.0]
    assert (panel["ci_degenerate"], summary["overall_ci_degenerate"]) == (True, True)
    assert panel["wilson95"] == pytest.approx([0.5101, 1.0], abs=5e-5)
    assert f"all scores are equal, the interval's zero width is not certainty: {DRUGS}" in summary["notices"]


def test_wilson_is_offered_for_all_zero_or_all_one_only() -> None:
    """25 zeros: [0, 1.96^2 / (25 + 1.96^2)] = [0, 0.133]; anything else has the bootstrap."""
    zeros = wilson95([0.0] * 25)

    assert zeros is not None
    assert (zeros.low, zeros.high) == pytest.approx((0.0, 0.1332), abs=5e-5)
    assert (wilson95([0.5, 0.5]), wilson95([0.0, 1.0]), wilson95([])) == (None, None, None)


def test_plan_panels_show_recall_precision_and_severe_counts() -> None:
    """Plan (3, 1, -2) hit (1,1,0) and (1,0,1): R = 1 and 72/75, P = 1 and 72/96, severe shares 0 and 1/2."""
    panel = summary_of(two_panels())["panels"][PLAN]

    assert panel["recall"] == pytest.approx((1 + 72 / 75) / 2, rel=1e-15)
    assert panel["precision"] == pytest.approx((1 + 72 / 96) / 2, rel=1e-15)
    assert (panel["severe_matched"], panel["minus3_matched"], panel["severe_rate"]) == (1, 0, 0.25)
    assert (panel["recall_n"], panel["precision_n"], panel["severe_rate_n"]) == (2, 2, 2)
    assert (panel["negatives_judged"], panel["negative_hit_rate"]) == (2, 0.5)


def test_means_skip_cases_without_the_value_and_show_their_n() -> None:
    """A plan answer that matches nothing has no severe share, and upstream no precision."""
    run = run_of(graded_case("a", PLAN, [1, -3], [1, 1]), graded_case("b", PLAN, [1, -3], [0, 0]))
    spec, upstream = (summary_of(run, dialect=d)["panels"][PLAN] for d in ("spec", "upstream"))

    assert (spec["severe_rate"], spec["severe_rate_n"], spec["precision_n"]) == (0.5, 1, 2)
    assert (upstream["precision"], upstream["precision_n"], upstream["severe_rate_n"]) == (0.04, 1, 2)


def test_points_panels_have_no_recall_and_no_rate_of_nothing() -> None:
    """Null where undefined: recall, precision and severe rate on points panels, a hit rate without negative items."""
    panel = summary_of(run_of(graded_case("a", DRUGS, [1, 2], [1, 0])))["panels"][DRUGS]

    assert [panel[key] for key in ("recall", "precision", "severe_rate", "recall_n", "negative_hit_rate")] == [None] * 5
    assert (panel["negatives_judged"], panel["severe_matched"]) == (0, 0)


def test_counts_of_a_panel_without_graded_cases_are_unknown() -> None:
    """No decision was seen: null, not 0."""
    panel = summary_of(run_of(graded_case("a", PLAN, [1, -3], None)))["panels"][PLAN]

    assert (panel["severe_matched"], panel["minus3_matched"], panel["negative_hit_rate"]) == (None, None, None)


def test_severe_rate_is_named_with_its_definition() -> None:
    """The word has three readings: the summary says which one it prints."""
    assert "matched -2 and -3 items" in summary_of(two_panels())["definitions"]["severe_rate"]
    assert "+3 item missed" in summary_of(two_panels(), dialect="upstream")["definitions"]["severe_rate"]


def test_small_panels_carry_the_three_fixed_statements() -> None:
    """With the real n, or its range."""
    fixed = ["intervals are wider than official ones", "not comparable with official 50-case numbers"]
    even, uneven = summary_of(full_run(2), samples=5)["notices"], summary_of(two_panels())["notices"]

    assert even[:3] == ["n = 2 per panel (official: 50)", *fixed]
    assert uneven[:3] == ["n = 2 to 3 per panel (official: 50)", *fixed]


def test_full_run_of_fifty_says_only_what_is_always_said() -> None:
    """Ten panels of 50: the sampling statement, and that the judge has no certificate."""
    notices = summary_of(full_run(50), samples=5)["notices"]

    assert [notice.split(":")[0] for notice in notices] == ["intervals cover the sampling of cases only", "certificate"]


def test_selected_panels_are_said() -> None:
    """The overall of two panels is not the overall of ten."""
    assert f"overall is over the selected panels only (2): {DRUGS}, {PLAN}" in summary_of(two_panels())["notices"]
    assert not [n for n in summary_of(full_run(2), samples=5)["notices"] if "selected panels" in n]


@pytest.mark.parametrize(
    ("changes", "settings", "notice"),
    [
        ({}, {"dialect": "upstream-veto"}, "dialect upstream-veto: scored as the published runner scores"),
        (
            {"protocol_version": "bedside-bench-grading-v1+1a2b3c4d"},
            {},
            "non-standard protocol bedside-bench-grading-v1+1a",
        ),
        ({"answer_model": "builtin:refuse"}, {}, "answers come from the built-in policy builtin:refuse"),
        ({"judge_model": "builtin:verbatim"}, {}, "decisions come from the built-in judge builtin:verbatim"),
        ({"certified": None}, {}, "certificate: none"),
        ({"notices": ("the reader says so",)}, {}, "the reader says so"),
    ],
    ids=["dialect", "protocol", "policy", "judge", "certificate", "reader"],
)
def test_labels_are_said(changes: dict[str, Any], settings: dict[str, Any], notice: str) -> None:
    """What was run shows on every summary."""
    notices = summary_of(replace(two_panels(), **changes), **settings)["notices"]

    assert [said for said in notices if said.startswith(notice)]


def test_truncated_and_refused_answers_are_counted() -> None:
    """They are judged as they stand, and said."""
    run = run_of(
        graded_case("a", DRUGS, [1], [1], answer_state="truncated"),
        graded_case("b", DRUGS, [1], [0], answer_state="refused"),
        graded_case("c", DRUGS, [1], [0], answer_state="truncated"),
    )
    notices = summary_of(run)["notices"]

    assert "cut by the length limit, judged all the same: 2 answers" in notices
    assert "refused by the model, judged all the same: 1 answer" in notices


def test_rubric_without_positive_items_is_zero_here_and_ungraded_upstream() -> None:
    """0.0 with a notice in `spec`; an error, as in the published runner, in the upstream dialects."""
    run = run_of(graded_case("a", DRUGS, [-1], [0]), graded_case("b", DRUGS, [1], [1]))
    spec, upstream = summary_of(run), summary_of(run, dialect="upstream")

    assert (spec["n_graded"], spec["overall_macro_mean"]) == (2, 0.5)
    assert "without positive items, 0.0 whatever the answer: 1 case" in spec["notices"]
    assert (upstream["n_graded"], upstream["errors"], upstream["overall_macro_mean"]) == (1, 1, 1.0)
    assert (upstream["overall_worst"], upstream["overall_best"]) == (1.0, 1.0)
    assert [case["state"] for case in upstream["failed_cases"]] == ["no-positive-points"]
    assert "without positive items, ungraded in this dialect: 1 case" in upstream["notices"]


def test_upstream_intervals_follow_the_file_and_ours_the_dataset() -> None:
    """The same decisions in another file order: ours do not move, the published runner's do."""
    run = two_panels()
    turned = replace(run, file_order=(2, 4, 0, 3, 1))
    scores = {DRUGS: [0.0, round(2 / 3, 16), 1.0], PLAN: [round(2 * 72 / 171, 4), 1.0]}
    by_panel, overall = loop_upstream(scores, samples=200, seed=42)
    upstream = summary_of(turned, dialect="upstream")

    assert summary_of(turned) == summary_of(run)
    assert upstream["benchmarks"][DRUGS]["ci95"] == pytest.approx(by_panel[DRUGS], rel=1e-15)
    assert upstream["overall_ci95"] == pytest.approx(overall, rel=1e-15)


def test_success_followed_by_an_error_counts_in_both_upstream() -> None:
    """`errors` upstream counts cases whose last row is an error; ours counts cases without a score."""
    run = replace(two_panels(), relapsed=(0,))

    assert (summary_of(run)["completed_cases"], summary_of(run)["errors"]) == (5, 0)
    assert (summary_of(run, dialect="upstream")["completed_cases"], summary_of(run, dialect="upstream")["errors"]) == (
        5,
        1,
    )


def test_judge_passes_are_judges_times_repeats() -> None:
    """A jury of two asked three times each makes six passes."""
    run = replace(two_panels(), identity=jury_identity(2, 3))

    assert (summary_of(two_panels())["judge_passes_per_answer"], summary_of(run)["judge_passes_per_answer"]) == (1, 6)


def test_facts_of_the_run_are_carried_over() -> None:
    """Digests, data, states, usage and software as they are; unknown ones null."""
    run = replace(two_panels(), semantics_sha256="own", data={"repo": "org/x"}, usage={"answer": {"calls": 5}})
    summary = summary_of(run)

    assert summary["semantics_sha256"] == "own"
    assert summary_of(run, semantics_sha256="of this dialect")["semantics_sha256"] == "of this dialect"
    assert summary["data"] == {"repo": "org/x", "revision": None, "n_cases": None}
    assert summary["usage"] == {"answer": {"calls": 5}, "judge": {}}
    assert (summary["states"], summary["software"]) == ({"answer": {}, "judge": {}}, {"numpy": "x"})


def test_text_is_ascii_json_with_a_newline_and_always_the_same() -> None:
    """The results folder keeps these bytes."""
    run = replace(two_panels(), answer_model="modèle \u2028")
    text = dumps_summary(summary_of(run))

    assert text.isascii()
    assert text.endswith("}\n")
    assert text == dumps_summary(summary_of(run))
    assert json.loads(text)["answer_model"] == "modèle \u2028"


def test_an_answer_that_comes_twice_is_refused() -> None:
    """Which of two lots of decisions on one answer counts is not guessed."""
    run = run_of(graded_case("a", DRUGS, [1], [1]), graded_case("a", DRUGS, [1], [0]))
    with pytest.raises(BadInput, match="expected each answer to a case once"):
        summary_of(run)


def test_several_answers_to_a_case_are_nested_in_it() -> None:
    """Two answers to one case are one case with their mean: pooled as two, they would narrow the interval."""
    run = run_of(graded_case("a", DRUGS, [1], [1]), graded_case("a", DRUGS, [1], [0], answer_repeat=1))

    summary = summary_of(run)

    assert (1, 1) == (summary["n_expected"], summary["n_graded"])
    assert 0.5 == summary["benchmarks"][DRUGS]["mean"]


def test_points_that_do_not_fit_the_method_are_refused_with_their_case() -> None:
    """A plan item of +5 scores upstream (class 5), not here."""
    run = run_of(graded_case("a", PLAN, [3, 5], [1, 1]))
    with pytest.raises(BadInput, match=r"case a \(safety_diagnostic\): points: expected an integer from -3 to 3"):
        summary_of(run)
    assert summary_of(run, dialect="upstream")["n_graded"] == 1


def test_graded_case_missing_from_the_file_order_is_refused() -> None:
    """It would silently leave the upstream numbers."""
    with pytest.raises(ValueError, match="file_order"):
        summary_of(replace(two_panels(), file_order=(0, 1)), dialect="upstream")


def test_all_ten_panels_are_there() -> None:
    """A full run shows every panel of the registry."""
    assert list(summary_of(full_run(2), samples=5)["panels"]) == list(PANEL_IDS)
