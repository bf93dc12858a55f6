from __future__ import annotations

from pathlib import Path

import pytest

from agora.cache.disk import Disk
from agora.testing import SilentLog


def _disk(folder: Path, entries: int = 10) -> Disk:
    return Disk(folder / "cache.db", SilentLog(), entries=entries, sweep=1)


def test_a_value_lives_until_its_instant_and_not_at_it(tmp_path: Path) -> None:
    disk = _disk(tmp_path)
    disk.put("result", b"k", lambda: b"v", now=0, until=100)
    disk.flush()
    assert disk.get("result", b"k", 99) == (b"v", 100)
    assert disk.get("result", b"k", 100) is None
    disk.close()


def test_no_more_than_so_many_entries_of_a_kind_stay_and_the_newest_win(tmp_path: Path) -> None:
    disk = _disk(tmp_path, entries=10)
    for turn in range(50):
        disk.put("result", b"%02d" % turn, lambda: b"v", now=turn, until=10_000)
    disk.put("embedding", b"other", lambda: b"v", now=0, until=10_000)
    disk.flush()
    assert disk.count("result") == 10
    assert disk.get("result", b"49", 60) is not None
    assert disk.get("result", b"39", 60) is None
    assert disk.count("embedding") == 1
    disk.close()


def test_another_process_finds_what_this_one_kept(tmp_path: Path) -> None:
    one, other = _disk(tmp_path), _disk(tmp_path)
    one.put("result", b"k", lambda: b"v", now=0, until=100)
    one.flush()
    assert other.get("result", b"k", 1) == (b"v", 100)
    one.close()
    other.close()


def test_a_file_deleted_while_in_use_is_made_anew(tmp_path: Path) -> None:
    disk = _disk(tmp_path)
    disk.put("result", b"k", lambda: b"v", now=0, until=100)
    disk.flush()
    for file in tmp_path.glob("cache.db*"):
        file.unlink()
    assert disk.get("result", b"k", 1) is None
    disk.put("result", b"k", lambda: b"w", now=0, until=100)
    disk.flush()
    assert disk.get("result", b"k", 1) == (b"w", 100)
    assert disk.off is None
    disk.close()


@pytest.mark.parametrize("junk", [b"not a database at all, " * 400, b"SQLite format 3\0" + b"\xff" * 9000])
def test_a_damaged_file_is_made_anew(tmp_path: Path, junk: bytes) -> None:
    (tmp_path / "cache.db").write_bytes(junk)
    disk = _disk(tmp_path)
    assert disk.off is None
    disk.put("result", b"k", lambda: b"v", now=0, until=100)
    disk.flush()
    assert disk.get("result", b"k", 1) == (b"v", 100)
    disk.close()


def test_a_file_that_cannot_be_made_turns_the_level_off_and_says_why(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "missing" / "cache.db", SilentLog(), entries=10)
    assert disk.off is not None
    assert "cache.db" in disk.off
    disk.put("result", b"k", lambda: b"v", now=0, until=100)
    assert disk.get("result", b"k", 1) is None
    assert disk.count("result") == 0
    disk.close()


def test_clearing_leaves_no_byte_of_a_value_in_the_file(tmp_path: Path) -> None:
    disk = _disk(tmp_path)
    disk.put("result", b"k", lambda: b"a very particular sentence", now=0, until=100)
    disk.flush()
    assert disk.clear() == 1
    disk.close()
    for file in tmp_path.iterdir():
        assert b"particular sentence" not in file.read_bytes()


def test_a_value_that_cannot_be_written_down_is_left_out_and_the_next_one_is_kept(tmp_path: Path) -> None:
    def unwritable() -> bytes:
        return "\ud800".encode()

    disk = _disk(tmp_path)
    disk.put("result", b"bad", unwritable, now=0, until=100)
    disk.put("result", b"k", lambda: b"v", now=0, until=100)
    disk.flush()
    assert disk.get("result", b"bad", 1) is None
    assert disk.get("result", b"k", 1) == (b"v", 100)
    assert disk.off is None
    disk.close()
