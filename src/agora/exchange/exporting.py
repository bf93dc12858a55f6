from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from agora.exchange import native
from agora.memory.access import require
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.ports.transfer import Extract, Transfer

Progress = Callable[[int, int | None], None]
"""Told how much is done, and of how much if that is known."""

_REPORTED = 100
"""Versions between two tellings of progress."""


class Exporter:
    """Writes what a store holds as lines of Agora's own format."""

    def __init__(self, transfer: Transfer, clock: Clock, log: Log) -> None:
        self._transfer = transfer
        self._clock = clock
        self._log = log

    def run(
        self,
        extract: Extract,
        caller: Caller,
        out: BinaryIO,
        deadline: Deadline,
        *,
        all_namespaces: bool = False,
        progress: Progress = lambda done, total: None,  # noqa: ARG005 - nobody is told
    ) -> dict[str, Any]:
        """Write one snapshot of the store to `out`; the last record, which counts and sums it up.

        Holds a few hundred versions in memory, whatever the store's size. Others may write meanwhile: the export
        shows none of it. `all_namespaces` says in the header that nothing was left out.

        Raises: NamespaceDenied; StoreUnavailable; whatever `out` raises.
        """
        if extract.namespaces:
            # An empty store has none.
            require(caller, extract.namespaces, "admin")
        now, sums = self._clock.now(), native.Sums()
        with self._transfer.outgoing(extract, now, deadline) as outgoing:
            total = sum(outgoing.counts.values())
            first = native.line(native.header(outgoing, extract, all_namespaces=all_namespaces, now=now))
            out.write(first)
            sums.take(first, version=False)
            for version in outgoing.versions():
                passing = native.line(native.record_of(version))
                out.write(passing)
                sums.take(passing, version=True)
                if sums.versions % _REPORTED == 0:
                    progress(sums.versions, total)
            progress(total, total)
        end = sums.end()
        out.write(native.line(end))
        self._log.info("notes exported", versions=end["versions"], namespaces=len(extract.namespaces))
        return end
