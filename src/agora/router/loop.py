from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from agora.errors import Cancelled, DeadlineExceeded
from agora.model.deadline import Deadline

T = TypeVar("T")

_LOOK = 0.05
"""Seconds between two looks whether the caller has taken its call back; an answer does not wait for it."""

_SPARE = 0.5
"""Seconds after its deadline in which work that has the same bound ends by itself: it knows what became of it."""

_ENDS = 8.0
"""Seconds for what still runs when the loop is closed."""


class LoopThread:
    """An event loop in a thread of its own, for callers in other threads. It starts at the first use.

    What a backend sends is read and parsed here: it delays no other client's messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], deadline: Deadline) -> T:
        """What the coroutine that `work` makes returns; it is cancelled with the deadline.

        Raises: DeadlineExceeded, Cancelled, and what the coroutine raises.
        """
        deadline.check()
        # Asked for first: nobody would await what was made for a loop that there is not.
        loop = self._started()
        future = asyncio.run_coroutine_threadsafe(_made(work), loop)
        while True:
            left = deadline.remaining()
            try:
                return future.result(min(_LOOK, max(left, 0.001)))
            except FutureTimeout:
                if future.done():
                    return future.result()
            except FutureCancelled:
                raise Cancelled("the server is ending") from None
            if not deadline.remaining():
                try:
                    deadline.check()
                except DeadlineExceeded as late:
                    return self._last_look(future, late)
                except Cancelled:
                    future.cancel()
                    raise

    @staticmethod
    def _last_look(future: Future[T], late: DeadlineExceeded) -> T:
        try:
            return future.result(_SPARE)
        except FutureCancelled:
            raise Cancelled("the server is ending") from None
        except FutureTimeout:
            if future.done():
                return future.result()
            future.cancel()
            raise late from None

    def soon(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run the coroutine beside everything else; nobody waits for it, and it must not raise."""
        loop = self._started()
        asyncio.run_coroutine_threadsafe(_made(work), loop)

    def close(self, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run `last`, cancel what still runs, and end the thread. Nothing happens if it never started or has ended."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        future = asyncio.run_coroutine_threadsafe(_made(last), loop)
        try:
            future.result(_ENDS)
        except FutureTimeout:
            future.cancel()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ENDS)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise Cancelled("the server is ending")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._work, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    @staticmethod
    def _work(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()


async def _made(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await work()
