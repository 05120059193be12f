"""The commands about the Hub: `publish`, `runs`, `fetch`.

Only here are they printed, asked about, and given an exit code. Heavy modules are imported inside the commands.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from builder.cli import known_repo_id, one_line_errors, progress
from builder.errors import BadInput
from builder.hub.place import HubPlace, find_place
from builder.rules.problems import printable
from eval.results.cli import in_80_columns, print_verified

if TYPE_CHECKING:
    from builder.dataset.digests import Verified
    from builder.hub.mirrors import MirrorPublication
    from builder.hub.publication import Preview, Published, Target
    from eval.hub.publish import ResultsPublication

_TAG = re.compile(r"(?=.{1,100}\Z)\w[\w.-]*(?:/\w[\w.-]*)*", re.ASCII)

RepoArgument = Annotated[
    str, typer.Argument(metavar="REPO_ID", callback=known_repo_id, help="The Hub dataset: namespace/name.")
]


def _tag_name(tag: str | None) -> str | None:
    """Return a tag's name, or stop with exit code 2 at one that git refuses, before anything is sent."""
    if tag is not None and not _is_tag(tag):
        raise typer.BadParameter(f"expected a tag such as v1.0.0 (letters, digits, . _ - /), found {tag!r}")
    return tag


def _is_tag(tag: str) -> bool:
    ended = tag.endswith(".") or any(part.endswith(".lock") for part in tag.split("/"))
    return bool(_TAG.fullmatch(tag)) and ".." not in tag and not ended and tag != "main"


def publish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A mirror, a results folder, or one run in it.")],
    repo: RepoArgument,
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--public", help="Who may read a repository that is made now [private]; an old one must be so."
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="TAG", callback=_tag_name, help="Tag the commit; a tag is never moved."),
    ] = None,
    create_pr: Annotated[bool, typer.Option("--create-pr", help="Propose it as a pull request instead.")] = False,
    message: Annotated[str | None, typer.Option("--message", "-m", help="First line of the commit message.")] = None,
    texts_license: Annotated[
        str | None,
        typer.Option(
            "--texts-license",
            metavar="ID",
            help="Publish answer texts in public under this licence: that of the cases, which is non-commercial.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify, say what would change, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a public repository is made.")] = False,
) -> None:
    """Publish a verified mirror or results on the Hub, in one commit, and read it back.

    A mirror replaces the one in the repository; runs are added to those that are there. Run it again after any failure:
    what is there already is never sent or committed twice. Log in with `hf auth login`, or set HF_TOKEN.
    """
    if create_pr and tag:
        raise typer.BadParameter("--tag names a commit on the main branch: leave it out with --create-pr")
    if message is not None and not message.strip():
        raise typer.BadParameter("--message is empty: give a line, or leave it out")
    warnings.filterwarnings("ignore", module="huggingface_hub")  # the Hub's hints on a card's YAML
    with one_line_errors(), progress() as on_progress:
        from eval.results.anywhere import verify_folder

        _check_publishable(folder)
        verified = verify_folder(folder, on_progress=on_progress)
    if verified.findings:
        print_verified(folder, verified)
        print(f"error: nothing was published: {folder} does not verify (above)", file=sys.stderr)
        raise typer.Exit(1)
    with one_line_errors():
        from builder.hub.client import make_api
        from builder.hub.publication import Target
        from builder.hub.publish import preview
        from builder.hub.publish import publish as publish_to

        publication = _publication(folder, verified, message=message, texts_license=texts_license)
        target, api = Target(repo, private=private, tag=tag, create_pr=create_pr), make_api()
        if dry_run or (private is False and not yes):
            with status("reading the repository"):
                seen = preview(api, publication, target)
        if dry_run:
            _print_preview(target, seen)
        else:
            if private is False and not yes and seen.head is None:
                _ask(repo)
            with status("publishing") as on_step:
                published = publish_to(api, publication, target, on_step=on_step)
            _print_published(published, publication)
    if dry_run or published.sent:
        _warn(folder, repo, publication)


def _check_publishable(folder: Path) -> None:
    """Stop with what to do at a folder that no build and no run wrote.

    Raises:
        BadInput: it is a source tree, a folder of journals, or another.
    """
    if not folder.is_dir():
        raise BadInput(
            f"{folder}: expected a folder that build or results wrote, found {'a file' if folder.exists() else 'none'}"
        )
    if (folder / "digests.json").exists() or any((folder / "runs").glob("*/digests.json")):
        return
    if (folder / "registry.json").exists():
        raise BadInput(
            f"{folder}: expected a mirror or results, found a source tree; build it: bedside-bench build {folder}"
        )
    raise BadInput(f"{folder}: expected a mirror or results, found another folder; publish what build or results wrote")


def _warn(folder: Path, repo: str, publication: MirrorPublication | ResultsPublication) -> None:
    """Say what a publisher may want to do better: a card that names no repository, a run with ungraded cases."""
    from builder.hub.mirrors import MirrorPublication

    if isinstance(publication, MirrorPublication):
        if f'load_dataset("{repo}"' not in (folder / "README.md").read_text("utf-8"):
            print(f"note: the card does not name {repo}; a mirror built with --repo-id {repo} does", file=sys.stderr)
        return
    for run in publication.runs:
        if (graded := run.row["n_graded"]) < (expected := run.row["n_expected"]):
            print(f"warning: {run.run_id}: {graded} of {expected} cases graded: an incomplete run", file=sys.stderr)


def _publication(
    folder: Path, verified: Verified, *, message: str | None, texts_license: str | None
) -> MirrorPublication | ResultsPublication:
    """Return what is to be published."""
    if verified.kind == "mirror":
        from builder.hub.mirrors import mirror_publication

        return mirror_publication(folder, verified=str(verified.folder_digest), message=message)
    from eval.hub.publish import results_publication

    return results_publication(folder, verified=verified, message=message, texts_license=texts_license)


def _ask(repo: str) -> None:
    """Ask whether everyone may read a repository that is made now; anything but yes stops.

    Raises:
        BadInput: the answer is no, or nobody can answer.
    """
    if not sys.stdin.isatty():
        raise BadInput(f"{repo}: would become a public repository; nobody is here to confirm it: give --yes")
    if not typer.confirm(f"{repo} does not exist. Create it as a PUBLIC repository, which everyone can read?"):
        raise BadInput(f"{repo}: not created")


@contextmanager
def status(first: str) -> Iterator[Callable[[str], None]]:
    """Show what is done on the Hub, and give a callback for the next step; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(first) as shown:
        yield lambda step: shown.update(step)


def _print_preview(target: Target, seen: Preview) -> None:
    kind = "private" if seen.private else "public"
    print(f"would create {target.repo} ({kind})" if seen.head is None else f"repository     {target.repo} ({kind})")
    for path, file in sorted(seen.missing.files.items()):
        there = seen.head is not None and path in seen.head.files
        print(f"  {'change' if there else 'add':<7} {path}  {file.size:,} bytes")
    for path in seen.missing.gone:
        print(f"  {'remove':<7} {path}")
    if seen.missing.none:
        print("  nothing: it is there already")
    if target.tag:
        print(f"would tag      {target.tag}")
    if target.create_pr and not seen.missing.none:
        print("as             a pull request")
    print("dry run: nothing was changed")


def _print_published(published: Published, publication: MirrorPublication | ResultsPublication) -> None:
    kind = f"{'private' if published.private else 'public'}{', created' if published.created else ''}"
    changed = published.sent or published.removed
    if published.proposed:
        print(f"{'proposed' if changed else 'already proposed'}: {published.repo} ({kind}), there once it is merged")
    else:
        print(f"{'published' if changed else 'already there, unchanged'}: {published.repo} ({kind})")
    print(f"files          {published.sent} sent, {published.removed} removed; read back and compared")
    print(f"commit         {published.commit}")
    if published.tag:
        print(f"tag            {published.tag}")
    for name, digest in publication.digests_by_name.items():
        print(f"{name:<14} {digest}" if len(name) < 15 else f"{name}\n{'':<14} {digest}")
    print(published.url)


def runs(
    where: Annotated[
        str, typer.Argument(metavar="REPO_ID", help="A results dataset on the Hub, org/name[@revision], or a folder.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the index as JSON and nothing else.")] = False,
) -> None:
    """List the runs of a results dataset from its index: name, overall score, protocol, judges and data of each."""
    with one_line_errors():
        rows = _index(find_place(where))
    if as_json:
        hidden = ("identity_json", "summary_json")
        print(json.dumps([{name: row[name] for name in row if name not in hidden} for row in rows], indent=1))
        return
    print_runs(rows)


def _index(place: Path | HubPlace) -> Sequence[Mapping[str, Any]]:
    if isinstance(place, Path):
        from builder.dataset.verify import folder_kind
        from eval.results.card import run_rows

        if folder_kind(place) != "run":
            raise BadInput(f"{place}: expected a results folder or one run of it, found another folder")
        return run_rows(place)
    from builder.hub.client import make_api, patiently
    from builder.hub.remote import Reader, read_head
    from eval.hub.index import check_has_runs, read_index

    api = make_api()

    def read() -> list[Mapping[str, Any]]:
        head = read_head(api, place.repo, revision=place.revision, what=place.words)
        check_has_runs(head)
        return [run.row for run in read_index(head, Reader(api))]

    return patiently(place.words, read)


def print_runs(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print three lines a run, in 80 columns where its names allow; the words of others cannot steer the terminal."""
    from builder.cards.results_tables import selection_words

    for row in rows:
        low, high, mean = row["overall_ci_low"], row["overall_ci_high"], row["overall_mean"]
        score = "no overall score" if mean is None else f"overall {mean:.3f}"
        interval = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
        data = f"data {row['dataset_sha256'][:12]}"
        if row["data_repo"]:
            data += f" of {row['data_repo']}"
        print(printable(row["run_id"]))
        selection = selection_words(row)
        some = "" if selection == "all" else f" ({selection})"
        print(f"  {score}{interval}, {row['n_graded']:,} of {row['n_expected']:,} cases graded{some}")
        about = f"{row['protocol']}, judge {', '.join(row['judge_models'])}, {data}"
        print(in_80_columns(printable(about), "  ", "    "))
    print(f"{len(rows)} run{'s' if len(rows) != 1 else ''}")


def fetch(
    where: Annotated[str, typer.Argument(metavar="REPO_ID", help="A results dataset on the Hub: org/name[@revision].")],
    run_id: Annotated[
        str, typer.Argument(metavar="RUN_ID", help="The run, how its name begins, or the 8 hex digits at its end.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The results folder; runs add up in it.")],
) -> None:
    """Bring one run down from the Hub and verify it: every file, and every number from the decisions."""
    with one_line_errors():
        from builder.hub.client import make_api, patiently
        from eval.hub.fetch import fetch_run

        place = find_place(where)
        if isinstance(place, Path):
            raise BadInput(f"{where}: expected a Hub dataset, found a folder; write hf://datasets/{where} for the Hub")
        api = make_api()
        with status("fetching"):
            fetched = patiently(str(place), lambda: fetch_run(api, place, run_id, out=out))
    print(f"{'fetched' if fetched.added.added else 'already there, unchanged'}: {fetched.added.path}")
    print(f"commit         {fetched.commit}")
    print(f"folder digest  {fetched.added.folder_digest}")
    print("verified       every file, and every number from the decisions")
