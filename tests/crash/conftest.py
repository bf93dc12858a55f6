from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.victims import StartVictim, victims


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartVictim]:
    """Starts processes that are going to be killed, all on the test's folder."""
    with victims(tmp_path) as begin:
        yield begin
