"""The labels that people wrote on sheets: read strictly, bound to the answers they are about, and their majority.

In: CSV or Parquet sheets, as `sheet` wrote them and spreadsheets saved them, and the run they label. Out: each rater's
labels by (case id, answer repeat, item id). Labels are matched by ids and digests, never by the shown texts. What does
not fit is never skipped: every problem of every file is listed at once.

A label is one of true, yes, y, met, 1, 1.0 or false, no, n, unmet, not met, 0, 0.0, in any case; empty is not labelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from builder.errors import BadInput
from eval.agreement.sheet_file import SheetRow, read_rows
from eval.judging.graded import RunData
from eval.judging.jury import verdict

ItemKey: TypeAlias = tuple[str, int, str]
"""Case id, answer repeat, item id."""
RaterLabels: TypeAlias = dict[str, dict[ItemKey, bool]]

MET: Final = frozenset({"true", "yes", "y", "met", "1", "1.0"})
UNMET: Final = frozenset({"false", "no", "n", "unmet", "not met", "0", "0.0"})
SHOWN: Final = 20
"""Problems that are listed; the rest are counted."""


@dataclass(frozen=True, slots=True)
class SheetLabels:
    """What sheets hold: labels by rater, in the order of first sight, and how many rows have no label."""

    by_rater: RaterLabels
    n_rows: int
    n_unlabelled: int


@dataclass(frozen=True, slots=True)
class _Expected:
    """The run that rows must be of: its items by answer, and its answers' digests where they are known."""

    run: RunData
    items: Mapping[tuple[str, int], frozenset[str]]
    answers: Mapping[tuple[str, int], str] | None


def read_labels(
    paths: Sequence[Path], *, run: RunData, answers: Mapping[tuple[str, int], str] | None = None
) -> RaterLabels:
    """Return the labels of each rater; arguments and errors are those of `read_sheets`."""
    return read_sheets(paths, run=run, answers=answers).by_rater


def read_sheets(
    paths: Sequence[Path], *, run: RunData, answers: Mapping[tuple[str, int], str] | None = None
) -> SheetLabels:
    """Return what the sheets of one or more raters hold.

    Args:
        answers: the SHA-256 of the run's answers (`results.answers.answer_digests`). With them any sheet on the same
            answers is taken, whoever judged them; without them only one with the run's own identity.

    Raises:
        BadInput: a row does not fit the run, a label is none, a rater labels an item in two ways, or nothing is
            labelled; all problems in one message.
    """
    items = {(case.case_id, case.answer_repeat): frozenset(case.item_ids) for case in run.cases}
    expected = _Expected(run, items, answers)
    problems: list[str] = []
    nameless: dict[str, Path] = {}
    found, n_rows, n_unlabelled = RaterLabels(), 0, 0
    for path in paths:
        try:
            rows = read_rows(path)
        except BadInput as error:
            problems.append(str(error))
            continue
        n_rows += len(rows)
        problems += _same_name(path, rows, nameless)
        for row in rows:
            try:
                n_unlabelled += not _take(row, path, expected, found)
            except ValueError as error:
                problems.append(f"{path}:{row.number}: {error}")
    if problems:
        raise BadInput(_listed(problems))
    if not found:
        names = ", ".join(map(str, paths)) or "no file"
        raise BadInput(f"{names}: expected at least one label, found {n_rows} rows without; write yes or no in `label`")
    return SheetLabels(found, n_rows, n_unlabelled)


def _same_name(path: Path, rows: Sequence[SheetRow], nameless: dict[str, Path]) -> Iterator[str]:
    """Yield a problem for two files of one name without raters in them: they would become one person."""
    if any(row.cells["label"].strip() and not row.cells.get("rater", "").strip() for row in rows):
        before = nameless.setdefault(path.stem, path)
        if before != path:
            yield f"{path}: expected a rater or another file name, found the name of {before}; fill `rater` in"


def _take(row: SheetRow, path: Path, expected: _Expected, found: RaterLabels) -> bool:
    """Add a row's label, and return whether it has one.

    Raises:
        ValueError: the row does not fit.
    """
    key = _item_key(row.cells, expected)
    label = label_of(row.cells["label"])
    if label is None:
        return False
    rater = row.cells.get("rater", "").strip() or path.stem
    before = found.setdefault(rater, {}).setdefault(key, label)
    if before != label:
        raise ValueError(f"expected one label by {rater} for {key[2]}, found {_word(before)} above and {_word(label)}")
    return True


def _word(label: bool) -> str:
    return "yes" if label else "no"


def label_of(cell: str) -> bool | None:
    """Return what a label's cell says, None where it is empty.

    Raises:
        ValueError: it holds another word.
    """
    word = " ".join(cell.split()).lower()
    if not word:
        return None
    if word not in MET | UNMET:
        raise ValueError(f"label: expected yes or no (or true/false, 1/0, met/unmet, or nothing), found {cell[:40]!r}")
    return word in MET


def _item_key(cells: Mapping[str, str], expected: _Expected) -> ItemKey:
    case_id, repeat, item_id = cells["case_id"], cells["answer_repeat"].strip(), cells["item_id"]
    number = repeat.removesuffix(".0")
    if not (number.isascii() and number.isdigit()):
        raise ValueError(f"answer_repeat: expected 0, 1, 2 ..., found {repeat[:40]!r}")
    answer = (case_id, int(number))
    if answer not in expected.items:
        raise ValueError(f"expected a case and answer of the run, found case {case_id[:80]!r}, answer {number}")
    if item_id not in expected.items[answer]:
        raise ValueError(f"expected an item of case {case_id}, found {item_id[:80]!r}")
    _check_bound(cells, answer, expected)
    return case_id, answer[1], item_id


def _check_bound(cells: Mapping[str, str], answer: tuple[str, int], expected: _Expected) -> None:
    """Refuse a label on another text than the run's: items of another data version, or another answer."""
    dataset, own = cells.get("dataset_sha256", ""), expected.run.dataset_sha256
    if dataset and own and dataset != own:
        raise ValueError(f"expected a sheet on dataset_sha256 {own[:12]}, found one on {dataset[:12]}")
    if expected.answers is None:
        identity, wanted = cells.get("identity_sha256", ""), expected.run.identity_sha256 or ""
        if identity != wanted:
            raise ValueError(f"expected a sheet of run {wanted[:12] or '-'}, found one of {identity[:12] or '-'}")
        return
    digest, wanted = cells["answer_sha256"], expected.answers.get(answer, "")
    if digest != wanted:
        named = wanted[:12] or "none"
        raise ValueError(f"expected a label on the run's answer ({named}), found one on another ({digest[:12]})")


def _listed(problems: Sequence[str]) -> str:
    more = [f"... and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    lines = [*problems[:SHOWN], *more]
    return lines[0] if len(lines) == 1 else "\n".join([f"labels: {len(problems)} problems", *lines])


def consensus(labels: Mapping[str, Mapping[ItemKey, bool]]) -> dict[ItemKey, bool]:
    """Return for each item what more than half of the raters who labelled it say; ties are left out.

    Of two raters both must agree: the jury's own rule (`jury.verdict`), over those who labelled the item.
    """
    decided = {key: verdict(given) for key, given in _given(labels).items()}
    return {key: label for key, label in decided.items() if label is not None}


def tied(labels: Mapping[str, Mapping[ItemKey, bool]]) -> frozenset[ItemKey]:
    """Return the items that as many raters call met as not met."""
    return frozenset(key for key, given in _given(labels).items() if verdict(given) is None)


def _given(labels: Mapping[str, Mapping[ItemKey, bool]]) -> dict[ItemKey, list[bool]]:
    given: dict[ItemKey, list[bool]] = {}
    for of_rater in labels.values():
        for key, label in of_rater.items():
            given.setdefault(key, []).append(label)
    return given
