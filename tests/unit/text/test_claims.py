from __future__ import annotations

import time

import pytest

from agora.text.anchors import READ
from agora.text.claims import claims, compare


def said(text: str) -> list[tuple[str | None, str, str]]:
    return [(c.anchor.value if c.anchor else None, " ".join(c.attribute), c.value.text) for c in claims(text)]


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("src/db.py listens on port 5432.", ("src/db.py", "port", "5432")),
        ("In src/db.py, the port is 5432", ("src/db.py", "port", "5432")),
        ("The read timeout in src/db.py is 30 s.", ("src/db.py", "read timeout", "30 s")),
        ("max_connections = 100", ("max_connections", "value", "100")),
        ("retry_limit is set to 5", ("retry_limit", "value", "5")),
        ("DB_PORT: 5432", ("DB_PORT", "value", "5432")),
        ("src/db.py driver = postgres", ("src/db.py", "driver", "postgres")),
        ("src/db.py caching is enabled", ("src/db.py", "caching", "enabled")),
        ("In staging src/db.py uses port 5433", ("src/db.py", "port staging", "5433")),
        ("La porta di src/db.py è 5432", ("src/db.py", "porta", "5432")),
        ("the port is 5432", (None, "port", "5432")),
        ("version is 3.11 in pyproject.toml", ("pyproject.toml", "version", "3.11")),
    ],
)
def test_a_plain_statement_is_a_claim(text: str, claim: tuple[str | None, str, str]) -> None:
    assert said(text) == [claim]


@pytest.mark.parametrize(
    "text",
    [
        "src/db.py uses Redis",
        "src/db.py is slow",
        "fixed 3 bugs in src/db.py",
        "src/db.py: 30 tests",
        "the port of src/db.py is not 5432",
        "the port of src/db.py isn't 5432",
        "is the port of src/db.py = 5432?",
        "if src/db.py is used, the port is 5432",
        "src/db.py: timeout went from 30 s to 60 s",
        "the timeout in src/db.py is about 30 s",
        "the timeout in src/db.py was 30 s",
        "the timeout in src/db.py should be 30 s",
        "the ports in src/db.py are 5432 and 5433, or 80",
        "the port in src/db.py is 5432/tcp 17",
        "x_y == 5, x_z != 6, x_w <= 7",
    ],
)
def test_what_is_in_doubt_or_of_another_time_is_no_claim(text: str) -> None:
    assert said(text) == []


def test_each_clause_speaks_of_the_last_thing_that_was_named() -> None:
    assert said("src/a.py listens on port 1 and src/b.py on port 2, timeout is 3 s. Port 4") == [
        ("src/a.py", "port", "1"),
        ("src/b.py", "port", "2"),
        ("src/b.py", "timeout", "3 s"),
        (None, "port", "4"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "outcome"),
    [
        ("timeout is 30 s", "timeout is 0.5 min", "equal"),
        ("timeout is 30 s", "timeout is 30000 ms", "equal"),
        ("timeout is 30 s", "timeout is 31 seconds", "differ"),
        ("timeout is 30", "timeout is 60 s", "unclear"),
        ("version is 3.11", "version is 3.11.4", "unclear"),
        ("version is 3.1", "version is 3.10", "differ"),
        ("version is v2", "version is 2", "equal"),
        ("size is 1.0", "size is 1", "equal"),
        ("size is 1 GB", "size is 1000 MB", "equal"),
        ("size is 1 GB", "size is 1 GiB", "unclear"),
        ("cache is enabled", "cache is true", "equal"),
        ("cache is enabled", "cache is off", "differ"),
        ("port 1", "port 2", "differ"),
    ],
)
def test_values_are_compared_by_what_they_mean(one: str, other: str, outcome: str) -> None:
    (left,), (right,) = claims(one), claims(other)
    assert compare(left.value, right.value) == compare(right.value, left.value) == outcome


@pytest.mark.parametrize("piece", ["a is 5, ", "port ", "set ", "is 5 ", ". ", "src/a.py is 5 ", "= ", "\ue000"])
def test_hostile_texts_take_no_longer_than_others(piece: str) -> None:
    text = piece * (READ // len(piece)) + "5"
    start = time.process_time()
    claims(text)
    assert time.process_time() - start < 2
