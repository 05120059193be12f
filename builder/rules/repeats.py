"""What cases repeat of each other: ids and prompts, within a panel and across the tree.

In: the cases of a tree, one at a time in dataset order. Out: a problem for each repeat, naming the first use.
Kept of a case: its id, its path and two digests. Not done here: prompts that are only alike (`similar`).
"""

from __future__ import annotations

from builder.rules.problems import Problem, Severity
from builder.tree.sources import CaseFile


class Repeats:
    """The ids and prompts met so far, and the file that each was first met in."""

    def __init__(self) -> None:
        """Start with none."""
        self._case_ids: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        self._panel_prompts: dict[str, str] = {}
        self._panel_ids: dict[str, str] = {}

    def start_panel(self) -> None:
        """Forget what is to be unique within a panel only."""
        self._panel_prompts, self._panel_ids = {}, {}

    def add(self, file: CaseFile, digest: str | None, prefix: str | None) -> list[Problem]:
        """Return what a case repeats of those before it, and keep what those after it may repeat.

        Args:
            digest: the md5 of the case's prompt, None where it has none.
            prefix: the md5 that its item ids begin with, None where they have none.
        """
        problems, path, case_id = [], file.path, file.case_id
        if case_id and (first := self._case_ids.setdefault(case_id, path)) != path:
            problems.append(_repeat(file, "duplicate-case-id", "case_id", f"the id of {first}", "an id of its own"))
        same_prompt = digest is not None and self._panel_prompts.setdefault(digest, path) != path
        if digest is not None and (first := self._prompts.setdefault(digest, path)) != path:
            severity: Severity = "error" if same_prompt else "warning"
            found = f"the prompt of {self._panel_prompts[digest] if same_prompt else first}"
            problems.append(_repeat(file, "duplicate-prompt", "prompt", found, "a prompt of its own", severity))
        if prefix and (first := self._panel_ids.setdefault(prefix, path)) != path and not same_prompt:
            place, found = "rubric_items[*].item_id", f"the ids of {first}"
            problems.append(_repeat(file, "duplicate-item-id", place, found, "ids of its own"))
        return problems


def _repeat(file: CaseFile, rule: str, field: str, found: str, expected: str, severity: Severity = "error") -> Problem:
    return Problem(severity, rule, file.path, file.case_id, field, found, expected)
