from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agora.stores.sqlite.failures import translated


def namespaces_in(path: Path) -> tuple[str, ...]:
    """Names of the namespaces of the store at `path`, sorted; none if there is no store yet. Nothing is changed.

    Raises: StoreUnavailable, StoreCorrupt.
    """
    if not path.exists():
        return ()
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with translated(path), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        return tuple(name for (name,) in connection.execute("SELECT name FROM namespaces ORDER BY name"))
