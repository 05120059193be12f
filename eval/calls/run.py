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

from eval.calls.builtin import POLICIES, verbatim_reply
from eval.calls.call import JUDGED_ANSWERS, NO_USAGE, VERSION, Call, CallName, call_line
from eval.calls.endpoint import Adaptation, Client, Reply, Usage
from eval.calls.journal import Journal
from eval.calls.plan import Plan, Request
from eval.calls.reply import one_line, shortened
from eval.cases import Case
from eval.judging.judge import RefusedReplyError, parse_decisions

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
    reusable: Mapping[str, Mapping[str, Call]]
    now: Callable[[], str]
    on_progress: Callable[[Progress], None]
    patience: int = 2
    """Calls in a row that may reach no server before the run stops: as many as are in flight, at least two."""
    stopped: str | None = None
    unreached: int = 0
    """Calls that reached no server since the last one that did."""
    reasons: dict[str, str] = field(default_factory=dict)

    async def run(self, *, concurrency: int) -> Outcome:
        """Work through the plan's cases with at most `concurrency` calls in flight."""
        rest = iter(self.plan.cases)
        self.patience = max(min(concurrency, len(self.plan.cases)), 2)
        workers = [asyncio.create_task(self._work(rest)) for _ in range(min(concurrency, len(self.plan.cases)))]
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

    async def _work(self, cases: Iterator[Case]) -> None:
        for case in cases:
            if self.stopped:
                return
            answer = await self._answer(self.plan.answer_request(case))
            if answer.state in JUDGED_ANSWERS and answer.text is not None and not self.stopped:
                await self._judge(self.plan.judge_request(case, answer.text))
            self.on_progress(Progress("case", "judge", case.benchmark))

    async def _answer(self, request: Request) -> Call:
        finished = self._finished(request)
        return finished or await self._ask(request, reply=1)

    async def _judge(self, request: Request) -> None:
        if self._finished(request):
            return
        for reply in range(1, self.plan.limits.judge_replies + 1):
            call = await self._ask(request, reply=reply)
            if call.state not in _REPLIES or self.stopped:
                return

    def _finished(self, request: Request) -> Call | None:
        """Return the final reply that the journal or a reused journal holds for a request; copy a reused one."""
        known = self.known.get((request.case.case_id, request.key))
        if known and known.done and _readable(known, request):
            return known
        paid = self.reusable.get(request.key, {})
        old = paid.get(request.case.case_id) or next(iter(paid.values()), None)
        if old is None or not _readable(old, request):
            return None
        call = replace(
            old,
            case_id=request.case.case_id,
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
            state, reason = _read_reply(got.text or "", request)
        call = Call(
            key=request.key,
            role=request.role,
            case_id=request.case.case_id,
            answer_repeat=0,
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
        """Stop the run when a server says that no call can succeed, or when none of a round of calls reached one."""
        if request.model.endpoint is not None:
            self.unreached = self.unreached + 1 if got.state == "transport" and got.status is None else 0
        if got.fatal or self.unreached >= self.patience:
            self.stopped = self.stopped or f"{request.role} model {request.model.name}: {got.reason}"
            raise _StopRunError

    async def _reply(self, request: Request) -> Reply:
        if request.role == "answer" and self.plan.given:
            given = self.plan.given.by_case.get(request.case.case_id)
            if given is None:
                return _local("missing", None, "no answer for this case in the file of answers")
            return _local(given.state, given.text, None if given.text else "the file of answers holds none")
        if request.model.endpoint is None:
            return _local("ok", _builtin_text(request), None)
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


def _builtin_text(request: Request) -> str:
    if request.role == "answer":
        return POLICIES[request.model.name](request.case)
    return verbatim_reply(request.answer, items=request.items, ids=request.ids)


def _read_reply(text: str, request: Request) -> tuple[str, str | None]:
    try:
        parse_decisions(text, request.ids)
    except RefusedReplyError as error:
        return "invalid_reply", str(error)
    return "ok", None


def _readable(call: Call, request: Request) -> bool:
    """Whether a stored reply can still be read as an answer to the request: an edited file may not be."""
    if request.role == "answer":
        return call.text is not None
    return call.text is not None and _read_reply(call.text, request)[0] == "ok"
