"""Writers in the order in which they came: a file lock promises none, and a busy writer can starve the others.

`agora.lock` beside the store, all numbers little-endian:

    byte 0..7    the last ticket that was given
    byte 8..15   the last ticket that got its turn after waiting
    byte 64      locked while somebody takes a ticket
    byte 65      the turn: locked by the one who may begin its transaction, until that has ended
    byte 128..   one byte a ticket, locked by the one who waits with it; 65,536 of them, used in a circle

A writer that finds nobody waiting takes the turn at once. Otherwise it takes the next ticket and waits until no
earlier one is locked, then until the turn is free. Locks of a process that dies are gone at that moment.

Only the order is decided here. SQLite's own lock keeps transactions apart, so that a writer may go on without its turn
whenever waiting makes no sense: on a file system without locks, or behind a process that was stopped while it waited.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agora.ports.log import Log
from agora.stores.sqlite.byte_locks import ByteLocks

_GIVEN, _SERVED, _CONTENT = 0, 8, 16
_COUNTER, _TURN, _FIRST = 64, 65, 128
_TICKETS = 65_536
_EARLIER = _TICKETS // 2
"""Tickets that count as earlier than a given one; so many writers can never wait at once."""

_NEXT, _PLACE, _LONGEST = 0.00001, 0.00005, 0.002
"""Seconds between two looks: of the one who is next, for each place before one, at most. The shortest sleep of Linux
takes about 70 microseconds, a transaction 50 to 500. Half of the transactions a second were lost to sleeps of 200."""

_PATIENCE = 1.0
"""Seconds without any movement after which a writer also tries without its turn."""

_AGAIN = 0.02
"""Seconds between two such tries, and before the first one where the queue stood still a moment ago."""

_REMEMBERED = 10.0
"""Seconds for which it is remembered that the queue stood still."""

_OFF = 30.0
"""Seconds after which a lock file that could not be used is tried again."""


class Tickets:
    """The place of one writer in the queue of all processes on a store; for one thread at a time."""

    def __init__(self, path: Path, log: Log | None = None) -> None:
        """`path` is the lock file's; it is made by the first write."""
        self.path = path
        self._log = log
        self._locks: ByteLocks | None = None
        self._off_until: float | None = None
        self._logged = False
        self._ticket: int | None = None
        self._has_turn = False
        self._stood_still = (-1, 0.0)

    @property
    def fair(self) -> bool:
        """Whether writers wait in order; False where the lock file cannot be used."""
        return self._off_until is None

    def wait(self, left: Callable[[], float]) -> bool:
        """Whether it is this writer's turn, which then lasts until `leave`.

        Waits for at most `left()` seconds, asked again and again. False if they have passed, if the queue stands
        still, or if there is no queue: the caller may then try without its turn, and ask again.
        """
        if self._has_turn:
            return True
        try:
            locks = self._opened()
            if locks is None:
                return False
            if self._ticket is None and locks.is_free(_FIRST, _TICKETS) and locks.take(_TURN):
                self._has_turn = True
                return True
            return self._queue(locks, left)
        except OSError as error:
            self._off(error)
            return False

    def leave(self) -> None:
        """Let turn and ticket go, if there are any."""
        if self._locks is None:
            return
        try:
            if self._has_turn:
                self._locks.release(_TURN)
            if self._ticket is not None:
                self._locks.release(_FIRST + self._ticket)
        except OSError as error:
            self._off(error)
        self._has_turn, self._ticket = False, None

    def close(self) -> None:
        """Let the lock file go."""
        if self._locks is not None:
            self._locks.close()
        self._locks, self._ticket, self._has_turn = None, None, False

    def _queue(self, locks: ByteLocks, left: Callable[[], float]) -> bool:
        began = time.monotonic()
        served = _served(locks)
        tries = began + self._patience(served, began)
        is_next = False
        while left() > 0:
            if self._ticket is None:
                self._ticket = _taken_ticket(locks)
            if self._ticket is not None:
                # Nobody can come in front of somebody who is next.
                is_next = is_next or all(locks.is_free(*each) for each in _earlier(self._ticket))
                if is_next and locks.take(_TURN):
                    self._has_turn = True
                    locks.write(self._ticket.to_bytes(8, "little"), _SERVED)
                    locks.release(_FIRST + self._ticket)
                    self._ticket = None
                    return True
            now, before = time.monotonic(), served
            served = _served(locks)
            if served != before:
                tries = now + _PATIENCE
            elif now >= tries:
                self._stood_still = served, now
                return False
            ahead = 0 if is_next or self._ticket is None else (self._ticket - served - 1) % _TICKETS
            time.sleep(min(_LONGEST, _NEXT + _PLACE * ahead + (now - began) / 20))
        return False

    def _patience(self, served: int, now: float) -> float:
        where, when = self._stood_still
        return _AGAIN if served == where and now - when < _REMEMBERED else _PATIENCE

    def _opened(self) -> ByteLocks | None:
        """The lock file, opened anew if it was deleted or replaced: the others use the one at its path."""
        if self._off_until is not None and time.monotonic() < self._off_until:
            return None
        if self._locks is not None and not self._locks.is_at_its_path():
            self.close()
        if self._locks is None:
            self._locks = ByteLocks(self.path, _CONTENT)
            # A file system without locks is found out here, where nothing depends on it yet.
            self._locks.is_free(_COUNTER, 1)
        self._off_until = None
        return self._locks

    def _off(self, error: OSError) -> None:
        self.close()
        self._off_until = time.monotonic() + _OFF
        if self._log is not None and not self._logged:
            self._logged = True
            self._log.warning(
                "writers are not served in order: the lock file cannot be used",
                path=str(self.path),
                reason=error.strerror or str(error),
            )


def _taken_ticket(locks: ByteLocks) -> int | None:
    """A ticket after all that were given, locked; None if somebody else is just taking one."""
    if not locks.take(_COUNTER):
        return None
    try:
        given = int.from_bytes(locks.read(_CONTENT)[_GIVEN:_SERVED], "little")
        ticket = (given + 1) % _TICKETS
        locks.write(ticket.to_bytes(8, "little"), _GIVEN)
        # Its byte is locked only by somebody who has waited for a whole round, or where another looks just now.
        return ticket if locks.take(_FIRST + ticket) else None
    finally:
        locks.release(_COUNTER)


def _earlier(ticket: int) -> Iterator[tuple[int, int]]:
    """First bytes and lengths of the half circle of tickets before this one."""
    start = max(0, ticket - _EARLIER)
    yield _FIRST + start, ticket - start
    if ticket < _EARLIER:
        yield _FIRST + _TICKETS - (_EARLIER - ticket), _EARLIER - ticket


def _served(locks: ByteLocks) -> int:
    return int.from_bytes(locks.read(_CONTENT)[_SERVED:], "little")


@contextlib.contextmanager
def queue_of(path: Path) -> Iterator[Tickets]:
    """A place of its own in the queue, for a transaction beside those of the writer."""
    tickets = Tickets(path)
    try:
        yield tickets
    finally:
        tickets.close()
