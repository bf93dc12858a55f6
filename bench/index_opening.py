"""How long a fresh process takes to its first answer, by the files of the index and by the rows alone."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from agora.stores.sqlite.store import INDEX_FOLDER
from bench.index_vectors import Floats

_TIMES = 5


def opening(store: Path, questions: Floats, folder: Path, *, rows: int) -> dict[str, Any]:
    """Medians of fresh processes: files in the page cache, files not in it where that can be had, no files.

    `rows`: how many of the last kind.
    """
    asked, nowhere = folder / "questions.npy", folder / "nowhere"
    np.save(asked, questions)
    nowhere.mkdir()
    found = {"files": _medians([_child(store, asked) for _ in range(_TIMES)])}
    if hasattr(os, "posix_fadvise"):
        cold = []
        for _ in range(_TIMES):
            _forget([store, *(store.parent / INDEX_FOLDER).iterdir()])
            cold.append(_child(store, asked))
        found["files, cold"] = _medians(cold)
        with store.open("rb") as file:
            # The rows are in the cache again when the next ones read them.
            while file.read(1 << 20):
                pass
    found["rows"] = _medians([_child(store, asked, nowhere) for _ in range(rows)])
    return found


def _child(store: Path, questions: Path, folder: Path | None = None) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.index_open", str(store), str(questions)]
    if folder is not None:
        command += ["--folder", str(folder)]
    command += ["--started", str(time.time())]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of all numbers, one level deep; what is not a number is as in the last run."""
    found: dict[str, Any] = {}
    for name, value in runs[-1].items():
        if isinstance(value, dict):
            found[name] = _medians([run[name] for run in runs])
        elif isinstance(value, int | float):
            found[name] = statistics.median(run[name] for run in runs)
        else:
            found[name] = value
    return found


def _forget(files: list[Path]) -> None:
    """Ask the system to drop these files from its cache; written pages are flushed first."""
    for file in files:
        if not file.is_file():
            continue
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
