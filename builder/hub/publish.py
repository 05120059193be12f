"""Bring what is wanted onto the Hub in one commit, read it back, and tag it: all of it, once, or nothing.

In: a `Publication`, which says for any state of a repository what shall be so there. Out: the commit that holds it.
Every fault (a lost answer, a busy server, a commit of somebody else) leads back to the first step: read what is there
now and work out what is still missing. So a commit that came through unseen is found and never made twice, and the same
command run again ends in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, errors
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from builder.dataset.footers import CARD
from builder.errors import BadInput, DigestMismatch
from builder.hub.client import Busy, Moved, hub_errors, patiently
from builder.hub.publication import Changes, FilesPublication, Preview, Publication, Published, Target
from builder.hub.remote import DATASET, Head, Reader, read_head

MOST_FAULTS: Final = 8
"""Calls without an answer (or with a 429 or 5xx) before giving up; the client tries most calls several times itself."""
MOST_CONFLICTS: Final = 200
"""Commits of others in between before giving up: each means that somebody got on."""
LONGEST_PAUSE_S: Final = 20.0
LONGEST_ASKED_S: Final = 300.0
"""A longer wait than this, asked for by the Hub, is not sat out."""
CONFLICT_PAUSE_S: Final = 4.0
IGNORE_NOTHING: Final = "#"
PROPOSALS: Final = 50
"""Newest pull requests that are searched for one which holds the same change."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait between tries, in seconds."""

    fault_s: float = 1.0
    conflict_s: float = CONFLICT_PAUSE_S


def publish(
    api: HfApi,
    publication: Publication,
    target: Target,
    *,
    pauses: Pauses | None = None,
    reader: Reader | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Published:
    """Publish until it is there and read back.

    Raises:
        BadInput: it must not or cannot go there, or the Hub gave no answer too often; nothing half is there.
        DigestMismatch: what is there is not what was sent.
    """
    walk = _Walk(api, publication, target, reader or Reader(api), on_step)
    retrying = Retrying(
        retry=retry_if_exception_type(Busy),
        stop=_give_up(walk),
        wait=_pause(pauses or Pauses()),
        before_sleep=lambda state: on_step(f"{state.outcome.exception() if state.outcome else 'busy'}; trying again"),
        reraise=True,
    )
    try:
        return retrying(walk.once)
    except Busy as error:
        raise BadInput(
            f"{target.repo}: gave up on {api.endpoint}: {error}; nothing is half published: run the same command again "
            "later"
        ) from error


def publish_files(
    api: HfApi,
    repo: str,
    files: Mapping[str, bytes],
    *,
    message: str,
    repo_type: str = DATASET,
    create_pr: bool = False,
) -> Published:
    """Put a few files into a repository that exists; the rest of it stays as it is. Errors as for `publish`."""
    target = Target(repo, create_pr=create_pr, repo_type=repo_type)
    return publish(api, FilesPublication(files, message), target)


def preview(api: HfApi, publication: Publication, target: Target) -> Preview:
    """Return what `publish` would do now, without doing it.

    Raises:
        BadInput: it would stop.
    """
    walk = _Walk(api, publication, target, Reader(api), lambda _: None)
    return patiently(target.repo, walk.look)


def _give_up(walk: _Walk) -> Callable[[RetryCallState], bool]:
    def stop(state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        walk.conflicts += isinstance(error, Moved)
        walk.faults += not isinstance(error, Moved)
        too_long = isinstance(error, Busy) and (error.wait_s or 0) > LONGEST_ASKED_S
        return too_long or walk.faults >= MOST_FAULTS or walk.conflicts >= MOST_CONFLICTS

    return stop


def _pause(pauses: Pauses) -> Callable[[RetryCallState], float]:
    after_fault = wait_random_exponential(multiplier=pauses.fault_s, max=LONGEST_PAUSE_S)
    after_conflict = wait_random_exponential(multiplier=pauses.conflict_s / 4, max=pauses.conflict_s)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Moved):
            return after_conflict(state)
        asked = error.wait_s if isinstance(error, Busy) else None
        return max(after_fault(state), asked or 0.0)

    return wait


@dataclass(slots=True)
class _Walk:
    """One publication under way: `once` is a whole try, from reading to reading back."""

    api: HfApi
    publication: Publication
    target: Target
    reader: Reader
    on_step: Callable[[str], None]
    faults: int = 0
    conflicts: int = 0
    created: bool = False
    sent: int = 0
    removed: int = 0
    url: str | None = None

    def once(self) -> Published:
        """Read what is there, commit what is missing, read it back and tag it: no tag ever stands for less."""
        head = self._open()
        self.publication.check(head.private)
        if tagged := self._tagged():
            return self._done(tagged)
        changes = self.publication.changes(head, self.reader)
        if self.target.create_pr and not changes.missing(head).none and (proposed := self._proposed(changes)):
            return self._done(proposed)
        after = self._commit(head, changes)
        self._check_still_private(head, after)
        self._check(after, changes)
        if self.target.tag:
            self._make_tag(after.commit)
        return self._done(after)

    def look(self) -> Preview:
        """Return what `once` would do."""
        head = self._find()
        private = self.target.private is not False if head is None else head.private
        self.publication.check(private)
        if head is None:
            nothing = Head(self.target.repo, self.target.repo_type, "", private, {})
            return Preview(None, private, self.publication.changes(nothing, self.reader))
        if self._tagged():
            return Preview(head, private, Changes({}))
        return Preview(head, private, self.publication.changes(head, self.reader).missing(head))

    def _open(self) -> Head:
        """Return the head of the repository, which is made if it is not there."""
        self.on_step("reading the repository")
        head = self._find()
        if head is None:
            private = self.target.private is not False
            self.publication.check(private)
            self.on_step("creating the repository")
            with hub_errors(self.target.repo):
                self.api.create_repo(self.target.repo, repo_type=DATASET, private=private, exist_ok=True)
            self.created = True
            head = self._head()
            self._check_visibility(head)
        return head

    def _find(self) -> Head | None:
        """Return the head of the repository; None where it is not there and may be made.

        Raises:
            BadInput: it is not there and none is to be made, or others read it than was asked for.
        """
        try:
            head = self._head()
        except BadInput as error:
            if self.target.create_pr or self.target.repo_type != DATASET or not _is_unknown(error):
                raise
            return None
        self._check_visibility(head)
        return head

    def _check_visibility(self, head: Head) -> None:
        wanted = self.target.private
        if wanted is not None and head.private != wanted:
            found, asked = ("private", "public") if head.private else ("public", "private")
            raise BadInput(
                f"{self.target.repo}: expected a {asked} repository, found a {found} one; "
                "change that in its settings on the Hub, or leave the option out"
            )

    def _head(self, revision: str | None = None) -> Head:
        return read_head(self.api, self.target.repo, revision=revision, repo_type=self.target.repo_type)

    def _tagged(self) -> Head | None:
        """Return the state under the tag if it holds this already.

        Raises:
            BadInput: the tag stands for something else.
        """
        tag = self.target.tag
        if tag is None:
            return None
        with hub_errors(self.target.repo):
            tags = self.api.list_repo_refs(self.target.repo, repo_type=self.target.repo_type).tags
        target = next((ref.target_commit for ref in tags if ref.name == tag), None)
        if target is None:
            return None
        head = self._head_of_tag(tag, target)
        if self.publication.changes(head, self.reader).own.missing(head).none:
            return head
        raise BadInput(
            f"{self.target.repo}: the tag {tag} stands for other content (commit {head.commit[:12]}); "
            "a tag is never moved: choose another"
        )

    def _head_of_tag(self, tag: str, target: str) -> Head:
        """Return the state that a tag stands for: by the id listed for it, as a branch may have the same name."""
        try:
            return self._head(target)
        except BadInput as error:  # a tag with a message may be listed as an object of its own
            if not isinstance(error.__cause__, errors.RevisionNotFoundError):
                raise
            return self._head(tag)

    def _commit(self, head: Head, changes: Changes) -> Head:
        """Return the state that holds everything: as it is, or after the one commit."""
        missing = changes.missing(head)
        if missing.none:
            return head
        self.on_step(f"committing {len(missing.files)} files")
        added = [CommitOperationAdd(path, file.source()) for path, file in sorted(missing.files.items())]
        gone = [CommitOperationDelete(path, is_folder=False) for path in missing.gone]
        self.sent, self.removed = len(missing.files), len(missing.gone)
        with hub_errors(self.target.repo):
            # By a .gitignore in the repository the client would leave files out without a word.
            self.api.preupload_lfs_files(
                self.target.repo,
                added,
                repo_type=self.target.repo_type,
                create_pr=self.target.create_pr,
                free_memory=False,
                gitignore_content=IGNORE_NOTHING,
            )
            info = self.api.create_commit(
                self.target.repo,
                [*added, *gone],
                commit_message=self.publication.message,
                commit_description=self.publication.description,
                repo_type=self.target.repo_type,
                parent_commit=head.commit,
                create_pr=self.target.create_pr,
            )
        self.url = info.pr_url
        return self._head(info.pr_revision or info.oid)

    def _proposed(self, changes: Changes) -> Head | None:
        """Return the state of a pull request, not closed, that proposes this already."""
        with hub_errors(self.target.repo):
            found = self.api.get_repo_discussions(
                self.target.repo, repo_type=self.target.repo_type, discussion_type="pull_request"
            )
            numbers = [request.num for request in found if request.status in ("open", "draft")]
        wanted = changes if changes.own.none else changes.own
        for number in sorted(numbers, reverse=True)[:PROPOSALS]:
            head = self._head(f"refs/pr/{number}")
            if wanted.missing(head).none:
                self.url = f"{_page(self.api, self.target)}/discussions/{number}"
                return head
        return None

    def _make_tag(self, commit: str) -> None:
        self.on_step(f"tagging {self.target.tag}")
        with hub_errors(self.target.repo):
            self.api.create_tag(
                self.target.repo,
                tag=str(self.target.tag),
                tag_message=self.publication.description,
                revision=commit,
                repo_type=self.target.repo_type,
            )

    def _check(self, after: Head, changes: Changes) -> None:
        """Stop unless the Hub states the digests of everything wanted, and gives the card as it is."""
        self.on_step("reading back")
        missing = changes.missing(after)
        if not missing.none:
            names = ", ".join([*missing.files, *missing.gone][:5])
            raise DigestMismatch(f"{self.target.repo}@{after.commit}: does not hold what was sent: {names}")
        if CARD in changes.files and self.reader.read(after, [CARD])[CARD] != changes.files[CARD].bytes():
            raise DigestMismatch(f"{self.target.repo}@{after.commit}: {CARD} is not what was sent")

    def _check_still_private(self, before: Head, after: Head) -> None:
        """Stop with what to do where somebody let everyone read the repository in between, and this is not for them."""
        try:
            self.publication.check(after.private)
        except BadInput as error:
            if not before.private:
                raise
            raise BadInput(
                f"{self.target.repo}: was made public while this was sent: make it private again at once ({error})"
            ) from None

    def _done(self, head: Head) -> Published:
        page = f"{_page(self.api, self.target)}/tree/{self.target.tag or head.commit}"
        return Published(
            repo=self.target.repo,
            commit=head.commit,
            sent=self.sent,
            removed=self.removed,
            created=self.created,
            private=head.private,
            url=self.url or page,
            proposed=self.url is not None,
            tag=self.target.tag,
        )


def _is_unknown(error: BadInput) -> bool:
    """Whether the Hub says that there is no such repository (or hides it), rather than that it is gated."""
    cause = error.__cause__
    return isinstance(cause, errors.RepositoryNotFoundError) and not isinstance(cause, errors.GatedRepoError)


def _page(api: HfApi, target: Target) -> str:
    kind = "" if target.repo_type == "model" else f"{target.repo_type}s/"
    return f"{api.endpoint}/{kind}{target.repo}"
