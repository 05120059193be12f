"""A run's decisions as ratings: judge against judge, a judge against itself over repeats, the jury against people.

In: a run, and where there are any the labels of people. Out: the judged items with the facts they are sliced by, and
`Question`s, each some ratings with the measures that fit them. An item's unit is (case, answer repeat, item), its
cluster the case. A judge's rating is its vote, the majority of its repeats; the repeats themselves are no raters
(decided D12) and are only held against each other. Not done here: the measures (`measures`, `intervals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bedside_bench import F1_WEIGHTED_RUBRIC
from eval.agreement.coded import BINARY, NOT_RATED, THIRD, UNRESOLVED, Category, Indexes, Ratings
from eval.agreement.labels import ItemKey
from eval.agreement.measures import AC1, ALPHA, COHEN, FLEISS, FLIPS, UNANIMITY
from eval.agreement.scored import sign_of
from eval.judging.graded import Ballots, GradedCase, RunData
from eval.judging.jury import PENDING, item_votes, missing, verdict
from eval.numbers.panels import registry_order

TOGETHER: Final = (UNANIMITY, FLEISS, ALPHA, AC1)
PAIR: Final = (UNANIMITY, COHEN, AC1)
REPEATS: Final = (UNANIMITY, FLEISS, ALPHA, AC1, FLIPS)
JURY: Final = (UNANIMITY, COHEN, ALPHA, AC1)

DROPPED: Final = "unresolved_dropped"
AS_THIRD: Final = "unresolved_third"
TREATMENTS: Final[Mapping[str, tuple[Category, ...]]] = {DROPPED: BINARY, AS_THIRD: THIRD}
"""What becomes of an item that the jury left unresolved: no rating, or a category of its own (decided D11)."""

SIGNS: Final = ("positive", "negative", "zero", "no points")
SEVERITIES: Final = ("+3", "+2", "+1", "0", "-1", "-2", "-3")
_CODES: Final[Mapping[Category | None, int]] = {None: NOT_RATED, False: 0, True: 1, UNRESOLVED: 2}


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """One item of a judged answer: each judge's vote and the jury's verdict, which may be "unresolved" or missing.

    `severity` is the points' value as a label on plan panels, None elsewhere.
    """

    key: ItemKey
    panel: str
    sign: str
    severity: str | None
    votes: tuple[bool | None, ...]
    verdict: Category | None


@dataclass(frozen=True, slots=True)
class Judged:
    """All judged items of a run, in dataset order, with what was decided on each.

    `repeats` are codes of every decision: items x judges x repeats. `clusters` numbers the items' cases. `n_answers`
    were selected; of these `n_pending` are not finished and `n_unjudged` could not be judged: their items are nowhere.
    """

    judges: tuple[str, ...]
    items: tuple[JudgedItem, ...]
    repeats: NDArray[np.int8]
    clusters: Indexes
    n_answers: int
    n_pending: int
    n_unjudged: int

    @property
    def missing(self) -> int:
        """Items on which no judge has a vote."""
        return sum(item.verdict is None for item in self.items)

    @property
    def unresolved(self) -> int:
        """Items on which the jury has votes and no verdict."""
        return sum(item.verdict == UNRESOLVED for item in self.items)


@dataclass(frozen=True, slots=True)
class Question:
    """Who is held against whom: ratings of the items `rows`, a column a rater, and the measures that fit.

    `reason` says why there is nothing to measure, None where there is.
    """

    raters: tuple[str, ...]
    measures: tuple[str, ...]
    rows: Indexes
    ratings: Ratings
    reason: str | None = None


def judged_items(run: RunData) -> Judged:
    """Return the items of every answer that was judged to an end, whether or not each reply gave a decision."""
    cases = [(case, ballots) for case in run.cases if (ballots := _ballots(case))]
    items = [item for case, ballots in cases for item in _items(case, ballots)]
    numbers = {case_id: number for number, case_id in enumerate(dict.fromkeys(case.case_id for case, _ in cases))}
    judges = judge_names(run)
    pending = sum(case.state == PENDING for case in run.cases)
    return Judged(
        judges=judges,
        items=tuple(items),
        repeats=_decisions([ballots for _, ballots in cases], len(judges)),
        clusters=np.array([numbers[item.key[0]] for item in items], dtype=np.int64),
        n_answers=len(run.cases),
        n_pending=pending,
        n_unjudged=len(run.cases) - pending - len(cases),
    )


def judge_names(run: RunData) -> tuple[str, ...]:
    """Return a name for every judge, its model; two judges of one model are numbered."""
    judges = (run.identity or {}).get("judges") or [{"model": run.judge_model or "judge"}]
    models = [str(judge["model"]) for judge in judges]
    often = Counter(models)
    return tuple(f"{model} #{place + 1}" if often[model] > 1 else model for place, model in enumerate(models))


def _ballots(case: GradedCase) -> Ballots:
    """Return what the judges said of an answer; a file that only has verdicts is one judge's, asked once."""
    if case.state == PENDING:
        return ()
    return case.ballots or (((case.matched,),) if case.matched is not None else ())


def _items(case: GradedCase, ballots: Ballots) -> Iterator[JudgedItem]:
    plan = case.grading_method == F1_WEIGHTED_RUBRIC
    facts = zip(case.item_ids, case.points, item_votes(ballots), strict=True)
    for item_id, points, votes in facts:
        yield JudgedItem(
            key=(case.case_id, case.answer_repeat, item_id),
            panel=case.benchmark,
            sign=sign_of(points),
            severity=_severity(points) if plan and points is not None else None,
            votes=votes,
            verdict=_verdict(votes),
        )


def _verdict(votes: Sequence[bool | None]) -> Category | None:
    if missing(votes):
        return None
    given = verdict(votes)
    return UNRESOLVED if given is None else given


def _severity(points: float) -> str:
    return f"{points:+g}" if points else "0"


def _decisions(ballots: Sequence[Ballots], n_judges: int) -> NDArray[np.int8]:
    """Return every decision as a code: items x judges x repeats."""
    blocks = [np.array([[list(map(_CODES.get, cell)) for cell in judge] for judge in of], np.int8) for of in ballots]
    if not blocks:
        return np.zeros((0, n_judges, 1), dtype=np.int8)
    return np.ascontiguousarray(np.moveaxis(np.concatenate(blocks, axis=2), 2, 0))


# -- the questions


def judges_together(judged: Judged) -> Question:
    """Return all judges' votes, to be held against each other."""
    reason = "one judge: nobody to agree with" if len(judged.judges) < 2 else None
    return _of_all(judged, judged.judges, _votes(judged), TOGETHER, reason)


def judge_pairs(judged: Judged) -> list[Question]:
    """Return the votes of each pair of judges; of two judges too, whose pair has another kappa than all together."""
    votes = _votes(judged)
    return [
        _of_all(judged, (judged.judges[a], judged.judges[b]), votes[:, [a, b]], PAIR)
        for a, b in combinations(range(len(judged.judges)), 2)
    ]


def judge_repeats(judged: Judged) -> list[Question]:
    """Return for each judge its own repeats, to be held against each other."""
    repeats = judged.repeats.shape[2]
    reason = "one repeat: nothing to hold it against" if repeats < 2 else None
    return [
        _of_all(judged, tuple(f"repeat {number}" for number in range(repeats)), codes, REPEATS, reason)
        for codes in np.moveaxis(judged.repeats, 1, 0)
    ]


def jury_against(judged: Judged, rater: str, labels: Mapping[ItemKey, bool], *, treatment: str) -> Question:
    """Return the jury's verdicts and a rater's labels, over the items that the rater labelled.

    Args:
        treatment: what becomes of unresolved items, a key of `TREATMENTS`.
    """
    categories = TREATMENTS[treatment]
    rows, labelled = _labelled(judged, [labels])
    verdicts = np.array([_CODES[item.verdict] for item in judged.items], dtype=np.int8)[rows]
    verdicts[verdicts >= len(categories)] = NOT_RATED
    codes = np.column_stack([verdicts, labelled])
    return Question(("jury", rater), JURY, rows, Ratings(codes, judged.clusters[rows], categories))


def raters_together(judged: Judged, labels: Mapping[str, Mapping[ItemKey, bool]]) -> Question:
    """Return all raters' labels, over the judged items that any of them labelled."""
    rows, codes = _labelled(judged, list(labels.values()))
    reason = "one rater: nobody to agree with" if len(labels) < 2 else None
    return Question(tuple(labels), TOGETHER, rows, Ratings(codes, judged.clusters[rows]), reason)


def rater_pairs(judged: Judged, labels: Mapping[str, Mapping[ItemKey, bool]]) -> list[Question]:
    """Return the labels of each pair of raters, over the judged items that either labelled."""
    found = []
    for pair in combinations(labels, 2):
        rows, codes = _labelled(judged, [labels[rater] for rater in pair])
        found.append(Question(pair, PAIR, rows, Ratings(codes, judged.clusters[rows])))
    return found


def unjudged_labels(judged: Judged, labels: Mapping[ItemKey, bool]) -> int:
    """Return how many labels are on items of answers that were not judged."""
    return len(labels.keys() - {item.key for item in judged.items})


def _votes(judged: Judged) -> NDArray[np.int8]:
    votes = [[_CODES[vote] for vote in item.votes] for item in judged.items]
    return np.array(votes, dtype=np.int8).reshape(len(judged.items), len(judged.judges))


def _of_all(
    judged: Judged,
    raters: tuple[str, ...],
    codes: NDArray[np.int8],
    measures: tuple[str, ...],
    reason: str | None = None,
) -> Question:
    return Question(raters, measures, np.arange(len(judged.items)), Ratings(codes, judged.clusters), reason)


def _labelled(judged: Judged, labels: Sequence[Mapping[ItemKey, bool]]) -> tuple[Indexes, NDArray[np.int8]]:
    """Return the places of items that somebody labelled, and everybody's labels on them, a column each."""
    codes = [[_CODES[of.get(item.key)] for of in labels] for item in judged.items]
    table = np.array(codes, dtype=np.int8).reshape(len(judged.items), len(labels))
    rows = np.flatnonzero((table != NOT_RATED).any(axis=1))
    return rows, table[rows]


# -- slices


def slices(judged: Judged) -> dict[str, dict[str, NDArray[np.bool_]]]:
    """Return which items are of each panel, sign and severity that occurs; orders are the registry's and fixed."""
    panels = np.array([item.panel for item in judged.items], dtype=np.str_)
    signs = np.array([item.sign for item in judged.items], dtype=np.str_)
    severities = np.array([item.severity or "" for item in judged.items], dtype=np.str_)
    return {
        "panels": {panel: panels == panel for panel in registry_order(item.panel for item in judged.items)},
        "signs": {sign: signs == sign for sign in SIGNS if (signs == sign).any()},
        "severities": {level: severities == level for level in SEVERITIES if (severities == level).any()},
    }
