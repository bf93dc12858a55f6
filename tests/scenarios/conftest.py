from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.processes import Serve, Served, serving
from tests.protocol.bench import Bench


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A store with its tools in this process, and an encoder that knows words alone."""
    made = Bench(tmp_path)
    yield made
    made.encoder.release.set()
    made.store.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def serve(home: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts real servers on one data folder."""
    with serving(home, tmp_path, tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One real server with the packaged model for the tests of a module."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder / "home", folder, folder) as start:
        yield start("--namespace", "acme/shop")


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """Both protocol eras: `auto` is 2026-07-28 in memory, `legacy` shakes hands."""
    return str(request.param)
