from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from agora.model.audit import Left, Plan, Step, Writer
from agora.model.caller import Caller, Origin
from agora.model.deadline import Deadline


class Reverting(Protocol):
    """What a record store does to undo one writer's changes. Thread-safe; others may write meanwhile."""

    def plan(self, writer: Writer, origin: Origin, now: datetime, deadline: Deadline) -> Plan:
        """What somebody of this origin has to undo, from one snapshot, and what is left; changes nothing.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def undo(
        self, steps: Sequence[Step], writer: Writer, caller: Caller, now: datetime, deadline: Deadline
    ) -> tuple[tuple[Step, ...], tuple[Left, ...]]:
        """Undo these in one transaction, as far as they are still as they were planned: what was done, what was left.

        Each is looked at anew inside the transaction; what somebody changed since then is left. The journal tells of
        what is done, under `caller`. Raises: as `plan`.
        """
        ...

    def sequence(self, deadline: Deadline) -> int:
        """Of the store's last change."""
        ...
