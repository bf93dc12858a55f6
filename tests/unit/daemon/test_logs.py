from __future__ import annotations

import os
from pathlib import Path

import pytest

from agora.daemon.logs import Followed
from agora.shim.places import LOG, RUN


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / RUN).mkdir()
    return tmp_path / RUN / LOG


def write(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(text)


def test_the_last_lines_come_first_and_then_each_line_once_though_they_are_equal(log: Path, tmp_path: Path) -> None:
    write(log, "a\nb\nsame\nsame\n")
    followed = Followed(tmp_path, 3)
    assert followed.fresh() == ["b", "same", "same"]
    assert followed.fresh() == []
    write(log, "same\n")
    assert followed.fresh() == ["same"]
    write(log, "same\nb\nsame\n")
    assert followed.fresh() == ["same", "b", "same"]
    assert followed.fresh() == []


def test_a_line_is_shown_when_it_is_whole(log: Path, tmp_path: Path) -> None:
    write(log, "one\ntw")
    followed = Followed(tmp_path, 10)
    assert followed.fresh() == ["one"]
    write(log, "o\u00e9")
    assert followed.fresh() == []
    write(log, "\nthree\n")
    assert followed.fresh() == ["twoé", "three"]


def test_a_log_that_is_moved_away_is_read_to_its_end_and_the_next_one_from_its_beginning(
    log: Path, tmp_path: Path
) -> None:
    write(log.with_name(LOG + ".1"), "of an earlier time\n")
    write(log, "one\n")
    followed = Followed(tmp_path, 10)
    assert followed.fresh() == ["one"]
    write(log, "two\n")
    log.replace(log.with_name(LOG + ".1"))
    write(log, "three\n")
    assert followed.fresh() == ["two", "three"]
    # The server that made room still has the old file open.
    write(log.with_name(LOG + ".1"), "the last word\n")
    write(log, "four\n")
    assert followed.fresh() == ["the last word", "four"]


def test_a_log_that_was_emptied_is_read_from_its_beginning(log: Path, tmp_path: Path) -> None:
    write(log, "one\ntwo\n")
    followed = Followed(tmp_path, 10)
    followed.fresh()
    os.truncate(log, 0)
    write(log, "one\n")
    assert followed.fresh() == ["one"]


def test_a_log_that_is_not_there_yet_is_waited_for(log: Path, tmp_path: Path) -> None:
    followed = Followed(tmp_path, 1)
    assert followed.fresh() == []
    write(log, "one\ntwo\n")
    assert followed.fresh() == ["two"]
