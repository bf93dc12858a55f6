from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stores.index.library import Library

from agora.testing import ManualClock

MakeLibrary = Callable[..., Library]


@pytest.fixture
def make_library(tmp_path: Path) -> Iterator[MakeLibrary]:
    """Libraries on one folder (or another one, if named), closed at the end; the clock is shared."""
    clock = ManualClock()
    made: list[Library] = []

    def make(folder: Path | None = None, **options: Any) -> Library:
        made.append(Library(folder or tmp_path, **{"clock": clock, **options}))
        return made[-1]

    yield make
    for library in made:
        library.close()


@pytest.fixture
def library(make_library: MakeLibrary) -> Library:
    """A library on an empty folder."""
    return make_library()
