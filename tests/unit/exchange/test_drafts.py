from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.errors import InvalidInput
from agora.exchange.drafts import Drafts, readable, split, without_blobs
from agora.exchange.events import Text
from agora.model.caller import Caller, Scope
from agora.ports.transfer import Version

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


def drafts(limit: int = 1000, **caller: Any) -> Drafts:
    who = Caller(Scope("p", "test"), **{"agent": "imp", "session": "s", "client": "c", "origin": "agent"} | caller)
    return Drafts("mem0", "folder/x.json", who, NOW, limit)


def made(limit: int = 1000, **fields: Any) -> list[Version]:
    return drafts(limit).of(Text("here", **{"content": "a text", **fields}))[0]


@given(st.text(), st.integers(4, 50))
def test_the_parts_of_a_text_are_the_text_and_none_is_too_long(text: str, most: int) -> None:
    parts = split(text, most)
    assert "".join(parts) == text
    assert all(len(part.encode()) <= most for part in parts)
    assert len(parts) == 1 or all(parts)


def test_a_long_text_is_cut_between_paragraphs_if_there_are_any() -> None:
    text = "\n\n".join(f"paragraph {n} " + "word " * 12 for n in range(30))
    parts = split(text, 500)
    assert "".join(parts) == text
    assert all(part.endswith("\n\n") for part in parts[:-1])


def test_the_parts_of_a_long_text_have_numbers() -> None:
    versions = made(limit=100, content="word " * 50, title="T", key="k")
    assert len(versions) == 3
    assert "".join(version.content or "" for version in versions) == "word " * 50
    assert [(v.metadata["part"], v.metadata["parts"]) for v in versions] == [(1, 3), (2, 3), (3, 3)]
    assert [version.key for version in versions] == ["k (1/3)", "k (2/3)", "k (3/3)"]
    assert {version.title for version in versions} == {"T"}


def test_a_cut_is_counted() -> None:
    assert drafts(100).of(Text("here", "word " * 50))[1] == {"texts that were cut into parts": 1}


@pytest.mark.parametrize("content", ["", " \n\t "])
def test_an_empty_text_is_left_out(content: str) -> None:
    versions, left_out = drafts().of(Text("here", content))
    assert (versions, left_out) == ([], {"empty texts": 1})


def test_a_text_says_where_it_comes_from_and_who_wrote_it() -> None:
    [version] = made(agent=" Ada ", session="t1", tags=("X  Y", "b"), metadata={"speaker": "user"}, title=" T \n U ")
    assert version.metadata == {"source": "mem0", "source_file": "folder/x.json", "speaker": "user"}
    assert (version.title, version.session, version.kind) == ("T U", "t1", "note")
    [saver] = version.savers
    assert (saver.agent, saver.session, saver.client, saver.origin) == ("Ada", "t1", "c", "agent")
    assert saver.tags == ("mem0", "x y", "b")
    assert (saver.first_at, version.created_at) == (NOW, NOW)


def test_a_text_without_a_session_gets_the_same_one_each_time() -> None:
    [version] = made()
    assert version.session == "mem0:folder/x.json"
    assert version.savers[0].agent == "imp"


def test_the_same_text_gets_the_same_id_in_one_namespace_and_another_one_elsewhere() -> None:
    [one], [two], [other] = made(), made(title="T", session="x"), made(content="another")
    elsewhere = Drafts("mem0", "f", Caller(Scope("q", "test"), "a", "s", "c"), NOW, 1000)
    assert one.id == two.id
    assert len({one.id, other.id, elsewhere.of(Text("here", "a text"))[0][0].id}) == 3


def test_a_title_that_is_too_long_is_kept_whole_in_the_metadata() -> None:
    [version] = made(title="t" * 400)
    assert version.title == "t" * 299 + "…"
    assert version.metadata["title"] == "t" * 400


def test_tags_that_are_too_long_for_a_tag_are_no_tags() -> None:
    [version] = made(tags=("t" * 65, "  ", "ok"))
    assert version.savers[0].tags == ("mem0", "ok")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"occurred_at": "someday"}, "occurred_at: must be an ISO 8601"),
        ({"kind": "NOT"}, "kind: must be a lower-case letter"),
        ({"confidence": 7}, "confidence: must be between 0 and 1"),
        ({"metadata": {"x": "y" * 20_000}}, "metadata: must have at most"),
        ({"content": "\u200b"}, "content: must not be blank"),
        ({"agent": "a" * 200}, "agent: must have at most 128"),
    ],
)
def test_what_no_save_would_take_no_import_takes(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        made(**fields)


def test_halves_of_characters_and_nuls_are_marked_and_counted() -> None:
    left_out: Counter[str] = Counter()
    assert readable("a\ud83d b\0c 🎉", left_out) == "a\ufffd b\ufffdc 🎉"
    assert left_out == {"characters that cannot be kept": 2}


BLOB = "iVBORw0KGgo" * 120


@pytest.mark.parametrize(
    ("text", "expected", "times"),
    [
        (f"see ![x](data:image/png;base64,{BLOB}) there", "see ![x]([base64, 1342 characters, left out]) there", 1),
        (f"raw {BLOB}== end", "raw [base64, 1322 characters, left out] end", 1),
        ("a" * 5000, "a" * 5000, 0),
        ("0123456789abcdef" * 4, "0123456789abcdef" * 4, 0),
        ("data:image/png;base64,short", "data:image/png;base64,short", 0),
        ("path/to/" * 200, "path/to/" * 200, 0),
    ],
)
def test_blobs_are_left_out_and_hashes_and_long_words_stay(text: str, expected: str, times: int) -> None:
    left_out: Counter[str] = Counter()
    assert without_blobs(text, left_out) == expected
    assert left_out["base64 blobs"] == times
