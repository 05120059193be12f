"""The four tables of a run: their columns, the run's digest and its name."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from eval.calls.journal import read_journal
from eval.judging.grading import case_replies, grade_journal
from eval.numbers.panels import score_cases
from eval.results.schemas import ANSWERS_SCHEMA, DECISIONS_SCHEMA, RUN_SCHEMA, SCORES_SCHEMA
from eval.results.tables import answer_rows, decision_rows, run_id, run_sha256, score_rows
from tests.journals import write_journal
from tests.trees import case_id_of

# formats.md section 7, word for word; a key of ours stands last.
COLUMNS = {
    "run": """run_sha256, identity_sha256, semantics_sha256, dataset_sha256, content_sha256, cases_sha256, suite,
        protocol, dialect, date, answer_model, answer_vendor, judge_models, repeats, grouping, certificate, data_repo,
        data_revision, n_expected, n_graded, n_failed, overall_mean, overall_ci_low, overall_ci_high, overall_worst,
        overall_best, panels, answer_temperature, judge_temperature, with_texts, identity_json, summary_json""",
    "scores": """case_id, benchmark, grading_method, answer_repeat, state, score, worst, best, raw_score, recall,
        precision, n_items, n_matched, negatives_judged, negatives_matched, severe_matched, minus3_matched, flags,
        n_unresolved""",
    "decisions": """case_id, benchmark, item_id, item_index, points, answer_repeat, judge, judge_model, repeat, state,
        matched, reply_sha256""",
    "answers": """case_id, answer_repeat, state, answer_sha256, n_chars, finish_reason, model_returned, fingerprint,
        input_tokens, cached_tokens, output_tokens, reasoning_tokens, attempts, latency_ms, text""",
}


@pytest.mark.parametrize(
    ("table", "schema"),
    [("run", RUN_SCHEMA), ("scores", SCORES_SCHEMA), ("decisions", DECISIONS_SCHEMA), ("answers", ANSWERS_SCHEMA)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_table_has_the_columns_of_the_format_in_its_order(table: str, schema: object) -> None:
    """Every table begins with run_id and goes on as formats.md lists its columns."""
    assert ["run_id", *COLUMNS[table].replace(",", " ").split()] == schema.names  # type: ignore[attr-defined]


def _digest(journal: Path) -> str:
    data = read_journal(journal)
    replies = case_replies(data)
    return run_sha256(
        data.header["identity_sha256"],
        answers=answer_rows(data.cases, replies, repeats=1, with_texts=False),
        decisions=decision_rows(data.cases, replies, data.identity),
    )


def test_the_run_digest_does_not_depend_on_the_order_of_lines(tmp_path: Path) -> None:
    """Two journals with the same calls in another order are the same run."""
    journal = write_journal(tmp_path / "x.jsonl", cases_per_panel=1)
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    heads = [line for line in rest if b'"kind":"case"' in line]
    calls = [line for line in rest if b'"kind":"call"' in line]
    random.Random(7).shuffle(calls)
    shuffled = tmp_path / "y.jsonl"
    shuffled.write_bytes(b"".join([first, *heads, *calls]))

    assert _digest(journal) == _digest(shuffled)


def test_the_run_digest_depends_on_every_answer_and_decision(tmp_path: Path) -> None:
    """Another answer, and so other decisions, give another run digest."""
    one = write_journal(tmp_path / "x.jsonl", cases_per_panel=1)
    other = write_journal(tmp_path / "y.jsonl", cases_per_panel=1, shift=1)

    assert _digest(one) != _digest(other)


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("GPT-5.6-Sol", "gpt-5.6-sol"),
        ("org/Some Model:free", "org-some-model-free"),
        ("builtin:all-items", "builtin-all-items"),
        ("模型_7b", "-_7b"),
        ("x" * 60, "x" * 48),
        (None, "unnamed"),
    ],
)
def test_a_run_is_named_by_date_model_and_digest(model: str | None, slug: str) -> None:
    """The run_id is the date, the model in lower case with one dash for each run of other characters, and 8 hex."""
    assert f"2026-03-05-{slug}-0123abcd" == run_id("2026-03-05", model, "0123abcd" + "9" * 56)


def test_a_failed_case_has_bounds_but_no_score(tmp_path: Path) -> None:
    """A case without decisions gets null, and the worst and best that missing decisions allow."""
    journal = write_journal(tmp_path / "x.jsonl", panels=["drug_safety"], fail={0: ("judge", "timeout")})
    row = score_rows(score_cases(grade_journal(read_journal(journal))))[0]

    # Points +2 +1 +1 -1: nothing and the negative item gives 0, all positive items give 1.
    assert (None, None, 0.0, 1.0) == (row["score"], row["n_matched"], row["worst"], row["best"])
    assert ("failed", 4, []) == (row["state"], row["n_items"], row["flags"])


def test_an_answer_cut_by_its_limit_is_flagged(tmp_path: Path) -> None:
    """A truncated answer is judged as it stands, and its row says so."""
    journal = write_journal(tmp_path / "x.jsonl", panels=["drug_safety"], fail={1: ("answer", "truncated")})
    rows = score_rows(score_cases(grade_journal(read_journal(journal))))

    assert [[], ["answer-truncated"]] == [row["flags"] for row in rows]


@pytest.mark.parametrize(
    ("failure", "answer", "decision"),
    [
        (("answer", "pending"), "pending", "pending"),
        (("answer", "timeout"), "timeout", "unanswered"),
        (("judge", "pending"), "ok", "pending"),
        (("judge", "rate_limited"), "ok", "rate_limited"),
        (("judge", "ok"), "ok", "invalid_reply"),
    ],
    ids=["not asked", "answer failed", "not judged", "judge failed", "reply unreadable"],
)
def test_every_asked_item_has_a_row_whatever_happened(
    tmp_path: Path, failure: tuple[str, str], answer: str, decision: str
) -> None:
    """An item without a decision has a row that says why, with null for the decision."""
    journal = write_journal(tmp_path / "x.jsonl", panels=["drug_safety"], fail={0: failure})
    data = read_journal(journal)
    replies = case_replies(data)
    rows = decision_rows(data.cases, replies, data.identity)
    first = [row for row in rows if row["case_id"] == case_id_of("drug_safety", 0)]

    assert [answer, "ok"] == [row["state"] for row in answer_rows(data.cases, replies, repeats=1, with_texts=False)]
    assert [(index, decision, None) for index in range(4)] == [
        (row["item_index"], row["state"], row["matched"]) for row in first
    ]
