"""The words of every note that a store holds, one after the other."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.stores.sqlite.failures import translated
from agora.stores.sqlite.migrations import version_of
from agora.stores.sqlite.opening import Reader, open_to_read

_NOTES = (
    "SELECT i.id, i.public_id, i.superseded_by IS NULL AND i.forgotten_at IS NULL, i.kind, i.key,"
    " i.session, i.speaker, i.forget_reason, t.title, t.content, t.metadata"
    " FROM items i JOIN texts t ON t.item_id = i.id WHERE i.purged_at IS NULL ORDER BY i.id"
)
_SAVERS = (
    "SELECT a.name, c.name, c.version, s.session, s.given FROM savers s JOIN agents a ON a.id = s.agent_id"
    " JOIN clients c ON c.id = s.client_id WHERE s.item_id = ? ORDER BY s.n"
)


@dataclass(frozen=True, slots=True)
class Words:
    """Everything that is written in the note `id`, by the names of its fields; `tags` and `savers` are lists."""

    id: str
    current: bool
    texts: dict[str, Any]


def words_of_notes(path: Path) -> Iterator[Words]:
    """The words of each note that is not purged; those of older versions and forgotten ones too, which are not current.

    Nothing is changed. Metadata that is no JSON comes as the text that it is.

    Raises: StoreUnavailable, StoreCorrupt.
    """
    with translated(path), closing(open_to_read(path, Reader)[0]) as connection:
        connection.execute("BEGIN")
        if not version_of(connection):
            return
        for row, public_id, current, *texts, metadata in connection.execute(_NOTES):
            names = ("kind", "key", "session", "speaker", "forget_reason", "title", "content")
            found = {name: text for name, text in zip(names, texts, strict=True) if text}
            yield Words(public_id, bool(current), found | {"metadata": _read(metadata)} | _of_savers(connection, row))


def _of_savers(connection: sqlite3.Connection, row: int) -> dict[str, Any]:
    tags = connection.execute("SELECT DISTINCT tag FROM item_tags WHERE item_id = ? ORDER BY tag", (row,))
    savers = [
        {"agent": agent, "client": client, "client_version": version, "session": session, "given": _read(given)}
        for agent, client, version, session, given in connection.execute(_SAVERS, (row,))
    ]
    return {"tags": [tag for (tag,) in tags], "savers": savers}


def _read(text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text)
    except ValueError:
        return text
