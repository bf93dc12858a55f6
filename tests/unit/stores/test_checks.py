from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agora.stores.sqlite.checks import find_problems
from agora.stores.sqlite.examine import examine

if TYPE_CHECKING:
    from tests.conftest import Desk


@pytest.fixture
def full(desk: Desk) -> Desk:
    """A desk with notes in every state, long ones too, in two namespaces."""
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
    return desk


def test_a_whole_store_has_no_problems(full: Desk) -> None:
    assert full.problems() == []


def test_an_empty_store_has_no_problems(desk: Desk) -> None:
    assert desk.problems() == []


DAMAGE = {
    "no_profile": ["UPDATE encoders SET state = 'retired'"],
    "item_without_text": ["DELETE FROM texts WHERE item_id = 3"],
    "item_without_saver": ["DELETE FROM savers WHERE item_id = 4", "UPDATE savers SET n = 7 WHERE item_id = 4"],
    "item_without_passage": [
        "DELETE FROM passages WHERE item_id = 2",
        "UPDATE passages SET layout = 2 WHERE item_id = 2",
    ],
    "item_without_journal": ["UPDATE journal SET operation = 'merge' WHERE operation = 'save' AND item_id = 3"],
    "broken_succession": [
        "UPDATE items SET superseded_by = 0 WHERE id = 1",
        "UPDATE items SET superseded_by = 99 WHERE id = 1",
        "UPDATE items SET superseded_by = 1 WHERE id = 1",
        "UPDATE items SET superseded_at = NULL WHERE id = 1",
        "UPDATE items SET supersedes = 3 WHERE id = 2",
    ],
    "orphan_tag": ["UPDATE item_tags SET saver = 5 WHERE tag = 'c'"],
    "passage_without_vector": ["DELETE FROM vectors WHERE id = 3"],
    "wrong_vector": ["UPDATE vectors SET vector = zeroblob(12) WHERE id = 3"],
    "missing_fulltext": ["DELETE FROM fulltext WHERE rowid = 3", "UPDATE items SET forgotten_at = NULL WHERE id = 5"],
    "stray_fulltext": [
        "UPDATE items SET forgotten_at = 1 WHERE id = 3",
        "INSERT INTO fulltext (rowid, scope, title, body, words) VALUES (999, 'n1', '', 'stray', 1)",
        "UPDATE fulltext SET scope = 'n2' WHERE rowid = 3",
    ],
    "namespace_sequence": ["UPDATE namespace_seq SET sequence = 2", "DELETE FROM namespace_seq WHERE namespace_id = 2"],
    "orphan_payload": ["UPDATE journal_payload SET sequence = 999 WHERE sequence = 2"],
    "orphan_rows": [
        "DELETE FROM items WHERE id = 3",
        "UPDATE vectors SET passage_id = 999 WHERE id = 3",
        "DELETE FROM agents WHERE name = 'bob'",
    ],
    "content_hash": [
        "UPDATE texts SET content = content || ' ' WHERE item_id = 3",
        "UPDATE items SET content_hash = zeroblob(32) WHERE id = 3",
        "UPDATE items SET normal_hash = NULL WHERE id = 3",
    ],
    "metadata_index": [
        "DELETE FROM item_metadata",
        'UPDATE texts SET metadata = \'{"unit":"udp"}\' WHERE item_id = 2',
        "UPDATE texts SET metadata = 'no json' WHERE item_id = 2",
        "UPDATE texts SET metadata = '[]' WHERE item_id = 4",
    ],
    "journal_broken": [
        "UPDATE journal SET at = at + 1 WHERE sequence = 3",
        "DELETE FROM journal WHERE sequence = 4",
        "DELETE FROM journal WHERE sequence = (SELECT max(sequence) FROM journal)",
    ],
    "namespace_statistics": [
        "UPDATE namespace_stats SET words = words + 1",
        "UPDATE namespace_stats SET passages = passages - 1 WHERE namespace_id = 2",
        "DELETE FROM namespace_stats WHERE namespace_id = 2",
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
    ],
}


@pytest.mark.parametrize(("code", "statement"), [(code, each) for code, all_ in DAMAGE.items() for each in all_])
def test_damage_is_named(full: Desk, code: str, statement: str) -> None:
    with closing(sqlite3.connect(full.path, isolation_level=None)) as connection:
        changed = connection.execute(statement).rowcount
        assert changed != 0
    found = {problem.code: problem for problem in full.problems()}
    assert code in found
    assert found[code].message
    assert found[code].hint


def test_a_message_numbers_the_cases_and_names_three(full: Desk) -> None:
    full.sql("DELETE FROM savers")
    message = next(problem.message for problem in full.problems() if problem.code == "item_without_saver")
    assert message.startswith("10 notes without provenance: n_")
    assert message.count("n_") == 3
    assert message.endswith(", …")


@pytest.mark.parametrize(
    ("table", "codes"), [("items_time", {"file_damaged"}), ("items", {"file_damaged", "unreadable"})]
)
def test_a_page_that_was_overwritten_is_found_and_stops_no_other_check(full: Desk, table: str, codes: set[str]) -> None:
    root = full.sql("SELECT rootpage FROM sqlite_master WHERE name = ?", table)[0][0]
    full.sql("DELETE FROM journal_payload WHERE sequence = 1")
    full.sql("DELETE FROM journal WHERE sequence = 1")
    full.close()
    with full.path.open("r+b") as file:
        file.seek((root - 1) * 8192)
        file.write(b"\xff" * 64)
    assert codes | {"journal_broken"} <= {problem.code for problem in full.problems()}


def test_examining_writes_nothing_and_works_beside_a_writer(full: Desk) -> None:
    before = full.sql("SELECT max(sequence) FROM journal")
    with closing(sqlite3.connect(full.path, isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        assert examine(full.path) == []
        foreign.execute("ROLLBACK")
    assert full.sql("SELECT max(sequence) FROM journal") == before
    full.close()
    content = full.path.read_bytes()
    assert examine(full.path) == []
    assert full.path.read_bytes() == content


def test_the_check_and_the_full_text_of_sqlite_agree(full: Desk) -> None:
    """Our own walk over the index finds what SQLite's finds, on the same damage."""
    check = "INSERT INTO fulltext (fulltext) VALUES ('integrity-check')"
    full.sql(check)
    full.sql("UPDATE fulltext_content SET c1 = c2, c2 = c1 WHERE id = 3")
    with pytest.raises(sqlite3.DatabaseError):
        full.sql(check)
    assert "fulltext_damaged" in {problem.code for problem in full.problems()}


def test_problems_are_found_on_a_connection_that_may_only_read(full: Desk) -> None:
    full.sql("DELETE FROM item_metadata")
    with closing(sqlite3.connect(f"{full.path.as_uri()}?mode=ro", uri=True)) as connection:
        assert [problem.code for problem in find_problems(connection)] == ["metadata_index"]
