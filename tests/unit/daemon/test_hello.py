from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agora.daemon.hello import PROTOCOL, older, read
from agora.errors import ConfigError

SAID = {"agora": PROTOCOL, "version": "1.2.3", "pid": 7, "cwd": "/work", "home": "/data"}


def test_what_a_session_says_is_read() -> None:
    found = read(json.dumps(SAID | {"options": {"agent": "a"}, "env": {"AGORA_AGENT": "b"}}).encode())
    assert (found.version, found.pid, found.cwd, found.home) == ("1.2.3", 7, "/work", "/data")
    assert (dict(found.options), dict(found.env), found.command) == ({"agent": "a"}, {"AGORA_AGENT": "b"}, None)


@pytest.mark.parametrize(("said", "found"), [({}, False), ({"open": True}, True), ({"open": "yes"}, False)])
def test_a_session_that_another_server_has_served_says_so(said: dict[str, object], found: bool) -> None:
    assert read(json.dumps(SAID | said).encode()).open is found


@pytest.mark.parametrize("missing", ["version", "pid", "cwd", "home"])
def test_a_first_line_that_lacks_something_is_refused(missing: str) -> None:
    with pytest.raises(ConfigError):
        read(json.dumps({name: value for name, value in SAID.items() if name != missing}).encode())


@pytest.mark.parametrize("wrong", [{"pid": "x"}, {"cwd": 3}, {"options": []}, {"env": {"A": 1}}, {"command": 4}])
def test_a_first_line_of_the_wrong_kinds_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        read(json.dumps(SAID | wrong).encode())


def test_another_version_of_the_first_line_is_told_with_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        read(json.dumps(SAID | {"agora": PROTOCOL + 1}).encode())
    assert "agora server restart" in (caught.value.hint or "")


@given(st.binary(max_size=200))
def test_whatever_else_connects_is_refused_and_breaks_nothing(line: bytes) -> None:
    with pytest.raises(ConfigError):
        read(line)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("0.1.0", "0.1.1", True),
        ("0.9.0", "0.10.0", True),
        ("1.0.0", "0.9.9", False),
        ("1.0", "1.0", False),
        ("1.0.0rc1", "1.0.0", True),
        ("1.0.0", "1.0.0rc1", False),
    ],
)
def test_releases_are_compared_by_their_numbers(one: str, other: str, found: bool) -> None:
    assert older(one, other) is found
