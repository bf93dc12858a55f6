from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.text.sameness import name_of, same

EQUAL: list[tuple[Any, Any]] = [
    ("PostgreSQL", "postgresql"),
    ("  two\tspaces ", "two spaces"),
    ("caffè", unicodedata.normalize("NFD", "caffè")),
    ("ＦＵＬＬ", "full"),
    ("straße", "STRASSE"),
    ("so\u00adft", "soft"),
    ("a\u00a0b", "a b"),
    (1000, 1000.0),
    (1000, "1000"),
    (1000, "1,000"),
    (1000, "1 000"),
    (1000, "1\u202f000"),
    (1_234_567, "1,234,567"),
    (1_234_567, "1'234'567"),
    (0, -0.0),
    (0, "-0"),
    (5, "+5"),
    (-5, "-5"),
    (0.1, "0.1"),
    (-0.25, "-0.25"),
    (10**23, 1e23),
    ("１２", 12),
    (True, "True"),
    (False, "false"),
    ([1, "A"], ["1", "a"]),
    ({"a": 1, "b": ["X"]}, {"b": ["x"], "a": "1"}),
    ("İ", unicodedata.normalize("NFD", "İ")),
    ("TITLE", "title"),
]

UNEQUAL: list[tuple[Any, Any]] = [
    ("3.1", "3.10"),
    (3.1, "3.10"),
    ("1.0", 1),
    ("1.000", 1000),
    ("1.2.3", "1.2.4"),
    ("v1", 1),
    ("007", 7),
    ("00", 0),
    ("0,123", 123),
    ("1,00", 100),
    ("1,0000", 10_000),
    ("12,34", 1234),
    ("1.00000000000000000001", 1),
    ("0.10000000000000000001", 0.1),
    (2**53, 2**53 + 1),
    (float(2**53), 2**53 + 1),
    ("9007199254740993", 9007199254740992),
    (True, 1),
    (False, 0),
    ("", "0"),
    ("", " x"),
    ("5 %", 5),
    ("-5", 5),
    ("a b", "ab"),
    ("a_b", "a b"),
    ("a-b", "a b"),
    ([1, 2], [2, 1]),
    ([1, 2], "1, 2"),
    ([], {}),
    ([], ""),
    (["a"], "a"),
    ([["a"], "b"], [["a", "b"]]),
    ({"a": "b"}, ["a", "b"]),
    ({"a": 1}, {"A": 1}),
    (["text", "a"], "a"),
    (["number", "1"], 1),
    ("ı", "i"),
    ("caffè", "caffe"),
    ("ё", "е"),
    ("e1", "1e1"),
    ("1e3", 1000),
    ("0x10", 16),
    ("1_0", 10),
    ("10:30", 1030),
    ("2024-01-02", "2024-01-03"),
    ("1" * 400, "1" * 399 + "2"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL, ids=repr)
def test_two_ways_to_write_a_value_are_one_value(one: Any, other: Any) -> None:
    assert same(one) == same(other)


@pytest.mark.parametrize(("one", "other"), UNEQUAL, ids=repr)
def test_values_that_differ_are_two(one: Any, other: Any) -> None:
    assert same(one) != same(other)


words = st.text(max_size=8)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    words | numbers | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def mirrored(value: Any) -> Any:
    """The same value, each object written in the other order."""
    if isinstance(value, dict):
        return {key: mirrored(value[key]) for key in reversed(list(value))}
    return [mirrored(each) for each in value] if isinstance(value, list) else value


@given(values)
def test_a_value_is_the_same_as_itself_however_it_is_written(value: Any) -> None:
    assert same(value) == same(mirrored(value))
    assert len(same(value)) == 32


@given(words)
def test_letter_case_unicode_form_and_blanks_around_make_no_difference(text: str) -> None:
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")} | {f" {text}\n"}
    assert {same(form) for form in forms} == {same(text)}
    assert same(text.casefold()) == same(text)


@given(numbers, numbers)
def test_numbers_are_the_same_if_and_only_if_they_read_the_same(one: float, other: float) -> None:
    equal = (repr(one) == repr(other)) or (one == other and abs(one) < 2**53)
    if equal:
        assert same(one) == same(other)
    elif one != other:
        assert same(one) != same(other)


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_the_same_with_and_without_its_thousands_apart(number: int) -> None:
    assert same(number) == same(str(number)) == same(f"{number:,}") == same(f"{number:_}") == same(float(number))


@given(st.integers(0, 99), st.integers(0, 99))
def test_versions_are_compared_digit_by_digit(major: int, minor: int) -> None:
    assert same(f"{major}.{minor}0") != same(f"{major}.{minor}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Favourite_Editor", "favourite editor"),
        ("api-key", "API  key"),
        ("__init__", "init"),
        ("größe", "GRÖSSE"),
        ("Größe", unicodedata.normalize("NFD", "größe")),
        ("a-_- b", "a b"),
    ],
)
def test_a_name_is_one_however_it_is_joined(one: str, other: str) -> None:
    assert name_of(one) == name_of(other)


@pytest.mark.parametrize(
    ("one", "other"), [("ab", "a b"), ("-", "_"), ("ı", "i"), ("a.b", "a b"), ("c", "c++"), ("a/b", "a b"), ("é", "e")]
)
def test_names_that_differ_are_two(one: str, other: str) -> None:
    assert name_of(one) != name_of(other)


@given(words)
def test_a_name_is_compared_as_the_name_it_comes_to(text: str) -> None:
    assert name_of(name_of(text)) == name_of(text)
    assert bool(name_of(text)) == bool(name_of(text).strip())
