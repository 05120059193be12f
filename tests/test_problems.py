"""How problems are shown: short, safe on a terminal, within 80 columns."""

from __future__ import annotations

import json

import pytest

from builder.rules.problems import Problem, Report, member, printable, shown

FILE = "data/calculators_conditional/cases/0123456789abcdef0123456789abcdef.json"
ERROR = Problem(
    "error", "points-type", FILE, None, "rubric_items[2].points", '"2"', "an integer", "write it without quotes"
)
WARNING = Problem("warning", "stray-file", "data/x", None, None, "another name", "a case")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2", '"2"'),
        ('say "x"', r'"say \"x\""'),
        ("≥ 5 mg\n", r'"≥ 5 mg\n"'),
        ("\u202e\x7f\x85", r'"\u202e\u007f\u0085"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("a" * 61, f'"{"a" * 60}"… (61 characters)'),
        (True, "true"),
        (None, "null"),
        (1.0, "1.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (10**40, "100000000000… (41 characters)"),
        ({}, "an empty object"),
        ({"a": 1}, "an object of 1"),
        ([1, 2], "an array of 2"),
    ],
)
def test_a_value_is_shown_short_and_as_json(value: object, text: str) -> None:
    """Strings and numbers are shown as JSON writes them, cut; containers by their size; nothing moves the cursor."""
    assert shown(value) == text


def test_names_of_members() -> None:
    """Plain names follow a dot, odd ones stand in brackets."""
    assert (member("points"), member("a b"), member("é")) == (".points", '["a b"]', '["é"]')


def test_a_file_name_is_made_printable() -> None:
    """Escape sequences in a file name are shown, not obeyed."""
    assert printable("a\x1b[31mé") == r"a\u001b[31mé"


def test_the_line_of_a_problem() -> None:
    """A problem is one line: where, expected, found, what to do."""
    assert ERROR.line() == (f'{FILE}: rubric_items[2].points: expected an integer, found "2"; write it without quotes')
    assert WARNING.line() == "data/x: expected a case, found another name"


def test_the_text_of_a_report() -> None:
    """Errors come first, then warnings, grouped by file; the last line counts everything."""
    report = Report((WARNING, ERROR, ERROR), 2, 1200, {"drug_safety": 2}, {"md5": 1, "local": 1}, "cc-by-4.0")

    assert report.text().splitlines() == [
        "2 errors:",
        f"  {FILE}",
        '    rubric_items[2].points: expected an integer, found "2"; write it without',
        "      quotes [points-type]",
        '    rubric_items[2].points: expected an integer, found "2"; write it without',
        "      quotes [points-type]",
        "",
        "1 warning:",
        "  data/x",
        "    expected a case, found another name [stray-file]",
        "",
        "2 cases, 1,200 items: drug_safety 2",
        "item ids: <md5 of prompt>_<i> in 1 case, item_<i> in 1 case; license: cc-by-4.0",
        "2 errors, 1 warning",
    ]


def test_the_text_fits_eighty_columns() -> None:
    """No line is longer than 80 characters, whatever a problem quotes."""
    odd = Problem("error", "x", FILE, None, "a" * 70, shown("word " * 40), "b" * 30, "c d " * 40)
    report = Report((odd,), 1, 1, dict.fromkeys([f"panel_number_{i}" for i in range(10)], 25))

    assert max(map(len, report.text().splitlines())) <= 80


def test_an_empty_report() -> None:
    """A tree without problems, cases or licence has three lines."""
    assert Report((), 0, 0, {}).text().splitlines() == [
        "0 cases, 0 items: no panel",
        "item ids: none read; license: unknown",
        "0 errors, 0 warnings",
    ]


def test_the_json_of_a_report() -> None:
    """Programs get the same facts under fixed names."""
    report = json.loads(Report((ERROR,), 2, 12, {"drug_safety": 2}, {"md5": 2, "local": 0}).to_json())

    assert list(report) == [
        "schema", "ok", "counts", "n_cases", "n_items", "panels", "id_dialects", "license", "problems",
    ]  # fmt: skip
    assert (report["ok"], report["problems"][0]["rule"]) == (False, "points-type")
