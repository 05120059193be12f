"""Verify a results folder, or one run of it: its files, its card, and every number computed again from the decisions.

In: a folder that `bedside-bench results` wrote. Out: findings, each with table, row, column, expected and found.
Numbers must be equal to the last digit where numpy and the machine are those of the run, else to 1e-12 of their size.
What nothing else in the folder determines (latency, tokens, names that a server gave) only the digests cover.
"""

from __future__ import annotations

import json
import math
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bedside_bench import __version__
from builder.dataset.folder import Finding, Verified, folder_digest, read_digests, recover, verify_files
from builder.errors import BadInput
from eval.calls.lines import check_certified
from eval.certificates.gate import check_record
from eval.judging.identity import protocol_id, semantics_sha256
from eval.numbers.summary import dumps_summary
from eval.results.card import RUNS, check_results_card, run_folders, source_of, stray_entries
from eval.results.recompute import Recomputed, recompute
from eval.results.schemas import ALL_SCHEMAS, KEYS
from eval.results.stored import UnreadableRunError, read_identity, read_summary, read_tables
from eval.results.structure import Tables, row_name, structure_findings
from eval.results.tables import Row, panel_order, run_id

RELATIVE: Final = 1e-12
"""Relative difference allowed between numbers of two numpy versions or machines."""
MOST_FINDINGS: Final = 50
"""Differing cells named a table; the rest is counted."""

ONLY_DIGESTS: Final = (
    "answers: n_chars without texts, finish_reason, model_returned, fingerprint, tokens, attempts, latency_ms; "
    "decisions: reply_sha256 of one-item replies; examples: physicians' ids, completions_group of models' answers, "
    "tags of ungraded examples; summary: times, usage, software, notices on calls, that certificates were recorded"
)
"""What nothing else in a folder determines."""

# Sentences that a later version may word otherwise.
_WORDS: Final = frozenset({"notices", "definitions", "reason"})

_ALSO_IN_SUMMARY: Final = frozenset(
    {"answer_temperature", "judge_temperature", "content_sha256", "data_repo", "data_revision", "certificate"}
)

Same = Callable[[object, object], bool]


def verify_run(folder: Path, expect: str | None = None) -> Verified:
    """Return every way in which a results folder, or one run's folder, is not what its decisions make it.

    Args:
        expect: the folder digest of the run (64 hex digits) that someone else vouches for; of several runs, one has it.
    """
    recover(folder)
    if not (folder / RUNS).is_dir():
        return _verify_one(folder, expect=expect)
    runs = run_folders(folder)
    if not runs:
        return Verified((Finding(RUNS, "runs", "at least one run", "none"),), None, "run")
    found = {run.name: _verify_one(run, name=run.name) for run in runs}
    findings = [*stray_entries(folder), *check_results_card(folder)]
    for name, verified in found.items():
        findings += [replace(finding, file=f"{RUNS}/{name}/{finding.file}") for finding in verified.findings]
    digests = {f"{RUNS}/{name}": verified.folder_digest or "none" for name, verified in found.items()}
    if expect is not None and expect.strip().lower() not in digests.values():
        findings.append(Finding(RUNS, "folder digest", f"one run with {expect.strip().lower()}", "none"))
    if len(found) == 1:
        return replace(next(iter(found.values())), findings=tuple(findings))
    facts = {"runs": str(len(found)), **_shared_facts(list(found.values()))}
    return Verified(tuple(findings), None, "run", facts=facts | digests)


def _shared_facts(found: Sequence[Verified]) -> dict[str, str]:
    names = dict.fromkeys(name for verified in found for name in verified.facts)
    return {name: "; ".join(dict.fromkeys(v.facts[name] for v in found if name in v.facts)) for name in names}


def _verify_one(folder: Path, *, expect: str | None = None, name: str | None = None) -> Verified:
    """Verify one run's folder; `name` is what its path says its run_id is."""
    findings = verify_files(folder, expect=expect)
    try:
        digests = read_digests(folder)
    except BadInput:
        return Verified(tuple(findings), None, None)
    digest, kind = folder_digest(folder), str(digests.get("kind"))
    if kind != "run":
        findings.append(Finding("digests.json", "kind", "run", kind))
    if name is not None and digests.get("run_id") != name:
        findings.append(Finding("digests.json", "run_id", f"{name}, the folder's name", str(digests.get("run_id"))))
    facts: dict[str, str] = {}
    try:
        tables = read_tables(folder)
        identity, summary = read_identity(tables), read_summary(tables)
        same, how = _comparison(summary)
        facts = {"compared": how, "digests alone": ONLY_DIGESTS}
        findings += _check_run(tables, identity=identity, summary=summary, digests=digests, same=same)
    except UnreadableRunError as error:
        findings.append(error.finding)
    return Verified(tuple(findings), digest, kind, digests.get("n_cases"), digests.get("n_items"),
                    digests.get("dataset_sha256"), facts)  # fmt: skip


def _comparison(summary: Mapping[str, Any]) -> tuple[Same, str]:
    """Return how numbers are compared, and in words: exactly only with the numpy and the machine of the run."""
    software = summary.get("software")
    made = software if isinstance(software, dict) else {}
    here = {"numpy": np.__version__, "machine": platform.machine()}
    words = f"numpy {here['numpy']} on {here['machine']}"
    if all(made.get(name) == value for name, value in here.items()):
        return _equal, f"to the last digit ({words}, as recorded)"
    return (
        _close,
        f"to {RELATIVE:g} of their size (here {words}; made with numpy {made.get('numpy')} on {made.get('machine')})",
    )


def _equal(a: object, b: object) -> bool:
    return a == b and type(a) is type(b)


def _close(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=RELATIVE)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[name], b[name]) for name in a)
    return _equal(a, b)


def _check_run(
    tables: Tables, *, identity: Mapping[str, Any], summary: Mapping[str, Any], digests: Mapping[str, Any], same: Same
) -> list[Finding]:
    """Compare everything that follows from a run's answers and decisions with what its tables say."""
    findings = [*structure_findings(tables, identity), *_names(identity, summary), *_certified(identity, summary)]
    if findings:
        return findings
    try:
        true = recompute(tables, identity=identity, summary=summary)
    except BadInput as error:
        return [Finding("decisions.parquet", "points", "those of the grading method", str(error))]
    name = str(digests.get("run_id"))
    findings += _check_ids(true, tables, identity=identity, name=name)
    for table in true.tables:
        expected = [{**row, "run_id": name} for row in true.tables[table]]
        findings += first_findings(_differing_cells(table, expected, tables[table], same), f"{table}.parquet")
    findings += _check_summary(true, tables, summary=summary, same=same)
    return findings + list(_check_digests(true, digests, tables=tables))


def _names(identity: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[Finding]:
    """Compare the names that follow from the identity alone, and the summary's settings with it."""
    semantics = semantics_sha256(identity)
    if identity["semantics_sha256"] != semantics:
        yield Finding("run.parquet", "identity_json: semantics_sha256", semantics, str(identity["semantics_sha256"]))
    if identity["protocol"] != protocol_id(identity):
        yield Finding("run.parquet", "identity_json: protocol", protocol_id(identity), str(identity["protocol"]))
    # So the settings are those of every run: nothing a summary says makes us draw resamples for hours.
    samples, seed = summary.get("bootstrap_samples"), summary.get("bootstrap_seed")
    if (
        type(samples) is not int
        or type(seed) is not int
        or semantics_sha256(identity, samples=samples, seed=seed) != semantics
    ):
        what = "run: summary_json: bootstrap_samples, bootstrap_seed"
        yield Finding("run.parquet", what, "the settings of the run's semantics_sha256", f"{samples}, {seed}")


def _certified(identity: Mapping[str, Any], summary: Mapping[str, Any]) -> Iterator[Finding]:
    """Hold the certificates that travel with a run against its judges, and each against its own decisions."""
    kept, what = summary.get("certified"), "run: summary_json: certified"
    if kept is None:
        return
    try:
        check_certified(kept, n_judges=len(identity["judges"]))
    except ValueError as error:
        yield Finding("run.parquet", what, "what certificates said at the start of a run", str(error))
        return
    for problem in check_record(kept, identity):
        yield Finding("run.parquet", what, "certificates of the run's judges", problem)


def _check_ids(true: Recomputed, tables: Tables, *, identity: Mapping[str, Any], name: str) -> Iterator[Finding]:
    digest = true.run_sha256
    expected = run_id(name[:10], identity["answer"]["model"], digest)
    if name != expected:
        yield Finding("run.parquet", "run_id (date of the first call, answer model, run_sha256)", expected, name)
    if tables["run"][0]["date"] != name[:10] or not re.fullmatch(r"\d{4}-\d\d-\d\d", name[:10]):
        yield Finding("run.parquet", "run: date", name[:10], str(tables["run"][0]["date"]))
    for row in tables["decisions"]:
        if not row["item_id"].endswith(f"_{row['item_index']}"):
            yield Finding("decisions.parquet", f"{row_name('decisions', row)}: item_id",
                          f"an id that ends in _{row['item_index']}", row["item_id"])  # fmt: skip


def _differing_cells(table: str, expected: Sequence[Row], found: Sequence[Row], same: Same) -> Iterator[Finding]:
    key = KEYS[table]
    by_key = {tuple(row[name] for name in key): row for row in found}
    for row in expected:
        other = by_key[tuple(row[name] for name in key)]
        if row == other:
            continue
        for column in ALL_SCHEMAS[table].names:
            if not same(row[column], other[column]):
                # Of two places that must say the same and nothing else says, both are named.
                twice = " and summary_json" if table == "run" and column in _ALSO_IN_SUMMARY else ""
                what = f"{row_name(table, row)}: {column}{twice}"
                yield Finding(f"{table}.parquet", what, shown_value(row[column]), shown_value(other[column]))


def shown_value(value: object) -> str:
    """Return a cell's value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."


def first_findings(findings: Iterable[Finding], file: str) -> list[Finding]:
    """Return the first findings of a file's cells, and one more that counts the rest."""
    listed = list(findings)
    if len(listed) <= MOST_FINDINGS:
        return listed
    more = len(listed) - MOST_FINDINGS
    return [*listed[:MOST_FINDINGS], Finding(file, "further cells", "as computed", f"{more} others")]


def _check_summary(true: Recomputed, tables: Tables, *, summary: Mapping[str, Any], same: Same) -> Iterator[Finding]:
    software = summary.get("software")
    current = isinstance(software, dict) and software.get("bedside-bench") == __version__
    for path, expected, found in _differences(true.summary, summary, same, strict=current):
        yield Finding("run.parquet", f"run: summary_json: {path}", shown_value(expected), shown_value(found))
    if current and dumps_summary(summary) != tables["run"][0]["summary_json"]:
        yield Finding("run.parquet", "run: summary_json", "the form that `score` writes", "another")


def _differences(
    true: object, found: object, same: Same, *, strict: bool, at: str = ""
) -> Iterator[tuple[str, object, object]]:
    """Yield (path, expected, found) of every differing value of two summaries.

    Args:
        strict: whether words and the set of members must be equal too: they change from version to version.
    """
    if isinstance(true, dict) and isinstance(found, dict):
        for name in true.keys() | found.keys() if strict else true.keys() & found.keys():
            if strict or name not in _WORDS:
                here, there = true.get(name, _ABSENT), found.get(name, _ABSENT)
                yield from _differences(here, there, same, strict=strict, at=f"{at}.{name}" if at else name)
    elif isinstance(true, list) and isinstance(found, list) and len(true) == len(found):
        for index, (one, other) in enumerate(zip(true, found, strict=True)):
            yield from _differences(one, other, same, strict=strict, at=f"{at}[{index}]")
    elif not same(true, found):
        yield at, true, found


_ABSENT: Final = "no such member"


_MEMBERS: Final = frozenset(
    {"format", "kind", "run_id", "run_sha256", "identity_sha256", "semantics_sha256", "dataset_sha256"}
    | {"content_sha256", "rubric_sha256", "n_cases", "n_items", "panels", "splits", "canaries", "source", "made_by"}
    | {"files"}
)


def _check_members(digests: Mapping[str, Any], tables: Tables) -> Iterator[Finding]:
    """Compare the form of a run's `digests.json`, and its panels, with what they must be."""
    if set(digests) != _MEMBERS:
        yield Finding("digests.json", "members", ", ".join(sorted(_MEMBERS)), ", ".join(sorted(digests)))
    counts = Counter(case["benchmark"] for case in tables["scores"] if case["answer_repeat"] == 0)
    panels = [{"id": panel, "n": counts[panel], "sha256": None} for panel in panel_order(counts)]
    if digests.get("panels") != panels:
        yield Finding("digests.json", "panels", shown_value(panels), shown_value(digests.get("panels")))
    kind, repo = source_of(digests).get("kind"), source_of(digests).get("repo")
    if kind != (expected := "hub" if repo else "tree"):
        yield Finding("digests.json", "source.kind", expected, shown_value(kind))
    made_by = digests.get("made_by")
    if not isinstance(made_by, dict) or set(made_by) != {"bedside-bench", "pyarrow"}:
        yield Finding("digests.json", "made_by", "an object of bedside-bench, pyarrow", shown_value(made_by))


def _check_digests(true: Recomputed, digests: Mapping[str, Any], *, tables: Tables) -> Iterator[Finding]:
    """Compare what `digests.json` says of the run with its tables."""
    row = tables["run"][0]
    expected = {
        "run_sha256": true.run_sha256,
        "rubric_sha256": true.rubric_sha256,
        **{name: row[name] for name in ("identity_sha256", "semantics_sha256", "dataset_sha256", "content_sha256")},
        "n_cases": len({row["case_id"] for row in tables["scores"]}),
        "n_items": true.n_items,
    }
    for name, value in expected.items():
        if digests.get(name) != value:
            yield Finding("digests.json", name, shown_value(value), shown_value(digests.get(name)))
    for name in ("repo", "revision"):
        value, found = row[f"data_{name}"], source_of(digests).get(name)
        if found != value:
            yield Finding("digests.json", f"source.{name}", shown_value(value), shown_value(found))
    yield from _check_members(digests, tables)
    canaries = digests.get("canaries")
    if not isinstance(canaries, list) or not all(isinstance(text, str) for text in canaries):
        yield Finding("digests.json", "canaries", "a list of strings", shown_value(canaries))
    splits = digests.get("splits")
    if not isinstance(splits, dict) or not all(isinstance(own, str) for own in splits.values()):
        yield Finding("digests.json", "splits", "an object from Parquet split to the cases' own", shown_value(splits))
