from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agora.model.caller import Origin
from agora.model.instants import to_micros
from agora.ports.transfer import Giver
from agora.stores.sqlite.authority import is_above
from agora.stores.sqlite.fields import keep_tags
from agora.stores.sqlite.rows import canonical


def put(connection: sqlite3.Connection, row: int, giver: Giver, *, once: bool = False) -> None:
    """Add a saver with the tags it gave; one that is there keeps the earliest, the latest and the most of both.

    Tags of a saver below the item's level stay that saver's. Putting the same saver twice changes nothing; with `once`
    not even if the times differ. Nor does one that was lowered, if the row has all of it under a higher origin:
    somebody with more authority has put it there.
    """
    first, last = to_micros(giver.first_at), to_micros(giver.last_at)
    connection.execute(
        "INSERT INTO agents (name, first_seen) VALUES (?, ?) ON CONFLICT DO NOTHING", (giver.agent, first)
    )
    client = (giver.client, giver.client_version, giver.token)
    connection.execute("INSERT INTO clients (name, version, token) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", client)
    [agent_id] = connection.execute("SELECT id FROM agents WHERE name = ?", (giver.agent,)).fetchone()
    [client_id] = connection.execute(
        "SELECT id FROM clients WHERE name = ? AND version = ? AND token = ?", client
    ).fetchone()
    if giver.lowered and _covered(connection, row, (agent_id, client_id, giver.session), giver):
        return
    values = (first, last, giver.times, canonical(giver.given))
    _put(connection, row, (agent_id, client_id, giver.session, giver.origin), values, giver.tags, once=once)


def _covered(connection: sqlite3.Connection, row: int, identity: tuple[int, int, str], giver: Giver) -> bool:
    """Whether savers who differ in their origin alone have been there as early, as late, as often, with these tags."""
    who = "item_id = ? AND agent_id = ? AND client_id = ? AND session = ?"
    [covered] = connection.execute(
        f"SELECT min(first_at) <= ? AND max(last_at) >= ? AND sum(times) >= ? FROM savers WHERE {who}",
        (to_micros(giver.first_at), to_micros(giver.last_at), giver.times, row, *identity),
    ).fetchone()
    tags = connection.execute(
        f"SELECT tag FROM item_tags JOIN savers s USING (item_id) WHERE saver = s.n AND {who}"
        # Those of savers below the item's level are theirs alone.
        f" UNION SELECT own.value FROM savers s, json_each(s.given, '$.tags') own WHERE {who}",
        (row, *identity, row, *identity),
    )
    return bool(covered) and {tag for (tag,) in tags} >= set(giver.tags)


def copy(connection: sqlite3.Connection, source: int, target: int) -> None:
    """Make the savers of one row savers of another one too, as `put` does."""
    for n, agent_id, client_id, session, origin, *values in connection.execute(
        "SELECT n, agent_id, client_id, session, origin, first_at, last_at, times, given FROM savers"
        " WHERE item_id = ? ORDER BY n",
        (source,),
    ).fetchall():
        tags = connection.execute("SELECT tag FROM item_tags WHERE item_id = ? AND saver = ?", (source, n)).fetchall()
        _put(connection, target, (agent_id, client_id, session, origin), values, [tag for (tag,) in tags])


def _put(
    connection: sqlite3.Connection,
    row: int,
    identity: tuple[int, int, str, Origin],
    values: Sequence[object],
    tags: Sequence[str],
    *,
    once: bool = False,
) -> None:
    connection.execute(
        "INSERT INTO savers (item_id, n, agent_id, client_id, session, origin, first_at, last_at, times, given)"
        " VALUES (?, (SELECT coalesce(max(n) + 1, 0) FROM savers WHERE item_id = ?), ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (item_id, agent_id, client_id, session, origin) DO UPDATE SET"
        " first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at),"
        " times = max(times, excluded.times) WHERE NOT ?"
        " AND (excluded.first_at < first_at OR excluded.last_at > last_at OR excluded.times > times)",
        (row, row, *identity, *values, once),
    )
    [n] = connection.execute(
        "SELECT n FROM savers WHERE item_id = ? AND agent_id = ? AND client_id = ? AND session = ? AND origin = ?",
        (row, *identity),
    ).fetchone()
    if is_above(connection, row, identity[3]):
        keep_tags(connection, row, n, tags)
        return
    connection.executemany(
        "INSERT INTO item_tags VALUES (?, ?, ?) ON CONFLICT DO NOTHING", ((row, tag, n) for tag in tags)
    )
