from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agora.errors import StoreCorrupt
from agora.model.profile import Fingerprint, Span
from agora.ports.reembedding import Text
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.failures import translated
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.opening import open_to_read
from agora.stores.sqlite.profile import active


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a move of a store to an encoder has before it.

    `passages` are those that queries have now, `done` vectors that an unfinished move has made, `other` is another
    encoder that the store is on its way to. `sample` holds a few texts from all over the store, `cuts` how each is cut.
    """

    old: str
    needed: bool
    other: str | None
    versions: int
    passages: int
    done: int
    sample: tuple[Text, ...]
    cuts: tuple[tuple[Span, ...], ...]


def outlook_of(path: Path, wanted: Fingerprint, most: int) -> Outlook:
    """The outlook of the store at `path` with a sample of about `most` texts; nothing is changed.

    Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
    """
    with translated(path), closing(open_to_read(path, sqlite3.Connection)[0]) as connection:
        connection.execute("BEGIN")
        check_version(connection)
        built = active(connection)
        if built is None:
            raise StoreCorrupt(f"the store {path} does not say which embedding model built it")
        versions = connection.execute("SELECT count(*) FROM texts").fetchone()[0]
        passages = connection.execute(f"SELECT count(*) FROM passages WHERE layout = {fulltext.LAYOUT}").fetchone()[0]
        under_way = connection.execute("SELECT id, name, digest FROM encoders WHERE state = 'building'").fetchone()
        ours = under_way is not None and under_way[2] == wanted.digest()
        done = 0
        if ours:
            done = connection.execute("SELECT count(*) FROM vectors WHERE encoder_id = ?", (under_way[0],)).fetchone()[
                0
            ]
        found = connection.execute(
            "SELECT i.id, i.public_id, t.title, t.content FROM items i JOIN texts t ON t.item_id = i.id"
            " WHERE i.id % ? = 0 ORDER BY i.id LIMIT ?",
            (max(1, versions // most), 2 * most),
        ).fetchall()
        return Outlook(
            built.name,
            built != wanted,
            None if under_way is None or ours else under_way[1],
            versions,
            passages,
            done,
            tuple(Text(row, public_id, title, content, findable=True) for row, public_id, title, content in found),
            tuple(fulltext.spans(connection, each[0]) for each in found),
        )
