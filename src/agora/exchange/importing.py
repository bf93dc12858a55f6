from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from agora.errors import AgoraError, InvalidInput, InvalidNamespace
from agora.exchange.drafts import Drafts
from agora.exchange.events import Broken, LeftOut, Reader, Text
from agora.exchange.exporting import Progress
from agora.exchange.formats import FORMATS, recognise
from agora.exchange.native_reader import NativeReader
from agora.exchange.origins import lowered, lowest
from agora.exchange.report import Report
from agora.exchange.sources import Source
from agora.memory.access import require
from agora.memory.passages import embed
from agora.model.caller import Caller, Origin
from agora.model.deadline import Deadline
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.log import Log
from agora.ports.records import Embedded, VectorsNeeded
from agora.ports.transfer import Arrival, Incoming, Transfer, Version

BATCH = 200
"""Versions in one transaction."""

_BYTES = 1 << 20
"""Text in one transaction: what is embedded before anything of it is kept."""

Callers = Callable[[str | None], Caller]
"""Who imports, as somebody who has named a namespace; raises what naming it raises."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a file is taken.

    Of Agora's own format `namespaces` are the ones to take, none for all; texts of other tools go to the only one, else
    to the caller's own. `origin` can only lower what the texts have by their source.
    """

    format: str | None = None
    namespaces: tuple[str, ...] = ()
    origin: Origin | None = None
    dry_run: bool = False


class Importer:
    """Takes notes in from files: Agora's own exports, and what other tools keep."""

    def __init__(self, transfer: Transfer, encoder: Encoder, clock: Clock, log: Log, *, content_bytes: int) -> None:
        """`content_bytes`: the longest text of a note; longer ones of other tools come in parts."""
        self._transfer = transfer
        self._encoder = encoder
        self._clock = clock
        self._log = log
        self._content_bytes = content_bytes

    def run(
        self,
        source: Source,
        callers: Callers,
        wanted: Wanted,
        deadline: Deadline,
        progress: Progress = lambda done, total: None,  # noqa: ARG005 - nobody is told
    ) -> Report:
        """Take in what `source` holds, a few hundred versions a transaction; what became of it.

        What was taken in stays if it is stopped midway, and running it again goes on from there. A dry run says the
        same and changes nothing.

        Raises: InvalidInput if the format is unknown or of a later version; NamespaceDenied; EmbeddingMismatch;
        WarmingUp; StoreUnavailable.
        """
        name = wanted.format or recognise(source)
        reader = FORMATS[name].reader(source)
        report = Report(source.name, name, wanted.dry_run)
        place: AbstractContextManager[Incoming] = (
            self._transfer.rehearsal(deadline) if wanted.dry_run else contextlib.nullcontext(self._transfer)
        )
        with place as incoming:
            taking = _Taking(incoming, self._encoder, self._clock, callers(None), report, _about(source, name, reader))
            if isinstance(reader, NativeReader):
                admit: _Native | _Foreign = _Native(reader, callers, wanted, report, self._encoder)
            else:
                admit = _Foreign(name, callers, wanted, report, self._clock, self._content_bytes)
            for event in reader.events():
                if isinstance(event, Broken):
                    report.missed(event)
                elif isinstance(event, LeftOut):
                    report.left_out[event.what] += event.times
                else:
                    for arrival in admit(event):
                        if taking.add(arrival, deadline):
                            progress(source.position, source.size)
            taking.flush(deadline)
            progress(source.position, source.size)
        report.problems += [*reader.problems, *([source.damage] if source.damage else [])]
        self._log.info("notes imported", format=name, dry_run=wanted.dry_run, **dict(report.counts))
        return report


class _Taking:
    """Batches of arrivals on their way into the store."""

    def __init__(
        self,
        incoming: Incoming,
        encoder: Encoder,
        clock: Clock,
        caller: Caller,
        report: Report,
        about: Mapping[str, Any],
    ) -> None:
        self._incoming = incoming
        self._encoder = encoder
        self._clock = clock
        self._caller = caller
        self._report = report
        self._about = about
        self._batch: list[Arrival] = []
        self._size = 0

    def add(self, arrival: Arrival, deadline: Deadline) -> bool:
        """Whether a batch went in with it."""
        self._batch.append(arrival)
        self._size += len(arrival.version.content or "")
        if len(self._batch) < BATCH and self._size < _BYTES:
            return False
        self.flush(deadline)
        return True

    def flush(self, deadline: Deadline) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        if not batch:
            return
        settled = self._incoming.settled(batch, self._clock.now(), deadline)
        try:
            outcomes = self._add(self._embedded(batch, settled, deadline), deadline)
        except VectorsNeeded:
            # Something that was here a moment ago is gone, or waits for something else in this batch.
            outcomes = self._add(self._embedded(batch, frozenset(), deadline), deadline)
        for arrival, outcome in zip(batch, outcomes, strict=True):
            self._report.took(arrival.version, outcome)

    def _add(self, batch: Sequence[Arrival], deadline: Deadline) -> Sequence[Any]:
        return self._incoming.add(batch, self._caller, self._about, self._clock.now(), deadline)

    def _embedded(self, batch: Sequence[Arrival], settled: frozenset[str], deadline: Deadline) -> list[Arrival]:
        return [
            each
            if each.embedded is not None or each.version.content is None or each.version.id in settled
            else replace(each, embedded=embed(self._encoder, each.version.title, each.version.content, deadline))
            for each in batch
        ]


class _Native:
    """Versions of Agora's own format, as the caller may take them in."""

    def __init__(
        self, reader: NativeReader, callers: Callers, wanted: Wanted, report: Report, encoder: Encoder
    ) -> None:
        self._reader = reader
        self._callers = callers
        self._wanted = wanted
        self._report = report
        self._fingerprint = encoder.fingerprint
        self._ours = reader.profile == encoder.fingerprint.digest()
        self._known: dict[str, Caller | str] = {}

    def __call__(self, event: Version | Text) -> list[Arrival]:
        assert isinstance(event, Version)
        if self._wanted.namespaces and event.namespace not in self._wanted.namespaces:
            self._report.left_out["other namespaces"] += 1
            return []
        caller = self._caller(event.namespace)
        if isinstance(caller, str):
            self._report.missed(Broken(self._reader.place, f"namespace: {caller}"))
            return []
        require(caller, (event.namespace,))
        version, changed = lowered(event, lowest(caller.origin, self._wanted.origin))
        self._report.lowered += changed
        if not (version.passages and self._ours):
            return [Arrival(replace(version, passages=()))]
        spans, vectors = zip(*version.passages, strict=True)
        return [Arrival(replace(version, passages=()), Embedded(self._fingerprint, spans, vectors))]

    def _caller(self, namespace: str) -> Caller | str:
        """The caller with this namespace, or why it cannot be one."""
        if namespace not in self._known:
            try:
                caller = self._callers(namespace)
            except InvalidNamespace as error:
                self._known[namespace] = error.reason
            else:
                exact = caller.scope.own == namespace
                self._known[namespace] = caller if exact else f"is written {caller.scope.own!r}"
        return self._known[namespace]


class _Foreign:
    """Texts of another tool as versions that the caller makes of them."""

    def __init__(
        self, name: str, callers: Callers, wanted: Wanted, report: Report, clock: Clock, content_bytes: int
    ) -> None:
        if len(wanted.namespaces) > 1:
            raise InvalidInput("namespace", f"texts of the format {name} go to one namespace", wanted.namespaces)
        caller = callers(wanted.namespaces[0] if wanted.namespaces else None)
        require(caller, (caller.scope.own,))
        origin = lowest(caller.origin, FORMATS[name].origin, wanted.origin)
        self._drafts = Drafts(name, report.file, replace(caller, origin=origin), clock.now(), content_bytes)
        self._report = report

    def __call__(self, event: Version | Text) -> list[Arrival]:
        assert isinstance(event, Text)
        try:
            versions, left_out = self._drafts.of(event)
        except AgoraError as error:
            self._report.missed(Broken(event.place, error.message))
            return []
        self._report.left_out.update(left_out)
        return [Arrival(version, follows=True) for version in versions]


def _about(source: Source, name: str, reader: Reader) -> dict[str, Any]:
    """Where it came from, for the journal's payload."""
    return {"file": source.name, "format": name} | ({"store": reader.store} if isinstance(reader, NativeReader) else {})
