from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from agora.config.backend_expanding import expanded
from agora.config.backend_reading import COMMON_KEYS, HTTP_KEYS, STDIO_KEYS, reread
from agora.config.backends import BackendTable, identity
from agora.config.load import load_settings
from agora.errors import ConfigError, UnknownKey


def tables(home: Path, text: str) -> tuple[BackendTable, ...]:
    (home / "agora.toml").write_text(text, encoding="utf-8")
    return load_settings({}, {"AGORA_HOME": str(home)}).settings.backends


def refused(home: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        tables(home, text)
    return caught.value


EVERYTHING = """\
[log]
level = "debug"

[[backends]]
name = "github"
transport = "http"
description = "Issues and code"
url = "https://api.example.com/mcp/?toolsets=all"
bearer_token = "${GITHUB_TOKEN}"
read_only = true
trusted = true
allow = ["list_*", "create_issue"]
deny = "delete_*"
timeout = 5
start_timeout = 2.5
max_retries = 0
retry_delay = 0
rate = 10
concurrency = 2
cache_seconds = 60
save_results = true
[backends.headers]
X-Team = "core"

[[backends]]
name = "files"
command = "npx"
args = ["-y", "server", "${HOME}/x"]
cwd = "work"
env = { A = "1", "b.c" = "${B:-two}" }
"""


def test_every_key_is_read_and_variables_stay_as_they_are_written(tmp_path: Path) -> None:
    first, second = tables(tmp_path, EVERYTHING)
    assert first == BackendTable(
        name="github",
        transport="http",
        description="Issues and code",
        url="https://api.example.com/mcp/?toolsets=all",
        bearer_token="${GITHUB_TOKEN}",  # noqa: S106 - a variable's name
        headers=(("X-Team", "core"),),
        read_only=True,
        trusted=True,
        allow=("list_*", "create_issue"),
        deny=("delete_*",),
        timeout=5.0,
        start_timeout=2.5,
        max_retries=0,
        retry_delay=0.0,
        rate=10.0,
        concurrency=2,
        cache_seconds=60.0,
        save_results=True,
    )
    assert second == BackendTable(
        name="files",
        transport="stdio",
        command="npx",
        args=("-y", "server", "${HOME}/x"),
        cwd=str(tmp_path / "work"),
        env=(("A", "1"), ("b.c", "${B:-two}")),
    )
    assert (first.place, second.place) == ("agora.toml:4", "agora.toml:25")
    assert (first.label, second.label) == ('backends[1] "github"', 'backends[2] "files"')


def test_the_keys_are_those_of_the_class() -> None:
    fields = {each.name for each in dataclasses.fields(BackendTable)} - {"place", "number"}
    assert sorted((*COMMON_KEYS, *STDIO_KEYS, *HTTP_KEYS)) == sorted(fields)


def test_without_tables_there_are_none_and_moved_tables_are_the_same(tmp_path: Path) -> None:
    assert tables(tmp_path, "agent = 'x'\n") == ()
    assert tables(tmp_path, "backends = []\n") == ()
    assert tables(tmp_path, EVERYTHING) == tables(tmp_path, f"# moved\n\n{EVERYTHING}")


def test_defaults_are_those_of_the_class(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, "[[backends]]\nname = 'a'\ncommand = 'x'\n")
    assert table == BackendTable("a", "stdio", command="x")


STDIO = {"name": '"a"', "command": '"npx"'}
HTTP = {"name": '"a"', "url": '"https://example.com/mcp"'}


def written(base: dict[str, str], **lines: str) -> str:
    return "agent = 'x'\n[[backends]]\n" + "".join(
        f"{key} = {value}\n" for key, value in (base | lines).items() if value
    )


@pytest.mark.parametrize(
    ("base", "changed", "line", "words", "hint"),
    [
        (STDIO, {"comand": '"x"'}, 5, "unknown key 'comand'", "Did you mean command?"),
        (STDIO, {"colour": "1"}, 5, "unknown key 'colour'", "A table holds name, transport"),
        (STDIO, {"disabled": "true"}, 5, "unknown key 'disabled'", "taken out"),
        (HTTP, {"type": '"http"'}, 5, "unknown key 'type'", "Did you mean transport?"),
        (HTTP, {"serverUrl": '"x"'}, 5, "unknown key 'serverUrl'", "Did you mean url?"),
        (STDIO, {"name": ""}, 2, "says nothing of `name`", ""),
        (STDIO, {"name": "3"}, 3, "name cannot be 3", ""),
        (STDIO, {"name": '""'}, 3, "1 to 64 letters", ""),
        (STDIO, {"name": '"-a"'}, 3, "begin with a letter", ""),
        (STDIO, {"name": '"a b"'}, 3, "name cannot be 'a b'", ""),
        (STDIO, {"name": '"ä"'}, 3, "letters of English", ""),
        (STDIO, {"name": '"a\\n"'}, 3, "letters of English", ""),
        (STDIO, {"name": f'"{"a" * 65}"'}, 3, "1 to 64", ""),
        (STDIO, {"name": '"a__b"'}, 3, "may not hold `__`", ""),
        (STDIO, {"name": '"Agora"'}, 3, "is Agora's own name", ""),
        (STDIO, {"command": ""}, 2, "needs `command` or `url`", ""),
        (STDIO, {"command": '" "'}, 4, "command is empty", ""),
        (STDIO, {"command": '"npx -y x"'}, 4, "goes into args", ""),
        (STDIO, {"command": '"a\\u0000"'}, 4, "command holds a zero byte", ""),
        (STDIO, {"command": "['npx']"}, 4, "command has to be a text", ""),
        (STDIO, {"url": '"https://x"'}, 2, "says both `command` and `url`", ""),
        (STDIO, {"transport": '"stdio"', "url": '"https://x"'}, 6, "url belongs to the transport http", ""),
        (STDIO, {"transport": '"http"'}, 5, "the transport http needs `url`", ""),
        (HTTP, {"transport": '"sse"'}, 5, "the transport sse is not supported", "Streamable HTTP"),
        (HTTP, {"transport": '"ws"'}, 5, "transport cannot be 'ws'", "stdio or http"),
        (HTTP, {"transport": "1"}, 5, "transport cannot be 1", "stdio or http"),
        (HTTP, {"args": "[]"}, 5, "args belongs to the transport stdio", ""),
        (HTTP, {"env": "{}"}, 5, "env belongs to the transport stdio", ""),
        (STDIO, {"headers": "{}"}, 5, "headers belongs to the transport http", ""),
        (STDIO, {"args": '"-y x"'}, 5, "list of texts", ""),
        (STDIO, {"args": '["-y", 3]'}, 5, "list of texts", ""),
        (STDIO, {"env": '"A=1"'}, 5, "env has to be a table", ""),
        (STDIO, {"env": "{ PORT = 80 }"}, 5, "env.PORT has to be a text in quotes", ""),
        (STDIO, {"env": '{ "A=B" = "x" }'}, 5, "is no name of a variable", ""),
        (HTTP, {"url": '"ftp://example.com"'}, 4, "url has to begin with http:// or https://", ""),
        (
            HTTP,
            {"url": '"https://user:pass@example.com/"'},
            4,
            "may not hold a user or a password",
            "",
        ),
        (HTTP, {"url": '"https:///mcp"'}, 4, "names no host", ""),
        (HTTP, {"url": '"https://example.com:99999/"'}, 4, "is no address", ""),
        (HTTP, {"url": '"https://[::1/"'}, 4, "is no address", ""),
        (HTTP, {"url": '"https://exa mple.com/"'}, 4, "to hold no blanks", ""),
        (HTTP, {"url": '"http://example.com/"', "bearer_token": '"${T}"'}, 4, "secret unencrypted", ""),
        (HTTP, {"url": '"http://example.com/"', "headers": '{ X-Api-Key = "${T}" }'}, 4, "secret unencrypted", ""),
        (HTTP, {"headers": '{ "A B" = "x" }'}, 5, "is no name of a header", ""),
        (HTTP, {"headers": '{ Host = "x" }'}, 5, "is set by Agora itself", ""),
        (HTTP, {"headers": '{ Mcp-Session-Id = "x" }'}, 5, "is set by Agora itself", ""),
        (HTTP, {"headers": '{ Mcp-Param-Id = "x" }'}, 5, "is set by Agora itself", ""),
        (HTTP, {"headers": '{ X-A = " x" }'}, 5, "headers.X-A has blanks around it", ""),
        (HTTP, {"headers": '{ X-A = "é" }'}, 5, "not ASCII", ""),
        (HTTP, {"headers": '{ X-A = "x\\r\\nX-B: y" }'}, 5, "headers.X-A has blanks around it, a line end", ""),
        (HTTP, {"headers": '{ X-A = "1", x-a = "2" }'}, 5, "has a name twice", ""),
        (HTTP, {"headers": '{ authorization = "x" }', "bearer_token": '"y"'}, 6, "both bearer_token and", "Keep one"),
        (HTTP, {"bearer_token": '"Bearer abc"'}, 5, "begins with `Bearer`", ""),
        (HTTP, {"bearer_token": '""'}, 5, "bearer_token is empty", ""),
        (STDIO, {"read_only": '"yes"'}, 5, "read_only cannot be 'yes'", ""),
        (STDIO, {"allow": "3"}, 5, "allow cannot be 3", ""),
        (STDIO, {"allow": '""'}, 5, "allow cannot hold ''", ""),
        (STDIO, {"deny": '"a*, b*"'}, 5, "is more than one", ""),
        (STDIO, {"deny": '["get_?"]'}, 5, "only knows `*`", ""),
        (STDIO, {"timeout": "0"}, 5, "timeout cannot be 0: it is a number above 0, at most 3,600", ""),
        (STDIO, {"timeout": "nan"}, 5, "timeout cannot be nan", ""),
        (STDIO, {"timeout": "inf"}, 5, "timeout cannot be inf", ""),
        (STDIO, {"timeout": "true"}, 5, "timeout cannot be True", ""),
        (STDIO, {"timeout": '"5"'}, 5, "timeout cannot be '5'", ""),
        (STDIO, {"max_retries": "1.5"}, 5, "it is a whole number from 0 to 10", ""),
        (STDIO, {"max_retries": "-1"}, 5, "max_retries cannot be -1", ""),
        (STDIO, {"concurrency": "0"}, 5, "from 1 to 1,000", ""),
        (STDIO, {"rate": "1" * 400}, 5, "rate cannot be 111", ""),
        (STDIO, {"cache_seconds": "-0.1"}, 5, "from 0 to 31,536,000", ""),
        (STDIO, {"description": f'"{"x" * 2001}"'}, 5, "longer than 2,000", ""),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, base: dict[str, str], changed: dict[str, str], line: int, words: str, hint: str
) -> None:
    error = refused(tmp_path, written(base, **changed))
    assert error.message.startswith(f"{tmp_path / 'agora.toml'}:{line}: backends[1]"), error.message
    assert words in error.message
    assert hint in error.hint
    assert isinstance(error, UnknownKey) is ("unknown key" in words)


@pytest.mark.parametrize(
    "lines",
    [
        {"url": '"https://someone:hunter2secret@example.com/"'},
        {"bearer_token": '"hunter2secret\\n"'},
        {"headers": '{ X-Api-Key = "hunter2secret\\n" }'},
        {"headers": '"hunter2secret"'},
        {"bearer_token": '["hunter2secret"]'},
        {"url": '"http://example.com/hunter2secret"', "bearer_token": '"hunter2secret"'},
    ],
)
def test_no_error_shows_what_may_be_a_secret(tmp_path: Path, lines: dict[str, str]) -> None:
    error = refused(tmp_path, written(HTTP, **lines))
    assert "hunter2" not in error.message + error.hint


def test_a_tables_text_form_shows_no_secret(tmp_path: Path) -> None:
    text = written(STDIO, args='["--key", "hunter2secret"]', env='{ A = "hunter2secret" }')
    (table,) = tables(tmp_path, text)
    (other,) = tables(tmp_path, written(HTTP, url='"https://example.com/hunter2secret"'))
    assert "hunter2" not in repr(table) + repr(other)


def test_names_are_the_same_in_any_case(tmp_path: Path) -> None:
    error = refused(tmp_path, "[[backends]]\nname='GitHub'\ncommand='x'\n[[backends]]\nname='github'\ncommand='y'\n")
    assert error.message == (
        f'{tmp_path / "agora.toml"}:5: backends[2] "github": the name is taken by backends[1] "GitHub" (agora.toml:1)'
    )


@pytest.mark.parametrize("url", ["http://localhost:8080/mcp", "http://127.0.0.2/", "http://[::1]:9/x"])
def test_a_token_may_go_to_this_machine_without_encryption(tmp_path: Path, url: str) -> None:
    (table,) = tables(tmp_path, written(HTTP, url=f'"{url}"', bearer_token='"${T}"'))  # noqa: S106 - a variable's name
    assert table.url == url


def test_plain_http_without_a_secret_is_allowed(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, written(HTTP, url='"http://docs.example.com/mcp"', headers='{ X-Team = "a" }'))
    assert table.headers == (("X-Team", "a"),)


@pytest.mark.parametrize("text", ["[backends]\na = 1\n", "[backends.github]\ncommand = 'x'\n", "backends = [1]\n"])
def test_what_is_no_list_of_tables_is_told_how_it_is_written(tmp_path: Path, text: str) -> None:
    error = refused(tmp_path, text)
    assert error.message.startswith(f"{tmp_path / 'agora.toml'}:1: backends is a list of tables")
    assert "[[backends]]" in error.hint


def test_tables_may_be_written_inline(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, 'backends = [{ name = "a", command = "x", env = { A = "1" } }]\n')
    assert table.env == (("A", "1"),)
    assert table.place == "agora.toml:1"


def test_a_word_that_is_nearly_the_tables_name_is_told(tmp_path: Path) -> None:
    error = refused(tmp_path, "[[backend]]\nname = 'a'\n")
    assert error.hint == "Did you mean backends?"


def test_no_variable_of_the_environment_makes_a_table(tmp_path: Path) -> None:
    with pytest.raises(UnknownKey, match="AGORA_BACKENDS"):
        load_settings({}, {"AGORA_HOME": str(tmp_path), "AGORA_BACKENDS": "x"})


def test_paths_start_at_the_folder_of_the_file_and_names_are_left_to_the_path(tmp_path: Path) -> None:
    text = "".join(
        f"[[backends]]\nname = 'a{number}'\ncommand = '{command}'\ncwd = '{cwd}'\n"
        for number, (command, cwd) in enumerate(
            [("npx", "~/work"), ("./run.sh", "../x"), ("~/bin/x", "/srv"), ("${BIN}/x", "${DIR}/y")]
        )
    )
    found = tables(tmp_path, text)
    home = str(Path("~").expanduser())
    assert found[0].command == "npx"
    assert found[0].cwd == os.path.join(home, "work")  # noqa: PTH118 - what is read is a text
    assert found[1].command == str(tmp_path / "run.sh")
    assert found[1].cwd == str(tmp_path.parent / "x")
    assert found[2].command == os.path.join(home, "bin", "x")  # noqa: PTH118 - as above
    assert (found[3].command, found[3].cwd) == ("${BIN}/x", "${DIR}/y")


def one(home: Path, base: dict[str, str], **lines: str) -> BackendTable:
    return tables(home, written(base, **lines))[0]


def test_variables_are_put_in_wherever_a_text_may_hold_them(tmp_path: Path) -> None:
    given = one(
        tmp_path,
        STDIO,
        command='"${BIN}"',
        args='["--x=${A}", "$${A}", "$A", "${NOT:-none}", "${EMPTY:-e}", "${A:-b}"]',
        cwd='"${DIR}"',
        env='{ T = "${TOKEN}" }',
    )
    whole = str(tmp_path)
    env = {"BIN": "npx", "A": "${B}", "DIR": whole, "TOKEN": "t", "EMPTY": ""}
    found = expanded(given, env)
    assert found.command == "npx"
    assert found.args == ("--x=${B}", "${A}", "$A", "none", "e", "${B}")
    assert (found.cwd, found.env) == (whole, (("T", "t"),))
    web = one(tmp_path, HTTP, url='"https://${H}/mcp"', headers='{ X = "${A}" }', bearer_token='"${T:-anon}"')  # noqa: S106 - as above
    found = expanded(web, {"H": "example.com", "A": "1"})
    assert (found.url, found.headers, found.bearer_token) == ("https://example.com/mcp", (("X", "1"),), "anon")


@pytest.mark.parametrize(
    ("base", "lines", "env", "words"),
    [
        (STDIO, {"env": '{ GITHUB_TOKEN = "${GH}" }'}, {}, "env.GITHUB_TOKEN needs the environment variable 'GH'"),
        (STDIO, {"args": '["a", "${B}"]'}, {}, "args[1] needs the environment variable 'B'"),
        (STDIO, {"args": '["${}"]'}, {}, "args[0] needs the environment variable ''"),
        (STDIO, {"command": '"${C}"'}, {"C": ""}, "command, with its variables put in, is empty"),
        (STDIO, {"command": '"${C}"'}, {"C": "npx x"}, "goes into args"),
        (STDIO, {"cwd": '"${D}"'}, {"D": "relative"}, "cwd, with its variables put in, has to be a whole path"),
        (STDIO, {"env": '{ A = "${A}" }'}, {"A": "hunter2\0"}, "env.A, with its variables put in, holds a zero byte"),
        (HTTP, {"bearer_token": '"${T}"'}, {}, "bearer_token needs the environment variable 'T'"),
        (HTTP, {"bearer_token": '"${T}"'}, {"T": ""}, "bearer_token, with its variables put in, is empty"),
        (HTTP, {"bearer_token": '"${T}"'}, {"T": "hunter2\n"}, "has blanks around it, a line end"),
        (
            HTTP,
            {"headers": '{ X-A = "${T}" }'},
            {"T": "hunter2\r\nX: y"},
            "headers.X-A, with its variables put in, has blanks",
        ),
        (HTTP, {"url": '"${U}"'}, {"U": "ftp://hunter2"}, "url, with its variables put in, has to begin with http"),
        (HTTP, {"url": '"${U}"', "bearer_token": '"x"'}, {"U": "http://example.com"}, "secret unencrypted"),
        (HTTP, {"url": '"https://${H}/"'}, {"H": "hunter2:x@example.com"}, "may not hold a user"),
    ],
)
def test_what_a_variable_brings_is_checked_for_its_backend_alone(
    tmp_path: Path, base: dict[str, str], lines: dict[str, str], env: dict[str, str], words: str
) -> None:
    given = one(tmp_path, base, **lines)
    with pytest.raises(ConfigError) as caught:
        expanded(given, env)
    assert caught.value.message.startswith('agora.toml:2: backends[1] "a": '), caught.value.message
    assert words in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_an_identity_is_what_is_run_and_not_with_which_secrets(tmp_path: Path) -> None:
    base = one(tmp_path, STDIO, args='["x"]', env='{ A = "1" }')
    same = dataclasses.replace(base, name="b", env=(("A", "2"),), timeout=1.0, trusted=True, place="", description="d")
    assert identity(base) == identity(same)
    others = [
        dataclasses.replace(base, **change)
        for change in ({"command": "uvx"}, {"args": ("y",)}, {"args": ("x", "")}, {"cwd": "/"}, {"cwd": ""})
    ]
    web = one(tmp_path, HTTP)
    ids = [identity(each) for each in (base, *others, web, dataclasses.replace(web, url="https://example.com/other"))]
    assert len(set(ids)) == len(ids)
    assert identity(dataclasses.replace(web, bearer_token="x")) == identity(web)  # noqa: S106 - made up


def test_the_backends_are_read_anew_whatever_else_the_file_holds(tmp_path: Path) -> None:
    file = tmp_path / "agora.toml"
    file.write_bytes(b"\xef\xbb\xbf" + EVERYTHING.replace("\n", "\r\n").encode() + b"[nonsense]\r\nx = 1\r\n")
    assert [each.name for each in reread(file)] == ["github", "files"]
    assert reread(file)[1].place == "agora.toml:25"
    file.write_text("agent = 'x'\n", "utf-8")
    assert reread(file) == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[[backends]\n", "is no valid TOML"),
        (b"[[backends]]\nnam = 'x'\ncommand = 'y'\n", "unknown key 'nam'"),
        (b"\xff\xfe", "is not UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_anew_is_an_error(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "agora.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=words):
        reread(file)


def test_a_file_of_thousands_of_tables_is_read(tmp_path: Path) -> None:
    text = "".join(f"[[backends]]\nname = 'b{n}'\ncommand = 'x'\nargs = ['{'y' * 100}']\n" for n in range(3000))
    found = tables(tmp_path, text)
    assert len(found) == 3000
    assert found[-1].place == f"agora.toml:{4 * 2999 + 1}"
