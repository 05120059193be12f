"""The card of a results folder, and what else stands at its root: made from the runs in it, and checked against them.

In: a results folder. Out: the text of its README.md, or findings. The card lists every run but counts no rows: others
may add runs at the same time. What people write below its last generated line is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bedside_bench import OFFICIAL_CASES_PER_PANEL, __version__
from builder.cards.card import ANYWHERE, MADE_BY, UNKNOWN_LICENSE, CardConfig, CardSplit, render_results_card
from builder.cards.frontmatter import read_front_matter
from builder.cards.results_tables import selection_words
from builder.dataset.digests import HUB_FILES, HUB_FOLDERS
from builder.dataset.folder import Finding, read_digests
from builder.dataset.footers import CARD, check_card
from builder.errors import BadInput
from builder.healthbench.names import SUITE as HEALTHBENCH
from builder.hub.place import REPO_ID
from builder.tree.licence import LEGAL_PREFIXES
from eval.judging.certified import BUILTIN
from eval.judging.protocol import PROTOCOL
from eval.numbers.notices import NOT_COMPARABLE, WIDER
from eval.results.schemas import ALL_SCHEMAS, EXAMPLES, RUN_SCHEMA, tables_of

RUNS: Final = "runs"
INDEX: Final = "run.parquet"
"""The one-row table of a run; all of them together are the index of a results dataset."""
SPLIT: Final = "train"
"""The one split of every config: what a single split is called on the Hub."""
CONFIGS: Final = {"runs": "run", "scores": "scores", "decisions": "decisions", "answers": "answers"}
"""Config -> table: `runs/*/<table>.parquet`."""
OTHER_PROTOCOL: Final = f"non-standard protocol, not comparable with runs of {PROTOCOL}"
HEALTHBENCH_SCORES: Final = (
    "panels that begin with healthbench: means over examples, clipped to 0..1 after averaging; numbers of another "
    "protocol (another grader's prompt) are not comparable, nor are those of BedsideBench panels"
)
END: Final = "<!-- the part above is generated anew with every run; what stands below this line is kept -->"

MOST_BYTES: Final = 64 << 20
"""Of a `run` table, unpacked: a small file of somebody else may unpack to more than a machine holds."""

# The columns without which a run cannot stand in a card.
_SHOWN: Final = (
    *("run_id", "suite", "protocol", "date", "judge_models", "panels", "with_texts"),
    *("n_expected", "n_graded", "n_failed", "semantics_sha256", "dataset_sha256"),
)
_MADE_BY: Final = re.compile(rf"^{MADE_BY} (\S+)\.$", re.MULTILINE)
_LOADED: Final = re.compile(rf'load_dataset\("({REPO_ID.pattern})", "runs"', re.ASCII)
_RUN_TABLE: Final = re.compile(r"^## The runs\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_RUN_LINE: Final = re.compile(r"^\| (\d{4}-\d\d-\d\d-\S+-[0-9a-f]{8}) \|", re.MULTILINE)


def run_folders(folder: Path) -> list[Path]:
    """Return the folders of the runs in a results folder, by run_id."""
    runs = folder / RUNS
    found = runs.iterdir() if runs.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and not path.name.startswith("."))


def run_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the `run` tables in a results folder, or of the one run that a folder holds.

    Raises:
        BadInput: a run cannot be read.
    """
    runs = run_folders(folder) if (folder / RUNS).is_dir() else [folder]
    return [run_row_of(run / INDEX, where=str(run / INDEX)) for run in runs]


def results_card(folder: Path, *, old: str | None) -> str:
    """Return the README.md of a results folder from the runs in it.

    Args:
        old: as in `results_card_text`.

    Raises:
        BadInput: a run cannot be read, or the runs' data have different licences: a card states one.
    """
    runs = [read_digests(run) for run in run_folders(folder)]
    return results_card_text(run_rows(folder), license_id=shared_license(folder), canaries=canaries_of(runs), old=old)


def canaries_of(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the canary statements of the data of runs, from their digests, each once, sorted."""
    stated = [digests.get("canaries") for digests in runs]
    return sorted({str(text) for texts in stated if isinstance(texts, list) for text in texts})


def results_card_text(
    rows: Iterable[Mapping[str, Any]],
    *,
    license_id: str,
    canaries: Sequence[str] = (),
    place: str | None = None,
    examples: bool = False,
    old: str | None,
) -> str:
    """Return the README.md of the runs whose `run` rows are given, in any order, and of nothing else.

    Args:
        examples: list the config `examples` even if no row is of a run that has that table.
        license_id: the one licence of the data of all runs.
        canaries: the statements of the data's sources (`canaries_of`).
        place: the repository it is for; None keeps the one that the old card names.
        old: the README.md that is there; what stands below its generated part is kept.
    """
    place = place or _place_of(old or "")
    runs = sorted(rows, key=lambda row: str(row["run_id"]))
    configs = [
        CardConfig(
            name, ALL_SCHEMAS[table], (CardSplit(SPLIT, (f"{RUNS}/*/{table}.parquet",)),), default=name == "runs"
        )
        for name, table in configs_of(runs, examples=examples).items()
    ]
    text = render_results_card(
        runs, configs, license_id=license_id, place=place, canaries=canaries, notices=_notices(runs)
    )
    below = old.partition(END)[2] if old else "\n"
    # A run's words may hold that line too; it must stand once, or what is generated would be kept as what people wrote.
    return f"{text.replace(END, f'&lt;{END[1:]}').rstrip()}\n\n{END}{below}"


def configs_of(rows: Iterable[Mapping[str, Any]], *, examples: bool = False) -> dict[str, str]:
    """Return config -> table of a folder with these runs: `examples` only if asked for, or if a run has that table."""
    tables = {table for row in rows for table in tables_of(str(row["suite"]))}
    return CONFIGS | ({EXAMPLES: EXAMPLES} if examples or EXAMPLES in tables else {})


def _place_of(card: str) -> str:
    found = _LOADED.search(card.partition(END)[0])
    return found[1] if found else ANYWHERE


def run_row_of(source: Path | pa.BufferReader, *, where: str) -> dict[str, Any]:
    """Return the row of a `run` table.

    Args:
        where: what an error names.

    Raises:
        BadInput: it is no such table of one row.
    """
    try:
        # One row needs no threads; Arrow's may still be starting when a short command ends, which then aborts.
        with pq.ParquetFile(source) as file:
            about = file.metadata
            size = sum(about.row_group(number).total_byte_size for number in range(about.num_row_groups))
            if about.num_rows != 1 or size > MOST_BYTES:
                found = f"{about.num_rows} of {size:,} bytes"
                raise BadInput(f"{where}: expected one row of at most {MOST_BYTES:,} bytes, found {found}")
            table = file.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{where}: expected one row, found: {str(error).splitlines()[0]}") from None
    if not table.schema.equals(RUN_SCHEMA) or table.num_rows != 1:
        raise BadInput(f"{where}: expected one row with the columns of a run, found {table.num_rows} or other columns")
    row: dict[str, Any] = table.to_pylist()[0]
    empty = [name for name in _SHOWN if row[name] is None]
    empty += [f"{name}[]" for name in ("judge_models", "panels") if None in (row[name] or ())]
    panels = [panel for panel in row["panels"] or () if panel is not None]
    empty += [f"panels[].{name}" for name in ("panel", "n", "n_expected") if any(p[name] is None for p in panels)]
    if empty:
        raise BadInput(f"{where}: expected a value in {', '.join(empty)}, found null")
    try:
        selection_words(row)
    except (ValueError, TypeError, RecursionError):
        raise BadInput(f"{where}: identity_json: expected the identity of a run, found another value") from None
    return row


def _notices(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what a reader of the table must know of some or all of the runs."""
    shown = []
    sizes = sorted({panel["n"] for row in rows if row["suite"] != HEALTHBENCH for panel in row["panels"]})
    if sizes and sizes != [OFFICIAL_CASES_PER_PANEL]:
        n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        shown += [f"n = {n} per panel (official: {OFFICIAL_CASES_PER_PANEL})", WIDER, NOT_COMPARABLE]
    for row in rows:
        if row["suite"] != HEALTHBENCH and row["protocol"] != PROTOCOL:
            shown.append(f"`{row['run_id'][-8:]}`: {OTHER_PROTOCOL}")
    if any(row["suite"] == HEALTHBENCH for row in rows):
        shown.append(HEALTHBENCH_SCORES)
    shown += [_jury(row) for row in rows if len(row["judge_models"]) * (row["repeats"] or 1) > 1]
    with_texts = sum(row["with_texts"] for row in rows)
    if any(str(row["answer_model"]).startswith(BUILTIN) for row in rows):
        shown.append("runs whose answer model begins with builtin: are fixed answers, not models: floors and ceilings")
    if any(model.startswith(BUILTIN) for row in rows for model in row["judge_models"]):
        shown.append("decisions of a judge that begins with builtin: show the pipeline, not the quality of answers")
    if with_texts:
        shown.append(
            f"{with_texts} of {len(rows)} runs hold the texts of the answers (answers.text); others their digests"
        )
    else:
        shown.append("no prompt, rubric or answer text: items are named by id, answers by digest")
    return shown


def _jury(row: Mapping[str, Any]) -> str:
    """Return what a jury's score is, and what the items that it left open and ungraded cases could make of it."""
    low, high = row["overall_worst"], row["overall_best"]
    bounds = "" if low is None or high is None else f"; worst to best {low:.3f} to {high:.3f}"
    certificate = f"; certificates: {row['certificate']}" if row["certificate"] else ""
    return (
        f"`{row['run_id'][-8:]}`: a jury of {len(row['judge_models'])} x {row['repeats']} calls, its score the "
        f"conservative bound (unresolved items at their least favourable){bounds}{certificate}"
    )


def shared_license(folder: Path, *more: str | None) -> str:
    """Return the one licence of the data that the runs in a folder were made on, `unknown` where none was stated.

    Args:
        more: the licences of runs that are to be added.

    Raises:
        BadInput: there are several.
    """
    found = [license_of(read_digests(run)) for run in run_folders(folder)]
    stated = sorted({*found, *(license_id or UNKNOWN_LICENSE for license_id in more)})
    if len(stated) > 1:
        raise BadInput(
            f"{folder}: expected runs on data of one licence, found {', '.join(stated)}; use a folder for each"
        )
    return stated[0] if stated else UNKNOWN_LICENSE


def license_of(digests: Mapping[str, Any]) -> str:
    """Return the licence of the data that a run was made on, from its digests; `unknown` where none was stated."""
    return str(source_of(digests).get("license") or UNKNOWN_LICENSE)


def source_of(digests: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `source` of a run's digests; an empty one where it is no object."""
    source = digests.get("source")
    return source if isinstance(source, Mapping) else {}


def stray_entries(folder: Path) -> Iterator[Finding]:
    """Yield what does not belong at the root of a results folder or between its runs."""
    hub = {*HUB_FILES, *(name.split("/")[0] for name in HUB_FOLDERS)}
    for path in sorted(folder.iterdir()):
        if path.name not in {CARD, RUNS, *hub} and not path.name.startswith(LEGAL_PREFIXES):
            yield Finding(path.name, "stray", f"{CARD} and {RUNS}/ only", "a folder" if path.is_dir() else "a file")
    for path in sorted((folder / RUNS).iterdir()) if (folder / RUNS).is_dir() else ():
        if not path.is_dir() or path.name.startswith("."):
            yield Finding(f"{RUNS}/{path.name}", "stray", "folders of runs only", "a file or hidden folder")


def check_results_card(folder: Path) -> list[Finding]:
    """Return where the card of a results folder disagrees with the runs in it."""
    names = [run.name for run in run_folders(folder)]
    findings = check_card(folder, expected=_expected_configs(folder, names), counted=False)
    try:
        text = (folder / CARD).read_bytes().decode()
        stated, true = read_front_matter(text.encode()).get("license"), shared_license(folder)
    except (BadInput, OSError, UnicodeDecodeError):
        return findings  # named by check_card, or by the run's own digests
    if stated != true:
        findings.append(Finding(CARD, "license", true, str(stated)))
    listed = listed_runs(text)
    if listed != names:
        findings.append(Finding(CARD, "table of runs", ", ".join(names), ", ".join(listed) or "none"))
    elif not findings and (differs := _difference(folder, text)):
        findings.append(Finding(CARD, "generated part", *differs))
    return findings


def _expected_configs(folder: Path, names: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return config -> split -> files of a results folder; a run that cannot be read is named by its own digests."""
    tables: dict[str, tuple[str, ...]] = {}
    for name in names:
        try:
            tables[name] = tables_of(str(run_row_of(folder / RUNS / name / INDEX, where=name)["suite"]))
        except (BadInput, OSError):
            tables[name] = tuple(CONFIGS.values())
    configs = CONFIGS | ({EXAMPLES: EXAMPLES} if any(EXAMPLES in held for held in tables.values()) else {})
    return {
        config: {SPLIT: [f"{RUNS}/{name}/{table}.parquet" for name in names if table in tables[name]]}
        for config, table in configs.items()
    }


def is_of_this_version(card: str) -> bool:
    """Whether a results card says that this version worded it; another's words are not compared, only its runs."""
    found = _MADE_BY.search(card.partition(END)[0])
    return found is None or found[1] == __version__


def _difference(folder: Path, text: str) -> tuple[str, str] | None:
    """Return where a card is not the one that the runs in a folder give, as (expected, found)."""
    if not is_of_this_version(text):
        return _other_scores(run_rows(folder), text)
    try:
        return _first_difference(results_card(folder, old=text), text)
    except BadInput as error:
        return "rows that a card can be made of", str(error)


def _other_scores(rows: Iterable[Mapping[str, Any]], text: str) -> tuple[str, str] | None:
    """Return the first overall score that no cell of its run's line begins with, as (expected, found)."""
    table = _RUN_TABLE.search(text.partition(END)[0])
    lines = [line for line in (table[0].split("\n") if table else []) if _RUN_LINE.match(line)]
    cells = {line.split(" | ")[0].removeprefix("| "): line for line in lines}
    for row in rows:
        expected = "none" if row["overall_mean"] is None else f"{row['overall_mean']:.3f}"
        line = cells.get(row["run_id"], "")
        if expected not in {cell.split(" ")[0] for cell in line.split(" | ")[1:]}:
            return f"{expected} in the line of {row['run_id']}", line
    return None


def listed_runs(text: str) -> list[str]:
    """Return the run_ids in the table of a card, sorted."""
    table = _RUN_TABLE.search(text.partition(END)[0])
    return sorted(_RUN_LINE.findall(table[0])) if table else []


def _first_difference(expected: str, found: str) -> tuple[str, str] | None:
    """Return the first line that the runs give and the line that stands there instead; None where the cards agree."""
    for pair in zip_longest(expected.splitlines(), found.splitlines(), fillvalue="no line"):
        if pair[0] != pair[1]:
            return pair
    return None
