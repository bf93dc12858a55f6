from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from agora.config.backends import BackendTable
from agora.errors import BackendUnavailable
from agora.model.backend import ServerInfo

Told = Callable[[str, Mapping[str, Any]], None]
"""Told of a notification of the backend: its method and parameters. Called on the event loop; quick, never raises."""

Progress = Callable[[float, float | None, str | None], None]
"""Told how far a request is: progress, total and a message, as the backend sends them."""


class SessionForgotten(BackendUnavailable):
    """The backend answers, and knows the session no longer: the request was not dealt with, a new session will do."""


class Session(Protocol):
    """An MCP session with one backend whose handshake is done. All of it runs on one event loop."""

    @property
    def server(self) -> ServerInfo:
        """What the backend said of itself."""
        ...

    @property
    def alive(self) -> bool:
        """Whether a request could still be answered: false once its process, or its session, is known to be over."""
        ...

    @property
    def last_words(self) -> str:
        """The end of what the backend wrote to standard error, for whoever looks for the cause of a failure."""
        ...

    async def request(
        self, method: str, params: Mapping[str, Any], *, seconds: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        """The `result` of one request, as the backend gave it. Cancelling the task tells the backend so.

        Raises: BackendRefused if it answered with an error; BackendTimeout after `seconds`, when the backend was told
        that nobody waits any more; BackendUnavailable if the request was provably not sent; OutcomeUnknown if the
        backend went away between request and answer; BackendProtocolError for an answer that is none.
        """
        ...

    async def close(self) -> None:
        """End the session, and its process with all its children; returns when they are gone, within 3 seconds."""
        ...


class Connector(Protocol):
    """Opens sessions with backends."""

    async def connect(self, backend: BackendTable, told: Told) -> Session:
        """A new session, its handshake done; `backend` has every `${VAR}` replaced.

        Raises: BackendUnavailable, with what the backend last wrote to standard error; BackendProtocolError if it
        speaks no MCP that Agora knows; BackendTimeout after `start_timeout`. Nothing is left running then.
        """
        ...
