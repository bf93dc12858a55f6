"""Every row counts: what is done to a store of twelve thousand notes leaves twelve thousand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import Desk, MakeDesk
from tests.integration.kept import add, arrival

from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.query import Filter
from agora.stores.sqlite.backup import back_up
from agora.stores.sqlite.restore import checked

NUMBER = 12_000
PARTS = 4
MINUTES = 300.0


def told(what: str, done: int, total: int | None) -> None:
    """Nobody listens."""


def has_all(desk: Desk) -> None:
    """Every note is there, in each table and each index, and any of them is found."""
    assert desk.counts()["notes"]["live"] == NUMBER
    for table in ("items", "texts", "passages", "vectors", "fulltext"):
        assert desk.sql(f"SELECT count(*) FROM {table}") == [(NUMBER,)]  # noqa: S608 - a table's name
    with desk.store.read(Deadline(MINUTES)) as reading:
        among = reading.among(Filter(("p",)))
        assert reading.vectors.size() == NUMBER
        probe = desk.encoder.encode("number", Deadline(MINUTES))
        assert len(np.unique(reading.vectors.nearest(probe, among, NUMBER + 1).rows)) == NUMBER
    for number in (0, 9_999, 10_000, 10_001, NUMBER - 1):
        text = f"word{number % 397} unit{number % 401} number{number}"
        for mode in ("semantic", "lexical"):
            answer = desk.query(text, mode=mode, top_k=1)
            assert [hit.note.content for hit in answer.hits] == [text]


@pytest.mark.slow
def test_a_backup_of_a_large_store_put_back_elsewhere_has_every_note(make_desk: MakeDesk, tmp_path: Path) -> None:
    large = make_desk(tmp_path / "large")
    for part in range(PARTS):
        numbers = range(part, NUMBER, PARTS)
        add(large, [arrival(large, n, f"word{n % 397} unit{n % 401} number{n}") for n in numbers])
    now = to_micros(large.clock.now())
    done = back_up(large.path, tmp_path / "backup.db", now, told)
    assert (done.contents.notes, done.contents.versions, done.problems) == (NUMBER, NUMBER, [])
    home = tmp_path / "home"
    home.mkdir()
    with checked(tmp_path / "backup.db", now, told) as backup:
        backup.put_in_place_of(home / "agora.db", None, MINUTES, told)
    has_all(make_desk(home))
