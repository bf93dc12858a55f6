"""A process that saves is killed, again and again: nothing acknowledged is lost, nothing is half there."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agora.model.deadline import Deadline
from agora.model.query import Filter

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

WORKER = Path(__file__).parents[1] / "integration" / "store_worker.py"
SOURCE = Path(__file__).parents[2] / "src"
ROUNDS = 20


class Saver:
    """A process that saves without end; its acknowledged ids arrive through a pipe that outlives it."""

    def __init__(self, folder: Path, name: str, command: str = "save_without_end") -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(folder), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUTF8": "1"},
        )
        self.acknowledged: list[str] = []
        self.arrived = threading.Semaphore(0)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline()) == "ready"
        self.process.stdin.write(json.dumps(["open"]) + "\n" + json.dumps([command, name]) + "\n")
        self.process.stdin.flush()
        assert "ok" in json.loads(self.process.stdout.readline())
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A line without its end was being written when the process died: nobody could act on it.
            if line.endswith("\n"):
                self.acknowledged.append(line.strip())
                self.arrived.release()

    def saved(self, number: int) -> None:
        """Wait until so many more were acknowledged."""
        for _ in range(number):
            assert self.arrived.acquire(timeout=60)

    def kill(self) -> list[str]:
        """Kill it (SIGKILL, or what there is) and return every id that it acknowledged."""
        self.process.kill()
        self.process.wait(20)
        self._reader.join(20)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        return self.acknowledged


def all_there(desk: Desk, acknowledged: set[str]) -> None:
    """Every acknowledged row is there by every path, and every invariant holds."""
    assert desk.problems() == []
    with desk.store.read(Deadline(60)) as reading:
        found = reading.by_id(sorted(acknowledged), ["p"])
        assert set(found) == acknowledged
        among = reading.among(Filter(("p",)))
        rows = reading.vectors.nearest(desk.encoder.encode("saves", Deadline(60)), among, 1_000_000).rows.tolist()
        assert {row for row, _ in found.values()} <= set(rows)
        # At most the save under way when a process died was written and not told of.
        assert len(rows) - len(found) <= ROUNDS + 1


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_nothing_acknowledged_is_lost_when_the_saving_process_is_killed_twenty_times(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    chance = random.Random(5)  # noqa: S311 - repeatable
    acknowledged: set[str] = set()
    for number in range(ROUNDS):
        saver = Saver(tmp_path, f"round{number}")
        saver.saved(chance.randint(1, 40))
        # Somewhere within a save, which takes a few milliseconds.
        threading.Event().wait(chance.uniform(0, 0.01))
        acknowledged |= set(saver.kill())
        desk = make_desk()
        all_there(desk, acknowledged)
        # What the dead process held is free again.
        acknowledged.add(desk.save(f"after round {number}").id)
        desk.close()
    assert len(acknowledged) > 2 * ROUNDS


@pytest.mark.slow
@pytest.mark.timeout(280)
def test_no_acknowledged_message_is_lost_when_the_appending_process_is_killed_ten_times(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    chance = random.Random(7)  # noqa: S311 - repeatable
    acknowledged: dict[int, str] = {}
    for _ in range(ROUNDS // 2):
        saver = Saver(tmp_path, "talk", "append_without_end")
        saver.saved(chance.randint(1, 40))
        threading.Event().wait(chance.uniform(0, 0.01))
        told = dict(map(json.loads, saver.kill()))
        assert not told.keys() & acknowledged.keys()
        acknowledged |= told
        desk = make_desk()
        assert desk.problems() == []
        with desk.store.conversations().read(Deadline(60)) as reading:
            last = reading.count("p", "talk")
            found = {each.seq: each.content for each in reading.messages("p", "talk", 1, last)}
            summary = reading.summary("p", "talk")
        assert list(found) == list(range(1, last + 1))
        assert acknowledged.items() <= found.items()
        if summary is not None:
            assert summary.text == found[summary.last].strip()
        desk.close()
    assert len(acknowledged) > ROUNDS


@pytest.mark.slow
def test_others_go_on_when_a_process_is_killed_beside_them(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk()
    acknowledged: set[str] = set()
    for number in range(5):
        one, other = Saver(tmp_path, f"one{number}"), Saver(tmp_path, f"other{number}")
        one.saved(5)
        other.saved(5)
        acknowledged |= set(one.kill())
        acknowledged.add(desk.save(f"between {number}").id)
        other.saved(5)
        acknowledged |= set(other.kill())
        all_there(desk, acknowledged)


def test_a_journal_cut_in_the_write_ahead_log_loses_the_tail_and_nothing_else(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    """What a power cut leaves: the log up to any byte. The store is the one of an earlier moment, and whole."""
    source = make_desk(tmp_path / "source")
    ids = [source.save(f"text number {number}", key="k" if number % 3 == 0 else None).id for number in range(12)]
    main = source.path.read_bytes()
    log = source.path.with_name("agora.db-wal").read_bytes()
    chance = random.Random(3)  # noqa: S311 - repeatable
    lengths = []
    for number, cut in enumerate(sorted(chance.sample(range(len(log)), 25))):
        folder = tmp_path / f"cut{number}"
        folder.mkdir()
        (folder / "agora.db").write_bytes(main)
        (folder / "agora.db-wal").write_bytes(log[:cut])
        desk = make_desk(folder)
        assert desk.problems() == []
        lengths.append(desk.sql("SELECT count(*) FROM items")[0][0])
        found = desk.sql("SELECT public_id FROM items ORDER BY id")
        assert [row[0] for row in found] == ids[: lengths[-1]]
        desk.save("it goes on")
        desk.close()
    assert lengths == sorted(lengths)
    assert lengths[-1] > lengths[0]


def test_a_log_with_a_damaged_byte_is_a_shorter_log(make_desk: MakeDesk, tmp_path: Path) -> None:
    source = make_desk(tmp_path / "source")
    for number in range(8):
        source.save(f"text number {number}")
    main = source.path.read_bytes()
    log = bytearray(source.path.with_name("agora.db-wal").read_bytes())
    chance = random.Random(4)  # noqa: S311 - repeatable
    for number in range(10):
        folder = tmp_path / f"bit{number}"
        folder.mkdir()
        damaged = bytearray(log)
        damaged[chance.randrange(32, len(log))] ^= 0x40
        (folder / "agora.db").write_bytes(main)
        (folder / "agora.db-wal").write_bytes(damaged)
        desk = make_desk(folder)
        assert desk.problems() == []
        desk.close()
