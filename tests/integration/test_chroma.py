"""Chroma as the vector index, in this process: real files, damaged and put back in every way we can think of."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.chroma_shelf import (
    CALLER,
    DIMENSION,
    NOTES,
    PASSAGES,
    Shelf,
    add,
    agrees,
    asked,
    fill,
    forget,
    nearest,
    rebuilt,
    restore,
    soon,
)

from agora.errors import ConfigError, IndexUnavailable
from agora.memory.notes import Notes
from agora.model.deadline import Deadline
from agora.model.query import Filter
from agora.stores.boot import boot_id
from agora.stores.chroma.index import ChromaIndex
from agora.stores.sqlite.source import SqliteSource
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, InMemoryIndex, ManualClock, SilentLog

chromadb = pytest.importorskip("chromadb")

MARK = "agora-index.json"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """A store with an index that was closed in order; tests work on copies."""
    shelf = Shelf(tmp_path_factory.mktemp("full"), ManualClock())
    store = shelf.open()
    fill(store)
    agrees(store)
    store.close()
    return shelf


@pytest.fixture
def shelf(full: Shelf, tmp_path: Path) -> Shelf:
    """A copy of the full one."""
    return full.copied(tmp_path / "home")


@pytest.fixture
def empty(tmp_path: Path) -> Shelf:
    """A folder with nothing in it."""
    (tmp_path / "empty").mkdir()
    return Shelf(tmp_path / "empty", ManualClock())


@pytest.fixture
def open_store() -> Iterator[Callable[[SqliteStore], SqliteStore]]:
    """Closes what it is given."""
    opened: list[SqliteStore] = []

    def take(store: SqliteStore) -> SqliteStore:
        opened.append(store)
        return store

    yield take
    for store in opened:
        store.close()


Take = Callable[[SqliteStore], SqliteStore]


def graph(home: Path, name: str) -> Path:
    (found,) = (home / "chroma").glob(f"*/{name}")
    return found


def cut(path: Path, part: float = 0.5) -> None:
    os.truncate(path, int(path.stat().st_size * part))


def garble(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff\x5a" * 32)


def test_an_index_that_was_closed_in_order_is_used_as_it_is(shelf: Shelf, open_store: Take) -> None:
    for _ in range(2):
        store = open_store(shelf.open())
        agrees(store)
        assert rebuilt(store) is None
        store.close()


def test_a_copy_of_the_folder_is_used_as_it_is_whatever_its_times(shelf: Shelf, open_store: Take) -> None:
    for path in (shelf.home / "chroma").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    store = open_store(shelf.open())
    agrees(store)
    assert rebuilt(store) is None


DAMAGE: dict[str, Callable[[Path], object]] = {
    "database cut short": lambda home: cut(home / "chroma/chroma.sqlite3"),
    "database empty": lambda home: cut(home / "chroma/chroma.sqlite3", 0),
    "database missing": lambda home: (home / "chroma/chroma.sqlite3").unlink(),
    "database garbled": lambda home: garble(home / "chroma/chroma.sqlite3", 20_000),
    # Chroma itself ends the process at these two, and finds a part of the notes with the next two.
    "vectors garbled": lambda home: garble(graph(home, "data_level0.bin"), 4_000),
    "header cut short": lambda home: cut(graph(home, "header.bin")),
    "graph missing": lambda home: shutil.rmtree(graph(home, "header.bin").parent),
    "ids missing": lambda home: graph(home, "index_metadata.pickle").unlink(),
    "vectors missing": lambda home: graph(home, "data_level0.bin").unlink(),
    "links cut short": lambda home: cut(graph(home, "link_lists.bin")),
    "mark missing": lambda home: (home / "chroma" / MARK).unlink(),
    "mark cut short": lambda home: cut(home / "chroma" / MARK),
    "mark of nothing": lambda home: (home / "chroma" / MARK).write_text("[]"),
    "mark of a later format": lambda home: (home / "chroma" / MARK).write_text('{"format": 99}'),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_is_noticed_and_the_index_built_anew(shelf: Shelf, open_store: Take, name: str) -> None:
    DAMAGE[name](shelf.home)
    store = open_store(shelf.open())
    agrees(store)
    assert rebuilt(store)
    assert store.index.details()["problem"] is None


def test_the_status_tells_why_an_index_was_built_anew(shelf: Shelf, open_store: Take) -> None:
    cut(shelf.home / "chroma/chroma.sqlite3")
    store = open_store(shelf.open())
    notes = Notes(store, FakeEncoder(DIMENSION), shelf.clock, SilentLog(), model_seconds=5)
    assert "rebuilt" not in notes.status(CALLER, soon())["index"]
    agrees(store)
    assert "not as it was left" in notes.status(CALLER, soon())["index"]["rebuilt"]


@pytest.mark.parametrize("name", ["database cut short", "vectors garbled", "ids missing", "graph missing"])
def test_damage_is_noticed_after_a_process_that_died_too(shelf: Shelf, open_store: Take, name: str) -> None:
    _as_if_it_died(shelf, "open")
    DAMAGE[name](shelf.home)
    store = open_store(shelf.open())
    agrees(store)
    assert rebuilt(store)


def flip(path: Path) -> None:
    """Another bit, in a file of the same size and time."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.skipif(boot_id() is None, reason="this system does not tell one start of the machine from another")
def test_after_a_start_of_the_machine_only_what_has_a_checksum_is_believed(shelf: Shelf, open_store: Take) -> None:
    path = shelf.home / "chroma" / MARK
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot": "before"}))
    store = open_store(shelf.open())
    agrees(store)
    assert rebuilt(store) is None
    store.close()
    # It holds for this start, too.
    assert json.loads(path.read_text())["boot"] == boot_id()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot": "before"}))
    flip(graph(shelf.home, "data_level0.bin"))
    store = open_store(shelf.open())
    agrees(store)
    assert "not as it was left" in str(rebuilt(store))
    store.close()
    _as_if_it_died(shelf, "open", boot="before")
    store = open_store(shelf.open())
    agrees(store)
    assert "started anew" in str(rebuilt(store))


def test_files_that_ended_the_process_that_opened_them_are_not_opened_again(shelf: Shelf, open_store: Take) -> None:
    _as_if_it_died(shelf, "opening")
    store = open_store(shelf.open())
    agrees(store)
    assert "did not get through" in str(rebuilt(store))


def test_a_database_that_is_damaged_while_it_is_used_is_built_anew(shelf: Shelf, open_store: Take) -> None:
    store = open_store(shelf.open())
    agrees(store)
    cut(shelf.home / "chroma/chroma.sqlite3", 0)
    add(store, 5_000)
    agrees(store)
    assert rebuilt(store)


def test_the_index_of_another_store_is_never_asked(shelf: Shelf, empty: Shelf, open_store: Take) -> None:
    shutil.copytree(shelf.home / "chroma", empty.home / "chroma")
    other = open_store(empty.open())
    fill(other, 30, first=900)
    agrees(other)
    assert "another store" in str(rebuilt(other))


@pytest.mark.parametrize("later", [0, 2, 9])
def test_an_index_that_is_ahead_of_a_backup_that_was_put_back_is_never_believed(
    shelf: Shelf, open_store: Take, later: int
) -> None:
    store = open_store(shelf.open())
    first, *_ = fill(store, 3, first=2_000)
    store.close()
    backup = (shelf.home / "agora.db").read_bytes()
    store = open_store(shelf.open())
    forget(store, first)
    fill(store, 3, first=3_000)
    agrees(store)
    store.close()
    for end in ("-wal", "-shm"):
        (shelf.home / f"agora.db{end}").unlink(missing_ok=True)
    (shelf.home / "agora.db").write_bytes(backup)
    # The past that Chroma knows has a forgotten note and three more; the present may have passed its sequence or not.
    store = open_store(shelf.open())
    fill(store, later, first=4_000)
    for number in range(6):
        agrees(store)
        add(store, 5_000 + number)
    agrees(store)
    assert "another past" in str(rebuilt(store))


def test_a_backup_that_is_put_back_under_an_open_index_is_noticed_at_once(shelf: Shelf, open_store: Take) -> None:
    store = open_store(shelf.open())
    (gone,) = fill(store, 1, first=2_000)
    forget(store, gone)
    agrees(store)
    with closing(sqlite3.connect(shelf.home / "agora.db")) as live, closing(sqlite3.connect(":memory:")) as backup:
        live.backup(backup)
        fill(store, 3, first=3_000)
        agrees(store)
        backup.backup(live)
    # Chroma knows of three notes that never were, and nothing of the one that comes back.
    restore(store, gone)
    agrees(store)
    assert "another past" in str(rebuilt(store))


def test_a_view_from_before_the_index_was_opened_is_answered_from_its_own_snapshot(
    shelf: Shelf, open_store: Take
) -> None:
    store = open_store(shelf.open())
    with store.read(soon()) as older:
        ids = fill(store, 20, first=2_000)
        forget(store, *ids[:5])
        agrees(store)
        plain = open_store(shelf.open(InMemoryIndex()))
        where = older.among(Filter(("p",)))
        found = older.vectors.nearest(asked(1), where, 10_000)
        assert len(found.rows) == NOTES
        assert older.vectors.size() == NOTES * PASSAGES
        with plain.read(soon()) as newer:
            everything = newer.vectors.nearest(asked(1), where, 10_000)
            assert set(found.rows.tolist()) < set(everything.rows.tolist())


def test_views_of_many_ages_each_keep_their_own_snapshot(empty: Shelf, open_store: Take) -> None:
    store = open_store(empty.open())
    fill(store, 40, passages=2)
    ids = fill(store, 20, first=500, passages=2)
    agrees(store)
    stop, wrong = threading.Event(), list[str]()

    def look() -> None:
        while not stop.is_set():
            with store.read(soon()) as reading:
                where = reading.among(Filter(("p",)))
                live = reading.counts(["p"])["notes"]["live"]
                for _ in range(5):
                    found = len(reading.vectors.nearest(asked(1), where, 10_000).rows)
                    if found != live:
                        wrong.append(f"{found} of {live}")

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        (forget if number % 2 else restore)(store, *ids)
        add(store, 9_000 + number, 2)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    agrees(store)


def test_a_build_stops_at_the_deadline_and_goes_on_with_the_next_call(empty: Shelf, open_store: Take) -> None:
    store = open_store(empty.open())
    fill(store, 400)
    told = list[str]()
    for _ in range(200):
        try:
            nearest(store, deadline=Deadline(0.25))
        except IndexUnavailable as error:
            told.append(f"{error.message}; {error.hint}")
        else:
            break
    assert all("lexical" in line for line in told)
    done = [int(line.split(": ")[1].split()[0]) for line in told if "is being built" in line]
    assert done == sorted(done)
    assert len(set(done)) > 1
    agrees(store)
    assert rebuilt(store) == "there was none"


def test_a_purge_leaves_no_byte_in_any_file_of_the_folder(shelf: Shelf, open_store: Take) -> None:
    store = open_store(shelf.open())
    # Chroma's database has each id right behind a number in hexadecimal: `…1` and `51:0` must not look like `151:0`.
    far = "UPDATE sqlite_sequence SET seq = 100000 WHERE name = 'items'"
    store._database.write(lambda connection: connection.execute(far).rowcount, soon())
    wanted = fill(store, 3, first=7_000)
    agrees(store)
    with store.source(soon()) as source:
        source.begin()
        rows = source.changed(source.head - 3).rows
        vectors = source.passages(rows).vectors
    client = chromadb.PersistentClient(path=str(shelf.home / "chroma"), settings=_settings(store))
    kept = client.get_collection("knowledge", embedding_function=None).get(
        where={"row": {"$in": rows.tolist()}}, include=["embeddings"]
    )
    client.close()
    samples = {vector.astype("<f4").tobytes()[:64] for vector in (*vectors, *np.asarray(kept["embeddings"], "<f4"))}
    samples |= {each.encode() for each in kept["ids"]}
    assert _found_in(shelf.home / "chroma", samples)
    forget(store, *wanted)
    agrees(store)
    # A tombstone is not enough: Chroma keeps what it deletes.
    assert _found_in(shelf.home / "chroma", samples)
    store.index.purge(store._maintaining, rows)
    assert _found_in(shelf.home / "chroma", samples) == set()
    agrees(store)
    before = (shelf.home / "chroma" / MARK).read_text()
    store.index.purge(store._maintaining, rows)
    assert json.loads((shelf.home / "chroma" / MARK).read_text())["collection"] == json.loads(before)["collection"]


def test_a_compaction_drops_dead_nodes_while_others_search_and_save(shelf: Shelf, open_store: Take) -> None:
    store = open_store(shelf.open(shelf.index(dead=0.2)))
    ids = fill(store, NOTES, first=500)
    agrees(store)
    forget(store, *ids[:140])
    agrees(store)
    (before,) = (shelf.home / "chroma").glob("*-*-*-*")
    done, errors = list[object](), list[BaseException]()

    def compact() -> None:
        try:
            while not done:
                done.extend(filter(None, [store.compact(force=False)]))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    thread = threading.Thread(target=compact)
    thread.start()
    number = 0
    while thread.is_alive():
        number += 1
        add(store, 8_000 + number)
        forget(store, *ids[140 + number % 5 : 141 + number % 5])
        restore(store, *ids[140 + number % 3 : 141 + number % 3])
        nearest(store, number)
    thread.join()
    assert errors == []
    assert isinstance(done[0], dict)
    assert done[0]["dropped"] >= 140 * PASSAGES
    assert not before.exists()
    agrees(store)
    assert rebuilt(store) is None
    store.close()
    store = open_store(shelf.open())
    agrees(store)
    assert rebuilt(store) is None
    assert store.index.details()["dead"] < 100


def test_without_enough_dead_nodes_there_is_nothing_to_compact(shelf: Shelf, open_store: Take) -> None:
    store = open_store(shelf.open())
    assert store.compact(force=False) is None
    agrees(store)
    assert store.compact(force=False) is None
    assert store.compact(force=True) is None


def test_a_compaction_that_was_cut_short_leaves_the_index_as_it_was(shelf: Shelf, open_store: Take) -> None:
    segment = graph(shelf.home, "header.bin").parent.name
    stale = shelf.home / "chroma" / "00000000-0000-4000-8000-000000000000"
    stale.mkdir()
    (stale / "header.bin").write_bytes(b"half a file")
    _as_if_it_died(shelf, "writing", keep=[segment])
    store = open_store(shelf.open())
    agrees(store)
    assert rebuilt(store) is None
    assert not stale.exists()


def test_a_foreign_database_is_neither_read_nor_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    theirs = chromadb.PersistentClient(path=str(folder), settings=chromadb.config.Settings(anonymized_telemetry=False))
    theirs.create_collection("knowledge", embedding_function=None)
    theirs.close()
    before = (folder / "chroma.sqlite3").read_bytes()
    with pytest.raises(ConfigError, match="did not make"):
        ChromaIndex(folder)
    assert (folder / "chroma.sqlite3").read_bytes() == before


def test_other_files_in_the_folder_stay(shelf: Shelf, open_store: Take) -> None:
    (shelf.home / "chroma" / "notes.txt").write_text("mine")
    cut(shelf.home / "chroma/chroma.sqlite3")
    agrees(open_store(shelf.open()))
    assert (shelf.home / "chroma" / "notes.txt").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_named_and_the_notes_stay_readable(empty: Shelf, open_store: Take) -> None:
    (empty.home / "chroma").write_text("a file where the folder should be")
    store = open_store(empty.open())
    (public_id,) = fill(store, 1)
    with pytest.raises(IndexUnavailable, match="chroma"):
        nearest(store)
    assert store.index.details()["problem"]
    with store.read(soon()) as reading:
        assert public_id in reading.by_id([public_id], ["p"])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_the_files_are_the_users_alone_whatever_the_umask(empty: Shelf, open_store: Take) -> None:
    before = os.umask(0o022)
    try:
        store = open_store(empty.open())
        fill(store)
        agrees(store)
    finally:
        os.umask(before)
    folder = empty.home / "chroma"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


class Narrow:
    """A source that does not show everything: what is found, Chroma has named."""

    def __init__(self, source: SqliteSource) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        assert name != "everything", "the index was searched without Chroma"
        return getattr(self._source, name)


def test_the_nearest_are_found_without_a_look_at_every_row(empty: Shelf, open_store: Take) -> None:
    store, plain = open_store(empty.open()), open_store(empty.open(InMemoryIndex()))
    fill(store, 250)
    for number in range(50):
        add(store, 20_000 + number, namespace="small")
    agrees(store)
    index, hits, tries = empty.index(), 0, 60
    with plain.read(soon()) as reading:
        for seed in range(tries):
            # The second namespace is too small to come up among the nearest of all.
            where, vector = reading.among(Filter(("p" if seed % 2 else "small",))), asked(seed)
            with store.source(soon()) as source, index.follow(Narrow(source), soon()) as view:
                found = view.nearest(vector, where, 10).rows
            hits += len(np.intersect1d(found, reading.vectors.nearest(vector, where, 10).rows))
    index.close()
    assert hits / (10 * tries) >= 0.99


def _as_if_it_died(shelf: Shelf, state: str, **changes: object) -> None:
    """Make the mark that of a process that was killed."""
    path = shelf.home / "chroma" / MARK
    mark = json.loads(path.read_text())
    del mark["files"]["chroma.sqlite3"]
    path.write_text(json.dumps(mark | {"state": state} | changes))


def _settings(store: SqliteStore) -> object:
    return store.index._engine._follower.client._client.get_settings()  # type: ignore[attr-defined]


def _found_in(folder: Path, samples: set[bytes]) -> set[bytes]:
    content = b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return {sample for sample in samples if sample in content}
