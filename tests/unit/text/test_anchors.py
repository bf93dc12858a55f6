from __future__ import annotations

import time

import pytest

from agora.text.anchors import READ, anchors, joined


def named(text: str) -> list[tuple[str, str]]:
    return [(anchor.kind, anchor.value) for anchor in anchors(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("see src/agora/db.py", "src/agora/db.py"),
        ("in ./src/agora/db.py.", "src/agora/db.py"),
        ("in `src//agora/./db.py`:", "src/agora/db.py"),
        ("at src/agora/db.py:42:7, says", "src/agora/db.py"),
        ("(src\\agora\\db.py)", "src/agora/db.py"),
        ("src/agora/", "src/agora"),
        ("/etc/hosts", "/etc/hosts"),
        ("~/.bashrc", "~/.bashrc"),
        ("../docs/a.md", "../docs/a.md"),
        ("pyproject.toml", "pyproject.toml"),
        ("the Dockerfile", "Dockerfile"),
        ("C:\\Users\\Ann\\App.py", "c:/users/ann/app.py"),
        ("C:\\\\Users\\\\Ann\\\\App.py", "c:/users/ann/app.py"),
        ("C:\\Program Files (x86)\\App\\Main.exe crashed", "c:/program files (x86)/app/main.exe"),
        ("D:/team/x.py", "d:/team/x.py"),
        ("\\\\server\\Share\\x.txt", "//server/share/x.txt"),
        ("数据/文件.py", "数据/文件.py"),
        ("путь/к/файлу.txt", "путь/к/файлу.txt"),
        ("src/cafe\u0301.py", "src/caf\u00e9.py"),
    ],
)
def test_a_path_is_known_in_one_spelling(text: str, value: str) -> None:
    assert named(text) == [("path", value)]


@pytest.mark.parametrize(
    "text",
    [
        "and/or",
        "TCP/IP",
        "read/write access",
        "24/7",
        "on 01/02/2026",
        "I/O w/o yes/no",
        "/",
        "...",
        "example.com/page.html",
        "node.js",
        "v1.2.3",
        "e.g. this",
    ],
)
def test_prose_with_slashes_and_dots_is_no_path(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("HTTPS://Example.COM/A/", "https://example.com/A"),
        ("(https://example.com/a#part).", "https://example.com/a"),
        ("https://example.com:8443/a?b=C", "https://example.com:8443/a?b=C"),
        ("https://example.com:443/", "https://example.com"),
        ("http://localhost:80/x", "http://localhost/x"),
        ("https://ann:secret@h.io/q", "https://h.io/q"),
        ("https://en.wikipedia.org/wiki/A_(b)", "https://en.wikipedia.org/wiki/A_(b)"),
        ("postgresql://db:5432/shop", "postgresql://db:5432/shop"),
    ],
)
def test_a_url_is_known_without_fragment_credentials_and_case_of_its_host(text: str, value: str) -> None:
    assert named(text) == [("url", value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("foo_bar", "foo_bar"),
        ("`FooBar`", "FooBar"),
        ("fooBar", "fooBar"),
        ("mod.func()", "mod.func"),
        ("connect() hangs", "connect"),
        ("Shop::Cart", "Shop::Cart"),
        ("DATABASE_URL", "DATABASE_URL"),
        ("db.pool_size", "db.pool_size"),
    ],
)
def test_a_symbol_is_known_by_the_form_of_code(text: str, value: str) -> None:
    assert named(text) == [("symbol", value)]


@pytest.mark.parametrize("text", ["GitHub", "JavaScript", "PostgreSQL", "file(s)", "Paris", "a@foo_bar.example", "USA"])
def test_products_and_plain_words_are_no_symbols(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("deadbee1", "deadbee1"),
        ("DEADBEE1", "deadbee1"),
        ("(1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d)", "1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d"),
    ],
)
def test_a_commit_has_a_letter_and_a_digit(text: str, value: str) -> None:
    assert named(text) == [("commit", value)]


@pytest.mark.parametrize(
    "text", ["1234567", "deadbeef", "abc123", "550e8400-e29b-41d4-a716-446655440000", "1000000e5", "a" * 64 + "1"]
)
def test_numbers_words_and_uuids_are_no_commits(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ERR_CONN_RESET", "ERR_CONN_RESET"),
        ("net::ERR_CONN_RESET", "ERR_CONN_RESET"),
        ("ECONNREFUSED", "ECONNREFUSED"),
        ("ORA-00942", "ORA-00942"),
        ("HTTP 500", "HTTP 500"),
        ("HTTP/1.1 500", "HTTP 500"),
        ("status code: 500", "HTTP 500"),
        ("500 Internal Server Error", "HTTP 500"),
        ("a ValueError here", "ValueError"),
        ("ValueError: Bad  Value.", "ValueError: bad value"),
        ("builtins.ValueError: bad value; then", "ValueError: bad value"),
        ("java.lang.NullPointerException", "NullPointerException"),
    ],
)
def test_an_error_is_known_by_its_name_and_the_head_of_its_message(text: str, value: str) -> None:
    assert named(text) == [("error", value)]


@pytest.mark.parametrize("text", ["Error: no", "500 users", "EXAMPLE", "a Timeout"])
def test_words_about_errors_are_no_errors(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("see #123", "#123"),
        ("fixes #7", "#7"),
        ("OPS-123", "OPS-123"),
        ("Owner/Repo#1", "owner/repo#1"),
        ("CVE-2024-12345", "CVE-2024-12345"),
    ],
)
def test_an_issue_is_known_by_its_id(text: str, value: str) -> None:
    assert named(text) == [("issue", value)]


@pytest.mark.parametrize("text", ["UTF-8", "SHA-256", "our #1 priority", "&#123;", "#ffffff", "#000000", "a-1"])
def test_standards_colours_and_ranks_are_no_issues(text: str) -> None:
    assert named(text) == []


def test_what_stands_inside_another_anchor_is_found_once() -> None:
    assert named("https://example.com/src/db.py#12") == [("url", "https://example.com/src/db.py")]
    assert named("src/foo_bar.py") == [("path", "src/foo_bar.py")]


def test_an_exception_in_the_message_of_another_is_found_too() -> None:
    assert ("error", "KeyError: 'a'") in named("ValueError: bad; KeyError: 'a'")


def test_places_are_those_of_the_text() -> None:
    text = "In src/db.py and #12"
    assert [text[each.start : each.stop] for each in anchors(text)] == ["src/db.py", "#12"]


def test_a_short_commit_is_the_long_one_unless_it_may_be_either() -> None:
    one, other = "1a2b3c4d5e", "1a2b3c4ff0"
    found = joined([("commit", one), ("commit", "1a2b3c4d")])
    assert found["commit", "1a2b3c4d"] == ("commit", one)
    found = joined([("commit", one), ("commit", other), ("commit", "1a2b3c4")])
    assert found["commit", "1a2b3c4"] == ("commit", "1a2b3c4")


def test_a_cut_message_is_the_whole_one_and_a_bare_exception_is_not() -> None:
    whole = "ConnectionError: pool exhausted when saving"
    found = joined([("error", whole), ("error", "ConnectionError: pool exhausted"), ("error", "ConnectionError")])
    assert found["error", "ConnectionError: pool exhausted"] == ("error", whole)
    assert found["error", "ConnectionError"] == ("error", "ConnectionError")


def test_a_path_is_never_joined_by_its_beginning() -> None:
    found = joined([("path", "src/db"), ("path", "src/db/x.py")])
    assert found["path", "src/db"] == ("path", "src/db")


@pytest.mark.parametrize(
    "piece", ["a_", "a.a", "A_A", "a-a", "a/", "(", "\\", "C:\\a A", "#1", "x:/", "E", "./", '"', "aA", "http://("]
)
def test_hostile_texts_take_no_longer_than_others(piece: str) -> None:
    text = piece * (READ // len(piece))
    start = time.process_time()
    anchors(text)
    # Quadratic rules take minutes for it.
    assert time.process_time() - start < 2
