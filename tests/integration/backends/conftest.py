from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import psutil
import pytest
from tests.integration.backends.heard import Heard, alive, put_down, table

from agora.backends.guard import Guard
from agora.backends.stdio import LINE_BYTES
from agora.config.backends import BackendTable

Connect = Callable[..., Awaitable[Heard]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def guard() -> Iterator[Guard]:
    """A guard of the test's own."""
    made = Guard()
    yield made
    made.close()


@pytest.fixture
async def connect(guard: Guard, anyio_backend: str) -> AsyncIterator[Connect]:
    """Opens channels, to `naughty.py` with habits or to another table, and closes them at the end."""
    del anyio_backend
    opened: list[Heard] = []

    async def open_one(*habits: str, backend: BackendTable | None = None, line_bytes: int = LINE_BYTES) -> Heard:
        heard = Heard(backend or table(*habits), guard, line_bytes)
        opened.append(heard)
        await heard.open()
        return heard

    yield open_one
    pids = [heard.channel.pid for heard in opened if heard.channel.pid]
    families = [child.pid for pid in alive(pids) for child in psutil.Process(pid).children(recursive=True)]
    try:
        for heard in opened:
            await heard.channel.close()
    finally:
        put_down([*pids, *families])
