from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.processes import RunAgora, Serve, Served, run_command, serving
from tests.protocol.bench import Bench
from tests.scenarios.stage import Stage

from agora.daemon import control


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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server for the tests of a module; each of them gives it other backends."""
    folder = tmp_path_factory.mktemp("crowd")
    with serving(folder / "home", folder, folder) as start:
        yield Stage(folder / "home", folder, lambda: start("--namespace", "acme/shop"))


@pytest.fixture
def stage(home: Path, tmp_path: Path, serve: Serve) -> Stage:
    """A data folder with a server of the test's own, started at its first need."""
    return Stage(home, tmp_path, lambda: serve("--namespace", "acme/shop"))


@pytest.fixture
def shared(home: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts sessions of one shared server, which is ended at last."""
    with serving(home, tmp_path, tmp_path) as start:
        yield lambda *options, **given: start(*options, env={"AGORA_SERVER_SHARED": "true"}, **given)
    if control.ask(home, "status") is not None:
        control.stop(home)


@pytest.fixture
def run_agora(home: Path, tmp_path: Path) -> RunAgora:
    """Runs one command to its end on the test's data folder."""
    return lambda *arguments, **given: run_command(arguments, home, tmp_path, **given)
