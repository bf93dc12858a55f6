"""What of a session its next server would have to know: the calls that wait, and what was told before them."""

from __future__ import annotations

from _thread import allocate_lock

from agora.shim.frames import Call, answered, key_of

TRIES = 3
"""Servers that a call is sent to: one that it kills each time must not be killed for ever."""

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


class Calls:
    """The requests of one client that wait for their answers, in the order in which they came. Thread-safe."""

    def __init__(self) -> None:
        self.handshake: bytes = b""
        """The `initialize` that a server has answered."""
        self.initialized: bytes = b""
        """The notification that came after it."""
        self._lock = allocate_lock()
        self._waiting: list[Call] = []
        # Log level and subscriptions, by what they set: the last of each is the one that holds.
        self._told: dict[str, Call] = {}
        # What an `initialize` that waits for its answer makes void.
        self._void: list[Call] = []

    def note(self, message: dict[str, object], line: bytes, safe_tools: frozenset[str]) -> Call | None:
        """The call that `message` is, which waits now; None if it asks for no answer."""
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            return None
        named = params if isinstance(params, dict) else {}
        if "id" not in message:
            if method == "notifications/cancelled":
                self._forget(named.get("requestId"))
            elif method == "notifications/initialized":
                self.initialized = line
            return None
        key = key_of(message["id"])
        if key is None:
            return None
        meta = named.get("_meta")
        modern = isinstance(meta, dict) and _VERSION_KEY in meta
        safe = method != "subscriptions/listen" and (method != "tools/call" or named.get("name") in safe_tools)
        call = Call(key, line, method, safe=safe, modern=modern)
        with self._lock:
            self._waiting.append(call)
            self._tell(call, named.get("uri"))
        return call

    def _tell(self, call: Call, uri: object) -> None:
        if call.method == "logging/setLevel":
            self._told.pop("", None)
            self._told[""] = call
        elif call.method == "resources/subscribe" and isinstance(uri, str):
            self._told[f"at {uri}"] = call
        elif call.method == "resources/unsubscribe" and isinstance(uri, str):
            self._told.pop(f"at {uri}", None)
        elif call.method == "initialize":
            self._void = list(self._told.values())

    def _forget(self, request_id: object) -> None:
        key = key_of(request_id)
        with self._lock:
            for call in reversed(self._waiting):
                if call.key == key:
                    self._waiting.remove(call)
                    return

    def settle(self, line: bytes) -> None:
        """Take the call that `line` answers, if it is an answer, as done."""
        key = answered(line)
        if key is None:
            return
        with self._lock:
            call = next((each for each in self._waiting if each.key == key), None)
            if call is None:
                return
            self._waiting.remove(call)
            if call.method == "initialize" and b'"result"' in line:
                self.handshake = call.line
                self._told = {name: told for name, told in self._told.items() if told not in self._void}

    def waiting(self) -> list[Call]:
        """Every call without an answer."""
        with self._lock:
            return list(self._waiting)

    def told(self) -> list[Call]:
        """The calls that set what still holds and were answered: a new server has to hear them first."""
        with self._lock:
            return [call for call in self._told.values() if call not in self._waiting]

    def give_up(self, *, everything: bool = False) -> list[Call]:
        """The calls that must not be sent again, or all that wait: they wait no more."""
        with self._lock:
            lost = [call for call in self._waiting if everything or call.tries >= (TRIES if call.safe else 1)]
            self._waiting = [call for call in self._waiting if call not in lost]
        return lost
