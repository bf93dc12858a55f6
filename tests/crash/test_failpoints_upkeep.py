"""A process dies while it looks after a store: the index, the queue of writers, the move to another encoder."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.crash.acts import Acts, other_encoder
from tests.crash.failpoints import Point
from tests.crash.station import PATIENCE, Station, whole
from tests.crash.story import SOON, Cast, Doing, Outcome, Told, acknowledged, named, outlived
from tests.crash.victims import StartVictim, Victim

from agora.model.deadline import Deadline
from agora.stores.sqlite.connection import LOCK_FILE
from agora.stores.sqlite.index.folder import Folder
from agora.stores.sqlite.index.generation import named as named_files
from agora.stores.sqlite.store import INDEX_FOLDER
from agora.stores.sqlite.ticket import Tickets

INDEX = "agora.stores.sqlite.index"
TICKET = "agora.stores.sqlite.ticket"
MOVE = "agora.stores.sqlite.reembedding:SqliteReembedding"


def _an_older_generation(victim: Victim, cast: Cast) -> None:
    """Files of before, some of whose rows are gone, and rows that no file holds."""
    assert victim.ask("compact")
    assert victim.ask("forget", cast.going) == 2
    victim.ask("save", "alpha words that came after the files were written")


def _problem(station: Station, _: Cast) -> object:
    """What is wrong with the files of the index."""
    with station.store.read(Deadline(PATIENCE)):
        return station.store.details()["index"]["problem"]


def _no_stray_file(station: Station, folder: Path) -> None:
    with station.store.read(Deadline(PATIENCE)) as reading:
        assert Folder(folder / INDEX_FOLDER).names() == named_files(reading._connection)


def _upkeep(command: str) -> Doing:
    return Doing(
        lambda _: (command,),
        _problem,
        before=None,
        after=None,
        again=lambda station, _: station.store.compact(force=True),
        ready=_an_older_generation,
        last=_no_stray_file,
    )


DOINGS = {"compact": _upkeep("compact"), "reindex": _upkeep("reindex")}
COMPACTION: list[Told] = [
    ("compaction: alone, nothing written", "compact", "after", Point(function=f"{INDEX}.writing:write_segment")),
    ("compaction: in a segment file", "compact", "after", Point(function=f"{INDEX}.writing:_fill", when="after")),
    (
        "compaction: a segment file is written",
        "compact",
        "after",
        Point(function=f"{INDEX}.writing:write_segment", when="after"),
    ),
    (
        "compaction: the state file is written",
        "compact",
        "after",
        Point(function=f"{INDEX}.generation:write_state", when="after"),
    ),
    ("compaction: about to register", "compact", "after", Point("BEGIN IMMEDIATE")),
    (
        "compaction: registered, not committed",
        "compact",
        "after",
        Point(function=f"{INDEX}.generation:register", when="after"),
    ),
    ("compaction: committed", "compact", "after", Point("COMMIT", when="after")),
    (
        "compaction: about to delete old files",
        "compact",
        "after",
        Point(function=f"{INDEX}.compacting:Compaction._tidy"),
    ),
    ("compaction: between two deletions", "compact", "after", Point(function="pathlib:Path.unlink", when="after")),
    (
        "compaction: old files deleted",
        "compact",
        "after",
        Point(function=f"{INDEX}.compacting:Compaction._tidy", when="after"),
    ),
    (
        "reindex: files are written",
        "reindex",
        "after",
        Point(function=f"{INDEX}.compacting:Compaction._write_piece", when="after"),
    ),
    ("reindex: committed", "reindex", "after", Point("COMMIT", when="after")),
]


@named(COMPACTION)
def test_a_death_during_the_upkeep_of_the_index_costs_nothing(
    start: StartVictim, tmp_path: Path, what: str, outcome: Outcome, point: Point
) -> None:
    outlived(start, tmp_path, DOINGS[what], outcome, point, peer=False)


@named(COMPACTION[2::4])
def test_a_death_during_the_upkeep_beside_a_process_that_uses_the_index_costs_nothing(
    start: StartVictim, tmp_path: Path, what: str, outcome: Outcome, point: Point
) -> None:
    outlived(start, tmp_path, DOINGS[what], outcome, point, peer=True)


@pytest.mark.parametrize(
    "point",
    [
        Point(function=f"{TICKET}:Tickets.wait", when="after"),
        Point(function=f"{TICKET}:Tickets.leave"),
        Point(function=f"{TICKET}:Tickets.leave", when="after"),
    ],
    ids=["turn: taken", "turn: about to be let go", "turn: let go"],
)
def test_the_turn_of_the_dead_is_free_at_once(start: StartVictim, tmp_path: Path, point: Point) -> None:
    victim = start()
    victim.ask("listen", everywhere=True)
    victim.ask("open")
    other = Station(tmp_path)
    other.save("alpha before")
    victim.dies(point, "save", "alpha in flight")
    began = time.monotonic()
    for number in range(20):
        other.save(f"alpha after {number}")
    assert time.monotonic() - began < SOON
    whole(other)
    assert len(other.ids_of("alpha in flight")) == (0 if point.function.endswith("wait") else 1)
    other.close()


def test_one_who_dies_in_the_queue_holds_nobody_up(start: StartVictim, tmp_path: Path) -> None:
    victim = start()
    victim.ask("listen", everywhere=True)
    victim.ask("open")
    station = Station(tmp_path)
    station.save("alpha before")
    holder = Tickets(tmp_path / LOCK_FILE)
    assert holder.wait(lambda: 5.0)
    victim.dies(Point(function=f"{TICKET}:_taken_ticket", when="after"), "save", "alpha in flight")
    holder.leave()
    holder.close()
    began = time.monotonic()
    station.save("alpha after")
    assert time.monotonic() - began < SOON
    whole(station)
    assert station.ids_of("alpha in flight") == []
    station.close()


MOVING: list[tuple[str, int, bool, Point]] = [
    ("reembed: about to begin", 40, False, Point("INSERT INTO encoders")),
    ("reembed: begun", 40, False, Point(function=f"{MOVE}.begin", when="after")),
    ("reembed: in a batch", 40, False, Point(function="agora.stores.sqlite.incoming:store", nth=3)),
    ("reembed: a batch is kept", 40, False, Point(function=f"{MOVE}.keep", when="after", nth=2)),
    ("reembed: cuts texts anew", 25, False, Point(function=f"{MOVE}.cut_anew", when="after")),
    ("reembed: a batch of new passages", 25, False, Point(function=f"{MOVE}.keep", when="after", nth=2)),
    ("reembed: about to switch", 25, False, Point(function=f"{MOVE}._exchange")),
    ("reembed: exchanged, not committed", 25, False, Point(function=f"{MOVE}._exchange", when="after")),
    ("reembed: switched", 25, True, Point(function=f"{MOVE}.switch", when="after")),
    ("reembed: some old vectors deleted", 25, True, Point("DELETE FROM vectors WHERE id = ", nth=3)),
    (
        "reembed: old vectors deleted",
        40,
        True,
        Point(function="agora.stores.sqlite.leftovers:_delete_vectors", when="after", nth=2),
    ),
    ("reembed: gives space back", 25, True, Point("PRAGMA incremental_vacuum", when="after")),
    ("reembed: about to write the index", 40, True, Point(function=f"{INDEX}.writing:write_segment")),
]


@pytest.mark.parametrize(
    ("piece", "switched", "point"), [each[1:] for each in MOVING], ids=[each[0] for each in MOVING]
)
def test_a_move_to_another_encoder_that_dies_is_not_yet_or_is_and_goes_on(
    start: StartVictim, tmp_path: Path, piece: int, switched: bool, point: Point
) -> None:
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    cast = acknowledged(victim)
    if "vacuum" in point.statement:
        # Whole pages must become free.
        victim.ask("save", "many passages of their own " * 400)
    assert victim.ask("compact")
    victim.dies(point, "reembed", piece=piece)
    encoder = other_encoder(24, piece)
    old = Station(tmp_path)
    assert (old.store.mismatch is not None) == switched
    if not switched:
        old.save("alpha while the store is moved")
        whole(old)
        there(old, cast)
    assert set(cast.kept) <= set(old.found("alpha beta", "lexical"))
    old.close()
    acts = Acts(tmp_path, "ann")
    acts.open()
    acts.reembed(piece=piece)
    new = acts.station
    assert new.store.mismatch is None
    new.save("alpha after the move")
    whole(new)
    there(new, cast)
    active = "SELECT name, dimension FROM encoders WHERE state = 'active'"
    assert new.sql(active) == [("other", encoder.fingerprint.dimension)]
    leftovers = (
        "SELECT count(*) FROM vectors v JOIN encoders e ON e.id = v.encoder_id WHERE e.state <> 'active'",
        "SELECT count(*) FROM passages WHERE layout NOT IN (SELECT layout FROM encoders WHERE state = 'active')",
    )
    assert [new.sql(each) for each in leftovers] == [[(0,)], [(0,)]]
    _no_stray_file(new, tmp_path)
    new.close()


def there(station: Station, cast: Cast) -> None:
    """What was acknowledged is found by meaning and by words."""
    for mode in ("semantic", "lexical"):
        found = set(station.found("alpha beta words", mode)) | set(station.found("alpha", mode))
        assert {*cast.kept, cast.same, cast.old, *cast.going} <= found
        assert not {*cast.hidden} & found
