"""Rows into skeletons: what a purge deletes, in one transaction a batch of whole notes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from agora.errors import Conflict
from agora.model.caller import Caller
from agora.stores.sqlite import fulltext, journal
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.authority import outranking
from agora.stores.sqlite.condemning import attached, is_condemned, older_versions
from agora.stores.sqlite.conditions import MARK
from agora.stores.sqlite.facts import skeletons
from agora.stores.sqlite.journal import Actor, Change
from agora.stores.sqlite.standing import NOT_HERE

_OF_ITEMS = ("passages", "item_metadata", "item_tags", "savers", "texts", "reads", "pins", "summaries")
"""Tables whose rows belong to an item; vectors, which belong to passages, go before these."""

_BLANK = (
    "UPDATE items SET kind = 'purged', content_hash = NULL, normal_hash = NULL, confidence = NULL, session = NULL,"
    " seq = NULL, speaker = NULL, occurred_at = NULL, effective_at = created_at, expires_at = NULL,"
    " forgotten_at = ifnull(forgotten_at, purged_at), forget_reason = NULL"
)

EMPTY_CONVERSATIONS = (
    "DELETE FROM conversations AS c WHERE NOT EXISTS (SELECT 1 FROM items i"
    " WHERE i.type = 'message' AND i.namespace_id = c.namespace_id AND i.session = c.session)"
)
"""The name of a conversation goes with the last of its messages."""

LAST = "(SELECT max(purged_at) FROM items)"
"""When something was last purged."""

_CALLS = 5_000
"""Calls that are looked at in one transaction."""

_BATCH = 200
"""Versions that go in one transaction: others write in between."""


def unfinished(connection: sqlite3.Connection) -> list[str]:
    """What there is to say of purges whose rows are gone and whose bytes may not be."""
    if connection.execute("SELECT 1 FROM meta WHERE key = ?", (MARK,)).fetchone() is None:
        return []
    return ["a purge did not come to its end: run `agora purge --yes` once more to take the last bytes away"]


def batches(groups: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """`groups` in lists that go in one transaction each."""
    batch: list[tuple[int, ...]] = []
    size = 0
    for group in groups:
        batch.append(group)
        size += len(group)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Deed:
    """One batch of notes, turned into skeletons inside a write transaction."""

    def __init__(
        self, groups: Sequence[Sequence[int]], caller: Caller, now: int, mark: str, seen: tuple[int, bytes | None]
    ) -> None:
        """`seen`: as `Condemned` has it."""
        self._seen = seen
        self._groups = groups
        self._caller = caller
        self._now = now
        self._mark = mark

    def __call__(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """How many notes and versions went.

        Raises: Conflict if another past was put in the place of the one in which the rows were chosen.
        """
        self._require_same_past(connection)
        actor = ensure_actor(connection, self._caller, self._now)
        notes = versions = 0
        keys: set[tuple[int, str, str]] = set()
        touched: set[int] = set()
        # Of all before any of them goes: equal statements lend each other their authority.
        ranks = skeletons.ranks(connection, (row for group in self._groups for row in group))
        for first, *rest in self._groups:
            if not is_condemned(connection, first, self._now):
                continue
            # A newer version may have come since: then the older ones are its history, and stay.
            current = connection.execute("SELECT superseded_by IS NULL FROM items WHERE id = ?", (first,)).fetchone()[0]
            known = older_versions(connection, first)
            same = attached(connection, first, self._now)
            rows = [first, *(row for row in rest if row in same)]
            rows += [row for row in rest if row not in same and current and (row in known or _keyless(connection, row))]
            if outranking(connection, rows, self._caller.origin):
                continue
            touched |= {slot for row in rows if (slot := skeletons.leave(connection, row, ranks.get(row))) is not None}
            keys |= {key for row in rows if (key := _blank(connection, row, actor, self._now)) is not None}
            notes, versions = notes + 1, versions + len(rows)
        for key in sorted(keys):
            _release(connection, key)
        skeletons.clear(connection, sorted(touched), actor, self._now)
        if versions:
            connection.execute(EMPTY_CONVERSATIONS)
            set_mark(connection, self._mark)
        return notes, versions

    def _require_same_past(self, connection: sqlite3.Connection) -> None:
        sequence, hash_ = self._seen
        found = connection.execute("SELECT hash FROM journal WHERE sequence = ?", (sequence,)).fetchone()
        if (None if found is None else bytes(found[0])) != hash_:
            # The numbers of the rows may be those of other notes by now.
            raise Conflict(
                "a backup was put in the place of the store since the notes to purge were chosen",
                hint="These notes were not purged. Run `agora purge` again: it shows what would go now.",
            )


def sweep(connection: sqlite3.Connection, mark: str) -> None:
    """Take from skeletons what somebody left with them or gave them since, and delete what belongs to nothing."""
    purged = "SELECT id FROM items WHERE purged_at IS NOT NULL"
    skeletons.sweep(connection, purged)
    connection.execute(f"DELETE FROM vectors WHERE passage_id IN (SELECT id FROM passages WHERE item_id IN ({purged}))")
    for table in _OF_ITEMS:
        connection.execute(f"DELETE FROM {table} WHERE item_id IN ({purged})")
    connection.execute(
        "DELETE FROM journal_payload WHERE length(content) > 0"
        f" AND sequence IN (SELECT sequence FROM journal WHERE item_id IN ({purged}))"
    )
    connection.execute(f"{_BLANK} WHERE purged_at IS NOT NULL")
    connection.execute(EMPTY_CONVERSATIONS)
    connection.execute("DELETE FROM vectors WHERE passage_id NOT IN (SELECT id FROM passages)")
    for tables in (fulltext.CURRENT, fulltext.SPARE):
        stray = f"SELECT id FROM {tables.fulltext}_content WHERE id NOT IN (SELECT id FROM passages)"
        for (passage,) in connection.execute(stray).fetchall():
            connection.execute(f"DELETE FROM {tables.fulltext} WHERE rowid = ?", (passage,))
        connection.execute(f"DELETE FROM {tables.terms} WHERE passages <= 0")
    set_mark(connection, mark)


def forget_calls(connection: sqlite3.Connection, after: int) -> int | None:
    """Take what calls before the last purge could be tested by, of the next few `after` a number; None at the end.

    What a tool answered, and what it was asked, may say what a purged note says: long results that were kept go, and
    so do the nonces that bind arguments to the record of calls.
    """
    connection.execute(f"DELETE FROM kept_results WHERE created_at <= {LAST}")
    last = connection.execute(
        "SELECT max(sequence) FROM (SELECT sequence FROM calls WHERE sequence > ? ORDER BY sequence LIMIT ?)",
        (after, _CALLS),
    ).fetchone()[0]
    if last is None:
        return None
    connection.execute(
        f"UPDATE calls SET nonce = NULL WHERE sequence > ? AND sequence <= ? AND nonce IS NOT NULL AND at <= {LAST}",
        (after, last),
    )
    return int(last)


def set_mark(connection: sqlite3.Connection, mark: str) -> None:
    """Remember that rows are gone and their bytes may not be."""
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (MARK, mark)
    )


def _blank(connection: sqlite3.Connection, row: int, actor: Actor, now: int) -> tuple[int, str, str] | None:
    """Leave of an item its skeleton; the key that it was a version of, if it was of one."""
    public_id, namespace_id, namespace, type_, key = connection.execute(
        "SELECT i.public_id, i.namespace_id, n.name, i.type, i.key FROM items i"
        " JOIN namespaces n ON n.id = i.namespace_id WHERE i.id = ?",
        (row,),
    ).fetchone()
    # What has only expired is still in the full text.
    fulltext.remove(connection, row, namespace_id, type_)
    connection.execute("DELETE FROM vectors WHERE passage_id IN (SELECT id FROM passages WHERE item_id = ?)", (row,))
    for table in _OF_ITEMS:
        connection.execute(f"DELETE FROM {table} WHERE item_id = ?", (row,))
    connection.execute(
        "DELETE FROM journal_payload WHERE sequence IN (SELECT sequence FROM journal WHERE item_id = ?)", (row,)
    )
    connection.execute("UPDATE items SET purged_at = ? WHERE id = ?", (now, row))
    connection.execute(f"{_BLANK} WHERE id = ?", (row,))
    journal.append(connection, Change(now, namespace_id, namespace, "purge", row, public_id, b""), actor)
    return None if key is None else (namespace_id, type_, key)


def _release(connection: sqlite3.Connection, key: tuple[int, str, str]) -> None:
    """Take a key from its skeletons, unless a version of it stays; from one that holds the key's place, always."""
    of_key = "namespace_id = ? AND type = ? AND key = ?"
    stays = connection.execute(f"SELECT 1 FROM items WHERE {of_key} AND purged_at IS NULL", key).fetchone()
    connection.execute(
        f"UPDATE items SET key = NULL, version = 1 WHERE {of_key} AND purged_at IS NOT NULL"
        f"{' AND superseded_by IS NULL' if stays else ''}",
        key,
    )


def loosen(connection: sqlite3.Connection) -> None:
    """Let skeletons without a key forget each other: history they stay, of what is told no more."""
    skeletons = "purged_at IS NOT NULL AND key IS NULL"
    connection.execute(
        f"UPDATE items SET supersedes = NULL WHERE {skeletons}"
        f" AND supersedes IN (SELECT id FROM items WHERE {skeletons})"
    )
    connection.execute(
        f"UPDATE items SET superseded_by = {NOT_HERE} WHERE {skeletons}"
        f" AND superseded_by IN (SELECT id FROM items WHERE {skeletons})"
    )


def _keyless(connection: sqlite3.Connection, row: int) -> bool:
    found = connection.execute(
        "SELECT key IS NULL AND type = 'note' AND purged_at IS NULL FROM items WHERE id = ?", (row,)
    ).fetchone()
    return bool(found[0])
