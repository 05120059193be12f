"""The Hub's client and its errors: a line that a person can act on, or a fault that passes.

In: calls of `huggingface_hub`, whose own settings name the Hub, the token and the cache. Out: `BadInput` for what a
person must mend, `Busy` for what is worth another try, `Moved` for a commit that came too late. No token is kept, shown
or put into a message: it stays with the client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import JSONDecodeError
from logging import ERROR
from typing import Final, TypeVar

from huggingface_hub import HfApi, errors, get_session, logging
from huggingface_hub.utils.tqdm import disable_progress_bars
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from builder.errors import BadInput

TIMEOUT_S: Final = 300.0
"""Seconds without a byte after which a call counts as lost; the client alone would wait for ever."""

MOST_TRIES: Final = 3
"""Tries of a reading that got no answer; the client tries most calls several times itself."""

LOG_IN: Final = "log in (hf auth login) or set HF_TOKEN"

T = TypeVar("T")

_CONFLICT: Final = frozenset({409, 412})
_PASSING: Final = frozenset({408, 425, 429})
# The parent of the client's own HTTP error is the error of the HTTP library it is built on (which has changed).
_TRANSPORT: Final[type[Exception]] = errors.HfHubHTTPError.__mro__[1]
# What the client makes of an upload or download that failed, besides an `OSError` without a number.
_FAILED: Final = (_TRANSPORT, errors.XetDownloadError, RuntimeError)
# A gateway in between may answer anything, also with status 200; the client looks into it too soon.
_OTHER_TEXT: Final = (JSONDecodeError, UnicodeDecodeError, AttributeError, KeyError, TypeError)
# hf_xet, which moves large files, has one error for a lost connection and for a refusal; only its words tell.
_XET_REFUSAL: Final = re.compile(r"HTTP status client error \((?!408|425|429)\d{3}\b")
_SECRET: Final = re.compile(r"hf_\w+|(?<=\?)\S+")


class Busy(Exception):
    """The Hub did not answer, or asked to come again; `wait_s` is how long it asked to wait, if it said."""

    def __init__(self, reason: str, *, wait_s: float | None = None) -> None:
        """Keep the reason as the message."""
        super().__init__(reason)
        self.wait_s = wait_s


class Moved(Busy):
    """Somebody else changed the repository in between: read it again and build on what is there now."""


def make_api(endpoint: str | None = None, token: str | None = None) -> HfApi:
    """Return a client of the Hub; without arguments of the one, and with the token, that the client itself knows.

    Its own progress bars and warnings are put to rest: they name signed addresses, and a command shows its own steps.
    """
    disable_progress_bars()
    logging.set_verbosity(ERROR)
    return HfApi(endpoint=endpoint, token=token)


def patiently(what: str, read: Callable[[], T]) -> T:
    """Return what a reading of the Hub gives, tried again while the Hub is busy.

    Raises:
        BadInput: it gave no answer too often.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(Busy),
        stop=stop_after_attempt(MOST_TRIES),
        wait=wait_random_exponential(multiplier=0.5, max=10),
        reraise=True,
    )
    try:
        return retrying(read)
    except Busy as error:
        raise BadInput(f"{what}: the Hub could not be read: {error}; try again later") from error


@contextmanager
def hub_errors(what: str) -> Iterator[None]:
    """Translate the client's errors.

    Args:
        what: what a line about them begins with, such as the repository's id.

    Raises:
        BadInput: only a person can mend it.
        Busy: another try may do.
    """
    get_session().timeout = TIMEOUT_S  # here, because the client makes a new session after a connection that failed
    try:
        yield
    except errors.HfHubHTTPError as error:
        raise _translated(what, error) from error
    except errors.HFValidationError as error:
        raise BadInput(f"{what}: expected a Hub repository as namespace/name, found: {_first_line(error)}") from error
    except _OTHER_TEXT as error:
        raise Busy("no answer from the Hub (but some other text)") from error
    except (OSError, ValueError, *_FAILED) as error:
        if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError | TimeoutError):
            raise  # of this machine: a full disk, a file without the right to read it
        raise _untold(what, error) from error


def _untold(what: str, error: Exception) -> Exception:
    """Return the error that stands for one without a status: by what caused it, if that is known."""
    cause = error.__cause__ or error
    if isinstance(cause, errors.OfflineModeIsEnabled):
        return BadInput(f"{what}: the Hub is needed, but HF_HUB_OFFLINE is set; unset it")
    if isinstance(error, ValueError) and (cause is error or isinstance(cause, errors.BadRequestError)):
        # The client itself refuses a card whose YAML the Hub refuses, and tells the line.
        return BadInput(f"{what}: the Hub refuses this: {_first_line(error)}")
    if isinstance(cause, errors.HfHubHTTPError):
        return _translated(what, cause)
    if _XET_REFUSAL.search(str(error)):
        return BadInput(f"{what}: the Hub's storage of large files refuses this: {_first_line(error)}")
    return Busy(f"no answer from the Hub ({type(cause).__name__})")


def _translated(what: str, error: errors.HfHubHTTPError) -> Exception:
    """Return the error that stands for a status the Hub answered with."""
    status = error.response.status_code
    if status >= 500 or status in _PASSING:
        return Busy(f"the Hub answered {status}", wait_s=_asked_wait(error))
    if status in _CONFLICT:
        return Moved(f"the Hub answered {status}: {_said(error)}")
    return BadInput(f"{what}: {_advice(what, status, error)}")


def _advice(what: str, status: int, error: errors.HfHubHTTPError) -> str:
    if isinstance(error, errors.GatedRepoError):
        return "is gated: ask for access on its page with the account of your token, and " + LOG_IN
    if isinstance(error, errors.DisabledRepoError):
        return "was disabled by the Hub: see its page"
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"no such repository, or hidden from you: check the name, and {LOG_IN}"
    if isinstance(error, errors.RevisionNotFoundError):
        return "no such branch, tag or commit in this repository"
    if isinstance(error, errors.EntryNotFoundError):
        return f"a file is missing there: {_said(error)}"
    if status == 401 and "authorization" not in error.response.request.headers:
        return f"you are not logged in: {LOG_IN}"
    if status == 401:
        return f"the Hub does not accept your token: {LOG_IN}"
    if status == 403:
        return f"your token may not do this ({_said(error)}): writing needs write access to {what.partition('/')[0]}"
    if "evaluation_framework" in str(error):
        return "eval.yaml names a framework that the Hub does not know yet: build again without --eval-yaml"
    return f"the Hub refuses this ({status}): {_said(error)}"


def _said(error: errors.HfHubHTTPError) -> str:
    return _SECRET.sub("...", (error.server_message or _first_line(error)).strip().splitlines()[0])


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _SECRET.sub("...", " ".join(lines[:3])) if lines else type(error).__name__


def _asked_wait(error: errors.HfHubHTTPError) -> float | None:
    """Return the seconds that `Retry-After`, or `t=` of the Hub's `RateLimit`, asks to wait."""
    headers = error.response.headers
    for name, pattern in (("Retry-After", r"(\d+)"), ("RateLimit", r"\bt=(\d+)")):
        if found := re.search(pattern, headers.get(name, "")):
            return float(found[1])
    return None
