"""What a connection can be told: limits, hooks and where it logs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions

from agora.transport.text import BadText


class Log(Protocol):
    """A logger of the standard library or of structlog: a `%` template and its arguments."""

    def debug(self, event: str, /, *args: Any) -> Any:  # noqa: ANN401 - two libraries, two signatures
        """Write one line that only a developer wants."""

    def warning(self, event: str, /, *args: Any) -> Any:  # noqa: ANN401 - as above
        """Write one line that an operator should see."""


LOG: Log = logging.getLogger("agora.transport")


def default_init_options(server: Server[Any]) -> InitializationOptions:
    """What `initialize` answers when nothing else is asked for."""
    return server.create_initialization_options()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """The terms of one connection.

    `drain_seconds`: how long requests in flight may still answer after the input ended.
    `max_in_flight`: so many requests run at once; further lines wait unread, which is the back-pressure.
    `init_options`: makes the answer to `initialize` from the server (capability flags).
    `refuse_text`: makes the whole result of a `tools/call` whose arguments hold text that is not Unicode;
    without it the result is `isError` with `structuredContent.error` as `InvalidInput.details()`.
    `request_prefix`: stands before the ids of what the server asks its client, where a client may see several servers
    one after the other: an answer that is meant for another is dropped.
    `log`: never receives contents above DEBUG.
    """

    drain_seconds: float = 1.5
    max_in_flight: int = 256
    init_options: Callable[[Server[Any]], InitializationOptions] = default_init_options
    refuse_text: Callable[[BadText], dict[str, Any]] | None = None
    request_prefix: str = ""
    log: Log = LOG
