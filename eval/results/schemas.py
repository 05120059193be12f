"""The columns of a run's tables, typed, and which of them name a row (formats.md 7 and 10).

Four tables every run has; a HealthBench run has a fifth. Their rows are made in `tables`.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from builder.healthbench.names import SUITE as HEALTHBENCH

_TEXT, _COUNT, _NUMBER = pa.string(), pa.int64(), pa.float64()


def _columns(kind: pa.DataType, names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, kind) for name in names.split()]


_PANEL: Final = pa.struct(
    [
        *_columns(_TEXT, "panel"),
        *_columns(_COUNT, "n n_expected"),
        *_columns(_NUMBER, "mean ci_low ci_high worst best"),
    ]
)
RUN_SCHEMA: Final = pa.schema(
    [
        *_columns(_TEXT, "run_id run_sha256 identity_sha256 semantics_sha256 dataset_sha256 content_sha256"),
        *_columns(_TEXT, "cases_sha256 suite protocol dialect date answer_model answer_vendor"),
        ("judge_models", pa.list_(_TEXT)),
        *_columns(_COUNT, "repeats"),
        *_columns(_TEXT, "grouping certificate data_repo data_revision"),
        *_columns(_COUNT, "n_expected n_graded n_failed"),
        *_columns(_NUMBER, "overall_mean overall_ci_low overall_ci_high overall_worst overall_best"),
        ("panels", pa.list_(_PANEL)),
        *_columns(_NUMBER, "answer_temperature judge_temperature"),
        ("with_texts", pa.bool_()),
        *_columns(_TEXT, "identity_json summary_json"),
    ]
)
SCORES_SCHEMA: Final = pa.schema(
    [
        *_columns(_TEXT, "run_id case_id benchmark grading_method"),
        *_columns(_COUNT, "answer_repeat"),
        *_columns(_TEXT, "state"),
        *_columns(_NUMBER, "score worst best raw_score recall precision"),
        *_columns(_COUNT, "n_items n_matched negatives_judged negatives_matched severe_matched minus3_matched"),
        ("flags", pa.list_(_TEXT)),
        *_columns(_COUNT, "n_unresolved"),
    ]
)
DECISIONS_SCHEMA: Final = pa.schema(
    [
        *_columns(_TEXT, "run_id case_id benchmark item_id"),
        *_columns(_COUNT, "item_index"),
        *_columns(_NUMBER, "points"),
        *_columns(_COUNT, "answer_repeat judge"),
        *_columns(_TEXT, "judge_model"),
        *_columns(_COUNT, "repeat"),
        *_columns(_TEXT, "state"),
        ("matched", pa.bool_()),
        *_columns(_TEXT, "reply_sha256"),
    ]
)
ANSWERS_SCHEMA: Final = pa.schema(
    [
        *_columns(_TEXT, "run_id case_id"),
        *_columns(_COUNT, "answer_repeat"),
        *_columns(_TEXT, "state answer_sha256"),
        *_columns(_COUNT, "n_chars"),
        *_columns(_TEXT, "finish_reason model_returned fingerprint"),
        *_columns(_COUNT, "input_tokens cached_tokens output_tokens reasoning_tokens attempts"),
        *_columns(_NUMBER, "latency_ms"),
        *_columns(_TEXT, "text"),
    ]
)
EXAMPLES_SCHEMA: Final = pa.schema(
    [
        *_columns(_TEXT, "run_id case_id"),
        ("example_tags", pa.list_(_TEXT)),
        ("item_tags", pa.list_(pa.list_(_TEXT))),
        *_columns(_TEXT, "completions_group"),
        ("labels", pa.list_(pa.struct([("physician", _TEXT), ("label", pa.bool_())]))),
    ]
)
SCHEMAS: Final = {"run": RUN_SCHEMA, "scores": SCORES_SCHEMA, "decisions": DECISIONS_SCHEMA, "answers": ANSWERS_SCHEMA}
"""The four tables that every run has."""
EXAMPLES: Final = "examples"
ALL_SCHEMAS: Final = {**SCHEMAS, EXAMPLES: EXAMPLES_SCHEMA}
"""And the one that only a HealthBench run has: what its scores by tag, and its meta-evaluation, are computed from."""

KEYS: Final = {
    "run": (),
    "scores": ("case_id", "answer_repeat"),
    "decisions": ("case_id", "answer_repeat", "item_index", "judge", "repeat"),
    "answers": ("case_id", "answer_repeat"),
    EXAMPLES: ("case_id",),
}
"""The columns that name a row of each table within one run; `run` has one row."""


def tables_of(suite: str) -> tuple[str, ...]:
    """Return the names of the tables that a run of a suite has."""
    return tuple(ALL_SCHEMAS if suite == HEALTHBENCH else SCHEMAS)
