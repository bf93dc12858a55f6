"""One process at a time for a long piece of work on a data folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from agora.errors import Conflict, StoreUnavailable
from agora.stores.sqlite.byte_locks import ByteLocks

_CONTENT = 16
"""Bytes at the start of the file: the process id, as text."""

_LOCKED = 64


@contextlib.contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """The right to do `what`, of which the lock file at `path` has one; it is gone with the process, however it ends.

    Raises: Conflict if another process has it, StoreUnavailable if the file system has no locks.
    """
    try:
        locks = ByteLocks(path, _CONTENT)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        try:
            taken = locks.take(_LOCKED)
            if taken:
                locks.write(str(os.getpid()).encode().ljust(_CONTENT), 0)
            else:
                holder = locks.read(_CONTENT).strip(b" \0").decode("ascii", "replace")
        except OSError as error:
            raise _unusable(path, error) from error
        if not taken:
            raise Conflict(
                f"{what} is under way already, in process {holder or 'unknown'}",
                hint="Wait for it, or stop it: what it has done stays, and running it again goes on from there.",
            )
        yield
    finally:
        locks.close()


def _unusable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"the lock file {path} cannot be used: {error.strerror or error}",
        hint="Put the data folder on a local disk where this user may write: set AGORA_HOME.",
    )
