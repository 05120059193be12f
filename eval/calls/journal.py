"""The append-only file of a run: one JSON object a line, on disk before anything else sees a result.

In: an identity, case heads, adaptations, finished calls. Out: `X.jsonl` (formats.md 4) and what it holds. Each line is
one `os.write`, so a killed process loses nothing that was written; `sync` is called about once a second off the event
loop, so a dead machine loses at most the last second. One lock a file. Decisions are never stored: they are parsed from
the reply's text whenever they are needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import orjson
from filelock import FileLock, Timeout

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.call import NO_USAGE, STATES, VERSION, Call, CaseHead, case_line, line_head
from eval.calls.lines import ADAPT, CERTIFIED, call_values, check_case, check_certified, check_header, check_members


@dataclass(slots=True)
class JournalData:
    """What a journal file holds: its first line, the cases in dataset order, adaptations, and calls in file order."""

    header: dict[str, Any]
    cases: tuple[CaseHead, ...]
    adaptations: list[dict[str, Any]]
    calls: list[Call]
    certified: dict[str, Any] | None = None
    """What the judges' certificates said at the latest start: {"judges": [..], "uncertified": bool}."""

    @property
    def identity(self) -> dict[str, Any]:
        """The run's identity as its first line holds it."""
        identity: dict[str, Any] = self.header["identity"]
        return identity


class Shape(NamedTuple):
    """How many of each a run asks for: judges, calls of each, answers to a case."""

    judges: int
    repeats: int
    answers: int


def _encode(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


class Journal:
    """A journal opened for appending, under its lock.

    Use as a context manager. `append` writes one line in one call; `sync` makes all lines so far durable and may run in
    another thread.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is opened yet."""
        self.path = path
        # Of the file itself: through a link to it a second run would pay for the same calls.
        self._lock = FileLock(f"{path.resolve()}.lock", timeout=0)
        self._fd = -1

    def __enter__(self) -> Journal:
        """Take the lock.

        Raises:
            BadInput: another process works on this file.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            owner = _lock_owner(Path(self._lock.lock_file))
            raise BadInput(
                f"{self.path}: in use by another run{owner}; wait for it, or give another --output"
            ) from None
        Path(self._lock.lock_file).write_text(f"{os.getpid()}\n", encoding="ascii")
        return self

    def __exit__(self, *_: object) -> None:
        """Sync, close and give the lock back."""
        if self._fd >= 0:
            os.fdatasync(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._lock.release()

    def create(self, header: Mapping[str, Any], heads: Iterable[CaseHead]) -> None:
        """Write a new journal's first line and case lines as a whole: a kill leaves all of them or no file."""
        new = self.path.with_name(f"{self.path.name}.new")
        lines = [{"v": VERSION, "kind": "run", **header}, *map(case_line, heads)]
        with new.open("wb") as file:
            file.write(b"".join(map(_encode, lines)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        self._open()

    def resume(self) -> JournalData:
        """Mend a torn tail, read the file, and open it for appending; a file that is no journal is left as it is."""
        _check_header(self.path, _first_line(self.path))
        mend_tail(self.path)
        data = read_journal(self.path)
        self._open()
        return data

    def _open(self) -> None:
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line; it survives the death of this process when the call returns.

        Raises:
            OSError: it cannot be written whole; nothing of it is left then, for a later line would be glued to it.
        """
        data = _encode(line)
        written = 0
        try:
            while written < len(data):  # a full disk or a signal may cut a write short
                written += os.write(self._fd, data[written:])
        except OSError as error:
            if written:
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - written)
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def sync(self) -> None:
        """Wait until every line so far is on the disk."""
        os.fdatasync(self._fd)


def _lock_owner(lock: Path) -> str:
    try:
        return f" (process {int(lock.read_text(encoding='ascii'))})"
    except (OSError, ValueError):
        return ""


def mend_tail(path: Path) -> None:
    """Give an unfinished last line its newline if it is whole, else move it to `<path>.torn`.

    Only the bytes after the last newline are looked at; lines before it are never touched.
    """
    with path.open("r+b") as file:
        tail = _tail(file)
        if not tail:
            return
        try:
            whole = isinstance(orjson.loads(tail), dict)
        except orjson.JSONDecodeError:
            whole = False
        if whole:
            file.write(b"\n")
        else:
            with path.with_name(f"{path.name}.torn").open("ab") as torn:
                torn.write(tail + b"\n")
            file.truncate(file.tell() - len(tail))


def _tail(file: BinaryIO) -> bytes:
    """Return what stands after the last newline of a file, and leave its end as the place to write at."""
    start, found = file.seek(0, os.SEEK_END), b""
    while start and b"\n" not in found:
        size = min(start, _BLOCK)
        start = file.seek(start - size)
        found = file.read(size) + found
    file.seek(0, os.SEEK_END)
    return found[found.rfind(b"\n") + 1 :]


_BLOCK: Final = 1 << 16


def _first_line(path: Path) -> dict[str, Any]:
    """Return the object in a file's first line, an empty one where there is none."""
    with path.open("rb") as file:
        line = next((line for line in file if line.strip()), b"")
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (1-based number, object) of each line, split on newline bytes only; an unfinished bad tail is left out.

    Raises:
        BadInput: a line that is no JSON object.
    """
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if number == len(lines):
                return
            raise BadInput(f"{path}:{number}: expected one JSON object, found: {error}; restore the line") from None
        if not isinstance(value, dict):
            raise BadInput(f"{path}:{number}: expected one JSON object, found {type(value).__name__}; restore the line")
        yield number, value


def read_journal(path: Path) -> JournalData:
    """Return what a journal holds.

    Raises:
        BadInput: the file is missing, is no journal of this version, or holds a line that is none of its kinds.
    """
    if not path.is_file():
        raise BadInput(f"{path}: expected a journal, found no such file; bedside-bench run writes one")
    lines = json_lines(path)
    _, header = next(lines, (0, {}))
    _check_header(path, header)
    heads: dict[str, CaseHead] = {}
    data = JournalData(header=header, cases=(), adaptations=[], calls=[])
    identity = data.identity
    shape = Shape(len(identity["judges"]), identity["repeats"], identity.get("answer_repeats", 1))
    for number, line in lines:
        try:
            _take(line, heads, data, shape)
        except ValueError as error:
            raise BadInput(f"{path}:{number}: expected a line of a journal, found {error}") from None
    data.cases = tuple(sorted(heads.values(), key=lambda head: head.index))
    return data


def _check_header(path: Path, header: dict[str, Any]) -> None:
    if header.get("kind") != "run" or header.get("v") != VERSION:
        raise BadInput(f"{path}:1: expected the first line of a journal (kind run, v {VERSION}), found another")
    found = sha256_json(header.get("identity"))
    if found != header.get("identity_sha256"):
        named = header.get("identity_sha256")
        raise BadInput(f"{path}:1: expected identity_sha256 {named}, found {found} for its identity; restore the line")
    try:
        check_header(header)
    except ValueError as error:
        raise BadInput(f"{path}:1: expected the identity of a run, found {error}; restore the line") from None


def _take(line: dict[str, Any], heads: dict[str, CaseHead], data: JournalData, shape: Shape) -> None:
    kind = line.get("kind")
    if line.get("v", VERSION) != VERSION:
        raise ValueError(f"version {line['v']!r}, not {VERSION}")
    if kind == "call":
        call = Call(*call_values(line))
        _check_call(call, shape)
        data.calls.append(call if call.usage else replace(call, usage=NO_USAGE))
    elif kind == "case":
        check_case(line)
        head = line_head(line, index=len(heads))
        if heads.setdefault(head.case_id, head) != head:
            raise ValueError(f"case {head.case_id} twice with different contents")
    elif kind == "adapt":
        check_members(line, ADAPT)
        data.adaptations.append(line)
    elif kind == "certified":
        check_certified(line, n_judges=shape.judges)
        data.certified = {name: line[name] for name in CERTIFIED}
    else:
        raise ValueError(f"kind {kind!r}")


def _check_call(call: Call, shape: Shape) -> None:
    """Refuse a call line whose state or text no call could have: it would be counted as something it is not."""
    if call.state not in STATES.get(call.role, ()):
        raise ValueError(f"state {call.state!r} of role {call.role!r}")
    if call.done and call.text is None:
        raise ValueError(f"text {call.text!r} in state {call.state}")
    if not 0 <= (call.judge or 0) < shape.judges:
        raise ValueError(f"judge {call.judge} of {shape.judges}")
    if not 0 <= (call.repeat or 0) < shape.repeats:
        raise ValueError(f"repeat {call.repeat} of {shape.repeats}")
    if not 0 <= call.answer_repeat < shape.answers:
        raise ValueError(f"answer_repeat {call.answer_repeat} of {shape.answers}")
