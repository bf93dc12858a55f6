from __future__ import annotations

import sqlite3

from agora.model.caller import Caller
from agora.stores.sqlite.journal import Actor


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
