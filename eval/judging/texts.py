"""The texts of a run as one value: held by their digests, filled without touching what is filled in.

In: the texts of a suite, or another's in their place. Out: the digest by which a run's identity names each.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts of a run: both system texts, the judge's user message and its item line, with `<<name>>` places.

    None where a suite sends no such text.
    """

    answer_system: str | None
    judge_system: str | None
    judge_user: str
    judge_item: str | None = None

    @property
    def template_sha256(self) -> str:
        """The digest of the judge message's form: its template, and after a blank line its item line if it has one."""
        return text_sha256(self.judge_user if self.judge_item is None else f"{self.judge_user}\n\n{self.judge_item}")


def text_sha256(text: str) -> str:
    """Return the SHA-256 hex of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return the template with each `<<name>>` replaced once: a value that itself holds `<<...>>` stays as it is."""
    return re.sub(r"<<(\w+)>>", lambda place: values[place.group(1)], template)
