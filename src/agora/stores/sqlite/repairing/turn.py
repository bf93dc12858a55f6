from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from agora.stores.sqlite.connection import LOCK_FILE
from agora.stores.sqlite.ticket import queue_of


@contextlib.contextmanager
def in_turn(path: Path, waits: float) -> Iterator[None]:
    """The turn among the writers of the store at `path`, if it comes within so many seconds; others keep behind."""
    ends = time.monotonic() + waits
    with queue_of(path.with_name(LOCK_FILE)) as tickets:
        tickets.wait(lambda: ends - time.monotonic())
        yield
