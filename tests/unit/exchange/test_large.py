from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.conftest import Desk, MakeDesk
from tests.unit.exchange.ferry import NOON, send, take, version, versions_of, write

from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.ports.transfer import Version

ROOT = Path(__file__).resolve().parents[3]
WORKER = Path(__file__).with_name("ferry_worker.py")
PATIENCE = 120.0


def start(*arguments: object) -> subprocess.Popen[str]:
    """A worker process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    return subprocess.Popen(
        [sys.executable, str(WORKER), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def result(worker: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = worker.communicate(timeout=PATIENCE)
    assert worker.returncode == 0, errors
    found: dict[str, Any] = json.loads(out)
    return found


def rows(folder: Path) -> int:
    """Committed rows of a store that another process is writing."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{(folder / 'agora.db').as_uri()}?mode=ro", uri=True)) as reader,
    ):
        return int(reader.execute("SELECT count(*) FROM items").fetchone()[0])
    return 0


def short(count: int) -> Iterator[Version]:
    for n in range(count):
        yield version(n, f"word{n % 397} word{n % 401} {n}")


def test_twelve_thousand_rows_go_in_and_come_out(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", list(short(12_000)))
    assert take(desk, file).counts == {"created": 12_000}
    lines = send(desk, tmp_path / "y.jsonl.gz")
    assert len(versions_of(lines)) == 12_000
    assert versions_of(lines) == file.read_bytes().splitlines(keepends=True)[1:-1]
    assert desk.counts()["notes"]["live"] == 12_000


def test_a_large_file_is_never_in_memory_whole(desk: Desk, make_desk: MakeDesk, tmp_path: Path) -> None:
    # Forgotten, so that nothing is indexed: what is measured is the way in and out.
    vector = desk.encoder.encode("x", Deadline(PATIENCE))
    text = "word " * 4000
    big = [version(n, f"{n} {text}", forgotten_at=NOON, passages=((Span(0, len(text)), vector),)) for n in range(3000)]
    file = write(tmp_path / "x.jsonl", big, digest=desk.encoder.fingerprint.digest())
    assert file.stat().st_size > 55 << 20
    taken = result(start("import", tmp_path / "b", file))
    assert taken["counts"]["created"] == 3000
    assert taken["grown"] < 30 << 20
    sent = result(start("export", tmp_path / "b", tmp_path / "y.jsonl"))
    assert (tmp_path / "y.jsonl").stat().st_size > 55 << 20
    assert sent["grown"] < 30 << 20
    assert make_desk(tmp_path / "b").sql("SELECT count(*) FROM items") == [(3000,)]


def test_an_import_that_is_killed_goes_on_where_it_was(make_desk: MakeDesk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", list(short(2500)))
    worker = start("import", tmp_path / "b", file)
    ends = time.monotonic() + PATIENCE
    while rows(tmp_path / "b") < 200 and worker.poll() is None and time.monotonic() < ends:
        pass
    worker.kill()
    worker.communicate(timeout=PATIENCE)
    desk = make_desk(tmp_path / "b")
    [[there]] = desk.sql("SELECT count(*) FROM items")
    assert 0 < there < 2500
    assert there % 200 == 0
    assert desk.problems() == []
    assert take(desk, file).counts == {"duplicate": there, "created": 2500 - there}
    assert desk.problems() == []
    again = versions_of(send(desk, tmp_path / "y.jsonl"))
    assert again == file.read_bytes().splitlines(keepends=True)[1:-1]


def test_another_process_saves_while_an_import_runs(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "b")
    desk.save("first")
    file = write(tmp_path / "x.jsonl", list(short(1500)))
    worker = start("save", tmp_path / "b", 80)
    ends = time.monotonic() + PATIENCE
    while rows(tmp_path / "b") < 2 and worker.poll() is None and time.monotonic() < ends:
        pass
    assert take(desk, file).counts == {"created": 1500}
    ids = result(worker)["ids"]
    assert desk.counts()["notes"]["live"] == 1581
    assert set(desk.found("saved meanwhile", mode="lexical", top_k=50)) <= set(ids)
    assert len(set(ids)) == 80
    assert desk.problems() == []
