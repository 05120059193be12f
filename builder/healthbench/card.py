"""The card of a HealthBench mirror: front matter as every mirror's, and prose from a template of its own.

In: what the mirror holds. Out: the text of its README.md. Whether card and Parquet files agree is asked in `footers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from builder.cards.card import UNKNOWN_LICENSE, license_facts, provenance_line, size_category, template_environment
from builder.cards.frontmatter import CardConfig, front_matter
from builder.healthbench.counts import ExampleCounts
from builder.healthbench.names import CONSENSUS, CORE, HARD, META, PROFESSIONAL, SPLIT
from builder.healthbench.objects import shape_of_config
from builder.healthbench.source import ExampleFile
from builder.tree.origin import find_origin

TITLES: Final[Mapping[str, str]] = {
    CORE: "HealthBench",
    HARD: "HealthBench Hard",
    CONSENSUS: "HealthBench Consensus",
    PROFESSIONAL: "HealthBench Professional",
    META: "HealthBench meta-evaluation",
}
MOST_TAGS: Final = 60
"""Rows of a table of tags in a card; a file whose tags are all different has no table worth reading."""

_GROUPS: Final = ("theme:", "axis:", "level:", "cluster:", "physician_agreed_category:")


def render_example_card(
    configs: Sequence[CardConfig], *, digests: Mapping[str, Any], counts: ExampleCounts, file: ExampleFile, place: str
) -> str:
    """Return the README.md of a mirror.

    Args:
        configs: the examples' config (default), then the long table's.
        digests: the members of `digests.json` but `files`.
        place: the repository that `load_dataset` is shown with.
    """
    config = configs[0].name
    license_id = digests["source"]["license"] or UNKNOWN_LICENSE
    title = _title(config, samples=file.samples)
    body = template_environment().from_string(_template()).render(
        title=title,
        name=TITLES[config],
        samples=file.samples,
        config=config,
        shape=shape_of_config(config),
        place=place,
        split=SPLIT,
        path=configs[0].splits[0].paths[0],
        counts=counts,
        turns=_turns(counts.turns),
        tags=_tags(counts),
        attribution=find_origin(None, license_id, legal=file.legal).attribution,
        license=license_facts(license_id),
        legal=[f"`{name}`" for name in sorted(file.legal)],
        sha256=digests["source"]["sha256"],
        canaries=list(counts.canaries),
        provenance=provenance_line(digests),
    )  # fmt: skip
    about = _metadata(title, license_id, counts=counts, config=config)
    return front_matter(about, configs) + "\n" + body


def _template() -> str:
    return (files("builder.healthbench") / "healthbench_card.md").read_bytes().decode()


def _title(config: str, *, samples: bool) -> str:
    return f"Samples in the shape of {TITLES[config]}" if samples else f"{TITLES[config]} (Parquet mirror of a file)"


def _metadata(title: str, license_id: str, *, counts: ExampleCounts, config: str) -> dict[str, object]:
    suite = ["llm-as-a-judge"] if config != META else ["llm-as-a-judge", "meta-evaluation"]
    return {
        "pretty_name": title,
        "license": license_id,
        "task_categories": ["question-answering", "text-generation"],
        "size_categories": [size_category(counts.examples)],
        "source_datasets": ["original"],
        "tags": ["medical", "clinical", "health", "benchmark", "evaluation", "rubric", *suite],
    }


def _turns(turns: Counter[int]) -> list[tuple[int, int]]:
    """Return (number of turns, examples that have so many), fewest turns first."""
    return sorted(turns.items())


def _tags(counts: ExampleCounts) -> list[tuple[str, str, int]]:
    """Return (tag, what it is on, how many carry it): themes, axes, levels and clusters first, each by name.

    Empty where there are too many to read.
    """
    rows = [(tag, "examples", n) for tag, n in counts.example_tags.items()]
    rows += [(tag, "criteria", n) for tag, n in counts.item_tags.items()]
    return sorted(rows, key=lambda row: (_group(row[0]), row[0], row[1])) if len(rows) <= MOST_TAGS else []


def _group(tag: str) -> int:
    return next((i for i, prefix in enumerate(_GROUPS) if tag.startswith(prefix)), len(_GROUPS))
