"""Two HealthBench runs side by side: how often one's answer scores higher than the other's, plain and at equal length.

In: two graded runs on the same data. Out: `wins` over the examples that both have graded, as a JSON object and as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from builder.errors import BadInput
from builder.healthbench.names import META
from builder.healthbench.names import SUITE as HEALTHBENCH
from eval.calls.reply import one_line
from eval.healthbench.examples import graded_examples
from eval.healthbench.scores import example_score
from eval.healthbench.summary import metric_json
from eval.healthbench.wins import LENGTH_TOLERANCE, Answer, WinRate, win_rates
from eval.judging.graded import RunData
from eval.showing.cells import bar, interval_cell, number

FORMAT: Final = "bedside-bench/winrate/1"


def winning(a: RunData, b: RunData, *, samples: int, seed: int) -> dict[str, Any]:
    """Return A's win rate over B with its counts and bootstrap.

    Raises:
        BadInput: a run is no scored HealthBench run, they are on different data, or share no graded example.
    """
    for name, run in (("A", a), ("B", b)):
        if run.suite != HEALTHBENCH or run.config == META:
            raise BadInput(f"winrate: expected two HealthBench runs with scores, found {run.config} as {name}")
    ours, theirs = _graded_by(a), _graded_by(b)
    if differing := [name for name in ours if ours[name] != theirs[name]]:
        names = ", ".join(differing)
        raise BadInput(f"winrate: expected two runs on the same data, graded alike, found another {names}")
    _check_rubrics(a, b)
    first, second = _answers(a), _answers(b)
    both = [case_id for case_id in first if case_id in second]
    if not both:
        raise BadInput("winrate: expected examples that both runs have graded, found none")
    found = win_rates([first[name] for name in both], [second[name] for name in both], samples=samples, seed=seed)
    return {
        "format": FORMAT,
        "a": a.answer_model,
        "b": b.answer_model,
        "judge_model": a.judge_model,
        "dataset_sha256": a.dataset_sha256,
        "n_examples": len(both),
        "n_only_one": len(first.keys() ^ second.keys()),
        "plain": _rate(found.plain),
        "length_controlled": _rate(found.controlled),
        "length_tolerance": LENGTH_TOLERANCE,
        "effect_of_control": found.effect,
        "bootstrap_samples": samples,
        "bootstrap_seed": seed,
    }


def _graded_by(run: RunData) -> dict[str, Any]:
    """Return what two runs must share: the data, and everything about the grading. How answers were got may differ."""
    identity = run.identity or {}
    return {
        "config": run.config,
        "dataset_sha256": run.dataset_sha256,
        "judge_model": run.judge_model,
        # A run of ours has its grader in the identity, and a protocol that also names how answers were got.
        "protocol_version": None if run.identity else run.protocol_version,
        **{name: identity.get(name) for name in ("judges", "grouping", "repeats")},
    }


def _check_rubrics(a: RunData, b: RunData) -> None:
    """Refuse two runs that judged an example by other items: imported files name no data."""
    rubrics = {case.case_id: (case.points, case.item_tags) for case in a.cases}
    for case in b.cases:
        points, tags = rubrics.get(case.case_id, (case.points, case.item_tags))
        for name, ours, theirs in (("points", points, case.points), ("item tags", tags, case.item_tags)):
            if ours != theirs:
                raise BadInput(
                    f"winrate: case {case.case_id}: expected the same rubric in both runs, found other {name} in B"
                )


def _answers(run: RunData) -> dict[str, list[Answer]]:
    """Return the scored answers of each example, in the order of the run."""
    answers: dict[str, list[Answer]] = {}
    for example in graded_examples(run.cases):
        score = example_score(example.points, example.matched)
        if score is not None and example.n_chars is not None:
            answers.setdefault(example.case_id, []).append(Answer(score, example.n_chars))
    return answers


def _rate(found: WinRate) -> dict[str, Any]:
    counts = {name: getattr(found, name) for name in ("pairs", "ties", "dropped", "without_pair")}
    return {**metric_json(found.rate), **counts}


def winning_text(report: Mapping[str, Any]) -> str:
    """Return two runs' win rates as text of at most 80 columns."""
    head = f"{'A wins over B':<22}{'n':>6}{'pairs':>8}{'ties':>7}  {'rate':>5}  {'95% interval':<12}  0........1"
    lines = [f"A: {_name(report['a'])}", f"B: {_name(report['b'])}", head, "-" * len(head)]
    tolerance = f"length within {report['length_tolerance']:.0%}"
    for name, rate in (("all pairs", report["plain"]), (tolerance, report["length_controlled"])):
        cells = f"{name:<22}{rate['n']:>6}{rate['pairs']:>8}{rate['ties']:>7}  {number(rate['value']):>5}"
        lines.append(f"{cells}  {interval_cell(rate['ci95']):<12}  {bar(rate['value'], rate['ci95'], width=10)}")
    lines += ["-" * len(head), f"effect of the length control: {number(report['effect_of_control'])}"]
    lines.append(f"examples both graded: {report['n_examples']}; graded by one alone: {report['n_only_one']}")
    lines.append(f"judge: {_name(report['judge_model'])}  |  data: {_name(report['dataset_sha256'])[:12]}")
    if report["judge_model"] is None:
        lines.append("note: neither file names its grader: a win may be the grader's")
    if report["dataset_sha256"] is None:
        lines.append("note: neither file says which data it is on: examples are matched by their ids")
    return "\n".join(line.rstrip() for line in lines)


def _name(value: str | None) -> str:
    """Return a name as a terminal shows it, a dash where there is none."""
    return one_line(value) if value else "-"
