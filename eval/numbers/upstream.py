"""Read result files of the published BedsideBench runner, and minimal lines, into a `RunData`.

In: JSONL, one finished or failed case a line: upstream's rows (decisions with ids and points), or minimal lines
{case_id, answer, matched: {item_id: bool}}, whose points come from a mirror's cases. Out: what the summary needs.

Strict where a number could be wrong: a line that does not parse or whose decisions are incomplete is refused by number;
only a last line cut off by a crash is left out, and said. Lines end at "\\n" only: answers hold U+2028, U+2029 and
U+0085, which the published runner writes but cannot read back. Scores are recomputed, never taken over.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bedside_bench import PANEL_IDS
from builder.errors import BadInput
from eval.judging.graded import GradedCase, RunData
from eval.judging.protocol import PROTOCOL
from eval.numbers.defaults import UPSTREAM, UPSTREAM_VETO
from eval.numbers.notices import count
from eval.numbers.scoring import score_case
from eval.numbers.upstream_rows import KnownCase, pending_case, read_case, shown

ONE_RUN: Final = ("protocol_version", "answer_model", "judge_model")
"""Fields that must not differ between two rows of one file; a row may leave them out."""

MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class _Row:
    """One line: its number, its parsed object, and the case as it stands after it."""

    number: int
    fields: Mapping[str, Any]
    case: GradedCase

    @property
    def graded(self) -> bool:
        return self.case.matched is not None


def read_upstream(
    path: Path,
    *,
    cases: Mapping[str, KnownCase] | None = None,
    dataset_sha256: str | None = None,
    content_sha256: str | None = None,
    semantics_sha256: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> RunData:
    """Return the run that a result file holds.

    A later success takes the place of an earlier row of its case; a failure never undoes a success.

    Args:
        cases: case id -> case, in dataset order: the selection. Rows of other cases are left out, cases without a row
            are pending. Without it every case of the file is selected, and cases are ordered by panel and case id.
        dataset_sha256, content_sha256, data: of the mirror that `cases` come from.

    Raises:
        BadInput: a line is not a result row, decisions do not fit their case, or two runs are mixed.
    """
    rows, notices = _read_rows(path, cases)
    _check_one_run(path, rows)
    kept = [row for row in rows if cases is None or row.case.case_id in cases]
    if len(kept) < len(rows):
        notices.append(f"{count(len(rows) - len(kept), 'row')} of cases that are not selected: left out")
    final = _final_rows(kept)
    order = list(cases) if cases is not None else _by_panel(final)
    last = {row.case.case_id: row for row in kept}
    index = {case_id: position for position, case_id in enumerate(order)}
    graded = [case_id for case_id, row in final.items() if row.graded]
    answer_model, judge_model = _common(final.values(), "answer_model", "judge_model")
    judged = [row for row in final.values() if row.graded]
    answer_temperature, judge_temperature = _common(judged, "answer_temperature", "judge_temperature")
    return RunData(
        protocol_version=_protocol(rows, notices),
        cases=tuple(final[id_].case if id_ in final else pending_case(id_, (cases or {})[id_]) for id_ in order),
        file_order=tuple(index[case_id] for case_id in graded),
        answer_model=answer_model,
        judge_model=judge_model,
        answer_temperature=answer_temperature,
        judge_temperature=judge_temperature,
        started_at=min(_times(kept, "started_at"), default=None),
        finished_at=max(_times(kept, "finished_at"), default=None),
        dataset_sha256=dataset_sha256,
        content_sha256=content_sha256,
        semantics_sha256=semantics_sha256,
        data=data or {},
        states=_states(final.values()),
        notices=(*notices, *_order_notice(cases), *_score_notices(final.values())),
        relapsed=tuple(index[case_id] for case_id in graded if not last[case_id].graded),
    )


def _read_rows(path: Path, cases: Mapping[str, KnownCase] | None) -> tuple[list[_Row], list[str]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    rows, notices = [], []
    for number, line in filled:
        where = f"{path}:{number}"
        try:
            fields = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            if number != filled[-1][0]:
                raise BadInput(f"{where}: expected a JSON object on the line, found none: {error}") from error
            notices.append(f"line {number}, the last, does not parse (cut off?) and was left out")
            continue
        rows.append(_Row(number, fields, read_case(where, fields, cases)))
    if not rows and cases is None:
        raise BadInput(f"{path}: expected result rows, found none")
    return rows, notices


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key comes twice in one object")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _check_one_run(path: Path, rows: Sequence[_Row]) -> None:
    """Refuse a file whose rows name two models or protocols, as the published runner does."""
    for name in ONE_RUN:
        first: _Row | None = None
        for row in rows:
            value = row.fields.get(name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise BadInput(f"{path}:{row.number}: {name}: expected text or null, found {shown(value)}")
            first = first or row
            if value != first.fields[name]:
                was = f"line {first.number} has {shown(first.fields[name])}"
                raise BadInput(f"{path}:{row.number}: {name} is {shown(value)}, {was}; split the file by run")


def _final_rows(rows: Sequence[_Row]) -> dict[str, _Row]:
    """Return each case's row that counts; graded ones in the order in which their first success appears."""
    graded: dict[str, _Row] = {}
    failed: dict[str, _Row] = {}
    for row in rows:
        (graded if row.graded else failed)[row.case.case_id] = row
    return graded | {case_id: row for case_id, row in failed.items() if case_id not in graded}


def _by_panel(final: Mapping[str, _Row]) -> list[str]:
    def place(case_id: str) -> tuple[int, str, str]:
        panel = final[case_id].case.benchmark
        return (PANEL_IDS.index(panel) if panel in PANEL_IDS else len(PANEL_IDS), panel, case_id)

    return sorted(final, key=place)


def _common(rows: Iterable[_Row], first: str, second: str) -> tuple[Any, Any]:
    """Return two fields where every row has the same pair, else null for both, as upstream does."""
    pairs = {(_scalar(row.fields.get(first)), _scalar(row.fields.get(second))) for row in rows}
    return pairs.pop() if len(pairs) == 1 else (None, None)


def _scalar(value: Any) -> str | int | float | None:
    return value if isinstance(value, str) or _number(value) else None


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < sys.float_info.max


def _protocol(rows: Sequence[_Row], notices: list[str]) -> str:
    stated = next((row.fields["protocol_version"] for row in rows if row.fields.get("protocol_version")), None)
    if stated is None:
        notices.append(f"the file states no protocol: taken as {PROTOCOL}")
    return str(stated or PROTOCOL)


def _times(rows: Iterable[_Row], name: str) -> Iterator[str]:
    return (value for row in rows if isinstance(value := row.fields.get(name), str))


def _states(rows: Iterable[_Row]) -> dict[str, dict[str, int]]:
    """Count the calls whose end a row tells; upstream's transport errors do not say which call they ended."""
    cases = [row.case for row in rows]
    answered = sum(case.answer_state == "ok" for case in cases)
    judged = {
        "invalid_reply": sum(case.failed_state == "invalid_reply" for case in cases),
        "ok": sum(case.matched is not None for case in cases),
    }
    return {
        "answer": {"ok": answered} if answered else {},
        "judge": {state: n for state, n in judged.items() if n},
    }


def _order_notice(cases: Mapping[str, KnownCase] | None) -> Iterator[str]:
    if cases is None:
        yield "cases come by panel and case id, not in dataset order: interval ends depend on it; name the mirror"


def _score_notices(rows: Iterable[_Row]) -> Iterator[str]:
    """Say where a row's own score is not the one that its decisions give in either upstream dialect."""
    vetoed, other = 0, []
    for row in rows:
        own = row.fields.get("score")
        if not row.graded or own is None:
            continue
        score, with_veto = (_rescored(row.case, dialect) for dialect in (UPSTREAM, UPSTREAM_VETO))
        if _same(own, score):
            continue
        if _same(own, with_veto):
            vetoed += 1
        else:
            other.append(f"line {row.number}: its own score {shown(own)} is not the {score} of its decisions")
    if vetoed:
        yield f"{count(vetoed, 'row')} scored with the severe veto: dialect {UPSTREAM_VETO} gives the file's own scores"
    yield from other[:MOST_LISTED]
    if len(other) > MOST_LISTED:
        yield f"{len(other) - MOST_LISTED} more rows whose own score is not that of their decisions"


def _rescored(case: GradedCase, dialect: str) -> float | None:
    points = [value for value in case.points if value is not None]
    verdicts = [met for met in case.matched or () if met is not None]  # an upstream run has one judge
    return score_case(case.grading_method, points, verdicts, dialect=dialect).score


def _same(own: Any, score: float | None) -> bool:
    return score is not None and _number(own) and math.isclose(own, score, rel_tol=1e-9, abs_tol=1e-9)
