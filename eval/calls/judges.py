"""Who judges: from flags, or from a TOML file for more than flags carry, to one entry a judge.

In: option values, or a file of `[[judge]]` tables. Out: `JudgeEntry`s, checked; the command turns them into judges,
as only it may look for keys.

    [[judge]]
    model = "judge-a"
    base_url = "https://api.a.example/v1"
    api_key_env = "A_KEY"
    vendor = "A"
    temperature = 0
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from builder.errors import BadInput
from eval.judging.protocol import ID_STYLES, JUDGE_FORMATS, JUDGE_TEMPERATURE

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JudgeEntry:
    """One judge as a person names it. None leaves a value to the command: its endpoint, its key, the suite's forms.

    A `temperature` of None asks for the server's own (in TOML: "default").
    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    vendor: str | None = None
    temperature: float | None = JUDGE_TEMPERATURE
    reply_format: str | None = None
    id_style: str | None = None
    reasoning_effort: str | None = None


_TEXTS: Final = ("model", "base_url", "api_key_env", "vendor", "judge_format", "id_style", "reasoning_effort")
_CHOICES: Final = {"judge_format": JUDGE_FORMATS, "id_style": ID_STYLES}
DEFAULT: Final = "default"
"""In place of a temperature: none is sent."""
MOST_TEMPERATURE: Final = 100


def read_judges(path: Path) -> tuple[JudgeEntry, ...]:
    """Return the judges that a TOML file lists, in its order.

    Raises:
        BadInput: it cannot be read, or holds anything but good `[[judge]]` tables; every problem is named.
    """
    try:
        found = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path}: expected a TOML file of [[judge]] tables, found: {error}") from None
    tables = found.get("judge")
    if (
        not tables
        or set(found) != {"judge"}
        or not isinstance(tables, list)
        or not all(isinstance(table, dict) for table in tables)
    ):
        raise BadInput(f"{path}: expected [[judge]] tables and nothing else, found {', '.join(found) or 'nothing'}")
    problems = [f"judge {n}: {text}" for n, table in enumerate(tables, start=1) for text in _problems(table)]
    if problems:
        raise BadInput(f"{path}: {'; '.join(problems)}; mend the file")
    return tuple(_entry(table) for table in tables)


def _problems(table: Mapping[str, Any]) -> list[str]:
    said = []
    if "model" not in table:
        said.append("expected a model, found none")
    for name, value in table.items():
        if name == "temperature":
            if value != DEFAULT and not is_temperature(value):
                said.append(
                    f'temperature: expected a number from 0 to {MOST_TEMPERATURE} or "{DEFAULT}", found {value!r}'
                )
        elif name not in _TEXTS:
            said.append(f"{name}: expected one of {', '.join((*_TEXTS, 'temperature'))}")
        elif not isinstance(value, str) or not value.strip():
            said.append(f"{name}: expected a text, found {value!r}")
        elif value not in _CHOICES.get(name, (value,)):
            said.append(f"{name}: expected one of {', '.join(_CHOICES[name])}, found {value!r}")
    return said


def is_temperature(value: object) -> bool:
    """Whether a value can be asked for: servers take 0 to 2, and a journal cannot carry an integer beyond 64 bits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_TEMPERATURE


def _entry(table: Mapping[str, Any]) -> JudgeEntry:
    temperature = table.get("temperature", JUDGE_TEMPERATURE)
    return JudgeEntry(
        model=table["model"],
        base_url=table.get("base_url"),
        api_key_env=table.get("api_key_env"),
        vendor=vendor.strip() if (vendor := table.get("vendor")) else None,
        temperature=None if temperature == DEFAULT else plain(temperature),
        reply_format=table.get("judge_format"),
        id_style=table.get("id_style"),
        reasoning_effort=table.get("reasoning_effort"),
    )


def plain(temperature: float) -> float:
    """Return 1 for 1.0: the value goes into requests and digests in the form the protocol has it."""
    return int(temperature) if float(temperature).is_integer() else temperature


def judges_of(
    models: Sequence[str],
    *,
    base_urls: Sequence[str] = (),
    key_variables: Sequence[str] = (),
    vendors: Sequence[str] = (),
    temperatures: Sequence[float] = (),
    reply_format: str | None = None,
    id_style: str | None = None,
) -> tuple[JudgeEntry, ...]:
    """Return the judges that flags name: every other flag stands once for all, or as often as there are models.

    Raises:
        BadInput: a flag stands another number of times, or a temperature is none.
    """
    n = len(models)
    urls, keys = _each("--judge-base-url", base_urls, n), _each("--judge-api-key-env", key_variables, n)
    named, warmth = _each("--judge-vendor", vendors, n), _each("--judge-temperature", temperatures, n)
    if bad := next((value for value in temperatures if not is_temperature(value)), None):
        raise BadInput(f"--judge-temperature: expected a number from 0 to {MOST_TEMPERATURE}, found {bad:g}")
    return tuple(
        JudgeEntry(
            model,
            base_url=urls[at],
            api_key_env=keys[at],
            vendor=(named[at] or "").strip() or None,
            temperature=JUDGE_TEMPERATURE if (value := warmth[at]) is None else plain(value),
            reply_format=reply_format,
            id_style=id_style,
        )
        for at, model in enumerate(models)
    )


def _each(option: str, values: Sequence[T], n: int) -> Sequence[T | None]:
    if len(values) not in (0, 1, n):
        raise BadInput(f"{option}: expected it once for all judges, or once for each of {n}, found {len(values)} times")
    return [values[at] if len(values) == n else values[0] if values else None for at in range(n)]


def check_jury(names: Sequence[str]) -> None:
    """Stop at a jury in which one model sits twice: its two votes are no independent ones (decided D8).

    Raises:
        BadInput: naming it.
    """
    if twice := next((name for name, n in Counter(names).items() if n > 1), None):
        raise BadInput(f"--judge-model {twice}: expected each judge once; --repeats asks one judge several times")
