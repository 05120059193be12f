"""What every kind of result file comes down to before it is scored: graded cases, and the facts of their run.

In: nothing; journals, upstream result files and minimal lines are read elsewhere (`summary`, `upstream`).
Out: the two shapes that `summary`, `results` and `report` read. A case without decisions has `matched` None: it is
never scored, never counted as false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Ballots: TypeAlias = tuple[tuple[tuple[bool | None, ...], ...], ...]
"""Every decision on one answer, by judge, then repeat, then item in file order; None where a reply gave none."""


@dataclass(frozen=True, slots=True)
class GradedCase:
    """One answer to one case with the decisions on its items, or the reason why there are none.

    `item_ids`, `points` and `matched` run in the rubric's file order. In `matched` stand the verdicts of a graded case;
    None among them is an item that the jury left unresolved, which a single judge never does. `state` is graded, failed
    or pending; a failed case names the role that failed (answer or judge), that call's state and its reason.
    `answer_state` is the state of the answer itself (ok, truncated, refused ...), None while there is none. `decided`
    are the verdicts of an ungraded case as far as they go (None where there is none): they narrow its bounds and are
    never scored. `ballots` hold what every judge said at every repeat; () where no judge was to be asked, or where
    another evaluator's file does not say it. `waiting` are the places of items that a reply is still to come for.

    HealthBench only: `tags` are the example's, `item_tags` those of each item; `n_chars` is the answer's length in code
    points; `group` names the physicians' group of the completion; `labels` are (physician, label) of a meta example.
    A meta example's item has no points: None.
    """

    case_id: str
    benchmark: str
    grading_method: str
    answer_repeat: int
    item_ids: tuple[str, ...]
    points: tuple[int | float | None, ...]
    matched: tuple[bool | None, ...] | None
    state: str
    failed_role: str | None = None
    failed_state: str | None = None
    reason: str | None = None
    answer_state: str | None = None
    decided: tuple[bool | None, ...] | None = None
    tags: tuple[str, ...] = ()
    item_tags: tuple[tuple[str, ...], ...] = ()
    n_chars: int | None = None
    group: str | None = None
    labels: tuple[tuple[str, bool], ...] = ()
    ballots: Ballots = ()
    waiting: frozenset[int] = frozenset()

    @property
    def unresolved(self) -> int:
        """How many items of a graded case the jury left without a verdict."""
        return (self.matched or ()).count(None)


@dataclass(frozen=True, slots=True)
class RunData:
    """A run as the summary needs it.

    `cases` holds every selected case in dataset order (formats.md 1); `file_order` holds indexes into `cases` in the
    order in which their graded rows first appear in the file, for the upstream dialects; `relapsed` holds indexes of
    graded cases whose last row in an upstream file is an error (upstream counts them both ways). Times are ISO strings.
    `certified` is what the judges' certificates said when the run was last started, None where nothing says it.
    """

    protocol_version: str
    cases: tuple[GradedCase, ...]
    file_order: tuple[int, ...]
    suite: str = "bedside-bench"
    config: str = "all"
    answer_model: str | None = None
    judge_model: str | None = None
    answer_temperature: float | None = None
    judge_temperature: float | None = None
    started_at: str | None = None
    finished_at: str | None = None
    dataset_sha256: str | None = None
    content_sha256: str | None = None
    identity_sha256: str | None = None
    semantics_sha256: str | None = None
    identity: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    states: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    certified: Mapping[str, Any] | None = None
    notices: tuple[str, ...] = ()
    relapsed: tuple[int, ...] = ()
