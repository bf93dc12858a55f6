"""Data folders whose shared servers are gone when the test is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.gateway.rig import end_shared


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder that does not exist yet; its shared server, if it gets one, is ended."""
    folder = tmp_path / "home"
    yield folder
    end_shared(folder)
