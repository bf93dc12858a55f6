from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from agora.errors import AgoraError, InvalidInput, InvalidNamespace, SecretRefused
from agora.exchange.cleaning import clean_text, clean_version
from agora.exchange.drafts import Drafts
from agora.exchange.events import Broken, LeftOut, Reader, Text
from agora.exchange.exporting import Progress
from agora.exchange.formats import FORMATS, recognise
from agora.exchange.native_reader import NativeReader
from agora.exchange.origins import lowered
from agora.exchange.report import Report
from agora.exchange.sources import Source
from agora.exchange.taking import PUT_OFF, Taking
from agora.memory.access import require
from agora.model.caller import Caller, Origin, lowest
from agora.model.deadline import Deadline
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.log import Log
from agora.ports.records import Embedded
from agora.ports.transfer import Arrival, Incoming, Transfer, Version
from agora.protocol.redacting import Guard

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

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        transfer: Transfer,
        encoder: Encoder,
        clock: Clock,
        log: Log,
        *,
        content_bytes: int,
        put_off: int = PUT_OFF,
        guard: Guard | None = None,
    ) -> None:
        """`content_bytes`: the longest text of a note; longer ones of other tools come in parts.

        `put_off`: characters of versions that wait in memory until the rest of their file tells where they go. `guard`
        takes secrets out of all that comes; by default they are replaced.
        """
        self._guard = guard or Guard()
        self._transfer = transfer
        self._encoder = encoder
        self._clock = clock
        self._log = log
        self._content_bytes = content_bytes
        self._put_off = put_off

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
        file = self._guard.name(source.name)
        report = Report(file, name, wanted.dry_run)
        place: AbstractContextManager[Incoming] = (
            self._transfer.rehearsal(deadline) if wanted.dry_run else contextlib.nullcontext(self._transfer)
        )
        with place as incoming:
            about = self._about(file, name, reader)
            taking = Taking(incoming, self._encoder, self._clock, callers(None), report, about, self._put_off)
            if isinstance(reader, NativeReader):
                admit: _Native | _Foreign = _Native(reader, callers, wanted, report, self._encoder, self._guard)
            else:
                admit = _Foreign(name, callers, wanted, report, self._clock, self._content_bytes, self._guard)
            for event in reader.events():
                if isinstance(event, Broken):
                    # A reason may quote what it is about.
                    report.missed(replace(event, reason=self._guard.name(event.reason)))
                elif isinstance(event, LeftOut):
                    report.left_out[event.what] += event.times
                else:
                    for arrival in admit(event):
                        if taking.add(arrival, deadline):
                            progress(source.position, source.size)
            taking.finish(deadline)
            progress(source.position, source.size)
        report.problems += [*reader.problems, *([source.damage] if source.damage else [])]
        self._log.info("notes imported", format=name, dry_run=wanted.dry_run, **dict(report.counts))
        return report

    def _about(self, file: str, name: str, reader: Reader) -> dict[str, Any]:
        """Where it came from, for the journal's payload."""
        store = {"store": self._guard.name(reader.store)} if isinstance(reader, NativeReader) else {}
        return {"file": file, "format": name, **store}


class _Native:
    """Versions of Agora's own format, as the caller may take them in."""

    def __init__(
        self,
        reader: NativeReader,
        callers: Callers,
        wanted: Wanted,
        report: Report,
        encoder: Encoder,
        guard: Guard,
    ) -> None:
        self._guard = guard
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
        try:
            event, replaced = clean_version(event, self._guard)
        except SecretRefused as error:
            self._report.missed(Broken(self._reader.place, error.message))
            return []
        self._report.redacted.update(replaced)
        caller = self._caller(event.namespace)
        if isinstance(caller, str):
            self._report.missed(Broken(self._reader.place, f"namespace: {caller}"))
            return []
        require(caller, (event.namespace,), "admin")
        version, changed = lowered(event, lowest(caller.origin, self._wanted.origin))
        self._report.lowered += changed
        if not (version.passages and self._ours):
            return [Arrival(replace(version, passages=()), waits=True)]
        spans, vectors = zip(*version.passages, strict=True)
        embedded = Embedded(self._fingerprint, spans, vectors)
        return [Arrival(replace(version, passages=()), embedded, waits=True)]

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

    def __init__(  # noqa: PLR0913, PLR0917 - the parts it is made of
        self,
        name: str,
        callers: Callers,
        wanted: Wanted,
        report: Report,
        clock: Clock,
        content_bytes: int,
        guard: Guard,
    ) -> None:
        self._guard = guard
        if len(wanted.namespaces) > 1:
            raise InvalidInput("namespace", f"texts of the format {name} go to one namespace", wanted.namespaces)
        caller = callers(wanted.namespaces[0] if wanted.namespaces else None)
        require(caller, (caller.scope.own,), "admin")
        origin = lowest(caller.origin, FORMATS[name].origin, wanted.origin)
        self._drafts = Drafts(name, report.file, replace(caller, origin=origin), clock.now(), content_bytes)
        self._report = report

    def __call__(self, event: Version | Text) -> list[Arrival]:
        assert isinstance(event, Text)
        try:
            text, replaced = clean_text(event, self._guard)
            versions, left_out = self._drafts.of(text)
        except AgoraError as error:
            self._report.missed(Broken(event.place, error.message))
            return []
        self._report.redacted.update(replaced)
        self._report.left_out.update(left_out)
        return [Arrival(version, follows=True) for version in versions]
