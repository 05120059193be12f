"""What goes wrong in ways a person can mend: every message is one line with where, expected, found and what to do."""

from __future__ import annotations


class BedsideError(Exception):
    """Stop with one clear line; a command prints it and exits 1. Anything else that escapes is our bug."""


class BadInput(BedsideError):
    """A file, folder or option does not hold what it must."""


class DigestMismatch(BedsideError):
    """Bytes or rows are not those that a digest names."""
