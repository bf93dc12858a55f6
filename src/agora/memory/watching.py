from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from agora.errors import AgoraError
from agora.memory.access import Guarded, Tail
from agora.model.browse import Event
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.ports.log import Log

if TYPE_CHECKING:
    from agora.ports.records import Records

Told = Callable[[tuple[Event, ...], frozenset[str]], None]
"""Told of changes in order, and of what has changed beside the store, in words as `prompts`, `tools`, `backends`."""

SECONDS = 0.25
"""Between two looks at the journal: another process's change is told within this time and a little more."""

_MOST = 1_000
_PATIENCE = 5.0


class Watch:
    """Tells of every change of the store, whichever process made it, for as long as somebody listens.

    One thread looks at the journal; while nobody listens there is none. Listeners are called from that thread, one
    after the other; they must be quick and must not raise.
    """

    def __init__(
        self,
        records: Callable[[Deadline], Records],
        log: Log,
        seconds: float = SECONDS,
        *,
        beside: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """`records` gives the store, which may have to be opened first.

        `beside` says what else has changed since it was last asked.
        """
        self._records = Guarded(records)
        self._beside = beside
        self._log = log
        self._seconds = seconds
        self._lock = threading.Lock()
        self._listeners: dict[object, tuple[Told, Callable[[], Caller]]] = {}
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._closed = False

    def subscribe(self, told: Told, caller: Callable[[], Caller]) -> Callable[[], None]:
        """Call `told` with every change from now on; returns what ends it, which may be called twice.

        `caller` says, at each look, who listens: only changes that they may know of are told.

        Raises: StoreUnavailable if the journal cannot be read now.
        """
        token = object()
        # Read before anything is promised: a change after this call is told.
        head = self._events(None).head
        with self._lock:
            self._listeners[token] = told, caller
            if self._thread is None and not self._closed:
                self._wake.clear()
                # What changed while nobody listened is no news.
                self._beside()
                self._thread = threading.Thread(target=self._work, args=(head,), name="agora-watch", daemon=True)
                self._thread.start()

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(token, None)
                if not self._listeners:
                    self._wake.set()

        return unsubscribe

    def close(self) -> None:
        """Tell nobody any more."""
        with self._lock:
            self._closed = True
            self._listeners.clear()
            thread = self._thread
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE)

    def _work(self, since: int) -> None:
        while True:
            self._wake.wait(self._seconds)
            self._wake.clear()
            with self._lock:
                listeners = list(self._listeners.values())
                if not listeners:
                    # Under the lock: whoever subscribes next finds no thread and starts one.
                    self._thread = None
                    return
            since = self._looked(since, listeners)

    def _looked(self, since: int, listeners: list[tuple[Told, Callable[[], Caller]]]) -> int:
        try:
            tail = self._events(since)
        except AgoraError as error:
            self._log.warning("changes were not looked for", code=error.code)
            return since
        if tail.head < since:
            # A backup was put back: nothing tells what is another now, so everything may be.
            tail = Tail(tail.head, (Event(tail.head, None, "replaced", None, None, "", ""),))
        beside = self._beside()
        if beside or tail:
            for told, caller in listeners:
                mine = tail.of(caller())
                if beside or mine:
                    told(mine, beside)
        if len(tail) == _MOST:
            self._wake.set()
        return tail.last

    def _events(self, since: int | None) -> Tail:
        return self._records.events(since, _MOST, Deadline(_PATIENCE))
