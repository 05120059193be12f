"""The walk of a build: a source tree is checked, typed, written with its card, read back and put in place; or verified.

In: a source, or a mirror folder. Out: a mirror that gives the source's cases back exactly, or what is wrong with one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bedside_bench import PUBLIC_SPLIT
from builder.builds import Built, built_of, seal
from builder.cards.card import ANYWHERE, registry_languages, render_mirror_card
from builder.dataset.folder import check_replaceable, split_order, staging, swap_in, write_files
from builder.dataset.footers import CARD
from builder.dataset.rows import Progress
from builder.dataset.verify import verify_mirror
from builder.dataset.writer import MirrorWriter, check_split_name
from builder.errors import BadInput
from builder.rules.problems import Fault, Report
from builder.rules.validate import check_tree
from builder.tree.canary import find_canaries
from builder.tree.licence import LICENSE_ID
from builder.tree.origin import SAMPLES, find_origin
from builder.tree.reading import read_bytes
from builder.tree.sources import Source, installed_card

__all__ = ["Built", "build_mirror", "check_split_name", "mirror_card", "verify_mirror"]


def build_mirror(
    source: Source,
    out: Path,
    *,
    panels: Sequence[str] | None = None,
    split_name: str = PUBLIC_SPLIT,
    held_out: bool = False,
    license_id: str | None = None,
    with_croissant: bool = False,
    with_eval_yaml: bool = False,
    repo_id: str | None = None,
    on_progress: Progress | None = None,
) -> Built:
    """Check a source and, if it has no error, write its mirror to `out`: the old folder stays whole until the end.

    Args:
        split_name: the Parquet split of the public cases.
        held_out: take cases whose own split is not `train` too, into a split of that name.
        license_id: the Hub's id of the licence, for a source that names none.
        with_croissant: write `croissant.json` too.
        with_eval_yaml: write `eval.yaml` too.
        repo_id: the repository that the card's `load_dataset` lines name.

    Raises:
        BadInput: an argument does not fit the source, or `out` may not be replaced.
        DigestMismatch: what was written does not read back as the source; nothing was put in place.
    """
    license_id = _license(source, license_id)
    check_split_name(split_name)
    _check_place(source, out)
    # Writing compresses outside the interpreter's lock: beside the check it costs no time of its own.
    with staging(out) as staged, ThreadPoolExecutor(max_workers=1) as executor:
        writer = MirrorWriter(staged, split_name, executor=executor, on_progress=on_progress)
        report = check_tree(source, held_out=held_out, panels=panels, similar=False, on_case=writer.add)
        if not report.ok:
            return Built(report, out)
        writer.finish()
        digests = writer.digests(source, license_id)
        legal = _legal_texts(source)
        write_files(
            staged,
            {
                **legal,
                CARD: _card_of(writer, digests, source=source, legal=legal, repo_id=repo_id or ANYWHERE).encode(),
            },
        )
        folder_digest = seal(
            staged, digests, croissant=with_croissant, eval_task=with_eval_yaml, on_progress=on_progress
        )
        swap_in(staged, out)
    return built_of(report, out, digests, folder_digest=folder_digest, license_id=license_id)


def mirror_card(source: Source) -> tuple[Report, str | None]:
    """Return the report of a source, and the card that its mirror would have unless there are errors in it."""
    with tempfile.TemporaryDirectory() as folder:
        built = build_mirror(source, Path(folder) / "mirror")
        if built.folder_digest is None:
            return built.report, None
        return built.report, (built.folder / CARD).read_bytes().decode()


def _card_of(
    writer: MirrorWriter, digests: Mapping[str, Any], *, source: Source, legal: Mapping[str, bytes], repo_id: str
) -> str:
    registry = source.registry or {}
    origin = find_origin(registry, digests["source"]["license"], legal=legal, repo=source.repo)
    return render_mirror_card(
        installed_card().read_bytes().decode(),
        writer.configs(),
        origin=origin,
        digests=digests,
        counts=writer.counts(),
        splits=split_order(digests["splits"]),
        legal=sorted(legal),
        place=repo_id,
        language=registry_languages(registry.get("language")),
        example=writer.example if origin.kind == SAMPLES else None,
        canaries=find_canaries(source),
    )


def _license(source: Source, given: str | None) -> str | None:
    if given is None:
        return source.license
    if not LICENSE_ID.fullmatch(given):
        raise BadInput(f"--license: expected the Hub's id of a licence, such as cc-by-4.0, found {given!r}")
    if source.license not in (None, given):
        raise BadInput(f"--license {given}: expected the licence that the source names, {source.license}; leave it out")
    return given


def _check_place(source: Source, out: Path) -> None:
    """Stop unless a mirror may be put at `out`: never over or into the source."""
    place = Path(os.path.realpath(out))
    root, data = Path(os.path.realpath(source.root)), Path(os.path.realpath(source.data))
    if root.is_relative_to(place) or place.is_relative_to(data):
        raise BadInput(f"--out {out}: expected a folder outside the source, found one that holds it or lies in it")
    check_replaceable(out, kind="mirror")


def _legal_texts(source: Source) -> dict[str, bytes]:
    """Return the source's licence, notice and citation files by name."""
    texts = {}
    for path in source.legal:
        text = read_bytes(str(path), source.boundary)
        if isinstance(text, Fault):
            raise BadInput(f"{path}: expected {text.expected}, found {text.found}")
        if path.suffix not in (".parquet", ".py"):
            texts[path.name] = text
    return texts
