"""How other processes learn of a repair: by the journal, and by what their answers and indexes are known by."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from agora.model.caller import Caller, Scope
from agora.stores.sqlite import journal
from agora.stores.sqlite.actors import ensure_actor

_REPAIRER = Caller(Scope("default", "repair"), "agora-doctor", "", "agora-cli", origin="user")


def record(connection: sqlite3.Connection, done: Mapping[str, Any], now: int, *, vectors: bool) -> int:
    """The sequence of the journal's entry about a repair, inside the repair's own transaction.

    From here on no answer given before is given again from a cache; with `vectors`, every index loads anew.
    """
    actor = ensure_actor(connection, _REPAIRER, now)
    change = journal.Change(now, None, None, "repair", None, None, b"", None, done)
    sequence = journal.append(connection, change, actor)
    keys = ("repaired", "revectored") if vectors else ("repaired",)
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", ((key, str(sequence)) for key in keys))
    if vectors:
        # Their files were written from the vectors as they were.
        connection.execute("DELETE FROM generations")
        connection.execute("DELETE FROM segments")
    return sequence
