"""A store with its tools for each test, and both protocol eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.protocol.bench import Bench


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A store in a folder of its own."""
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both protocol eras: `auto` is 2026-07-28 in memory, `legacy` shakes hands."""
    return str(request.param)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker of `tests.protocol.spec` known."""
    config.addinivalue_line("markers", "spec(*sections): the sections of the specification that ask for it")
