from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agora.errors import ConfigError
from agora.transport.auth import Token, Tokens, load_tokens

ONE, TWO = "a" * 43, "b" * 43


def write(home: Path, text: str, mode: int = 0o600) -> None:
    (home / "token").write_text(text, encoding="utf-8")
    (home / "token").chmod(mode)


@pytest.fixture
def _lax_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_lax_umask")
def test_a_folder_without_a_token_gets_one_that_stays(tmp_path: Path) -> None:
    home = tmp_path / "not" / "there" / "yet"
    secret = load_tokens(home).named(None).secret
    assert len(secret) == 43
    assert load_tokens(home).named(None).secret == secret
    assert [path.name for path in home.iterdir()] == ["token"]
    if os.name == "posix":
        assert (home / "token").stat().st_mode & 0o777 == 0o600
        assert home.stat().st_mode & 0o077 == 0


def test_many_first_starts_at_once_agree_on_one_token(tmp_path: Path) -> None:
    together = threading.Barrier(16)

    def first_start(_: int) -> str:
        together.wait(30)
        return load_tokens(tmp_path).named(None).secret

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(first_start, range(16)))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_token_shows_its_secret_in_no_message() -> None:
    assert ONE not in repr(Token("default", ONE))
    assert ONE not in str([Token("default", ONE)])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    write(tmp_path, ONE, mode)
    with pytest.raises(ConfigError) as caught:
        load_tokens(tmp_path)
    assert "chmod 600" in caught.value.hint


def test_a_file_may_hold_more_tokens_with_what_holds_for_them(tmp_path: Path) -> None:
    write(tmp_path, f"\n# mine\n  {ONE}\n\n{TWO} name=ci namespace=Acme/Web_Shop origin=tool\n{'c' * 32}\n")
    tokens = load_tokens(tmp_path)
    assert tokens.named(None) == tokens.named("default") == Token("default", ONE)
    assert tokens.named("ci") == Token("ci", TWO, "acme/web-shop", "tool")
    assert tokens.named("token6").secret == "c" * 32
    with pytest.raises(ConfigError) as caught:
        tokens.named("other")
    assert "default, ci" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no token in it"),
        ("# nothing\n", "no token in it"),
        ("short", "32 characters"),
        (ONE + "é", "32 characters"),
        (f"{ONE} ci", "not understood"),
        (f"{ONE} nme=ci", "not understood"),
        (f"{ONE} name=a name=b", "not understood"),
        (f"{ONE} name=a/b", "a name has"),
        (f"{ONE} origin=god", "an origin is one of"),
        (f"{ONE} namespace=a\\b", "namespace:"),
        (f"{ONE}\n{ONE} name=b", "twice"),
        (f"{ONE}\n{TWO} name=default", "taken"),
    ],
)
def test_a_malformed_file_is_refused_with_the_line_and_without_a_secret(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_tokens(tmp_path)
    assert words in caught.value.message
    assert str(tmp_path / "token") in caught.value.message
    assert ONE not in caught.value.message + caught.value.hint


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").mkdir()
    with pytest.raises(ConfigError, match="cannot be used"):
        load_tokens(tmp_path)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([b"Bearer " + ONE.encode()], "one"),
        ([b"bearer   " + TWO.encode() + b" "], "two"),
        ([], None),
        ([b""], None),
        ([b"Bearer"], None),
        ([b"Bearer "], None),
        ([ONE.encode()], None),
        ([b"Basic " + ONE.encode()], None),
        ([b"Bearer " + ONE.encode() + b"a"], None),
        ([b"Bearer " + ONE[:-1].encode()], None),
        ([b"Bearer \xff\x00"], None),
        ([b"Bearer " + ONE.encode(), b"Bearer " + ONE.encode()], None),
    ],
)
def test_a_header_shows_one_token_or_none(values: list[bytes], name: str | None) -> None:
    found = Tokens([Token("one", ONE), Token("two", TWO)]).shown(values)
    assert (found.name if found else None) == name
