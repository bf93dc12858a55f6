"""Damage of every kind, done to a store with notes in every state, and what has to be the same after a repair."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.stores.statements import tell

from agora.model.backend import ToolDefinition
from agora.model.calls import CallRow
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    from tests.conftest import Desk

PATIENCE = 20.0

CANONICAL = (
    *("namespaces", "items", "texts", "savers", "item_tags", "pins", "tool_pins", "calls"),
    *("facts", "fact_slots", "journal_payload", "journal", "agents", "clients"),
)
"""Tables that a repair never changes; it may add to the last four."""

_QUESTIONS = (
    "port",
    "a title and a text",
    "many words",
    "restored forgotten brief",
    "elsewhere",
    "ошибка café",
    "数据库",
)


def fill(desk: Desk) -> None:
    """Notes in every state, long ones too, in two namespaces."""
    desk.save("port is 80", "ann", key="port", tags=("net",))
    desk.save("port is 81", "bob", key="port", metadata={"unit": "tcp"})
    desk.save("a title and a text", title="A title", tags=("a", "b"), metadata={"n": 1})
    desk.save("a title and a text", "bob", tags=("c",))
    desk.save("many words in a long note " * 60)
    gone = desk.save("forgotten words").id
    desk.forget(gone)
    back = desk.save("restored words").id
    desk.forget(back)
    desk.restore(back)
    desk.save("brief", lives=1)
    desk.save("elsewhere", namespace="q")
    desk.save("数据库 ошибка café", namespace="q")
    desk.clock.advance(seconds=2)
    desk.save("brief")
    # Last, so that the numbers of the rows before stay what they are.
    desk.save("the region is west", key="region", origin="user")
    desk.save("the region is east", key="region", tags=("z",))


def pin(desk: Desk) -> None:
    """Pin what is the user's of what `fill` saved, and call tools, as only this release's stores can hold it."""
    for tool in ("get_file", "put_file"):
        call(desk, tool)
    desk.pin(*(public_id for public_id in desk.found("region") if desk.note(public_id).origin == "user"))
    state(desk)


def state(desk: Desk) -> None:
    """Facts in every state."""
    tell(desk, 5432)
    desk.clock.advance(seconds=1)
    tell(desk, 5433, until=1000)
    tell(desk, 5434, "tool", origin="tool")
    tell(desk, "tea", key="drinks", multi=True)
    tell(desk, "milk", key="drinks")
    tell(desk, "tea", "bob", key="drinks")
    tell(desk, "locked", key="door", lives=1000)
    desk.forget(tell(desk, "forgotten", key="door").id)
    tell(desk, "elsewhere", namespace="q", quote="it is elsewhere, they say")


def call(desk: Desk, tool: str = "get_file") -> None:
    """Have a tool of another server seen, and called once."""
    backend, now = "files", desk.clock.now()
    desk.store.tool_pins().seen(backend, "x", [ToolDefinition(backend, tool)], now, Deadline(PATIENCE))
    row = CallRow(now, desk.caller(), backend, tool, "read", "name", "name", "ok", 0.25, arguments=b'{"path":"a"}')
    desk.store.call_log().record(row, Deadline(PATIENCE))


def answers(desk: Desk) -> dict[str, Any]:
    """Ids and scores of what many queries find: an answer that is the same in every digit has the same here."""
    found: dict[str, Any] = {}
    for text in _QUESTIONS:
        for namespaces in (("p",), ("q",), ("p", "q")):
            for mode in ("hybrid", "lexical", "semantic"):
                answer = desk.query(text, namespaces, mode=mode)
                found[f"{text} {namespaces} {mode}"] = [(hit.note.id, hit.score) for hit in answer.hits]
    found["tagged"] = desk.found("text", tags=("a",))
    found["with metadata"] = desk.found("port", metadata={"unit": "tcp"})
    return found


def canonical(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that a repair may not change."""
    with closing(sqlite3.connect(path)) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        found = {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()  # noqa: S608 - names from above
            for name in CANONICAL
            if name in there
        }
    # Older stores have no tables of them.
    later = {"pins", "tool_pins", "calls", "fact_slots", "facts", "conversations", "summaries"}
    return {name: rows for name, rows in found.items() if rows or name not in later}


def kept(before: dict[str, list[tuple[Any, ...]]], after: dict[str, list[tuple[Any, ...]]]) -> bool:
    """Whether everything is still there, and nothing else but what a repair adds to the journal."""
    for name, rows in before.items():
        now = after[name]
        if name == "items":
            # The hash for likeness follows from the text.
            rows, now = ([row[:8] + row[9:] for row in each] for each in (rows, now))  # noqa: PLW2901 - the same rows
        if name in CANONICAL[-4:]:
            now = [row for row in now if row in rows]
        if now != rows:
            return False
    return True


DAMAGE: dict[str, list[str]] = {
    "no_profile": ["UPDATE encoders SET state = 'retired'"],
    "no_identity": ["DELETE FROM meta WHERE key = 'store'"],
    "item_without_passage": [
        "DELETE FROM passages WHERE item_id = 2",
        "UPDATE passages SET layout = 2 WHERE item_id = 2",
    ],
    "passage_place": [
        "UPDATE passages SET stop = stop + 1 WHERE id = 3",
        "UPDATE passages SET start = -1 WHERE id = 3",
        "DELETE FROM passages WHERE item_id = 4 AND n = 2",
        "DELETE FROM passages WHERE item_id = 4 AND n > 1",
        "UPDATE passages SET start = stop WHERE item_id = 4 AND n = 1",
    ],
    "surplus_passage": ["UPDATE passages SET layout = 2 WHERE item_id = 4"],
    "surplus_vector": ["UPDATE passages SET layout = 2 WHERE item_id = 4"],
    "passage_without_vector": ["DELETE FROM vectors WHERE id = 3", "DELETE FROM vectors"],
    "wrong_vector": [
        "UPDATE vectors SET vector = zeroblob(12) WHERE id = 3",
        "UPDATE vectors SET vector = zeroblob(256) WHERE id = 3",
        "UPDATE vectors SET vector = CAST(x'0000c07f' || substr(vector, 5) AS BLOB) WHERE id = 3",
        "UPDATE vectors SET vector = CAST(x'0000807f' || substr(vector, 5) AS BLOB) WHERE id = 3",
    ],
    "missing_fulltext": ["DELETE FROM fulltext WHERE rowid = 3", "DELETE FROM fulltext"],
    "stray_fulltext": [
        "INSERT INTO fulltext (rowid, scope, title, body, words) VALUES (999, 'n1', '', 'stray', 1)",
        "UPDATE fulltext SET scope = 'n2' WHERE rowid = 3",
    ],
    "namespace_sequence": ["UPDATE namespace_seq SET sequence = 2", "DELETE FROM namespace_seq WHERE namespace_id = 2"],
    "number_used": [
        "DELETE FROM sqlite_sequence WHERE name = 'items'",
        "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'passages'",
        "DELETE FROM sqlite_sequence WHERE name = 'journal'",
    ],
    "orphan_derived": [
        "UPDATE vectors SET passage_id = 999 WHERE id = 3",
        "INSERT INTO item_metadata VALUES (999, 'k', zeroblob(32))",
        "INSERT INTO generations VALUES (9, 1, 1, NULL, 'x.state', 0, 0)",
    ],
    "normal_hash": ["UPDATE items SET normal_hash = NULL WHERE id = 3"],
    "metadata_index": [
        "DELETE FROM item_metadata",
        "UPDATE item_metadata SET value = zeroblob(32) WHERE item_id = 2",
        "INSERT INTO item_metadata VALUES (2, 'other', zeroblob(32))",
    ],
    "namespace_statistics": [
        "UPDATE namespace_stats SET words = words + 1",
        "UPDATE namespace_stats SET passages = passages - 1 WHERE namespace_id = 2",
        "DELETE FROM namespace_stats",
    ],
    "term_statistics": [
        "UPDATE term_stats SET passages = passages + 1 WHERE term = 'titl'",
        "DELETE FROM term_stats WHERE term = 'titl'",
        "INSERT INTO term_stats VALUES (1, 'note', 'ghost', 1)",
    ],
    "fulltext_damaged": [
        "UPDATE fulltext_content SET c2 = c2 || ' more' WHERE id = 3",
        "UPDATE fulltext_content SET c2 = 'text and titl titl' WHERE id = 3",
        "DELETE FROM fulltext_data WHERE id > 10",
        "DELETE FROM fulltext_data",
        "DELETE FROM fulltext_config",
    ],
    "fulltext_unlike_text": ["UPDATE fulltext SET body = 'other words' WHERE rowid = 3"],
    "fulltext_outdated": [
        "UPDATE meta SET value = '0' WHERE key = 'analysis'",
        "UPDATE meta SET value = '9' WHERE key = 'analysis'",
        "DELETE FROM meta WHERE key = 'analysis'",
    ],
    "fact_ends": [
        "UPDATE items SET superseded_by = NULL WHERE type = 'fact' AND superseded_by > 0",
        "UPDATE items SET expires_at = 1 WHERE id = (SELECT max(item_id) FROM facts WHERE multi)",
        "UPDATE items SET contests = NULL WHERE type = 'fact' AND contests > 0",
    ],
    "fact_sameness": ["UPDATE facts SET same = zeroblob(32) WHERE slot_id = 2"],
    "fact_slot_unused": ["INSERT INTO fact_slots VALUES (99, 1, 'a', 'b', 'A', 'B')"],
    "schema_incomplete": [
        "DROP INDEX items_time",
        "DROP INDEX items_head",
        "DROP INDEX vectors_passage",
        "DROP TABLE term_stats",
        "DROP TABLE fulltext",
        "DROP TABLE fulltext_spare",
        "DROP TABLE fulltext_docsize",
        "DROP TABLE vectors",
        "DROP TABLE item_metadata",
        "DROP TABLE reads",
    ],
}
"""What a repair makes good, by the code under which it is found."""

FATAL: dict[str, list[str]] = {
    "item_without_text": ["DELETE FROM texts WHERE item_id = 3"],
    "item_without_saver": ["DELETE FROM savers WHERE item_id = 4", "UPDATE savers SET n = 7 WHERE item_id = 4"],
    "item_without_journal": ["UPDATE journal SET operation = 'merge' WHERE operation = 'save' AND item_id = 3"],
    "saved_unlike_journal": [
        "UPDATE savers SET session = 'another' WHERE item_id = 4",
        "UPDATE savers SET agent_id = (SELECT id FROM agents WHERE name = 'bob') WHERE item_id = 4",
        "UPDATE savers SET origin = 'user' WHERE item_id = 3 AND n = 1",
        "UPDATE items SET namespace_id = 2 WHERE id = 3",
        "UPDATE items SET public_id = 'n_another' WHERE id = 3",
        "INSERT INTO savers SELECT 4, 9, agent_id, client_id, '', 'user', 1, 1, 1, '{}' FROM savers WHERE item_id = 4",
    ],
    "fields_unlike_journal": [
        "UPDATE items SET confidence = 0.5 WHERE id = 3",
        "UPDATE items SET expires_at = 1 WHERE id = 3",
        "DELETE FROM item_tags WHERE tag = 'c'",
        "UPDATE texts SET metadata = '{}' WHERE item_id = 2",
    ],
    "state_unlike_journal": [
        "UPDATE items SET forgotten_at = NULL WHERE id = 5",
        "UPDATE items SET forgotten_at = 1 WHERE id = 6",
        "UPDATE items SET forgotten_at = 1 WHERE id = 3",
        "UPDATE items SET superseded_by = 2, superseded_at = 1 WHERE id = 3",
    ],
    "broken_succession": [
        "UPDATE items SET superseded_by = 0 WHERE id = 1",
        "UPDATE items SET superseded_by = 99 WHERE id = 1",
        "UPDATE items SET superseded_by = 1 WHERE id = 1",
        "UPDATE items SET superseded_at = NULL WHERE id = 1",
        "UPDATE items SET supersedes = 3 WHERE id = 2",
    ],
    "contest_unlike_journal": ["UPDATE items SET contests = 4 WHERE id = 3"],
    "pin_unlike_journal": ["INSERT INTO pins VALUES (3, 1)", "DELETE FROM pins"],
    "broken_contest": [
        "UPDATE items SET contests = 3 WHERE contests IS NOT NULL AND type = 'note'",
        "UPDATE items SET contests = 999 WHERE contests IS NOT NULL AND type = 'note'",
    ],
    "pin_without_user": [
        "UPDATE savers SET origin = 'agent' WHERE origin = 'user'",
        "UPDATE items SET expires_at = 1 WHERE id = (SELECT item_id FROM pins)",
    ],
    "fact_without_slot": [
        "DELETE FROM fact_slots WHERE id = 1",
        "DELETE FROM facts WHERE slot_id = 1",
        "UPDATE facts SET value = NULL WHERE slot_id = 1",
    ],
    "fact_damaged": ["UPDATE facts SET value = '{' WHERE slot_id = 1"],
    "fact_pinned_expires": ["INSERT INTO pins SELECT item_id, 1 FROM facts WHERE expires_at > 0"],
    "orphan_tag": ["UPDATE item_tags SET saver = 5 WHERE tag = 'c'"],
    "purged_text": ["UPDATE items SET purged_at = 1 WHERE id = 3"],
    "orphan_payload": ["UPDATE journal_payload SET sequence = 999 WHERE sequence = 2"],
    "orphan_rows": ["DELETE FROM items WHERE id = 3", "DELETE FROM agents WHERE name = 'bob'"],
    "content_hash": [
        "UPDATE texts SET content = content || ' ' WHERE item_id = 3",
        "UPDATE items SET content_hash = zeroblob(32) WHERE id = 3",
    ],
    "metadata_damaged": [
        "UPDATE texts SET metadata = 'no json' WHERE item_id = 2",
        "UPDATE texts SET metadata = '[]' WHERE item_id = 4",
    ],
    "journal_broken": [
        "UPDATE journal SET at = at + 1 WHERE sequence = 3",
        "DELETE FROM journal WHERE sequence = 4",
        "DELETE FROM journal WHERE sequence = (SELECT max(sequence) FROM journal)",
    ],
    "calls_broken": [
        "UPDATE calls SET outcome = 'error' WHERE sequence = 1",
        "DELETE FROM calls WHERE sequence = 1",
        "DELETE FROM calls WHERE sequence = 2",
        "DROP TABLE calls",
    ],
    "schema_damaged": ["DROP TABLE item_tags"],
    "schema_foreign": [
        "CREATE TABLE theirs (a)",
        "CREATE TRIGGER theirs AFTER INSERT ON texts BEGIN DELETE FROM texts; END",
    ],
}
"""What nobody can make good without a backup."""

ALSO: dict[str, list[str]] = {
    "surplus_metadata": ["DELETE FROM texts WHERE item_id = 2"],
    "missing_fulltext": ["UPDATE items SET forgotten_at = NULL WHERE id = 5"],
    "stray_fulltext": ["UPDATE items SET forgotten_at = 1 WHERE id = 3"],
}
"""What comes with damage of the other kind."""


def damage(path: Path, statement: str) -> None:
    """Do it, on a connection of its own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount != 0
