"""The cache's file is not synced: after a power cut an entry may hold something else. It is missed then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.crash.station import Station, cache_agrees

ANSWERS = "UPDATE entries SET value = {} WHERE kind = 'result'"
VECTORS = "UPDATE entries SET value = {} WHERE kind = 'embedding'"
ANOTHER = "(SELECT value FROM entries e WHERE e.kind = entries.kind ORDER BY length(value), key LIMIT 1)"


@pytest.mark.parametrize(
    "damage",
    [
        ANSWERS.format("substr(value, 1, length(value) / 2)"),
        ANSWERS.format("CAST(replace(CAST(value AS TEXT), 'alpha', 'alphx') AS BLOB)"),
        ANSWERS.format(ANOTHER),
        VECTORS.format("zeroblob(length(value))"),
        VECTORS.format("substr(value, 1, 10)"),
        VECTORS.format(ANOTHER),
    ],
    ids=["half an answer", "another word", "another answer", "holes", "a short vector", "another vector"],
)
def test_an_entry_that_is_not_what_was_kept_is_missed(tmp_path: Path, damage: str) -> None:
    station = Station(tmp_path)
    for number in range(5):
        station.save(f"alpha words of number {number} beta")
    cache_agrees(station)
    station.settle()
    station.close()
    with closing(sqlite3.connect(tmp_path / "cache.db", isolation_level=None)) as connection:
        assert connection.execute(damage).rowcount > 1
        if "'embedding'" in damage:
            # Else the answers are there, and nobody needs a vector.
            connection.execute("DELETE FROM entries WHERE kind = 'result'")
    station = Station(tmp_path)
    cache_agrees(station)
    station.close()
