"""Passes whole lines between a client and the shared server, and sees the session through the server's end.

Two threads, both blocking, so that a side that does not read holds up the other and nothing is kept in between:

    main:    standard input ──> calls noted ──> socket      holds `_gate` while it sends
    reader:  socket ──> calls settled ──> standard output   holds `_gate` while there is no server

When the server ends, the reader answers at once every call of which nobody knows whether it was done, finds or
starts a server, repeats the client's handshake, and leaves it to a third thread, which has the gate then, to send
again what is safe to send again: the answers are read meanwhile. Each request is answered once.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread

from agora.shim.calls import Calls
from agora.shim.frames import answered, key_of, lost, read
from agora.shim.pipes import hung_up, say, wait_for
from agora.shim.reaching import Connected, Reach, Refused, Unwanted, end_input, hang_up
from agora.shim.signals import signals_blocked

CHUNK = 65_536

LONGEST = 17 << 20
"""Bytes of a line that are kept whole. A longer one is passed on in pieces, for the server to refuse."""

RESTARTS = 5
"""Servers that a session starts within `RESTART_SECONDS` before it ends: one that keeps ending needs a person."""

CONNECTIONS = 40
"""Connections within that time before the session ends: a server that lives and sends it away is no use."""

RESTART_SECONDS = 15.0

GONE_SECONDS = 5.0
"""How long a session whose client has ended its input looks for a server, for what the client sent last."""

SPARE_SECONDS = 1.0
"""What a server that ends a session gets beside its `drain`, and a client to read what it was sent."""

WATCH_SECONDS = 1.0
END_WATCH_SECONDS = 0.05
"""How often it is looked whether the session can go on, and once it should end, whether it still does something."""


class Relay:
    """One session between the client on this process's pipes and the servers of a data folder."""

    def __init__(self, reach: Reach, connected: Connected) -> None:
        self._reach = reach
        self._sock = connected.sock
        self._safe = connected.safe
        self._rest = connected.rest
        self._drain = connected.drain
        self._gate = allocate_lock()
        self._calls = Calls()
        # Set once, by a signal: nothing more is taken, and no server is looked for.
        self._ended = False
        self._ended_at: float | None = None
        # When the client ended its input: what it sent before is still answered.
        self._closed_at: float | None = None
        # When bytes last went anywhere, and whether the main thread waits for a server that takes some.
        self._moved = time.monotonic()
        self._sending = False
        # A line without an id that no server has had whole.
        self._unsent: bytes = b""
        self._starts: list[float] = []
        self._reached: list[float] = []
        # While a person has ended the server and nothing waits for an answer: set by the reader, which then waits for
        # `_wanted`, and taken back by the next line of the client or the session's end.
        self._dormant = False
        self._wanted = allocate_lock()
        self._wanted.acquire()
        self.status = 0

    def run(self) -> None:
        """Pass lines until the client ends its input or is gone; then the process exits: this never returns."""
        # A signal that another thread got would not wake this one, which waits for the client.
        with signals_blocked():
            start_new_thread(self._out, ())
            start_new_thread(self._watch, (os.getppid(),))
        self._in()
        self._closed_at = time.monotonic()
        self._wake()
        # Who has the gate looks at `_closed_at` after giving it back.
        if self._gate.acquire(blocking=False):
            end_input(self._sock)
            self._gate.release()
        # The other thread has the last word: the server may still answer what is under way.
        while True:
            time.sleep(3600)

    def end(self) -> None:
        """Take no more from the client: what is under way comes to its end. May be called by a signal handler."""
        self._ended = True
        self._ended_at = self._ended_at or time.monotonic()
        end_input(self._sock)
        self._wake()

    def _wake(self) -> None:
        self._dormant = False
        try:
            self._wanted.release()
        except RuntimeError:
            # Nobody has waited since it was last released.
            pass

    # ------------------------------------------------------------------ from the client

    def _in(self) -> None:
        parts: list[bytes] = []
        size = 0
        # The connection that has the beginning of a line that is longer than any.
        poured: object = None
        while not self._ended:
            try:
                chunk = os.read(0, CHUNK)
            except InterruptedError:
                continue
            except BlockingIOError:
                wait_for(0, writing=False)
                continue
            except OSError:
                chunk = b""
            if not chunk:
                break
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                parts.append(line)
                self._forward(b"".join(parts) + b"\n", poured)
                parts, size, poured = [], 0, None
            parts.append(rest)
            size += len(rest)
            if size > LONGEST:
                # The server refuses such a line by its length, whatever is in it.
                poured = self._pour(b"".join(parts), poured)
                parts, size = [], 0
        if (size or poured) and not self._ended:
            self._forward(b"".join(parts) + b"\n", poured)

    def _forward(self, line: bytes, poured: object) -> None:
        """Send a line, or the end of the one whose beginning the connection `poured` has."""
        message = None if poured else read(line)
        with self._gate:
            if self._ended or (poured and poured is not self._sock):
                return
            call = None if message is None else self._calls.note(message, line, self._safe)
            if self._dormant:
                self._wake()
            try:
                self._send(line)
            except OSError:
                # No server has it whole: it goes to the next one. A call is in the table, the handshake is kept.
                if not (poured or call or (self._calls.handshake and line == self._calls.initialized)):
                    self._unsent += line
            else:
                if call is not None:
                    call.tries = 1

    def _pour(self, piece: bytes, poured: object) -> object:
        with self._gate:
            # The next server is not sent half a line.
            if poured is None or poured is self._sock:
                poured = self._sock
                try:
                    self._send(piece)
                except OSError:
                    pass
            return poured

    def _send(self, data: bytes) -> None:
        self._sending = True
        try:
            self._sock.sendall(data)
        finally:
            self._sending = False
        self._moved = time.monotonic()

    # ------------------------------------------------------------------ from the server

    def _out(self) -> None:
        try:
            try:
                self._pass_on()
            except Refused as reason:
                say(f"{reason}")
                self.status = 1
            for call in self._calls.give_up(everything=True):
                self._write(lost(call))
        except _ClientGone:
            pass
        except BaseException as problem:  # noqa: BLE001 - the outermost loop of a thread: the process must not hang
            say(f"the session cannot go on: {type(problem).__name__}: {problem}")
            self.status = 1
        # The main thread may wait for the client's next line, and nothing could wake it.
        os._exit(self.status)

    def _pass_on(self) -> None:
        while True:
            lines = self._received()
            if lines:
                for line in lines.split(b"\n")[:-1]:
                    self._calls.settle(line)
                self._write(lines)
            elif not self._recover():
                return

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
            self._moved = time.monotonic()
            parts.append(chunk)
        got = b"".join(parts)
        end = got.rindex(b"\n") + 1
        self._rest = got[end:]
        return got[:end]

    def _write(self, data: bytes) -> None:
        """Write all of it to standard output.

        Raises: _ClientGone.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(1, rest) :]
            except InterruptedError:
                continue
            except BlockingIOError:
                wait_for(1, writing=True)
                continue
            except OSError:
                raise _ClientGone from None
            self._moved = time.monotonic()

    # ------------------------------------------------------------------ from one server to the next

    def _recover(self) -> bool:
        """Find a server and bring the session to where it was; False if nobody needs one any more.

        Raises: Refused if servers keep ending or there can be none.
        """
        # Whoever sends gives the gate back.
        hang_up(self._sock)
        self._gate.acquire()
        self._sock.close()
        self._rest = b""
        self._answer_lost()
        if not self._calls.waiting() and self._closed_at is None and self._reach.is_stopped():
            self._dormant = True
            self._gate.release()
            while self._dormant and not self._ended and self._closed_at is None:
                if not self._wanted.acquire(timeout=WATCH_SECONDS) and not self._reach.is_stopped():
                    # Somebody has started a server: what the client has subscribed to is there.
                    self._dormant = False
            self._gate.acquire()
        while self._needs_server():
            self._answer_lost()
            self._bound()
            before = self._reach.starts
            try:
                connected = self._reach.connect(patient=True, wanted=self._needs_server)
            except Unwanted:
                break
            self._reached.append(time.monotonic())
            if self._reach.starts > before:
                self._starts.append(time.monotonic())
            self._sock, self._safe, self._rest = connected.sock, connected.safe, connected.rest
            self._drain = connected.drain
            if self._greet():
                start_new_thread(self._send_again, ())
                return True
            self._sock.close()
        self._gate.release()
        return False

    def _needs_server(self) -> bool:
        if self._ended:
            return False
        if self._closed_at is None:
            return True
        return bool(self._calls.waiting()) and time.monotonic() < self._closed_at + GONE_SECONDS

    def _answer_lost(self) -> None:
        for call in self._calls.give_up():
            self._write(lost(call))

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

    def _greet(self) -> bool:
        """Repeat the handshake and what was told after it; False if this server is gone already."""
        calls = self._calls
        if not calls.handshake:
            return True
        try:
            if not self._repeat(calls.handshake):
                return False
            if calls.initialized:
                self._sock.sendall(calls.initialized)
            # One that still waits for its first answer is sent with the others.
            return all(self._repeat(call.line) for call in calls.told())
        except OSError:
            return False

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
                self._write(b"".join(each + b"\n" for each in kept))
            if found:
                return True

    def _send_again(self) -> None:
        """Send what waits, then let the client's next lines through; the gate is this thread's, from the reader."""
        try:
            for call in self._calls.waiting():
                self._sock.sendall(call.line)
                call.tries += 1
            self._sock.sendall(self._unsent)
            self._unsent = b""
        except OSError:
            # The reader sees the same end, and waits for the gate.
            pass
        sock = self._sock
        self._gate.release()
        if self._ended or self._closed_at is not None:
            end_input(sock)

    # ------------------------------------------------------------------ beside both

    def _watch(self, parent: int) -> None:
        """End the process when the client is gone though its pipe stays open, or when a side does not let it end."""
        hung_up_at = since = None
        # On Windows the parent's number stays for ever: there the end of input has to do.
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS if since is None else END_WATCH_SECONDS)
            now = time.monotonic()
            if hung_up_at is None and self._sending and hung_up():
                hung_up_at = now
            since = self._ended_at or self._closed_at or hung_up_at
            patience = self._drain if self._ended else max(self._drain, GONE_SECONDS)
            if since is not None and now > max(since, self._moved) + patience + SPARE_SECONDS:
                os._exit(self.status)
        os._exit(0)


class _ClientGone(Exception):
    pass
