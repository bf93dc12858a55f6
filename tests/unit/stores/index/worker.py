"""A process of its own on a library's folder. Run as `worker.py TASK FOLDER [ARGUMENT]`; it ends with its input."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
from tests.unit.stores.index.library import DIMENSION, Library, soon, units

from agora.ports.vector_index import Among


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hold() -> NoReturn:
    """Wait to be killed."""
    sys.stdin.read()
    os._exit(3)


def check(folder: Path) -> None:
    """Compare with a search by hand, in one snapshot each, until the input ends; then say how often, and what was seen.

    Every line but the last is a problem that the index told of.
    """
    library = Library(folder)
    ended = threading.Event()
    threading.Thread(target=_until_the_end, args=(ended,), daemon=True).start()
    library.is_right(limits=(7,))
    say("ready")
    done, generations = 0, set()
    while not ended.is_set():
        library.is_right(done, limits=(7,))
        done += 1
        details = library.index.details()
        generations.add(details["generation"])
        if details["problem"] is not None:
            say(details["problem"])
    library.close()
    say(f"done {done} {len(generations)}")


def _until_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def compact(folder: Path, stop: str) -> None:
    """Compact, and stop to be killed at the n-th `fsync`, or before the first file is deleted."""
    synced, unlink, count = os.fsync, Path.unlink, 0

    def counted(fd: int) -> None:
        nonlocal count
        count += 1
        if stop == str(count):
            say("stopped")
            hold()
        synced(fd)

    def held(path: Path, *, missing_ok: bool = False) -> None:
        if stop == "unlink":
            say("stopped")
            hold()
        unlink(path, missing_ok=missing_ok)

    library = Library(folder)
    # The system under it, not the code under test.
    vars(os)["fsync"] = counted
    type.__setattr__(Path, "unlink", held)
    library.compact()
    say("compacted")
    hold()


def memory(folder: Path, limit: str) -> None:
    """Megabytes that this process grew by over many searches, after each of which it was measured."""
    dimension = 384
    library = Library(folder, dimension=dimension, memory_mb=None if limit == "none" else int(limit))
    with library.store.read(soon()) as reading:
        assert reading.vectors.size() > 0
    started, most = resident(), 0.0
    questions = units(25, 8, dimension)
    answers = []
    for asked in questions:
        with library.store.read(soon()) as reading:
            found = reading.vectors.nearest(asked, Among((1,), 0), 40)
            reading.vectors.cosines(asked, found.rows)
            answers.append(found.rows)
        most = max(most, resident() - started)
    library.close()
    say(f"{most:.1f} {np.concatenate(answers).sum()}")


def resident() -> float:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    assert DIMENSION == 40
    task, where, *rest = sys.argv[1:]
    tasks: dict[str, Callable[..., None]] = {"check": check, "compact": compact, "memory": memory}
    tasks[task](Path(where), *rest)
