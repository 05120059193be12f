"""One graded case as a line of Every Eval Ever: its score, its counts and, where the run holds it, the answer.

In: a row of `scores` and the row of its answer. Out: an object in that format's words. The prompt is no part of a run:
its place stays empty, and the case is named by its id.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from eval.results.tables import Row

_COUNTS: Final = (
    *("benchmark", "grading_method", "raw_score", "recall", "precision", "n_items", "n_matched"),
    *("negatives_judged", "negatives_matched", "severe_matched", "minus3_matched"),
)


def case_object(
    score: Row, answer: Row, *, schema_version: str, evaluation_id: str, model_id: str, result_id: str
) -> dict[str, Any]:
    """Return the object of a graded case; correct is only a score of 1."""
    text = answer["text"]
    return {
        "schema_version": schema_version,
        "evaluation_id": evaluation_id,
        "model_id": model_id,
        "evaluation_name": result_id,
        "evaluation_result_id": result_id,
        "sample_id": score["case_id"],
        "interaction_type": "single_turn",
        "input": {"raw": "", "reference": []},
        "output": {"raw": [] if text is None else [text]},
        "answer_attribution": [],  # the whole answer is judged: nothing is taken out of it
        "evaluation": {"score": score["score"], "is_correct": score["score"] == 1, "num_turns": 1},
        "metadata": _metadata(score, answer),
        **_tokens(answer),
        **_latency(answer),
    }


def _metadata(score: Row, answer: Row) -> dict[str, str]:
    held = {name: score[name] for name in _COUNTS}
    held |= {"answer_state": answer["state"], "answer_sha256": answer["answer_sha256"]}
    held |= {"flags": ", ".join(score["flags"]) or None, "answer_repeat": score["answer_repeat"]}
    return {name: str(value) for name, value in held.items() if value is not None}


def _tokens(answer: Row) -> dict[str, Any]:
    """Return the tokens that the server counted; nothing unless it counted both ways."""
    given = {name: answer[f"{name}_tokens"] for name in ("input", "output", "cached", "reasoning")}
    counts: Mapping[str, int] = {name: n for name, n in given.items() if n is not None and n >= 0}
    if not {"input", "output"} <= counts.keys():
        return {}
    usage = {
        "input_tokens": counts["input"],
        "output_tokens": counts["output"],
        "total_tokens": counts["input"] + counts["output"],
        "input_tokens_cache_read": counts.get("cached"),
        "reasoning_tokens": counts.get("reasoning"),
    }
    return {"token_usage": {name: n for name, n in usage.items() if n is not None}}


def _latency(answer: Row) -> dict[str, Any]:
    latency = answer["latency_ms"]
    known = latency is not None and math.isfinite(latency) and latency >= 0
    return {"performance": {"latency_ms": latency}} if known else {}
