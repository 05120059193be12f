"""Measure the runner against a 50 ms model server in its own process: wall time over ideal, CPU a call, memory.

Run: python -m tests.bench.bench_runner [--cases 1213] [--long] [--healthbench 5000]. Ideal = calls x latency / calls in
flight. CPU is this process's own (user + system) from the first request sent to the last line written, parsing and
journal included. With `--healthbench N` N examples of 11 items are graded item by item, then the journal is opened
again: its reading over the bare cost of parsing its lines, then grading, scores by tag and 1,000 resamples each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import orjson

from builder.healthbench.names import CORE, SUITE
from eval.calls.call import current_calls
from eval.calls.endpoint import Endpoint
from eval.calls.journal import Journal
from eval.calls.plan import Judge, Limits, Model, Plan, Reading
from eval.calls.run import Progress
from eval.calls.start import run_plan
from eval.cases import Case, CaseSet, Item
from eval.judging.grading import grade_journal
from eval.judging.suites import suite_of
from eval.numbers.summary import summarise
from tests.llm_server import server_process
from tests.plans import clock, ignore

LATENCY_S = 0.05
ITEMS = 12


def made_cases(n: int) -> CaseSet:
    """Return n generated cases with 12 items each: about 70 words a prompt, 20 an item."""
    words = "assess vitals confirm dose review renal function monitor urgent referral explain risk".split()  # noqa: SIM905

    def case(number: int) -> Case:
        text = " ".join(words[(number + k) % len(words)] for k in range(70))
        items = tuple(
            Item(f"{number:032x}_{k}", f"Item {k} of {number}: {text[:120]}", 1 if k % 3 else -1) for k in range(ITEMS)
        )
        return Case(f"{number:032x}", "drug_safety", "points_rubric", (("user", f"Case {number}. {text}?"),), items)

    return CaseSet(tuple(case(number) for number in range(n)), "0" * 64, "1" * 64, None, None, None)


def made_examples(n: int) -> CaseSet:
    """Return n generated HealthBench examples with 11 items each: an axis and a level an item, a theme an example."""
    axes = ("accuracy", "completeness", "context_awareness", "communication_quality", "instruction_following")

    def example(case: Case, number: int) -> Case:
        items = tuple(
            replace(item, points=7 if k % 3 else -5, tags=(f"axis:{axes[(number + k) % 5]}", f"level:{k % 2}"))
            for k, item in enumerate(case.items[:11])
        )
        return replace(case, benchmark=CORE, grading_method=SUITE, items=items, tags=(f"theme:{number % 7}",))

    cases = made_cases(n)
    return replace(cases, cases=tuple(map(example, cases.cases, range(n))), suite=SUITE, config=CORE)


def cpu_s() -> float:
    """Return the CPU seconds this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(data: CaseSet, concurrency: int, url: str, output: Path) -> dict[str, float]:
    """Run all cases once and return the figures."""
    suite = suite_of(data.suite)
    model = Model("model", Endpoint(url, None))
    plan = Plan(
        data=data,
        cases=data.cases,
        selection={"panels": None, "smoke": False, "limit": None},
        answer=model,
        judges=(Judge(replace(model, name="judge")),),
        reading=Reading(prompts=suite.prompts(), grouping=suite.grouping),
        limits=Limits(),
    )
    first: list[tuple[float, float]] = []
    memory: list[int] = []

    def step(progress: Progress) -> None:
        if not first:
            first.append((time.perf_counter(), cpu_s()))
        if progress.kind == "case":
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    asyncio.run(
        run_plan(plan, output, concurrency=concurrency, header={}, now=clock(), on_start=ignore, on_progress=step)
    )
    wall, cpu = time.perf_counter() - first[0][0], cpu_s() - first[0][1]
    calls = sum(json.loads(line)["kind"] == "call" for line in output.read_bytes().splitlines())
    ideal = calls * LATENCY_S / concurrency
    return {
        "calls": calls,
        "in flight": concurrency,
        "wall s": wall,
        "wall / ideal": wall / ideal,
        "CPU ms a call": 1000 * cpu / calls,
        "memory growth MB, last half": (memory[-1] - memory[len(memory) // 2]) / 1024,
    }


def reopen(journal: Path) -> dict[str, float]:
    """Open a finished journal again and score it; return seconds, and the ratio to parsing its lines alone."""
    start = time.perf_counter()
    for line in journal.read_bytes().split(b"\n")[:-1]:
        orjson.loads(line)
    parsed = time.perf_counter()
    with Journal(journal) as opened:
        data = opened.resume()
        current_calls(data.calls)
    read = time.perf_counter()
    run = grade_journal(data)
    graded = time.perf_counter()
    summarise(run, software={})
    scored = time.perf_counter()
    return {
        "reopened s": read - parsed,
        "over bare parsing": (read - parsed) / (parsed - start),
        "graded s": graded - read,
        "scores, tags, resamples s": scored - graded,
    }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_213)
    parser.add_argument("--long", action="store_true", help="20,000 calls at 256 in flight as well")
    parser.add_argument("--healthbench", type=int, metavar="N", help="N examples instead, graded item by item")
    options = parser.parse_args()
    cases = made_examples(options.healthbench) if options.healthbench else made_cases(options.cases)
    plans = [(cases, 256)] if options.healthbench else [(cases, 64), (cases, 256)]
    plans += [(made_cases(10_000), 256)] if options.long else []
    with tempfile.TemporaryDirectory() as folder, server_process(latency_ms=50, record=False) as url:
        for number, (data, concurrency) in enumerate(plans):
            output = Path(folder) / f"{number}.jsonl"
            figures = measure(data, concurrency, f"{url}/v1", output)
            if options.healthbench:
                figures |= reopen(output)
            print("  ".join(f"{name} {value:.3f}" for name, value in figures.items()), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
