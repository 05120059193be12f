"""The card of the upstream layout itself: with it, `load_dataset` reads the JSON files of the cases as they are.

In: a source tree without errors. Out: the text of a README.md to lie beside its registry.json. It states no counts, so
adding a case leaves it right. Not done here: the card of a mirror (`card`), writing the file (`cli`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

import pyarrow as pa

from bedside_bench import ALL_PANELS, PANEL_IDS, PANELS_BY_ID, PUBLIC_SPLIT
from builder.cards.card import (
    ANYWHERE,
    UNKNOWN_LICENSE,
    license_facts,
    mirror_metadata,
    registry_languages,
    template_environment,
)
from builder.cards.frontmatter import CardConfig, CardSplit, front_matter
from builder.dataset.tables import CASE_SCHEMA
from builder.errors import BadInput
from builder.rules.problems import Report
from builder.rules.validate import check_tree
from builder.tree.canary import find_canaries
from builder.tree.origin import BEDSIDEBENCH, Origin, find_origin
from builder.tree.reading import read_bytes
from builder.tree.sources import Source, open_panel

FILE_SCHEMA: Final = CASE_SCHEMA.append(pa.field("split", pa.string()))
"""The columns of a case file: unlike a mirror's row it names its own split."""


def upstream_card(source: Source) -> tuple[Report, str | None]:
    """Check a tree and return the report, and the card unless there are errors in it.

    Raises:
        BadInput: a legal file cannot be read.
    """
    report = check_tree(source, similar=False)
    if not report.ok:
        return report, None
    panels = [panel for panel in PANEL_IDS if report.panels.get(panel)]
    if not panels:
        raise BadInput(f"{source.root}: expected at least one case, found none")
    return report, _render(source, panels, n_cases=report.n_cases)


def _render(source: Source, panels: Sequence[str], *, n_cases: int) -> str:
    license_id = source.license or UNKNOWN_LICENSE
    legal = {
        path.name: text for path in source.legal if isinstance(text := read_bytes(str(path), source.boundary), bytes)
    }
    registry = source.registry or {}
    found = find_origin(registry, source.license, legal=legal, repo=source.repo)
    origin = Origin(found.kind, "BedsideBench", found.attribution) if found.kind == BEDSIDEBENCH else found
    configs = _configs(source, panels)
    about = mirror_metadata(origin, license_id, n_cases=n_cases, language=registry_languages(registry.get("language")))
    about |= {"source_datasets": ["original"]}
    about.pop("size_categories")  # a count, if a coarse one
    template = (files("builder.cards") / "upstream_card.md").read_bytes().decode()
    body = template_environment().from_string(template).render(
        title=origin.title,
        place=source.repo or ANYWHERE,
        origin=origin.kind,
        attribution=origin.attribution,
        license=license_facts(license_id),
        panels=[PANELS_BY_ID[panel] for panel in panels],
        split=PUBLIC_SPLIT,
        pattern=source.path("<panel>", "cases", "*.json"),
        sorted_order=all(_in_name_order(source, panel) for panel in panels),
        legal=[f"`{name}`" for name in sorted(legal)],
        canaries=find_canaries(source),
    )  # fmt: skip
    return front_matter(about, configs) + "\n" + body


def _configs(source: Source, panels: Sequence[str]) -> list[CardConfig]:
    """Return a config a panel over its case files, and `all` as the list of them: one pattern would sort the panels."""
    paths = {panel: source.path(panel, "cases", "*.json") for panel in panels}

    def over(*chosen: str) -> tuple[CardSplit, ...]:
        return (CardSplit(PUBLIC_SPLIT, tuple(paths[panel] for panel in chosen)),)

    return [
        *(CardConfig(panel, FILE_SCHEMA, over(panel)) for panel in panels),
        CardConfig(ALL_PANELS, FILE_SCHEMA, over(*panels), default=True),
    ]


def _in_name_order(source: Source, panel: str) -> bool:
    ids = open_panel(source, panel).case_ids
    return list(ids) == sorted(ids)
