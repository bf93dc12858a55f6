from __future__ import annotations

import sqlite3
from pathlib import Path

from agora.stores.sqlite.checks import Problem, find_problems
from agora.stores.sqlite.connection import translated
from agora.stores.sqlite.migrations import check_version


def examine(path: Path) -> list[Problem]:
    """Everything that is wrong with the store at `path`, found without changing it; none for a store not yet made.

    Raises: StoreUnavailable, StoreCorrupt, StoreVersion if it cannot be read at all.
    """
    if not path.exists():
        return []
    with translated(path):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            # One transaction: tables are compared with each other while other processes go on writing.
            connection.execute("BEGIN")
            check_version(connection)
            return find_problems(connection)
        finally:
            connection.close()
