from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agora.model.deadline import Deadline


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result that was too long to be answered whole. `namespace`: whoever may read there may read it."""

    id: str
    namespace: str
    backend: str
    tool: str
    created_at: datetime
    expires_at: datetime
    content: bytes


class KeptResults(Protocol):
    """Long results of other servers' tools, for a time. Thread-safe. What is kept comes without secrets."""

    def keep(self, result: KeptResult, deadline: Deadline) -> None:
        """Keep it; its id is new and begins with `r_`. What has expired goes, and so do the oldest beyond the bound.

        Raises: PayloadTooLarge if it alone is beyond the bound; StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def fetch(self, id_: str, now: datetime, deadline: Deadline) -> KeptResult | None:
        """The result of that id, unless it has expired.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def sweep(self, now: datetime, deadline: Deadline) -> int:
        """Delete what has expired; how many there were.

        Raises: as `fetch`.
        """
        ...
