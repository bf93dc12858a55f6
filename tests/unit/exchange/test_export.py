from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.unit.exchange.ferry import lines_of, send, take, versions_of

from agora.errors import InvalidInput, NamespaceDenied
from agora.exchange import native, targets
from agora.exchange.exporting import Exporter
from agora.model.deadline import Deadline
from agora.ports.transfer import Extract
from agora.testing import SilentLog


def records(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_the_header_says_what_the_file_is_and_the_end_sums_it_up(desk: Desk, tmp_path: Path) -> None:
    desk.save("one")
    desk.save("two", namespace="q")
    lines = send(desk, tmp_path / "x.jsonl")
    header, *versions, end = records(lines)
    assert header["format"] == "agora-export"
    assert header["version"] == 1
    assert header["exported_at"] == "2026-01-15T12:00:00.000000Z"
    assert header["store"] == desk.sql("SELECT value FROM meta WHERE key = 'store'")[0][0]
    assert header["sequence"] == 2
    assert header["encoder"] == {"digest": desk.encoder.fingerprint.digest(), "dimension": 64, "name": "fake"}
    assert header["counts"] == {"versions": 2, "namespaces": {"p": 1, "q": 1}}
    assert [version["content"] for version in versions] == ["one", "two"]
    assert end["versions"] == 2
    assert end["sha256"] == hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    assert end["versions_sha256"] == hashlib.sha256(b"".join(lines[1:-1])).hexdigest()


def test_a_line_has_everything_that_the_store_knows(desk: Desk, tmp_path: Path) -> None:
    fields: dict[str, Any] = {"tags": ("b", "a"), "metadata": {"n": [1, {"é": None}]}, "title": "T", "confidence": 0.5}
    first = desk.save("text", "ann", key="k", kind="decision", lives=60, **fields).id
    desk.clock.advance(seconds=1.5)
    desk.save("text", "bob", key="k", tags=("c",))
    second = desk.save("text 2", "bob", key="k").id
    desk.forget(second, reason="wrong")
    one, two = records(versions_of(send(desk, tmp_path / "x.jsonl")))
    noon, later = "2026-01-15T12:00:00.000000Z", "2026-01-15T12:00:01.500000Z"
    common = {"client": "test", "client_version": "1", "origin": "agent", "session": "s1", "times": 1}
    assert one == {
        "record": "version",
        "id": first,
        "type": "note",
        "namespace": "p",
        "kind": "decision",
        "key": "k",
        "version": 1,
        "title": "T",
        "content": "text",
        "metadata": fields["metadata"],
        "confidence": 0.5,
        "session": "s1",
        "created_at": noon,
        "updated_at": later,
        "superseded_by": second,
        "superseded_at": later,
        "savers": [
            common
            | {"agent": "ann", "first_at": noon, "last_at": noon, "tags": ["a", "b"]}
            | {"given": {"title": "T", "metadata": fields["metadata"], "confidence": 0.5}},
            common | {"agent": "bob", "first_at": later, "last_at": later, "tags": ["c"]},
        ],
    }
    assert two["supersedes"] == first
    assert two["replaces"] == [{"id": first, "sha256": hashlib.sha256(b"text").hexdigest()}]
    assert two["forgotten_at"] == later
    assert two["forget_reason"] == "wrong"


def test_every_column_of_the_canonical_tables_is_exported_or_known_not_to_be(desk: Desk) -> None:
    # A column that somebody adds must be carried along, or be named here with its reason.
    left_out = {
        "items": {
            "content_hash",  # of the content
            "normal_hash",  # of the content
            "effective_at",  # of occurred_at and created_at
            "contests",  # nothing writes it yet
        },
        "texts": set[str](),
        "savers": {"n"},  # the order of the savers
        "item_tags": {"saver"},  # the saver that has it
    }
    renamed = {
        "public_id": "id",
        "namespace_id": "namespace",
        "item_id": "id",
        "agent_id": "agent",
        "client_id": "client",
        "tag": "tags",
    }
    written = set(re.findall(r'"(\w+)":', Path(native.__file__).read_text(encoding="utf-8")))
    for table, known in left_out.items():
        columns = {row[1] for row in desk.sql(f"PRAGMA table_info({table})")} - known
        assert {renamed.get(column, column) for column in columns} <= written, table


def test_lines_are_canonical_and_cannot_drive_a_terminal(desk: Desk, tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\x1b[31m\x9b31m\r\n\t\x7f 端口 é"
    desk.save(text)
    [line] = versions_of(send(desk, tmp_path / "x.jsonl"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", line.decode())
    assert "端口 é".encode() in line
    record = json.loads(line)
    assert record["content"] == text
    assert list(record) == sorted(record)
    assert b'": ' not in line
    assert b'", ' not in line


def test_only_the_wanted_namespaces_come_along(desk: Desk, tmp_path: Path) -> None:
    for namespace in ("p", "q", "r"):
        desk.save(f"in {namespace}", namespace=namespace)
    lines = records(send(desk, tmp_path / "x.jsonl", ("p", "r")))
    assert [line["content"] for line in lines[1:-1]] == ["in p", "in r"]
    assert lines[0]["selection"]["namespaces"] == ["p", "r"]
    assert lines[0]["counts"] == {"versions": 2, "namespaces": {"p": 1, "r": 1}}


def test_a_namespace_out_of_scope_is_denied_before_anything_is_written(desk: Desk, tmp_path: Path) -> None:
    desk.save("in q", namespace="q")
    exporter = Exporter(desk.store.transfer(), desk.clock, SilentLog())
    with pytest.raises(NamespaceDenied), targets.opened(str(tmp_path / "x.jsonl")) as out:
        exporter.run(Extract(("q",)), desk.caller(namespace="p"), out, Deadline(PATIENCE))
    assert list(tmp_path.glob("x*")) == []


def test_live_notes_alone_leave_out_what_a_query_would_not_find(desk: Desk, tmp_path: Path) -> None:
    desk.save("v1", key="k")
    desk.save("v2", key="k")
    desk.forget(desk.save("forgotten").id)
    desk.save("expired", lives=5)
    desk.clock.advance(seconds=5)
    found = records(versions_of(send(desk, tmp_path / "x.jsonl", live_only=True)))
    assert [version["content"] for version in found] == ["v2"]
    assert len(versions_of(send(desk, tmp_path / "y.jsonl"))) == 4


def test_since_takes_what_was_saved_changed_or_forgotten_since(desk: Desk, tmp_path: Path) -> None:
    old, joined, gone = (desk.save(text).id for text in ("old", "joined", "gone"))
    desk.clock.advance(seconds=10)
    since = desk.clock.now()
    desk.save("joined", "bob")
    desk.forget(gone)
    new = desk.save("new").id
    found = {version["id"] for version in records(versions_of(send(desk, tmp_path / "x.jsonl", since=since)))}
    assert found == {joined, gone, new}
    assert old not in found


def test_vectors_come_along_only_if_wanted(desk: Desk, tmp_path: Path) -> None:
    desk.save("one two three")
    [bare] = records(versions_of(send(desk, tmp_path / "x.jsonl")))
    [full] = records(versions_of(send(desk, tmp_path / "y.jsonl", vectors=True)))
    assert "passages" not in bare
    [passage] = full.pop("passages")
    assert full == bare
    assert (passage["start"], passage["stop"]) == (0, 13)
    assert len(passage["vector"]) == (64 * 4 + 2) // 3 * 4


def test_a_packed_file_is_the_same_for_the_same_contents(desk: Desk, tmp_path: Path) -> None:
    desk.save("one")
    plain = send(desk, tmp_path / "x.jsonl")
    send(desk, tmp_path / "a.jsonl.gz")
    send(desk, tmp_path / "b.jsonl.gz")
    packed = (tmp_path / "a.jsonl.gz").read_bytes()
    assert packed == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == b"".join(plain)
    assert lines_of(tmp_path / "a.jsonl.gz") == plain


def test_a_file_that_is_there_is_kept_unless_it_may_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"before")
    with pytest.raises(InvalidInput, match="is there already") as caught, targets.opened(str(file)):
        pass
    assert "--force" in caught.value.hint
    with targets.opened(str(file), replace=True) as out:
        out.write(b"after")
    assert file.read_bytes() == b"after"


def fail_halfway(file: Path) -> None:
    with targets.opened(str(file), replace=True) as out:
        out.write(b"half of it")
        raise RuntimeError


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_an_export_that_fails_leaves_the_file_that_was_there_and_nothing_else(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"before")
    with pytest.raises(RuntimeError):
        fail_halfway(tmp_path / name)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"before")]


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"), targets.opened(str(tmp_path / "no" / "x.jsonl")):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_nobody_else_can_read_the_file(desk: Desk, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        send(desk, tmp_path / "x.jsonl")
    finally:
        os.umask(before)
    assert (tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o600


def test_others_write_while_an_export_runs_and_none_of_it_shows(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk, other = make_desk(), make_desk()
    for number in range(450):
        desk.save(f"note {number}")
    transfer = desk.store.transfer()
    with transfer.outgoing(Extract(("p",)), desk.clock.now(), Deadline(PATIENCE)) as outgoing:
        versions = outgoing.versions()
        first = [next(versions) for _ in range(10)]
        # Blocks are read one by one: what comes next is not in memory yet.
        writer = threading.Thread(target=lambda: [other.save(f"meanwhile {number}") for number in range(30)])
        writer.start()
        writer.join(PATIENCE)
        assert not writer.is_alive()
        other.forget(first[0].id)
        seen = [*first, *versions]
    assert len(seen) == 450 == sum(outgoing.counts.values())
    assert not any(version.content and version.content.startswith("meanwhile") for version in seen)
    assert len(versions_of(send(desk, tmp_path / "x.jsonl"))) == 480


def test_an_empty_store_makes_a_whole_file(desk: Desk, make_desk: MakeDesk, tmp_path: Path) -> None:
    lines = send(desk, tmp_path / "x.jsonl")
    assert len(lines) == 2
    assert take(make_desk(tmp_path / "b"), tmp_path / "x.jsonl").whole


def test_an_export_needs_one_connection_only(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(readers=1)
    desk.save("one")
    assert len(versions_of(send(desk, tmp_path / "x.jsonl"))) == 1
