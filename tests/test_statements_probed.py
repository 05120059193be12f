"""Judges who list are certified by probes with markers, and only such a judge may list without an override."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval.calls.journal import read_journal
from eval.certificates.certificate import Certificate, certificate_text, read_certificates
from eval.certificates.certify import finding, probe_plan
from eval.certificates.gate import certified
from eval.certificates.probes import Probe, probes_of
from eval.statements.probed import ANYTHING_ELSE, marked
from eval.statements.protocol import SUITE
from tests.listings import judge_at, plan_of
from tests.llm_server import LlmServer
from tests.plans import run

MARKED = {
    "listed": (["Start warfarin 5 mg."], ["warfarin"], (True,)),
    "not listed": ([], ["warfarin"], (False,)),
    "nothing else": (["Start WARFARIN."], ["warfarin", "*"], (True, False)),
    "something else": (["Start warfarin.", "Refer."], ["warfarin", "*"], (True, True)),
    "anything at all": (["Refer."], ["*"], (True,)),
    "nothing at all": ([" ", "..."], ["*"], (False,)),
    "in one statement": (["No fever, on warfarin."], ["warfarin", "fever", "*"], (True, True, False)),
}


@pytest.mark.parametrize(("listed", "markers", "found"), MARKED.values(), ids=list(MARKED.keys()))
def test_a_listing_decides_markers(listed: list[str], markers: list[str], found: tuple[bool, ...]) -> None:
    """A marker is found in any listed statement; `*` is found in one that holds no marker."""
    assert found == marked(json.dumps({"statements": listed}), markers)


def test_every_marker_stands_in_its_document() -> None:
    """What must be listed can be quoted: each marker of a probe is part of the document, each trait has a probe."""
    probes = probes_of(SUITE)

    assert {"good", "bad", "negation", "partial", "injection", "verdict_json", "language", "long", "empty"} == {
        probe.trait for probe in probes
    }
    for probe in probes:
        texts = [item.text for item in probe.items if item.text != ANYTHING_ELSE]
        assert [True] * len(texts) == [text.casefold() in probe.answer.casefold() for text in texts], probe.id
        assert any(item.sentinel for item in probe.items)


def _right(probe: Probe) -> dict[str, Any]:
    """Return the rule by which a server gives a probe its right listing: the lines that hold what is expected."""
    wanted = [item.text.casefold() for item in probe.items if item.expected]
    lines = [line for line in probe.answer.split("\n") if any(text in line.casefold() for text in wanted)]
    content = json.dumps({"statements": lines})
    return {"fault": "message", "content": content, "contains": probe.conversation[-1][1]}


def _certificate(folder: Path, *rules: dict[str, Any], judge: str = "plain") -> tuple[str, str]:
    """Certify a judge by a server's listings; return the certificate's verdict and what the gate makes of it."""
    with LlmServer(*rules, judge=judge) as server:
        asked = judge_at(server.url, "judge")
        run(probe_plan(asked, suite=SUITE), folder / "probes.jsonl")
        found = finding(read_journal(folder / "probes.jsonl"), made_by={})
        assert found.certificate is not None
        (folder / "certificates").mkdir()
        (folder / "certificates" / "judge.json").write_text(certificate_text(found.certificate), encoding="utf-8")
        plan = plan_of(folder, asked)
    made = certified(plan, read_certificates(folder / "certificates"), now="2026-01-02T00:00:00.000000Z")
    return Certificate(found.certificate).verdict, made.judges[0].state


def test_a_judge_that_lists_what_is_invented_is_certified(tmp_path: Path) -> None:
    """All sentinel items right: the certificate is valid, and so is the judge of a run that lists statements."""
    assert ("valid", "valid") == _certificate(tmp_path, *map(_right, probes_of(SUITE)))


@pytest.mark.parametrize("judge", ["lenient", "strict"])
def test_a_judge_that_lists_nothing_or_all_is_not(tmp_path: Path, judge: str) -> None:
    """One that finds nothing misses what is invented, one that lists all flags what the source says: both fail."""
    assert ("failed", "failed") == _certificate(tmp_path, judge=judge)
