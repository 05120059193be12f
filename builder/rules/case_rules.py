"""The rules that one case must keep, whatever else is in its tree.

In: a case file as `sources` reads it. Out: every problem of that case, none raised.
Not done here: rules between cases, manifests and the registry (`validate`, `tree_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Final

from bedside_bench import CASE_FIELDS, F1_WEIGHTED_RUBRIC, PANELS_BY_ID, PUBLIC_SPLIT, Case
from builder.rules.item_rules import check_items, check_members, check_text, is_plain_rubric, prompt_md5
from builder.rules.problems import At, Problem, shown
from builder.tree.sources import CASE_ID, CaseFile

MAX_PROBLEMS_PER_FILE: Final = 1000
MAX_SPLIT_NAME: Final = 100
"""Characters of a split's name: it becomes part of a file's."""

_CASE_KEYS: Final = frozenset(CASE_FIELDS)
_CASE: Final = itemgetter(*CASE_FIELDS)
_SPLIT: Final = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")


def check_case(file: CaseFile, *, held_out: bool = False) -> list[Problem]:
    """Return the problems of one case file: those of reading it, then every rule its case breaks.

    Args:
        held_out: accept a `split` other than `train`.
    """
    case = file.case
    if case is None:
        return list(file.problems)
    if not file.problems and _is_plain(file, case):
        return []
    at = At(file.path, file.case_id)
    found = _every_rule(at, file, case, held_out=held_out)
    if file.problems:
        known = {problem.field for problem in file.problems}
        found = (problem for problem in found if problem.field not in known)
    problems = [*file.problems, *islice(found, MAX_PROBLEMS_PER_FILE + 1)]
    return problems if len(problems) <= MAX_PROBLEMS_PER_FILE else _cut(at, problems)


def _cut(at: At, problems: list[Problem]) -> list[Problem]:
    limit = f"{MAX_PROBLEMS_PER_FILE:,}"
    more = at.error("more-problems", None, f"more than {limit} problems", "a case", f"only {limit} of them are listed")
    return [*problems[:MAX_PROBLEMS_PER_FILE], more]


def _every_rule(at: At, file: CaseFile, case: Case, *, held_out: bool) -> Iterator[Problem]:
    yield from _fields(at, case)
    yield from _header(at, file, case, held_out=held_out)
    yield from _prompt(at, case)
    yield from _rubric(at, file, case)


def _fields(at: At, case: Case) -> Iterator[Problem]:
    if case.keys() != _CASE_KEYS:
        yield from check_members(at, "", case, CASE_FIELDS, "a case")


def _header(at: At, file: CaseFile, case: Case, *, held_out: bool) -> Iterator[Problem]:
    panel = PANELS_BY_ID[file.panel]
    if "case_id" in case:
        yield from _case_id(at, file.path.rpartition("/")[2], case["case_id"])
    benchmark = case.get("benchmark", panel.id)
    if benchmark != panel.id:
        yield at.error("benchmark", "benchmark", shown(benchmark), f"{shown(panel.id)}, the panel of its folder")
    method = case.get("grading_method", panel.grading_method)
    if method != panel.grading_method:
        yield at.error("grading-method", "grading_method", shown(method), f"{shown(panel.grading_method)}, the panel's")
    split = case.get("split", PUBLIC_SPLIT)
    if split != PUBLIC_SPLIT:
        yield from _split(at, split, held_out=held_out)


def _case_id(at: At, file_name: str, case_id: object) -> Iterator[Problem]:
    if not isinstance(case_id, str):
        yield at.error("wrong-type", "case_id", shown(case_id), "text")
    elif not CASE_ID.fullmatch(case_id):
        yield at.error("case-id-format", "case_id", shown(case_id), "32 lower-case hex digits")
    elif file_name != f"{case_id}.json":
        yield at.error("file-name", "case_id", shown(case_id), "the id that is the file's name")


def _split(at: At, split: object, *, held_out: bool) -> Iterator[Problem]:
    if not isinstance(split, str):
        yield at.error("wrong-type", "split", shown(split), "text")
    elif not held_out:
        yield at.error("split", "split", shown(split), shown(PUBLIC_SPLIT), "--held-out accepts held-out cases")
    elif split == "all" or len(split) > MAX_SPLIT_NAME or not _SPLIT.fullmatch(split):
        expected = f"a name of at most {MAX_SPLIT_NAME} letters, digits and underscores, and not all"
        yield at.error("split", "split", shown(split), expected)


def _prompt(at: At, case: Case) -> Iterator[Problem]:
    if "prompt" in case:
        yield from check_text(at, "prompt", case["prompt"])


def _rubric(at: At, file: CaseFile, case: Case) -> Iterator[Problem]:
    items = case.get("rubric_items", ())
    if items == ():
        return  # its absence is reported with the other fields
    if not isinstance(items, list):
        yield at.error("wrong-type", "rubric_items", shown(items), "an array of rubric items")
    elif not items:
        yield at.error("no-items", "rubric_items", shown(items), "at least one rubric item")
    else:
        unread = any(problem.field == "prompt" for problem in file.problems)
        digest = None if unread else prompt_md5(case)
        plan = PANELS_BY_ID[file.panel].grading_method == F1_WEIGHTED_RUBRIC
        yield from check_items(at, items, digest, plan=plan)


def _is_plain(file: CaseFile, case: Case) -> bool:
    """Whether a public case surely breaks no rule of a case or its items.

    Nearly all cases are plain, and to see that at once takes a fifth of the time of going through the rules.
    """
    try:
        case_id, benchmark, method, prompt, items, split = _CASE(case)
        return (
            len(case) == len(CASE_FIELDS)
            and CASE_ID.fullmatch(case_id) is not None
            and file.path.endswith(f"/{case_id}.json")
            and benchmark == file.panel
            and method == PANELS_BY_ID[file.panel].grading_method
            and split == PUBLIC_SPLIT
            and bool(prompt)
            and not prompt.isspace()
            and type(items) is list
            and len(items) > 0
            and is_plain_rubric(items, prompt)
        )
    except (KeyError, TypeError, AttributeError, UnicodeEncodeError):  # a field is missing or of another type
        return False
