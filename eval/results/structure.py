"""Whether the rows of a run's tables fit together at all: the same cases in the same order, every asked row once.

In: the rows of the tables and the run's identity. Out: findings. With none, every score can be computed again
(`recompute`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import product
from typing import Any, Final, TypeAlias

from builder.dataset.folder import Finding
from builder.healthbench.names import META
from eval.judging.grading import answer_repeats
from eval.results.schemas import EXAMPLES, KEYS
from eval.results.tables import Row

Tables: TypeAlias = Mapping[str, Sequence[Row]]
"""The rows of a run's tables, by table."""

_NO_NULLS: Final = {
    "scores": ("case_id", "answer_repeat", "benchmark", "grading_method", "state"),
    "decisions": (*KEYS["decisions"], "benchmark", "item_id", "points", "judge_model", "state"),
    "answers": ("case_id", "answer_repeat", "state"),
    EXAMPLES: ("case_id", "example_tags", "item_tags", "labels"),
}


def row_name(table: str, row: Mapping[str, Any]) -> str:
    """Return the words that name a row in a finding: `case 06ab, answer 0, item 3`."""
    if table == "run":
        return "run"
    if table == EXAMPLES:
        return f"case {row['case_id']}"
    name = f"case {row['case_id']}, answer {row['answer_repeat']}"
    if table == "decisions":
        name += f", item {row['item_index']}, judge {row['judge']}, repeat {row['repeat']}"
    return name


def structure_findings(tables: Tables, identity: Mapping[str, Any]) -> list[Finding]:
    """Return what keeps the rows from being those of one run: nulls, other orders, rows missing or there twice."""
    held = [table for table in _NO_NULLS if table in tables]
    # A meta example's criterion has no points.
    optional = {"points"} if identity["config"] == META else set()
    nulls = [finding for table in held for finding in _nulls(table, tables[table], optional)]
    if nulls:
        return nulls
    if not tables["scores"]:
        return [Finding("scores.parquet", "rows", "at least one", "0")]
    if EXAMPLES in tables and (torn := list(_torn_examples(tables))):
        return torn
    fewest = len(tables["scores"]) * len(identity["judges"]) * identity["repeats"]
    if len(tables["decisions"]) < fewest:
        n = str(len(tables["decisions"]))
        return [Finding("decisions.parquet", "rows", f"at least {fewest}, one for each judge reply of each case", n)]
    orders = {table: list(dict.fromkeys(row["case_id"] for row in tables[table])) for table in held}
    return [
        *_orders(orders),
        *(finding for table in held for finding in _keys(table, tables, identity)),
        *_undecided(tables["decisions"]),
    ]


def _nulls(table: str, rows: Sequence[Row], optional: Set[str]) -> Iterator[Finding]:
    for number, row in enumerate(rows):
        for column in _NO_NULLS[table]:
            if row[column] is None and column not in optional:
                yield Finding(f"{table}.parquet", f"row {number}: {column}", "a value", "null")


def _torn_examples(tables: Tables) -> Iterator[Finding]:
    """Yield where an example's tags or labels hold a null, or are not one list an item."""
    counts = Counter(row["case_id"] for row in tables["decisions"] if row["judge"] == row["repeat"] == 0)
    repeats = 1 + max((row["answer_repeat"] for row in tables["answers"]), default=0)
    for row in tables[EXAMPLES]:
        name, n_items = row_name(EXAMPLES, row), counts[row["case_id"]] // repeats
        # A case that no decision has is named with the others of its kind below.
        if row["case_id"] in counts and len(row["item_tags"]) != n_items:
            yield Finding(f"{EXAMPLES}.parquet", f"{name}: item_tags", f"{n_items} lists", str(len(row["item_tags"])))
        tags = [*row["example_tags"], *(tag for tags in row["item_tags"] for tag in (tags or [None]) if tags != [])]
        labels = [value for label in row["labels"] for value in (label or {"label": None}).values()]
        if None in tags or None in labels:
            yield Finding(f"{EXAMPLES}.parquet", name, "a value for every tag, physician and label", "null")


def _orders(orders: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Compare the cases of the three tables, which all stand in dataset order; what two tables say is expected."""
    ways = Counter(tuple(order) for order in orders.values())
    true = ways.most_common(1)[0][0]
    for table, order in orders.items():
        for place, (expected, found) in enumerate(zip(true, order, strict=False)):
            if expected != found:
                yield Finding(
                    f"{table}.parquet", f"case {expected}: case_id (the table's case {place})", expected, found
                )
                break
        if len(order) != len(true):
            yield Finding(f"{table}.parquet", "cases", str(len(true)), str(len(order)))


def _keys(table: str, tables: Tables, identity: Mapping[str, Any]) -> Iterator[Finding]:
    found = Counter(tuple(row[name] for name in KEYS[table]) for row in tables[table])
    expected = set(_expected_keys(table, tables, identity))
    for key in sorted(expected | found.keys()):
        n = found[key]
        if key not in expected or n != 1:
            name = row_name(table, dict(zip(KEYS[table], key, strict=True)))
            wanted = f"{'one row' if key in expected else 'no row'} with this {', '.join(KEYS[table])}"
            yield Finding(f"{table}.parquet", name, wanted, str(n))


def _expected_keys(table: str, tables: Tables, identity: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    cases = dict.fromkeys(row["case_id"] for row in tables["scores"])
    if table == EXAMPLES:
        yield from ((case_id,) for case_id in cases)
        return
    answers = range(answer_repeats(identity))
    if table != "decisions":
        yield from ((case_id, answer) for case_id in cases for answer in answers)
        return
    items = {row["case_id"]: row["n_items"] or 0 for row in tables["scores"]}
    counted = Counter(row["case_id"] for row in tables["decisions"])
    judges, repeats = range(len(identity["judges"])), range(identity["repeats"])
    units = list(product(answers, judges, repeats))
    for case_id in cases:
        # The rows say how many items a case has, unless they do not share out evenly among the replies.
        n, rest = divmod(counted[case_id], len(units))
        n = min(items[case_id], counted[case_id]) if rest else n
        yield from ((case_id, answer, index, judge, repeat) for answer, judge, repeat in units for index in range(n))


def _undecided(decisions: Sequence[Row]) -> Iterator[Finding]:
    for row in decisions:
        if (row["matched"] is None) == (row["state"] == "ok"):
            expected = (
                "true or false, the state is ok" if row["state"] == "ok" else f"null, the state is {row['state']}"
            )
            found = {None: "null", True: "true", False: "false"}[row["matched"]]
            yield Finding("decisions.parquet", f"{row_name('decisions', row)}: matched", expected, found)
