"""Runs on their way to a results dataset on the Hub that others write to as well.

In: a results folder, or one run of it, that was verified. Out: a `Publication`: the runs that are not there yet, each
at its own path, and the card made anew from the index of all runs. Nothing of anybody else is ever changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from builder.dataset.digests import DIGESTS_NAME, Verified, folder_digest, read_digests
from builder.dataset.footers import CARD
from builder.errors import BadInput, DigestMismatch
from builder.hub.check import check_folder
from builder.hub.guard import check_held_out, check_place, check_texts, is_fresh
from builder.hub.publication import Changes, WantedFile, wanted_bytes
from builder.hub.remote import Head, Reader
from builder.tree.licence import LEGAL_PREFIXES
from eval.hub.index import RemoteRun, read_index, run_ids, run_path
from eval.results.card import END, INDEX, RUNS, canaries_of, license_of, results_card_text, run_folders, run_row_of

RESULTS: Final = "a results dataset"


@dataclass(frozen=True, slots=True)
class LocalRun:
    """A verified run of this machine."""

    run_id: str
    folder: Path
    digests: Mapping[str, Any]
    folder_digest: str
    row: Mapping[str, Any]

    @property
    def license(self) -> str:
        """The licence of the cases that were answered."""
        return license_of(self.digests)

    def files(self) -> dict[str, WantedFile]:
        """Return the run's files by their paths in a repository."""
        files = {
            f"{run_path(self.run_id)}{name}": WantedFile(
                self.folder / name, about["digest"].removeprefix("sha256:"), about["bytes"]
            )
            for name, about in self.digests["files"].items()
        }
        own = self.folder / DIGESTS_NAME
        files[f"{run_path(self.run_id)}{DIGESTS_NAME}"] = WantedFile(own, self.folder_digest, own.stat().st_size)
        return files


@dataclass(frozen=True, slots=True)
class ResultsPublication:
    """Runs to add. `card` and `legal` are those of the local folder: what a new repository begins with."""

    runs: Sequence[LocalRun]
    message: str
    texts_license: str | None = None
    card: str | None = None
    legal: Mapping[str, Path] = field(default_factory=dict)

    @property
    def digests_by_name(self) -> dict[str, str]:
        """The folder digest of each run by its name, for people: 64 hex digits each."""
        return {run.run_id: run.folder_digest for run in self.runs}

    @property
    def description(self) -> str:
        """The digests that name the runs."""
        return "\n".join(f"{run.run_id}: folder digest sha256:{run.folder_digest}" for run in self.runs)

    def check(self, private: bool) -> None:
        """Stop held-out cases, and texts that are not free to use, from becoming public."""
        for run in self.runs:
            check_held_out(run.digests, private=private, what=str(run.folder))
            if run.row["with_texts"]:
                _check_known_splits(run, private=private)
                check_texts(run.license, allowed=self.texts_license, private=private, what=str(run.folder))

    def changes(self, head: Head, reader: Reader) -> Changes:
        """Return the runs that are not there yet, and the card of all.

        Raises:
            BadInput: the repository holds something else, another run under the same path, or data of another licence.
        """
        old = _old_card(head, reader)
        there = set(run_ids(head))
        for run in self.runs:
            if run.run_id in there:
                _check_same(run, head, reader)
        new = [run for run in self.runs if run.run_id not in there]
        index = read_index(head, reader)
        text = self._card(head.repo, new, index, old=old)
        files = {path: file for run in new for path, file in run.files().items()}
        for name, path in self.legal.items():
            if name not in head.files:
                files[name] = wanted_bytes(path.read_bytes())
        return Changes({**files, CARD: wanted_bytes(text.encode())}, anew=frozenset({CARD}))

    def _card(self, repo: str, new: Sequence[LocalRun], index: Sequence[RemoteRun], *, old: str | None) -> str:
        digests = [*(run.digests for run in index), *(run.digests for run in new)]
        stated = {license_of(one) for one in digests}
        if len(stated) > 1:
            raise BadInput(
                f"{repo}: expected runs on data of one licence, found {', '.join(sorted(stated))}; "
                "use a repository for each"
            )
        return results_card_text(
            [*(run.row for run in index), *(run.row for run in new)],
            license_id=stated.pop(),
            canaries=canaries_of(digests),
            place=repo,
            old=old if old is not None else self.card,
        )


def results_publication(
    folder: Path, *, verified: Verified, message: str | None = None, texts_license: str | None = None
) -> ResultsPublication:
    """Return a results folder, or one run's folder, as something to publish.

    Args:
        verified: what verifying the folder gave.
        texts_license: the licence that the publisher names for answers' texts in a public repository.

    Raises:
        DigestMismatch: a run was changed since it was verified.
    """
    known = {str(verified.folder_digest), *verified.facts.values()}
    is_root = (folder / RUNS).is_dir()
    runs = [_local_run(run, known) for run in (run_folders(folder) if is_root else [folder])]
    names = runs[0].run_id if len(runs) == 1 else f"{len(runs)} runs"
    publication = ResultsPublication(runs, message or f"Add {names}", texts_license)
    if not is_root:
        return publication
    card = folder / CARD
    legal = [path for path in folder.iterdir() if path.name.startswith(LEGAL_PREFIXES) and path.is_file()]
    return replace(
        publication,
        card=card.read_bytes().decode() if card.is_file() else None,
        legal={path.name: path for path in legal},
    )


def _local_run(folder: Path, known: Collection[str]) -> LocalRun:
    digests, digest = read_digests(folder), folder_digest(folder)
    if digest not in known:
        raise DigestMismatch(f"{folder}: was changed since it was verified; publish it again")
    row = run_row_of(folder / INDEX, where=str(folder / INDEX))
    return LocalRun(str(digests["run_id"]), folder, digests, digest, row)


def _check_known_splits(run: LocalRun, *, private: bool) -> None:
    """Stop texts of cases whose splits a run does not tell: they may be held out."""
    if not run.digests.get("splits") and not private:
        raise BadInput(
            f"{run.folder}: holds texts and does not say of which splits its cases are: publish it to a private "
            "repository, or make the results again without texts"
        )


def _check_same(run: LocalRun, head: Head, reader: Reader) -> None:
    """Stop unless what the repository has under a run's path is this very run, whole.

    Raises:
        BadInput: it is another, it was changed, or it keeps texts where this one does not.
    """
    where = f"{head.repo}: {run_path(run.run_id)}"
    found = check_folder(head, reader, at=run_path(run.run_id))
    if found.findings:
        raise BadInput(f"{where}: holds this run's path, but changed: {found.findings[0].line()}; put it right first")
    if found.digests.get("run_sha256") != run.digests["run_sha256"]:
        raise BadInput(
            f"{where}: expected run_sha256 {run.digests['run_sha256']}, found {found.digests.get('run_sha256')} of "
            "another; a published run is never replaced"
        )
    (there,) = read_index(head, reader, only=[run.run_id])
    if there.row["with_texts"] != run.row["with_texts"]:
        how = "with" if there.row["with_texts"] else "without"
        raise BadInput(
            f"{where}: holds this run {how} its texts; a published run is never replaced "
            "(other runs of a folder are published one by one: DIR/runs/RUN_ID)"
        )


def _old_card(head: Head, reader: Reader) -> str | None:
    """Return the card of the results that a repository holds; None where it is fresh.

    Raises:
        BadInput: it holds something else.
    """
    if is_fresh(head, reader):
        return None
    try:
        text = reader.read(head, [CARD])[CARD].decode() if CARD in head.files else ""
    except UnicodeDecodeError:
        raise BadInput(
            f"{head.repo}: {CARD}: expected UTF-8 text, found other bytes; put it right there first"
        ) from None
    if DIGESTS_NAME in head.files:
        check_place(head, expected=RESULTS, found="a mirror")
    if END not in text:
        there = "runs without their card" if head.below(RUNS) else None
        check_place(head, expected=RESULTS, found=there)
    return text
