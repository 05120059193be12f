"""Runs that list statements, for tests: documents in a file, judges at servers on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.calls.endpoint import Endpoint
from eval.calls.plan import Judge, Limits, Model, Plan
from eval.statements.documents import read_documents
from eval.statements.plan import listing_plan

SAID, INVENTED, MORE = "No fever for two days.", "Start amoxicillin 500 mg.", "Refer to ENT."
DOCUMENTS: list[dict[str, Any]] = [
    {"id": "clean", "source": f"{SAID}\nDry cough.", "document": SAID, "system": "scribe-1"},
    {"id": "one", "source": SAID, "document": f"{SAID}\n{INVENTED}", "system": "scribe-1"},
    {"id": "two", "source": SAID, "document": f"{INVENTED}\n{SAID}\n{MORE}", "system": "scribe-2"},
]
"""From the stand-in judges: a plain one lists the invented lines, a strict one all, a lenient one none."""


def write_documents(path: Path, documents: Sequence[Mapping[str, Any]] = DOCUMENTS) -> Path:
    """Write documents, a line each."""
    path.write_text("".join(f"{json.dumps(document)}\n" for document in documents), encoding="utf-8")
    return path


def judge_at(url: str, name: str, *, vendor: str | None = None) -> Judge:
    """Return a judge at a server."""
    return Judge(Model(name, Endpoint(url, "sk-dummy-key")), vendor=vendor)


def plan_of(folder: Path, *judges: Judge, documents: Sequence[Mapping[str, Any]] = DOCUMENTS, **more: Any) -> Plan:
    """Return the plan over documents written into a folder."""
    limits = Limits(max_attempts=2, timeout_s=5, deadline_s=10)
    return listing_plan(
        read_documents(write_documents(folder / "docs.jsonl", documents)), judges, limits=limits, **more
    )
