"""Any run of calls, by two processes' worth of store objects and across restarts, against a plain dictionary."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from agora.memory.notes import Notes
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter
from agora.model.selection import Selection
from agora.stores.sqlite.checks import find_problems
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog
from agora.text.analysis import analyse_query

ENCODER = FakeEncoder(16, piece=30)
CONTENTS = (
    "alpha beta",
    "beta gamma alpha and a longer text that takes several passages",
    "gamma the delta",
    "ошибка 数据库 café",
)
WORDS = ("alpha", "beta", "gamma delta", "数据", "passages")
NAMESPACES = ("p", "q")
contents = st.sampled_from(CONTENTS)
namespaces = st.sampled_from(NAMESPACES)
agents = st.sampled_from(["ann", "bob", "cid"])
keys = st.sampled_from([None, None, "k1", "k2"])
lives = st.sampled_from([None, None, 5, 10, 20])
stores = st.integers(0, 1)


@dataclass
class Row:
    """What the model knows of a note."""

    id: str
    content: str
    namespace: str
    key: str | None
    version: int
    born: int
    savers: list[str]
    ends: int | None = None
    forgotten: bool = False
    superseded_by: str | None = None
    tags: set[str] = field(default_factory=set)


def joined(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


class StoreMachine(RuleBasedStateMachine):
    """Every rule does the same to the store and to the dictionary."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="agora-machine-"))
        self.clock = ManualClock()
        self.start = self.clock.now()
        self.now = 0
        self.rows: dict[str, Row] = {}
        self.sequence = 0
        self.stores: list[SqliteStore] = [self.opened(), self.opened()]

    def opened(self) -> SqliteStore:
        return SqliteStore(self.folder / "agora.db", ENCODER.fingerprint, self.clock)

    def notes(self, which: int) -> Notes:
        return Notes(self.stores[which], ENCODER, self.clock, SilentLog(), model_seconds=20)

    def caller(self, namespace: str, agent: str = "ann") -> Caller:
        return Caller(Scope(namespace, "test", frozenset()), agent, "s", "c")

    def state(self, row: Row) -> str:
        if row.superseded_by is not None:
            return "superseded"
        if row.ends is not None and row.ends <= self.now:
            return "expired"
        return "forgotten" if row.forgotten else "live"

    def expired(self, row: Row) -> bool:
        return row.ends is not None and row.ends <= self.now

    def live(self, *searched: str) -> list[Row]:
        return [row for row in self.rows.values() if row.namespace in searched and self.state(row) == "live"]

    def twin(self, namespace: str, content: str) -> Row | None:
        same = [row for row in self.live(namespace) if row.content == content]
        return min(same, key=lambda row: (row.key is not None, row.born), default=None)

    def head(self, namespace: str, key: str) -> Row | None:
        found = [row for row in self.rows.values() if (row.namespace, row.key) == (namespace, key)]
        return next((row for row in found if row.superseded_by is None), None)

    @rule(target=ids, content=contents, namespace=namespaces, agent=agents, key=keys, lives=lives, which=stores)
    def save(self, content: str, namespace: str, agent: str, key: str | None, lives: int | None, which: int) -> str:
        return self.saved(content, namespace, agent, key, lives, which)

    @rule(target=ids, chosen=ids, agent=agents, which=stores)
    def save_again(self, chosen: str, agent: str, which: int) -> str:
        row = self.rows[chosen]
        return self.saved(row.content, row.namespace, agent, row.key, None, which)

    def saved(self, content: str, namespace: str, agent: str, key: str | None, lives: int | None, which: int) -> str:
        ends = None if lives is None else self.now + lives
        expires_at = None if ends is None else self.start + timedelta(seconds=ends)
        draft = Draft(content, namespace, tags=(agent,), key=key, expires_at=expires_at)
        head = self.head(namespace, key) if key else None
        twin = self.twin(namespace, content)
        joins = (
            twin if key is None else head if head and self.state(head) == "live" and head.content == content else None
        )
        saved = self.notes(which).save(draft, self.caller(namespace, agent), Deadline(20))
        assert saved.sequence > self.sequence
        self.sequence = saved.sequence
        if joins is not None:
            assert (saved.status, saved.id, saved.version) == ("duplicate", joins.id, joins.version)
            joins.savers += [] if agent in joins.savers else [agent]
            joins.ends = joined(joins.ends, ends)
            joins.tags.add(agent)
            return saved.id
        assert saved.id not in self.rows
        loose = twin if key and twin and twin.key is None else None
        row = Row(saved.id, content, namespace, key, head.version + 1 if head else 1, len(self.rows), [agent], ends)
        row.tags = {agent}
        if loose is not None:
            row.savers = loose.savers + ([] if agent in loose.savers else [agent])
            row.ends = joined(loose.ends, ends)
            row.tags |= loose.tags
        replaced = [old for old in (head, loose) if old is not None]
        for old in replaced:
            old.superseded_by = row.id
        self.rows[row.id] = row
        assert (saved.status, saved.version) == ("updated" if replaced else "created", row.version)
        assert saved.supersedes == (replaced[0].id if replaced else None)
        return saved.id

    @rule(chosen=ids, which=stores, dry_run=st.booleans())
    def forget(self, chosen: str, which: int, dry_run: bool) -> None:
        row = self.rows[chosen]
        done = self.notes(which).forget(
            Selection((row.namespace,), (chosen,), reason="test"),
            self.caller(row.namespace),
            Deadline(20),
            dry_run=dry_run,
        )
        if self.expired(row):
            assert done.unknown == (chosen,)
        elif row.forgotten:
            assert done.already == (chosen,)
        else:
            assert [note.id for note in done.notes] == [chosen]
            row.forgotten = not dry_run
        assert done.count == len(done.notes)
        self.sequence = max(self.sequence, done.sequence)

    @rule(namespace=namespaces, agent=agents, which=stores)
    def forget_all_of_an_agent(self, namespace: str, agent: str, which: int) -> None:
        done = self.notes(which).forget(
            Selection((namespace,), agent=agent), self.caller(namespace), Deadline(20), dry_run=False
        )
        with_agent = [row for row in self.live(namespace) if agent in row.savers]
        alone = [row for row in with_agent if row.savers == [agent]]
        assert {note.id for note in done.notes} == {row.id for row in alone}
        assert done.shared == len(with_agent) - len(alone)
        for row in alone:
            row.forgotten = True
        self.sequence = max(self.sequence, done.sequence)

    @rule(chosen=ids, which=stores)
    def restore(self, chosen: str, which: int) -> None:
        self.restored(chosen, which)

    def restored(self, chosen: str, which: int) -> None:
        row = self.rows[chosen]
        done = self.notes(which).restore((chosen,), self.caller(row.namespace), Deadline(20))
        twin = self.twin(row.namespace, row.content)
        if self.expired(row):
            assert done.expired == (chosen,)
        elif not row.forgotten:
            assert done.live == (chosen,)
        elif row.superseded_by is not None:
            assert done.superseded == (chosen,)
            row.forgotten = False
        elif twin is not None and (row.key is None or twin.key is None):
            assert done.duplicates == {chosen: twin.id}
        else:
            assert done.restored == (chosen,)
            row.forgotten = False
        self.sequence = max(self.sequence, done.sequence)

    @rule(which=stores)
    def restore_all(self, which: int) -> None:
        for chosen, row in self.rows.items():
            if row.forgotten:
                self.restored(chosen, which)

    @rule(seconds=st.integers(1, 12))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)
        self.now += seconds

    @rule(which=stores)
    def restart(self, which: int) -> None:
        self.stores[which].close()
        self.stores[which] = self.opened()

    @rule()
    def restart_all(self) -> None:
        for store in self.stores:
            store.close()
        self.stores = [self.opened(), self.opened()]

    @rule(chosen=consumes(ids), which=stores, namespace=namespaces)
    def get(self, chosen: str, which: int, namespace: str) -> None:
        row = self.rows[chosen]
        got = self.notes(which).get((chosen,), self.caller(namespace), Deadline(20))
        if row.namespace != namespace:
            assert got.unknown == (chosen,)
        elif self.expired(row):
            assert got.expired == (chosen,)
        elif row.forgotten:
            assert got.forgotten == (chosen,)
        else:
            (note,) = got.notes
            assert (note.content, note.version, note.superseded_by) == (row.content, row.version, row.superseded_by)
            assert [saver.agent for saver in note.savers] == row.savers
            assert set(note.tags) == row.tags
            ends = None if note.expires_at is None else (note.expires_at - self.start).total_seconds()
            assert ends == row.ends
            if row.key is not None:
                versions = [each for each in self.rows.values() if (each.namespace, each.key) == (namespace, row.key)]
                assert [each.id for each in got.history[chosen]] == [each.id for each in versions]

    @rule(word=st.sampled_from(WORDS), which=stores, searched=st.sampled_from([("p",), ("q",), NAMESPACES]))
    def query(self, word: str, which: int, searched: tuple[str, ...]) -> None:
        groups = analyse_query(word)
        vector = ENCODER.encode(word, Deadline(20))
        with self.stores[which].read(Deadline(20)) as reading:
            among = reading.among(Filter(searched))
            lexical = reading.by_row(reading.text.matching(groups, among, 1000).rows.tolist())
            semantic = reading.by_row(reading.vectors.nearest(vector, among, 1000).rows.tolist())
            assert reading.sequence == self.sequence
        live = self.live(*searched)
        parts = word.split()
        assert {note.id for note in semantic.values()} == {row.id for row in live}
        assert {note.id for note in lexical.values()} == {
            row.id for row in live if any(part in row.content for part in parts)
        }

    @invariant()
    def every_table_agrees(self) -> None:
        with closing(sqlite3.connect(self.folder / "agora.db", isolation_level=None)) as connection:
            assert find_problems(connection) == []
            (items, texts, passages, vectors, fulltext), *_ = connection.execute(
                "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM texts), (SELECT count(*) FROM passages),"
                " (SELECT count(*) FROM vectors), (SELECT count(*) FROM fulltext)"
            )
            (gaps,) = connection.execute("SELECT count(*) - ifnull(max(sequence), 0) FROM journal").fetchone()
        assert items == texts == len(self.rows)
        assert passages == vectors >= items
        assert fulltext <= passages
        assert gaps == 0

    @invariant()
    def counts_and_live_rows_agree(self) -> None:
        for number, store in enumerate(self.stores):
            with store.read(Deadline(20)) as reading:
                counts = reading.counts(NAMESPACES)
                rows = reading.vectors.nearest(
                    np.full(16, 0.25, np.float32), reading.among(Filter(NAMESPACES)), 10_000
                ).rows
                found = {note.id for note in reading.by_row(rows.tolist()).values()}
                assert reading.sequence == self.sequence, number
            states = [self.state(row) for row in self.rows.values()]
            assert counts["notes"] == {
                "rows": len(states),
                **{state: states.count(state) for state in ("live", "superseded", "forgotten", "expired")},
            }
            live = self.live(*NAMESPACES)
            assert found == {row.id for row in live}
            assert counts["agents"] == {
                agent: number for agent in ("ann", "bob", "cid") if (number := sum(agent in row.savers for row in live))
            }

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder, ignore_errors=True)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
