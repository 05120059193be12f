"""The walk on the shipped samples, offline: check, build, four policy runs, floors and ceilings, HealthBench's samples
on the same engine, results, verify.

In: an empty folder, or that of an earlier demo. Out: its files, and each step as it is done, for whoever shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from builder.errors import BadInput
from builder.healthbench.mirror import build_healthbench
from builder.healthbench.names import CORE, META
from builder.mirror import build_mirror, verify_mirror
from builder.rules.validate import check_tree
from builder.tree.sources import installed_data, open_source
from eval.calls.builtin import POLICIES, PREFIX, VERBATIM_JUDGE
from eval.calls.choices import Choices, make_plan
from eval.calls.plan import Judge, Model, Plan
from eval.calls.start import run_plan
from eval.healthbench.meta_report import meta_headline, meta_report
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SEED
from eval.numbers.readers import read_run, summarise_run
from eval.numbers.summary import dumps_summary
from eval.results.folder import current_summary, write_results
from eval.results.verify import verify_run
from eval.showing.healthbench_table import healthbench_rows
from eval.showing.report import side_by_side

_CONCURRENCY: Final = 8
_SHOWN: Final = (CORE, META)
_COMPLETIONS: Final = {"physicians": (CORE, "physician"), "labelled": (META, "given")}
"""Name of a HealthBench run -> the config it is on, and which of the data's own completions are graded."""


@dataclass(frozen=True, slots=True)
class Step:
    """One finished step: what was done, what came out, and where it is."""

    title: str
    text: str
    where: Path | None = None


def demo(out: Path, *, now: Callable[[], str], software: Mapping[str, str]) -> Iterator[Step]:
    """Walk through the product on the shipped cases and yield each step when it is done.

    Raises:
        BadInput: a step found what it must not find; the demo's own files were changed.
    """
    mirror = out / "mirror"
    report = check_tree(open_source(installed_data()))
    if not report.ok:
        raise BadInput(f"{installed_data()}: the shipped cases do not pass their own check; reinstall the package")
    yield Step("check", f"{report.n_cases} cases, {report.n_items} rubric items, no error", installed_data())
    built = build_mirror(open_source(installed_data()), mirror)
    yield Step("build", f"dataset_sha256 {built.dataset_sha256}", mirror)
    summaries = {}
    for policy in POLICIES:
        name = policy.removeprefix(PREFIX)
        summaries[name] = _run(policy, mirror, out / f"{name}.jsonl", now=now, software=software)
        yield Step("run", f"{policy}, judged by {VERBATIM_JUDGE}", out / f"{name}.jsonl")
    yield Step("scores", f"{side_by_side(summaries)}\n\n{_READING}")
    yield from _healthbench(out, now=now, software=software)
    results = out / "results"
    names = [*summaries, *_COMPLETIONS]
    for name in names:
        journal = out / f"{name}.jsonl"
        write_results(journal, results, summary_bytes=current_summary(journal, software=software))
    yield Step("results", f"{len(names)} runs in one versioned dataset", results)
    for folder, found, said in (
        (mirror, verify_mirror(mirror).findings, "every file, row and digest is what it says"),
        *((out / name, verify_mirror(out / name).findings, "the same of HealthBench's shapes") for name in _SHOWN),
        (results, verify_run(results).findings, "every score, interval and summary value recomputed: all equal"),
    ):
        if found:
            raise BadInput(f"{folder}: {found[0].line()}")
        yield Step("verify", said, folder)
    yield Step("next", "read it, then run a model of your own: bedside-bench run --help", results / "README.md")


def _ignore(*_: object) -> None:
    """Show nothing of a run's steps: the demo shows whole steps."""


_READING: Final = (
    "Floors and ceilings, not models: each answer is a fixed text, an item matches\n"
    "iff it stands in the answer word for word. Mean and 95% bootstrap interval of\n"
    "5 cases a panel."
)


def _run(
    policy: str, mirror: Path, output: Path, *, now: Callable[[], str], software: Mapping[str, str]
) -> dict[str, object]:
    plan = make_plan(Choices(mirror=mirror, answer=Model(policy), judges=(Judge(Model(VERBATIM_JUDGE)),)))
    return _summary(plan, output, now=now, software=software)


def _healthbench(out: Path, *, now: Callable[[], str], software: Mapping[str, str]) -> Iterator[Step]:
    """Walk through HealthBench's samples: physicians' completions graded, and the grader held against physicians."""
    for config in _SHOWN:
        built = build_healthbench(installed_data() / "healthbench" / f"{config}.jsonl", out / config)
        if not built.report.ok:
            raise BadInput(f"{config}.jsonl: the shipped examples do not pass their own check; reinstall the package")
        yield Step("build", f"{built.n_cases} examples in HealthBench's shape", out / config)
    for name, (config, kind) in _COMPLETIONS.items():
        choices = Choices(mirror=out / config, answer=None, judges=(Judge(Model(VERBATIM_JUDGE)),), answers=kind)
        summary = _summary(make_plan(choices), out / f"{name}.jsonl", now=now, software=software)
        yield Step("run", f"the data's own completions ({kind}), judged by {VERBATIM_JUDGE}", out / f"{name}.jsonl")
        if config == META:
            run = read_run(out / f"{name}.jsonl")
            report = meta_report(run, samples=HEALTHBENCH_SAMPLES, seed=SEED, software=software)
            yield Step("meta", meta_headline(report))
        else:
            yield Step("scores", "\n".join(healthbench_rows(summary)))


def _summary(plan: Plan, output: Path, *, now: Callable[[], str], software: Mapping[str, str]) -> dict[str, object]:
    asyncio.run(
        run_plan(
            plan,
            output,
            concurrency=_CONCURRENCY,
            header={"software": dict(software)},
            now=now,
            on_start=_ignore,
            on_progress=_ignore,
        )
    )
    summary = summarise_run(read_run(output), dialect="spec", seed=SEED, software=software)
    output.with_suffix(".summary.json").write_text(dumps_summary(summary), encoding="utf-8")
    return summary
