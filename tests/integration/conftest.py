"""Servers and commands as fixtures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.integration.processes import RunAgora, Serve, Served, run_command, serving


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that agents and commands work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def serve(home: Path, project: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers on the test's data folder."""
    with serving(home, project, tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server with a data folder of its own for all tests of a module."""
    folder = tmp_path_factory.mktemp("shared")
    with serving(folder / "home", folder, folder) as start:
        yield start("--namespace", "acme/shop", name="shared client")


@pytest.fixture
def run_agora(home: Path, project: Path) -> RunAgora:
    """Runs one command to its end on the test's data folder. `stdin` is bytes."""

    def run(
        *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, cwd: Path = project
    ) -> CompletedProcess[str]:
        return run_command(arguments, home, cwd, stdin, env)

    return run
