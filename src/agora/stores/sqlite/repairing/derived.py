"""Rows that follow from other rows, made to follow again. Each function runs in the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict

from agora.model.profile import Fingerprint
from agora.stores.sqlite.checks_content import bad_vectors, digests, misplaced
from agora.stores.sqlite.checks_facts import last_changed, unlike
from agora.stores.sqlite.facts import settling, skeletons
from agora.stores.sqlite.fulltext import LAYOUT
from agora.stores.sqlite.rows import FOUND, blocks, places
from agora.stores.sqlite.rules import SURPLUS_METADATA, SURPLUS_PASSAGE, SURPLUS_VECTOR, UNUSED_SLOT
from agora.text.identity import content_hash, normal_hash
from agora.text.ids import new_id

_ORPHANS = (
    "DELETE FROM passages WHERE item_id NOT IN (SELECT id FROM items)",
    "DELETE FROM vectors WHERE passage_id NOT IN (SELECT id FROM passages)",
    "DELETE FROM vectors WHERE encoder_id NOT IN (SELECT id FROM encoders)",
    "DELETE FROM item_metadata WHERE item_id NOT IN (SELECT id FROM items)",
    f"DELETE FROM item_metadata AS m WHERE {SURPLUS_METADATA}",
    "DELETE FROM namespace_seq WHERE namespace_id NOT IN (SELECT id FROM namespaces)",
    "DELETE FROM read_marks WHERE namespace_id NOT IN (SELECT id FROM namespaces)",
    "DELETE FROM generations WHERE encoder_id NOT IN (SELECT id FROM encoders)",
    "DELETE FROM segments WHERE encoder_id NOT IN (SELECT id FROM encoders)",
)


def orphans(connection: sqlite3.Connection) -> int:
    """Delete derived rows that belong to nothing; how many."""
    return sum(connection.execute(statement).rowcount for statement in _ORPHANS)


def identity(connection: sqlite3.Connection, now: int) -> int:
    """Give a store without an identity one; whether it had none."""
    named = ("store", new_id("s", now // 1000))
    return connection.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO NOTHING", named).rowcount


def profile(connection: sqlite3.Connection, choose: Callable[[], Fingerprint | None]) -> str | None:
    """Activate the encoder that made most of the vectors if none is active, else the one to `choose`; its name."""
    if connection.execute("SELECT 1 FROM encoders WHERE state = 'active'").fetchone():
        return None
    known = connection.execute(
        "SELECT e.id, e.name FROM encoders e LEFT JOIN vectors v ON v.encoder_id = e.id WHERE e.state <> 'building'"
        " GROUP BY e.id ORDER BY count(v.id) DESC, e.id DESC LIMIT 1"
    ).fetchone()
    if known is not None:
        connection.execute("UPDATE encoders SET state = 'active' WHERE id = ?", (known[0],))
        return str(known[1])
    fingerprint = choose()
    if fingerprint is None:
        return None
    layout = connection.execute("SELECT ifnull(max(layout), 1) FROM passages").fetchone()[0]
    connection.execute(
        "INSERT INTO encoders (digest, name, dimension, fingerprint, layout, state) VALUES (?, ?, ?, ?, ?, 'active')",
        (
            *(fingerprint.digest(), fingerprint.name, fingerprint.dimension),
            *(json.dumps(asdict(fingerprint), sort_keys=True), layout),
        ),
    )
    return fingerprint.name


def hashes(connection: sqlite3.Connection) -> int:
    """Set the hash for likeness of every text that is the one that was saved; how many were wrong."""
    wrong = [
        (normal_hash(content), row)
        for row, exact, normal, content in connection.execute(
            "SELECT i.id, i.content_hash, i.normal_hash, t.content FROM items i JOIN texts t ON t.item_id = i.id"
            " WHERE i.purged_at IS NULL"
        )
        if exact == content_hash(content) and normal != normal_hash(content)
    ]
    connection.executemany("UPDATE items SET normal_hash = ? WHERE id = ?", wrong)
    return len(wrong)


def metadata(connection: sqlite3.Connection) -> int:
    """Make the index of metadata that of the texts' metadata; of how many notes it was another."""
    changed = 0
    for row, values in connection.execute(
        "SELECT t.item_id, t.metadata FROM texts t JOIN items i ON i.id = t.item_id WHERE i.purged_at IS NULL"
    ).fetchall():
        wanted = digests(values)
        stored = dict(connection.execute("SELECT key, value FROM item_metadata WHERE item_id = ?", (row,)).fetchall())
        if wanted is None or stored == wanted:
            continue
        connection.execute("DELETE FROM item_metadata WHERE item_id = ?", (row,))
        connection.executemany(
            "INSERT INTO item_metadata VALUES (?, ?, ?)", ((row, key, value) for key, value in wanted.items())
        )
        changed += 1
    return changed


def facts(connection: sqlite3.Connection) -> tuple[int, int]:
    """Compare statements by their values, draw their ends anew, delete what nothing is stated of; slots, statements."""
    wrong = unlike(connection)
    connection.executemany("UPDATE facts SET same = ? WHERE item_id = ?", wrong)
    [gone] = connection.execute(f"SELECT count(*) FROM ({UNUSED_SLOT})").fetchone()
    if gone:
        skeletons.clear_unused(connection)
    # As of when they were last drawn: what the clock has ended since needs no other ends.
    settled = sum(settling.mend(connection, slot, at) for slot, at in last_changed(connection).items())
    return gone, len({row for _, row in wrong}) + settled


def sequences(connection: sqlite3.Connection) -> int:
    """Take the last change of each namespace from the journal; how many were wrong."""
    wanted = dict(
        connection.execute(
            "SELECT namespace_id, max(sequence) FROM journal WHERE namespace_id IN (SELECT id FROM namespaces)"
            " GROUP BY namespace_id"
        ).fetchall()
    )
    stored = dict(connection.execute("SELECT namespace_id, sequence FROM namespace_seq").fetchall())
    gone = [(each,) for each in stored if each not in wanted]
    connection.executemany("DELETE FROM namespace_seq WHERE namespace_id = ?", gone)
    wrong = [(each, sequence) for each, sequence in wanted.items() if stored.get(each) != sequence]
    connection.executemany("INSERT OR REPLACE INTO namespace_seq VALUES (?, ?)", wrong)
    return len(gone) + len(wrong)


def passages(connection: sqlite3.Connection) -> tuple[int, int]:
    """Delete passages that are wrong or too many, and give each text without any one over all of it; how many each.

    Nothing is lost with the latter: words find the note at once, and the model cuts its text when it makes the vectors.
    """
    surplus = [
        found[0]
        for found in connection.execute(
            f"SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id WHERE {SURPLUS_PASSAGE}"
        )
    ]
    lengths = {row: len(content) for row, content in connection.execute("SELECT item_id, content FROM texts")}
    for row, length in lengths.items():
        for layout in misplaced(connection, row, length):
            wrong = connection.execute("SELECT id FROM passages WHERE item_id = ? AND layout = ?", (row, layout))
            surplus += [each for (each,) in wrong]
    for block in blocks(surplus):
        connection.execute(f"DELETE FROM vectors WHERE passage_id IN ({places(block)})", tuple(block))
        connection.execute(f"DELETE FROM passages WHERE id IN ({places(block)})", tuple(block))
    active = connection.execute(f"SELECT {LAYOUT}").fetchone()[0]
    if active is None:
        return len(surplus), 0
    bare = connection.execute(
        f"SELECT id FROM items i WHERE purged_at IS NULL AND {FOUND}"
        " AND id NOT IN (SELECT item_id FROM passages WHERE layout = ?)",
        (active,),
    ).fetchall()
    made = [(row, active, lengths[row]) for (row,) in bare if row in lengths]
    connection.executemany("INSERT INTO passages (item_id, layout, n, start, stop) VALUES (?, ?, 0, 0, ?)", made)
    return len(surplus), len(made)


def vectors(connection: sqlite3.Connection) -> int:
    """Delete vectors that no encoder made or that nothing needs; how many."""
    wrong = list(bad_vectors(connection))
    connection.executemany("DELETE FROM vectors WHERE id = ?", ((row,) for row in wrong))
    return len(wrong) + connection.execute(f"DELETE FROM vectors AS v WHERE {SURPLUS_VECTOR}").rowcount
