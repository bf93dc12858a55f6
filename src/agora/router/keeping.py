"""What stays of calls: their record, long results for a while, and results as notes where that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agora.errors import AgoraError
from agora.memory.access import GuardedResults
from agora.memory.notes import Notes
from agora.model.caller import Caller, lowest
from agora.model.calls import CallRow
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.ports.call_log import CallLog
from agora.ports.clock import Clock
from agora.ports.kept_results import KeptResult
from agora.router.dispatch import CallMade, Cleaned


class Keeper:
    """Implements `agora.router.dispatch.Keeping` with the store."""

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        calls: CallLog,
        results: GuardedResults,
        notes: Notes,
        clock: Clock,
        *,
        clean: Callable[[str], Cleaned],
        hours: float,
        content_bytes: int,
    ) -> None:
        self._calls = calls
        self._results = results
        self._notes = notes
        self._clock = clock
        self._clean = clean
        self._hours = hours
        self._content_bytes = content_bytes

    def record(self, call: CallMade, caller: Caller, deadline: Deadline) -> None:
        """As `Keeping.record`.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        row = CallRow(
            *(self._clock.now(), caller, call.backend, call.tool, call.access, call.rule, call.matched_by),
            outcome=call.outcome,
            seconds=call.seconds,
            cached=call.cached,
            arguments=call.arguments,
        )
        self._calls.record(row, deadline)

    def keep(self, backend: str, tool: str, content: bytes, caller: Caller, deadline: Deadline) -> Mapping[str, Any]:
        """As `Keeping.keep`; the caller's own namespace is where it may be read."""
        now = self._clock.now()
        try:
            kept = self._results.keep(content, backend, tool, caller, now, deadline, hours=self._hours)
        except AgoraError as error:
            # The answer is there; that the rest of it is not, is said in it.
            return {"bytes": len(content), "error": error.details()}
        return {"id": kept.id, "bytes": len(content), "expires_at": kept.expires_at.isoformat()}

    def save(self, backend: str, tool: str, content: str, caller: Caller, deadline: Deadline) -> Mapping[str, Any]:
        """As `Keeping.save`."""
        clean, _ = self._clean(content)
        if len(clean.encode("utf-8", "surrogatepass")) > self._content_bytes:
            return {"error": {"code": "payload_too_large", "message": "the result is longer than a note may be"}}
        draft = Draft(
            content=clean,
            namespace=caller.scope.own,
            title=f"{backend}: {tool}"[:300],
            tags=("backend-result",),
            kind="result",
            metadata={"backend": backend, "tool": tool},
        )
        try:
            saved = self._notes.save(draft, replace(caller, origin=lowest(caller.origin, "tool")), deadline)
        except AgoraError as error:
            return {"error": error.details()}
        return {"id": saved.id, "status": saved.status}

    def fetch(self, id_: str, caller: Caller, deadline: Deadline) -> KeptResult | None:
        """As `Keeping.fetch`."""
        return self._results.fetch(id_, caller, self._clock.now(), deadline)

    def clean(self, text: str) -> Cleaned:
        """As `Keeping.clean`."""
        return self._clean(text)
