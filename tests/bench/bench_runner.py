"""Measure the runner against a 50 ms model server in its own process: wall time over ideal, CPU a call, memory.

Run: python -m tests.bench.bench_runner [--calls 2426] [--long]. Ideal = calls x latency / calls in flight. CPU is this
process's own (user + system) from the first request sent to the last line written, parsing and journal included.
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

from eval.calls.endpoint import Endpoint
from eval.calls.plan import Limits, Model, Plan, Reading
from eval.calls.run import Progress
from eval.calls.start import run_plan
from eval.cases import Case, CaseSet, Item
from eval.judging.protocol import protocol_prompts
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


def cpu_s() -> float:
    """Return the CPU seconds this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(cases: int, concurrency: int, url: str, folder: Path) -> dict[str, float]:
    """Run all cases once and return the figures."""
    data = made_cases(cases)
    model = Model("model", Endpoint(url, None))
    plan = Plan(
        data=data,
        cases=data.cases,
        selection={"panels": None, "smoke": False, "limit": None},
        answer=model,
        judge=replace(model, name="judge"),
        reading=Reading(prompts=protocol_prompts()),
        limits=Limits(),
    )
    first: list[tuple[float, float]] = []
    memory: list[int] = []

    def step(progress: Progress) -> None:
        if not first:
            first.append((time.perf_counter(), cpu_s()))
        if progress.kind == "case":
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    output = folder / f"{cases}-{concurrency}.jsonl"
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


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_213)
    parser.add_argument("--long", action="store_true", help="20,000 calls at 256 in flight as well")
    options = parser.parse_args()
    plans = [(options.cases, 64), (options.cases, 256)] + ([(10_000, 256)] if options.long else [])
    with tempfile.TemporaryDirectory() as folder, server_process(latency_ms=50, record=False) as url:
        for cases, concurrency in plans:
            figures = measure(cases, concurrency, f"{url}/v1", Path(folder))
            print("  ".join(f"{name} {value:.3f}" for name, value in figures.items()), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
