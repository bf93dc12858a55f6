"""Passes whole lines between a client and the shared server, and sees the session through the server's end.

Two threads, both blocking, so that a side that does not read holds up the other and nothing is kept in between:

    main:    standard input ──> calls noted ──> socket      holds `_gate` while it sends
    reader:  socket ──> calls settled ──> standard output   holds `_gate` while there is no server

When the server ends, the reader answers at once every call of which nobody knows whether it was done, finds or
starts a server, repeats the client's handshake and sends again what is safe to send again. Each request is
answered once.
"""

from __future__ import annotations

import os
import time
from _socket import SHUT_WR
from _thread import allocate_lock, start_new_thread

from agora.shim.frames import Call, answered, key_of, lost, read
from agora.shim.reaching import Connected, Reach, Refused, hang_up

CHUNK = 65_536

LONGEST = 17 << 20
"""Bytes of a line that are kept whole. A longer one is passed on in pieces, for the server to refuse."""

RESTARTS = 5
"""Servers that a session starts within `RESTART_SECONDS` before it ends: one that keeps ending needs a person."""

CONNECTIONS = 40
"""Connections within that time before the session ends: a server that lives and sends it away is no use."""

RESTART_SECONDS = 15.0

GONE_SECONDS = 5.0
"""How long a session whose client is gone still looks for a server, for what the client sent last."""

TRIES = 3
"""Servers that a call is sent to: one that it kills each time must not be killed for ever."""

PARENT_SECONDS = 1.0

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


class Relay:
    """One session between the client on this process's pipes and the servers of a data folder."""

    def __init__(self, reach: Reach, connected: Connected) -> None:
        self._reach = reach
        self._sock = connected.sock
        self._safe = connected.safe
        self._rest = connected.rest
        self._gate = allocate_lock()
        self._ended = False
        self._calls: list[Call] = []
        self._table = allocate_lock()
        # What a new server has to be told before anything else, in this order.
        self._handshake: bytes = b""
        self._initialized: bytes = b""
        self._level: Call | None = None
        self._watched: dict[str, Call] = {}
        # A line without an id that no server has had whole.
        self._unsent: bytes = b""
        self._starts: list[float] = []
        self._reached: list[float] = []
        # While a person has ended the server and nothing waits for an answer: set by the reader, which then waits for
        # `_wanted`, and taken back by the next line of the client.
        self._dormant = False
        self._between = False
        """Whether there is no server now."""
        self._wanted = allocate_lock()
        self._wanted.acquire()
        self.status = 0

    def run(self) -> None:
        """Pass lines until the client ends its input or is gone; then the process exits: this never returns."""
        start_new_thread(self._out, ())
        start_new_thread(_watch_parent, (os.getppid(),))
        self._in()
        # While there is no server nothing is under way that this client could still be told of.
        if self._gate.acquire(timeout=GONE_SECONDS):
            self.end()
            self._gate.release()
        else:
            os._exit(self.status)
        # The other thread has the last word: the server may still answer what is under way.
        while True:
            time.sleep(3600)

    def end(self) -> None:
        """Take no more from the client: what is under way comes to its end. May be called by a signal handler."""
        self._ended = True
        if self._between:
            # Nothing is under way, and the other thread waits for a line or for a server.
            os._exit(self.status)
        try:
            self._sock.shutdown(SHUT_WR)
        except OSError:
            pass

    # ------------------------------------------------------------------ from the client

    def _in(self) -> None:
        parts: list[bytes] = []
        size = 0
        while not self._ended:
            try:
                chunk = os.read(0, CHUNK)
            except InterruptedError:
                continue
            except OSError:
                chunk = b""
            if not chunk:
                break
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                parts.append(line)
                self._forward(b"".join(parts) + b"\n")
                parts, size = [], 0
            parts.append(rest)
            size += len(rest)
            if size > LONGEST:
                # The server refuses such a line by its length, whatever is in it.
                self._pour(b"".join(parts))
                parts, size = [], 0
        if size and not self._ended:
            self._forward(b"".join(parts) + b"\n")

    def _forward(self, line: bytes) -> None:
        message = read(line)
        with self._gate:
            if self._ended:
                return
            call = None if message is None else self._noted(message, line)
            if self._dormant:
                self._dormant = False
                self._wanted.release()
            try:
                self._sock.sendall(line)
            except OSError:
                # No server has it whole: it goes to the next one. A call is in the table, the handshake is kept.
                if call is None and not (self._handshake and line == self._initialized):
                    self._unsent += line
            else:
                if call is not None:
                    call.tries = 1

    def _pour(self, piece: bytes) -> None:
        with self._gate:
            try:
                self._sock.sendall(piece)
            except OSError:
                pass

    def _noted(self, message: dict[str, object], line: bytes) -> Call | None:
        """The call that `message` is, kept until its answer; what else a new server would have to know is kept too."""
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            return None
        named = params if isinstance(params, dict) else {}
        if "id" not in message:
            if method == "notifications/cancelled":
                self._forget(named.get("requestId"))
            elif method == "notifications/initialized":
                self._initialized = line
            return None
        meta = named.get("_meta")
        modern = isinstance(meta, dict) and _VERSION_KEY in meta
        safe = method != "subscriptions/listen" and (method != "tools/call" or named.get("name") in self._safe)
        key = key_of(message["id"])
        if key is None:
            return None
        call = Call(key, line, method, safe=safe, modern=modern)
        uri = named.get("uri")
        if method == "logging/setLevel":
            self._level = call
        elif method == "resources/subscribe" and isinstance(uri, str):
            self._watched[uri] = call
        elif method == "resources/unsubscribe" and isinstance(uri, str):
            self._watched.pop(uri, None)
        with self._table:
            self._calls.append(call)
        return call

    def _forget(self, request_id: object) -> None:
        key = key_of(request_id)
        with self._table:
            for call in reversed(self._calls):
                if call.key == key:
                    self._calls.remove(call)
                    return

    # ------------------------------------------------------------------ from the server

    def _out(self) -> None:
        try:
            self._pass_on()
        except Refused as reason:
            _say(f"{reason}")
            self.status = 1
        except _ClientGone:
            pass
        except BaseException as problem:  # noqa: BLE001 - the outermost loop of a thread: the process must not hang
            _say(f"the session cannot go on: {type(problem).__name__}: {problem}")
            self.status = 1
        # The main thread may wait for the client's next line, and nothing could wake it.
        os._exit(self.status)

    def _pass_on(self) -> None:
        while True:
            lines = self._received()
            if lines:
                for line in lines.split(b"\n")[:-1]:
                    self._settle(line)
                _write(lines)
            elif self._ended:
                return
            else:
                self._recover()

    def _received(self) -> bytes:
        """The whole lines that the server sends next, at least one; nothing when it is gone."""
        parts = [self._rest]
        self._rest = b""
        while b"\n" not in parts[-1]:
            try:
                chunk = self._sock.recv(CHUNK)
            except OSError:
                chunk = b""
            if not chunk:
                # Half a line of a server that was killed: its call has no answer yet.
                return b""
            parts.append(chunk)
        got = b"".join(parts)
        end = got.rindex(b"\n") + 1
        self._rest = got[end:]
        return got[:end]

    def _settle(self, line: bytes) -> None:
        """Take the call that `line` answers, if it is an answer, as done."""
        key = answered(line)
        if key is None:
            return
        with self._table:
            call = next((each for each in self._calls if each.key == key), None)
            if call is None:
                return
            self._calls.remove(call)
        if call.method == "initialize" and b'"result"' in line:
            self._handshake = call.line
            self._level, self._watched = None, {}

    # ------------------------------------------------------------------ from one server to the next

    def _recover(self) -> None:
        """Answer what nobody can know any more, find a server, and bring the session to where it was.

        Raises: Refused if servers keep ending or there can be none.
        """
        hang_up(self._sock)
        with self._gate:
            self._sock.close()
            self._rest = b""
            self._give_up()
            self._between = True
            self._dormant = not (self._calls or self._ended) and self._reach.is_stopped()
            dormant = self._dormant
        if dormant:
            self._wanted.acquire()
        with self._gate:
            while not self._ended:
                self._between = True
                self._give_up()
                self._bound()
                before = self._reach.starts
                connected = self._reach.connect(patient=True)
                self._between = False
                self._reached.append(time.monotonic())
                if self._reach.starts > before:
                    self._starts.append(time.monotonic())
                self._sock, self._safe, self._rest = connected.sock, connected.safe, connected.rest
                if self._resume():
                    return
                self._sock.close()

    def _give_up(self) -> None:
        """Tell the client of each call that must not be sent twice."""
        for call in [each for each in self._calls if each.tries >= (TRIES if each.safe else 1)]:
            self._calls.remove(call)
            _write(lost(call))

    def _bound(self) -> None:
        now = time.monotonic()
        self._starts = [at for at in self._starts if now - at < RESTART_SECONDS]
        self._reached = [at for at in self._reached if now - at < RESTART_SECONDS]
        if len(self._reached) >= CONNECTIONS:
            raise Refused(f"the shared server has ended the connection {CONNECTIONS} times in {RESTART_SECONDS:g} s")
        if len(self._starts) >= RESTARTS:
            raise Refused(
                f"the shared server has ended {RESTARTS} times within {RESTART_SECONDS:g} s; `agora server logs` may"
                " say why, and `agora serve --in-process` goes without it"
            )

    def _resume(self) -> bool:
        """Repeat the handshake and send what waits; False if this server is gone already."""
        try:
            if self._handshake:
                if not self._repeat(self._handshake):
                    return False
                if self._initialized:
                    self._sock.sendall(self._initialized)
                for call in (self._level, *self._watched.values()):
                    # One that still waits for its first answer is sent below.
                    if call is not None and call not in self._calls and not self._repeat(call.line):
                        return False
            for call in list(self._calls):
                self._sock.sendall(call.line)
                call.tries += 1
            self._sock.sendall(self._unsent)
            self._unsent = b""
        except OSError:
            return False
        return True

    def _repeat(self, line: bytes) -> bool:
        """Send a request that was answered before and drop its answer; False if there is none."""
        message = read(line)
        assert message is not None, "only what could be read was kept"
        key = key_of(message["id"])
        self._sock.sendall(line)
        while True:
            lines = self._received()
            if not lines:
                return False
            kept = [each for each in lines.split(b"\n")[:-1] if answered(each) != key]
            found = len(kept) < lines.count(b"\n")
            if kept:
                _write(b"".join(each + b"\n" for each in kept))
            if found:
                return True


def _watch_parent(parent: int) -> None:
    """End the process when the client is gone though its pipe stays open in another process."""
    # On Windows the number stays for ever: there the end of input has to do.
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(0)


class _ClientGone(Exception):
    pass


def _write(data: bytes) -> None:
    """Write all of it to standard output.

    Raises: _ClientGone.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(1, rest) :]
        except InterruptedError:
            continue
        except OSError:
            raise _ClientGone from None


def _say(words: str) -> None:
    try:
        os.write(2, f"agora: {words}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass
