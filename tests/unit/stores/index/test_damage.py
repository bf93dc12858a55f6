"""Whatever happens to the files: answers stay right, the problem is named, and the next compaction mends it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.unit.stores.index.library import Library, soon, units

from agora.errors import StoreCorrupt
from agora.model.instants import NEVER
from agora.ports.vector_index import Among, Passages
from agora.stores.sqlite.index.layout import PAGE
from agora.stores.sqlite.index.marks import Marks
from agora.stores.sqlite.index.tail import loaded
from agora.stores.sqlite.index.view import IndexView, Part
from agora.stores.sqlite.kernels import choose_kernel

if TYPE_CHECKING:
    from tests.unit.stores.index.conftest import MakeLibrary

Harm = Callable[[Library], object]


def filled(library: Library) -> Library:
    """A file, some of it dead, and a tail that is worth a file."""
    library.fill(units(900, seed=1), namespaces=2)
    library.compact()
    library.mark(range(10, 60), forgotten=True)
    library.fill(units(2100, seed=3), namespaces=2)
    return library


def state(library: Library) -> Path:
    ((name,),) = library.sql("SELECT state FROM generations")
    return library.files / str(name)


def cut(length: int) -> Harm:
    def harm(library: Library) -> None:
        path = library.segments()[0]
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[: length if length >= 0 else len(content) + length])

    return harm


def flip(which: Callable[[Library], Path], at: int) -> Harm:
    def harm(library: Library) -> None:
        path = which(library)
        content = bytearray(path.read_bytes())
        content[at % len(content)] ^= 16
        path.unlink()
        path.write_bytes(content)

    return harm


def first(library: Library) -> Path:
    return library.segments()[0]


def remove(which: Callable[[Library], Path]) -> Harm:
    return lambda library: which(library).unlink()


def foreign(library: Library) -> None:
    """A file of another store, made of the same vectors."""
    stranger = Library(library.folder / "elsewhere", clock=library.clock)
    stranger.fill(units(900, seed=1), namespaces=2)
    stranger.compact()
    (path,) = stranger.segments()
    stranger.close()
    mine = first(library)
    mine.unlink()
    shutil.copy(path, mine)


def older_state(library: Library) -> None:
    """The state of an earlier generation under the name of this one."""
    present = state(library)
    kept = present.read_bytes()
    library.mark(range(100, 110), forgotten=True)
    library.compact(force=True)
    now = state(library)
    now.unlink()
    now.write_bytes(kept)


def other_past(library: Library) -> None:
    library.sql("UPDATE generations SET hash = randomblob(32)")


def prune(library: Library) -> None:
    """The journal loses everything but its last change."""
    library.sql("DELETE FROM journal WHERE sequence < (SELECT max(sequence) FROM journal)")


def registered_wrong(library: Library) -> None:
    library.sql("UPDATE segments SET passages = passages + 1")


def no_folder(library: Library) -> None:
    shutil.rmtree(library.files)


HARMS: dict[str, tuple[Harm, str]] = {
    **{
        f"cut to {length}": (cut(length), "bytes instead of")
        for length in (0, 1, 8, 100, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, -PAGE, -1)
    },
    **{f"bit at {at}": (flip(first, at), "damaged") for at in (9, 17, 60, 170, PAGE + 5, 5 * PAGE, 70_000, -1)},
    "bit at 0": (flip(first, 0), "no index file"),
    "missing": (remove(first), "missing"),
    "state missing": (remove(state), "missing"),
    **{f"state bit at {at}": (flip(state, at), "damaged") for at in (0, 10, 50, 150, -1)},
    "foreign": (foreign, "another store"),
    "older state": (older_state, "damaged"),
    "another past": (other_past, "journal"),
    "pruned": (prune, "journal"),
    "registered wrong": (registered_wrong, "not"),
    "no folder": (no_folder, "missing"),
}


@pytest.mark.parametrize("name", HARMS)
def test_a_process_that_finds_it_harmed_answers_right_says_so_and_mends_it(
    make_library: MakeLibrary, name: str
) -> None:
    harm, told = HARMS[name]
    before = filled(make_library())
    before.is_right()
    harm(before)
    library = make_library()
    library.is_right()
    problem = library.problem()
    assert problem is not None
    assert told in problem
    # It is worth mending unasked.
    done = library.compact(force=False)
    assert done is not None
    assert library.problem() is None
    library.is_right()
    assert library.left() == set()
    fresh = make_library()
    fresh.is_right()
    assert fresh.problem() is None
    assert fresh.index.details()["bytes_mapped"] > 0
    # Who had the old files open all the time goes over to the new ones.
    before.is_right()
    assert before.problem() is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("written", [False, True], ids=["from the rows", "in the tail"])
def test_a_vector_that_is_no_row_of_numbers_is_named_and_never_left_out(
    make_library: MakeLibrary, value: float, written: bool
) -> None:
    library = make_library()
    library.fill(units(300, seed=1))
    if written:
        library.compact()
        library.is_right()
    vectors = units(3, seed=2)
    library.add(vectors)
    vectors[1, 7] = value
    library.sql("UPDATE vectors SET vector = ? WHERE id = 302", vectors[1].tobytes())
    for each in (library, make_library()):
        with pytest.raises(StoreCorrupt, match="no row of numbers") as caught, each.store.read(soon()):
            raise AssertionError("it was answered")
        assert "agora doctor" in caught.value.hint
    library.sql("DELETE FROM vectors WHERE id = 302")
    library.is_right()


def test_numbers_lost_in_a_file_that_was_found_whole_are_an_error_and_no_shorter_answer() -> None:
    vectors = units(60, seed=1)
    rows = np.repeat(np.arange(20, dtype=np.int64), 3)
    zeros, ends = np.zeros(60, dtype=np.int64), np.full(60, NEVER)
    numbers = np.tile(np.arange(3, dtype=np.int64), 20)
    for gone in (slice(0, 1), slice(0, 60)):
        damaged = vectors.copy()
        damaged[gone, 3] = np.nan
        part = Part(loaded(Passages(rows, numbers, zeros, ends, damaged)), Marks.of(60, None, None))
        view = IndexView([part], choose_kernel(), 0)
        with pytest.raises(StoreCorrupt, match="no numbers") as caught:
            view.cosines(vectors[0], np.arange(20, dtype=np.int64))
        assert "agora doctor" in caught.value.hint
    with pytest.raises(StoreCorrupt, match="no numbers"):
        view.nearest(vectors[0], Among((0,), 0), 3)


@pytest.mark.skipif(os.name == "nt", reason="Windows refuses to cut a file that is open")
def test_a_file_that_is_cut_short_while_it_is_in_use_is_named(make_library: MakeLibrary) -> None:
    library = make_library(memory_mb=0)
    library.fill(units(900, seed=1))
    library.compact()
    library.is_right()
    os.truncate(first(library), 3 * PAGE)
    with pytest.raises(StoreCorrupt, match="cut short while it was in use") as caught:
        library.is_right()
    assert "agora reindex" in caught.value.hint
    library.store.reindex()
    library.is_right()


def test_a_process_that_has_applied_nothing_yet_notices_that_the_journal_lost_its_beginning(
    make_library: MakeLibrary,
) -> None:
    one, other = make_library(), make_library()
    other.store.reindex()
    for each in (one, other):
        each.is_right()
    one.fill(units(50, seed=1))
    one.sql("DELETE FROM journal WHERE sequence <= 40")
    for each in (one, other, make_library()):
        each.is_right()


def test_files_in_each_other_s_place_are_noticed(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(5000, seed=1))
    library.compact()
    library.fill(units(2048, seed=2))
    library.compact(force=False)
    one, other = library.segments()
    content = one.read_bytes(), other.read_bytes()
    for path in (one, other):
        path.unlink()
    one.write_bytes(content[1])
    other.write_bytes(content[0])
    fresh = make_library()
    fresh.is_right()
    assert "bytes instead of" in (fresh.problem() or "")
    fresh.compact(force=False)
    fresh.is_right()
    assert fresh.problem() is None


def test_a_file_of_a_copy_of_the_store_is_noticed_by_its_sum(tmp_path: Path, make_library: MakeLibrary) -> None:
    library = make_library()
    with closing(sqlite3.connect(library.path)) as source:
        (tmp_path / "copy").mkdir()
        with closing(sqlite3.connect(tmp_path / "copy" / "agora.db")) as target:
            source.backup(target)
    copy = make_library(tmp_path / "copy")
    # The same identity and the same size: nothing but the content differs.
    for each, seed in ((library, 1), (copy, 2)):
        each.fill(units(700, seed=seed))
        each.compact()
    (mine,), (its,) = library.segments(), copy.segments()
    mine.unlink()
    shutil.copy(its, mine)
    fresh = make_library()
    fresh.is_right()
    assert "damaged" in (fresh.problem() or "")
    fresh.compact(force=False)
    fresh.is_right()


def test_a_backup_that_is_put_back_is_followed_whatever_its_files(tmp_path: Path, make_library: MakeLibrary) -> None:
    library = filled(make_library())
    library.compact(force=False)
    library.is_right()
    backup = tmp_path / "backup.db"
    with (
        closing(sqlite3.connect(library.path)) as source,
        closing(sqlite3.connect(backup)) as target,
    ):
        source.backup(target)
    # Later the files are others, and the journal goes on otherwise.
    library.mark(range(200, 300), forgotten=True)
    library.fill(units(300, seed=5))
    library.compact()
    library.is_right()
    with (
        closing(sqlite3.connect(backup)) as source,
        closing(sqlite3.connect(library.path, timeout=30)) as target,
    ):
        source.backup(target)
    library.is_right()
    assert "missing" in (library.problem() or "")
    library.fill(units(20, seed=6))
    library.is_right()
    fresh = make_library()
    fresh.is_right()
    assert "missing" in (fresh.problem() or "")
    library.compact(force=False)
    for each in (library, fresh, make_library()):
        each.is_right()
        assert each.problem() is None


def test_a_backup_whose_files_are_still_there_uses_them(tmp_path: Path, make_library: MakeLibrary) -> None:
    library = filled(make_library())
    library.compact()
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(library.path)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    library.fill(units(300, seed=5))
    library.is_right()
    with closing(sqlite3.connect(backup)) as source, closing(sqlite3.connect(library.path, timeout=30)) as target:
        source.backup(target)
    library.fill(units(280, seed=6))
    library.is_right()
    assert library.problem() is None
    assert library.index.details()["in_tail"] == 280


def test_vectors_that_a_repair_made_anew_make_the_files_those_of_another_store(make_library: MakeLibrary) -> None:
    library = filled(make_library())
    library.compact()
    library.is_right()
    library.sql("INSERT INTO meta VALUES ('revectored', 's_01NEW')")
    vector = units(1, seed=77)[0].tobytes()
    library.sql("UPDATE vectors SET vector = ? WHERE id = 700", vector)
    library.is_right()
    assert "another store" in (library.problem() or "")
    library.compact(force=False)
    library.is_right()
    assert library.problem() is None


def test_damage_under_a_running_process_is_noticed_by_the_next_one_in_the_same_run_of_the_machine(
    make_library: MakeLibrary,
) -> None:
    library = filled(make_library())
    library.compact()
    assert make_library().problem() is None
    path = library.segments()[0]
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.unlink()
    path.write_bytes(content)
    fresh = make_library()
    fresh.is_right()
    assert "damaged" in (fresh.problem() or "")
