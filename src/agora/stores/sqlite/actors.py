from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from agora.model.caller import Caller
from agora.stores.sqlite.journal import Actor
from agora.stores.sqlite.rows import canonical


def ensure_namespace(connection: sqlite3.Connection, name: str, now: int) -> int:
    """The row number of a namespace, which is made at its first use."""
    connection.execute("INSERT INTO namespaces (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, now))
    return int(connection.execute("SELECT id FROM namespaces WHERE name = ?", (name,)).fetchone()[0])


def ensure_actor(connection: sqlite3.Connection, caller: Caller, now: int) -> Actor:
    """Row numbers of the caller's agent and client, which are made at their first use."""
    connection.execute(
        "INSERT INTO agents (name, first_seen) VALUES (?, ?) ON CONFLICT DO NOTHING", (caller.agent, now)
    )
    client = (caller.client, caller.client_version, caller.token)
    connection.execute("INSERT INTO clients (name, version, token) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", client)
    agent_id = connection.execute("SELECT id FROM agents WHERE name = ?", (caller.agent,)).fetchone()[0]
    client_id = connection.execute(
        "SELECT id FROM clients WHERE name = ? AND version = ? AND token = ?", client
    ).fetchone()[0]
    return Actor(agent_id, client_id, caller.agent, *client, caller.session, caller.origin)


def add_saver(connection: sqlite3.Connection, row: int, actor: Actor, now: int, given: Mapping[str, Any]) -> int:
    """Make the actor one of an item's savers, or count once more if it is one; its number among them.

    `given` is kept of the first time.
    """
    identity = (row, actor.agent_id, actor.client_id, actor.session, actor.origin)
    connection.execute(
        "INSERT INTO savers (item_id, agent_id, client_id, session, origin, n, first_at, last_at, given)"
        " VALUES (?, ?, ?, ?, ?, (SELECT coalesce(max(n) + 1, 0) FROM savers WHERE item_id = ?), ?, ?, ?)"
        " ON CONFLICT (item_id, agent_id, client_id, session, origin)"
        " DO UPDATE SET times = times + 1, last_at = excluded.last_at",
        (*identity, row, now, now, canonical(given)),
    )
    found = connection.execute(
        "SELECT n FROM savers WHERE item_id = ? AND agent_id = ? AND client_id = ? AND session = ? AND origin = ?",
        identity,
    ).fetchone()
    return int(found[0])
