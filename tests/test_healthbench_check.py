"""A whole file: its shape and config, what is between lines, and that all problems come at once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from builder.healthbench import check as checking
from builder.healthbench.check import check_examples, kind_of
from builder.healthbench.objects import Example
from builder.healthbench.source import open_examples
from builder.rules.problems import Report
from tests.examples import make_example, make_meta, make_professional, write_jsonl


def check(path: Path, *, config: str | None = None) -> Report:
    """Return the report of a file whose licence is known."""
    return check_examples(open_examples(path), config=config, license_id="mit")


def lines_of(report: Report) -> list[str]:
    """Return the problems of a report, a line each."""
    return [problem.line() for problem in report.problems]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("2025-05-07-06-14-12_oss_eval.jsonl", "healthbench"),
        ("hard_2025-05-08-21-00-10.jsonl", "healthbench_hard"),
        ("consensus_2025-05-09-20-00-46.jsonl", "healthbench_consensus"),
        ("HealthBench-Hard.jsonl", "healthbench_hard"),
        ("orchard.jsonl", "healthbench"),
    ],
)
def test_the_name_tells_the_core_files_apart(tmp_path: Path, name: str, config: str) -> None:
    """Main, hard and consensus have one shape: the word in the file's name decides."""
    assert {config: 1} == check(write_jsonl(tmp_path / name, [make_example()])).panels


def test_the_shape_tells_the_other_files(tmp_path: Path) -> None:
    """Professional and the meta-evaluation are known by their members, whatever the file is called."""
    professional = write_jsonl(tmp_path / "hard.jsonl", [make_professional(0), make_professional(1)])
    meta = write_jsonl(tmp_path / "consensus.jsonl", [make_meta()])

    assert {"healthbench_professional": 2} == check(professional).panels
    assert {"healthbench_meta": 1} == check(meta).panels


def test_a_config_can_be_named_where_it_fits_the_shape(tmp_path: Path) -> None:
    """--config wins over the name, and one of another shape is an error."""
    path = write_jsonl(tmp_path / "oss.jsonl", [make_example()])

    assert {"healthbench_hard": 1} == check(path, config="healthbench_hard").panels
    assert [
        (
            "oss.jsonl: --config: expected healthbench or healthbench_hard or healthbench_consensus: the lines have "
            "the core shape, found healthbench_meta"
        )
    ] == lines_of(check(path, config="healthbench_meta"))


def test_a_file_of_two_shapes_is_an_error(tmp_path: Path) -> None:
    """Each line of another shape than the first is named."""
    path = write_jsonl(tmp_path / "x.jsonl", [make_meta(), make_example(), make_meta(1), make_professional()])
    expected = "expected the meta shape, as line 1 has, found the {} shape; one file holds one shape"

    assert [f"x.jsonl:2: {expected.format('core')}", f"x.jsonl:4: {expected.format('professional')}"] == lines_of(
        check(path)
    )


def test_ids_are_unique(tmp_path: Path) -> None:
    """The second example with an id is an error that names the first."""
    path = write_jsonl(tmp_path / "x.jsonl", [make_example(0, prompt_id="a"), make_example(1, prompt_id="a")])

    assert ['x.jsonl:2: prompt_id: expected an id of its own, found "a", the id of line 1'] == lines_of(check(path))


def test_blank_lines_between_examples_are_counted(tmp_path: Path) -> None:
    """They are no examples; those at the end of the file are fine."""
    path = write_jsonl(tmp_path / "x.jsonl", [make_example(), b"", b" ", make_example(1), b"", b""])
    report = check(path)

    assert ["x.jsonl: expected an example a line, found a blank line (2 such, the first in line 2)"] == lines_of(report)
    assert (True, 2, 8) == (report.ok, report.n_cases, report.n_items)


def test_a_thousand_bad_lines_are_reported_at_once(tmp_path: Path) -> None:
    """Torn lines and garbage among good examples: each is named by its line, and the good ones are counted."""
    lines: list[object] = [make_example(n) for n in range(1000)]
    for n in range(0, 2000, 2):
        lines.insert(n, b'{"prompt_id": "torn' if n % 4 else b"\x00\xff garbage")
    report = check(write_jsonl(tmp_path / "x.jsonl", lines))

    assert [f"x.jsonl:{n}" for n in range(1, 2001, 2)] == [problem.file for problem in report.problems]
    assert (1000, 1000) == (report.count("error"), report.n_cases)


def test_problems_end_somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of nothing but garbage is not read to its end for ever more problems."""
    monkeypatch.setattr(checking, "MAX_PROBLEMS", 100)  # of 100,000, which take seconds
    report = check(write_jsonl(tmp_path / "x.jsonl", [make_example(), *[b"?"] * 200]))

    assert 101 == len(report.problems)
    assert "only these are listed; nothing was read on" in report.problems[-1].line()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ["x.jsonl: expected at least one example, one a line, found none"]),
        (b"\n\n", ["x.jsonl: expected at least one example, one a line, found none"]),
        (
            b'[\n {"prompt_id": 1},\n {}\n]\n',
            [
                (
                    "x.jsonl: expected an example a line, found one JSON value over several lines; write each example "
                    "on a line of its own"
                )
            ],
        ),
        (b'{\n "a": 1\n}\n', ["x.jsonl: expected an example a line, found one JSON value over several lines"]),
    ],
    ids=["empty", "blank", "array", "object"],
)
def test_a_file_without_examples_is_an_error(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    """That it is one JSON value, not a value a line, is said once instead of for each of its lines."""
    (tmp_path / "x.jsonl").write_bytes(content)

    assert expected == lines_of(check(tmp_path / "x.jsonl"))


def test_only_valid_examples_are_handed_on(tmp_path: Path) -> None:
    """In order, each as its mirror will have it."""
    path = write_jsonl(tmp_path / "x.jsonl", [make_example(0), make_example(1, prompt=3), make_example(2)])
    taken: list[Example] = []
    check_examples(open_examples(path), on_example=taken.append)

    assert [make_example(0)["prompt_id"], make_example(2)["prompt_id"]] == [one["case_id"] for one in taken]


def test_records_said_again_get_ids_of_their_own(tmp_path: Path) -> None:
    """The id is half of a SHA-256 of what the record is about; its second and third time have a number behind it."""
    path = write_jsonl(tmp_path / "x.jsonl", [make_meta(0), make_meta(1), make_meta(0), make_meta(0)])
    taken: list[Example] = []
    check_examples(open_examples(path), on_example=taken.append)

    # from hashlib and json alone: sha256(json.dumps(the four members, sorted, compact)).hexdigest()[:32]
    first = "b34b13634ad791f60f49130d4c2e1b5d"
    assert [first, f"{first}-2", f"{first}-3"] == [taken[i]["case_id"] for i in (0, 2, 3)]
    assert f"{first}-2_0" == taken[2]["rubric_items"][0]["item_id"]


def test_whatever_the_bytes_there_is_a_report(tmp_path: Path) -> None:
    """Bytes flipped, cut and put together at random never end in a traceback."""
    draw = random.Random(4)
    good = write_jsonl(tmp_path / "good.jsonl", [make_example(), make_professional(), make_meta()]).read_bytes()
    for _ in range(300):
        data = bytearray(good)
        for _ in range(draw.randrange(1, 40)):
            data[draw.randrange(len(data))] = draw.choice(b'{}[]":,\n\\u0\xff\x00e.-1tn')
        (tmp_path / "x.jsonl").write_bytes(data[draw.randrange(200) :])
        report = check(tmp_path / "x.jsonl")
        assert report.text()
        assert report.to_json()


def test_the_kind_of_a_file_is_told_by_its_first_line_that_tells(tmp_path: Path) -> None:
    """Garbage and objects that tell nothing come before it."""
    path = write_jsonl(tmp_path / "x.jsonl", [b"?", {}, {"prompt": []}, make_meta()])
    kind = kind_of(open_examples(path))

    assert ("meta", 4, "healthbench_meta") == (kind.shape, kind.line, kind.config)
