"""The append-only file of a run: torn tails, locks, order, bad lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedside_bench import sha256_json
from builder.errors import BadInput
from eval.calls.call import Call, CaseHead, call_line, current_calls, request_key
from eval.calls.journal import Journal, json_lines, mend_tail, read_journal

HEADS = [CaseHead("c1", "drug_safety", "points_rubric", (("x_0", 1), ("x_1", -1)), 0)]
IDENTITY = {
    **dict.fromkeys(("suite", "protocol", "config", "dataset_sha256", "semantics_sha256"), "bedside-bench"),
    "grouping": "case",
    **dict.fromkeys(("n_cases", "repeats"), 1),
    "selection": {},
    "answer": {**dict.fromkeys(("source", "model", "endpoint", "system_sha256", "file_sha256"), "a"), "params": {}},
    "judges": [
        {
            **dict.fromkeys(("model", "endpoint", "system_sha256", "template_sha256", "format", "id_style"), "j"),
            "params": {},
            "vendor": None,
        }
    ],
}
HEADER = {"identity": IDENTITY, "identity_sha256": sha256_json(IDENTITY), "started": "2026-01-01T00:00:00.000000Z"}


ANSWER = b'{"v":1,"kind":"call","key":"k","role":"answer","case_id":"c1","answer_repeat":0,'


def _call(**changes: Any) -> Call:
    plain = {"key": "k", "role": "answer", "case_id": "c1", "answer_repeat": 0, "state": "ok", "text": "t"}
    return Call(**{**plain, **changes})


def _new(path: Path, *calls: Call) -> Path:
    with Journal(path) as journal:
        journal.create(HEADER, HEADS)
        for call in calls:
            journal.append(call_line(call))
    return path


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Header, case heads and calls come back as they were written, odd characters included."""
    usage = {"input": 1, "cached": None, "output": 2, "reasoning": 0}
    call = _call(text='a\u2028b\u2029c\x85d\x00e"\\\n≥ 🩺', usage=usage)
    data = read_journal(_new(tmp_path / "x.jsonl", call))

    assert IDENTITY == data.identity
    assert tuple(HEADS) == data.cases
    assert [call] == data.calls


def test_lines_are_ascii_and_end_at_newlines_only(tmp_path: Path) -> None:
    """A line separator inside an answer never splits a line, for us or for anyone who reads the file."""
    path = _new(tmp_path / "x.jsonl", _call(text="a\u2028b\x85c≥"))

    assert path.read_bytes().isascii()
    assert 3 == len(path.read_bytes().splitlines())


def test_answer_lines_name_no_judge(tmp_path: Path) -> None:
    """An answer's line has neither group, judge nor repeat; a judge's has all three (formats.md 4)."""
    path = _new(tmp_path / "x.jsonl", _call(), _call(key="j", role="judge", group="*", judge=0, repeat=0))
    answer, judge = [line for _, line in json_lines(path)][2:]

    assert {"group", "judge", "repeat"} == set(judge) - set(answer)


TAILS = {
    "half a line": b'{"v":1,"kind":"call","key":"cut',
    "cut inside a character": '{"v":1,"text":"≥'.encode()[:-1],
    "a number": b"12",
    "blanks": b"   ",
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS.keys())
def test_a_torn_tail_is_set_aside(tmp_path: Path, tail: bytes) -> None:
    """What a killed process left unfinished goes to X.jsonl.torn, and the next line starts on a line of its own."""
    path = _new(tmp_path / "x.jsonl", _call())
    path.write_bytes(path.read_bytes() + tail)
    with Journal(path) as journal:
        journal.resume()
        journal.append(call_line(_call(key="next")))

    assert ["k", "next"] == [call.key for call in read_journal(path).calls]
    assert tail + b"\n" == (tmp_path / "x.jsonl.torn").read_bytes()


def test_a_whole_last_line_only_gets_its_newline(tmp_path: Path) -> None:
    """A last line that lacks nothing but its newline is kept."""
    path = _new(tmp_path / "x.jsonl", _call())
    path.write_bytes(path.read_bytes()[:-1])
    mend_tail(path)

    assert ["k"] == [call.key for call in read_journal(path).calls]
    assert not (tmp_path / "x.jsonl.torn").exists()


def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path: Path) -> None:
    """Somebody's answers given as --output by mistake are refused to the last byte unchanged, a torn line included."""
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b'{"case_id":"c1","answer":"a"}\n{"case_id":"c2","ans')
    with Journal(path) as journal, pytest.raises(BadInput, match="expected the first line of a journal"):
        journal.resume()

    assert b'{"case_id":"c1","answer":"a"}\n{"case_id":"c2","ans' == path.read_bytes()


@given(cut=st.integers(min_value=0))
def test_any_cut_loses_at_most_the_last_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Wherever the file ends, every line before that place is still there after the next start."""
    path = _new(tmp_path_factory.mktemp("cut") / "x.jsonl", *(_call(key=f"k{i}") for i in range(3)))
    whole = path.read_bytes()
    head = whole.index(b"\n", whole.index(b"\n") + 1) + 1  # header and case lines are written as a whole
    end = head + cut % (len(whole) - head + 1)
    path.write_bytes(whole[:end])
    with Journal(path) as journal:
        data = journal.resume()
    finished = whole[:end].count(b"\n") - 2 + (whole[end : end + 1] == b"\n")

    assert [f"k{i}" for i in range(finished)] == [call.key for call in data.calls]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"{broken", "x.jsonl:3: expected one JSON object"),
        (b"[1]", "x.jsonl:3: expected one JSON object, found list"),
        (b'{"v":1,"kind":"other"}', "x.jsonl:3: expected a line of a journal, found kind 'other'"),
        (b'{"v":1,"kind":"call","key":"k"}', "x.jsonl:3: expected a line of a journal, found no role"),
        (ANSWER + b'"state":"fine"}', "state 'fine' of role 'answer'"),
        (ANSWER + b'"state":"ok","text":1}', "found text 1"),
        (ANSWER + b'"state":"ok","text":null}', "text None in state ok"),
    ],
    ids=["broken", "list", "kind", "fields", "state", "text type", "no text"],
)
def test_a_bad_line_elsewhere_is_refused_by_number(tmp_path: Path, line: bytes, found: str) -> None:
    """A bad line that is not the last is never skipped: the file is refused and the line named."""
    path = _new(tmp_path / "x.jsonl", _call())
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]))

    with pytest.raises(BadInput) as refused:
        read_journal(path)
    assert found in str(refused.value)
    assert ":3: " in str(refused.value)


def test_a_changed_identity_is_refused(tmp_path: Path) -> None:
    """A first line whose identity was edited by hand no longer carries its own digest."""
    path = _new(tmp_path / "x.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"suite":"bedside-bench"', b'"suite":"bedside-bunch"'))

    with pytest.raises(BadInput, match=r"x\.jsonl:1: expected identity_sha256"):
        read_journal(path)


def test_a_second_process_is_refused_with_the_owner(tmp_path: Path) -> None:
    """Two runs never write one file: the second is told which process has it."""
    with Journal(tmp_path / "x.jsonl"):
        path = str(tmp_path / "x.jsonl")
        code = f"from pathlib import Path; from eval.calls.journal import Journal; Journal(Path({path!r})).__enter__()"
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert f"in use by another run (process {os.getpid()})" in second.stderr


def test_finished_calls_win_over_later_failures() -> None:
    """Once a reply is final, no other line of its key counts, whatever the order of lines."""
    ok = _call(state="ok", at="2026-01-01T00:00:01.000000Z")
    failed = _call(state="timeout", text=None, at="2026-01-01T00:00:02.000000Z")

    assert {("c1", "k", 0, None): ok} == current_calls([failed, ok]) == current_calls([ok, failed])


def test_of_two_failures_the_later_counts() -> None:
    """The state shown for an unfinished call is that of its last try."""
    first = _call(state="timeout", text=None, at="2026-01-01T00:00:01.000000Z")
    second = _call(state="empty", text=None, at="2026-01-01T00:00:02.000000Z")

    assert {("c1", "k", 0, None): second} == current_calls([second, first]) == current_calls([first, second])


@pytest.mark.parametrize(
    ("role", "state", "done"),
    [
        ("answer", "ok", True),
        ("answer", "truncated", True),
        ("answer", "refused", True),
        ("answer", "empty", False),
        ("answer", "filtered", False),
        ("judge", "ok", True),
        ("judge", "truncated", False),
        ("judge", "refused", False),
        ("judge", "invalid_reply", False),
    ],
)
def test_only_judged_states_are_final(role: str, state: str, done: bool) -> None:
    """A truncated or refused answer is judged as it is; a truncated or refused judge reply is asked again."""
    assert done == _call(role=role, state=state).done


def test_keys_name_the_request_and_nothing_else() -> None:
    """Equal requests have equal keys; another repeat, parameter, message, model or endpoint has another."""
    messages = [{"role": "user", "content": "p"}]
    request: dict[str, Any] = {"endpoint": "e", "model": "m", "messages": messages, "params": {}, "repeat": 0}
    others: list[dict[str, Any]] = [
        {"endpoint": "f"},
        {"model": "n"},
        {"messages": []},
        {"params": {"temperature": 1}},
        {"repeat": 1},
    ]

    assert request_key(**request) == request_key(**request)
    assert 6 == len({request_key(**request), *(request_key(**{**request, **other}) for other in others)})


def test_a_killed_writer_loses_nothing_that_it_wrote(tmp_path: Path) -> None:
    """After SIGKILL the file holds every line whose append had returned, each of them whole."""
    path = tmp_path / "x.jsonl"
    code = f"""
import sys
from pathlib import Path
from tests.test_journal import HEADER, HEADS, Journal, _call, call_line
with Journal(Path({str(path)!r})) as journal:
    journal.create(HEADER, HEADS)
    for number in range(10**9):
        journal.append(call_line(_call(key=str(number), text="x" * 5000)))
        print(number, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(100)]
        threading.Timer(0.2, lambda: os.kill(writer.pid, signal.SIGKILL)).start()
        said += [line for line in writer.stdout if line.endswith("\n")]
    # The kernel may end a write of more than a page in its middle: the tail is then not one of the lines.
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[2:-1]]

    assert len(said) > 100
    assert [str(number) for number in range(len(lines))] == [line["key"] for line in lines]
    assert len(lines) in (len(said), len(said) + 1)


def test_a_line_that_does_not_fit_leaves_no_stump(tmp_path: Path) -> None:
    """A write cut short by a full disk is taken back whole and names the file; the next line stands on its own."""
    code = (
        "import resource, sys; from pathlib import Path; from tests import test_journal as t\n"
        "with t.Journal(Path(sys.argv[1])) as journal:\n"
        "    journal.create(t.HEADER, t.HEADS)\n"
        "    room = journal.path.stat().st_size + 300\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))\n"
        "    try: journal.append(t.call_line(t._call(text='x' * 1000)))\n"
        "    except OSError as error: found = error.filename\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "    journal.append(t.call_line(t._call()))\n"
        "    print(found)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=True)

    assert str(tmp_path / "x.jsonl") == done.stdout.strip()
    assert [_call()] == read_journal(tmp_path / "x.jsonl").calls


def test_a_link_to_a_journal_is_the_journal(tmp_path: Path) -> None:
    """A second run through another name of the same file is refused like one through its own."""
    _new(tmp_path / "x.jsonl")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "x.jsonl")
    with Journal(tmp_path / "x.jsonl"), pytest.raises(BadInput, match="in use by another run"):
        Journal(tmp_path / "link.jsonl").__enter__()
