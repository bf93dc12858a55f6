"""A cached answer equals the answer found anew, whatever happened in between and in whichever process."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from agora.cache.disk import Disk
from agora.cache.embeddings import CachedEncoder
from agora.cache.results import TwoLevelCache
from agora.memory.notes import Notes
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.model.selection import Selection
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog

_WORDS = ("queue", "gateway", "retry", "port", "login", "cache")
_SPACES = ("shop", "shared", "other")
_TEXTS = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
_QUERIES = (
    Query("queue gateway", Filter(("shop", "shared"))),
    Query("queue port", Filter(("shop", "shared"), tags=("red",)), top_k=3),
    Query("port retry", Filter(("shop",)), mode="lexical"),
    Query("queue login", Filter(("other",)), mode="semantic", min_score=0.05),
)


class _Process:
    """What one process holds: its own store object and memory, the disk level shared with the other."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        encoder = FakeEncoder()
        self.store = SqliteStore(folder / "agora.db", encoder.fingerprint, clock)
        self.disk = Disk(folder / "cache.db", SilentLog(), entries=20, sweep=5)
        self.cache = TwoLevelCache(clock, self.disk, entries=8, seconds=300, disk_seconds=86_400)
        questions = CachedEncoder(encoder, clock, self.disk, entries=8, disk_seconds=86_400)
        self.cached = Notes(
            self.store, encoder, clock, SilentLog(), model_seconds=10, cache=self.cache, questions=questions
        )
        self.anew = Notes(self.store, encoder, clock, SilentLog(), model_seconds=10)

    def close(self) -> None:
        self.store.close()
        self.cache.close()


class CacheMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="agora-test-"))
        self.clock = ManualClock()
        self.processes = [_Process(self.folder, self.clock) for _ in range(2)]
        self.ids: list[str] = []
        self.levels: set[str | None] = set()

    def teardown(self) -> None:
        for process in self.processes:
            process.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(
        process=st.integers(0, 1),
        text=_TEXTS,
        namespace=st.sampled_from(_SPACES),
        agent=st.sampled_from(("ann", "bob")),
        tags=st.sampled_from(((), ("red",), ("red", "blue"))),
        lives=st.sampled_from((None, 30, 400)),
        key=st.sampled_from((None, None, "port")),
    )
    def save(
        self,
        process: int,
        text: str,
        namespace: str,
        agent: str,
        tags: tuple[str, ...],
        lives: int | None,
        key: str | None,
    ) -> None:
        expires = None if lives is None else self.clock.now() + timedelta(seconds=lives)
        draft = Draft(text, namespace, tags=tags, expires_at=expires, key=key)
        self.ids.append(self.processes[process].cached.save(draft, _caller(agent), Deadline(10)).id)

    @rule(process=st.integers(0, 1), pick=st.integers(0, 1000))
    def forget(self, process: int, pick: int) -> None:
        if self.ids:
            chosen = Selection(_SPACES, ids=(self.ids[pick % len(self.ids)],))
            self.processes[process].cached.forget(chosen, _caller("ann"), Deadline(10), dry_run=False)

    @rule(process=st.integers(0, 1), pick=st.integers(0, 1000))
    def restore(self, process: int, pick: int) -> None:
        if self.ids:
            self.processes[process].cached.restore([self.ids[pick % len(self.ids)]], _caller("ann"), Deadline(10))

    @rule(process=st.integers(0, 1), seconds=st.sampled_from((1, 29, 31, 299, 301, 90_000)))
    def ask_and_wait(self, process: int, seconds: int) -> None:
        # Only the clock moves between the two: nothing but the entry's own life can end it.
        self.ask(process)
        self.clock.advance(seconds=seconds)
        self.ask(process)

    @rule(process=st.integers(0, 1))
    def lose_the_memory(self, process: int) -> None:
        self.processes[process].close()
        self.processes[process] = _Process(self.folder, self.clock)

    @rule()
    def delete_the_file(self) -> None:
        for name in ("cache.db", "cache.db-wal", "cache.db-shm"):
            (self.folder / name).unlink(missing_ok=True)

    @rule(process=st.integers(0, 1))
    def ask(self, process: int) -> None:
        one = self.processes[process]
        for query in (*_QUERIES, *_QUERIES):
            found = one.cached.query(query, _caller("ann"), Deadline(10))
            self.levels.add(found.cached)
            assert replace(found, cached=None) == one.anew.query(query, _caller("ann"), Deadline(10))
        assert found.cached == "L1"
        one.disk.flush()

    @invariant()
    def the_levels_stay_within_their_bounds(self) -> None:
        for process in getattr(self, "processes", ()):
            assert process.disk.off is None
            # Each process sweeps at its own fifth write.
            assert process.disk.count("result") <= 20 + 2 * 5


def _caller(agent: str) -> Caller:
    return Caller(Scope("shop", "test", frozenset(_SPACES)), agent=agent, session="h", client="test")


TestCache = CacheMachine.TestCase
TestCache.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
