"""Where a connection stands, from its first byte to its last."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any

from agora.ports.log import Log


class State(Enum):
    """The states of a connection."""

    STARTUP = "startup"
    """The process is being set up; nothing is read yet."""
    LISTENING = "listening"
    """Messages are read; no request has come."""
    INITIALIZE = "initialize"
    """A client of the handshake era has been answered, and has yet to say that it is ready."""
    READY = "ready"
    """Nothing is under way."""
    PROCESSING = "processing"
    """At least one request is under way."""
    SHUTDOWN = "shutdown"
    """Nothing more is taken; what is under way is brought to its end."""


_AFTER = {
    State.STARTUP: {State.LISTENING, State.SHUTDOWN},
    # A client of the stateless era is ready as soon as it speaks.
    State.LISTENING: {State.INITIALIZE, State.READY, State.PROCESSING, State.SHUTDOWN},
    # Some clients ask before they say that they are ready; a second handshake begins anew.
    State.INITIALIZE: {State.INITIALIZE, State.READY, State.PROCESSING, State.SHUTDOWN},
    State.READY: {State.INITIALIZE, State.READY, State.PROCESSING, State.SHUTDOWN},
    State.PROCESSING: {State.INITIALIZE, State.READY, State.PROCESSING, State.SHUTDOWN},
    State.SHUTDOWN: {State.SHUTDOWN},
}


class Lifecycle:
    """The state of one connection: explicit, logged, and shown by `agora_status`. Thread-safe."""

    def __init__(self, log: Log, transport: str) -> None:
        self._log = log
        self._transport = transport
        self._lock = threading.Lock()
        self._state = State.STARTUP
        self._running = 0
        self._served = 0
        self._protocol: str | None = None

    @property
    def state(self) -> State:
        """The present state."""
        return self._state

    @property
    def served(self) -> int:
        """How many requests there have been."""
        return self._served

    def move(self, state: State) -> None:
        """Go on to another state.

        Raises: RuntimeError for a step that there is not: a mistake of ours, never of a client.
        """
        with self._lock:
            self._move(state)

    def begin(self, protocol: str) -> None:
        """A request of that protocol version is under way."""
        with self._lock:
            self._running += 1
            self._served += 1
            self._protocol = protocol
            if self._state is not State.SHUTDOWN:
                self._move(State.PROCESSING)

    def end(self) -> None:
        """A request is answered, or was given up."""
        with self._lock:
            self._running -= 1
            if not self._running and self._state is State.PROCESSING:
                self._move(State.READY)

    def details(self) -> dict[str, Any]:
        """State, transport, protocol version and numbers of requests as plain data."""
        with self._lock:
            return {
                "state": self._state.value,
                "transport": self._transport,
                "protocol": self._protocol,
                "requests": self._served,
                "running": self._running,
            }

    def _move(self, state: State) -> None:
        before = self._state
        if state not in _AFTER[before]:
            raise RuntimeError(f"a connection cannot go from {before.value} to {state.value}")
        if state is not before:
            self._state = state
            self._log.debug("connection", state=state.value, before=before.value)
