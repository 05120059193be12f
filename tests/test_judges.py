"""Who judges: flags, a TOML file, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builder.errors import BadInput
from eval.calls.judges import JudgeEntry, check_jury, judges_of, read_judges

WHOLE = """
[[judge]]
model = "judge-a"
base_url = "https://api.a.example/v1"
api_key_env = "A_KEY"
vendor = "A"
temperature = 0.5
judge_format = "json_schema"
id_style = "short"
reasoning_effort = "low"

[[judge]]
model = "judge-b"
temperature = "default"
"""


def test_a_file_says_all_of_each_judge(tmp_path: Path) -> None:
    """Every member is read; what is not there is the command's or the protocol's; "default" sends no temperature."""
    path = tmp_path / "jury.toml"
    path.write_text(WHOLE)

    assert (
        JudgeEntry("judge-a", "https://api.a.example/v1", "A_KEY", "A", 0.5, "json_schema", "short", "low"),
        JudgeEntry("judge-b", temperature=None),
    ) == read_judges(path)


BAD = {
    "no toml": ("judge = [", "expected a TOML file of [[judge]] tables"),
    "no judges": ("", "expected [[judge]] tables and nothing else, found nothing"),
    "another table": ('[[judge]]\nmodel = "a"\n[run]\nlimit = 1\n', "found judge, run"),
    "one table": ('[judge]\nmodel = "a"\n', "expected [[judge]] tables"),
    "no model": ('[[judge]]\nvendor = "A"\n', "judge 1: expected a model, found none"),
    "unknown member": ('[[judge]]\nmodel = "a"\nkey = "sk"\n', "judge 1: key: expected one of model"),
    "a number": ("[[judge]]\nmodel = 5\n", "judge 1: model: expected a text, found 5"),
    "blank": ('[[judge]]\nmodel = "a"\nvendor = " "\n', "judge 1: vendor: expected a text"),
    "boolean": ('[[judge]]\nmodel = "a"\ntemperature = true\n', "judge 1: temperature: expected a number"),
    "below zero": ('[[judge]]\nmodel = "a"\ntemperature = -1\n', "judge 1: temperature: expected a number"),
    "beyond 64 bits": (
        '[[judge]]\nmodel = "a"\ntemperature = 99999999999999999999\n',
        "judge 1: temperature: expected a number from 0 to 100",
    ),
    "an empty list": ("judge = []", "expected [[judge]] tables and nothing else"),
    "not finite": ('[[judge]]\nmodel = "a"\ntemperature = nan\n', "judge 1: temperature: expected a number"),
    "format": ('[[judge]]\nmodel = "a"\njudge_format = "xml"\n', "judge 1: judge_format: expected one of json_schema"),
    "all at once": ('[[judge]]\nvendor = 1\n[[judge]]\nmodel = ""\n', "judge 2: model: expected a text"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_refused_with_its_problems(tmp_path: Path, text: str, said: str) -> None:
    """One line names the file, the judge by number, the member, what was expected and found."""
    path = tmp_path / "jury.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_judges(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(BadInput, match=r"none\.toml: expected a TOML file"):
        read_judges(tmp_path / "none.toml")


def test_flags_stand_once_for_all_or_once_a_judge() -> None:
    """One endpoint for three judges, a vendor for each; an empty vendor is one that nobody named."""
    found = judges_of(["a", "b", "c"], base_urls=["http://x"], vendors=["A", "", "C"], temperatures=[0.0, 1.0, 0.5])

    assert ["http://x"] * 3 == [judge.base_url for judge in found]
    assert ["A", None, "C"] == [judge.vendor for judge in found]
    assert [(0, int), (1, int), (0.5, float)] == [(j.temperature, type(j.temperature)) for j in found]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            {"base_urls": ["u", "v"]},
            "--judge-base-url: expected it once for all judges, or once for each of 3",
        ),
        ({"vendors": ["u"] * 4}, "--judge-vendor: expected it once"),
        ({"temperatures": [-1.0]}, "--judge-temperature: expected a number from 0 to 100, found -1"),
        ({"temperatures": [float("nan")]}, "--judge-temperature: expected a number from 0 to 100, found nan"),
    ],
    ids=["endpoints", "vendors", "cold", "no number"],
)
def test_flags_that_do_not_fit_are_refused(flags: dict[str, Any], said: str) -> None:
    """Two endpoints for three judges would be a guess."""
    with pytest.raises(BadInput) as caught:
        judges_of(["a", "b", "c"], **flags)

    assert str(caught.value).startswith(said)


def test_a_judge_sits_once() -> None:
    """Two votes of one model are no two opinions (decided D8); asking it again is what repeats are for."""
    check_jury(["a", "b"])
    with pytest.raises(BadInput, match="--judge-model a: expected each judge once; --repeats"):
        check_jury(["a", "b", "a"])
