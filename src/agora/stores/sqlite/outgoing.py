from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from agora.model.instants import from_micros, maybe, to_micros
from agora.model.profile import Span
from agora.ports.encoder import Vector
from agora.ports.transfer import Covered, Extract, Giver, Profile, Replaced, Stated, Version
from agora.stores.sqlite import journal
from agora.stores.sqlite.rows import metadata_of, namespace_ids, places

_BLOCK = 200
"""Versions read at a time: what an export holds in memory."""

_COLUMNS = (
    "i.id, i.public_id, i.type, i.namespace_id, n.name, i.kind, i.key, i.version, t.title, t.content, t.metadata,"
    " i.confidence, i.session, i.seq, i.speaker, i.occurred_at, i.created_at, i.updated_at, i.expires_at,"
    " i.supersedes, before.public_id, after.public_id, i.superseded_at, i.forgotten_at, i.forget_reason, i.purged_at,"
    " i.normal_hash, i.contests, stands.public_id, p.pinned_at,"
    " l.shown_subject, l.shown_key, f.value, f.valid_from, f.valid_to, f.expires_at, f.multi, f.quoted,"
    " f.reverted, f.rank, c.first, c.last, c.written_by, v.strategy"
)
_FROM = (
    "FROM items i JOIN namespaces n ON n.id = i.namespace_id LEFT JOIN texts t ON t.item_id = i.id"
    " LEFT JOIN items before ON before.id = i.supersedes LEFT JOIN items after ON after.id = i.superseded_by"
    " LEFT JOIN items stands ON stands.id = i.contests LEFT JOIN pins p ON p.item_id = i.id"
    " LEFT JOIN facts f ON f.item_id = i.id LEFT JOIN fact_slots l ON l.id = f.slot_id"
    " LEFT JOIN summaries c ON c.item_id = i.id LEFT JOIN conversations v"
    " ON i.type = 'message' AND v.namespace_id = i.namespace_id AND v.session = i.session"
)


class SqliteOutgoing:
    """The versions that `extract` selects, in one open read transaction; implements `agora.ports.transfer.Outgoing`."""

    def __init__(self, connection: sqlite3.Connection, extract: Extract, now: int) -> None:
        self._connection = connection
        self._vectors = extract.vectors
        self._where, self._values = _conditions(connection, extract, now)
        self.store = str(connection.execute("SELECT value FROM meta WHERE key = 'store'").fetchone()[0])
        self.sequence = journal.head(connection)
        self._encoder, self._layout, *profile = connection.execute(
            "SELECT id, layout, digest, name, dimension FROM encoders WHERE state = 'active' ORDER BY id LIMIT 1"
        ).fetchone()
        self.profile = Profile(*profile)
        self.counts = dict(
            connection.execute(
                f"SELECT n.name, count(*) FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE {self._where}"
                " GROUP BY n.id ORDER BY n.name",
                self._values,
            ).fetchall()
        )

    def versions(self) -> Iterator[Version]:
        """As `Outgoing.versions`."""
        last = 0
        while items := self._connection.execute(
            f"SELECT {_COLUMNS} {_FROM} WHERE i.id > ? AND {self._where} ORDER BY i.id LIMIT {_BLOCK}",
            (last, *self._values),
        ).fetchall():
            rows = [item[0] for item in items]
            savers, passages = self._savers(rows), self._passages(rows) if self._vectors else {}
            for item in items:
                yield _version(item, savers[item[0]], self._replaced(item), passages.get(item[0], ()))
            last = rows[-1]

    def _savers(self, rows: Sequence[int]) -> dict[int, list[Giver]]:
        tags: dict[tuple[int, int], list[str]] = defaultdict(list)
        for row, n, tag in self._connection.execute(
            f"SELECT item_id, saver, tag FROM item_tags WHERE item_id IN ({places(rows)}) ORDER BY item_id, tag",
            tuple(rows),
        ):
            tags[row, n].append(tag)
        found: dict[int, list[Giver]] = defaultdict(list)
        for (
            row,
            n,
            agent,
            client,
            release,
            token,
            session,
            origin,
            first,
            last,
            times,
            given,
        ) in self._connection.execute(
            "SELECT s.item_id, s.n, a.name, c.name, c.version, c.token, s.session, s.origin, s.first_at, s.last_at,"
            " s.times, s.given FROM savers s"
            " JOIN agents a ON a.id = s.agent_id JOIN clients c ON c.id = s.client_id"
            f" WHERE s.item_id IN ({places(rows)}) ORDER BY s.item_id, s.n",
            tuple(rows),
        ):
            giver = Giver(agent, client, release, token, session, origin, from_micros(first), from_micros(last), times)
            found[row].append(replace(giver, given=json.loads(given), tags=tuple(tags[row, n])))
        return found

    def _replaced(self, item: Sequence[Any]) -> tuple[Replaced, ...]:
        """What this version superseded: the last of its key, a row of its text that had no key, what was contested."""
        row, namespace_id, key, supersedes, normal = item[0], item[3], item[6], item[19], item[26]
        if key is None:
            return ()
        # By the row number, and by the hash of texts: nothing indexes `superseded_by`.
        found = self._connection.execute(
            "SELECT id, public_id, content_hash FROM items WHERE id = ?"
            " UNION SELECT id, public_id, content_hash FROM items"
            " WHERE namespace_id = ? AND normal_hash = ? AND key IS NULL AND superseded_by = ?"
            " UNION SELECT id, public_id, content_hash FROM items"
            " WHERE namespace_id = ? AND type = ? AND key = ? AND contests IS NOT NULL AND superseded_by = ?"
            " ORDER BY id",
            (supersedes, namespace_id, normal, row, namespace_id, item[2], key, row),
        )
        return tuple(Replaced(old, content) for _, old, content in found)

    def _passages(self, rows: Sequence[int]) -> dict[int, tuple[tuple[Span, Vector], ...]]:
        found: dict[int, list[tuple[Span, Vector]]] = defaultdict(list)
        for row, start, stop, vector in self._connection.execute(
            "SELECT p.item_id, p.start, p.stop, v.vector FROM passages p"
            " JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
            f" WHERE p.layout = ? AND p.item_id IN ({places(rows)}) ORDER BY p.item_id, p.n",
            (self._encoder, self._layout, *rows),
        ):
            found[row].append((Span(start, stop), np.frombuffer(vector, dtype="<f4")))
        return {row: tuple(pairs) for row, pairs in found.items()}


def _conditions(connection: sqlite3.Connection, extract: Extract, now: int) -> tuple[str, list[Any]]:
    wanted = namespace_ids(connection, extract.namespaces)
    # The plus keeps SQLite from walking an index of namespaces, which it would have to sort anew for every block.
    sql, values = [f"+i.namespace_id IN ({places(wanted)})"], list[Any](wanted)
    if extract.live_only:
        sql.append("i.superseded_by IS NULL AND i.forgotten_at IS NULL AND i.purged_at IS NULL")
        sql.append("(i.expires_at IS NULL OR i.expires_at > ?)")
        values.append(now)
    if extract.since is not None:
        sql.append("EXISTS (SELECT 1 FROM journal j WHERE j.item_id = i.id AND j.at >= ?)")
        values.append(to_micros(extract.since))
    return " AND ".join(sql), values


def _version(
    item: Sequence[Any],
    savers: Sequence[Giver],
    replaced: tuple[Replaced, ...],
    passages: tuple[tuple[Span, Vector], ...],
) -> Version:
    ends = {
        "expires_at": maybe(item[18]),
        "supersedes": item[20],
        "superseded_by": item[21],
        "superseded_at": maybe(item[22]),
        "contests": None if item[27] is None else item[28] or item[1],
    }
    return Version(
        id=item[1],
        type=item[2],
        namespace=item[4],
        kind=item[5],
        key=item[6],
        version=item[7],
        title=item[8],
        content=item[9],
        metadata=metadata_of(item[1], item[10] or "{}"),
        confidence=item[11],
        session=item[12],
        seq=item[13],
        speaker=item[14],
        occurred_at=maybe(item[15]),
        created_at=from_micros(item[16]),
        updated_at=from_micros(item[17]),
        replaces=replaced,
        forgotten_at=maybe(item[23]),
        forget_reason=item[24],
        purged_at=maybe(item[25]),
        pinned_at=maybe(item[29]),
        fact=None if item[30] is None else _stated(item[30:40]),
        summary=None if item[40] is None else Covered(*item[40:43]),
        strategy=item[43],
        savers=tuple(savers),
        passages=passages,
        # What ends a fact is drawn from others.
        **({} if item[2] == "fact" else ends),
    )


def _stated(columns: Sequence[Any]) -> Stated:
    subject, key, value, start, stop, expires, multi, quoted, reverted, rank = columns
    return Stated(
        subject,
        key,
        None if value is None else json.loads(value),
        from_micros(start),
        maybe(stop),
        maybe(expires),
        bool(multi),
        bool(quoted),
        bool(reverted),
        rank,
    )
