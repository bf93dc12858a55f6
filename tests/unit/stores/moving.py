"""A move of a store to another encoder, with something done beside each of its steps."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from agora.maintenance.reembed import Moved, Reembed
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.query import Mode
from agora.ports.encoder import Vector
from agora.ports.reembedding import Begun, Cut, Switched, Text
from agora.stores.sqlite.leftovers import told
from agora.stores.sqlite.reembedding import SqliteReembedding
from agora.testing import FakeEncoder, SilentLog

if TYPE_CHECKING:
    from tests.conftest import Desk


ALIKE: dict[str, Any] = {"dimension": 32, "name": "alike"}
"""An encoder that cuts texts as the desk's own does."""

SHORT: dict[str, Any] = {"dimension": 48, "name": "short", "piece": 90}
"""One that reads less at once, so that texts are cut anew."""

MODES: tuple[Mode, ...] = ("semantic", "lexical", "hybrid")
BOTH = pytest.mark.parametrize("kind", [ALIKE, SHORT], ids=["as it is cut", "cut anew"])
LONG = " ".join(f"sentence{number} about rivers and boats" for number in range(60)) + " zebra crossing"


class Counted(FakeEncoder):
    """Counts what it encodes, refuses what is longer than it reads, and does as it is told before every batch."""

    def __init__(self, before: Callable[[Sequence[str]], None] | None = None, **kind: Any) -> None:
        super().__init__(**kind)
        self.before = before
        self.texts: Counter[str] = Counter()

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        if self.before is not None:
            self.before(texts)
        assert all(len(text) <= self._piece for text in texts), "a text was given that would be cut silently"
        found = super().encode_all(texts, deadline)
        self.texts.update(texts)
        return found


class Beside:
    """A move at work, with something done beside each of its steps."""

    def __init__(self, work: SqliteReembedding, step: Callable[[str], None]) -> None:
        self.work = work
        self.step = step

    def begin(self, deadline: Deadline) -> Begun:
        found = self.work.begin(deadline)
        self.step("begin")
        return found

    def left(self, deadline: Deadline) -> int:
        self.step("left")
        return self.work.left(deadline)

    def waiting(self, most: int, characters: int, deadline: Deadline) -> tuple[Text, ...]:
        # Few at a time, so that there is a step between them.
        return self.work.waiting(min(most, 7), characters, deadline)

    def keep(self, cuts: Sequence[Cut], deadline: Deadline) -> None:
        self.work.keep(cuts, deadline)
        self.step("keep")

    def cut_anew(self, deadline: Deadline) -> None:
        self.work.cut_anew(deadline)
        self.step("cut_anew")

    def switch(
        self,
        rest: Callable[[Sequence[Text]], Sequence[Cut]],
        most: int,
        caller: Caller,
        now: datetime,
        deadline: Deadline,
    ) -> Switched | None:
        found = self.work.switch(rest, most, caller, now, deadline)
        self.step("switch" if found else "not switched")
        return found

    def clean(self, deadline: Deadline) -> int:
        found = self.work.clean(deadline)
        self.step("clean")
        return found


def nothing(*_: object) -> None:
    """Beside which nothing happens."""


def soon() -> Deadline:
    return Deadline(60)


def move(desk: Desk, step: Callable[[str], None] = nothing, say: Callable[[str], None] = print) -> Moved:
    """Move the store to the desk's encoder, three passages at a time."""
    work = Beside(desk.store.reembedding(), step)
    run = Reembed(work, desk.encoder, desk.clock, SilentLog(), batch=3, model_seconds=20)
    return run.run(desk.caller("mover"), soon(), nothing, say)


def fill(desk: Desk) -> dict[str, str]:
    """Notes in every state, in two namespaces, short and long ones; ids by a word of each."""
    ids = {f"plain{number}": desk.save(f"plain{number} note of thing{number}").id for number in range(8)}
    ids["old"] = desk.save("port was oldvalue", key="port").id
    ids["new"] = desk.save("port is newvalue", "bob", key="port", metadata={"unit": "tcp"}, tags=("net",)).id
    ids["long"] = desk.save(LONG, title="A Tall title").id
    ids["gone"] = desk.save("gonewords of a hidden story " * 5).id
    ids["elsewhere"] = desk.save("elsewhere there is more", namespace="q").id
    ids["brief"] = desk.save("briefwords expire", lives=3).id
    desk.forget(ids["gone"])
    return ids


def answers(desk: Desk, *asked: str) -> list[Any]:
    """What queries find, long texts cut to their best passage; without the ids, which differ between stores."""
    return [
        [
            (hit.note.content, round(hit.score, 6), hit.content)
            for hit in desk.query(text, ("p", "q"), mode=mode, max_tokens=90, top_k=4).hits
        ]
        for text in (*asked, "zebra crossing", "port value", "thing3", "tall title", "elsewhere")
        for mode in MODES
    ]


def told_of(desk: Desk) -> list[str]:
    with closing(sqlite3.connect(desk.path)) as connection:
        return told(connection)


class Stopped(Exception):
    """Stands for whatever ends a process."""
