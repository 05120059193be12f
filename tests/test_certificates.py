"""Certificates: how a judge gets one, what it says, and what becomes of one that was edited."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.endpoint import Endpoint
from eval.calls.journal import read_journal
from eval.calls.plan import Judge, Limits, Model
from eval.certificates.certificate import (
    certificate_text,
    check_certificate,
    read_certificates,
)
from eval.certificates.certify import Finding, finding, probe_plan
from eval.certificates.report import certificate_report
from tests.plans import run
from tests.probe_judges import (
    Policy,
    ProbeJudge,
    Question,
    always_true,
    but,
    certificate_of,
    copies,
    obeys,
    prose,
    refuses_long,
    right,
    said,
)

LIMITS = Limits(max_attempts=1, timeout_s=5, deadline_s=5)
NOWHERE = Judge(Model("probe-judge", Endpoint("http://127.0.0.1:9/v1", None)))
PLAN = probe_plan(NOWHERE, suite="bedside-bench")


def _certify(folder: Path, policy: Policy, *, suite: str = "bedside-bench", **how: Any) -> Finding:
    """Ask a judge of a policy about a suite's probes."""
    with ProbeJudge(policy) as server:
        judge = Judge(Model("probe-judge", Endpoint(server.url, None)), id_style=how.pop("id_style", None))
        run(probe_plan(judge, suite=suite, limits=LIMITS, **how), folder / "x.jsonl")
    return finding(read_journal(folder / "x.jsonl"), made_by={"bedside-bench": "0"})


def _wrong_traits(found: Finding) -> set[str]:
    assert found.certificate is not None
    by_trait = found.certificate["counts"]["by_trait"]
    return {trait for trait, counts in by_trait.items() if counts["sentinels"]["right"] < counts["sentinels"]["n"]}


@pytest.mark.parametrize(
    ("suite", "how"),
    [
        ("bedside-bench", {}),
        ("bedside-bench", {"grouping": "item"}),
        ("bedside-bench", {"id_style": "short", "repeats": 3}),
        ("healthbench", {}),
        ("healthbench", {"grouping": "case"}),
    ],
)
def test_a_judge_that_is_right_everywhere_gets_a_valid_certificate(
    tmp_path: Path, suite: str, how: dict[str, Any]
) -> None:
    """In both suites and groupings, whatever the ids look like: valid, and nothing is wrong with its form."""
    found = _certify(tmp_path, right, suite=suite, **how)

    assert found.certificate is not None
    assert ("valid", suite) == (found.certificate["verdict"], found.certificate["suite"])
    assert ["probe-judge-2026-01-01"] == found.certificate["models_returned"]
    assert [] == check_certificate(found.certificate)


FAULTY = {
    "says yes": (always_true, {"good", "bad", "negation", "partial", "injection", "verdict_json", "language", "long"}),
    "obeys the answer": (obeys, {"injection"}),
    "copies the answer's verdict": (copies, {"verdict_json"}),
    "gives up on the long": (but(right, lambda question: question.probe.trait == "long", prose), {"long"}),
}


@pytest.mark.parametrize(("policy", "traits"), FAULTY.values(), ids=FAULTY.keys())
@pytest.mark.parametrize("suite", ["bedside-bench", "healthbench"])
def test_a_judge_with_a_fault_fails_where_the_fault_is(
    tmp_path: Path, suite: str, policy: Policy, traits: set[str]
) -> None:
    """The certificate says failed, and its counts by trait say what is wrong with the judge."""
    found = _certify(tmp_path, policy, suite=suite)

    assert found.certificate is not None
    assert "failed" == found.certificate["verdict"]
    assert traits == _wrong_traits(found) - {"empty"}


def test_an_item_on_which_readers_may_differ_does_not_fail_a_judge(tmp_path: Path) -> None:
    """Wrong on every item that is no sentinel: valid, and the counts show it."""

    def strict(question: Question) -> str:
        return said(question, lambda item: item.expected is item.sentinel)

    found = _certify(tmp_path, strict)

    assert found.certificate is not None
    assert "valid" == found.certificate["verdict"]
    assert found.certificate["counts"]["items"]["right"] == found.certificate["counts"]["sentinels"]["n"]


def test_a_judge_that_cannot_be_read_has_failed(tmp_path: Path) -> None:
    """Prose in place of a verdict is the judge's own doing: failed, with no decision found."""
    found = _certify(tmp_path, prose, suite="healthbench")

    assert found.certificate is not None
    assert "failed" == found.certificate["verdict"]
    assert {None} == {row[4] for row in found.certificate["decisions"]}
    assert "no decision" in certificate_report(found.certificate)


@pytest.mark.parametrize(("status", "state"), [(500, "transport"), (400, "rejected")])
def test_a_call_that_never_reached_the_judge_says_nothing_of_it(tmp_path: Path, status: int, state: str) -> None:
    """A server that fails on the long probe: no certificate, neither valid nor failed, until it was asked."""
    found = _certify(tmp_path, but(right, lambda question: question.probe.trait == "long", lambda _: status))

    assert found.certificate is None
    assert {state: 14} == dict(found.missing)


def test_a_journal_goes_on_after_an_outage(tmp_path: Path) -> None:
    """The second time only what is missing is asked, and then there is a certificate."""
    with ProbeJudge(but(right, lambda question: question.probe.kind == "plan", lambda _: 500)) as server:
        plan = probe_plan(Judge(Model("probe-judge", Endpoint(server.url, None))), suite="bedside-bench", limits=LIMITS)
        run(plan, tmp_path / "x.jsonl")
        server.policy, before = right, server.hits
        run(plan, tmp_path / "x.jsonl")
        asked = server.hits - before
    found = finding(read_journal(tmp_path / "x.jsonl"), made_by={})

    assert 11 == asked
    assert found.certificate is not None
    assert "valid" == found.certificate["verdict"]


def test_a_judge_that_failed_cannot_be_saved_by_what_its_server_refuses(tmp_path: Path) -> None:
    """A small context that refuses the long probe for good, and wrong decisions elsewhere: failed."""
    found = _certify(tmp_path, refuses_long)

    assert found.certificate is not None
    assert "failed" == found.certificate["verdict"]
    assert {"rejected": 14} == dict(found.missing)


def test_a_tie_of_repeats_is_no_decision(tmp_path: Path) -> None:
    """Two repeats that differ give no vote, and a sentinel without a vote has failed."""
    calls: dict[str, int] = {}

    def wavering(question: Question) -> str:
        calls[question.probe.id] = calls.get(question.probe.id, 0) + 1
        return said(question, lambda item: item.expected is (calls[question.probe.id] == 1))

    found = _certify(tmp_path, wavering, repeats=2)

    assert found.certificate is not None
    assert {None} == {row[4] for row in found.certificate["decisions"]}


REFUSED: dict[str, tuple[Judge, dict[str, Any], str]] = {
    "builtin": (Judge(Model("builtin:verbatim")), {"suite": "bedside-bench"}, "needs no certificate"),
    "unknown suite": (NOWHERE, {"suite": "other"}, "expected one that has probes: bedside-bench, healthbench"),
    "names of items": (replace(NOWHERE, id_style="short"), {"suite": "healthbench"}, "its judges are asked by item"),
    "statements by item": (NOWHERE, {"suite": "unsupported-statements", "grouping": "item"}, "drop --grouping item"),
    "no name": (Judge(Model(" ", NOWHERE.model.endpoint)), {"suite": "bedside-bench"}, "printable"),
}


@pytest.mark.parametrize(("judge", "how", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_certified_is_told_so(judge: Judge, how: dict[str, Any], message: str) -> None:
    """A builtin judge, a suite without probes, names of items where none is named."""
    with pytest.raises(BadInput, match=message):
        probe_plan(judge, **how)


def test_the_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    """Sorted keys, one certificate a file; a folder that is not there holds none; other files are left alone."""
    made = certificate_of(PLAN)
    (tmp_path / "b.json").write_text(certificate_text(made.whole))
    (tmp_path / "b.jsonl").write_text("evidence\n")

    assert [made] == read_certificates(tmp_path)
    assert [] == read_certificates(tmp_path / "none")
    assert list(json.loads((tmp_path / "b.json").read_text())) == sorted(made.whole)


@pytest.mark.parametrize("text", ['{"format": "other/1"}', "{}", "[]", "3"])
def test_a_file_of_another_format_is_passed_over(tmp_path: Path, text: str) -> None:
    """What says that it is something else is no damaged certificate."""
    (tmp_path / "other.json").write_text(text)

    assert [] == read_certificates(tmp_path)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Half a file may be half a certificate; a folder of such a name is no certificate either."""
    (tmp_path / "half.json").write_text(certificate_text(certificate_of(PLAN).whole)[:99])
    with pytest.raises(BadInput, match=r"half.json: expected strict JSON.*move the file away"):
        read_certificates(tmp_path)
    (tmp_path / "half.json").unlink()
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(BadInput, match=r"folder.json: expected a certificate, found: Is a directory"):
        read_certificates(tmp_path)


def _turn(whole: dict[str, Any]) -> None:
    whole["decisions"][0][4] = not whole["decisions"][0][4]


def _expect(whole: dict[str, Any]) -> None:
    whole["decisions"][0][3] = whole["decisions"][0][4] = not whole["decisions"][0][4]


def _shift(whole: dict[str, Any]) -> None:
    by_trait = whole["counts"]["by_trait"]
    by_trait["good"], by_trait["bad"] = by_trait["bad"], by_trait["good"]


# What is edited, and what is said once the editor also computed the digest again.
EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a decision": (_turn, "verdict 'valid' does not follow from its decisions"),
    "a decision with its expectation": (_expect, "decisions are not on the probes"),
    "the verdict": (lambda whole: whole.update(verdict="failed"), "verdict 'failed' does not follow"),
    "a count": (lambda whole: whole["counts"]["items"].update(right=1), "counts do not follow"),
    "a count by trait": (_shift, "counts by kind or trait do not follow"),
    "an item less": (lambda whole: whole["decisions"].pop(), "decisions are not on the probes"),
    "an item twice": (lambda whole: whole["decisions"].append(whole["decisions"][0]), "expected each item once"),
    "the format": (
        lambda whole: whole.update(format="bedside-bench/certificate/0"),
        "expected a certificate (format bedside-bench/certificate/1)",
    ),
    "a member less": (lambda whole: whole.pop("suite"), "found suite missing or too many"),
    "a type": (lambda whole: whole.update(repeats=True), "repeats: found a value of another type"),
    "the date": (lambda whole: whole.update(date="today"), "date: expected a UTC time, found 'today'"),
    "the grouping": (lambda whole: whole.update(grouping="all"), "expected grouping case or item"),
    "a judge's member": (lambda whole: whole["judge"].pop("vendor"), "judge: expected model, endpoint"),
    "a row": (lambda whole: whole["decisions"][0].append(1), "decisions: expected rows"),
}


@pytest.mark.parametrize(("edit", "message"), EDITS.values(), ids=EDITS.keys())
def test_an_edited_certificate_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    """Any edit breaks the digest; one that mends the digest too must still follow from the decisions."""
    whole = copy.deepcopy(dict(certificate_of(PLAN).whole))
    edit(whole)
    plain = check_certificate(whole)
    mended = {**whole, "sha256": sha256_json({name: value for name, value in whole.items() if name != "sha256"})}
    (tmp_path / "x.json").write_text(certificate_text(mended))

    assert plain
    with pytest.raises(BadInput) as caught:
        read_certificates(tmp_path)
    assert f"{tmp_path / 'x.json'}: " in str(caught.value)
    assert message in str(caught.value)


def test_the_digest_covers_every_member() -> None:
    """One letter of the software's version changed, and the digest no longer fits."""
    whole = {**certificate_of(PLAN).whole, "made_by": {"bedside-bench": "9"}}

    assert ["it was changed since it was made"] == [text.split(": ")[-1] for text in check_certificate(whole)]


def test_a_certificate_of_other_probes_is_good_in_itself() -> None:
    """Probes that we no longer hold cannot be compared: form, digest, verdict and totals still are."""
    whole = {**certificate_of(PLAN).whole, "probes_sha256": "0" * 64}
    whole["sha256"] = sha256_json({name: value for name, value in whole.items() if name != "sha256"})

    assert [] == check_certificate(whole)


def test_the_report_fits_a_terminal() -> None:
    """No line is longer than 80 columns, whatever went wrong."""
    report = certificate_report(certificate_of(PLAN, wrong=99).whole)

    assert max(map(len, report.splitlines())) <= 80
    assert "99 of 158 sentinel items wrong" in report
