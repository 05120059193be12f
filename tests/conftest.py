"""Fixtures that several files of tests share, and what the Hub's client reads when it is imported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before the client is imported anywhere: no Xet (the local Hub has none), and nothing sent to third parties.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")

import pytest

from tests.mirrors import build_tiny

if TYPE_CHECKING:
    from tests.local_hub import LocalHub


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of one panel, to be copied."""
    return build_tiny(tmp_path_factory.mktemp("built")).folder


@pytest.fixture
def mirror(built: Path, tmp_path: Path) -> Path:
    """Return a mirror to break."""
    return Path(shutil.copytree(built, tmp_path / "mirror"))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LocalHub]:
    """Run a Hub of its own, with two writers and a reader."""
    from tests.publishing import make_hub

    with make_hub(tmp_path / "hub") as running:
        yield running


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a source, its mirror of one panel, and results of two runs of the same model."""
    from tests.at_hub import make_both

    return make_both(tmp_path_factory.mktemp("made"), "drug_safety")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
