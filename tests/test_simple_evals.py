"""Results files of simple-evals: read with their own verdicts, scored again, refused where a verdict could be lost."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from builder.errors import BadInput
from eval.cases import Case, Item
from eval.healthbench.recorded import differences, rescore
from eval.healthbench.simple_evals import is_simple_evals, read_simple_evals

ACCURACY, COMPLETENESS = "axis:accuracy", "axis:completeness"
RUBRICS = {
    "p-1": [(5, ACCURACY), (3, COMPLETENESS), (-4, ACCURACY)],
    "p-2": [(10, ACCURACY), (-5, COMPLETENESS)],
}
TAGS = {"p-1": ("theme:a",), "p-2": ("theme:b",)}
# By hand: 5/8, -5/10, (5 + 3 - 4)/8, 10/10. Accuracy: 5/5, 0/10, (5 - 4)/5, 10/10. Completeness: 0/3 and 3/3; p-2 has
# nothing to earn there. Themes: the examples' own scores.
VALUES = {
    "overall_score": [0.625, -0.5, 0.5, 1.0],
    "score": [0.625, -0.5, 0.5, 1.0],
    "theme:a": [0.625, 0.5],
    "theme:b": [-0.5, 1.0],
    ACCURACY: [1.0, 0.0, 0.2, 1.0],
    COMPLETENESS: [0.0, 1.0],
}


KNOWN = {
    prompt_id: Case(
        case_id=prompt_id,
        benchmark="healthbench",
        grading_method="healthbench",
        conversation=(("user", "Hello?"),),
        items=tuple(Item(f"{prompt_id}_{i}", f"Says {i}.", points, (tag,)) for i, (points, tag) in enumerate(items)),
        tags=TAGS[prompt_id],
    )
    for prompt_id, items in RUBRICS.items()
}


def clipped(values: list[float]) -> float:
    """Return a mean, clipped."""
    return min(1.0, max(0.0, fmean(values)))


def deviation(values: list[float]) -> float:
    """Return a bootstrap deviation from a stream of its own, as the reference evaluator's is."""
    rng = random.Random(f"{values}")
    return pstdev(clipped(rng.choices(values, k=len(values))) for _ in range(1000))


def example(prompt_id: str, *met: Any, answer: str = "Rest.\nDrink.", score: float = 0.0) -> dict[str, Any]:
    """Return one example as simple-evals writes it."""
    items = [
        {"criterion": f"Says {i}.", "points": points, "tags": [tag], "criteria_met": m, "explanation": "why"}
        for i, ((points, tag), m) in enumerate(zip(RUBRICS[prompt_id], met, strict=True))
    ]
    return {
        "score": score,
        "usage": {"input_tokens": 10, "input_cached_tokens": None, "output_tokens": 4, "output_reasoning_tokens": 1},
        "rubric_items": items,
        "prompt": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hello?"}],
        "completion": [{"content": answer, "role": "assistant"}],
        "prompt_id": prompt_id,
        "completion_id": hashlib.sha256((prompt_id + answer).encode()).hexdigest(),
    }


def file_of(*examples: Any) -> dict[str, Any]:
    """Return a whole results file of some examples."""
    metrics: dict[str, float] = {}
    for name, values in VALUES.items():
        stats = {name: clipped(values), f"{name}:n_samples": len(values), f"{name}:bootstrap_std": deviation(values)}
        metrics |= stats
    head = {"score": metrics.pop("score"), "metrics": metrics, "htmls": ["<p>" * 9], "convos": [[]]}
    return head | {"metadata": {"example_level_metadata": list(examples)}}


def whole() -> dict[str, Any]:
    """Return the file worked by hand above: two examples, answered twice."""
    return file_of(
        example("p-1", True, False, False, score=0.625),
        example("p-2", False, True, score=-0.5),
        example("p-1", True, True, True, score=0.5, answer="Go."),
        example("p-2", True, False, score=1.0, answer=""),
    )


def write(tmp_path: Path, value: Any, name: str = "healthbench_m_20260101_000000_allresults.json") -> Path:
    """Write a file as simple-evals does."""
    file = tmp_path / name
    file.write_text(json.dumps(value, indent=2))
    return file


def test_examples_become_cases_with_their_answers_in_order(tmp_path: Path) -> None:
    """A prompt that comes again is the next answer to the same case; cases keep the order of the file."""
    run = read_simple_evals(write(tmp_path, whole()), known=KNOWN).run

    assert [(c.case_id, c.answer_repeat) for c in run.cases] == [("p-1", 0), ("p-1", 1), ("p-2", 0), ("p-2", 1)]
    assert run.file_order == (0, 2, 1, 3)
    assert run.cases[1].matched == (True, True, True)
    assert run.cases[1].item_ids == ("p-1_0", "p-1_1", "p-1_2")
    assert (run.cases[1].points, run.cases[1].n_chars, run.cases[1].tags) == ((5, 3, -4), 3, ("theme:a",))
    assert run.cases[1].item_tags == ((ACCURACY,), (COMPLETENESS,), (ACCURACY,))


def test_the_run_says_what_the_file_says_and_no_more(tmp_path: Path) -> None:
    """The suite and subset are known, tokens are summed, models and digests are not guessed."""
    run = read_simple_evals(write(tmp_path, whole())).run

    assert (run.suite, run.config, run.protocol_version) == ("healthbench", "healthbench", "healthbench+simple-evals")
    assert run.usage == {"answer": {"input": 40, "cached": 0, "output": 16, "reasoning": 4}}
    assert run.states == {"answer": {"ok": 4}, "judge": {"ok": 10}}
    assert (run.answer_model, run.judge_model, run.dataset_sha256, run.identity) == (None, None, None, None)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("healthbench_hard_gpt_20260101_allresults.json", "healthbench_hard"),
        ("healthbench_consensus_gpt_allresults.json", "healthbench_consensus"),
        ("healthbench_no_reference_humanbaseline_20260101_allresults.json", "healthbench"),
        ("mine.json", "healthbench"),
    ],
)
def test_the_subset_is_that_of_the_file_name(tmp_path: Path, name: str, config: str) -> None:
    """simple-evals names its files after the subset; a file with another name is taken as the core set."""
    run = read_simple_evals(write(tmp_path, whole(), name)).run

    assert {config} == {run.config, *(case.benchmark for case in run.cases)}


def test_scores_are_those_worked_by_hand(tmp_path: Path) -> None:
    """Scored from the verdicts: 0.40625 overall, 0.55 and 0.5 by axis, 0.5625 and 0.25 by theme."""
    found = rescore(read_simple_evals(write(tmp_path, whole()), known=KNOWN))

    assert found.by_example == (0.625, 0.5, -0.5, 1.0)
    assert (found.overall.value, found.overall.n) == (0.40625, 4)
    assert {name: (m.value, m.n) for name, m in found.rubric_tags.items()} == {
        ACCURACY: (pytest.approx(0.55, abs=1e-15), 4),
        COMPLETENESS: (0.5, 2),
    }
    assert {name: (m.value, m.n) for name, m in found.example_tags.items()} == {
        "theme:a": (0.5625, 2),
        "theme:b": (0.25, 2),
    }


def test_a_file_that_agrees_with_its_verdicts_has_no_differences(tmp_path: Path) -> None:
    """Every recorded score, mean, n and deviation is ours, deviations within what an unseeded stream allows."""
    imported = read_simple_evals(write(tmp_path, whole()), known=KNOWN)

    assert () == differences(imported, rescore(imported))


def test_example_tags_need_the_data(tmp_path: Path) -> None:
    """Without the data's tags the recorded themes are named as not compared, and the run says why."""
    imported = read_simple_evals(write(tmp_path, whole()))
    lines = differences(imported, rescore(imported))

    assert lines == ("not compared: theme:a, theme:b: the file holds no example tags; name the data it was run on",)
    assert "the file holds no example tags: name the data it was run on to score them" in imported.run.notices


def test_what_is_recorded_otherwise_is_listed(tmp_path: Path) -> None:
    """A score clipped example by example, a mean of clipped scores and a wrong n are each one line."""
    value = whole()
    value["score"] = 0.53125
    value["metrics"] |= {"overall_score": 0.53125, f"{ACCURACY}:n_samples": 3, f"{COMPLETENESS}:bootstrap_std": 0.1}
    value["metadata"]["example_level_metadata"][1]["score"] = 0.0
    imported = read_simple_evals(write(tmp_path, value), known=KNOWN)
    lines = differences(imported, rescore(imported))

    ours = rescore(imported).rubric_tags[COMPLETENESS].bootstrap_std
    apart = "more than 20% + 0.001 apart"
    assert lines == (
        "case p-2, answer 0: recorded score 0.0, rescored -0.5",
        "score: recorded 0.53125, rescored 0.40625",
        "axis:accuracy: recorded n 3, rescored 4",
        f"axis:completeness: recorded bootstrap deviation 0.1, rescored {ours!r}, {apart}",
        "overall_score: recorded mean 0.53125, rescored 0.40625",
    )


@pytest.mark.parametrize("met", ["false", None, 0, 1, [], {}], ids=repr)
def test_a_verdict_that_is_no_boolean_is_no_decision(tmp_path: Path, met: Any) -> None:
    """The example is ungraded, counted and listed; nothing is scored as false."""
    run = read_simple_evals(write(tmp_path, file_of(example("p-1", True, met, False), example("p-2", True, True)))).run
    case = run.cases[0]

    assert (case.matched, case.decided, case.state) == (None, (True, None, False), "failed")
    assert (case.failed_role, case.failed_state) == ("judge", "invalid_reply")
    assert case.reason == "the file holds no decision on 1 of its 3 items"
    assert run.states["judge"] == {"invalid_reply": 1, "ok": 4}
    assert "1 of 2 answers have an item without a decision: ungraded, never taken as not met" in run.notices
    assert "case p-1, answer 0: no decision on item 1" in run.notices


def test_differences_count_graded_examples_only(tmp_path: Path) -> None:
    """A recorded score of an ungraded example is not set against anything, the mean over it is."""
    value = whole()
    value["metadata"]["example_level_metadata"][0]["rubric_items"][0]["criteria_met"] = None
    imported = read_simple_evals(write(tmp_path, value), known=KNOWN)
    lines = differences(imported, rescore(imported))

    assert f"overall_score: recorded mean 0.40625, rescored {1 / 3!r}" in lines
    assert [] == [line for line in lines if line.startswith("case ")]


def test_repeats_are_said_to_be_pooled(tmp_path: Path) -> None:
    """The file counts repeats as independent, which makes its deviations too small."""
    run = read_simple_evals(write(tmp_path, whole())).run

    assert "the file counts 4 answers to 2 examples as so many examples: its deviations are too small" in run.notices


def test_an_answer_that_is_not_that_of_its_id_is_said(tmp_path: Path) -> None:
    """completion_id is the hash of prompt id and answer: another answer under the same id is noticed, not refused."""
    value = whole()
    value["metadata"]["example_level_metadata"][3]["completion"][0]["content"] = "Edited."
    run = read_simple_evals(write(tmp_path, value)).run

    assert "case p-2, answer 1: completion_id is not that of the answer: edited?" in run.notices


def test_stand_ins_for_answers_are_counted(tmp_path: Path) -> None:
    """The evaluator grades a fixed text where a server refused, and empty texts: their numbers are said."""
    first = example("p-1", False, False, False, answer="No response (bad request).")
    run = read_simple_evals(write(tmp_path, file_of(first, example("p-2", False, False, answer=" ")))).run

    counted = "graded by the evaluator, so they count here too"
    assert [notice for notice in run.notices if notice.startswith("1 of 2")] == [
        f"1 of 2 answers are the evaluator's stand-in for a refused request: {counted}",
        f"1 of 2 answers are without any text: {counted}",
    ]


def test_lengths_are_in_code_points(tmp_path: Path) -> None:
    """A separator and a letter outside the basic plane each count one."""
    run = read_simple_evals(write(tmp_path, file_of(example("p-2", True, False, answer="a\u2028\U0001d538é")))).run

    assert run.cases[0].n_chars == 4


def test_files_are_told_by_how_they_begin(tmp_path: Path) -> None:
    """A results file is known whatever its name; other JSON, a folder and a missing file are not one."""
    value = whole()
    scored = {"score": None} | value

    assert is_simple_evals(write(tmp_path, value, "a.json"))
    assert is_simple_evals(write(tmp_path, scored, "b.json"))
    assert is_simple_evals(write(tmp_path, dict(reversed(value.items())), "c_allresults.json"))
    assert not is_simple_evals(write(tmp_path, value["metrics"], "d.json"))
    assert not is_simple_evals(write(tmp_path, [value], "e_allresults.json"))
    assert not is_simple_evals(tmp_path) and not is_simple_evals(tmp_path / "none.json")


def at(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that puts a value at a place of the file."""

    def change(fields: Any) -> None:
        for step in path[:-1]:
            fields = fields[step]
        fields[path[-1]] = value

    return change


EXAMPLE: tuple[str | int, ...] = ("metadata", "example_level_metadata", 1)
BROKEN: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (at("metadata", value=None), r"metadata\.example_level_metadata, with the verdicts, found none; a smaller metrics"),
    (at("metadata", "example_level_metadata", value=[]), r"expected examples, found an empty array"),
    (at("metrics", value=3), r"metrics: expected an object, found 3"),
    (at("metrics", "axis:x", value="0.5"), r'metrics\["axis:x"\]: expected a finite number, found "0\.5"'),
    (at(*EXAMPLE, value=7), r"example_level_metadata\[1\]: expected an object, found 7"),
    (at(*EXAMPLE, "prompt_id", value=""), r"\[1\]\.prompt_id: expected text, found \"\""),
    (at(*EXAMPLE, "rubric_items", value=[]), r"\[1\]\.rubric_items: expected at least one rubric item"),
    (
        at(*EXAMPLE, "rubric_items", 0, "points", value=True),
        r"items\[0\]\.points: expected a finite number, found true",
    ),
    (at(*EXAMPLE, "rubric_items", 0, "points", value=float("nan")), r"\.points: expected a finite number, found NaN"),
    (at(*EXAMPLE, "rubric_items", 0, "tags", value=[1]), r"items\[0\]\.tags\[0\]: expected text, found 1"),
    (at(*EXAMPLE, "rubric_items", 0, "criterion", value=None), r"items\[0\]\.criterion: expected text, found null"),
    (
        lambda v: v["metadata"]["example_level_metadata"][1]["rubric_items"][0].pop("criteria_met"),
        "member criteria_met",
    ),
    (at(*EXAMPLE, "completion", value=[]), r"\[1\]\.completion: expected one message, found 0"),
    (at(*EXAMPLE, "completion", 0, "content", value=None), r"completion\[0\]\.content: expected text, found null"),
    (at("metadata", "example_level_metadata", 3, "rubric_items", 0, "points", value=9), r"\[3\].*first answer to p-2"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_bad_input_is_refused_with_its_place(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    """A file that cannot be scored for certain is refused: file, place, expected, found."""
    value = whole()
    change(value)
    file = write(tmp_path, value)

    with pytest.raises(BadInput, match=message) as caught:
        read_simple_evals(file, known=KNOWN)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_case_that_the_named_data_lacks_is_refused(tmp_path: Path) -> None:
    """The wrong data is caught, not scored with half of its tags."""
    with pytest.raises(
        BadInput, match=r'\[1\]: case "p-2": expected an example of the data that was named, found none'
    ):
        read_simple_evals(write(tmp_path, whole()), known={"p-1": KNOWN["p-1"]})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "criterion",
            "Says so.",
            'criterion: case p-2: expected "Says 0.", as in the data that was named, found "Says so."',
        ),
        ("points", 9, "points: case p-2: expected 10, as in the data that was named, found 9"),
        ("tags", ["axis:x"], 'tags: case p-2: expected "axis:accuracy", as in the data that was named, found "axis:x"'),
    ],
)
def test_an_item_that_is_not_that_of_the_named_data_is_refused(
    tmp_path: Path, name: str, value: Any, message: str
) -> None:
    """File, place, case, expected, found; points in another form (10.0) are the same."""
    held = whole()
    held["metadata"]["example_level_metadata"][1]["rubric_items"][0][name] = value
    held["metadata"]["example_level_metadata"][3]["rubric_items"][0][name] = value
    file = write(tmp_path, held)

    with pytest.raises(BadInput) as caught:
        read_simple_evals(file, known=KNOWN)
    assert str(caught.value) == f"{file}: metadata.example_level_metadata[1].rubric_items[0].{message}"


def test_a_rubric_of_another_length_than_that_of_the_named_data_is_refused(tmp_path: Path) -> None:
    """An item more in the data is a decision that the file lacks."""
    held = file_of(example("p-2", True, False))
    held["metadata"]["example_level_metadata"][0]["rubric_items"].pop()

    with pytest.raises(BadInput, match=r"\[0\]\.rubric_items: case p-2: expected 2, as in the data .* found 1"):
        read_simple_evals(write(tmp_path, held), known=KNOWN)


def test_answers_by_other_criteria_are_refused(tmp_path: Path) -> None:
    """Two answers to one example are judged by the same words, not only by the same points."""
    held = whole()
    held["metadata"]["example_level_metadata"][3]["rubric_items"][0]["criterion"] = "Says so."

    with pytest.raises(BadInput, match=r"\[3\]\.rubric_items: expected the rubric of the first answer to p-2"):
        read_simple_evals(write(tmp_path, held))


@pytest.mark.parametrize("key", ["criteria_met", "points", "prompt_id", "score", "overall_score"])
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, key: str) -> None:
    """Of two verdicts, points or scores none is the right one: the last is not taken in silence."""
    file = write(tmp_path, whole())
    text = file.read_text()
    place = text.index(f'"{key}":')
    file.write_text(f'{text[:place]}"{key}": false, {text[place:]}')

    with pytest.raises(BadInput, match=f'expected one JSON object, found none: key "{key}" stands twice in one object'):
        read_simple_evals(file)


def test_an_example_with_fewer_answers_than_another_is_said(tmp_path: Path) -> None:
    """One has two answers, the other one: it is left out of what is over repeats."""
    run = read_simple_evals(write(tmp_path, file_of(*whole()["metadata"]["example_level_metadata"][:3]))).run
    even = read_simple_evals(write(tmp_path, whole())).run

    said = "1 of 2 examples have fewer than 2 answers: left out of spread and worst-at-k"
    assert said in run.notices
    assert not [notice for notice in even.notices if "fewer than" in notice]


def test_a_meta_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A meta-evaluation's file has means over its verdicts, not the verdicts."""
    value = {"score": 0.6, "metrics": {}, "metadata": {"model_agreement_metrics": {}}}

    with pytest.raises(BadInput, match="a meta-evaluation's file holds no single verdicts"):
        read_simple_evals(write(tmp_path, value, "healthbench_meta_gpt_allresults.json"))


@pytest.mark.parametrize("text", ["", "[]", '{"score": 1', '{"score": 1}{"score": 2}'], ids=repr)
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    """A file that was cut off, is empty or holds something else is refused in one line."""
    file = tmp_path / "x_allresults.json"
    file.write_text(text)

    with pytest.raises(BadInput, match=r"expected (one JSON object|an object)"):
        read_simple_evals(file)
