"""Documents and their sources, a line each -> cases to list statements for, and the documents as their given answers.

In: JSONL lines {id, source, document[, instruction][, system][, tags]}. Out: a `CaseSet` in the order of the file, and
`GivenAnswers`. A file is read strictly and whole: every problem is listed, and with one of them nothing is asked.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bedside_bench import content_sha256, sha256_json
from builder.errors import BadInput
from builder.rules.problems import shown
from builder.tree.strict_json import parse
from eval.calls.answers import GivenAnswer, GivenAnswers
from eval.cases import Case, CaseSet
from eval.statements.protocol import CONFIG, GRADING_METHOD, SUITE

REQUIRED: Final = ("id", "source", "document")
OPTIONAL: Final = ("instruction", "system")
MEMBERS: Final = (*REQUIRED, *OPTIONAL, "tags")
NO_SYSTEM: Final = "documents"
"""How documents are grouped that name no system."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a file: their cases, with the source as the prompt, and the documents as the cases' answers."""

    data: CaseSet
    given: GivenAnswers


def read_documents(path: Path) -> Documents:
    """Return the documents of a file.

    Raises:
        BadInput: the file is missing or empty, or lines of it are not such objects; every problem has its own line.
    """
    if not path.is_file():
        raise BadInput(f"{path}: expected a file of documents, found no such file")
    raw = path.read_bytes()
    lines = list(_lines(raw))
    problems = [f"{path}:{number}: {problem}" for number, _, found in lines for problem in found]
    problems += _doubles(path, [(number, line["id"]) for number, line, found in lines if not found])
    if problems:
        raise BadInput("\n".join(problems))
    if not lines:
        raise BadInput(f"{path}: expected a line {{id, source, document}} a document, found none")
    return documents_of([line for _, line, _ in lines], file_sha256=hashlib.sha256(raw).hexdigest())


def documents_of(lines: Sequence[Mapping[str, Any]], *, file_sha256: str) -> Documents:
    """Return checked lines as cases and given answers.

    Args:
        file_sha256: the digest of the file that they stand in, which names the documents in a run's identity.
    """
    cases = [_case(line) for line in lines]
    systems = {line["system"] for line in lines if "system" in line}
    named = systems.pop() if len(systems) == 1 and all("system" in line for line in lines) else None
    asked = [_asked(case) for case in cases]
    data = CaseSet(
        cases=tuple(cases),
        dataset_sha256=sha256_json(asked),
        content_sha256=content_sha256(map(sha256_json, asked)),
        repo=None,
        revision=None,
        license=None,
        suite=SUITE,
        config=CONFIG,
    )
    return Documents(
        data, GivenAnswers({line["id"]: [GivenAnswer(line["document"], "ok")] for line in lines}, named, file_sha256)
    )


def _case(line: Mapping[str, Any]) -> Case:
    turns = [("system", line["instruction"])] if "instruction" in line else []
    return Case(
        case_id=line["id"],
        benchmark=line.get("system", NO_SYSTEM),
        grading_method=GRADING_METHOD,
        conversation=(*turns, ("user", line["source"])),
        items=(),
        tags=tuple(line.get("tags", ())),
    )


def _asked(case: Case) -> dict[str, Any]:
    """Return what a case says beside its document, which the digest of the file names."""
    return {
        "case_id": case.case_id,
        "benchmark": case.benchmark,
        "conversation": [list(turn) for turn in case.conversation],
        "tags": list(case.tags),
    }


def _lines(raw: bytes) -> Iterator[tuple[int, Any, list[str]]]:
    """Yield number, value and problems of each line that is not blank."""
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            value, faults = parse(line)
            found = [
                f"{fault.field + ': ' if fault.field else ''}expected {fault.expected}, found {fault.found}"
                for fault in faults
            ]
            yield number, value, found or list(_problems(value))


def _problems(line: object) -> Iterator[str]:
    if not isinstance(line, dict):
        yield f"expected an object of {', '.join(MEMBERS)}, found {shown(line)}"
        return
    for name in (*REQUIRED, *(name for name in OPTIONAL if name in line)):
        value = line.get(name)
        if type(value) is not str or not value.strip():
            yield f"{name}: expected a text that is not blank, found {shown(value) if name in line else 'none'}"
    for name in ("id", "system"):
        value = line.get(name)
        if isinstance(value, str) and value.strip() and not value.isprintable():
            yield f"{name}: expected printable characters, found {shown(value)}"
    tags = line.get("tags", [])
    if not isinstance(tags, list) or not all(type(tag) is str and tag.strip() for tag in tags):
        yield f"tags: expected a list of texts, found {shown(tags)}"
    for name in sorted(line.keys() - set(MEMBERS)):
        yield f"expected no member beside {', '.join(MEMBERS)}, found {shown(name)}; take it out"


def _doubles(path: Path, ids: Sequence[tuple[int, str]]) -> Iterator[str]:
    counts = Counter(id_ for _, id_ in ids)
    for number, id_ in ids:
        if counts[id_] > 1:
            yield f"{path}:{number}: id: expected each once, found {shown(id_)} in {counts[id_]} lines"
