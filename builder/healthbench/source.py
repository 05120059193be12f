"""Open a JSONL file as a source: its bytes, the config its name gives, and the licence that lies beside it.

In: a path. Out: the file as it is to be checked and built. Not done here: parsing its lines (`lines`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from builder.errors import BadInput
from builder.healthbench.names import CONSENSUS, CORE, HARD
from builder.healthbench.objects import CORE_SHAPE, configs_of_shape
from builder.rules.problems import Fault, printable
from builder.tree.licence import LEGAL_PREFIXES, LICENSE_ID, Statement, licence_statements
from builder.tree.reading import Boundary, read_bytes
from builder.tree.sources import installed_data

SAMPLES_FOLDER: Final = "healthbench"
"""The folder, in that of our sample tree, of the sample files that we ship."""

_WORD_OF: Final[Mapping[str, str]] = {"hard": HARD, "consensus": CONSENSUS}
_BESIDE: Final = (".jsonl", ".zip", ".md", ".summary.json")


@dataclass(frozen=True, slots=True)
class ExampleFile:
    """A JSONL file: `name` is what problems call it, `sha256` (64 hex digits) is of its bytes.

    `license` is the Hub's id that its folder states, `legal` the licence, notice and citation texts there by name: none
    of them where the folder holds other things too (`beside` then names the legal files that were not taken).
    """

    path: Path
    name: str
    content: bytes = field(repr=False)
    sha256: str
    license: str | None
    statements: tuple[Statement, ...]
    legal: Mapping[str, bytes]
    beside: tuple[str, ...]
    samples: bool


def open_examples(path: Path) -> ExampleFile:
    """Return a JSONL file, read whole.

    Raises:
        BadInput: it cannot be read, or a legal file that a mirror must carry cannot.
    """
    content = read_bytes(os.path.realpath(path), Boundary.around(path.parent))
    if isinstance(content, Fault):
        raise BadInput(f"{path}: expected {content.expected}, found {content.found}")
    sha256 = hashlib.sha256(content).hexdigest()
    samples = sha256 in _sample_digests()
    folder = installed_data() if samples else path.absolute().parent  # one licence lies above all our samples
    names = _legal_names(folder)
    own = samples or _is_own_source(folder)
    statements = licence_statements(folder, None, Boundary.around(folder)) if own else ()
    return ExampleFile(
        path=path,
        name=printable(path.name),
        content=content,
        sha256=sha256,
        license=statements[0].license if statements else None,
        statements=statements,
        legal=_texts(folder, names) if own else {},
        beside=() if own else names,
        samples=samples,
    )


def config_of_file(name: str, shape: str) -> str:
    """Return the config of a file: by its shape, and in the core shape by the word hard or consensus in its name."""
    if shape != CORE_SHAPE:
        return configs_of_shape(shape)[0]
    words = re.split(r"[^a-z]+", name.lower())
    return next((config for word, config in _WORD_OF.items() if word in words), CORE)


def license_of(file: ExampleFile, given: str | None) -> str | None:
    """Return the licence of a file's examples: what its folder states, or what a person says where that is nothing.

    Raises:
        BadInput: what is given is no licence's id, or contradicts the folder.
    """
    if given is None:
        return file.license
    if not LICENSE_ID.fullmatch(given):
        raise BadInput(f"--license: expected the Hub's id of a licence, such as cc-by-4.0, found {given!r}")
    if file.license not in (None, given):
        stated = f"{file.license} in {file.statements[0].file}"
        raise BadInput(f"--license {given}: expected the licence that lies beside the file, {stated}; leave it out")
    return given


def _is_own_source(folder: Path) -> bool:
    """Whether the files in a folder are JSONL files, texts about them and legal files: what lies there is of them.

    A LICENSE in a folder of downloads or at the top of a project says nothing of a JSONL file that is there too.
    Folders do not count: a mirror may have been built there.
    """
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return False
    return all(_belongs(path) for path in paths)


def _belongs(path: Path) -> bool:
    texts = (*LEGAL_PREFIXES, "README")
    return path.is_dir() or path.name.startswith(texts) or path.name.lower().endswith(_BESIDE)


def _legal_names(folder: Path) -> tuple[str, ...]:
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.is_dir())
    except OSError:
        return ()
    return tuple(name for name in names if name.startswith(LEGAL_PREFIXES))


def _texts(folder: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    texts = {}
    for name in names:
        text = read_bytes(str(folder / name), Boundary.around(folder))
        if isinstance(text, Fault):
            raise BadInput(f"{folder / name}: expected {text.expected}, found {text.found}")
        if not name.isprintable():
            raise BadInput(f"{folder}: expected legal files with names in plain text, found {printable(name)}")
        if not name.endswith((".parquet", ".py", ".jsonl", ".zip")):
            texts[name] = text
    return texts


def _sample_digests() -> frozenset[str]:
    """Return the SHA-256 of each sample file that we ship: a copy of one is a sample wherever it lies."""
    folder = installed_data() / SAMPLES_FOLDER
    if not folder.is_dir():
        return frozenset()
    return frozenset(hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.jsonl")))
