from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agora.exchange import sources
from agora.exchange.json_elements import BadDocument, elements
from agora.exchange.sources import Source

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Pieces(Source):
    """A document that comes in pieces of a few bytes."""

    def __init__(self, text: bytes, size: int) -> None:
        self._pieces = [text[at : at + size] for at in range(0, len(text), size)]

    def chunks(self) -> Any:
        return iter(self._pieces)


@given(st.lists(_JSON, max_size=6), st.integers(1, 40), st.booleans(), st.sampled_from([None, 1]))
@settings(max_examples=150, deadline=None)
def test_the_elements_of_an_array_are_those_that_the_whole_has(
    values: list[Any], size: int, plain: bool, indent: int | None
) -> None:
    text = json.dumps(values, ensure_ascii=plain, indent=indent).encode("utf-8", "surrogatepass")
    try:
        text.decode()
    except UnicodeDecodeError:
        return
    assert [value for _, value in elements(Pieces(text, size))] == values


@given(st.lists(_JSON, max_size=4), st.lists(_JSON, max_size=4), _JSON, st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_the_wanted_arrays_of_an_object_come_with_their_names(
    one: list[Any], two: list[Any], other: Any, size: int
) -> None:
    text = json.dumps({"a": one, "other": other, "b": two, "c": [other]}).encode()
    found = list(elements(Pieces(text, size), {"a", "b"}))
    assert found == [*(("a", value) for value in one), *(("b", value) for value in two)]


@pytest.mark.parametrize(
    ("text", "good", "reason"),
    [
        (b"[1, 2", 2, "the end"),
        (b"[1, 2,]", 2, "Expecting value"),
        (b"[1 2]", 1, "one of ',]'"),
        (b'[1, "abc', 1, "Unterminated string"),
        (b"[1] x", 1, "after the end"),
        (b"5", 0, "one of '{'"),
        (b"", 0, "the end"),
        (b'{"a" 5}', 0, "one of ':'"),
        (b'[1, "\xff"]', 0, "not UTF-8"),
        (b"[1, NaN]", 1, "NaN is no JSON"),
        (b"[" + b"[" * 200_000, 0, ""),
        (b"[1, tru", 1, "Expecting value"),
    ],
)
def test_a_broken_document_gives_what_comes_before_the_fault_and_says_what_it_is(
    text: bytes, good: int, reason: str
) -> None:
    found: list[Any] = []
    with pytest.raises(BadDocument) as caught:
        found.extend(elements(Pieces(text, 1 << 20)))
    assert reason in str(caught.value)
    assert len(found) <= good


def test_what_comes_before_the_fault_has_been_given() -> None:
    found = elements(Pieces(b"[1, {}, [2], oops]", 3))
    assert [next(found)[1] for _ in range(3)] == [1, {}, [2]]
    with pytest.raises(BadDocument):
        next(found)


def test_a_fault_in_the_middle_does_not_read_the_rest_into_memory(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    with file.open("wb") as out:
        out.write(b'[{"a": 1}, {"a" 1}, "')
        for _ in range(24):
            out.write(b"x" * (1 << 20))
        out.write(b'"]')
    with sources.opened(str(file)) as [source]:
        with pytest.raises(BadDocument):
            list(elements(source))
        assert source.position < 8 << 20
