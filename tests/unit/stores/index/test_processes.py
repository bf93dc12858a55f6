"""Several processes on one folder: one compacts while others search, one is killed, one has little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.stores.index.library import Library, units

if TYPE_CHECKING:
    from tests.unit.stores.index.conftest import MakeLibrary

WORKER = Path(__file__).with_name("worker.py")
ROOT = Path(__file__).parents[4]
PATIENCE = 120


@contextmanager
def worker(task: str, library: Library, *rest: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(WORKER), task, str(library.folder), *rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "PYTHONUTF8": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> list[str]:
    """What it says from the end of its input on; it ends well."""
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return out.splitlines()


@pytest.mark.slow
def test_answers_are_right_in_other_processes_while_one_compacts_without_end(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(1500, seed=1), namespaces=2)
    with worker("check", library) as one, worker("check", library) as other:
        assert heard(one) == heard(other) == "ready"
        for turn in range(25):
            library.fill(units(120, seed=turn), namespaces=3)
            library.mark(range(1 + turn * 50, 41 + turn * 50), forgotten=True)
            if turn % 3 == 2:
                library.mark(range(1 + turn * 50, 21 + turn * 50), forgotten=False)
            assert library.compact() is not None
            library.is_right(turn, limits=(7,))
        for process in (one, other):
            *problems, last = end(process)
            assert problems == []
            word, checks, generations = last.split()
            assert word == "done"
            assert int(checks) >= 3
            assert int(generations) >= 2
    library.compact()
    assert library.left() == set()


@pytest.mark.parametrize("stop", ["1", "2", "3"])
def test_a_compaction_that_is_killed_leaves_the_old_generation_and_the_next_one_cleans(
    make_library: MakeLibrary, stop: str
) -> None:
    if os.name == "nt" and stop == "3":
        pytest.skip("folders are not synced here")
    library = make_library()
    library.fill(units(700, seed=1))
    library.compact()
    library.fill(units(700, seed=2))
    library.mark(range(1, 300), forgotten=True)
    before = library.sql("SELECT number, sequence, state FROM generations"), library.segments()
    with worker("compact", library, stop) as process:
        assert heard(process) == "stopped"
        # Nobody else may write while it is at it, and everybody may search.
        assert library.compact(force=False) is None
        library.is_right()
        process.kill()
        process.wait(PATIENCE)
    assert (library.sql("SELECT number, sequence, state FROM generations"), library.segments()) == before
    assert library.left() != set()
    fresh = make_library()
    fresh.is_right()
    assert fresh.problem() is None
    # The lock died with its holder.
    done = fresh.compact()
    assert done is not None
    assert done["generation"] == 2
    assert library.left() == set()
    for each in (library, fresh, make_library()):
        each.is_right()
        assert each.problem() is None


def test_a_compaction_that_is_killed_after_it_was_registered_holds(make_library: MakeLibrary) -> None:
    library = make_library()
    library.fill(units(700, seed=1))
    library.compact()
    old = library.segments()
    library.fill(units(700, seed=2))
    library.is_right()
    with worker("compact", library, "unlink") as process:
        assert heard(process) == "stopped"
        process.kill()
        process.wait(PATIENCE)
    assert library.sql("SELECT number FROM generations") == [(2,)]
    assert {path.name for path in old} <= library.left()
    for each in (library, make_library()):
        each.is_right()
        assert each.problem() is None
        assert each.index.details()["generation"] == 2
    library.fill(units(10, seed=3))
    library.compact()
    assert library.left() == set()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no account of memory here")
def test_a_process_with_little_memory_stays_small_and_answers_the_same(make_library: MakeLibrary) -> None:
    library = make_library(dimension=384)
    library.fill(units(30_000, seed=1, dimension=384))
    library.compact()
    grown, answers = {}, set()
    for limit in ("none", "1"):
        with worker("memory", library, limit) as process:
            (line,) = end(process)
        grown[limit], told = float(line.split()[0]), line.split()[1]
        answers.add(told)
    assert len(answers) == 1
    # The whole file is 48 MB, of which as good as every page is touched by one search or another.
    assert grown["none"] > 24
    assert grown["1"] < 12
