"""What can go wrong with another MCP server."""

from __future__ import annotations

import math
from typing import Any

from agora.abridging import abridge
from agora.errors.base import AgoraError


class BackendError(AgoraError):
    """Another MCP server did not do what it was asked; `backend` names it."""

    code = "backend_error"

    def __init__(self, backend: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{backend}: {message}", hint=hint)
        # The reason is the message without the name, for whoever tells it on.
        self.backend, self.reason = backend, message

    def details(self) -> dict[str, Any]:
        """As `AgoraError.details`, with `backend`."""
        return super().details() | {"backend": self.backend}


class BackendUnavailable(BackendError):
    """The backend cannot be reached or started; the call was not sent."""

    code = "backend_unavailable"
    default_hint = "agora_backends shows its state and its last error."
    retryable = True

    def __init__(self, backend: str, message: str, *, hint: str | None = None, retry_after: float = 0.0) -> None:
        super().__init__(backend, message, hint=hint)
        self.retry_after = math.ceil(retry_after) or None

    def details(self) -> dict[str, Any]:
        """As `BackendError.details`, with `retry_after` in whole seconds where the backend asks for it."""
        found = super().details()
        return found if self.retry_after is None else found | {"retry_after": self.retry_after}


class BackendTimeout(BackendError):
    """The backend did not answer in time, and was told that nobody waits any more."""

    code = "backend_timeout"
    default_hint = "Try again, or have `timeout` in its table raised if it needs longer."
    retryable = True


class BackendRefused(BackendError):
    """The backend answered with an error of the protocol; `number` is its code, `data` what came with it."""

    code = "backend_refused"
    default_hint = "The message is the backend's own; agora_route with dry_run shows what the tool takes."

    def __init__(
        self, backend: str, message: str, number: int, data: object = None, *, hint: str | None = None
    ) -> None:
        super().__init__(backend, message, hint=hint)
        self.number = number
        self.data = data

    def details(self) -> dict[str, Any]:
        """As `BackendError.details`, with `number`, and `data` where there is any."""
        found = super().details() | {"number": self.number}
        return found if self.data is None else found | {"data": abridge(self.data)}


class BackendProtocolError(BackendError):
    """What the backend sends is not what the protocol asks for."""

    code = "backend_protocol_error"
    default_hint = "Its authors should know: calling again is of no use."


class OutcomeUnknown(BackendError):
    """The call was sent and its answer never came: the change that it asks for may have happened."""

    code = "outcome_unknown"
    default_hint = "Look what became of it before you call again: a second call may do it twice."
