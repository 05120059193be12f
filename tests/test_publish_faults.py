"""Publishing through faults: at every request in turn, and by a Hub that stays away; it ends in the one right state.

An undisturbed publication tells the requests there are and the state it ends in. Then each request fails in each way,
every time on a Hub of its own, all at the same time: most of it is the client's own waiting between its tries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from builder.errors import BadInput
from builder.hub.check import check_mirror
from builder.hub.publication import Publication, Target
from eval.hub.index import check_results
from tests.local_hub import LocalHub
from tests.mirrors import build_tiny
from tests.publishing import (
    MIRROR,
    RESULTS,
    State,
    copy_of_hub,
    head_of,
    make_hub,
    methods,
    mirror_of,
    reader_of,
    requests,
    run_of,
    send,
    state,
)

Options = Mapping[str, Any]
FAULTS: Final[Mapping[str, Options]] = {
    "500": {"status": 500},
    "503": {"status": 503, "body": "<html>Service Unavailable</html>"},
    "429": {"status": 429, "headers": {"Retry-After": "0"}},
    "rate limit": {"status": 429, "headers": {"RateLimit": '"api";r=0;t=0'}},
    "drop": {"mode": "drop"},
    "truncate": {"mode": "truncate", "truncate_at": 5},
    "lost response": {"mode": "lost_response"},
    "delay": {"mode": "delay", "delay": 0.2},
}
SUITE: Final = {"mirror": ("503", "drop", "lost response"), "run": (), "proposal": ()}
"""What the quick tests inject; the slow ones inject everything into everything."""
ASKED_ONCE: Final = {
    "reading the head": {"method": "GET", "path": f"/api/datasets/{MIRROR}$"},
    "creating": {"path": "/api/repos/create$"},
    "reading refs": {"path": "/refs$"},
    "checking the card": {"path": "/api/validate-yaml$"},
    "committing": {"path": "/commit/main"},
    "reading the commit": {"path": "/revision/"},
    "tagging": {"path": "/tag/"},
}
"""What the client asks without trying again by itself, so that a Hub that stays away is found out soon."""
FOR_EVER: Final = 100_000


@dataclass(frozen=True, slots=True)
class Act:
    """A publication to disturb: the Hub's storage before it, what it asks, and the states before and after."""

    publication: Publication
    target: Target
    storage: Path
    asks: tuple[str, ...]
    before: State | None
    after: State

    def publish(self, hub: LocalHub, cache: Path) -> None:
        """Publish, and stop unless it ended well."""
        send(hub, self.publication, self.target, cache=cache)

    def problem(self, hub: LocalHub) -> str | None:
        """Return how a Hub differs from the one right state; None where it does not."""
        found = state(hub, self.target.repo)
        return None if found == self.after else f"expected {self.after}, found {found}"

    def half(self, hub: LocalHub) -> str | None:
        """Return how a Hub is neither as before nor as after, but for an empty repository or a tag still to come."""
        found = state(hub, self.target.repo)
        if found is None or found == self.before or found == self.after:
            return None
        if self.before is None and found.titles == ("initial commit",) and not found.tags and found.commits == 1:
            return None
        if self.after.tags and found == _without_tag(self.after, str(self.target.tag)):
            return None
        return f"half published: {found}"


def _without_tag(whole: State, tag: str) -> State:
    tags = {name: number for name, number in whole.tags.items() if name != tag}
    return State(whole.private, whole.titles, whole.files, tags, whole.proposals, whole.commits)


def make_act(publication: Publication, target: Target, storage: Path, work: Path) -> Act:
    """Publish once without a fault and return what is to be disturbed."""
    with copy_of_hub(storage, work / "hub") as hub:
        before = state(hub, target.repo)
        send(hub, publication, target, cache=work / "cache")
        asks, after = tuple(requests(hub)), state(hub, target.repo)
        head = head_of(hub, target.repo, "refs/pr/1" if target.create_pr else target.tag)
        check = check_mirror if target.repo == MIRROR else check_results
        verified = check(head, reader_of(hub, work / "cache"))
    if verified.findings or after is None or before == after:
        raise ValueError(f"an undisturbed publication goes wrong: {verified.findings}")
    return Act(publication, target, storage, asks, before, after)


@pytest.fixture(scope="module")
def acts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Act]:
    """Return a mirror for a new repository, a second run for a results repository, and one as a pull request."""
    work = tmp_path_factory.mktemp("acts")
    with make_hub(work / "empty"):
        pass
    with make_hub(work / "one-run") as hub:
        send(hub, run_of(work / "runs", 0), Target(RESULTS), cache=work / "cache")
    mirror, second = mirror_of(build_tiny(work).folder), run_of(work / "runs", 1)
    return {
        "mirror": make_act(mirror, Target(MIRROR, tag="v1"), work / "empty", work / "mirror-act"),
        "run": make_act(second, Target(RESULTS, tag="v2"), work / "one-run", work / "run-act"),
        "proposal": make_act(second, Target(RESULTS, create_pr=True), work / "one-run", work / "proposal-act"),
    }


def once(act: Act, number: int, options: Options, work: Path) -> str | None:
    """Publish while one request fails, then again without a fault, which changes nothing; return what went wrong."""
    with copy_of_hub(act.storage, work / "hub") as hub:
        fault = hub.fault(after=number, times=1, **options)
        act.publish(hub, work / "cache")
        if fault.hits <= number:
            return "the request was never made"
        if problem := act.problem(hub):
            return problem
        hub.faults.clear()
        hub.log.clear()
        act.publish(hub, work / "cache")
        if changing := set(methods(hub)) - {"GET", "HEAD"}:
            return f"the second publication changes something: {changing}"
        return act.problem(hub)


def away(act: Act, options: Options, work: Path) -> str | None:
    """Publish while requests fail for ever, which may give up; again without the fault it ends well."""
    with copy_of_hub(act.storage, work / "hub") as hub:
        hub.fault(times=FOR_EVER, **options)
        try:
            act.publish(hub, work / "cache")
        except BadInput as error:
            problem = act.half(hub) or _of_message(str(error))
        else:
            problem = act.problem(hub)
        if problem:
            return problem
        hub.faults.clear()
        act.publish(hub, work / "cache")
        return act.problem(hub)


def _of_message(message: str) -> str | None:
    told = "run the same command again" in message or "try again later" in message
    return None if told and "\n" not in message else f"does not say what to do: {message}"


def all_at_once(jobs: Mapping[str, Callable[[Path], str | None]], work: Path) -> list[str]:
    """Return what went wrong in which job, each with a folder of its own."""

    def safely(number: int, name: str) -> str | None:
        try:
            problem = jobs[name](work / str(number))
        except Exception as error:  # every other job is still of interest
            problem = f"{type(error).__name__}: {error}"
        return problem and f"{name}: {problem}"

    with ThreadPoolExecutor(len(jobs)) as executor:
        problems = list(executor.map(safely, range(len(jobs)), jobs))
    return [problem for problem in problems if problem]


def every_request(
    act: Act, modes: Sequence[str], disturb: Callable[[Act, int, Options, Path], str | None]
) -> dict[str, Callable[[Path], str | None]]:
    """Return a job for every request and mode."""

    def job(number: int, mode: str) -> Callable[[Path], str | None]:
        return lambda work: disturb(act, number, FAULTS[mode], work)

    return {
        f"{act.target.repo}, request {number} ({asked}), {mode}": job(number, mode)
        for number, asked in enumerate(act.asks)
        for mode in modes
    }


def from_then_on(act: Act, number: int, options: Options, work: Path) -> str | None:
    """Publish to a Hub that goes away at a request; errors as for `away`."""
    return away(act, {"after": number, **options}, work)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name, modes in SUITE.items() for mode in modes])
def test_a_fault_at_any_request_is_survived(acts: dict[str, Act], name: str, mode: str, tmp_path: Path) -> None:
    """Whichever request fails once: one commit (or pull request), all files, the tag, and nothing left to do."""
    assert [] == all_at_once(every_request(acts[name], [mode], once), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name, modes in SUITE.items() for mode in FAULTS if mode not in modes]
)
def test_any_fault_at_any_request_is_survived(acts: dict[str, Act], name: str, mode: str, tmp_path: Path) -> None:
    """The same for every other kind of fault."""
    assert [] == all_at_once(every_request(acts[name], [mode], once), tmp_path)


@pytest.mark.parametrize("name", ["mirror", "run", "proposal"])
@pytest.mark.parametrize("status", [409, 412])
def test_a_refused_commit_is_built_again(acts: dict[str, Act], name: str, status: int, tmp_path: Path) -> None:
    """A commit that the Hub refuses, because the branch moved on, is made again from what is there."""
    commit = acts[name].asks.index(f"POST /api/datasets/{acts[name].target.repo}/commit/main")

    assert once(acts[name], commit, {"status": status}, tmp_path) is None


@pytest.mark.parametrize("mode", ["503", "lost response"])
def test_a_hub_that_stays_away_leaves_nothing_half_done(acts: dict[str, Act], mode: str, tmp_path: Path) -> None:
    """When one kind of request never succeeds, main is untouched or complete, and a later try ends well."""

    def job(asked: Options) -> Callable[[Path], str | None]:
        return lambda work: away(acts["mirror"], {**asked, **FAULTS[mode]}, work)

    assert [] == all_at_once({name: job(asked) for name, asked in ASKED_ONCE.items()}, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("mode", FAULTS)
def test_a_hub_that_goes_away_at_any_request_leaves_nothing_half_done(
    acts: dict[str, Act], mode: str, tmp_path: Path
) -> None:
    """When everything fails from some request on, main is untouched or complete, and a later try ends well."""
    jobs = {
        f"{name}: {job}": disturb
        for name, act in acts.items()
        for job, disturb in every_request(act, [mode], from_then_on).items()
    }

    assert [] == all_at_once(jobs, tmp_path)


@pytest.mark.slow
def test_endless_conflicts_end(acts: dict[str, Act], tmp_path: Path) -> None:
    """A Hub that refuses every commit as too late is given up on, with nothing done."""
    assert away(acts["mirror"], {"path": "/commit/main", "status": 412}, tmp_path) is None


def test_a_long_wait_that_the_hub_asks_for_is_not_sat_out(acts: dict[str, Act], tmp_path: Path) -> None:
    """Asked to come again in more than five minutes, publishing stops at once instead of waiting."""
    act = acts["mirror"]
    with copy_of_hub(act.storage, tmp_path / "hub") as hub:
        hub.fault(path="/commit/main", times=FOR_EVER, status=429, headers={"Retry-After": "301"})
        with pytest.raises(BadInput, match="the Hub answered 429"):
            act.publish(hub, tmp_path / "cache")

        assert 1 == requests(hub).count(f"POST /api/datasets/{MIRROR}/commit/main")


def test_the_requests_of_a_publication_are_few(acts: dict[str, Act]) -> None:
    """A mirror of one panel takes 18 with its repository and tag, a second run 26, one as a pull request 25."""
    assert {"mirror": 18, "run": 26, "proposal": 25} == {name: len(act.asks) for name, act in acts.items()}
