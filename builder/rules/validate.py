"""Check a whole source tree in one pass: every rule of every case, between cases, and of registry and manifests.

In: a source. Out: one report with every problem in dataset order; nothing is raised because of what a tree holds.
Not done here: the rules themselves (`case_rules`, `tree_rules`), finding near-duplicates (`similar`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from bedside_bench import PANEL_IDS, PUBLIC_SPLIT, Case
from builder.rules.case_rules import check_case
from builder.rules.item_rules import first_item_id, prompt_md5
from builder.rules.problems import Problem, Report
from builder.rules.repeats import Repeats
from builder.rules.tree_rules import Found, folder_problems, manifest_problems, registry_problems
from builder.tree.sources import CaseFile, PanelFolder, Source, open_panel, read_panel

if TYPE_CHECKING:
    from builder.rules.similar import SimilarTexts

TREE: Final = "."
"""The file of a problem that is the whole tree's."""

__all__ = ["Problem", "Report", "check_case", "check_tree"]


def check_tree(
    source: Source,
    *,
    held_out: bool = False,
    panels: Sequence[str] | None = None,
    similar: bool = True,
    on_case: Callable[[Case], None] | None = None,
) -> Report:
    """Check a tree and return its report; cases are read one at a time and not kept.

    Args:
        held_out: accept cases whose `split` is not `train`, also those that no manifest lists.
        panels: only these panels; the others may be absent.
        similar: look for near-duplicate prompts too.
        on_case: called with each case that breaks no rule, in dataset order.
    """
    chosen = [panel for panel in PANEL_IDS if panels is None or panel in panels]
    tree = _Walk(held_out=held_out, similar=similar, on_case=on_case)
    body = [problem for panel in chosen for problem in tree.panel(source, panel)]
    folders = folder_problems(source) if panels is None else ()
    registry = registry_problems(source, chosen, tree.found)
    return Report(
        problems=tuple(chain(source.problems, registry, folders, body, tree.near_duplicates())),
        n_cases=sum(found.all for found in tree.found.values()),
        n_items=tree.n_items,
        panels={panel: found.all for panel, found in tree.found.items()},
        id_dialects=tree.dialects,
        license=source.license,
    )


class _Walk:
    """One pass over a tree: what was counted, and what the rules between cases need to remember."""

    def __init__(self, *, held_out: bool, similar: bool, on_case: Callable[[Case], None] | None) -> None:
        self.held_out = held_out
        self.on_case = on_case
        self.found: dict[str, Found] = {}
        self.dialects = {"md5": 0, "local": 0}
        self.n_items = 0
        self._repeats = Repeats()
        self._similar = _similar_texts() if similar else None
        self._compared: list[tuple[str, str | None]] = []

    def panel(self, source: Source, panel: str) -> Iterator[Problem]:
        """Yield the problems of a panel: folder, manifest, then case after case."""
        folder = open_panel(source, panel)
        yield from folder.problems
        yield from manifest_problems(source, folder)
        self._repeats.start_panel()
        n_all = n_public = 0
        for file in read_panel(source, folder):
            yield from self._file(file, folder)
            n_all += file.raw is not None
            n_public += file.raw is not None and _split(file) == PUBLIC_SPLIT
        self.found[panel] = Found(n_all, n_public)

    def near_duplicates(self) -> Iterator[Problem]:
        """Yield a warning for each of the most similar pairs of prompts, and one if a cap left some out."""
        if self._similar is None:
            return
        near = self._similar.near()
        for pair in near.pairs:
            file, case_id = self._compared[pair.case_a]
            other = (
                f"one that shares {pair.similarity:.0%} of its 3-word sequences with {self._compared[pair.case_b][0]}"
            )
            yield Problem("warning", "near-duplicate", file, case_id, "prompt", other, "a prompt of its own")
        listed = len(near.pairs)
        if near.n_found > listed:
            hint = f"only the {listed:,} most similar are listed"
            yield _limit(f"{near.n_found:,} pairs of similar prompts", f"at most {listed:,}", hint)
        if near.capped:
            hint = "there may be more near-duplicates than are listed"
            yield _limit("too many prompts that share words", "few enough pairs to compare them all", hint)

    def _file(self, file: CaseFile, folder: PanelFolder) -> list[Problem]:
        problems = check_case(file, held_out=self.held_out)
        if not file.listed and folder.lists_cases and not (self.held_out and _split(file) != PUBLIC_SPLIT):
            problems.append(_unlisted(file))
        case = file.case
        if case is None:
            return problems
        first = first_item_id(case)
        prefix = first["prefix"] if first else None
        # The item ids of a case without problems begin with its prompt's md5: no need to take it again.
        digest = prefix if prefix and not problems else prompt_md5(case)
        repeats = self._repeats.add(file, digest, prefix)
        self._count(case, first)
        if self._similar is not None and digest and not any(one.rule == "duplicate-prompt" for one in repeats):
            self._similar.add(case["prompt"])
            self._compared.append((file.path, file.case_id))
        problems += repeats
        if self.on_case and not any(problem.severity == "error" for problem in problems):
            self.on_case(case)
        return problems

    def _count(self, case: Case, first_id: re.Match[str] | None) -> None:
        items = case.get("rubric_items")
        self.n_items += len(items) if isinstance(items, list) else 0
        if first_id:
            self.dialects["md5" if first_id["prefix"] else "local"] += 1


def _split(file: CaseFile) -> object:
    return file.case.get("split", PUBLIC_SPLIT) if file.case else PUBLIC_SPLIT


def _unlisted(file: CaseFile) -> Problem:
    hint = "add its id to case_ids, or remove the file"
    found, expected = "one it does not list", "a case that manifest.json lists"
    return Problem("error", "unlisted-case", file.path, file.case_id, None, found, expected, hint)


def _limit(found: str, expected: str, hint: str) -> Problem:
    return Problem("warning", "near-duplicate-limit", TREE, None, "prompt", found, expected, hint)


def _similar_texts() -> SimilarTexts:
    from builder.rules.similar import SimilarTexts  # datasketch and numpy, only where they are used

    return SimilarTexts()
