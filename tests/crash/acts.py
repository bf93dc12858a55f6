"""What a process does with a store, as commands that take and give plain data, so that they can go through a pipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.crash.station import PATIENCE, Station, whole

from agora.app.purging import make_purger
from agora.errors import Conflict, EmbeddingMismatch
from agora.maintenance.reembed import Reembed
from agora.memory.facts import FactMemory
from agora.model.backend import ToolDefinition
from agora.model.caller import Caller, Scope
from agora.model.calls import CallRow
from agora.model.deadline import Deadline
from agora.model.fact import FactDraft, Recollection
from agora.model.instants import to_micros
from agora.model.note import Draft
from agora.model.purge import Unwanted
from agora.model.query import Filter, Query
from agora.model.selection import Selection
from agora.ports.extractor import Extraction
from agora.stores.sqlite.backup import back_up
from agora.stores.sqlite.restore import checked
from agora.testing import FakeEncoder, SilentLog
from agora.text.analysis import analyse_query


class _Nothing:
    def extract(self, text: str, deadline: Deadline) -> Extraction:  # noqa: ARG002 - the port's form
        return Extraction((), "nothing")


class Acts:
    """The acts of one process: the name of a command is the method's."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.folder, self.agent = folder, agent
        self.station: Station

    def open(
        self, settings: dict[str, Any] | None = None, now: float = 0.0, encoder: tuple[int, int] | None = None
    ) -> None:
        """Open the store and the cache, on a clock that is so many seconds on.

        `encoder`: length of the vectors and of the passages, if it is not the first one's.
        """
        self._settings = settings or {}
        made = None if encoder is None else other_encoder(*encoder)
        self.station = Station(self.folder, agent=self.agent, encoder=made, **self._settings)
        self.station.clock.advance(seconds=now)

    def close(self) -> None:
        """Let everything go."""
        self.station.close()

    def sight(self, description: str) -> None:
        """See the one tool of another server, which says this of itself."""
        tools = [ToolDefinition("files", "get", description)]
        self.station.store.tool_pins().seen("files", "x", tools, self.station.clock.now(), Deadline(PATIENCE))

    def approve(self) -> None:
        """Approve what it says of itself now."""
        pins, deadline = self.station.store.tool_pins(), Deadline(PATIENCE)
        digests = {tool: pin.seen_digest for tool, pin in pins.known("files", "x", deadline).items()}
        caller = replace(self.station.caller(), origin="user")
        pins.approve("files", "x", digests, caller, self.station.clock.now(), deadline)

    def call(self) -> None:
        """Record a call of it."""
        caller = self.station.caller()
        row = CallRow(self.station.clock.now(), caller, "files", "get", "read", "name", "name", "ok", 0.1)
        self.station.store.call_log().record(row, Deadline(PATIENCE))

    def advance(self, seconds: float) -> None:
        """Move this process's clock."""
        self.station.clock.advance(seconds=seconds)

    def save(self, content: str, given: dict[str, Any] | None = None) -> str:
        """The id of the saved text."""
        return self.station.save(content, **(given or {})).id

    def saved(self, content: str, namespace: str, agent: str, key: str | None, lives: float | None) -> dict[str, Any]:
        """Everything that a save answers."""
        expires = None if lives is None else self.station.clock.now() + timedelta(seconds=lives)
        draft = Draft(content, namespace, tags=(agent,), key=key, expires_at=expires)
        saved = self.station.notes.save(draft, _narrow(namespace, agent), Deadline(PATIENCE))
        return {
            "id": saved.id,
            "status": saved.status,
            "version": saved.version,
            "sequence": saved.sequence,
            "supersedes": saved.supersedes,
        }

    def forget(self, ids: Sequence[str]) -> int:
        """How many notes were hidden, wherever they are."""
        return self.station.forget(*ids).count

    def forgotten(self, namespace: str, ids: Sequence[str], agent: str | None, *, dry_run: bool) -> dict[str, Any]:
        """Everything that a forget answers."""
        selection = Selection((namespace,), tuple(ids), agent=agent, reason="test")
        caller = _narrow(namespace)
        done = self.station.notes.forget(selection, caller, Deadline(PATIENCE), dry_run=dry_run)
        return {
            "ids": [note.id for note in done.notes],
            "count": done.count,
            "unknown": list(done.unknown),
            "already": list(done.already),
            "shared": done.shared,
            "sequence": done.sequence,
        }

    def restore(self, ids: Sequence[str]) -> list[str]:
        """Which notes came back, wherever they are."""
        return list(self.station.restore(*ids).restored)

    def restored(self, namespace: str, public_id: str) -> dict[str, Any]:
        """The state that a restore of one note found, and what it repeats or the sequence after it."""
        done = self.station.notes.restore((public_id,), _narrow(namespace), Deadline(PATIENCE))
        states = ("restored", "superseded", "live", "expired", "purged")
        (state,) = [name for name in states if public_id in getattr(done, name)] or ["duplicate"]
        return {"state": state, "repeats": done.duplicates.get(public_id), "sequence": done.sequence}

    def got(self, namespace: str, public_id: str) -> dict[str, Any]:
        """What is told of one note."""
        got = self.station.notes.get((public_id,), _narrow(namespace), Deadline(PATIENCE))
        for state in ("unknown", "expired", "forgotten", "purged"):
            if public_id in getattr(got, state):
                return {"state": state}
        (note,) = got.notes
        born = self.station.start
        return {
            "state": "there",
            "content": note.content,
            "version": note.version,
            "superseded_by": note.superseded_by,
            "savers": [saver.agent for saver in note.savers],
            "tags": sorted(note.tags),
            "ends": None if note.expires_at is None else (note.expires_at - born).total_seconds(),
            "history": [each.id for each in got.history.get(public_id, ())],
        }

    def purge(self, namespace: str, public_id: str) -> dict[str, Any]:
        """What a purge of one note did; `refused` if it was not forgotten."""
        station = self.station
        cache_file = self.folder / "cache.db"
        purger = make_purger(station.store.purging(), station.cache, cache_file, station.clock, SilentLog())
        try:
            condemned = purger.condemn(Unwanted((namespace,), (public_id,)), Deadline(PATIENCE))
        except Conflict:
            return {"refused": True}
        done = purger.purge(condemned, _narrow(namespace), Deadline(PATIENCE))
        problems = {each.place: each.problem for each in done.places if each.problem}
        return {"refused": False, "gone": list(condemned.gone), "versions": done.versions, "problems": problems}

    def revert(self, agent: str, batch: int = 3) -> dict[str, int]:
        """Undo everything that one agent did, a few notes in a transaction; how much was done of each kind."""
        from agora.maintenance.revert import Reverter  # noqa: PLC0415 - as in `repair`
        from agora.model.audit import Writer  # noqa: PLC0415 - as in `repair`
        from agora.stores.sqlite.audit_revert import SqliteReverting  # noqa: PLC0415 - as in `repair`

        with SqliteReverting(self.folder / "agora.db", synchronous="normal", busy_timeout=PATIENCE) as store:
            reverter = Reverter(store, self.station.clock, SilentLog(), batch=batch)
            caller = Caller(Scope("p", "test"), "eve", "s-eve", "c", origin="user")
            return dict(
                Counter(step.undoing for step in reverter.revert(Writer(agent), caller, Deadline(PATIENCE)).done)
            )

    def remember(self, key: str, value: Any, given: dict[str, Any] | None = None) -> str:
        """The id of the fact that carries the value."""
        draft = FactDraft("p", "user", key, value, **(given or {}))
        return self._facts().remember(draft, self.station.caller(), Deadline(PATIENCE)).id

    def recall(self, key: str) -> list[tuple[str, Any, str]]:
        """Id, value and state of everything that was ever said of a key, what holds first."""
        asked = Recollection(("p",), "user", key, include_history=True)
        found = self._facts().recall(asked, self.station.caller(), Deadline(PATIENCE))
        return [(each.fact.id, each.fact.value, each.state) for each in (*found.facts, *found.history)]

    def _facts(self) -> FactMemory:
        station = self.station
        return FactMemory(
            station.store.facts(), station.encoder, station.clock, SilentLog(), _Nothing(), model_seconds=PATIENCE
        )

    def query(self, text: str, mode: str = "hybrid") -> list[str]:
        """Ids of what is found, by the cache where it can."""
        return self.station.found(text, mode, anew=False)  # type: ignore[arg-type]

    def asked(self, text: str, mode: str, searched: Sequence[str], tags: Sequence[str]) -> list[str]:
        """Ids of what a query finds."""
        caller = Caller(Scope(searched[0], "test", frozenset(searched)), self.agent, "s", "c")
        query = Query(text, Filter(tuple(searched), tags=tuple(tags)), 50, mode, None, 1_000_000)  # type: ignore[arg-type]
        return [hit.note.id for hit in self.station.notes.query(query, caller, Deadline(PATIENCE)).hits]

    def everything(self, text: str, searched: Sequence[str], tags: Sequence[str]) -> dict[str, Any]:
        """What the two indexes find without limit, in one snapshot."""
        encoder = self.station.encoder
        with self.station.store.read(Deadline(PATIENCE)) as reading:
            among = reading.among(Filter(tuple(searched), tags=tuple(tags)))
            vector = encoder.encode(text, Deadline(PATIENCE))
            rows = {
                "semantic": reading.vectors.nearest(vector, among, 100_000).rows.tolist(),
                "lexical": reading.text.matching(analyse_query(text), among, 100_000).rows.tolist(),
            }
            ids = {name: sorted(note.id for note in reading.by_row(found).values()) for name, found in rows.items()}
            return {**ids, "sequence": reading.sequence}

    def counts(self, namespaces: Sequence[str]) -> dict[str, Any]:
        """Numbers of notes by state and of live notes by agent."""
        with self.station.store.read(Deadline(PATIENCE)) as reading:
            found = reading.counts(namespaces)
            return {"notes": found["notes"], "agents": found["agents"], "sequence": reading.sequence}

    def read(self, text: str) -> list[str]:
        """What a query by words finds; returns when what is written behind the answer is written."""
        found = self.query(text, "lexical")
        self.settle()
        return found

    def settle(self) -> None:
        """Wait for what is written behind the answers."""
        self.station.settle()

    def compact(self, *, force: bool = True) -> bool:
        """Whether there was anything to do."""
        return self.station.store.compact(force=force) is not None

    def reindex(self) -> None:
        """Build the index anew."""
        self.station.store.reindex()

    def reembed(self, dimension: int = 24, piece: int = 40) -> None:
        """Move the store to an encoder that makes vectors of this length and cuts texts into pieces of this one."""
        encoder = other_encoder(dimension, piece)
        clock, start = self.station.clock, self.station.start
        self.station.close()
        self.station = Station(self.folder, clock, encoder=encoder, agent=self.agent, **self._settings)
        self.station.start = start
        store = self.station.store
        work = Reembed(store.reembedding(), encoder, clock, SilentLog(), batch=4, model_seconds=PATIENCE)
        work.run(_narrow("p"), Deadline(PATIENCE), lambda *_: None, lambda _: None)
        store.compact(force=True)

    def mismatch(self) -> bool:
        """Whether the store has another encoder than this process, which then answers by words alone."""
        if self.station.store.mismatch is None:
            return False
        for act in (lambda: self.query("alpha", "semantic"), lambda: self.save("never written")):
            try:
                act()
            except EmbeddingMismatch:
                continue
            raise AssertionError("another encoder's vectors were used")
        self.query("alpha", "lexical")
        return True

    def backup(self, name: str) -> int:
        """Write a backup beside the store; how many notes it holds."""
        done = back_up(self.folder / "agora.db", self.folder / name, to_micros(self.station.clock.now()), told)
        assert done.problems == []
        return done.contents.versions

    def restore_backup(self, name: str, copy: str | None = None) -> None:
        """Put a backup in the store's place, and keep a copy of what was there if it is to have a name."""
        with checked(self.folder / name, to_micros(self.station.clock.now()), told) as backup:
            backup.put_in_place_of(self.folder / "agora.db", self.folder / copy if copy else None, PATIENCE, told)

    def repair(self) -> list[str]:
        """What is still wrong after a repair with this process's encoder, by code."""
        from agora.app.checking import failures  # noqa: PLC0415 - a process that does not repair starts twice as fast
        from agora.app.repairing import repair  # noqa: PLC0415 - as above
        from agora.config.load import load_settings  # noqa: PLC0415 - as above

        found = repair(load_settings({"home": str(self.folder)}), choose=lambda: self.station.encoder)
        # That the model is not the one that is set is so on purpose.
        return [str(row["code"]) for row in failures(found.after) if row["name"] != "model"]

    def export(self, file: str) -> list[str]:
        """Write everything to a file; its lines between the first and the last."""
        from agora.exchange import targets  # noqa: PLC0415 - as in `repair`
        from agora.exchange.exporting import Exporter  # noqa: PLC0415 - as in `repair`
        from agora.ports.transfer import Extract  # noqa: PLC0415 - as in `repair`

        transfer, deadline = self.station.store.transfer(), Deadline(PATIENCE)
        with targets.opened(file, replace=True) as out:
            exporter = Exporter(transfer, self.station.clock, SilentLog())
            exporter.run(Extract(transfer.namespaces(deadline)), self.station.caller(), out, deadline)
        return Path(file).read_text("utf-8").splitlines()[1:-1]

    def take_in(self, file: str) -> dict[str, int]:
        """Import a file; how many versions met which fate."""
        from agora.exchange import sources  # noqa: PLC0415 - as in `repair`
        from agora.exchange.importing import Importer, Wanted  # noqa: PLC0415 - as in `repair`

        station = self.station
        transfer = station.store.transfer()
        importer = Importer(transfer, station.encoder, station.clock, SilentLog(), content_bytes=100_000)
        with sources.opened(file) as [source]:
            report = importer.run(
                source, lambda name: station.caller("importer", name or "p"), Wanted(), Deadline(PATIENCE)
            )
        found: dict[str, int] = report.as_data()["counts"]
        return found

    def check(self) -> None:
        """Every invariant, as this process sees it."""
        whole(self.station)


def told(what: str, done: int, total: int | None) -> None:
    """Hears how far a backup is: a place to die at."""


def other_encoder(dimension: int, piece: int) -> FakeEncoder:
    """The encoder of `Acts.reembed`."""
    return FakeEncoder(dimension, piece, "other")


def _narrow(namespace: str, agent: str = "ann") -> Caller:
    """Somebody who sees one namespace."""
    return Caller(Scope(namespace, "test", frozenset()), agent, "s", "c")
