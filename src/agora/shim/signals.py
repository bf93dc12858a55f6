"""Signals of a process that has several threads."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found,unused-ignore] # `signal` takes longer to import than the rest
import sys


class signals_blocked:  # noqa: N801 - used as a function, and `contextlib` takes long to import
    """For the time of a `with`, no signal reaches this thread, nor ever the threads that it starts then."""

    if sys.platform == "win32":

        def __enter__(self) -> None:
            """Nothing has to be done here: signals are the main thread's."""

        def __exit__(self, *_: object) -> None:
            """See `__enter__`."""
    else:

        def __enter__(self) -> None:
            """Block them."""
            self._before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())

        def __exit__(self, *_: object) -> None:
            """Let through what was let through before."""
            _signal.pthread_sigmask(_signal.SIG_SETMASK, self._before)
