from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from agora.model.backend import ToolDefinition
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.pins import Pin


class ToolPins(Protocol):
    """The tools of every backend as they were approved and last seen. Thread-safe; other processes may write too.

    A backend is its name and its `identity`: whatever stands for the program or the address behind the name.
    """

    def known(self, backend: str, identity: str, deadline: Deadline) -> dict[str, Pin]:
        """By name, what is known of its tools; empty if it was never seen.

        A pin that is not what was written is quarantined, whatever its row says.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def seen(
        self, backend: str, identity: str, tools: Sequence[ToolDefinition], now: datetime, deadline: Deadline
    ) -> dict[str, Pin]:
        """As `known`, after it was seen with these tools and no others; one transaction. Names are told apart.

        Raises: as `known`.
        """
        ...

    def approve(
        self, backend: str, identity: str, digests: Mapping[str, str], caller: Caller, now: datetime, deadline: Deadline
    ) -> None:
        """Approve quarantined tools, each with the digest of what is approved; the record of calls has it too.

        All of them or none. Raises: Conflict if one is not quarantined, or not with that digest; as `known`.
        """
        ...
