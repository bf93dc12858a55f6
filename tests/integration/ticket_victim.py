"""Takes turns on a store until it is killed: `ticket_victim.py FOLDER`. It starts fast, since tests kill many."""

from __future__ import annotations

import random
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path

from agora.stores.sqlite.ticket import Tickets


def main() -> None:
    """Wait, write something that is not kept, and again."""
    folder = Path(sys.argv[1])
    connection = sqlite3.connect(folder / "agora.db", isolation_level=None, timeout=0.05)
    tickets = Tickets(folder / "agora.lock")
    while True:
        tickets.wait(lambda: 10.0)
        with suppress(sqlite3.OperationalError):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM items")
            threading.Event().wait(random.uniform(0, 0.005))  # noqa: S311 - not a secret
            connection.execute("ROLLBACK")
        tickets.leave()


if __name__ == "__main__":
    main()
