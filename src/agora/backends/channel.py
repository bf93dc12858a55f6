from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Channel(Protocol):
    """One connection that carries the JSON-RPC messages of one session. On one event loop."""

    async def open(self, deliver: Callable[[dict[str, Any]], None], lost: Callable[[str], None]) -> None:
        """Connect.

        `deliver` gets every JSON-RPC object that comes: requests, answers and notifications, parsed; it never raises.
        `lost` is called once, with a reason in words, when nothing can come any more: the process has ended, the
        session is over.

        Raises: BackendUnavailable.
        """
        ...

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Over stdio it returns when the message is written. Over HTTP it returns when its exchange is over: the answer
        to a request was delivered before that, or this raises.

        Raises: BackendUnavailable if the message was provably not sent; OutcomeUnknown if it may have been;
        BackendProtocolError.
        """
        ...

    def negotiated(self, protocol: str) -> None:
        """Told of the revision after the handshake: HTTP names it in every request from then on."""
        ...

    @property
    def alive(self) -> bool:
        """Whether something could still come."""
        ...

    @property
    def last_words(self) -> str:
        """The end of what came on standard error, without control characters, at most 2,000 characters."""
        ...

    async def close(self) -> None:
        """End it and all that belongs to it, within 3 seconds. May be called twice, and after a failed `open`."""
        ...
