"""What a power cut leaves: a log that ends anywhere, index files of another moment than the database, lost renames.

Processes that die leave every byte that they wrote; a machine that loses power leaves, without `synchronous=FULL`, the
database of an earlier moment beside files that may be newer or older. The store is then the one of that moment, whole.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from tests.crash.failpoints import Point
from tests.crash.station import PATIENCE, Station, cache_agrees, index_agrees, whole
from tests.crash.victims import StartVictim

from agora.model.deadline import Deadline
from agora.model.query import Filter
from agora.stores.sqlite.store import INDEX_FOLDER

FRAME, HEADER = 24, 32
"""Bytes before each page of the log, and before the first of them."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder on a disk: `run.py test` keeps the others in memory, where nothing is ever left to be written."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def frames(log: bytes) -> list[tuple[int, bool]]:
    """Where each record of a write-ahead log ends, and whether a transaction ends with it."""
    (size,) = struct.unpack_from(">I", log, 8)
    found = []
    for start in range(HEADER, len(log) - size - FRAME + 1, size + FRAME):
        (pages,) = struct.unpack_from(">I", log, start + 4)
        found.append((start + FRAME + size, pages != 0))
    return found


class Moments:
    """One store's database, log and index files as they were at three moments: two generations, and after them."""

    def __init__(self, folder: Path) -> None:
        self.ids: list[str] = []
        self.files: dict[str, Path | None] = {"none": None}
        station = Station(folder / "source")
        self._saves(station, 6)
        station.store.compact(force=True)
        self._keep(folder, "older")
        self._saves(station, 5)
        station.forget(self.ids[1], self.ids[7])
        station.store.compact(force=True)
        self._keep(folder, "newer")
        self._saves(station, 3)
        self.main = (folder / "source" / "agora.db").read_bytes()
        self.log = (folder / "source" / "agora.db-wal").read_bytes()
        station.close()
        both = self.files["both"] = folder / "both"
        for name in ("older", "newer"):
            shutil.copytree(folder / name, both, dirs_exist_ok=True)

    def _saves(self, station: Station, number: int) -> None:
        first = len(self.ids)
        self.ids += [station.save(f"alpha words of number {n}, beta").id for n in range(first, first + number)]

    def _keep(self, folder: Path, name: str) -> None:
        self.files[name] = folder / name
        shutil.copytree(folder / "source" / INDEX_FOLDER, folder / name)

    def left(self, folder: Path, cut: int, files: str) -> Station:
        """The store that a machine finds that lost power when so much of the log was on the disk."""
        folder.mkdir()
        (folder / "agora.db").write_bytes(self.main)
        (folder / "agora.db-wal").write_bytes(self.log[:cut])
        if (kept := self.files[files]) is not None:
            shutil.copytree(kept, folder / INDEX_FOLDER)
        return Station(folder)


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> Moments:
    return Moments(tmp_path_factory.mktemp("moments"))


@pytest.mark.skipif(sys.platform == "win32", reason="the files of an open store cannot be copied there")
@pytest.mark.parametrize("files", ["none", "older", "newer", "both"])
def test_a_log_cut_at_any_record_beside_files_of_any_generation_is_a_whole_store_of_an_earlier_moment(
    moments: Moments, tmp_path: Path, files: str
) -> None:
    ends = frames(moments.log)
    transactions = [place for place, last in ends if last]
    # At the end of every transaction, in the middle of some, and once inside a record.
    inside = (ends[n][0] for n in range(3, len(ends), 19 if files == "both" else 60))
    cuts = sorted({*transactions, *inside, transactions[-1] - 100})
    seen = []
    for number, cut in enumerate(cuts):
        station = moments.left(tmp_path / str(number), cut, files)
        whole(station)
        found = [row[0] for row in station.sql("SELECT public_id FROM items ORDER BY id")]
        assert found == moments.ids[: len(found)]
        seen.append(len(found))
        if number % 4 == 0:
            # It goes on, and the next generation puts all to rights.
            station.save("alpha goes on")
            station.store.compact(force=True)
            assert station.store.details()["index"]["problem"] is None
            whole(station)
        station.close()
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, len(moments.ids))


@pytest.mark.skipif(sys.platform == "win32", reason="the files of an open store cannot be copied there")
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"\0" * path.stat().st_size),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
    ],
    ids=["holes", "a bit", "short", "empty", "gone"],
)
@pytest.mark.parametrize("ending", ["seg", "state"])
def test_an_index_file_that_the_power_cut_took_costs_time_and_no_answer(
    moments: Moments, tmp_path: Path, damage: Callable[[Path], object], ending: str
) -> None:
    folder = tmp_path / "cut"
    moments.left(folder, len(moments.log), "newer").close()
    for path in (folder / INDEX_FOLDER).glob(f"*.{ending}"):
        damage(path)
    station = Station(folder)
    whole(station)
    assert station.store.details()["index"]["problem"]
    # Unasked, as a server does it.
    assert station.store.compact(force=False) is not None
    assert station.store.details()["index"]["problem"] is None
    station.close()
    healed = Station(folder)
    whole(healed)
    assert healed.store.details()["index"]["problem"] is None
    healed.close()


@pytest.mark.parametrize("written", [False, True], ids=["in memory", "in files"])
def test_an_index_that_the_journal_was_pruned_past_loads_anew(tmp_path: Path, written: bool) -> None:
    behind, ahead = Station(tmp_path), Station(tmp_path, agent="bob")
    for number in range(5):
        behind.save(f"alpha before {number}")
    if written:
        behind.store.compact(force=True)
    index_agrees(behind)
    known = behind.found("alpha", "semantic")
    ahead.forget(known[0])
    for number in range(5):
        ahead.save(f"alpha after {number}")
    # So that a change that the index has not seen is told of nowhere any more.
    last = ahead.sql("SELECT max(sequence) FROM journal")[0][0]
    ahead.sql("DELETE FROM journal WHERE sequence < ?", last - 1)
    for station in (behind, ahead, Station(tmp_path)):
        index_agrees(station)
        cache_agrees(station)
        found = station.found("alpha", "semantic")
        assert (len(found), known[0] in found) == (9, False)
        station.store.compact(force=True)
        assert station.store.details()["index"]["problem"] is None
        index_agrees(station)
        station.close()


def test_numbers_once_given_go_up_after_deaths_and_none_is_left_out_of_the_journal(
    start: StartVictim, tmp_path: Path
) -> None:
    highest: dict[str, int] = {}
    ids: set[str] = set()
    for number, point in enumerate(
        [Point("INSERT INTO journal ", when="after"), Point("COMMIT", when="after"), Point("COMMIT")]
    ):
        victim = start(f"victim{number}")
        victim.ask("listen")
        victim.ask("open")
        ids.add(victim.ask("save", f"alpha of round {number}"))
        victim.dies(point, "save", f"alpha in flight {number}, long enough to be cut in several passages")
        station = Station(tmp_path)
        ids.add(station.save(f"alpha after round {number}").id)
        whole(station)
        given = dict(station.sql("SELECT name, seq FROM sqlite_sequence"))
        for table, sequence in given.items():
            (last,) = station.sql(f"SELECT ifnull(max(rowid), 0) FROM {table}")[0]  # noqa: S608 - a table's name
            assert highest.get(table, 0) <= last <= sequence
        highest = given
        station.close()
    assert len(ids) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="the files of an open store cannot be copied there")
def test_at_full_what_is_acknowledged_is_in_the_files_of_that_very_moment(start: StartVictim, tmp_path: Path) -> None:
    victim = start()
    victim.ask("open", {"synchronous": "full"})
    for number in range(12):
        public_id = victim.ask("save", f"alpha words of number {number}")
        copy = tmp_path / f"copy{number}"
        copy.mkdir()
        # As a machine finds them that lost power now: no shared memory, no process.
        for name in ("agora.db", "agora.db-wal"):
            shutil.copy(tmp_path / name, copy / name)
        station = Station(copy)
        assert station.notes.get((public_id,), station.caller(), Deadline(PATIENCE)).notes
        assert public_id in station.found("alpha", "semantic")
        assert public_id in station.found(f"number {number}", "lexical")
        whole(station)
        station.close()


CACHESTAT = 451
"""The system call's number, the same on every architecture of Linux, since 6.5."""


def unwritten(path: Path) -> int:
    """Pages of a file that the system holds in memory alone; skips the test where it does not tell."""
    if sys.platform != "linux":
        pytest.skip("only Linux tells which pages are on the disk")
    libc = ctypes.CDLL(None, use_errno=True)
    whole_file, answer = struct.pack("QQ", 0, 0), ctypes.create_string_buffer(40)
    fd = os.open(path, os.O_RDONLY)
    try:
        if libc.syscall(CACHESTAT, fd, ctypes.create_string_buffer(whole_file, 16), answer, 0):
            pytest.skip(f"this system does not tell which pages are on the disk: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(fd)
    cached, dirty, under_way, *_ = struct.unpack("5Q", answer.raw)
    assert cached or not path.stat().st_size
    return int(dirty + under_way)


@pytest.mark.parametrize("synchronous", ["normal", "full"])
def test_a_save_is_on_the_disk_before_its_acknowledgement_at_full_and_may_be_later_at_normal(
    start: StartVictim, tmp_path: Path, synchronous: str
) -> None:
    victim = start()
    victim.ask("open", {"synchronous": synchronous})
    left = []
    for number in range(10):
        victim.ask("save", f"alpha words of number {number}")
        left.append(unwritten(tmp_path / "agora.db-wal"))
    if synchronous == "full":
        assert not any(left)
    elif not any(left):
        pytest.skip("this file system writes everything at once")


def test_index_files_are_on_the_disk_before_the_database_names_them(start: StartVictim, tmp_path: Path) -> None:
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    for number in range(5):
        victim.ask("save", f"alpha words of number {number}")
    victim.dies(Point("BEGIN IMMEDIATE"), "compact")
    files = [path for path in (tmp_path / INDEX_FOLDER).iterdir() if path.suffix in {".seg", ".state"}]
    assert len(files) == 2
    assert [unwritten(path) for path in files] == [0, 0]


def test_a_copy_of_yesterday_that_is_put_back_under_the_files_of_today_answers_as_yesterday(tmp_path: Path) -> None:
    station = Station(tmp_path)
    old = [station.save(f"alpha words of yesterday {number}").id for number in range(4)]
    station.store.compact(force=True)
    station.close()
    yesterday = (tmp_path / "agora.db").read_bytes()
    station = Station(tmp_path)
    new = [station.save(f"alpha words of today {number}").id for number in range(4)]
    station.forget(old[0])
    station.store.compact(force=True)
    # The cache knows today's answers.
    cache_agrees(station)
    station.close()
    (tmp_path / "agora.db").write_bytes(yesterday)
    station = Station(tmp_path)
    whole(station)
    assert sorted(station.found("alpha", "semantic")) == sorted(old)
    # The same numbers are given again, to other rows.
    other = [station.save(f"alpha words of another today {number}").id for number in range(6)]
    whole(station)
    assert sorted(station.found("alpha", "semantic")) == sorted([*old, *other])
    assert not set(new) & set(station.found("alpha", "lexical"))
    station.close()


def test_a_view_of_before_a_death_does_not_move(start: StartVictim, tmp_path: Path) -> None:
    station = Station(tmp_path)
    station.save("alpha words of before")
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    probe = station.encoder.encode("alpha", Deadline(PATIENCE))
    with station.store.read(Deadline(PATIENCE)) as reading:
        among = reading.among(Filter(("p",)))
        before = reading.vectors.nearest(probe, among, 10)
        victim.dies(Point("COMMIT", when="after"), "save", "alpha words of the dying")
        after = reading.vectors.nearest(probe, among, 10)
        assert np.array_equal(before.rows, after.rows)
        assert np.array_equal(before.scores, after.scores)
    assert len(station.found("alpha", "semantic")) == 2
    whole(station)
    station.close()
