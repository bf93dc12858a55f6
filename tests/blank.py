"""New stores for tests that are about something else: one is made in each process and copied, in a tenth of the time.

What a copy holds is what the store makes of a file that is missing, with an identity of its own.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from agora.model.profile import Fingerprint
from agora.ports.clock import Clock
from agora.stores.sqlite.store import SqliteStore
from agora.testing import ManualClock
from agora.text.ids import new_id


def lay(path: Path, fingerprint: Fingerprint, clock: Clock) -> None:
    """Put a new store at `path`, unless there is something already."""
    if any(os.path.lexists(f"{path}{ending}") for ending in ("", "-wal", "-journal")):
        return
    content, identity = _made(fingerprint)
    own = new_id("s", round(clock.now().timestamp() * 1000)).encode()
    assert content.count(identity) == 1
    assert len(own) == len(identity)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content.replace(identity, own))


@cache
def _made(fingerprint: Fingerprint) -> tuple[bytes, bytes]:
    """The bytes of a closed store, and its identity."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agora.db"
        SqliteStore(path, fingerprint, ManualClock()).close()
        with closing(sqlite3.connect(path)) as connection:
            (identity,) = connection.execute("SELECT value FROM meta WHERE key = 'store'").fetchone()
        return path.read_bytes(), identity.encode()
