"""What a run will ask: every request by name, message and parameter, before anything is sent.

In: cases and choices. Out: the requests of a case, and the identity of the run they make. `run` sends them, `estimate`
counts them. A unit is one call: (case, answer repeat, item group, judge, repeat).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bedside_bench import sha256_json
from eval.calls.answers import GivenAnswers
from eval.calls.builtin import ENDPOINT as BUILTIN_ENDPOINT
from eval.calls.builtin import PREFIX as BUILTIN_PREFIX
from eval.calls.call import CaseHead, case_heads, request_key
from eval.calls.endpoint import Endpoint
from eval.cases import Case, CaseSet, Item
from eval.judging.identity import protocol_id, semantics_sha256
from eval.judging.protocol import ANSWER_TEMPERATURE, JUDGE_TEMPERATURE, answer_params
from eval.judging.suites import BEDSIDE_SUITE, WHOLE_CASE, Suite, judge_groups, suite_of
from eval.judging.texts import Message, Prompts, text_sha256


@dataclass(frozen=True, slots=True)
class Model:
    """A model by the name it is asked for under, and where it is; a builtin has no endpoint."""

    name: str
    endpoint: Endpoint | None = None

    @property
    def builtin(self) -> bool:
        """Whether it is one of our stand-ins that need no network."""
        return self.name.startswith(BUILTIN_PREFIX)

    @property
    def endpoint_name(self) -> str:
        """The endpoint as it is recorded: no user, password or query."""
        return self.endpoint.name if self.endpoint else BUILTIN_ENDPOINT


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge of a run: its model, who makes that model, and how it is asked.

    `reply_format` and `id_style` are the suite's own where None, as is a vendor that nobody named; a `temperature` of
    None asks for the server's own.
    """

    model: Model
    vendor: str | None = None
    temperature: float | None = JUDGE_TEMPERATURE
    reply_format: str | None = None
    id_style: str | None = None
    reasoning_effort: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How replies are asked for and read: the texts, what one judge call asks about, how often each model is asked.

    `answer_repeats` is how many answers are asked for to each case, `repeats` how often a judge is asked about one.
    """

    prompts: Prompts
    grouping: str = BEDSIDE_SUITE.grouping
    repeats: int = 1
    answer_repeats: int = 1
    answer_temperature: float | None = ANSWER_TEMPERATURE


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a call: transport tries, judge replies a unit, seconds a try and seconds with all waits."""

    max_attempts: int = 6
    judge_replies: int = 3
    timeout_s: float = 300.0
    deadline_s: float = 1800.0


STANDARD_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Request:
    """One call to make: its key, what it is about, what to send. Items, ids and answer are the judge's.

    `doubled` says that the reply may be twice as long as the key has it, as one of that length was cut.
    """

    key: str
    role: str
    case: Case
    model: Model
    answer_repeat: int = 0
    messages: tuple[Message, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    judge: int | None = None
    repeat: int | None = None
    items: tuple[Item, ...] = ()
    ids: tuple[str, ...] = ()
    answer: str = ""
    doubled: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it starts: the data, the selected cases in dataset order, the models, and how they are asked."""

    data: CaseSet
    cases: tuple[Case, ...]
    selection: Mapping[str, Any]
    answer: Model
    judges: tuple[Judge, ...]
    reading: Reading
    answer_vendor: str | None = None
    reasoning_effort: str | None = None
    given: GivenAnswers | None = None
    limits: Limits = STANDARD_LIMITS

    @property
    def suite(self) -> Suite:
        """The suite of the data, as it asks with the run's grouping."""
        return suite_of(self.data.suite, self.reading.grouping)

    @property
    def answer_source(self) -> str:
        """Where answers come from: model, file, policy, or the data themselves."""
        return self.given.source if self.given else "policy" if self.answer.builtin else "model"

    def answer_request(self, case: Case, *, repeat: int = 0) -> Request:
        """Return the request for a case's answer."""
        if self.answer_source != "model":
            by = self.given.named(case.case_id, repeat) if self.given else {"policy": self.answer.name}
            key = sha256_json({"source": self.answer_source, **by, "case_id": case.case_id, "repeat": repeat})
            return Request(key=key, role="answer", case=case, model=self.answer, answer_repeat=repeat)
        messages = self.suite.answer_messages(case, self.reading.prompts)
        params = self.answer_params()
        key = request_key(
            endpoint=self.answer.endpoint_name, model=self.answer.name, messages=messages, params=params, repeat=repeat
        )
        return Request(
            key=key,
            role="answer",
            case=case,
            model=self.answer,
            answer_repeat=repeat,
            messages=tuple(messages),
            params=params,
        )

    def judge_groups(self, case: Case) -> list[tuple[str, tuple[Item, ...]]]:
        """Return what each judge call on an answer to a case asks about: a name, and its items."""
        return judge_groups(case.items, self.reading.grouping)

    def ballots(self) -> Iterator[tuple[int, int]]:
        """Yield (judge, repeat) of every call that each group of an answer's items gets: all judges, then again."""
        for repeat in range(self.reading.repeats):
            for judge in range(len(self.judges)):
                yield judge, repeat

    def judge_calls(self, case: Case) -> int:
        """Return how many judge calls one answer to a case gets."""
        return len(self.judge_groups(case)) * len(self.judges) * self.reading.repeats

    def judge_request(
        self,
        case: Case,
        answer: str,
        *,
        group: str = WHOLE_CASE,
        items: tuple[Item, ...] | None = None,
        answer_repeat: int = 0,
        judge: int = 0,
        repeat: int = 0,
    ) -> Request:
        """Return the request for a judge's decisions on one group of a case's items (`judge_groups`), or on all."""
        items = case.items if items is None else items
        asked = self.judges[judge]
        ids = self.suite.asked_ids(items, id_style=self._id_style(asked))
        messages = self.suite.judge_messages(case, answer, items=items, ids=ids, prompts=self.reading.prompts)
        params = self.suite.judge_params(ids, judge_format=self._format(asked), temperature=asked.temperature)
        if asked.reasoning_effort is not None:
            params["reasoning_effort"] = asked.reasoning_effort
        model = asked.model
        key = request_key(
            endpoint=model.endpoint_name, model=model.name, messages=messages, params=params, repeat=repeat
        )
        return Request(
            key=key,
            role="judge",
            case=case,
            model=model,
            answer_repeat=answer_repeat,
            messages=tuple(messages),
            params=params,
            group=group,
            judge=judge,
            repeat=repeat,
            items=items,
            ids=ids,
            answer=answer,
        )

    def _format(self, judge: Judge) -> str:
        return judge.reply_format or self.suite.judge_format

    def _id_style(self, judge: Judge) -> str:
        return judge.id_style or self.suite.id_style

    def answer_params(self) -> dict[str, Any]:
        """Return the answer call's parameters as requested; none where no model is asked."""
        if self.answer_source != "model":
            return {}
        return answer_params(temperature=self.reading.answer_temperature, reasoning_effort=self.reasoning_effort)

    def heads(self) -> list[CaseHead]:
        """Return the journal's case heads, in dataset order."""
        return case_heads(self.cases)

    def identity(self) -> dict[str, Any]:
        """Return the identity of the run (formats.md 4): all that can move a result, and every non-default limit."""
        identity = {
            "suite": self.suite.name,
            "config": self.data.config,
            "dataset_sha256": self.data.dataset_sha256,
            "n_cases": len(self.data.cases),
            "selection": dict(self.selection),
            "answer": self._answer_identity(),
            "judges": [self._judge_identity(judge) for judge in self.judges],
            "grouping": self.reading.grouping,
            "repeats": self.reading.repeats,
        }
        if self.reading.answer_repeats > 1:
            identity["answer_repeats"] = self.reading.answer_repeats
        named = {"protocol": protocol_id(identity), "semantics_sha256": semantics_sha256(identity)}
        standard = standard_limits(self.reasoning_effort)
        changed = {
            name: getattr(self.limits, name)
            for name in Limits.__slots__
            if getattr(self.limits, name) != getattr(standard, name)
        }
        return identity | named | ({"limits": changed} if changed else {})

    def _answer_identity(self) -> dict[str, Any]:
        asked = self.answer_source == "model"
        vendor = {} if self.answer_vendor is None else {"vendor": self.answer_vendor}
        return {
            **vendor,
            "source": self.answer_source,
            "model": self.answer.name,
            "endpoint": self.answer.endpoint_name if asked else None,
            "params": self.answer_params(),
            "system_sha256": _sha256(self.reading.prompts.answer_system) if asked else None,
            "file_sha256": self.given.file_sha256 if self.given else None,
        }

    def _judge_identity(self, judge: Judge) -> dict[str, Any]:
        chosen = {"temperature": judge.temperature, "reasoning_effort": judge.reasoning_effort}
        params = {name: value for name, value in chosen.items() if value is not None}
        return {
            "model": judge.model.name,
            "endpoint": judge.model.endpoint_name,
            "params": {} if judge.model.builtin else {"max_completion_tokens": self.suite.judge_tokens, **params},
            "vendor": judge.vendor,
            "system_sha256": _sha256(self.reading.prompts.judge_system),
            "template_sha256": self.reading.prompts.template_sha256,
            "format": self._format(judge),
            "id_style": self._id_style(judge),
        }


def _sha256(text: str | None) -> str | None:
    return None if text is None else text_sha256(text)


def standard_limits(reasoning_effort: str | None) -> Limits:
    """Return the default bounds: 300 s a try, or 600 s where the answer model is asked to reason."""
    return Limits(timeout_s=600.0) if reasoning_effort else STANDARD_LIMITS
