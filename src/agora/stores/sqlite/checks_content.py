"""Texts, metadata and vectors against what is kept beside them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator

import numpy as np

from agora.stores.sqlite.fields import mutable
from agora.stores.sqlite.rows import digest
from agora.stores.sqlite.rules import Problem, cases
from agora.text.identity import content_hash, normal_hash

UNIT = 1e-4
"""How far the length of a stored vector may be from 1: far above the rounding of float32, below most damage."""

_BLOCK = 4096


def wrong_contents(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Texts against their hashes and passages, metadata against the digests that filters ask for."""
    found: dict[str, list[str]] = {}
    for row, public_id, exact, normal, content, values in connection.execute(
        "SELECT i.id, i.public_id, i.content_hash, i.normal_hash, t.content, t.metadata"
        " FROM items i JOIN texts t ON t.item_id = i.id WHERE i.purged_at IS NULL"
    ):
        wanted = digests(values)
        stored = dict(connection.execute("SELECT key, value FROM item_metadata WHERE item_id = ?", (row,)).fetchall())
        broken = {
            "content_hash": exact != content_hash(content),
            "normal_hash": exact == content_hash(content) and normal != normal_hash(content),
            "metadata_damaged": wanted is None,
            "metadata_index": wanted is not None and stored != wanted,
            "passage_place": bool(misplaced(connection, row, len(content))),
        }
        for code, wrong in broken.items():
            if wrong:
                found.setdefault(code, []).append(public_id)
    yield from (cases(code, ids) for code, ids in found.items())


def changed_fields(connection: sqlite3.Connection) -> Iterator[Problem]:
    """What may change of a note against the image of it that the journal has of its last save."""
    last = dict(
        connection.execute(
            "SELECT j.item_id, p.after FROM journal j JOIN journal_payload p ON p.sequence = j.sequence"
            " WHERE j.operation IN ('save', 'merge', 'withdraw', 'pin', 'unpin') AND j.item_id IS NOT NULL"
            " ORDER BY j.sequence"
        ).fetchall()
    )
    wrong = []
    for row, public_id, metadata in connection.execute(
        "SELECT i.id, i.public_id, t.metadata FROM items i JOIN texts t ON t.item_id = i.id WHERE i.purged_at IS NULL"
    ).fetchall():
        # A journal without the change, or with another, and metadata that cannot be read, are told elsewhere.
        with contextlib.suppress(ValueError, KeyError, AttributeError):
            image = json.loads(last[row] or "{}")
            if digests(metadata) is None:
                continue
            if any(image.get(name) != value for name, value in mutable(connection, row).items()):
                wrong.append(public_id)
    if wrong:
        yield cases("fields_unlike_journal", wrong)


def misplaced(connection: sqlite3.Connection, row: int, length: int) -> set[int]:
    """The layouts in which an item's passages do not cover a text of so many characters, one after the other."""
    ends: dict[int, tuple[int, int]] = {}
    wrong = set()
    for layout, n, start, stop in connection.execute(
        "SELECT layout, n, start, stop FROM passages WHERE item_id = ? ORDER BY layout, n", (row,)
    ):
        before, end = ends.get(layout, (-1, 0))
        if n != before + 1 or not 0 <= start <= end or not start <= stop:
            wrong.add(layout)
        ends[layout] = n, stop
    # An item without any is told elsewhere.
    return wrong | {layout for layout, (_, end) in ends.items() if end != length}


def digests(metadata: str) -> dict[str, bytes] | None:
    """The digest of each key of an item's metadata; None if it is no JSON object."""
    try:
        return {key: digest(value) for key, value in json.loads(metadata).items()}
    except (ValueError, AttributeError):
        return None


def wrong_vectors(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Vectors that no encoder made."""
    found = list(bad_vectors(connection))
    if found:
        yield cases("wrong_vector", found)


def bad_vectors(connection: sqlite3.Connection) -> Iterator[int]:
    """Row numbers of vectors of another dimension than their encoder's, or whose length is not 1."""
    for encoder, dimension in connection.execute("SELECT id, dimension FROM encoders").fetchall():
        rows = connection.execute("SELECT id, vector FROM vectors WHERE encoder_id = ? ORDER BY id", (encoder,))
        while block := rows.fetchmany(_BLOCK):
            whole = [each for each in block if len(each[1]) == 4 * dimension]
            yield from (each[0] for each in block if len(each[1]) != 4 * dimension)
            matrix = np.frombuffer(b"".join(each[1] for each in whole), dtype="<f4").reshape(len(whole), dimension)
            with np.errstate(all="ignore"):
                # In float64, where no float32 overflows; damage may make any number, and none.
                lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
                # Not the other way round: no comparison holds for NaN.
                bad = ~(np.abs(lengths - 1) <= UNIT)
            yield from (whole[place][0] for place in np.flatnonzero(bad).tolist())
