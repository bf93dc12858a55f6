from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Desk
from tests.unit.exchange.ferry import end_of, lines_of, send, take, version, write

from agora.errors import InvalidInput
from agora.exchange import sources
from agora.exchange.formats import FORMATS, known_format, recognise

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def whole(tmp_path: Path) -> list[bytes]:
    """The lines of an export of three versions."""
    return lines_of(write(tmp_path / "whole.jsonl", [version(n, f"text {n}") for n in (1, 2, 3)]))


def take_lines(desk: Desk, folder: Path, lines: list[bytes]) -> Any:
    file = folder / "x.jsonl"
    file.write_bytes(b"".join(lines))
    return take(desk, file)


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_a_file_that_was_cut_is_seen_and_what_is_there_comes_in(
    desk: Desk, tmp_path: Path, whole: list[bytes], kept: int
) -> None:
    report = take_lines(desk, tmp_path, whole[:kept])
    assert report.problems == ["the last line is missing: the file was cut"]
    assert not report.whole
    assert report.counts["created"] == kept - 1
    assert take_lines(desk, tmp_path, whole).whole
    assert desk.sql("SELECT count(*) FROM items") == [(3,)]


def test_a_file_that_was_cut_inside_of_a_line_loses_that_line(desk: Desk, tmp_path: Path, whole: list[bytes]) -> None:
    report = take_lines(desk, tmp_path, [*whole[:3], whole[3][:50]])
    assert report.counts == {"created": 2, "broken": 1}
    assert report.broken[0]["place"] == "line 4"
    assert report.broken[0]["reason"].startswith("is not JSON: ")


def test_a_file_that_was_changed_is_seen(desk: Desk, tmp_path: Path, whole: list[bytes]) -> None:
    whole[2] = whole[2].replace(b"text 2", b"text 9")
    report = take_lines(desk, tmp_path, whole)
    assert report.problems == ["the file is not as it was written: its SHA-256 differs"]
    assert report.counts == {"created": 3}


def test_a_file_that_lost_a_line_is_seen(desk: Desk, tmp_path: Path, whole: list[bytes]) -> None:
    del whole[2]
    report = take_lines(desk, tmp_path, whole)
    assert report.problems == ["the file had 3 versions when it was written, now 2"]


def test_a_packed_file_that_was_cut_gives_what_can_be_read(desk: Desk, tmp_path: Path) -> None:
    lines = lines_of(write(tmp_path / "w.jsonl", [version(n, f"text {n} {n * 7919}") for n in range(300)]))
    packed = gzip.compress(b"".join(lines))
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(packed[: len(packed) // 2])
    report = take(desk, file)
    assert 0 < report.counts["created"] < 300
    assert report.problems[0] == "the last line is missing: the file was cut"
    assert report.problems[1].startswith("the compressed file is damaged: ")


@pytest.mark.parametrize("number", [2, 99])
def test_a_file_of_a_later_version_is_refused_with_words(
    desk: Desk, tmp_path: Path, whole: list[bytes], number: int
) -> None:
    whole[0] = json.dumps(json.loads(whole[0]) | {"version": number}).encode() + b"\n"
    with pytest.raises(InvalidInput, match=f"has version {number} of the export format") as caught:
        take_lines(desk, tmp_path, whole)
    assert "Install a newer release" in caught.value.hint
    assert desk.sql("SELECT count(*) FROM items") == [(0,)]


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (b"", "does not begin with the header"),
        (b"not json\n", "line 1 is not JSON"),
        (b'{"record":"version"}\n', "does not begin with the header"),
        (b'{"record":"header","format":"agora-export","version":1}\n', "lacks `store` or `encoder`"),
        (
            b'{"record":"header","format":"agora-export","version":1,"store":"s","encoder":{}}\n',
            "lacks `digest` or `dimension`",
        ),
    ],
)
def test_a_file_without_a_header_is_no_export(desk: Desk, tmp_path: Path, first: bytes, reason: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(first)
    with pytest.raises(InvalidInput, match=reason):
        take(desk, file, format="agora")


def test_what_stands_after_the_end_is_broken(desk: Desk, tmp_path: Path, whole: list[bytes]) -> None:
    report = take_lines(desk, tmp_path, [*whole, whole[1]])
    assert report.counts == {"created": 3, "broken": 1}
    assert report.broken == [{"place": "line 6", "reason": "stands after the last line"}]


def without(*names: str) -> Change:
    return lambda record: [record.pop(name) for name in names]


def setting(**fields: Any) -> Change:
    return lambda record: record.update(fields)


def saver(**fields: Any) -> Change:
    return lambda record: record["savers"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("id"), "id: is missing"),
        (setting(id="x"), "id: must be the id of a note"),
        (setting(id="n_01kf0000000000000000000000"), "id: must be the id of a note"),
        (setting(type="document"), "type: must be one of note, fact, message, summary, it is 'document'"),
        (setting(record="fact"), "is a record of a kind that this release does not know: 'fact'"),
        (setting(kind="Note"), "kind: must be a lower-case letter"),
        (setting(version=0), "version: must be 1 or more"),
        (setting(version=True), "version: must be a whole number"),
        (setting(version=2), "version: must be 1 without a key"),
        (setting(content=" \n"), "content: must not be blank"),
        (setting(content=5), "content: must be a text"),
        (without("content"), "content: must be there unless the version was purged"),
        (setting(purged_at="2026-01-01T00:00:00Z"), "content: must be there unless the version was purged"),
        (setting(content="a\0b"), "holds half of a character, or a NUL"),
        (setting(metadata={"a": ["\ud800"]}), "holds half of a character, or a NUL"),
        (setting(metadata=[]), "metadata: must be an object"),
        (setting(confidence=1.5), "confidence: must be a number between 0 and 1"),
        (setting(created_at="2026-01-01"), "created_at: must have an offset from UTC"),
        (setting(created_at="yesterday"), "created_at: must be an instant in ISO 8601"),
        (setting(expires_at=5), "expires_at: must be a text"),
        (setting(more="x"), "more: is a field that this release does not know"),
        (setting(savers=[]), "savers: there must be one at least"),
        (setting(savers={}), "savers: must be a list"),
        (setting(savers=["x"]), "savers: must hold objects"),
        (saver(origin="root"), "savers.origin: must be one of user, agent, tool, web, it is 'root'"),
        (saver(agent=""), "savers.agent: must not be blank"),
        (saver(times=0), "savers.times: must be 1 or more"),
        (saver(more=1), "savers.more: is a field that this release does not know"),
        (lambda record: record["savers"].append(record["savers"][0]), "savers: the same one twice"),
        (setting(replaces=[{"id": "x"}]), "replaces.id: must be the id of a note"),
        (setting(passages=[{"start": 0, "stop": 99, "vector": "AAAAAA=="}]), "passages.vector: must be 64 numbers"),
        (setting(passages=[{"start": 0, "stop": 4, "vector": "?"}]), "passages.vector: must be float32 numbers"),
    ],
)
def test_a_broken_line_is_named_with_its_reason_and_the_rest_comes_in(
    desk: Desk, tmp_path: Path, whole: list[bytes], change: Change, reason: str
) -> None:
    record = json.loads(whole[2])
    change(record)
    whole[2] = json.dumps(record).encode() + b"\n"
    report = take_lines(desk, tmp_path, whole)
    assert report.counts == {"created": 2, "broken": 1}
    assert report.broken[0]["place"] == "line 3"
    assert report.broken[0]["reason"].startswith(reason)
    assert not report.whole


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\n", "is not JSON"),
        (b"{\n", "is not JSON"),
        (b"[1]\n", "is no JSON object"),
        (b'{"a": NaN}\n', "is not JSON that can be read"),
        (b'{"a": ' + b"1" * 5000 + b"}\n", "is not JSON that can be read"),
        (b"[" * 100_000 + b"\n", "is not JSON"),
        (b'{"a": "\xff"}\n', "is not UTF-8 at byte 7"),
    ],
)
def test_a_line_that_is_no_record_is_broken(
    desk: Desk, tmp_path: Path, whole: list[bytes], line: bytes, reason: str
) -> None:
    report = take_lines(desk, tmp_path, [*whole[:2], line, *whole[2:]])
    assert report.counts == {"created": 3, "broken": 1}
    assert report.broken[0]["place"] == "line 3"
    assert report.broken[0]["reason"].startswith(reason)


def test_line_ends_of_windows_and_a_byte_order_mark_do_not_hide_an_export(
    desk: Desk, tmp_path: Path, whole: list[bytes]
) -> None:
    changed = [b"\xef\xbb\xbf" + whole[0], *whole[1:]]
    report = take_lines(desk, tmp_path, [line.replace(b"\n", b"\r\n") for line in changed])
    assert report.counts == {"created": 3}
    assert report.problems == ["the file is not as it was written: its SHA-256 differs"]


def test_a_line_longer_than_any_note_is_broken_and_not_kept_in_memory(
    tmp_path: Path,
) -> None:
    source_file = tmp_path / "long.bin"
    with source_file.open("wb") as out:
        out.write(b"a" * 100 + b"\n")
        for _ in range((sources.LINE >> 20) + 8):
            out.write(b"b" * (1 << 20))
        out.write(b"\nlast")
    with sources.opened(str(source_file)) as [source]:
        found = [(number, len(line), line[-4:]) for number, line in source.lines()]
    assert found[0] == (1, 101, b"aaa\n")
    assert found[1][0] == 2
    assert sources.LINE < found[1][1] < sources.LINE + (2 << 20)
    assert found[2] == (3, 4, b"last")


def test_a_sum_over_the_same_lines_is_the_same_whatever_the_header(whole: list[bytes]) -> None:
    one = json.loads(end_of(whole[:-1]))
    two = json.loads(end_of([b"{}\n", *whole[1:-1]]))
    assert one["versions_sha256"] == two["versions_sha256"]
    assert one["sha256"] != two["sha256"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.txt", '{"type":"entity","name":"A","entityType":"x","observations":[]}\n', "mcp-memory"),
        ("a.txt", '{"type":"relation","from":"A","to":"B","relationType":"x"}\n', "mcp-memory"),
        ("a.txt", '{"entities":[],"relations":[]}', "mcp-memory"),
        ("a.txt", '{"type":"user","message":{"role":"user","content":"x"}}\n', "claude-code"),
        ("a.txt", '{"type":"summary","summary":"x","leafUuid":"y"}\n', "claude-code"),
        ("a.txt", '{"type":"progress"}\nbroken\n{"type":"assistant","message":{}}\n', "claude-code"),
        ("a.txt", '{\n "loglines": [\n', "claude-code"),
        ("a.txt", '[{"title":"x","mapping":{}}]', "chatgpt"),
        ("a.txt", '{"conversations":[{"mapping":{}}]}', "chatgpt"),
        ("a.txt", '[{"uuid":"x","chat_messages":[]}]', "claude-ai"),
        ("a.txt", '[{"id":"x","memory":"y"}]', "mem0"),
        ("a.txt", '{"results":[{"id":"x","memory":"y"}]}', "mem0"),
        ("a.txt", '{"id":"x","memory":"y"}\n{"id":"z","memory":"w"}\n', "mem0"),
        ("a.md", "---\nid: x\ncreated_at: y\n---\ntext\n", "mem0"),
        ("a.mdc", "---\ndescription: x\n---\ntext\n", "rules"),
        ("CLAUDE.md", "no heading\n", "rules"),
        (".cursorrules", "no heading\n", "rules"),
        ("a.txt", "# Heading\ntext\n", "rules"),
        ("a.txt", "\ufeff# Heading\ntext\n", "rules"),
    ],
)
def test_a_file_is_recognised_by_what_is_in_it(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with sources.opened(str(tmp_path / name)) as [source]:
        assert recognise(source) == expected


@pytest.mark.parametrize("text", [b"", b"just words", b"[1, 2]", b'{"a": 1}', b"\x89PNG\r\n\x1a\n\0\0", b"\xff" * 100])
def test_a_file_of_no_known_format_is_refused_with_the_names_of_those_that_are(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "x.bin").write_bytes(text)
    with sources.opened(str(tmp_path / "x.bin")) as [source], pytest.raises(InvalidInput) as caught:
        recognise(source)
    assert all(name in caught.value.hint for name in FORMATS)


def test_a_format_that_does_not_exist_gets_the_nearest_one() -> None:
    assert known_format("mem0") == "mem0"
    assert known_format(None) is None
    with pytest.raises(InvalidInput, match="did you mean 'chatgpt'"):
        known_format("chat-gpt")


def test_an_export_is_recognised_whether_packed_or_not(desk: Desk, tmp_path: Path) -> None:
    desk.save("one")
    for name in ("x.jsonl", "x.gz"):
        send(desk, tmp_path / name)
        with sources.opened(str(tmp_path / name)) as [source]:
            assert recognise(source) == "agora"


def test_a_zip_archive_gives_its_conversations(desk: Desk, tmp_path: Path) -> None:
    conversation = {"uuid": "c", "name": "n", "chat_messages": [{"uuid": "m", "sender": "human", "text": "from a zip"}]}
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/conversations.json", json.dumps([conversation]))
        archive.writestr("data/users.json", "[]")
    with sources.opened(str(tmp_path / "x.zip")) as found:
        assert [source.name for source in found] == ["x.zip/data/conversations.json"]
    assert take(desk, tmp_path / "x.zip").counts == {"created": 1}


@pytest.mark.parametrize("content", [b"PK\x03\x04 no archive", None])
def test_an_archive_without_conversations_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "x.zip"
    if content is None:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("users.json", "[]")
    else:
        file.write_bytes(content)
    with pytest.raises(InvalidInput, match="zip archive"), sources.opened(str(file)):
        pass


def test_a_file_that_is_not_there_and_a_folder_are_said_so(tmp_path: Path) -> None:
    for path in (tmp_path / "no.jsonl", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"), sources.opened(str(path)):
            pass
