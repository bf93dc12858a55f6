"""What `agora doctor` asks of the index: every kind of disagreement between files and rows, found without a change."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.unit.stores.index.library import Library, units

from agora.stores.sqlite.index.checking import index_problems, places
from agora.stores.sqlite.rules import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.stores.index.conftest import MakeLibrary


def found(library: Library) -> list[Problem]:
    with closing(sqlite3.connect(f"{library.path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        return index_problems(library.files, connection)


def filled(library: Library) -> Library:
    library.fill(units(5000, seed=1), namespaces=2)
    for number in range(5):
        library.add(units(3, seed=20 + number), lives=100.0)
    library.compact()
    library.mark(range(1, 20), forgotten=True)
    library.fill(units(2100, seed=2), namespaces=2)
    library.compact(force=False)
    library.mark(range(10, 15), forgotten=False)
    library.mark(range(30, 40), forgotten=True)
    library.fill(units(10, seed=3))
    return library


def test_a_whole_index_and_a_store_without_one_have_no_problem(make_library: MakeLibrary) -> None:
    library = make_library()
    assert found(library) == []
    library.fill(units(10, seed=9))
    assert found(library) == []
    assert found(filled(library)) == []
    assert len(library.segments()) == 2


def vector_changed(library: Library) -> None:
    library.sql("UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE id = 77) WHERE id = 1234")


def row_revived(library: Library) -> None:
    """Without a word in the journal."""
    library.sql("UPDATE items SET forgotten_at = NULL WHERE id = 5")


def row_gone(library: Library) -> None:
    library.sql("UPDATE items SET forgotten_at = 1 WHERE id = 4000")


def row_moved(library: Library) -> None:
    library.sql("UPDATE items SET namespace_id = 3 - namespace_id WHERE id = 4000")


def end_changed(library: Library) -> None:
    library.sql("UPDATE items SET expires_at = 5 WHERE id = 4000")


def passage_gone(library: Library) -> None:
    library.sql("DELETE FROM vectors WHERE passage_id = (SELECT max(id) FROM passages WHERE n = 2)")


def other_past(library: Library) -> None:
    library.sql("UPDATE generations SET hash = x'00'")


def bit_flipped(library: Library) -> None:
    path = library.segments()[0]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)


def files_gone(library: Library) -> None:
    for path in library.segments():
        path.unlink()


def state_gone(library: Library) -> None:
    (library.files / library.sql("SELECT state FROM generations")[0][0]).unlink()


@pytest.mark.parametrize(
    ("harm", "code", "told"),
    [
        (vector_changed, "index_differs", "1 rows"),
        (row_revived, "index_differs", "1 rows"),
        (row_gone, "index_differs", "1 passages in the index that the store does not have"),
        (row_moved, "index_differs", "1 rows"),
        (end_changed, "index_differs", "1 rows"),
        (passage_gone, "index_differs", "1 rows"),
        (other_past, "index_stale", "another past"),
        (bit_flipped, "index_damaged", "is damaged"),
        (files_gone, "index_damaged", "2 files"),
        (state_gone, "index_damaged", "missing"),
    ],
)
def test_each_disagreement_is_found_nothing_is_changed_and_a_rebuild_mends_it(
    make_library: MakeLibrary, harm: Callable[[Library], None], code: str, told: str
) -> None:
    library = filled(make_library())
    harm(library)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in places(library.files)}
    (problem, *rest) = found(library)
    assert problem.code == code
    assert told in problem.message
    assert "agora reindex" in problem.hint
    assert rest == []
    assert {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in places(library.files)} == before
    make_library().store.reindex()
    assert found(library) == []


def test_files_that_a_compaction_replaced_meanwhile_are_no_problem(make_library: MakeLibrary) -> None:
    library = filled(make_library())
    with closing(sqlite3.connect(f"{library.path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM items").fetchone()
        library.compact()
        assert library.left() == set()
        assert index_problems(library.files, connection) == []


def test_every_file_of_the_folder_is_a_place_to_look_into(make_library: MakeLibrary) -> None:
    library = make_library()
    assert places(library.files) == []
    filled(library)
    assert {path.suffix for path in places(library.files)} >= {".seg", ".state", ".lock"}
