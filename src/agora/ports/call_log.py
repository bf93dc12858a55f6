from __future__ import annotations

from typing import Protocol

from agora.model.calls import CallRow
from agora.model.deadline import Deadline


class CallLog(Protocol):
    """The record of calls of other servers' tools: only added to, each row bound to the one before. Thread-safe."""

    def record(self, call: CallRow, deadline: Deadline) -> None:
        """Add a row; it is in the store when this returns. One short transaction; no note and no sequence changes.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion, DeadlineExceeded.
        """
        ...
