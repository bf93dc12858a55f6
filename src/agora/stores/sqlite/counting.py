from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from agora.stores.sqlite.rows import FOUND, places

_LISTED = 20
"""Agents and namespaces named in the counts; the rest is a number, so that the status stays small."""

_ENDED = "ifnull(i.expires_at <= ?, 0)"
"""Expired: whether or not it was forgotten too, for it cannot be restored."""

_KEPT = "(i.purged_at IS NULL)"

_LIVE = f"i.superseded_by IS NULL AND i.forgotten_at IS NULL AND (i.expires_at IS NULL OR i.expires_at > ?) AND {FOUND}"

_SPOKEN = "i.type = 'message' AND i.superseded_by IS NULL AND i.forgotten_at IS NULL"


def count(connection: sqlite3.Connection, namespaces: Sequence[int], now: int) -> dict[str, Any]:
    """Numbers of notes by state, agent and namespace, over `namespaces` alone."""
    inside = f"i.namespace_id IN ({places(namespaces)})"
    total = connection.execute(
        "SELECT count(*),"
        f" coalesce(sum({_LIVE}), 0),"
        f" coalesce(sum(i.superseded_by IS NOT NULL AND {_KEPT}), 0),"
        f" coalesce(sum(i.superseded_by IS NULL AND i.forgotten_at IS NOT NULL AND NOT {_ENDED} AND {_KEPT}), 0),"
        f" coalesce(sum(i.superseded_by IS NULL AND {_ENDED} AND {_KEPT}), 0),"
        f" coalesce(sum(NOT {_KEPT}), 0)"
        f" FROM items i WHERE {inside} AND i.type = 'note'",
        (now, now, now, *namespaces),
    ).fetchone()
    # A statement that has ended, or whose place another one took, is history.
    live, forgotten, purged, statements = connection.execute(
        f"SELECT coalesce(sum({_LIVE}), 0), coalesce(sum(i.forgotten_at IS NOT NULL AND {_KEPT}), 0),"
        f" coalesce(sum(NOT {_KEPT}), 0), count(*) FROM items i WHERE {inside} AND i.type = 'fact'",
        (now, *namespaces),
    ).fetchone()
    history = statements - live - forgotten - purged
    messages, conversations = connection.execute(
        f"SELECT count(*), count(DISTINCT i.namespace_id || ' ' || i.session) FROM items i"
        f" WHERE {inside} AND {_SPOKEN}",
        tuple(namespaces),
    ).fetchone()
    agents = connection.execute(
        "SELECT a.name, count(DISTINCT i.id) FROM items i JOIN savers s ON s.item_id = i.id"
        f" JOIN agents a ON a.id = s.agent_id WHERE {inside} AND {_LIVE}"
        " GROUP BY a.id ORDER BY 2 DESC, 1",
        (*namespaces, now),
    ).fetchall()
    spaces = connection.execute(
        f"SELECT n.name, count(i.id) FROM namespaces n LEFT JOIN items i ON i.namespace_id = n.id AND {_LIVE}"
        f" WHERE n.id IN ({places(namespaces)}) GROUP BY n.id ORDER BY 2 DESC, 1",
        (now, *namespaces),
    ).fetchall()
    passages = connection.execute(
        f"SELECT coalesce(sum(passages), 0) FROM namespace_stats WHERE namespace_id IN ({places(namespaces)})",
        tuple(namespaces),
    ).fetchone()[0]
    return {
        "passages": passages,
        "notes": {
            "live": total[1],
            "superseded": total[2],
            "forgotten": total[3],
            "expired": total[4],
            "purged": total[5],
            "rows": total[0],
        },
        "statements": {"live": live, "history": history, "forgotten": forgotten, "purged": purged, "rows": statements},
        "messages": messages,
        "conversations": conversations,
        "agents": dict(agents[:_LISTED]),
        "more_agents": max(0, len(agents) - _LISTED),
        "namespaces": dict(spaces[:_LISTED]),
        "more_namespaces": max(0, len(spaces) - _LISTED),
    }
