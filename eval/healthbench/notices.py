"""What a reader of a HealthBench run must know of its numbers, one sentence each.

In: a run. Out: sentences in a fixed order: how it was graded, and what it therefore compares with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from builder.healthbench.names import META
from eval.healthbench.protocol import PROTOCOL, PROTOCOL_ALL
from eval.judging.graded import RunData

OWN_GRADER: Final = (
    "graded with this project's own wording of the grader's prompt, not OpenAI's: "
    "not comparable with numbers graded with another"
)
OTHER_TEMPLATE: Final = (
    "graded with a template of the user's (its SHA-256 is in the identity): comparable where that is equal"
)
ALL_AT_ONCE: Final = (
    "the grader was asked about all criteria of an example in one call, where HealthBench asks one criterion a call: "
    "not comparable with runs that did; bedside-bench audit holds the two against each other"
)
CLIPPED: Final = "HealthBench score: the mean is clipped to 0..1, an example is not and may be below 0"
NO_SCORE: Final = "a meta-evaluation has no score: bedside-bench meta holds its decisions against the physicians'"


def healthbench_notices(run: RunData) -> Iterator[str]:
    """Yield a HealthBench run's own notices."""
    if run.protocol_version.startswith((PROTOCOL, PROTOCOL_ALL)):
        yield OWN_GRADER
    elif run.identity is not None:
        yield OTHER_TEMPLATE
    if (run.identity or {}).get("grouping") == "case":
        yield ALL_AT_ONCE
    if "+" in run.protocol_version.removeprefix("healthbench+"):
        yield f"non-standard protocol {run.protocol_version}: a temperature, reply form or system text is not the usual"
    yield NO_SCORE if run.config == META else CLIPPED
    chosen = (run.identity or {}).get("selection", {})
    if chosen.get("completions"):
        kept = f"answers are the data's own completions ({chosen['completions']}), not a model's"
        yield f"{kept}: only examples that have one are graded"
