"""What must stand beside a number wherever it is shown alone: judge, cases, interval, bounds, scope, protocol, digests.

In: a run and one of its numbers. Out: one line of text. What has a field of its own in the Hub's file is not repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from bedside_bench import OFFICIAL_CASES_PER_PANEL, PANEL_IDS
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.exports.chosen import ALL, ChosenRun, Number
from eval.judging.certified import NONE
from eval.judging.protocol import PROTOCOL
from eval.numbers.notices import NOT_COMPARABLE


def notes(run: ChosenRun, number: Number) -> str:
    """Return the line that goes with a number."""
    return "; ".join(_parts(run, number))


def _parts(run: ChosenRun, number: Number) -> Iterator[str]:
    yield "score from 0 to 1"
    yield f"answer model as asked: {run.row['answer_model']}"
    yield judges(run)
    yield f"{number.n_graded} of {number.n_expected} cases graded"
    if number.ci_low is None or number.ci_high is None:
        yield "no interval"
    else:
        flat = ", its zero width is not certainty" if number.ci_low == number.ci_high else ""
        yield f"95% interval {number.ci_low:.3f} to {number.ci_high:.3f} (sampling of cases only{flat})"
    if number.n_graded < number.n_expected and number.worst is not None and number.best is not None:
        yield f"between {number.worst:.3f} and {number.best:.3f} whatever the ungraded cases would give"
    yield from scope(run, number)
    protocol = str(run.row["protocol"])
    known = protocol == PROTOCOL or run.row["suite"] == HEALTHBENCH
    yield f"protocol {protocol}" if known else f"non-standard protocol {protocol}"
    yield f"semantics sha256:{run.row['semantics_sha256']}"
    yield f"dataset sha256:{run.row['dataset_sha256']}"
    yield from jury_notes(run)
    certificate = run.row["certificate"]
    if certificate in (None, NONE):
        yield "judge not certified against a reference"
    elif certificate != "valid":
        yield f"judges' certificates: {certificate}"
    yield f"run {run.run_id}"


def jury_notes(run: ChosenRun) -> Iterator[str]:
    """Yield what a jury left open, where there is one: its score is the lower of two bounds."""
    jury = json.loads(run.row["summary_json"]).get("jury")
    if jury:
        items, liberal = jury["items"], jury["liberal"]["overall_macro_mean"]
        upper = "" if liberal is None else f"; liberal bound of the overall score {liberal:.3f}"
        yield f"conservative bound: {items['unresolved']} of {items['n']} items unresolved by the jury{upper}"


def judges(run: ChosenRun) -> str:
    """Return who judged, and how often."""
    models, repeats = run.row["judge_models"], run.row["repeats"]
    named = f"judge{'s' if len(models) > 1 else ''} {', '.join(models)}"
    return named if repeats == 1 else f"{named}, {repeats} times each"


def scope(run: ChosenRun, number: Number) -> Iterator[str]:
    """Yield which part of the benchmark a number is over: panels, selection, and cases a panel of the official ones."""
    panels = {score["panel"]: score["n_expected"] for score in run.row["panels"]}
    official = panels.keys() <= set(PANEL_IDS)
    if number.task == ALL:
        yield "mean of the panel means"
        if official and len(panels) == len(PANEL_IDS):
            yield f"all {len(PANEL_IDS)} panels"
        else:
            of = f" of {len(PANEL_IDS)}" if official else ""
            yield f"only over {len(panels)}{of} panels: {', '.join(panels)}"
    selection = run.identity.get("selection") or {}
    if selection.get("smoke"):
        yield "smoke test: one fixed case a panel"
    if selection.get("completions"):
        yield f"only examples with a {selection['completions']} completion"
    if selection.get("groups"):
        yield f"only completions of {', '.join(selection['groups'])}"
    if selection.get("limit") is not None:
        yield f"only the first {selection['limit']} selected cases"
    sizes = sorted(set(panels.values())) if number.task == ALL else [panels[number.task]]
    if official and sizes != [OFFICIAL_CASES_PER_PANEL]:
        n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        yield f"{n} case{'' if n == '1' else 's'} a panel (official: {OFFICIAL_CASES_PER_PANEL}), {NOT_COMPARABLE}"
