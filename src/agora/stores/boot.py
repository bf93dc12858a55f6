"""One run of the machine told from another: after a power cut a file may have holes, whatever was written."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from functools import cache
from pathlib import Path


@cache
def boot_id() -> str | None:
    """A name for this run of the machine, from its start to its end; None where the platform gives none."""
    with contextlib.suppress(OSError):
        found = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return found if found.replace("-", "").isalnum() else None
    return _session() if sys.platform == "darwin" else None


def _session() -> str | None:
    room = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(room))
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", room, ctypes.byref(size), None, ctypes.c_size_t(0))
    found = room.value.decode("ascii", "replace")
    return None if failed or not found.replace("-", "").isalnum() else found
