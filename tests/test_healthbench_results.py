"""A HealthBench run in a results folder: five tables that give every number again, alone and beside other suites."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builder.dataset.digests import read_digests
from builder.dataset.folder import write_parquet
from eval.results.link import check_link
from eval.results.recompute import run_data_from_tables
from eval.results.schemas import ALL_SCHEMAS, EXAMPLES_SCHEMA
from eval.results.stored import read_identity, read_summary, read_tables
from eval.results.verify import verify_run
from tests.at_hub import command
from tests.examples import example_id_of, make_criterion, make_example, make_meta, make_professional
from tests.gradings import example_mirror, grading_plan, results_of, write_answers
from tests.journals import write_journal
from tests.load_folder import load_folder
from tests.plans import run
from tests.tampering import another, copy_of_run, filled, lines, remake_digests, tamper

N = 4
KINDS = ("core", "meta", "repeats", "physician", "professional")


def answers_of(folder: Path) -> Path:
    """Write answers that hit some items of each example; the third has none."""
    texts = {n: "\n".join(make_criterion(n, i)["criterion"] for i in range(n % 3 + 1)) for n in range(N) if n != 2}
    return write_answers(folder / "answers.jsonl", {example_id_of(n): f"Hi.\n{text}" for n, text in texts.items()})


def choices_of(kind: str, folder: Path) -> dict[str, Any]:
    """Return what a kind of run asks for."""
    if kind == "core":
        return {"answers": answers_of(folder)}
    return {"answers": {"meta": "given", "repeats": "reference"}.get(kind, "physician")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a mirror (`mirror`) and a results folder (`out`) for each kind of run."""
    root = tmp_path_factory.mktemp("results")
    for kind in KINDS:
        make, config = {
            "meta": (make_meta, "healthbench_meta"),
            "professional": (make_professional, "healthbench_professional"),
        }.get(kind, (make_example, "healthbench"))
        mirror = example_mirror(root / kind, map(make, range(N)), config=config)
        run(grading_plan(mirror, **choices_of(kind, root / kind)), root / kind / "x.jsonl")
        results_of(root / kind / "x.jsonl", root / kind / "out")
    return root


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that gives a copy of a kind's run to tamper with."""
    return lambda kind: copy_of_run(made / kind / "out", tmp_path / kind)


def only_run(folder: Path) -> Path:
    """Return the one run of a results folder."""
    (found,) = (folder / "runs").iterdir()
    return found


# -- what is written, and that it holds


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_verifies(made: Path, kind: str) -> None:
    """The folder by itself, and against the mirror that was judged."""
    code, out, _ = command("verify", made / kind / "out", "--data", made / kind / "mirror")

    assert (0, True) == (code, "ok" in out.splitlines()[0]), out
    assert [] == check_link(only_run(made / kind / "out"), made / kind / "mirror")


def test_a_run_is_held_against_the_file_it_came_from(made: Path) -> None:
    """--data takes the JSONL file too: its mirror is built beside and compared."""
    code, out, _ = command("verify", made / "core" / "out", "--data", made / "core" / "healthbench.jsonl")
    other = command("verify", made / "core" / "out", "--data", made / "professional" / "healthbench_professional.jsonl")

    assert (0, True) == (code, "ok" in out.splitlines()[0]), out
    assert 1 == other[0]


def test_a_fifth_table_holds_what_scores_by_tag_are_made_of(made: Path) -> None:
    """Example tags, a list of tags an item, the completion's group and the physicians' labels; no text."""
    table = pq.read_table(only_run(made / "core" / "out") / "examples.parquet", partitioning=None)
    first = table.to_pylist()[0]

    assert table.schema.equals(EXAMPLES_SCHEMA)
    assert [example_id_of(n) for n in range(N)] == table["case_id"].to_pylist()
    assert (["theme:hedging"], [make_criterion(0, i)["tags"] for i in range(4)]) == (
        first["example_tags"],
        first["item_tags"],
    )
    assert ("Group 1", []) == (first["completions_group"], first["labels"])


def test_a_meta_run_keeps_the_physicians_labels_and_null_points(made: Path) -> None:
    """Its scores are null, its decisions and labels are all there."""
    tables = read_tables(only_run(made / "meta" / "out"))

    assert [{"physician": "ph-1", "label": False}, {"physician": "ph-2", "label": True}] == tables["examples"][0][
        "labels"
    ]
    assert ({None}, {"ok"}) == ({r["points"] for r in tables["decisions"]}, {r["state"] for r in tables["decisions"]})
    assert [("graded", None, ["no-points"])] * N == [(r["state"], r["score"], r["flags"]) for r in tables["scores"]]


def test_the_tables_give_the_run_back(made: Path) -> None:
    """Tags, labels, groups and lengths included: what the journal gives, the published folder gives."""
    from eval.numbers.readers import read_run

    for kind in KINDS:
        tables = read_tables(only_run(made / kind / "out"))
        found = run_data_from_tables(tables, identity=read_identity(tables), summary=read_summary(tables))
        journal = read_run(made / kind / "x.jsonl")

        assert [(c.matched, c.tags, c.item_tags, c.group, c.labels, c.n_chars) for c in journal.cases] == [
            (c.matched, c.tags, c.item_tags, c.group, c.labels, c.n_chars) for c in found.cases
        ]


# -- what was changed is found

NAMED: dict[str, tuple[str, int, str, str]] = {
    "an example's tag": ("core", 0, "example_tags", "example_tags"),
    "an item's tag": ("core", 0, "item_tags", "item_tags"),
    "the run": ("core", 0, "run_id", "run_id"),
    "the example": ("core", 1, "case_id", "case_id"),
    "the group of a completion": ("physician", 0, "completions_group", "groups"),
}


@pytest.mark.parametrize(("kind", "row", "column", "named"), NAMED.values(), ids=NAMED)
def test_a_changed_cell_of_examples_is_found(
    copy: Callable[[str], Path], kind: str, row: int, column: str, named: str
) -> None:
    """By the numbers that follow from it, whoever made the digests anew."""
    changed = copy(kind)
    tamper(changed, "examples", row, column, another)

    assert named in lines(changed)


def test_a_tag_given_to_another_item_is_found(copy: Callable[[str], Path]) -> None:
    """The lists are as many as before, and only their places differ."""
    changed = copy("core")
    tamper(changed, "examples", 0, "item_tags", lambda tags: [tags[2], tags[1], tags[0], tags[3]])

    assert "rubric_tags" in lines(changed)


@pytest.mark.parametrize(
    ("kind", "column", "change"),
    [
        ("meta", "labels", lambda labels: [labels[0] | {"physician": "ph-9"}, *labels[1:]]),
        ("core", "completions_group", lambda _: "Group 9"),
    ],
    ids=["a physician", "a group"],
)
def test_what_no_number_is_made_of_is_found_in_the_data(
    made: Path, copy: Callable[[str], Path], kind: str, column: str, change: Callable[[Any], Any]
) -> None:
    """A forger of names passes the folder's own check, which says so, and not that against the mirror."""
    changed = copy(kind)
    tamper(changed, "examples", 0, column, change)
    alone = verify_run(changed)
    found = [finding.line() for finding in check_link(changed, made / kind / "mirror")]

    assert alone.ok
    assert "examples: physicians' ids, completions_group" in alone.facts["digests alone"]
    assert [True] == [column in line and line.startswith("examples.parquet") for line in found]


@pytest.mark.parametrize(
    "change",
    [lambda labels: [labels[0] | {"label": not labels[0]["label"]}, *labels[1:]], lambda labels: labels[1:]],
    ids=["a label", "one label fewer"],
)
def test_a_changed_label_is_found(copy: Callable[[str], Path], change: Callable[[Any], Any]) -> None:
    """The grader's agreement with physicians stands in the summary, and is computed again from the labels."""
    changed = copy("meta")
    tamper(changed, "examples", 0, "labels", change)

    assert "summary_json: meta." in lines(changed)


@pytest.mark.parametrize("kind", ["core", "meta", "repeats"])
@pytest.mark.parametrize("column", [name for name in ALL_SCHEMAS["decisions"].names if name != "reply_sha256"])
def test_a_changed_cell_of_decisions_is_found(copy: Callable[[str], Path], kind: str, column: str) -> None:
    """Item, points, state, verdict, judge: each follows from something else; a reply's digest only the files' name."""
    changed = copy(kind)
    kinds = ALL_SCHEMAS["decisions"].field(column).type
    tamper(changed, "decisions", 0, column, lambda value: filled(kinds) if value is None else another(value))

    assert lines(changed)


def broken(rows: list[dict[str, Any]], how: str) -> list[dict[str, Any]]:
    """Return rows of `examples` that are not one an example, or not whole."""
    first, *rest = rows
    return {
        "a row fewer": rest,
        "a row twice": [first, *rows],
        "another order": [*rest, first],
        "a list fewer": [first | {"item_tags": first["item_tags"][:-1]}, *rest],
        "a null tag": [first | {"example_tags": [None]}, *rest],
        "a null list": [first | {"item_tags": [None, *first["item_tags"][1:]]}, *rest],
        "null tags": [first | {"example_tags": None}, *rest],
        "a null label": [first | {"labels": [{"physician": "p", "label": None}]}, *rest],
        "no label": [first | {"labels": [None]}, *rest],
    }[how]


BROKEN = (
    *("a row fewer", "a row twice", "another order", "a list fewer", "a null tag", "a null list", "null tags"),
    *("a null label", "no label"),
)


@pytest.mark.parametrize("how", BROKEN)
def test_examples_that_do_not_fit_the_other_tables_are_named(copy: Callable[[str], Path], how: str) -> None:
    """A finding of that table, and no traceback."""
    changed = copy("core")
    path = changed / "examples.parquet"
    rows = pq.read_table(path, partitioning=None).to_pylist()
    write_parquet(pa.Table.from_pylist(broken(rows, how), schema=EXAMPLES_SCHEMA), path)
    remake_digests(changed)

    assert "examples.parquet" in lines(changed)


def test_a_run_without_its_fifth_table_is_found(copy: Callable[[str], Path]) -> None:
    """Left out of the digests too."""
    changed = copy("core")
    (changed / "examples.parquet").unlink()
    remake_digests(changed)

    assert "examples.parquet: file: expected a Parquet table" in lines(changed)


def test_another_mirror_is_named(made: Path, tmp_path: Path) -> None:
    """One tag changed in the data: the digests differ, and the table says which example."""
    changed = [make_example(n, **({"example_tags": ["theme:other"]} if n == 1 else {})) for n in range(N)]
    other = example_mirror(tmp_path, changed)
    found = "\n".join(finding.line() for finding in check_link(only_run(made / "core" / "out"), other))

    assert f"case {example_id_of(1)}: example_tags" in found
    assert "run: dataset_sha256" in found


# -- beside runs of the other suite


@pytest.fixture(scope="module")
def mixed(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with a run of each suite, on data of the same licence."""
    folder = tmp_path_factory.mktemp("mixed")
    journal = write_journal(folder / "y.jsonl", panels=["drug_safety"])
    results_of(journal, folder / "out")
    shutil.copy(made / "core" / "x.jsonl", folder / "x.jsonl")
    results_of(folder / "x.jsonl", folder / "out")
    return folder / "out"


def test_both_suites_stand_in_one_folder(mixed: Path) -> None:
    """It verifies; the card names the config that only one of them has, and keeps the words apart."""
    card = (mixed / "README.md").read_text(encoding="utf-8")

    assert "" == lines(mixed)
    assert "config_name: examples" in card
    assert "panels that begin with healthbench: means over examples, clipped" in card
    assert {"drug_safety", "healthbench"} == {
        panel["id"] for path in (mixed / "runs").iterdir() for panel in read_digests(path)["panels"]
    }


def test_a_folder_without_healthbench_has_no_such_config(tmp_path: Path) -> None:
    """A results dataset of cases stays as it was."""
    results_of(write_journal(tmp_path / "y.jsonl", panels=["drug_safety"]), tmp_path / "out")

    assert "examples" not in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_datasets_loads_every_config_of_a_mixed_folder(mixed: Path, tmp_path: Path) -> None:
    """Loaded and streamed; examples has the rows of the one run that has them."""
    found = load_folder(mixed, tmp_path)

    assert {"runs", "scores", "decisions", "answers", "examples"} == set(found["names"])
    assert (2, N) == (len(found["loaded"]["runs"]["train"]), len(found["loaded"]["examples"]["train"]))
    assert found["loaded"] == found["streamed"]
