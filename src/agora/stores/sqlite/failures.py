from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agora.errors import AgoraError, StoreCorrupt, StoreError, StoreUnavailable

BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
"""What SQLite answers when another connection holds the lock."""

DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""What SQLite answers when the file is damaged, or no database at all."""


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Agora's errors in place of SQLite's and the file system's, each with what to do about it."""
    try:
        yield
    except AgoraError:
        raise
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in DAMAGED:
            raise StoreCorrupt(f"the store {path} is damaged: {error}") from error
        if code in BUSY:
            raise StoreUnavailable(
                f"the store {path} is locked by another process",
                hint="Nothing was written. Try again; if it lasts, end the process that holds the lock.",
            ) from error
        raise _unusable(path, str(error), code) from error
    except MemoryError as error:
        # Damaged lengths in a full-text index make SQLite ask for more than any machine has.
        raise StoreCorrupt(f"the store {path} asks for more memory than there is: it may be damaged") from error
    except (UnicodeDecodeError, OverflowError) as error:
        # Texts that are no UTF-8 and instants beyond all calendars: nothing that was ever written.
        raise StoreCorrupt(f"the store {path} holds what nobody wrote: {error}") from error
    except OSError as error:
        raise StoreUnavailable(
            f"the data folder {path.parent} cannot be used: {error.strerror or error}",
            hint="Check that the folder exists and is writable, or set AGORA_HOME to another one.",
        ) from error


def _unusable(path: Path, reason: str, code: int) -> StoreError:
    hints = {
        sqlite3.SQLITE_FULL: "The disk is full: free some space and try again. Nothing was written.",
        sqlite3.SQLITE_READONLY: "The store cannot be written: check the permissions of the file and folder.",
        sqlite3.SQLITE_CANTOPEN: "Check that the folder exists and is writable, or set AGORA_HOME to another.",
        sqlite3.SQLITE_IOERR: "The disk reported an error: check it and its free space.",
    }
    if code in hints:
        return StoreUnavailable(f"the store {path} cannot be used: {reason}", hint=hints[code])
    return StoreError(f"the store {path} failed: {reason}", hint="Run `agora doctor`.")
