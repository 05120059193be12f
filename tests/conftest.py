"""Fixtures that several files of tests share, and what the Hub's client reads when it is imported."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# Before the client is imported anywhere: no Xet (the local Hub has none), and nothing sent to third parties.
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")

import pytest

from tests.mirrors import build_tiny


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of one panel, to be copied."""
    return build_tiny(tmp_path_factory.mktemp("built")).folder


@pytest.fixture
def mirror(built: Path, tmp_path: Path) -> Path:
    """Return a mirror to break."""
    return Path(shutil.copytree(built, tmp_path / "mirror"))
