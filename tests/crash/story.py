"""The story of one death: what was there before, how it comes, what must be there after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from tests.crash.failpoints import Point
from tests.crash.station import PATIENCE, Station, whole
from tests.crash.victims import StartVictim, Victim

from agora.model.deadline import Deadline

SOON = 5.0
"""Seconds within which the next save must be done, on a machine that does other things too."""

SAME = "alpha words that somebody else has saved before, long enough for more than one passage"

Outcome = Literal["before", "after"]
Told = tuple[str, str, Outcome, Point]
"""A point's name, what is under way there, whether it is done by then, and where it is."""


@dataclass
class Cast:
    """What was acknowledged before the accident: ids by what the tests do with them."""

    kept: list[str]
    same: str
    old: str
    going: list[str]
    hidden: list[str]


def acknowledged(victim: Victim) -> Cast:
    """Rows for every kind of change, saved, forgotten and asked for by the process that is going to die."""
    cast = Cast(
        kept=[victim.ask("save", f"alpha beta words of number {n}", {"tags": ["red"]}) for n in range(4)],
        same=victim.ask("save", SAME, {"agent": "ann"}),
        old=victim.ask("save", "alpha is the value", {"key": "setting"}),
        going=[victim.ask("save", f"alpha going words {n}, " + "long enough for two passages " * 2) for n in range(2)],
        hidden=[victim.ask("save", f"alpha hidden words {n}") for n in range(2)],
    )
    assert victim.ask("forget", cast.hidden) == 2
    # The cache is full of what the change is going to make wrong.
    assert victim.ask("query", "alpha words")
    victim.ask("settle")
    return cast


class Doing(NamedTuple):
    """A change: the command, what can be seen of it, what is to be seen before and after, and how to do it again."""

    command: Callable[[Cast], tuple[Any, ...]]
    seen: Callable[[Station, Cast], object]
    before: object
    after: object
    again: Callable[[Station, Cast], object]
    ready: Callable[[Victim, Cast], object] = lambda victim, cast: None  # noqa: ARG005 - nothing to do
    """What the process does before it gets the command."""
    last: Callable[[Station, Path], object] = lambda station, folder: None  # noqa: ARG005 - nothing to do
    """What else must be true once everything is done again."""


def outlived(start: StartVictim, folder: Path, doing: Doing, outcome: Outcome, point: Point, *, peer: bool) -> None:
    """The whole story of one point, alone on the folder or beside a process that goes on."""
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    cast = acknowledged(victim)
    doing.ready(victim, cast)
    witness = Station(folder) if peer else None
    try:
        if witness is not None:
            # Its index and its cache are of the moment before.
            whole(witness)
        victim.dies(point, *doing.command(cast))
        for station in [witness] if witness else [Station(folder), Station(folder)]:
            survives(station, doing, cast, outcome)
            doing.last(station, folder)
            if station is not witness:
                station.close()
            # Once it has been done again, it is done.
            outcome = "after"
    finally:
        if witness is not None:
            witness.close()
    left = {entry.name for entry in folder.iterdir()}
    assert {"agora.db", "cache.db"} <= left
    assert not {name for name in left if name.startswith("agora.db-")}


def survives(station: Station, doing: Doing, cast: Cast, outcome: Outcome) -> None:
    """Everything acknowledged is there by every path; the change is done again and is there once."""
    began = time.monotonic()
    next_one = station.save("alpha the next save of anybody").id
    assert time.monotonic() - began < SOON
    whole(station)
    sure = {*cast.kept, cast.same, next_one}
    got = station.notes.get(sorted(sure), station.caller(), Deadline(PATIENCE))
    assert {note.id for note in got.notes} == sure
    for mode in ("semantic", "lexical", "hybrid"):
        assert sure <= set(station.found("alpha words", mode)) | set(station.found("alpha", mode)), mode
    assert doing.seen(station, cast) == (doing.before if outcome == "before" else doing.after)
    doing.again(station, cast)
    assert doing.seen(station, cast) == doing.after
    whole(station)
    twice = "SELECT count(*) - count(DISTINCT content_hash || ifnull(key, '')) FROM items WHERE superseded_by IS NULL"
    twice += " AND purged_at IS NULL"
    assert station.sql(twice) == [(0,)]


def named(points: list[Told]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("what", "outcome", "point"), [each[1:] for each in points], ids=[each[0] for each in points]
    )
