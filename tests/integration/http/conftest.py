from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.clients import HttpServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """One server for the tests of a module, started in somebody's project."""
    project = tmp_path_factory.mktemp("project")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    with HttpServer(tmp_path_factory.mktemp("home"), folder=project) as started:
        yield started


@pytest.fixture
def http(server: HttpServer) -> Iterator[httpx2.Client]:
    """A plain HTTP client that shows the server's token."""
    with server.http() as client:
        yield client


StartServer = Callable[..., HttpServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers on one data folder; each is killed at the end."""
    with ExitStack() as running:

        def make(*arguments: str, **given: Any) -> HttpServer:
            return running.enter_context(HttpServer(given.pop("home", tmp_path), *arguments, **given))

        yield make
