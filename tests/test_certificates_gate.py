"""The gate: which runs may start with which certificates, in every combination of the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.endpoint import Endpoint
from eval.calls.plan import Judge, Model, Plan
from eval.certificates.certificate import Certificate, check_certificate
from eval.certificates.gate import (
    Certified,
    certified,
    check,
    check_record,
    models_expected,
    record,
    unread,
)
from eval.judging.certified import certificate_label
from eval.judging.suites import SUITES, suite_of
from eval.judging.texts import Prompts
from tests.plans import make_plan
from tests.probe_judges import certificate_of
from tests.runs import run_of

CERTIFY = "bedside-bench certify judge-a --base-url https://judges.example/v1"
MADE, NOW = "2026-01-01T00:00:00.000000Z", "2026-02-01T00:00:00.000000Z"
PLACE = Endpoint("https://judges.example/v1", None)
JUDGE = Judge(Model("judge-a", PLACE))
BUILTIN = Judge(Model("builtin:verbatim"))


def _plan(*judges: Judge, **reading: Any) -> Plan:
    return make_plan(judges=judges or (JUDGE,), reading=reading)


def _edited(certificate: Certificate, **members: Any) -> Certificate:
    """Return a certificate with other members and the digest that fits them."""
    whole = {**certificate.whole, **members}
    return Certificate({**whole, "sha256": sha256_json({name: whole[name] for name in whole if name != "sha256"})})


def _state(plan: Plan, *certificates: Certificate, now: str = NOW) -> tuple[str, str]:
    found = certified(plan, certificates, now=now).judges[0]
    return found.state, found.reason


VALID = certificate_of(_plan(), date=MADE)
FAILED = certificate_of(_plan(), wrong=3, date=MADE)
STALE = _edited(VALID, probes_sha256="0" * 64)
OTHER = certificate_of(_plan(Judge(Model("judge-b", PLACE))), date=MADE)


def test_the_state_of_a_judge_says_why() -> None:
    """Valid and failed name the sentinels and the day, none says what to run."""
    assert ("valid", "valid: all 158 sentinel items decided right on 2026-01-01") == _state(_plan(), VALID)
    assert ("failed", "failed: 3 of 158 sentinel items were not decided right on 2026-01-01") == _state(_plan(), FAILED)
    assert ("none", f"none: there is no certificate; certify it: {CERTIFY}") == _state(_plan(), OTHER)
    assert "not needed" == _state(_plan(BUILTIN), VALID)[0]


# How the run's judge differs from the certified one, what is said of it, and what the command that repairs it adds.
CHANGES: dict[str, tuple[Judge, str, str]] = {
    "temperature": (replace(JUDGE, temperature=1), "parameters {", " --temperature 1"),
    "no temperature": (replace(JUDGE, temperature=None), "parameters {", " --judges FILE.toml"),
    "reasoning": (replace(JUDGE, reasoning_effort="low"), "'reasoning_effort': 'low'} now", " --judges FILE.toml"),
    "reply form": (
        replace(JUDGE, reply_format="none"),
        "reply form json_object then, none now",
        " --judge-format none",
    ),
    "id style": (replace(JUDGE, id_style="short"), "id style full then, short now", " --id-style short"),
}


@pytest.mark.parametrize(("judge", "said", "added"), CHANGES.values(), ids=CHANGES.keys())
def test_a_judge_that_is_asked_otherwise_is_stale(judge: Judge, said: str, added: str) -> None:
    """Each setting of the judge is bound: another one makes the certificate stale, is named, and can be certified."""
    state, reason = _state(_plan(judge), VALID)

    assert "stale" == state
    assert said in reason
    assert reason.endswith(f"; certify it again: {CERTIFY}{added} --again")


@pytest.mark.parametrize(
    ("made", "run", "state"), [(1, 1, "valid"), (1, 3, "valid"), (3, 3, "valid"), (5, 3, "stale"), (5, 1, "stale")]
)
def test_a_certificate_counts_for_as_many_calls_or_more(made: int, run: int, state: str) -> None:
    """What the majority of five calls got right says nothing of a single one."""
    certificate = certificate_of(_plan(repeats=made), date=MADE)
    found, reason = _state(_plan(repeats=run), certificate)

    assert state == found
    assert (state == "stale") == (f"certified by the majority of {made} calls, {run} now" in reason)
    kept = record(certified(_plan(repeats=made), [certificate], now=NOW), uncertified=False)
    problems = check_record(kept, _plan(repeats=run).identity())
    assert (["judge judge-a: state valid does not follow from the certificate"] if state == "stale" else []) == problems


def test_a_certificate_of_fewer_calls_counts_beside_a_newer_one_of_more() -> None:
    """One judge certified by single calls and by majorities is known at both."""
    five = certificate_of(_plan(repeats=5), date="2026-01-02T00:00:00.000000Z")

    assert "valid" == _state(_plan(), VALID, five)[0]


OWN_HEALTHBENCH = suite_of("healthbench").prompts()
MINE = replace(OWN_HEALTHBENCH, judge_user=f"{OWN_HEALTHBENCH.judge_user}\nBe quick.\n")


@pytest.mark.parametrize(
    ("suite", "grouping", "prompts", "added"),
    [
        ("bedside-bench", "case", _plan().reading.prompts, ""),
        ("bedside-bench", "item", _plan().reading.prompts, "--grouping item "),
        ("healthbench", "item", OWN_HEALTHBENCH, "--suite healthbench "),
        ("healthbench", "item", MINE, "--suite healthbench --grader-template FILE "),
        (
            "healthbench",
            "case",
            suite_of("healthbench", "case").prompts(),
            "--suite healthbench --grouping case ",
        ),
        ("unsupported-statements", "case", suite_of("unsupported-statements").prompts(), None),
    ],
)
def test_the_command_names_the_use(suite: str, grouping: str, prompts: Prompts, added: str | None) -> None:
    """Suite, grouping and another grader are named where they are not standard; what is standard is left out."""
    plan = _plan(grouping=grouping, prompts=prompts)
    _, reason = _state(replace(plan, data=replace(plan.data, suite=suite)))
    expected = f"--suite {suite} " if added is None else added

    assert reason.endswith(f"certify it: bedside-bench certify judge-a {expected}--base-url https://judges.example/v1")


def test_the_command_is_one_for_a_shell() -> None:
    """A name with a blank is quoted; the standard endpoint is left out."""
    standard = Judge(Model("my judge", Endpoint("https://api.openai.com/v1", None)))

    assert _state(_plan(standard))[1].endswith("certify it: bedside-bench certify 'my judge'")


def test_a_port_and_a_folder_of_this_machine_are_told_and_not_kept() -> None:
    """The command on the screen works; a user, a password and a query are in neither."""
    here = Judge(Model("judge-a", Endpoint("http://me:secret@127.0.0.1:8123/v1?key=secret", None)))
    found = certified(_plan(here), [], now=NOW, folder=Path("my certificates"))

    with pytest.raises(BadInput) as caught:
        check(found, n_judges=2, repeats=1, scribe=False, uncertified=False)
    first, _ = str(caught.value).split("\n")
    assert first.endswith("certify judge-a --base-url http://127.0.0.1:8123/v1 --certificates 'my certificates'")
    kept = str(record(found, uncertified=False))
    assert "8123" not in kept
    assert "my certificates" not in kept
    assert "secret" not in f"{caught.value}{found}"


def test_certificates_that_cannot_be_read_leave_models_without() -> None:
    """Each model has none, for that reason; a builtin judge needs none all the same."""
    plan = _plan(JUDGE, BUILTIN)
    kept = record(unread(plan, "none: x.json: expected strict JSON"), uncertified=True)

    assert [("none", "none: x.json: expected strict JSON"), ("not needed", kept["judges"][1]["reason"])] == [
        (one["state"], one["reason"]) for one in kept["judges"]
    ]
    assert [] == check_record(kept, plan.identity())


@pytest.mark.parametrize(
    ("changed", "said"), [("judge_system", "another system prompt"), ("judge_item", "another prompt template")]
)
def test_a_certificate_under_other_prompts_is_stale(changed: str, said: str) -> None:
    """Both prompt digests are bound."""
    plan = _plan()
    prompts = replace(plan.reading.prompts, **{changed: "<<item_id>> <<points>> <<text>>"})
    state, reason = _state(replace(plan, reading=replace(plan.reading, prompts=prompts)), VALID)

    assert "stale" == state
    assert said in reason


def test_changed_probes_make_it_stale() -> None:
    """The reason names the day of the certificate."""
    expected = f"stale: the probes have changed since 2026-01-01; certify it again: {CERTIFY} --again"

    assert ("stale", expected) == _state(_plan(), STALE)


@pytest.mark.parametrize(
    ("now", "state"),
    [
        ("2026-04-01T00:00:00.000000Z", "valid"),  # 90 days to the second
        ("2026-04-01T00:00:01.000000Z", "stale"),
        ("2025-12-31T12:00:00.000000Z", "valid"),  # a clock half a day behind
        ("2025-12-01T00:00:00.000000Z", "stale"),
    ],
)
def test_a_certificate_lasts_ninety_days(now: str, state: str) -> None:
    """After 90 days it is stale; so is one from a day that has not come."""
    found, reason = _state(_plan(), VALID, now=now)

    assert state == found
    assert (state == "stale") == reason.endswith(f"; certify it again: {CERTIFY} --again")


def test_a_certificate_for_another_use_does_not_count() -> None:
    """One for another grouping or suite leaves the judge without; the reason says that one exists."""
    state, reason = _state(_plan(grouping="item"), VALID)

    assert "none" == state
    assert "one exists for bedside-bench with grouping case only" in reason
    assert "none" == _state(_plan(), _edited(VALID, suite="healthbench"))[0]


def test_another_endpoint_is_another_judge() -> None:
    """The same model elsewhere has no certificate."""
    elsewhere = Judge(Model("judge-a", Endpoint("https://others.example/v1", None)))

    assert "none" == _state(_plan(elsewhere), VALID)[0]


def test_the_newest_certificate_counts() -> None:
    """A judge that failed yesterday is not saved by what it could before; nor is one damned that has mended."""
    newer = "2026-01-02T00:00:00.000000Z"

    assert "failed" == _state(_plan(), VALID, _edited(FAILED, date=newer))[0]
    assert "valid" == _state(_plan(), _edited(VALID, date=newer), FAILED)[0]


def test_a_certificate_of_a_day_to_come_hides_none_of_today() -> None:
    """Made by a clock that was wrong, it is passed over once there is another; alone it is stale."""
    to_come = _edited(VALID, date="2027-01-01T00:00:00.000000Z")

    assert "stale" == _state(_plan(), to_come)[0]
    assert "valid" == _state(_plan(), to_come, VALID)[0]


def test_a_newer_certificate_under_other_settings_does_not_hide_the_right_one() -> None:
    """One model certified at two temperatures is known at both."""
    warm = certificate_of(_plan(replace(JUDGE, temperature=1)), wrong=1, date="2026-01-02T00:00:00.000000Z")

    assert "valid" == _state(_plan(), VALID, warm)[0]
    assert "failed" == _state(_plan(replace(JUDGE, temperature=1)), VALID, warm)[0]


ALONE = {"n_judges": 1, "repeats": 1, "scribe": False, "uncertified": False}
# The rules of the gate: certificates, how it is asked, and whether the run may start.
RULES: dict[str, tuple[list[Certificate], dict[str, Any], bool]] = {
    "one judge, none": ([], {}, True),
    "one judge, valid": ([VALID], {}, True),
    "one judge, failed": ([FAILED], {}, False),
    "one judge, stale": ([STALE], {}, False),
    "two judges, none": ([], {"n_judges": 2}, False),
    "two judges, valid": ([VALID], {"n_judges": 2}, True),
    "two judges, failed": ([FAILED], {"n_judges": 2}, False),
    "two judges, stale": ([STALE], {"n_judges": 2}, False),
    "repeats, none": ([], {"repeats": 2}, False),
    "repeats, valid": ([VALID], {"repeats": 3}, True),
    "scribe, none": ([], {"scribe": True}, False),
    "scribe, valid": ([VALID], {"scribe": True}, True),
    "override of none": ([], {"n_judges": 2, "uncertified": True}, True),
    "override of failed": ([FAILED], {"uncertified": True}, True),
    "override of stale": ([STALE], {"scribe": True, "uncertified": True}, True),
}


@pytest.mark.parametrize(("certificates", "how", "starts"), RULES.values(), ids=RULES.keys())
def test_a_run_starts_by_the_rules(certificates: Sequence[Certificate], how: dict[str, Any], starts: bool) -> None:
    """One judge may lack one, but not be failed or stale; more judges or repeats and scribe suites need a valid one."""
    found = certified(_plan(), certificates, now=NOW)
    if starts:
        check(found, **{**ALONE, **how})
        return

    with pytest.raises(BadInput) as caught:
        check(found, **{**ALONE, **how})
    assert f"judge judge-a: {found.judges[0].reason}" in str(caught.value)
    assert "--uncertified starts all the same and is recorded" in str(caught.value)


def test_every_judge_of_a_jury_needs_one_but_a_builtin() -> None:
    """The one that lacks it is named, the certified and the builtin are not."""
    found = certified(_plan(JUDGE, Judge(Model("judge-b", PLACE)), BUILTIN), [VALID], now=NOW)

    assert ["valid", "none", "not needed"] == [one.state for one in found.judges]
    with pytest.raises(BadInput) as caught:
        check(found, n_judges=3, repeats=1, scribe=False, uncertified=False)
    assert str(caught.value).startswith("judge judge-b: none")
    assert "judge judge-a:" not in str(caught.value)
    check(certified(_plan(BUILTIN), [], now=NOW), n_judges=1, repeats=3, scribe=True, uncertified=False)


LABELS: dict[str, tuple[Plan, list[Certificate], bool, str | None]] = {
    "builtin": (_plan(BUILTIN), [], False, None),
    "builtin, override": (_plan(BUILTIN), [], True, None),
    "none": (_plan(), [], False, "none"),
    "valid": (_plan(), [VALID], False, "valid"),
    "valid, override": (_plan(), [VALID], True, "valid"),
    "none, override": (_plan(), [], True, "uncertified (none)"),
    "failed, override": (_plan(), [FAILED], True, "uncertified (failed)"),
    "worst of two": (_plan(JUDGE, Judge(Model("judge-b", PLACE))), [STALE], True, "uncertified (stale)"),
}


@pytest.mark.parametrize(("plan", "certificates", "override", "label"), LABELS.values(), ids=LABELS.keys())
def test_a_run_has_one_word_for_its_certificates(
    plan: Plan, certificates: list[Certificate], override: bool, label: str | None
) -> None:
    """The worst of its judges, in brackets where an override was needed; no word where no judge needs one."""
    kept = record(certified(plan, certificates, now=NOW), uncertified=override)
    run = run_of(certified=kept, judge_model=" + ".join(judge.model.name for judge in plan.judges))

    assert label == certificate_label(run)


def test_a_certified_judge_is_expected_under_its_returned_name() -> None:
    """Only a valid certificate binds the names; one whose server gave none binds to nothing."""
    nameless = _edited(VALID, models_returned=[])

    assert {0: frozenset({"probe-judge-2026-01-01"})} == models_expected(certified(_plan(), [VALID], now=NOW))
    assert {0: frozenset()} == models_expected(certified(_plan(), [nameless], now=NOW))
    assert {} == models_expected(certified(_plan(), [FAILED], now=NOW))


def _record(found: Certified) -> dict[str, Any]:
    return record(found, uncertified=False)


def test_the_record_travels_with_its_certificate() -> None:
    """It holds each judge's state, reason and whole certificate, and holds for the run's identity."""
    kept = _record(certified(_plan(), [VALID], now=NOW))

    assert ["certificate", "judge", "model", "reason", "state"] == sorted(kept["judges"][0])
    assert [] == check_certificate(kept["judges"][0]["certificate"])
    assert [] == check_record(kept, _plan().identity())
    assert [] == check_record(_record(certified(_plan(BUILTIN), [], now=NOW)), _plan(BUILTIN).identity())


TAMPERED: dict[str, tuple[dict[str, Any], str]] = {
    "a failed one as valid": ({"certificate": FAILED.whole}, "state valid does not follow"),
    "another judge's": ({"certificate": OTHER.whole}, "is of another judge, suite or grouping"),
    "edited": ({"certificate": {**VALID.whole, "verdict": "failed"}}, "it was changed since it was made"),
    "lost": ({"certificate": None}, "state valid without a certificate"),
    "no need": ({"state": "not needed"}, "certificate state 'not needed' of another judge"),
}


@pytest.mark.parametrize(("members", "message"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_record_that_was_tampered_with_is_found(members: dict[str, Any], message: str) -> None:
    """A state that does not follow from the certificate beside it is named."""
    kept = _record(certified(_plan(), [VALID], now=NOW))
    kept["judges"][0].update(members)

    (problem,) = check_record(kept, _plan().identity())
    assert message in problem


@pytest.mark.parametrize("name", [name for name in SUITES if name != VALID.whole["suite"]])
def test_a_judge_of_another_suite_has_none(name: str) -> None:
    """Whatever the suite, its judges are found without a certificate of it, and nothing breaks."""
    plan = _plan()

    assert "none" == _state(replace(plan, data=replace(plan.data, suite=name)), VALID)[0]


@pytest.mark.parametrize("state", ["none", "failed"])
def test_a_record_that_no_gate_let_through_is_found(state: str) -> None:
    """A jury started without the override cannot have a judge without a certificate, nor any run one that failed."""
    plan = _plan(JUDGE, Judge(Model("judge-b", PLACE))) if state == "none" else _plan()
    kept = record(certified(plan, [FAILED] if state == "failed" else [], now=NOW), uncertified=False)

    assert "with which only --uncertified starts a run" in " ".join(check_record(kept, plan.identity()))
    assert [] == check_record({**kept, "uncertified": True}, plan.identity())
