"""Judges on 127.0.0.1 that know the probes: one that is right on all, and others with one fault each.

`with ProbeJudge(right) as judge: ... judge.url, judge.hits`. A policy takes what it is asked and returns the text of a
reply, or an HTTP status to fail with.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from eval.calls.plan import Plan
from eval.certificates.certificate import Certificate, Decision, make_certificate
from eval.certificates.probes import Probe, ProbeItem, probes_of, probes_sha256, read_probes


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked: the probe, and its items by the id a reply must name; None where it names none."""

    probe: Probe
    items: dict[str | None, ProbeItem]


Policy = Callable[[Question], str | int]


def said(question: Question, decide: Callable[[ProbeItem], bool]) -> str:
    """Return a good reply that decides each item so."""
    if None in question.items:
        return json.dumps({"explanation": "", "criteria_met": decide(question.items[None])})
    return json.dumps({"decisions": [{"item_id": i, "matched": decide(item)} for i, item in question.items.items()]})


def right(question: Question) -> str:
    """Decide as expected."""
    return said(question, lambda item: item.expected)


def always_true(question: Question) -> str:
    """Match everything."""
    return said(question, lambda _: True)


def obeys(question: Question) -> str:
    """Decide well, but do what an answer orders: match everything, or nothing where it says false."""
    if question.probe.trait != "injection":
        return right(question)
    return said(question, lambda _: "false" not in question.probe.answer.lower())


def copies(question: Question) -> str:
    """Decide well, but repeat a verdict that stands in the answer."""
    found = re.search(r'\{"(decisions|explanation)".*\}', question.probe.answer)
    return found[0] if found else right(question)


def prose(_: Question) -> str:
    """Say everything but a verdict."""
    return "The answer looks careful to me."


def refuses_long(question: Question) -> str | int:
    """Take no long request, as a server with a small context, and match everything else."""
    return 400 if question.probe.trait == "long" else always_true(question)


def but(policy: Policy, kind_of: Callable[[Question], bool], other: Policy) -> Policy:
    """Return a policy that does another thing where asked for."""
    return lambda question: other(question) if kind_of(question) else policy(question)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class ProbeJudge:
    """A server whose replies come from a policy; `policy` and `name` may be changed while it runs."""

    def __init__(self, policy: Policy, *, name: str | None = "probe-judge-2026-01-01") -> None:
        """Take the policy, and the name that replies carry."""
        self.policy, self.name, self.hits = policy, name, 0
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        judge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                judge.hits += 1
                status, answer = judge.answer(body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
                pass

        return Handler

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and body of a reply to a request."""
        asked = question(body["messages"][-1]["content"])
        reply = "I decide on items." if asked is None else self.policy(asked)
        if isinstance(reply, int):
            return reply, {"error": {"message": "no", "code": reply}}
        choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        return 200, {"model": self.name, "choices": [choice]}


def question(user: str) -> Question | None:
    """Return the probe that a judge's user message is about, and the items it asks for; None of another message."""
    grader, listed = "# Rubric item\n" in user, user.partition("# Rubric items\n")[2]
    probes = [probe for probe in read_probes() if _shown(probe, grader=grader or bool(listed)) in user]
    if not probes:
        return None
    probe = max(probes, key=lambda probe: len(probe.answer))
    if grader:
        line = user.partition("# Rubric item\n")[2].partition("\n")[0]
        return Question(probe, {None: next(item for item in probe.items if line == f"[{item.points}] {item.text}")})
    if listed:
        shown = {f"[{item.points}] {item.text}": item for item in probe.items}
        asked = re.findall(r"^(\S+): (\[.*)$", listed.partition("\n\n# Instructions\n")[0], re.MULTILINE)
        return Question(probe, {item_id: shown[text] for item_id, text in asked})
    asked = re.findall(r"^\[([^\]]+)\] points=\S+ :: (.*)$", user.rpartition("\n\nRUBRIC ITEMS:\n")[2], re.MULTILINE)
    by_text = {item.text: item for item in probe.items}
    return Question(probe, {item_id: by_text[text] for item_id, text in asked})


def _shown(probe: Probe, *, grader: bool) -> str:
    if grader:
        return (
            "\n\n".join(f"{role}: {text}" for role, text in (*probe.conversation, ("assistant", probe.answer))) + "\n"
        )
    return f"CLINICAL PROMPT:\n{probe.conversation[-1][1]}\n\nANSWER:\n{probe.answer}\n\nRUBRIC ITEMS:\n"


def certificate_of(plan: Plan, *, wrong: int = 0, date: str = "2026-01-01T00:00:00.000000Z") -> Certificate:
    """Return the certificate of a plan's first judge without asking it: all items right but the first sentinels."""
    own = probes_of(plan.suite.name)
    items = [(probe, id_, item) for probe in own for id_, item in zip(probe.item_ids, probe.items, strict=True)]
    bad = [id_ for _, id_, item in items if item.sentinel][:wrong]
    decisions = [
        Decision(probe.id, id_, item.sentinel, item.expected, item.expected is (id_ not in bad))
        for probe, id_, item in items
    ]
    identity = plan.identity()
    named = {**identity, "judges": identity["judges"][:1], "dataset_sha256": probes_sha256(own)}
    return Certificate(
        make_certificate(named, decisions, models_returned=["probe-judge-2026-01-01"], date=date, made_by={})
    )
