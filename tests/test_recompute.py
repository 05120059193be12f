"""Recomputing a run from its decisions: every value of its summary, its identity, the order of its rows, its jury."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bedside_bench import sha256_json
from builder.dataset.folder import write_parquet
from eval.judging.identity import protocol_id, semantics_sha256
from eval.results.folder import verify_run, write_results
from eval.results.schemas import SCHEMAS
from tests.journals import write_journal, write_summary
from tests.tampering import HERE, PANELS, another, copy_of_run, lines, remake_digests, results_folder, tamper

# Of the summary, what only the journal knows; `data`, temperatures, content_sha256 stand in the run row too.
ONLY_IN_SUMMARY = {"started_at", "finished_at", "usage", "software"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one run."""
    return results_folder(tmp_path_factory.mktemp("results"))


@pytest.fixture
def run(results: Path, tmp_path: Path) -> Path:
    """A copy of that run's folder to tamper with."""
    return copy_of_run(results, tmp_path)


def changed_json(text: str, path: tuple[str | int, ...]) -> str:
    """Return a summary's text with the value at a path changed."""
    value = json.loads(text)
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    old = inner[path[-1]]
    inner[path[-1]] = 1 if old is None else {"x": 1} if old == {} else another(old)
    return json.dumps(value, indent=2) + "\n"


def summary_paths() -> list[tuple[str | int, ...]]:
    """Return the paths that every summary has, one of each kind in lists and panels."""
    panel = ["n_expected", "n_failed", "n_pending", "worst", "best", "ci_degenerate", "recall", "precision"]
    panel += ["severe_matched", "minus3_matched", "severe_rate", "negatives_judged", "negative_hit_rate"]
    panel += ["n_unresolved"]
    top = [
        "protocol_version",
        "dataset_sha256",
        "answer_model",
        "judge_model",
        "answer_temperature",
        "judge_temperature",
    ]
    top += ["judge_passes_per_answer", "completed_cases", "errors", "overall_macro_mean", "bootstrap_samples"]
    top += ["bootstrap_seed", "identity_sha256", "semantics_sha256", "content_sha256", "dialect", "n_expected"]
    top += ["n_graded", "n_failed", "n_pending", "overall_worst", "overall_best", "overall_reason", "certificate"]
    top += ["certified"]
    top += ["overall_ci_degenerate"]
    deeper: list[tuple[str | int, ...]] = [("overall_ci95", 0), ("overall_ci95", 1), ("states", "answer", "ok")]
    deeper += [("data", name) for name in ("repo", "revision", "n_cases")]
    deeper += [("benchmarks", "drug_safety", "n"), ("benchmarks", "drug_safety", "mean")]
    deeper += [("benchmarks", "safety_diagnostic", "ci95", 1), ("notices", 0), ("states", "judge", "invalid_reply")]
    deeper += [("failed_cases", 0, name) for name in ("case_id", "benchmark", "role", "state", "reason")]
    return [*((name,) for name in top), *deeper, *(("panels", "safety_diagnostic", name) for name in panel)]


@pytest.mark.parametrize("path", summary_paths(), ids=lambda path: ".".join(map(str, path)))
def test_a_changed_value_of_the_summary_is_named(run: Path, path: tuple[str | int, ...]) -> None:
    """Every value of the kept summary that follows from the run is computed again and named by its path."""
    tamper(run, "run", 0, "summary_json", lambda text: changed_json(text, path))

    assert "summary_json" in lines(run)
    assert str(path[0]) in lines(run)


def test_every_value_of_the_summary_is_checked_or_listed(run: Path) -> None:
    """No member of a summary is left out of verification in silence."""
    summary = json.loads(pq.read_table(run / "run.parquet")["summary_json"][0].as_py())
    checked = {path[0] for path in summary_paths()} | {"panels", "definitions"}

    assert set(summary) == checked | ONLY_IN_SUMMARY


@pytest.mark.parametrize("table", ["scores", "decisions", "answers"])
def test_a_row_that_is_gone_or_there_twice_is_named(run: Path, table: str) -> None:
    """Rows cannot be dropped or doubled."""
    path = run / f"{table}.parquet"
    rows = pq.read_table(path).to_pylist()
    for changed in (rows[1:], [rows[0], *rows]):
        write_parquet(pa.Table.from_pylist(changed, schema=SCHEMAS[table]), path)
        remake_digests(run)
        assert rows[0]["case_id"] in lines(run)


def test_cases_in_another_order_are_found(run: Path) -> None:
    """The intervals depend on the order of the cases, so it is checked."""
    path = run / "scores.parquet"
    rows = pq.read_table(path).to_pylist()
    write_parquet(pa.Table.from_pylist([rows[2], rows[1], rows[0], *rows[3:]], schema=SCHEMAS["scores"]), path)
    remake_digests(run)

    assert f"scores.parquet: case {rows[0]['case_id']}: case_id" in lines(run)


def _identity(text: str, change: Callable[[dict[str, Any]], object]) -> str:
    identity = json.loads(text)
    change(identity)
    return json.dumps(identity, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize(
    "change",
    [
        lambda identity: identity.pop("judges"),
        lambda identity: identity["answer"].update(model="another"),
        lambda identity: identity.update(repeats=3),
        lambda identity: identity.update(note="x"),
    ],
    ids=["member gone", "another model", "more repeats", "a member more"],
)
def test_a_changed_identity_is_found(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The identity is bound to the run by its digest."""
    tamper(run, "run", 0, "identity_json", lambda text: _identity(text, change))

    assert "identity_json: expected the identity whose digest identity_sha256 is" in lines(run)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a": NaN}', "[" * 100_000, '{"a": "\\ud800"}'],
    ids=["empty", "list", "broken", "NaN", "deep", "half a character"],
)
@pytest.mark.parametrize("column", ["identity_json", "summary_json"])
def test_broken_json_is_a_finding_not_a_crash(run: Path, column: str, text: str) -> None:
    """A cell that should hold a JSON object and does not is named."""
    tamper(run, "run", 0, column, lambda _: text)

    assert f"{column}: expected a JSON object" in lines(run)


def test_points_that_no_plan_panel_has_are_a_finding(run: Path) -> None:
    """Points that cannot be scored end in a finding."""
    rows = pq.read_table(run / "decisions.parquet").to_pylist()
    number = next(number for number, row in enumerate(rows) if row["benchmark"] == "safety_diagnostic")
    tamper(run, "decisions", number, "points", lambda _: 9.0)

    assert "decisions.parquet: points: expected those of the grading method" in lines(run)


def test_a_huge_number_of_resamples_is_not_computed(run: Path) -> None:
    """A summary cannot make verification run for hours."""
    tamper(run, "run", 0, "summary_json", lambda text: text.replace("10000", "1000000000000"))

    assert "summary_json: bootstrap_samples, bootstrap_seed: expected the settings" in lines(run)


def _with_software(run: Path, numpy: str, change: Callable[[float], float]) -> None:
    """Make the run's numbers those of another numpy version, one of them changed."""
    scores = pq.read_table(run / "run.parquet").to_pylist()[0]
    summary = json.loads(scores["summary_json"])
    summary["software"]["numpy"] = numpy
    summary["overall_ci95"][0] = change(summary["overall_ci95"][0])
    tamper(run, "run", 0, "summary_json", lambda _: json.dumps(summary, indent=2) + "\n")
    tamper(run, "run", 0, "overall_ci_low", change)


def test_another_numpy_may_differ_in_the_last_digits(run: Path) -> None:
    """With another numpy version numbers are compared to 1e-12 of their size, and verify says so."""
    _with_software(run, "1.0", lambda low: low * (1 + 1e-14))
    verified = verify_run(run)

    assert () == verified.findings
    assert verified.facts["compared"].startswith("to 1e-12 of their size")
    _with_software(run, "1.0", lambda low: low * (1 + 1e-9))
    assert "overall_ci95[0]" in lines(run)


def test_a_summary_of_another_version_may_have_other_words_and_members(run: Path) -> None:
    """A summary that another version of this program wrote is held to its numbers, not to its sentences."""

    def older(text: str) -> str:
        summary = json.loads(text)
        del summary["overall_ci_degenerate"]
        summary["software"]["bedside-bench"] = "0.0.1"
        summary["notices"] = ["older words"]
        return json.dumps(summary)

    tamper(run, "run", 0, "summary_json", older)
    assert lines(run) == ""
    tamper(run, "run", 0, "summary_json", lambda text: text.replace('"n_graded": 5', '"n_graded": 6'))
    assert "summary_json: n_graded: expected 5, found 6" in lines(run)


def test_the_same_numpy_may_not(run: Path) -> None:
    """With the recorded numpy and machine even the last digit counts."""
    _with_software(run, np.__version__, lambda low: np.nextafter(low, 1).item())

    assert "overall_ci95[0]" in lines(run)
    assert "run.parquet: run: overall_ci_low" in lines(run)


def _add_judge(journal: Path) -> None:
    """Make a one-judge journal one of two judges and three repeats that mostly agree."""
    header, *rest = (json.loads(line) for line in journal.read_bytes().splitlines())
    identity = header["identity"]
    identity["judges"] = [identity["judges"][0], identity["judges"][0] | {"model": "second-judge"}]
    identity["repeats"] = 3
    identity["semantics_sha256"] = semantics_sha256(identity)
    identity["protocol"] = protocol_id(identity)
    header["identity_sha256"] = sha256_json(identity)
    more = [
        line
        | {"key": f"{line['key']}{judge}{repeat}", "judge": judge, "repeat": repeat, "text": _flipped(line, repeat)}
        for line in rest
        if line.get("role") == "judge"
        for judge in (0, 1)
        for repeat in (0, 1, 2)
    ]
    kept = [line for line in rest if line.get("role") != "judge"]
    journal.write_text("".join(json.dumps(line) + "\n" for line in [header, *kept, *more]))


def _flipped(line: dict[str, Any], repeat: int) -> str:
    """Return the reply, in the last repeat with its first decision the other way."""
    reply = json.loads(line["text"])
    if repeat == 2:
        reply["decisions"][0]["matched"] = not reply["decisions"][0]["matched"]
    return json.dumps(reply)


def test_a_jury_is_recomputed_from_all_its_decisions(tmp_path: Path) -> None:
    """Two judges with three repeats each: every decision is kept, and scores come from the majority."""
    journal = write_journal(tmp_path / "x.jsonl", panels=PANELS)
    _add_judge(journal)
    run = write_results(journal, tmp_path / "out", summary_bytes=write_summary(journal, **HERE)).path
    rows = pq.read_table(run / "decisions.parquet").to_pylist()

    # (4 + 4 + 7 + 7) items x 2 judges x 3 repeats.
    assert 132 == len(rows)
    assert {"test-judge", "second-judge"} == {row["judge_model"] for row in rows}
    assert [0.5] == pq.read_table(run / "scores.parquet")["score"].to_pylist()[:1]
    assert lines(tmp_path / "out") == ""
    before = tamper(run, "decisions", 0, "points", lambda points: points + 1)
    assert f"case {before['case_id']}, answer 0, item 0, judge 1, repeat 2: points" in lines(run)
