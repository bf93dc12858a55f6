"""A store on a real file with its service, a clock that stands still, and callers by name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.blank import lay

from agora.memory.notes import Got, Notes
from agora.model.caller import Caller, Origin, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft, Note, Saved
from agora.model.query import Answer, Filter, Mode, Query
from agora.model.selection import Forgotten, Pinned, Restored, Selection
from agora.stores.sqlite.checks import Problem, find_problems
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog

PATIENCE = 20.0
"""Seconds that a call may take in a test: far more than it needs."""


class Desk:
    """One process's view of a data folder; several desks may stand on the same one."""

    def __init__(
        self,
        folder: Path,
        *,
        clock: ManualClock | None = None,
        encoder: FakeEncoder | None = None,
        readers: int = 4,
        busy_timeout: float = 10.0,
        synchronous: Literal["normal", "full"] = "normal",
        laid: bool = True,
    ) -> None:
        """A new store is a copy of one made before; not `laid` where its making is what the test is about."""
        self.folder = folder
        self.path = folder / "agora.db"
        self.clock = clock or ManualClock()
        self.encoder = encoder or FakeEncoder()
        if laid:
            lay(self.path, self.encoder.fingerprint, self.clock)
        self.store = SqliteStore(
            self.path,
            self.encoder.fingerprint,
            self.clock,
            readers=readers,
            busy_timeout=busy_timeout,
            synchronous=synchronous,
        )
        self.notes = Notes(self.store, self.encoder, self.clock, SilentLog(), model_seconds=PATIENCE)

    def caller(
        self,
        agent: str = "ann",
        namespace: str = "p",
        *,
        also: Sequence[str] = ("shared",),
        session: str = "s1",
        client: str = "test",
        origin: Origin = "agent",
    ) -> Caller:
        """Somebody who sees `namespace` and `also`."""
        return Caller(Scope(namespace, "test", frozenset(also)), agent, session, client, "1", "", origin)

    def draft(self, content: str, namespace: str = "p", **fields: Any) -> Draft:
        """A note about to be saved; `lives` is seconds until it expires."""
        lives = fields.pop("lives", None)
        if lives is not None:
            fields["expires_at"] = self.clock.now() + timedelta(seconds=lives)
        return Draft(content, namespace, **fields)

    def save(
        self,
        content: str,
        agent: str = "ann",
        namespace: str = "p",
        *,
        session: str = "s1",
        origin: Origin = "agent",
        **fields: Any,
    ) -> Saved:
        """Save through the service."""
        caller = self.caller(agent, namespace, session=session, origin=origin)
        return self.notes.save(self.draft(content, namespace, **fields), caller, Deadline(PATIENCE))

    def query(
        self,
        text: str,
        namespaces: Sequence[str] = ("p",),
        *,
        mode: Mode = "hybrid",
        top_k: int = 50,
        min_score: float | None = None,
        max_tokens: int | None = 100_000,
        **conditions: Any,
    ) -> Answer:
        """Query through the service, as somebody who sees all of `namespaces`."""
        asked = Query(text, Filter(tuple(namespaces), **conditions), top_k, mode, min_score, max_tokens)
        caller = self.caller(namespace=namespaces[0], also=namespaces[1:])
        return self.notes.query(asked, caller, Deadline(PATIENCE))

    def found(self, text: str, namespaces: Sequence[str] = ("p",), **asked: Any) -> list[str]:
        """Ids of what a query finds, best first."""
        return [hit.note.id for hit in self.query(text, namespaces, **asked).hits]

    def get(self, *ids: str, namespace: str = "p", also: Sequence[str] = ()) -> Got:
        """Get by id, as somebody who sees `namespace` and `also`."""
        return self.notes.get(ids, self.caller(namespace=namespace, also=also), Deadline(PATIENCE))

    def note(self, public_id: str, namespace: str = "p") -> Note:
        """A note whatever its state, straight from the store."""
        with self.store.read(Deadline(PATIENCE)) as reading:
            return reading.by_id([public_id], [namespace])[public_id][1]

    def forget(
        self,
        *ids: str,
        namespace: str = "p",
        dry_run: bool = False,
        origin: Origin = "agent",
        **conditions: Any,
    ) -> Forgotten:
        """Forget by ids and conditions in one namespace."""
        selection = Selection((namespace,), ids, **conditions)
        caller = self.caller(namespace=namespace, origin=origin)
        return self.notes.forget(selection, caller, Deadline(PATIENCE), dry_run=dry_run)

    def restore(self, *ids: str, namespace: str = "p", origin: Origin = "agent") -> Restored:
        """Restore, as somebody who sees one namespace."""
        return self.notes.restore(ids, self.caller(namespace=namespace, also=(), origin=origin), Deadline(PATIENCE))

    def pin(self, *ids: str, namespace: str = "p", pinned: bool = True, origin: Origin = "user") -> Pinned:
        """Pin, or unpin, as somebody who sees one namespace."""
        caller = self.caller(namespace=namespace, also=(), origin=origin)
        return self.notes.pin(ids, caller, Deadline(PATIENCE), pinned=pinned)

    def counts(self, *namespaces: str) -> dict[str, Any]:
        """Numbers of notes by state, agent and namespace."""
        with self.store.read(Deadline(PATIENCE)) as reading:
            return reading.counts(namespaces or ("p",))

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a statement on a connection of its own, committed at once."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=PATIENCE)) as connection:
            return connection.execute(statement, values).fetchall()

    def problems(self) -> list[Problem]:
        """What `find_problems` finds in the file."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=PATIENCE)) as connection:
            connection.execute("BEGIN")
            return find_problems(connection)

    def close(self) -> None:
        """Let the files go."""
        self.store.close()


MakeDesk = Callable[..., Desk]


@pytest.fixture
def laid() -> bool:
    """Whether new stores are copies; no where their making is what is tested."""
    return True


@pytest.fixture
def make_desk(tmp_path: Path, laid: bool) -> Iterator[MakeDesk]:
    """Desks on one folder (or another one, if named), closed at the end; the clock is shared."""
    clock = ManualClock()
    desks: list[Desk] = []

    def make(folder: Path | None = None, **settings: Any) -> Desk:
        desks.append(Desk(folder or tmp_path, **{"clock": clock, "laid": laid, **settings}))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


@pytest.fixture
def desk(make_desk: MakeDesk) -> Desk:
    """A desk on an empty folder."""
    return make_desk()
