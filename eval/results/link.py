"""Whether a run belongs to the data it names, and whether a mirror is that of its source.

In: one run's folder and the mirror that was judged; or a mirror and its source. Out: findings; those of a mirror begin
with its path. Whether the run's numbers follow from its decisions is not asked here (`verify`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bedside_bench import PUBLIC_SPLIT, sha256_json
from builder.dataset.digests import DIGESTS_NAME, Finding, read_digests
from builder.dataset.verify import verify_mirror
from builder.errors import BadInput
from builder.mirror import build_mirror
from builder.tree.sources import Source
from eval.calls.call import case_heads
from eval.cases import Case, CaseSet, read_cases, selected_by
from eval.results.card import source_of
from eval.results.schemas import EXAMPLES
from eval.results.stored import UnreadableRunError, read_identity, read_tables
from eval.results.structure import Tables
from eval.results.tables import Row, example_rows, rubric_sha256
from eval.results.verify import first_findings, shown_value


@dataclass(frozen=True, slots=True)
class _Pair:
    """A run as it is stored, and the data it is held against: `cases` are the mirror's by id, `rows` the run's."""

    tables: Tables
    identity: Mapping[str, Any]
    digests: Mapping[str, Any]
    data: CaseSet
    cases: Mapping[str, Case]
    rows: Mapping[str, Row]

    @property
    def judged(self) -> list[Case]:
        """The mirror's cases that the run has, in dataset order."""
        return [case for case in self.data.cases if case.case_id in self.rows]


def check_link(run_folder: Path, mirror: Path) -> list[Finding]:
    """Return every way in which a mirror is not the data that a run was made on; none means that it is.

    The mirror must hold by itself. Its digests, splits and licence must be those that the run states, and the run's
    cases those that its selection takes from the mirror, in dataset order, each with the items that were judged.
    """
    findings = _of_mirror(mirror, verify_mirror(mirror, brief=True).findings)
    try:
        digests, tables = read_digests(run_folder), read_tables(run_folder)
        identity = read_identity(tables)
    except UnreadableRunError as error:
        return [*findings, error.finding]
    except BadInput as error:
        return [*findings, Finding(DIGESTS_NAME, "not readable", "the digests of a run", str(error))]
    if findings:
        return findings
    data = read_cases(mirror)
    cases = {case.case_id: case for case in data.cases}
    pair = _Pair(tables, identity, digests, data, cases, {row["case_id"]: row for row in tables["scores"]})
    return [
        *_of_mirror(mirror, _content(read_digests(mirror), data)),
        *_names(pair),
        *first_findings(_selected(pair), "scores.parquet"),
        *first_findings(_cases(pair), "scores.parquet"),
        *first_findings(_items(pair), "decisions.parquet"),
        *first_findings(_examples(pair), f"{EXAMPLES}.parquet"),
        *_rubric(pair),
    ]


def _of_mirror(mirror: Path, findings: Sequence[Finding]) -> list[Finding]:
    return [replace(finding, file=f"{mirror}/{finding.file}") for finding in findings]


def _content(digests: Mapping[str, Any], data: CaseSet) -> list[Finding]:
    """Compare the one digest that a brief look at a mirror leaves out with its rows."""
    if digests["content_sha256"] == data.content_sha256:
        return []
    expected = f"{data.content_sha256}, as in the rows"
    return [Finding(DIGESTS_NAME, "content_sha256", expected, digests["content_sha256"])]


def _names(pair: _Pair) -> Iterator[Finding]:
    """Compare what a run says of its data as a whole with the mirror."""
    (row,), data = pair.tables["run"], pair.data
    for name, expected in (("dataset_sha256", data.dataset_sha256), ("content_sha256", data.content_sha256)):
        if row[name] != expected:
            yield Finding("run.parquet", f"run: {name}", shown_value(expected), shown_value(row[name]))
    if pair.identity["n_cases"] != len(data.cases):
        what = "run: identity_json: n_cases"
        yield Finding("run.parquet", what, str(len(data.cases)), shown_value(pair.identity["n_cases"]))
    stated = {name: pair.digests.get(name) for name in ("splits", "canaries")}
    stated["source.license"] = source_of(pair.digests).get("license")
    facts = {"splits": dict(data.splits), "canaries": list(data.canaries), "source.license": data.license}
    for name, value in facts.items():
        if stated[name] != value:
            yield Finding(DIGESTS_NAME, name, shown_value(value), shown_value(stated[name]))
    ids = sha256_json(sorted(case.case_id for case in pair.judged))
    if row["cases_sha256"] != ids:
        yield Finding("run.parquet", "run: cases_sha256", shown_value(ids), shown_value(row["cases_sha256"]))


def _selected(pair: _Pair) -> Iterator[Finding]:
    """Compare the run's cases with those that its selection takes: none left out, none beside it."""
    try:
        chosen = pair.identity["selection"]
        selected = selected_by(pair.data.cases, chosen)
    except (BadInput, KeyError, TypeError) as error:
        found = f"{shown_value(pair.identity.get('selection'))} ({error})"
        yield Finding("run.parquet", "run: identity_json: selection", "a selection of the mirror's cases", found)
        return
    ids = dict.fromkeys(case.case_id for case in selected)
    for case_id in ids:
        if case_id not in pair.rows:
            yield Finding("scores.parquet", f"case {case_id}", "a row: the run's selection has it", "none")
    for case_id in pair.rows:
        if case_id in pair.cases and case_id not in ids:
            yield Finding("scores.parquet", f"case {case_id}", "no row: the run's selection lacks it", "one")


def _cases(pair: _Pair) -> Iterator[Finding]:
    """Compare the run's cases with the mirror's: each is there, with its panel and method, in dataset order."""
    for case_id, row in pair.rows.items():
        case = pair.cases.get(case_id)
        if case is None:
            yield Finding("scores.parquet", f"case {case_id}", "a case of the mirror", "none with this id there")
            continue
        for column, value in (("benchmark", case.benchmark), ("grading_method", case.grading_method)):
            if row[column] != value:
                yield Finding("scores.parquet", f"case {case_id}: {column}", value, str(row[column]))
    held = (case_id for case_id in pair.rows if case_id in pair.cases)
    for place, (case, case_id) in enumerate(zip(pair.judged, held, strict=True)):
        if case.case_id != case_id:
            yield Finding("scores.parquet", f"order of cases: place {place}", case.case_id, case_id)
            return


def _items(pair: _Pair) -> Iterator[Finding]:
    """Compare every item that was judged with the mirror's, once however many judges saw it."""
    seen: dict[tuple[str, int], None] = {}
    found: dict[Finding, None] = {}
    for row in pair.tables["decisions"]:
        if case := pair.cases.get(row["case_id"]):
            seen[case.case_id, row["item_index"]] = None
            found |= dict.fromkeys(_item(row, case))
    yield from found
    for case in pair.judged:
        for index in range(len(case.items)):
            if (case.case_id, index) not in seen:
                what = f"case {case.case_id}, item {index}"
                yield Finding("decisions.parquet", what, "decisions: the mirror has it", "none")


def _item(row: Row, case: Case) -> Iterator[Finding]:
    index, what = row["item_index"], f"case {case.case_id}, item {row['item_index']}"
    if index is None or not 0 <= index < len(case.items):
        yield Finding("decisions.parquet", what, f"one of the {len(case.items)} items of the mirror", str(index))
        return
    item = case.items[index]
    expected = {"benchmark": case.benchmark, "item_id": item.item_id, "points": _float(item.points)}
    for column, value in expected.items():
        if row[column] != value:
            yield Finding("decisions.parquet", f"{what}: {column}", shown_value(value), shown_value(row[column]))


def _examples(pair: _Pair) -> Iterator[Finding]:
    """Compare what a HealthBench run says of its examples (tags, groups, labels) with the mirror."""
    found = {row["case_id"]: row for row in pair.tables.get(EXAMPLES, ())}
    for expected in example_rows(case_heads(pair.judged)):
        row = found.get(expected["case_id"], {})
        for column, value in expected.items():
            if row.get(column) != value:
                what = f"case {expected['case_id']}: {column}"
                yield Finding(f"{EXAMPLES}.parquet", what, shown_value(value), shown_value(row.get(column)))


def _rubric(pair: _Pair) -> Iterator[Finding]:
    """Compare the digest of the rubrics that were judged with that of the same cases' rubrics in the mirror."""
    expected = rubric_sha256(
        {"case_id": case.case_id, "item_id": item.item_id, "points": _float(item.points)}
        for case in pair.judged
        for item in case.items
    )
    if pair.digests.get("rubric_sha256") != expected:
        found = shown_value(pair.digests.get("rubric_sha256"))
        yield Finding(DIGESTS_NAME, "rubric_sha256", shown_value(expected), found)


def _float(points: float | None) -> float | None:
    return None if points is None else float(points)


def check_source(mirror: Path, source: Source) -> list[Finding]:
    """Return where a mirror is not what its source gives: the source is built anew beside it and the digests compared.

    The mirror's own panels, splits and licence are taken from its digests. What is wrong with the source is named too.

    Raises:
        BadInput: the source cannot be built at all.
        DigestMismatch: what was built does not read back as the source.
    """
    if broken := _of_mirror(mirror, verify_mirror(mirror, brief=True).findings):
        return broken
    stated = read_digests(mirror)
    with TemporaryDirectory(prefix="bedside-bench-") as folder:
        built = build_mirror(source, Path(folder) / "mirror", **_settings(stated, source))
        if not built.report.ok:
            errors = (problem for problem in built.report.problems if problem.severity == "error")
            named = (Finding(p.file, p.field or p.rule, p.expected, p.found) for p in errors)
            return first_findings(named, "source")
        true = read_digests(built.folder)
    return _of_mirror(mirror, list(_differences(true, stated)))


def _settings(digests: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """Return the options of the build that a mirror's digests tell of."""
    splits = digests["splits"]
    public = [name for name, own in splits.items() if own == PUBLIC_SPLIT]
    return {
        "panels": [panel["id"] for panel in digests["panels"]],
        "split_name": public[0] if public else PUBLIC_SPLIT,
        "held_out": any(own != PUBLIC_SPLIT for own in splits.values()),
        "license_id": None if source.license else digests["source"]["license"],
    }


def _differences(true: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield where two mirrors' digests name other data: as a whole, and panel by panel."""
    pairs = {name: (true[name], stated[name]) for name in ("dataset_sha256", "content_sha256", "splits")}
    pairs["source.license"] = (true["source"]["license"], stated["source"]["license"])
    theirs = {panel["id"]: panel for panel in stated["panels"]}
    pairs |= {f"panels: {panel['id']}": (panel, theirs.get(panel["id"])) for panel in true["panels"]}
    for what, (expected, found) in pairs.items():
        if expected != found:
            yield Finding(DIGESTS_NAME, what, f"{shown_value(expected)}, as in the source", shown_value(found))
