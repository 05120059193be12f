"""What a run is: its identity and its semantics, their digests, and what differs between two.

In: the identity object of a journal's first line (formats.md 4). Out: `semantics_sha256` (formats.md 9), the protocol's
name, differences. Names are for people, digests decide: two published scorers that share one protocol string score
differently, so a run carries the digest of everything that can move a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bedside_bench import sha256_json
from eval.judging.jury import VERDICT_RULE, VOTE_RULE
from eval.judging.protocol import ANSWER_TEMPERATURE, JUDGE_TEMPERATURE
from eval.judging.suites import suite_of
from eval.judging.texts import text_sha256
from eval.numbers.defaults import ALPHA, SEED, SPEC

_UPSTREAM_STREAM: Final = "random.Random, file order"

Identity = Mapping[str, Any]


class _Nothing:
    """A field that one side does not have, which is another thing than null there."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING: Final = _Nothing()


def semantics(
    identity: Identity, *, dialect: str = SPEC, samples: int | None = None, seed: int = SEED
) -> dict[str, Any]:
    """Return everything that turns replies into numbers, and nothing else: no model, endpoint, data, time or version.

    Values of several judges stand as a list where they differ. A text or temperature that was never sent is null.

    Args:
        samples: resamples of an interval; the suite's own number where not given.

    Raises:
        ValueError: the identity's suite is unknown.
    """
    answer, judges = identity["answer"], identity["judges"]
    suite = suite_of(identity["suite"], identity["grouping"])
    return {
        "scoring": {"dialect": dialect, "missing": "ungraded", **suite.scoring},
        "prompts": {
            "answer_system": answer["system_sha256"],
            "judge_system": _one(judge["system_sha256"] for judge in judges),
            "judge_template": _one(judge["template_sha256"] for judge in judges),
        },
        "reply": {
            "format": _one(judge["format"] for judge in judges),
            "id_style": _one(judge["id_style"] for judge in judges),
            "fence": "whole reply, once",
        },
        "grouping": identity["grouping"],
        "jury": {"judges": len(judges), "repeats": identity["repeats"], "vote": VOTE_RULE, "verdict": VERDICT_RULE},
        "temperatures": {
            "answer": answer["params"].get("temperature"),
            "judge": _one(judge["params"].get("temperature") for judge in judges),
        },
        "bootstrap": {
            "stream": suite.stream if dialect == SPEC else _UPSTREAM_STREAM,
            "samples": suite.samples if samples is None else samples,
            "seed": seed,
            "alpha": ALPHA,
        },
    }


def _one(values: Iterable[Any]) -> Any:
    """Return the value that all share, or the list of them."""
    listed = list(values)
    return listed[0] if all(value == listed[0] for value in listed) else listed


def semantics_sha256(identity: Identity, *, dialect: str = SPEC, samples: int | None = None, seed: int = SEED) -> str:
    """Return the digest of a run's semantics under a dialect and bootstrap settings."""
    return sha256_json(semantics(identity, dialect=dialect, samples=samples, seed=seed))


def protocol_id(identity: Identity) -> str:
    """Return the protocol's name; where any text, reply form, jury or temperature differs from it, with 8 hex appended.

    What was never sent cannot differ: given answers and policies have no system text, a builtin judge no temperature.
    """
    asked, suite = semantics(identity), suite_of(identity["suite"], identity["grouping"])
    prompts = suite.prompts()
    template = asked["prompts"]["judge_template"]
    name = suite.protocol(template if isinstance(template, str) else None)
    named = suite.protocol(prompts.template_sha256) != name
    standard = {
        "prompts": {
            "answer_system": _sha256(prompts.answer_system),
            "judge_system": _sha256(prompts.judge_system),
            "judge_template": template if named else prompts.template_sha256,
        },
        "reply": {"format": suite.judge_format, "id_style": suite.id_style, "fence": "whole reply, once"},
        "grouping": suite.grouping,
        "jury": {"judges": 1, "repeats": 1, "vote": VOTE_RULE, "verdict": VERDICT_RULE},
        "temperatures": {"answer": ANSWER_TEMPERATURE, "judge": JUDGE_TEMPERATURE},
    }
    if identity["answer"]["source"] != "model":
        standard["prompts"]["answer_system"] = standard["temperatures"]["answer"] = None  # type: ignore[index]
    if not any(judge["params"] for judge in identity["judges"]):
        standard["temperatures"]["judge"] = None  # type: ignore[index]
    if all(asked[name_] == value for name_, value in standard.items()):
        return name
    return f"{name}+{sha256_json(asked)[:8]}"


def _sha256(text: str | None) -> str | None:
    return None if text is None else text_sha256(text)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], *, at: str = "") -> list[str]:
    """Return one line for each field in which two identities differ: `judges.0.model: 'a' in the file, 'b' now`."""
    found = []
    for name in sorted(old.keys() | new.keys()):
        a, b, where = old.get(name, _NOTHING), new.get(name, _NOTHING), f"{at}{name}"
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            a, b = _numbered(a), _numbered(b)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, at=f"{where}.")
        elif a != b or type(a) is not type(b):
            found.append(f"{where}: {a!r} in the file, {b!r} now")
    return found


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    return {str(index): value for index, value in enumerate(values)}
