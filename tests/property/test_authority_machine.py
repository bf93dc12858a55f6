"""Any run of acts by callers of mixed origins, in two stores that exchange files: what is of higher origin is never
changed, hidden or lost by what is of lower, and both are shown.

`MACHINE_RUNS=20` multiplies the number of examples.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.conftest import PATIENCE, Desk
from tests.unit.exchange.ferry import foreign, send, take

from agora.model.caller import RANKS, Origin, rank
from agora.model.deadline import Deadline
from agora.model.note import Note
from agora.model.purge import Unwanted
from agora.model.query import Filter
from agora.text.analysis import analyse_query
from agora.text.identity import content_hash

RUNS = int(os.environ.get("MACHINE_RUNS", "1"))
CONTENTS = ("the port is one", "the port is two", "the port is three", "the port is four")

origins = st.sampled_from(RANKS)
which = st.integers(0, 1)
keys = st.sampled_from([None, "k", "k", "l"])
lives = st.sampled_from([None, None, None, 5, 20])
picks = st.integers(0, 30)


@dataclass(frozen=True)
class Seen:
    """A row with everything that nobody of lower origin may change."""

    note: Note
    level: int
    live: bool
    fields: tuple[Any, ...]


class AuthorityMachine(RuleBasedStateMachine):
    """Every rule is one act by one origin, between two looks at everything."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="agora-authority-"))
        self.desks: list[Desk] = []
        for name in ("one", "other"):
            (self.folder / name).mkdir()
            clock = self.desks[0].clock if self.desks else None
            self.desks.append(Desk(self.folder / name, clock=clock))
        self.files = 0

    def seen(self, desk: Desk) -> dict[str, Seen]:
        ids = [row[0] for row in desk.sql("SELECT public_id FROM items WHERE purged_at IS NULL ORDER BY id")]
        now = desk.clock.now()
        with desk.store.read(Deadline(PATIENCE)) as reading:
            notes = [note for _, note in reading.by_id(ids, ["p"]).values()]
        found = {}
        for note in notes:
            ended = note.expires_at is not None and note.expires_at <= now
            live = note.superseded_by is None and note.forgotten_at is None and not ended
            named = ("content", "title", "kind", "key", "version", "metadata", "confidence", "tags", "expires_at")
            state = ("contests", "pinned_at", "created_at", "updated_at")
            fields = tuple(getattr(note, name) for name in (*named, *state))
            found[note.id] = Seen(note, rank(note.origin), live, fields)
        return found

    def shown(self, desk: Desk) -> set[str]:
        """What both indexes find, without limit."""
        with desk.store.read(Deadline(PATIENCE)) as reading:
            among = reading.among(Filter(("p",)))
            near = reading.vectors.nearest(desk.encoder.encode("port", Deadline(PATIENCE)), among, 1000)
            words = reading.text.matching(analyse_query("port"), among, 1000)
            assert set(near.rows.tolist()) == set(words.rows.tolist())
            return {note.id for note in reading.by_row(near.rows.tolist()).values()}

    @contextmanager
    def act(self, desk: Desk, origin: Origin) -> Iterator[None]:
        """Whatever happens inside, by a caller of `origin`, leaves what is of higher origin as it was."""
        before = self.seen(desk)
        yield
        after, shown = self.seen(desk), self.shown(desk)
        for public_id, old in before.items():
            if old.level < rank(origin):
                # Of what is gone already the place may be taken, and nothing else.
                assert after[public_id].fields == old.fields, (old, after[public_id])
                assert after[public_id].live == old.live
                assert (public_id in shown) == old.live
            if old.live and public_id in after and (successor := after[public_id].note.superseded_by) is not None:
                # Whoever brings it: what takes a place is of no lower origin than what had it.
                assert after[successor].level <= old.level, (old, after[successor])
        assert shown == {public_id for public_id, new in after.items() if new.live}
        for new in after.values():
            self.names_each_other(new, after)

    def names_each_other(self, new: Seen, after: dict[str, Seen]) -> None:
        if new.live and new.note.contests in after:
            assert new.note.id in after[new.note.contests].note.contested_by
        for other in new.note.contested_by:
            assert after[other].live
            assert after[other].note.contests == new.note.id

    @rule(
        at=which,
        origin=origins,
        content=st.sampled_from(CONTENTS),
        key=keys,
        life=lives,
        tag=st.sampled_from(["a", "b", None]),
        confidence=st.sampled_from([None, 0.1, 1.0]),
    )
    def save(
        self,
        at: int,
        origin: Origin,
        content: str,
        key: str | None,
        life: int | None,
        tag: str | None,
        confidence: float | None,
    ) -> None:
        desk = self.desks[at]
        with self.act(desk, origin):
            stood = {each.note.id: each for each in self.seen(desk).values() if each.live and each.note.key == key}
            saved = desk.save(
                content,
                f"agent{rank(origin)}",
                origin=origin,
                key=key,
                lives=life,
                tags=() if tag is None else (tag,),
                metadata={} if tag is None else {"from": f"{origin} {tag}"},
                confidence=confidence,
            )
        note, shown = desk.note(saved.id), self.shown(desk)
        # What was said is there, in these words.
        assert note.content == content
        assert saved.id in shown
        above = {public_id for public_id, each in stood.items() if each.level < rank(origin)} if key else set()
        assert above <= shown
        if above:
            # Both are shown; or it is what somebody has said already.
            assert saved.status == "contested" or (saved.status == "duplicate" and saved.id in stood)
        else:
            assert saved.status != "contested"
            assert note.contests is None
        assert saved.contests == (note.contests if saved.status == "contested" else None)

    @rule(at=which, origin=origins, picked=picks, bulk=st.sampled_from([None, None, "tag", "agent", "before"]))
    def forget(self, at: int, origin: Origin, picked: int, bulk: str | None) -> None:
        desk = self.desks[at]
        before = self.seen(desk)
        chosen = self.pick(before, picked)
        every: dict[str | None, dict[str, Any]] = {
            "tag": {"tags": ("a",)},
            "agent": {"agent": f"agent{picked % 4}"},
            "before": {"before": desk.clock.now()},
        }
        conditions = every.get(bulk, {})
        if not conditions and chosen is None:
            return
        ids = () if conditions or chosen is None else (chosen,)
        preview = desk.forget(*ids, origin=origin, dry_run=True, **conditions)
        with self.act(desk, origin):
            done = desk.forget(*ids, origin=origin, **conditions)
        assert (preview.count, preview.protected) == (done.count, done.protected)
        assert all(before[public_id].level < rank(origin) for public_id in done.protected)
        if ids and before[ids[0]].live:
            assert (done.count, len(done.protected)) == ((0, 1) if before[ids[0]].level < rank(origin) else (1, 0))

    @rule(at=which, origin=origins, picked=picks)
    def restore(self, at: int, origin: Origin, picked: int) -> None:
        desk = self.desks[at]
        hidden = {public_id: each for public_id, each in self.seen(desk).items() if each.note.forgotten_at is not None}
        chosen = self.pick(hidden, picked)
        if chosen is not None:
            by = desk.sql(
                "SELECT origin FROM journal WHERE subject = ? AND operation = 'forget' ORDER BY sequence DESC", chosen
            )
            # Of what is restored, what a higher origin has written stays as it is, but for being forgotten.
            done = desk.restore(chosen, origin=origin)
            if by and rank(by[0][0]) < rank(origin):
                assert not done.restored
            if done.restored:
                note, old = desk.note(chosen), hidden[chosen]
                assert (note.content, note.metadata, note.tags) == (old.note.content, old.note.metadata, old.note.tags)
                assert chosen in self.shown(desk)

    @rule(at=which, origin=origins, picked=picks, pinned=st.booleans())
    def pin(self, at: int, origin: Origin, picked: int, pinned: bool) -> None:
        desk = self.desks[at]
        chosen = self.pick(self.seen(desk), picked)
        if chosen is not None and origin == "user":
            desk.pin(chosen, pinned=pinned)

    @rule(at=which, origin=origins, expired=st.booleans())
    def purge(self, at: int, origin: Origin, expired: bool) -> None:
        desk = self.desks[at]
        purging = desk.store.purging()
        now, deadline = desk.clock.now(), Deadline(PATIENCE)
        with self.act(desk, origin):
            condemned = purging.condemn(Unwanted(("p",), expired=expired, origin=origin), now, deadline)
            notes, _ = purging.erase(condemned, desk.caller(origin=origin), now, deadline)
        assert notes == len(condemned.groups)

    @rule(at=which, origin=origins, wanted=st.none() | origins)
    def exchange(self, at: int, origin: Origin, wanted: Origin | None) -> None:
        """The other store's export comes in."""
        source, target = self.desks[1 - at], self.desks[at]
        file = self.file("jsonl")
        send(source, file, ("p",)) if source.sql("SELECT 1 FROM namespaces") else file.write_bytes(b"")
        if file.stat().st_size:
            with self.act(target, origin):
                take(target, file, importer=origin, origin=wanted)

    @rule(at=which, origin=origins, content=st.sampled_from(CONTENTS))
    def bring(self, at: int, origin: Origin, content: str) -> None:
        """A file of another tool comes in."""
        desk = self.desks[at]
        file = foreign(self.folder, f"{self.next()}.md", f"# Ports\n\n{content}\n")
        with self.act(desk, origin):
            take(desk, file, importer=origin)

    @rule(seconds=st.integers(1, 12))
    def wait(self, seconds: int) -> None:
        self.desks[0].clock.advance(seconds=seconds)

    @invariant()
    def both_stores_are_whole(self) -> None:
        for desk in self.desks:
            assert desk.problems() == []
            assert all(content_hash(note.note.content) for note in self.seen(desk).values())

    def pick(self, among: dict[str, Seen], picked: int) -> str | None:
        ids = sorted(among)
        return ids[picked % len(ids)] if ids else None

    def next(self) -> int:
        self.files += 1
        return self.files

    def file(self, suffix: str) -> Path:
        return self.folder / f"{self.next()}.{suffix}"

    def teardown(self) -> None:
        for desk in self.desks:
            desk.close()
        shutil.rmtree(self.folder, ignore_errors=True)


TestAuthorityMachine = AuthorityMachine.TestCase
TestAuthorityMachine.settings = settings(
    max_examples=12 * RUNS,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
