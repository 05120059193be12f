"""The loop of a run: for every unfinished unit, call, append, go on.

In: a plan, an open journal and what it already holds. Out: a journal in which every selected case is answered and
judged or has the line that says why not. The answer is on disk before the judge is asked; a bad judge reply costs only
the judge call; 401, 403 and 404 stop the run at once. Nothing here prints or reads the clock: the command passes both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from eval.calls.builtin import POLICIES
from eval.calls.call import JUDGED_ANSWERS, NO_USAGE, VERSION, Call, CallName, call_line
from eval.calls.endpoint import Adaptation, Client, Reply, Usage
from eval.calls.journal import Journal
from eval.calls.plan import Plan, Request
from eval.calls.reply import one_line, shortened
from eval.calls.units import JudgedAnswer, Reusable, Unit, Units
from eval.judging.judge import RefusedReplyError

# A reply of the judge model itself may be asked for again; what the transport could not get was retried already.
_REPLIES: Final = frozenset({"invalid_reply", "truncated", "refused", "empty"})
_SYNC_EVERY_S: Final = 1.0
_GRACE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a run, for whoever shows it: a call began or ended, or a case ended."""

    kind: str
    role: str
    benchmark: str
    state: str | None = None
    usage: Mapping[str, int | None] = field(default_factory=lambda: dict(NO_USAGE))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run's loop ended: why it stopped before its end, if it did, and what was last said of each failed case."""

    stopped: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


class _StopRunError(Exception):
    """An endpoint said that no call to it can succeed."""


@dataclass(slots=True)
class Runner:
    """Everything a run's workers share."""

    plan: Plan
    journal: Journal
    client: Client
    known: Mapping[CallName, Call]
    reusable: Reusable
    now: Callable[[], str]
    on_progress: Callable[[Progress], None]
    returned: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Judge -> the names that its server gave the model when it was certified; another name stops the run."""
    patience: int = 2
    """Calls in a row that may reach no server before the run stops: as many as are in flight, at least two."""
    stopped: str | None = None
    unreached: int = 0
    """Calls that reached no server since the last one that did."""
    reasons: dict[str, str] = field(default_factory=dict)

    async def run(self, *, concurrency: int) -> Outcome:
        """Work through the plan's cases with at most `concurrency` calls in flight."""
        units = Units(self._answers())
        most = sum(max(1, self.plan.judge_calls(case)) for case in self.plan.cases)
        most *= self.plan.reading.answer_repeats
        self.patience = max(min(concurrency, most), 2)
        workers = [asyncio.create_task(self._work(units)) for _ in range(min(concurrency, most))]
        syncing = asyncio.create_task(self._sync())
        try:
            await _until_done_or_failed(workers)
        finally:
            syncing.cancel()
            await asyncio.gather(*workers, syncing, return_exceptions=True)
        for worker in workers:
            if not worker.cancelled() and isinstance(worker.exception(), Exception):
                error = worker.exception()
                if not isinstance(error, _StopRunError):
                    raise error  # type: ignore[misc]  # it is an Exception, checked above
        return Outcome(self.stopped, self.reasons)

    def _answers(self) -> Iterator[Unit]:
        for case in self.plan.cases:
            for repeat in range(self.plan.reading.answer_repeats):
                yield Unit(case, repeat)

    async def _work(self, units: Units) -> None:
        while (unit := await units.take()) is not None:
            follow: list[Unit] = []
            try:
                if self.stopped:
                    return
                follow = await self._do(unit)
            finally:
                units.give(follow)

    async def _do(self, unit: Unit) -> list[Unit]:
        """Answer a case, or have one group of its items judged; return the units that can be asked now."""
        case = unit.case
        if unit.of_answer is None:
            answer = await self._answer(self.plan.answer_request(case, repeat=unit.repeat))
            if answer.state in JUDGED_ANSWERS and answer.text is not None and not self.stopped:
                groups = self.plan.judge_groups(case)
                about = JudgedAnswer(answer.text, left=self.plan.judge_calls(case))
                if groups:
                    return [
                        Unit(case, unit.repeat, about, group, items, judge, repeat)
                        for judge, repeat in self.plan.ballots()
                        for group, items in groups
                    ]
        else:
            await self._judge(
                self.plan.judge_request(
                    case,
                    unit.of_answer.text,
                    group=unit.group,
                    items=unit.items,
                    answer_repeat=unit.repeat,
                    judge=unit.judge,
                    repeat=unit.judge_repeat,
                )
            )
            unit.of_answer.left -= 1
            if unit.of_answer.left:
                return []
        self.on_progress(Progress("case", "judge", case.benchmark))
        return []

    async def _answer(self, request: Request) -> Call:
        finished = self._finished(request)
        return finished or await self._ask(request, reply=1)

    async def _judge(self, request: Request) -> None:
        if self._finished(request):
            return
        known = self._known(request)
        if known and known.state == "truncated" and self.plan.suite.doubles:
            request = _with_twice_the_limit(request)  # an earlier session saw the reply cut at the first limit
        for reply in range(1, self.plan.limits.judge_replies + 1):
            call = await self._ask(request, reply=reply)
            if call.state not in _REPLIES or self.stopped:
                return
            if call.state == "truncated" and self.plan.suite.doubles:
                request = _with_twice_the_limit(request)

    def _known(self, request: Request) -> Call | None:
        """Return what the journal held of a unit when the run began."""
        return self.known.get((request.case.case_id, request.key, request.answer_repeat, request.group))

    def _finished(self, request: Request) -> Call | None:
        """Return the final reply that the journal or a reused journal holds for a request; copy a reused one."""
        known = self._known(request)
        if known and known.done and self._readable(known, request) and not self._another(known.model, request):
            return known
        old = self.reusable.take(request)
        if old is None or not self._readable(old, request) or self._another(old.model, request):
            return None
        call = replace(
            old,
            case_id=request.case.case_id,
            answer_repeat=request.answer_repeat,
            group=request.group,
            judge=request.judge,
            repeat=request.repeat,
        )
        self._keep(call_line(call))
        return call

    async def _ask(self, request: Request, *, reply: int) -> Call:
        panel = request.case.benchmark
        self.on_progress(Progress("begin", request.role, panel))
        got = await self._reply(request)
        state, reason = got.state, got.reason
        if request.role == "judge" and state == "ok":
            state, reason = self._read_reply(got.text or "", request)
        if another := self._another(got.model, request):
            state, reason = "rejected", another
        call = Call(
            key=request.key,
            role=request.role,
            case_id=request.case.case_id,
            answer_repeat=request.answer_repeat,
            group=request.group,
            judge=request.judge,
            repeat=request.repeat,
            reply=reply,
            state=state,
            text=got.text,
            reason=reason and shortened(one_line(reason)),
            finish_reason=got.finish_reason,
            usage=_usage(got.usage),
            model=got.model,
            fingerprint=got.fingerprint,
            response_id=got.response_id,
            cache=got.cache,
            sent=got.sent or None,
            attempts=got.attempts or None,
            latency_ms=got.latency_ms,
            at=self.now(),
        )
        self._keep(call_line(call))
        self.on_progress(Progress("end", request.role, panel, state, call.usage))
        if not call.done and reason:
            self.reasons[call.case_id] = call.reason or reason
        self._stop_if_hopeless(got, request)
        return call

    def _stop_if_hopeless(self, got: Reply, request: Request) -> None:
        """Stop the run when no call can succeed, when none of a round reached a server, or when a judge is another."""
        if another := self._another(got.model, request):
            self.stopped = self.stopped or f"judge model {request.model.name}: {another}"
            raise _StopRunError
        if request.model.endpoint is not None:
            self.unreached = self.unreached + 1 if got.state == "transport" and got.status is None else 0
        if got.fatal or self.unreached >= self.patience:
            self.stopped = self.stopped or f"{request.role} model {request.model.name}: {got.reason}"
            raise _StopRunError

    def _another(self, returned: str | None, request: Request) -> str | None:
        """Return what is wrong where a certified judge's reply came from another model than was certified."""
        certified = self.returned.get(request.judge) if request.judge is not None else None
        if not certified or returned is None or returned in certified:
            return None
        return (
            f"its server returned {returned}, certified was {', '.join(sorted(certified))}; "
            "certify it again (bedside-bench certify), or run with --uncertified"
        )

    async def _reply(self, request: Request) -> Reply:
        if request.role == "answer" and self.plan.given:
            given = self.plan.given.answer(request.case.case_id, request.answer_repeat)
            if given is None:
                return _local("missing", None, "no answer was given for this case")
            return _local(given.state, given.text, None if given.text else "the file of answers holds none")
        if request.model.endpoint is None:
            return _local("ok", self._builtin_text(request), None)
        return await self.client.call(
            request.model.endpoint,
            role=request.role,
            model=request.model.name,
            messages=list(request.messages),
            params=request.params,
            timeout_s=self.plan.limits.timeout_s,
            deadline_s=self.plan.limits.deadline_s,
            max_attempts=self.plan.limits.max_attempts,
            on_adapt=self._adapted,
        )

    def _builtin_text(self, request: Request) -> str:
        if request.role == "answer":
            return POLICIES[request.model.name](request.case)
        return self.plan.suite.verbatim(request.answer, items=request.items, ids=request.ids)

    def _read_reply(self, text: str, request: Request) -> tuple[str, str | None]:
        try:
            self.plan.suite.read_reply(text, request.ids)
        except RefusedReplyError as error:
            return "invalid_reply", str(error)
        return "ok", None

    def _readable(self, call: Call, request: Request) -> bool:
        """Whether a stored reply can still be read as an answer to the request: an edited file may not be."""
        if request.role == "answer":
            return call.text is not None
        return call.text is not None and self._read_reply(call.text, request)[0] == "ok"

    def _adapted(self, change: Adaptation) -> None:
        line = {
            "v": VERSION,
            "kind": "adapt",
            "role": change.role,
            "model": change.model,
            "endpoint": change.endpoint,
            "param": change.param,
            "action": change.action,
            "to": change.to,
            "status": change.status,
        }
        self._keep(line)

    def _keep(self, line: Mapping[str, Any]) -> None:
        try:
            self.journal.append(line)
        except OSError as error:  # no other call may be paid for that cannot be kept
            self.stopped = self.stopped or str(error)
            raise

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_EVERY_S)
            await asyncio.to_thread(self.journal.sync)


async def _until_done_or_failed(workers: list[asyncio.Task[None]]) -> None:
    """Wait for all workers; once one fails, give calls in flight a moment to land, for they are paid, then cancel."""
    try:
        _, left = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        if left:
            _, left = await asyncio.wait(left, timeout=_GRACE_S)
    except asyncio.CancelledError:
        for worker in workers:
            worker.cancel()
        raise
    for worker in left:
        worker.cancel()


def _usage(usage: Usage | None) -> dict[str, int | None]:
    return {name: getattr(usage, name) for name in NO_USAGE} if usage else dict(NO_USAGE)


def _local(state: str, text: str | None, reason: str | None) -> Reply:
    """Return a reply that took no call."""
    return Reply(
        state=state,
        text=text,
        reason=reason,
        finish_reason=None,
        usage=None,
        model=None,
        fingerprint=None,
        sent={},
        attempts=0,
        latency_ms=None,
        status=None,
        fatal=False,
    )


def _with_twice_the_limit(request: Request) -> Request:
    """Return a request whose reply may be twice as long as its key says: once, however often it is cut."""
    if request.doubled:
        return request
    limit = 2 * request.params["max_completion_tokens"]
    return replace(request, params={**request.params, "max_completion_tokens": limit}, doubled=True)
