from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import PATIENCE
from tests.unit.stores.damage import ALSO, DAMAGE, FATAL, damage, fill, pin

from agora.errors import StoreCorrupt
from agora.model.deadline import Deadline
from agora.model.purge import Unwanted
from agora.stores.sqlite.checks import find_problems
from agora.stores.sqlite.examine import examine
from agora.stores.sqlite.rules import KINDS, kinds_table

if TYPE_CHECKING:
    from tests.conftest import Desk


@pytest.fixture
def full(desk: Desk) -> Desk:
    """A desk with notes in every state, long ones too, in two namespaces."""
    fill(desk)
    pin(desk)
    return desk


def test_a_whole_store_has_no_problems(full: Desk) -> None:
    assert full.problems() == []


def test_an_empty_store_has_no_problems(desk: Desk) -> None:
    assert desk.problems() == []


CASES = [(code, each) for cases in (DAMAGE, FATAL, ALSO) for code, all_ in cases.items() for each in all_]


@pytest.mark.parametrize(("code", "statement"), CASES)
def test_damage_is_named(full: Desk, code: str, statement: str) -> None:
    damage(full.path, statement)
    found = {problem.code: problem for problem in full.problems()}
    assert code in found
    assert found[code].message
    assert found[code].hint


def test_every_kind_of_damage_to_rows_and_schema_has_a_test() -> None:
    files = {"file_damaged", "sql_index_damaged", "index_damaged", "index_stale", "index_differs", "unreadable"}
    assert {code for code, _ in CASES} | files == set(KINDS)
    assert {code for code in FATAL if KINDS[code].repair is not None} == set()
    assert {code for code in DAMAGE if KINDS[code].repair is None} == set()


def test_a_message_numbers_the_cases_and_names_three(full: Desk) -> None:
    full.sql("DELETE FROM savers")
    message = next(problem.message for problem in full.problems() if problem.code == "item_without_saver")
    assert message.startswith("20 notes without provenance: n_")
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


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM vectors WHERE id = 3",
        "DELETE FROM fulltext WHERE rowid = 3",
        "DELETE FROM namespace_stats",
        "DELETE FROM passages WHERE id = 3",
    ],
)
def test_the_status_tells_that_something_is_lost_without_looking_at_everything(full: Desk, statement: str) -> None:
    assert full.store.details()["conditions"] == []
    damage(full.path, statement)
    (said,) = full.store.details()["conditions"]
    assert said["code"] == "store_damaged"
    assert "doctor --repair" in said["hint"]


def test_the_status_tells_of_words_that_are_gone_with_their_statistics(full: Desk) -> None:
    for table in ("fulltext", "namespace_stats", "term_stats"):
        damage(full.path, f"DELETE FROM {table}")  # noqa: S608 - names from here
    assert [each["code"] for each in full.store.details()["conditions"]] == ["store_damaged"]


def test_metadata_that_cannot_be_read_is_an_error_that_names_the_note(full: Desk) -> None:
    kept = full.found("a title", mode="lexical")[0]
    damage(full.path, "UPDATE texts SET metadata = 'no json' WHERE title IS NOT NULL")
    for call in (lambda: full.get(kept), lambda: full.save("a title and a text", "eve", title="A title")):
        with pytest.raises(StoreCorrupt, match=kept) as caught:
            call()
        assert "doctor" in caught.value.hint


def test_a_note_without_provenance_is_an_error_that_names_it(full: Desk) -> None:
    kept = full.found("many words", mode="lexical")[0]
    damage(full.path, "DELETE FROM savers WHERE item_id = 4")
    for call in (lambda: full.get(kept), lambda: full.query("many words")):
        with pytest.raises(StoreCorrupt, match=f"{kept} has no provenance"):
            call()


def test_the_page_on_durability_lists_every_kind_of_damage() -> None:
    page = (Path(__file__).parents[3] / "docs" / "durability.md").read_text(encoding="utf-8")
    assert page.endswith("\n\n" + kinds_table()), "put `agora.stores.sqlite.rules.kinds_table()` at its end"


def test_metadata_that_looks_like_an_imports_mark_hides_no_saver_that_is_gone(desk: Desk) -> None:
    for agent in ("ann", "bob"):
        desk.save("a fact", agent, metadata={"of": {"imported": {"format": "x"}}})
    assert desk.problems() == []
    desk.sql("DELETE FROM savers WHERE n = 1")
    assert [problem.code for problem in desk.problems()] == ["saved_unlike_journal"]


def test_a_saver_whose_own_note_went_under_a_key_and_was_purged_is_no_stranger(desk: Desk) -> None:
    loose = desk.save("a fact", "bob").id
    kept = desk.save("a fact", "ann", key="k").id
    assert len(desk.note(kept).savers) == 2
    desk.forget(loose)
    assert desk.problems() == []
    purging = desk.store.purging()
    condemned = purging.condemn(Unwanted(("p",)), desk.clock.now(), Deadline(PATIENCE))
    assert purging.erase(condemned, desk.caller(), desk.clock.now(), Deadline(PATIENCE)) == (1, 1)
    assert desk.problems() == []
