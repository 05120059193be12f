"""The card of a dataset folder: YAML front matter made from Arrow schemas and counts, then prose from a template.

In: what the folder holds. Out: the text of README.md. Whether a card and its Parquet files agree is asked in `footers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, StrictUndefined, Template

from bedside_bench import OFFICIAL_CASES_PER_PANEL, PANELS_BY_ID, PUBLIC_SPLIT, Case, __version__
from builder.cards.frontmatter import CardConfig, CardSplit, front_matter, read_front_matter, yaml_features
from builder.cards.results_tables import cell, panel_tables, score_cell, settings_table
from builder.tree.origin import BEDSIDEBENCH, PAPER_LINK, Origin

__all__ = [
    "CardConfig",
    "CardSplit",
    "CardSummary",
    "PanelCounts",
    "card_summary",
    "example_case",
    "license_facts",
    "mirror_metadata",
    "provenance_line",
    "registry_languages",
    "render_mirror_card",
    "render_results_card",
    "template_environment",
    "yaml_features",
]

ANYWHERE: Final = "THIS_REPOSITORY_OR_FOLDER"
"""What stands for the place of a dataset whose card does not know it."""
MADE_BY: Final = "This card was made by bedside-bench"
"""How the line begins that says which version worded a results card."""
UNKNOWN_LICENSE: Final = "unknown"
LICENSES: Final = {
    "apache-2.0": ("Apache License 2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    "cc-by-4.0": ("CC BY 4.0", "https://creativecommons.org/licenses/by/4.0/"),
    "cc-by-nc-4.0": ("CC BY-NC 4.0", "https://creativecommons.org/licenses/by-nc/4.0/"),
    "cc-by-nc-sa-4.0": ("CC BY-NC-SA 4.0", "https://creativecommons.org/licenses/by-nc-sa/4.0/"),
    "cc-by-sa-4.0": ("CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/"),
    "cc0-1.0": ("CC0 1.0", "https://creativecommons.org/publicdomain/zero/1.0/"),
    "mit": ("MIT License", "https://opensource.org/license/mit"),
}

LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")

EXAMPLE_CHARS: Final = 2000
"""Longest JSON of a case that a card shows as its example."""


@dataclass(frozen=True, slots=True)
class PanelCounts:
    """What a panel holds: cases, and items by the sign of their points."""

    id: str
    cases: int
    items: int
    positive: int
    negative: int
    equivocal: int


@dataclass(frozen=True, slots=True)
class CardSummary:
    """What a card says first: its title, and in plain text what the data are and how many."""

    title: str
    description: str


def card_summary(card: bytes) -> CardSummary:
    """Return a mirror's title and its first two paragraphs as one, as its card states them.

    Raises:
        BadInput: it has no front matter of ours.
    """
    title = str(read_front_matter(card).get("pretty_name", ""))
    body = card.decode().partition("\n---\n")[2]
    paragraphs = [" ".join(paragraph.split()) for paragraph in body.split("\n\n") if paragraph.strip()]
    return CardSummary(title, " ".join(paragraphs[1:3]).replace("**", ""))


def size_category(n: int) -> str:
    """Return the Hub's `size_categories` value for a number of rows."""
    edges = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
    return next((name for edge, name in edges if n < edge), "n>1M")


def fenced(text: str, language: str) -> str:
    """Return text in a Markdown code block that nothing inside it can close, so that it stays as it is."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def example_case(case: Case) -> str | None:
    """Return a case as a code block for a card, or None where it is too long or would look like a paper's link."""
    text = json.dumps(case, ensure_ascii=False, indent=2)
    return None if len(text) > EXAMPLE_CHARS or PAPER_LINK.search(text) else fenced(text, "json")


def provenance_line(digests: Mapping[str, Any]) -> str:
    """Return the members of `digests.json` that no file or row tells, as the JSON that a card carries."""
    named = ("content_sha256", "dataset_sha256", "made_by", "source", "splits")
    return json.dumps({name: digests[name] for name in named}, sort_keys=True, indent=1)


def comparability(counts: Sequence[PanelCounts]) -> str:
    """Return what must be said of scores on a set whose panels do not have the official number of cases."""
    sizes = sorted({panel.cases for panel in counts})
    if sizes == [OFFICIAL_CASES_PER_PANEL]:
        return ""
    n = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return (
        f"Here n = {n} per panel (official: {OFFICIAL_CASES_PER_PANEL}): intervals are wider than official ones, "
        f"and scores are not comparable with official {OFFICIAL_CASES_PER_PANEL}-case numbers."
    )


def render_mirror_card(
    template: str,
    configs: Sequence[CardConfig],
    *,
    origin: Origin,
    digests: Mapping[str, Any],
    counts: Sequence[PanelCounts],
    splits: Sequence[tuple[str, str]],
    legal: Sequence[str],
    place: str = ANYWHERE,
    language: Sequence[str] = ("en",),
    example: str | None = None,
    canaries: Sequence[str] = (),
) -> str:
    """Return the README.md of a mirror.

    Args:
        template: the text of `dataset_card.md`.
        digests: the members of `digests.json` but `files`.
        counts: the panels present, in registry order.
        splits: (Parquet split, the cases' own split), the public one first.
        legal: names of the source's legal files that lie beside the card.
        place: the repository that `load_dataset` is shown with.
        canaries: the source's canary statements, carried word for word.
    """
    license_id = digests["source"]["license"] or UNKNOWN_LICENSE
    about = mirror_metadata(origin, license_id, n_cases=digests["n_cases"], language=language)
    first = configs[0].splits[0]
    paths = [config.splits[0].paths[0] for config in configs[: len(counts)]]
    panels = [_panel_row(panel, path) for panel, path in zip(counts, paths, strict=True)]
    body = template_environment().from_string(template).render(
        title=origin.title,
        place=place,
        origin=origin.kind,
        attribution=origin.attribution,
        license=license_facts(license_id),
        n_cases=digests["n_cases"],
        n_items=digests["n_items"],
        positive=sum(panel.positive for panel in counts),
        negative=sum(panel.negative for panel in counts),
        equivocal=sum(panel.equivocal for panel in counts),
        panels=panels,
        partial=len(counts) < len(PANELS_BY_ID),
        split=first.name,
        splits=splits,
        held_out=[name for name, own in splits if own != PUBLIC_SPLIT],
        comparable=comparability(counts),
        legal=[f"`{name}`" for name in legal],
        example=example,
        canaries=canaries,
        repo=digests["source"]["repo"],
        revision=digests["source"]["revision"],
        provenance=provenance_line(digests),
    )  # fmt: skip
    return front_matter(about, configs) + "\n" + body


def _panel_row(panel: PanelCounts, path: str) -> dict[str, object]:
    return {
        "id": panel.id,
        "grading_method": PANELS_BY_ID[panel.id].grading_method,
        "tests": PANELS_BY_ID[panel.id].tests,
        "path": path,
        "n_cases": panel.cases,
        "n_items": panel.items,
        "positive": panel.positive,
        "negative": panel.negative,
        "equivocal": panel.equivocal,
    }


def mirror_metadata(origin: Origin, license_id: str, *, n_cases: int, language: Sequence[str]) -> dict[str, object]:
    """Return the front matter of a mirror's card above its configs."""
    about: dict[str, object] = {"pretty_name": origin.title, "license": license_id, "language": list(language)}
    about["task_categories"] = ["question-answering", "text-generation"]
    if origin.kind == BEDSIDEBENCH:
        about["annotations_creators"] = ["expert-generated"]
        about["language_creators"] = ["expert-generated"]
    about["size_categories"] = [size_category(n_cases)]
    about["source_datasets"] = ["extended|doximity/bedside-bench" if origin.kind == BEDSIDEBENCH else "original"]
    about["tags"] = ["medical", "clinical", "benchmark", "evaluation", "rubric", "llm-as-a-judge"]
    return about


def render_results_card(
    runs: Sequence[Mapping[str, Any]],
    configs: Sequence[CardConfig],
    *,
    license_id: str,
    place: str = ANYWHERE,
    canaries: Sequence[str] = (),
    notices: Sequence[str] = (),
    title: str = "Graded answers to clinical cases",
) -> str:
    """Return the README.md of a results folder.

    Args:
        runs: the rows of the `run` tables, in the order to list them.
        configs: `runs` (default), `scores`, `decisions`, `answers`, with patterns such as `runs/*/run.parquet`.
        place: the repository that `load_dataset` is shown with.
        canaries: the statements of the data's sources, carried word for word.
        notices: sentences that hold for these runs, printed as a list.
    """
    about = {
        "pretty_name": title,
        "license": license_id,
        "task_categories": ["question-answering", "text-generation"],
        "tags": ["medical", "clinical", "evaluation", "rubric", "llm-as-a-judge", "results"],
    }
    body = _results_template().render(
        title=title,
        runs=runs,
        place=place,
        repo=None if place == ANYWHERE else place,
        canaries=canaries,
        settings=settings_table(runs),
        panels=panel_tables(runs),
        split=configs[0].splits[0].name,
        notices=notices,
        license=license_facts(license_id),
        made_by=f"{MADE_BY} {__version__}.",
    )  # fmt: skip
    return front_matter(about, configs) + "\n" + body


@cache
def _results_template() -> Template:
    """Return the card's template: made once, as a card is made anew for every state of a repository that is met."""
    return template_environment().from_string((files("builder.cards") / "results_card.md").read_bytes().decode())


def registry_languages(stated: object) -> list[str]:
    """Return the language codes that a registry states, English where it states none."""
    codes = stated if isinstance(stated, list) else [stated]
    return [code for code in codes if isinstance(code, str) and LANGUAGE.fullmatch(code)] or ["en"]


def license_facts(license_id: str) -> dict[str, str | None]:
    """Return a licence's id, and its name and address where they are known."""
    name, url = LICENSES.get(license_id, (None, None))
    return {"id": license_id, "name": name, "url": url}


def template_environment() -> Environment:
    """Return the template engine: nothing is escaped or guessed, and a missing name is an error."""
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["fenced"] = lambda text: fenced(text, "")
    environment.filters["number"] = lambda n: f"{n:,}"
    environment.filters["cell"] = cell
    environment.filters["score"] = lambda ends: score_cell(*ends)
    return environment
