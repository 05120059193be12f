"""What differs between the suites that one loop runs: the words models read, how a reply is read, what is standard.

In: the name in a run's identity. Out: the `Suite`: how an answer and its decisions are asked for and read. The loop,
the journal, the states and the results are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from builder.healthbench.names import SUITE as HEALTHBENCH_NAME
from eval.cases import Case, Item
from eval.healthbench import protocol as healthbench
from eval.judging import judge, protocol
from eval.judging.texts import Message, Prompts
from eval.numbers.defaults import HEALTHBENCH_SAMPLES, SAMPLES
from eval.statements import merge as statement_rules
from eval.statements import parse as listing
from eval.statements import protocol as statements

BEDSIDE_NAME: Final = "bedside-bench"
GROUPINGS: Final = ("case", "item")
WHOLE_CASE: Final = "*"
"""The name of a judge call that asks about all items of a case."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite's protocol: what is sent, how a reply is read, and what is standard for it.

    Attributes:
        grouping: what one judge call asks about: `case` all items of a case, `item` one of them.
        judge_format: how a judge's reply is constrained where nobody says otherwise.
        id_style: how items are named to the judge; `none` where one call asks about one item without naming it.
        asked_ids: (items, id_style=) -> the names of the items in a judge's reply.
        judge_messages: (case, answer, items=, ids=, prompts=) -> messages.
        judge_params: (ids, judge_format=, temperature=) -> the judge call's parameters as requested.
        judge_tokens: the rule behind the reply's token limit, in words, as the identity holds it.
        doubles: whether a reply that was cut at its limit is asked for once more with twice the limit.
        read_reply: (text, ids) -> one boolean an id; raises `RefusedReplyError`. () where a reply is about no item.
        verbatim: (answer, items=, ids=) -> the reply of the built-in judge in this suite's form.
        protocol: template digest -> the protocol's name while everything else is standard.
        scoring: what the semantics say of the scoring rule beside the dialect.
        certified: whether every judge, even a single one, needs a valid certificate.
        stream: the bootstrap's random stream in words; `samples` is its own number of resamples.
    """

    name: str
    grouping: str
    judge_format: str
    id_style: str
    prompts: Callable[[], Prompts]
    asked_ids: Callable[..., tuple[str, ...]]
    judge_messages: Callable[..., list[Message]]
    judge_params: Callable[..., dict[str, Any]]
    judge_tokens: str | int
    doubles: bool
    read_reply: Callable[[str, Sequence[str]], tuple[bool, ...]]
    verbatim: Callable[..., str]
    protocol: Callable[[str | None], str]
    scoring: Mapping[str, str]
    stream: str
    samples: int
    certified: bool = False

    def answer_messages(self, case: Case, prompts: Prompts) -> list[Message]:
        """Return the answer call's messages."""
        return protocol.answer_messages(case, prompts=prompts)


BEDSIDE_SUITE: Final = Suite(
    name=BEDSIDE_NAME,
    grouping="case",
    judge_format="json_object",
    id_style="full",
    prompts=protocol.protocol_prompts,
    asked_ids=protocol.asked_ids,
    judge_messages=protocol.judge_messages,
    judge_params=protocol.judge_params,
    judge_tokens=protocol.JUDGE_TOKENS_RULE,
    doubles=False,
    read_reply=judge.parse_decisions,
    verbatim=judge.verbatim_reply,
    protocol=lambda _: protocol.PROTOCOL,
    scoring={},
    stream="numpy default_rng, appendix H",
    samples=SAMPLES,
)
HEALTHBENCH_SUITE: Final = Suite(
    name=HEALTHBENCH_NAME,
    grouping="item",
    judge_format="none",
    id_style="none",
    prompts=healthbench.own_prompts,
    asked_ids=protocol.asked_ids,
    judge_messages=healthbench.grader_messages,
    judge_params=healthbench.grader_params,
    judge_tokens=healthbench.GRADER_MAX_TOKENS,
    doubles=True,
    read_reply=healthbench.parse_grade,
    verbatim=healthbench.verbatim_grade,
    protocol=healthbench.protocol_name,
    scoring={"rule": "healthbench: mean clipped to 0..1, examples not"},
    stream="numpy default_rng, integers(0, n, (samples, n)) a metric",
    samples=HEALTHBENCH_SAMPLES,
)
# Another wording, another reply and other names of items: a suite of its own that shares the data's name.
HEALTHBENCH_ALL_SUITE: Final = replace(
    HEALTHBENCH_SUITE,
    grouping="case",
    judge_format="json_object",
    id_style="short",
    prompts=healthbench.own_prompts_all,
    judge_messages=healthbench.grader_all_messages,
    judge_params=healthbench.grader_all_params,
    judge_tokens=healthbench.GRADER_ALL_TOKENS_RULE,
    read_reply=judge.parse_decisions,
    verbatim=judge.verbatim_reply,
    protocol=healthbench.protocol_all_name,
)
# Replies are lists of statements, not decisions on items: cases have no items, and no score is computed from them.
STATEMENTS_SUITE: Final = Suite(
    name=statements.SUITE,
    grouping="case",
    judge_format="json_object",
    id_style="none",
    prompts=statements.listing_prompts,
    asked_ids=protocol.asked_ids,
    judge_messages=statements.listing_messages,
    judge_params=statements.listing_params,
    judge_tokens=statements.LISTING_MAX_TOKENS,
    doubles=True,
    read_reply=listing.read_listing,
    verbatim=statements.no_listing,
    protocol=statements.protocol_name,
    scoring={
        "rule": f"{statement_rules.LIST_RULE}; {statement_rules.UNION_RULE}",
        "same": statement_rules.SAME_RULE,
    },
    stream="numpy default_rng, appendix H",
    samples=SAMPLES,
    certified=True,
)
SUITES: Final = {suite.name: suite for suite in (BEDSIDE_SUITE, HEALTHBENCH_SUITE, STATEMENTS_SUITE)}
_REGROUPED: Final = {(suite.name, suite.grouping): suite for suite in (HEALTHBENCH_ALL_SUITE,)}


def suite_of(name: str, grouping: str | None = None) -> Suite:
    """Return the suite that a run's identity names, as it asks and reads with its grouping.

    Args:
        grouping: what one judge call asks about; the suite's own where None.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in SUITES:
        raise ValueError(f"suite: expected one of {', '.join(SUITES)}, found {name!r}")
    return _REGROUPED.get((name, grouping or ""), SUITES[name])


def judge_groups(items: Sequence[Item], grouping: str) -> list[tuple[str, tuple[Item, ...]]]:
    """Return what each judge call on a case asks about: its name (`*`, or an item's id) and its items."""
    return [(item.item_id, (item,)) for item in items] if grouping == "item" else [(WHOLE_CASE, tuple(items))]
