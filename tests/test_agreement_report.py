"""The report of agreement: every number with its n, null with reasons, and a text that fits a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bedside_bench import PANEL_IDS, PANELS_BY_ID
from builder.errors import BadInput
from eval.agreement.labels import ItemKey
from eval.agreement.report import FORMAT, agreement_report
from eval.agreement.table import agreement_text
from eval.judging.graded import Ballots, RunData
from tests.runs import graded_case, jury_case, jury_run, run_of

PANELS = ("drug_safety", "safety_diagnostic")
POINTS = {"drug_safety": (2, 1, -1), "safety_diagnostic": (3, 1, 0, -2)}
Labels = Mapping[str, Mapping[ItemKey, bool]]


def some_run(judges: int = 3, repeats: int = 3, *, cases: int = 6, seed: int = 1) -> RunData:
    """Return a run on two panels whose judges see a truth through some noise, a few of their replies missing."""
    rng = np.random.default_rng(seed)

    def ballots(items: int) -> Ballots:
        truth = rng.random(items) < 0.7
        heard = [[truth ^ (rng.random(items) < 0.15) for _ in range(repeats)] for _ in range(judges)]
        return tuple(
            tuple((None,) * items if rng.random() < 0.03 else tuple(map(bool, cell)) for cell in judge)
            for judge in heard
        )

    return jury_run(
        *(
            jury_case(f"{panel}-{n}", panel, POINTS[panel], ballots(len(POINTS[panel])))
            for panel in PANELS
            for n in range(cases)
        ),
        repeats=repeats,
        identity_sha256="1" * 64,
        dataset_sha256="2" * 64,
    )


def labels_on(run: RunData, *raters: str, share: int = 2) -> dict[str, dict[ItemKey, bool]]:
    """Return labels of people, who go with the first judge but for one item in five, on every so manyeth case."""
    return {
        rater: {
            (case.case_id, 0, item_id): bool(case.ballots[0][0][at]) ^ ((at + number + salt) % 5 == 0)
            for number, case in enumerate(run.cases[::share])
            for at, item_id in enumerate(case.item_ids)
        }
        for salt, rater in enumerate(raters)
    }


def report_of(run: RunData, labels: Labels | None = None, **settings: Any) -> dict[str, Any]:
    """Return a report with few resamples."""
    return agreement_report(run, labels=labels, software={}, **{"samples": 50, "seed": 42, **settings})


def measures_in(report: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every measure of a report."""
    if isinstance(report, dict):
        for name, value in report.items():
            if name == "measures":
                yield from value.values()
            else:
                yield from measures_in(value)
    elif isinstance(report, list):
        for value in report:
            yield from measures_in(value)


@pytest.fixture(scope="module")
def run() -> RunData:
    """Three judges, three repeats, two panels."""
    return some_run()


@pytest.fixture(scope="module")
def report(run: RunData) -> dict[str, Any]:
    """Its report with the labels of two people."""
    return report_of(run, labels_on(run, "lee", "kim"))


def test_it_says_what_it_was_computed_from(run: RunData, report: dict[str, Any]) -> None:
    """Format, digests, judges with vendors, repeats, settings, definitions and counts."""
    assert (FORMAT, "1" * 64, "2" * 64) == tuple(report[key] for key in ("format", "identity_sha256", "dataset_sha256"))
    assert ["judge-0", "judge-1", "judge-2"] == [judge["name"] for judge in report["judges"]]
    assert (3, 50, 42) == tuple(report[key] for key in ("repeats", "bootstrap_samples", "bootstrap_seed"))
    counts = report["counts"]
    assert (12, 12, 42) == tuple(counts[key] for key in ("answers", "cases", "items"))
    assert sum(case.unresolved for case in run.cases) == counts["items_unresolved"]
    assert {"lee": {"n": 21, "unjudged": 0}, "kim": {"n": 21, "unjudged": 0}} == counts["labels"]


def test_every_measure_has_n_and_a_value_or_a_reason(report: dict[str, Any]) -> None:
    """Nothing is NaN, so that it is JSON; null goes with a reason, for values and intervals alike."""
    found = list(measures_in(report))

    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert len(found) > 200
    for one in found:
        assert (one["value"] is None) == (one["reason"] is not None)
        assert (one["ci95"] is None) == (one["ci_reason"] is not None)
        assert one["n"] >= 0 <= one["dropped"]


def test_slices_add_up(report: dict[str, Any]) -> None:
    """Panels and signs part the items of each question; severities those of plan panels."""
    for question in (report["between_judges"]["together"], report["judge_repeats"][1]):
        counted = {
            kind: sum(part["measures"]["unanimity"]["n"] for part in question[kind].values())
            for kind in ("panels", "signs", "severities")
        }
        plan = question["panels"]["safety_diagnostic"]["measures"]["unanimity"]["n"]
        whole = question["overall"]["measures"]["unanimity"]["n"]

        assert {"panels": whole, "signs": whole, "severities": plan} == counted


def test_people_are_held_against_the_jury_and_each_other(report: dict[str, Any]) -> None:
    """Both treatments of unresolved for each, and their own agreement beside, on the items they labelled."""
    lee, kim = report["jury_against_raters"]
    people = report["between_raters"]

    assert ("lee", "kim") == (lee["rater"], kim["rater"])
    assert 21 == lee["unresolved_dropped"]["n_units"] == lee["unresolved_third"]["n_units"]
    assert 6 == lee["unresolved_third"]["overall"]["n_clusters"]
    assert ["lee", "kim"] == [rater["name"] for rater in people["together"]["raters"]]
    assert 21 == people["pairs"][0]["overall"]["measures"]["cohen_kappa"]["n"]


def test_one_judge_called_once_agrees_with_nobody() -> None:
    """Not 100 %: null with the reasons, and no slices of nothing."""
    report = report_of(some_run(1, 1))
    together, (alone,) = report["between_judges"]["together"], report["judge_repeats"]

    assert (None, "one judge: nobody to agree with") == tuple(
        together["overall"]["measures"]["unanimity"][key] for key in ("value", "reason")
    )
    assert "one repeat: nothing to hold it against" == alone["reason"]
    assert ({}, [], None) == (together["panels"], report["between_judges"]["pairs"], report["between_raters"])


def test_permuting_judges_changes_nothing() -> None:
    """Together, value and interval; each pair and each judge only changes its place."""
    run = some_run()
    turned = replace(run, cases=tuple(replace(case, ballots=case.ballots[::-1]) for case in run.cases))
    one, other = report_of(run), report_of(turned)

    assert one["between_judges"]["together"]["overall"] == other["between_judges"]["together"]["overall"]
    assert [judge["overall"] for judge in one["judge_repeats"]] == [
        judge["overall"] for judge in other["judge_repeats"][::-1]
    ]


def test_corrected_scores_come_with_labels_and_sensitivity_without(run: RunData, report: dict[str, Any]) -> None:
    """People's labels measure the judge's error; where there are none it is assumed, as it is where rates are given."""
    bare = report_of(run)
    both = report_of(run, labels_on(run, "lee"), error_rates=[(0.0, 0.25)])

    assert (True, False) == (report["corrected"] is not None, report["sensitivity"] is not None)
    assert (False, 7) == (bare["corrected"] is not None, len(bare["sensitivity"]["rates"]))
    assert [(0.0, 0.25)] == [(pair["fp"], pair["fn"]) for pair in both["sensitivity"]["rates"]]
    with pytest.raises(BadInput, match="rates: expected"):
        report_of(run, error_rates=[(0.5, 0.5)])


def test_the_text_fits_80_columns(run: RunData, report: dict[str, Any]) -> None:
    """With long names of judges and people too, and control characters in them."""
    text = agreement_text(report)
    long = replace(
        run,
        identity={**(run.identity or {}), "judges": [{"model": "org/" + "m" * 90 + f"\x1b[1m{n}"} for n in range(3)]},
    )
    other = agreement_text(report_of(long, labels_on(run, "a person with a name of more than eighteen characters" * 2)))

    assert max(map(len, [*text.splitlines(), *other.splitlines()])) <= 80
    assert "\x1b" not in other
    for words in (
        "judges among each other",
        "judge-0 x judge-1",
        "each judge over its 3 repeats",
        "by severity",
    ):
        assert words in text


def test_the_text_shows_unanimity_beside_kappa_and_base_rate() -> None:
    """118 items that both judges call met, 7 on which they differ: 0.944, -0.023, AC1 0.941, 0.972 true, in one row."""
    pairs = [(True, True)] * 118 + [(True, False)] * 5 + [(False, True)] * 2
    cases = [jury_case(f"c{n}", "drug_safety", [1], (((a,),), ((b,),))) for n, (a, b) in enumerate(pairs)]
    lines = agreement_text(report_of(jury_run(*cases))).splitlines()
    row = lines[lines.index("judges among each other") + 2].split()[3:]

    assert ["125", "0", "0.944", "-0.023"] == row[:4]
    assert ["0.941", "0.97"] == row[-2:]


def test_the_text_says_why_there_is_no_number() -> None:
    """One judge called once: the reasons in place of rows of dashes, each once."""
    lines = agreement_text(report_of(some_run(1, 1))).splitlines()

    for title, reason in {
        "judges among each other": " one judge: nobody to agree with",
        "each judge over its repeats": " one repeat: nothing to hold it against",
    }.items():
        assert reason == lines[lines.index(title) + 1]
        assert 1 == lines.count(reason)
    assert not any(line.startswith(" all 1") for line in lines)


def test_unresolved_items_have_a_second_row_only_where_there_are_any() -> None:
    """Two judges who differ leave items unresolved, dropped or as a category; with none the rows would be the same."""
    for run, names in ((some_run(2), (" lee: dropped", " lee: as a category")), (some_run(3), (" lee ",))):
        report = report_of(run, labels_on(run, "lee"))
        rows = [line for line in agreement_text(report).splitlines() if line.startswith(" lee")]

        assert len(names) == len(rows) == 1 + bool(report["counts"]["items_unresolved"])
        assert all(row.startswith(name) for row, name in zip(rows, names, strict=True))


def test_every_panel_stands_on_one_line() -> None:
    """The longest name of a panel leaves room for its numbers within 80 columns."""
    panels = [panel for panel in PANEL_IDS if PANELS_BY_ID[panel].grading_method != "f1_weighted_rubric"]
    said = (((True, False),), ((True, True),))
    cases = [jury_case(f"{panel}-{n}", panel, [1, 1], said) for panel in panels for n in range(3)]
    lines = agreement_text(report_of(jury_run(*cases))).splitlines()

    assert max(map(len, PANEL_IDS)) < 24
    for panel in panels:
        assert any(line.startswith(f" {panel} ") and "0.500" in line for line in lines)


def test_an_interval_without_width_is_marked() -> None:
    """Judges who agree on every item of every case: 1.00 to 1.00, with a star and what it means."""
    cases = [jury_case(f"c{n}", "drug_safety", [1, 1], (((True, False),), ((True, False),))) for n in range(4)]
    text = agreement_text(report_of(jury_run(*cases)))

    assert "1.00..1.00*" in text
    assert "* all resamples gave one value: that says little" in text


def test_a_run_without_decisions_has_a_report() -> None:
    """Every answer failed: counts, nulls and reasons."""
    report = report_of(run_of(graded_case("a", "drug_safety", [1], None, failed_role="answer")))

    assert (1, 1, 0) == tuple(report["counts"][key] for key in ("answers", "answers_unjudged", "items"))
    assert max(map(len, agreement_text(report).splitlines())) <= 80
