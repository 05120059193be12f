"""Fixtures that several files of tests share: a built mirror, and copies of it to break."""

from __future__ import annotations

import shutil
from pathlib import Path

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
