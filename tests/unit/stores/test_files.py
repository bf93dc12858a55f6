"""What is at the store's path, and what becomes of it while the store is open."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agora.errors import AgoraError, StoreCorrupt, StoreUnavailable, StoreVersion
from agora.model.deadline import Deadline
from agora.stores.sqlite.migrations import LATEST

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

no_deleting = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
SIDE_FILES = ("-wal", "-shm")


def side(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def laid() -> bool:
    """The store makes its own files: how it does so is tested here."""
    return False


def test_a_new_store_has_its_pragmas(desk: Desk) -> None:
    assert desk.sql("PRAGMA journal_mode") == [("wal",)]
    assert desk.sql("PRAGMA page_size") == [(8192,)]
    assert desk.sql("PRAGMA auto_vacuum") == [(2,)]
    assert desk.sql("PRAGMA user_version") == [(LATEST,)]
    with desk.store._database.read(Deadline(5)) as connection:
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)


def test_synchronous_can_be_full(make_desk: MakeDesk) -> None:
    assert make_desk(synchronous="full").store.details()["synchronous"] == "full"


def test_details_tell_of_the_file(desk: Desk) -> None:
    desk.save("x")
    details = desk.store.details()
    assert details["path"] == str(desk.path)
    assert details["sequence"] == 1
    assert details["schema"] == LATEST
    assert details["bytes"]["wal"] > 0
    assert details["bytes"]["database"] == desk.path.stat().st_size


def test_a_folder_is_made_for_its_owner_alone(make_desk: MakeDesk, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_desk(folder).save("x")
    if os.name == "posix":
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["with space", "数据", "it's", "100%", "a?b=c#d", 'q;uote"d'])
def test_a_folder_may_have_any_name(make_desk: MakeDesk, tmp_path: Path, name: str) -> None:
    if os.name == "nt" and set(name) & set('?"'):
        pytest.skip("no such names there")
    desk = make_desk(tmp_path / name)
    kept = desk.save("note").id
    desk.close()
    assert make_desk(tmp_path / name).found("note") == [kept]


def test_a_closed_store_leaves_its_file_and_the_one_to_lock_and_says_so(desk: Desk) -> None:
    desk.save("x")
    desk.close()
    desk.close()
    assert files(desk.folder) == ["agora.db", "agora.lock"]
    for call in (lambda: desk.save("y"), lambda: desk.found("x"), lambda: desk.forget("n_x")):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()


def test_a_store_of_a_later_release_is_refused_and_left_alone(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    desk.save("x")
    desk.close()
    desk.sql(f"PRAGMA user_version = {LATEST + 1}")
    before = desk.path.read_bytes()
    with pytest.raises(StoreVersion) as caught:
        make_desk()
    assert "upgrade" in caught.value.hint
    assert desk.path.read_bytes() == before
    assert tmp_path in desk.path.parents


def test_a_store_that_is_migrated_under_an_old_process_is_written_and_read_no_more(desk: Desk) -> None:
    desk.save("x")
    desk.sql(f"PRAGMA user_version = {LATEST + 1}")
    # Whatever the new schema is: the version is asked before anything else.
    desk.sql("ALTER TABLE meta RENAME TO other")
    for call in (lambda: desk.save("y"), lambda: desk.found("x"), lambda: desk.forget("n_x"), lambda: desk.get("n_x")):
        with pytest.raises(StoreVersion):
            call()
    assert desk.sql("SELECT count(*) FROM items") == [(1,)]


@pytest.mark.parametrize("version", [0, 1, 77, -1])
def test_the_database_of_another_program_is_refused_and_left_alone(
    make_desk: MakeDesk, tmp_path: Path, version: int
) -> None:
    path = tmp_path / "agora.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt) as caught:
        make_desk()
    assert "AGORA_HOME" in caught.value.hint
    assert path.read_bytes() == before
    assert files(tmp_path) == ["agora.db"]


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 8192, b"{}\n"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    make_desk: MakeDesk, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "agora.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        make_desk()
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "agora.db").touch()
    desk = make_desk()
    kept = desk.save("x").id
    assert desk.found("x") == [kept]
    assert desk.problems() == []


def test_a_store_cut_in_half_is_refused_as_corrupt(make_desk: MakeDesk) -> None:
    desk = make_desk()
    for number in range(50):
        desk.save(f"note number {number}")
    desk.close()
    whole = desk.path.read_bytes()
    desk.path.write_bytes(whole[: len(whole) // 2])

    def use() -> None:
        again = make_desk()
        again.query("note number", mode="lexical")
        again.save("one more")

    with pytest.raises(StoreCorrupt) as caught:
        use()
    assert "doctor" in caught.value.hint


def test_a_path_through_a_file_is_unavailable(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(StoreUnavailable) as caught:
            make_desk(folder)
        assert "AGORA_HOME" in caught.value.hint


def test_a_folder_in_the_place_of_the_file_is_unavailable(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "agora.db").mkdir()
    with pytest.raises(StoreUnavailable):
        make_desk()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise there")
def test_a_folder_that_cannot_be_written_is_unavailable(make_desk: MakeDesk, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreUnavailable) as caught:
            make_desk()
        assert caught.value.hint
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise there")
def test_a_file_that_cannot_be_written_refuses_saves(make_desk: MakeDesk) -> None:
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    desk = make_desk()
    kept = desk.save("x").id
    desk.close()
    desk.path.chmod(0o400)
    again = make_desk()
    assert again.found("x") == [kept]
    with pytest.raises(StoreUnavailable, match="can only be read"):
        again.save("y")


@no_deleting
@pytest.mark.parametrize("how", ["the file", "all files", "the folder"])
def test_a_store_deleted_under_a_running_process_is_made_anew(make_desk: MakeDesk, how: str) -> None:
    desk, other = make_desk(), make_desk()
    for each in (desk, other):
        each.save(f"before {id(each)}")
        assert len(each.found("before")) >= 1
    if how == "the folder":
        shutil.rmtree(desk.folder)
    else:
        for suffix in ("", *SIDE_FILES) if how == "all files" else ("",):
            side(desk.path, suffix).unlink()
    kept = desk.save("after the loss").id
    assert desk.found("before after") == [kept]
    assert other.found("before after") == [kept]
    second = other.save("after it too").id
    assert set(desk.found("after")) == {kept, second}
    desk.close()
    other.close()
    fresh = make_desk()
    assert set(fresh.found("after")) == {kept, second}
    assert fresh.problems() == []


@no_deleting
@pytest.mark.parametrize("leave", [True, False])
def test_a_backup_put_in_place_of_the_store_is_what_is_read_and_written(
    make_desk: MakeDesk, tmp_path: Path, *, leave: bool
) -> None:
    desk = make_desk(tmp_path / "live")
    old = desk.save("in the backup").id
    backup = tmp_path / "backup.db"
    with closing(sqlite3.connect(desk.path)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    desk.save("after the backup")
    assert len(desk.found("backup")) == 2
    if not leave:
        for suffix in SIDE_FILES:
            side(desk.path, suffix).unlink()
    backup.replace(desk.path)
    assert desk.found("backup", mode="semantic") == [old]
    new = desk.save("after the restore").id
    for mode in ("semantic", "lexical"):
        assert set(desk.found("backup after", mode=mode)) >= {new}
        assert len(desk.found("backup after", mode="semantic")) == 2
    desk.close()
    fresh = make_desk(tmp_path / "live")
    assert set(fresh.found("the backup")) == {old, new}
    assert fresh.problems() == []


@no_deleting
def test_an_older_copy_that_has_grown_past_us_is_not_taken_for_our_past(make_desk: MakeDesk, tmp_path: Path) -> None:
    ours = make_desk(tmp_path / "live")
    first = ours.save("common past").id
    copy = make_desk(tmp_path / "copy", clock=ours.clock)
    copy.close()
    with closing(sqlite3.connect(ours.path)) as source, closing(sqlite3.connect(copy.path)) as target:
        source.backup(target)
    ours.save("only ours")
    with ours.store.read(Deadline(5)) as reading:
        before = reading.state(("p",))
    other = make_desk(tmp_path / "copy", clock=ours.clock)
    theirs = []
    for number in range(3):
        theirs.append(other.save(f"only theirs {number}").id)
        with other.store.read(Deadline(5)) as reading:
            # The same number of changes, and yet no answer of ours is one of theirs.
            assert reading.state(("p",)) != before
    other.close()
    assert len(ours.found("only")) == 2
    for suffix in SIDE_FILES:
        side(ours.path, suffix).unlink()
    copy.path.replace(ours.path)
    fresh = make_desk(tmp_path / "live", clock=ours.clock)
    asked = "only theirs 0"
    told = [[(hit.note.id, hit.score) for hit in desk.query(asked, mode="semantic").hits] for desk in (ours, fresh)]
    assert told[0] == told[1]
    assert {public_id for public_id, _ in told[0]} == {first, *theirs}
    assert told[0][0][0] == theirs[0]


@no_deleting
def test_many_threads_notice_a_new_file_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk(readers=8)
    desk.save("old")
    desk.found("old")
    shutil.rmtree(desk.folder)
    start = threading.Barrier(12)
    errors: list[AgoraError] = []
    saved: list[str] = []

    def work(number: int) -> None:
        start.wait()
        try:
            if number % 2:
                desk.found("new words")
            else:
                saved.append(desk.save(f"new words {number}").id)
        except AgoraError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert set(desk.found("new words")) == set(saved)
    assert desk.problems() == []
