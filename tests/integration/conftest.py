"""Servers and commands as fixtures."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.integration.kept import FREE, MANY, SOME, made
from tests.integration.processes import RunAgora, Serve, Served, run_command, serving
from tests.integration.workers import Start, working


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


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts workers with a store on the test's folder, or another one that is named."""
    with working(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some notes."""
    return made(tmp_path_factory.mktemp("small"), SOME)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 12,000 notes."""
    return made(tmp_path_factory.mktemp("large"), MANY)


@pytest.fixture
def stored(home: Path, small: Path) -> Path:
    """A data folder with some notes."""
    home.mkdir()
    shutil.copyfile(small, home / "agora.db")
    return home


@pytest.fixture
def bulky(stored: Path) -> Path:
    """The same in 40 MB, most of them free pages: they take time to copy and none to check."""
    with closing(sqlite3.connect(stored / "agora.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE ballast AS SELECT zeroblob(?) AS x", (FREE,))
        connection.execute("DROP TABLE ballast")
    assert (stored / "agora.db").stat().st_size > FREE
    return stored
