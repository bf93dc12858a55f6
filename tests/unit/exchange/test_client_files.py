"""MCP servers out of the files of every client, as tables that Agora reads."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agora.config.backend_expanding import expanded
from agora.config.backend_reading import read_tables
from agora.config.backends import BackendTable
from agora.config.variables import expand, literal
from agora.errors import ConfigError, InvalidInput, NotFound
from agora.exchange.servers.importing import Plan, Row, plan
from agora.exchange.servers.reading import read_client_file
from agora.exchange.servers.writing import put, rendered


def file_of(folder: Path, name: str, content: str | bytes | Mapping[str, Any]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(content) if isinstance(content, Mapping) else content
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


def planned(path: Path, *there: BackendTable, only: tuple[str, ...] = (), with_secrets: bool = False) -> Plan:
    return plan(read_client_file(path), path.parent / "agora.toml", there, only=only, with_secrets=with_secrets)


def read(done: Plan, target: Path) -> dict[str, BackendTable]:
    tables = read_tables(target, done.text, tomllib.loads(done.text).get("backends", []))
    return {table.name: table for table in tables}


def imported(path: Path, *, with_secrets: bool = False) -> dict[str, BackendTable]:
    return read(planned(path, with_secrets=with_secrets), path.parent / "agora.toml")


def row_of(done: Plan, name: str) -> Row:
    return next(row for row in done.rows if row.name == name)


def one(folder: Path, server: Mapping[str, Any], file: str = ".mcp.json") -> Row:
    (row,) = planned(file_of(folder, file, {"mcpServers": {"it": server}})).rows
    return row


GITHUB_TOKEN = "ghp_" + "a8Xk2" * 7 + "Q"


def test_claude_code_user_and_project_servers(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        ".claude.json",
        {
            "numStartups": 12,
            "mcpServers": {
                "github": {
                    "type": "http",
                    "url": "https://api.example.com/mcp/",
                    "headers": {"Authorization": f"Bearer {GITHUB_TOKEN} ", "X-Team": " core"},
                },
                "files": {"type": "stdio", "command": "npx", "args": ["-y", "server-files", "${HOME}"], "env": {}},
            },
            "projects": {
                str(tmp_path / "web"): {
                    "history": [],
                    "mcpServers": {
                        "db": {"command": "./run.sh", "args": ["../x"], "env": {"URL": "${DB:-local}", "PORT": 5432}}
                    },
                }
            },
        },
    )
    done = planned(path)
    found = read(done, tmp_path / "agora.toml")
    assert read_client_file(path).kind == "Claude Code"
    assert found["github"] == BackendTable(
        "github",
        "http",
        url="https://api.example.com/mcp/",
        headers=(("X-Team", "core"),),
        bearer_token="${GITHUB_TOKEN}",  # noqa: S106 - a variable's name
    )
    assert found["files"] == BackendTable("files", "stdio", command="npx", args=("-y", "server-files", "${HOME}"))
    assert found["db"] == BackendTable(
        "db",
        "stdio",
        command=str(tmp_path / "web" / "run.sh"),
        args=("../x",),
        cwd=str(tmp_path / "web"),
        env=(("URL", "${DB:-local}"), ("PORT", "5432")),
    )
    assert done.wanted == [("GITHUB_TOKEN", "github", "headers.Authorization")]
    assert row_of(done, "db").project == str(tmp_path / "web")
    assert GITHUB_TOKEN not in done.text


def test_claude_desktop_knows_no_variables(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, "claude_desktop_config.json", {"mcpServers": {"a": {"command": "x", "args": ["${A}", "$${B}", "${"]}}}
    )
    table = imported(path)["a"]
    assert table.args == ("$${A}", "$$${B}", "${")
    assert expanded(table, {"A": "no", "B": "no"}).args == ("${A}", "$${B}", "${")


def test_cursor(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        "work/.cursor/mcp.json",
        {
            "mcpServers": {
                "web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:WEB_TOKEN}"}},
                "it": {"command": "node", "args": ["${workspaceFolder}/a.js", "${userHome}"], "envFile": ".env"},
            }
        },
    )
    done = planned(path)
    found = read(done, tmp_path / "agora.toml")
    assert found["web"].bearer_token == "${WEB_TOKEN}"  # noqa: S105 - a variable's name
    assert found["it"].args == (f"{tmp_path / 'work'}/a.js", str(Path.home()))
    assert "does not say" in row_of(done, "web").remarks[0]
    assert "without envFile" in row_of(done, "it").remarks[0]


def test_windsurf(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        ".codeium/windsurf/mcp_config.json",
        {
            "mcpServers": {
                "a": {"serverUrl": "https://example.com/mcp", "headers": {"API_KEY": "${env:A_KEY}"}},
                "b": {"command": "npx", "args": ["b"], "disabled": True},
                "c": {"command": "npx", "args": ["c"], "disabledTools": ["drop"], "alwaysAllow": ["x"]},
            }
        },
    )
    done = planned(path)
    found = read(done, tmp_path / "agora.toml")
    assert read_client_file(path).kind == "Windsurf"
    assert (found["a"].url, found["a"].headers) == ("https://example.com/mcp", (("API_KEY", "${A_KEY}"),))
    assert found["c"].deny == ("drop",)
    assert (row_of(done, "b").fate, row_of(done, "b").reason) == ("skipped", "is switched off there")


VS_CODE = """\
\ufeff// what the team uses
{
  "inputs": [ /* asked once, */
    {"type": "promptString", "id": "github-token", "password": true},
  ],
  "servers": {
    "github": {
      "type": "http", // not "sse"
      "url": "https://api.example.com/mcp/", /* see https://example.com */
      "headers": {"Authorization": "Bearer ${input:github-token}",},
    },
    "play": {"type": "stdio", "command": "npx", "args": ["-y", "pkg//x", "a /* b */ c,]"], "cwd": "${workspaceFolder}"},
    "asks": {"command": "x", "args": ["${command:pick}"]},
  },
}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_vs_code_with_comments_and_needless_commas(tmp_path: Path, line_end: str) -> None:
    path = file_of(tmp_path, "work/.vscode/mcp.json", VS_CODE.replace("\n", line_end))
    done = planned(path)
    found = read(done, tmp_path / "agora.toml")
    assert found["github"].bearer_token == "${GITHUB_TOKEN}"  # noqa: S105 - a variable's name
    assert ("GITHUB_TOKEN", "github", "asked by the client") in done.wanted
    assert found["play"].args == ("-y", "pkg//x", "a /* b */ c,]")
    assert found["play"].cwd == str(tmp_path / "work")
    assert "${command:pick}" in row_of(done, "asks").reason


def test_vs_code_settings(tmp_path: Path) -> None:
    path = file_of(tmp_path, "settings.json", {"mcp": {"servers": {"a": {"command": "x"}}}, "editor.tabSize": 2})
    assert imported(path)["a"].command == "x"


def test_gemini(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        ".gemini/settings.json",
        {
            "mcp": {"excluded": ["gone"]},
            "mcpServers": {
                "a": {"httpUrl": "https://example.com/mcp", "headers": {"Content-Type": "application/json"}},
                "b": {"url": "https://example.com/mcp2", "type": "http", "timeout": 5000, "trust": True},
                "c": {"url": "https://example.com/sse"},
                "d": {
                    "command": "python",
                    "args": ["-m", "d", "$5", "a$"],
                    "env": {"API_KEY": "$MY_KEY", "OTHER": "${OTHER}"},
                    "includeTools": ["x"],
                    "excludeTools": ["drop", "wipe"],
                },
                "gone": {"command": "x"},
                "login": {"httpUrl": "https://example.com/mcp3", "oauth": {"enabled": True}},
            },
        },
    )
    done = planned(path)
    found = read(done, tmp_path / "agora.toml")
    assert read_client_file(path).kind == "Gemini CLI"
    assert found["a"].headers == ()
    assert "without the headers Content-Type" in row_of(done, "a").remarks[0]
    assert (found["b"].url, found["b"].timeout, found["b"].trusted) == ("https://example.com/mcp2", 5.0, False)
    assert row_of(done, "c").fate == "refused"
    assert "HTTP+SSE" in row_of(done, "c").reason
    assert found["d"].args == ("-m", "d", "$5", "a$")
    assert found["d"].env == (("API_KEY", "${MY_KEY}"), ("OTHER", "${OTHER}"))
    assert found["d"].deny == ("drop", "wipe")
    assert "all of its tools" in row_of(done, "d").remarks[0]
    assert row_of(done, "gone").fate == "skipped"
    assert "without oauth" in row_of(done, "login").remarks[0]


CODEX = """\
model = "gpt"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs", "${NOT_A_VARIABLE}"]
cwd = "/srv"
env = { MODE = "fast" }
env_vars = ["DOCS_HOME"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
disabled_tools = ["rm"]
[mcp_servers.figma]
url = "https://mcp.example.com/mcp"
bearer_token_env_var = "FIGMA_TOKEN"
http_headers = { X-Region = "us" }
env_http_headers = { X-Auth = "FIGMA_AUTH" }
startup_timeout_ms = 1500
[mcp_servers.off]
command = "x"
enabled = false
"""


def test_codex(tmp_path: Path) -> None:
    path = file_of(tmp_path, ".codex/config.toml", CODEX)
    done = planned(path)
    found = read(done, tmp_path / "agora.toml")
    assert read_client_file(path).kind == "Codex"
    assert found["docs"] == BackendTable(
        "docs",
        "stdio",
        command="npx",
        args=("-y", "docs", "$${NOT_A_VARIABLE}"),
        cwd="/srv",
        env=(("MODE", "fast"), ("DOCS_HOME", "${DOCS_HOME}")),
        start_timeout=20.0,
        timeout=45.5,
        deny=("rm",),
    )
    assert found["figma"] == BackendTable(
        "figma",
        "http",
        url="https://mcp.example.com/mcp",
        headers=(("X-Region", "us"), ("X-Auth", "${FIGMA_AUTH}")),
        bearer_token="${FIGMA_TOKEN}",  # noqa: S106 - a variable's name
        start_timeout=1.5,
    )
    assert row_of(done, "off").fate == "skipped"


@pytest.mark.parametrize(
    ("written", "comes"),
    [
        ("${A}", "1"),
        ("$${A}", "$1"),
        ("$$${A}$", "$$1$"),
        ("${ ${A}", "${ 1"),
        ("${ ${A} ${}", "${ 1 ${}"),
        ("${A:-x}${NONE:-${A}}", "1${A}"),
        ("${}$A$${x", "${}$A$${x"),
        ("${1}", "${1}"),
    ],
)
def test_what_stands_beside_a_variable_stays(tmp_path: Path, written: str, comes: str) -> None:
    path = file_of(tmp_path, ".mcp.json", {"mcpServers": {"a": {"command": "x", "args": [written]}}})
    assert expanded(imported(path)["a"], {"A": "1"}).args == (comes,)


@pytest.mark.parametrize(
    ("given_", "seconds"),
    [(60_000, 60.0), (45, 45.0), (1e8, 3_600.0), (0, 30.0), (-5, 30.0), ("5", 30.0), (True, 30.0)],
)
def test_a_timeout_is_read_in_the_unit_that_it_is_in(tmp_path: Path, given_: object, seconds: float) -> None:
    path = file_of(tmp_path, ".mcp.json", {"mcpServers": {"a": {"command": "x", "timeout": given_}}})
    assert imported(path)["a"].timeout == seconds


@pytest.mark.parametrize(
    ("server", "fate", "words"),
    [
        ({"command": "agora", "args": ["serve"]}, "skipped", "is Agora itself"),
        ({"command": "/opt/bin/agora"}, "skipped", "is Agora itself"),
        ({"command": "C:\\x\\agora.exe"}, "skipped", "is Agora itself"),
        ({"command": "python3", "args": ["-m", "agora", "serve"]}, "skipped", "is Agora itself"),
        ({"command": "uvx", "args": ["agora-memory==0.3", "serve"]}, "skipped", "is Agora itself"),
        ({"command": "uv", "args": ["run", "/x/bin/agora"]}, "skipped", "is Agora itself"),
        ({"command": "npx", "args": ["agora-other"]}, "imported", ""),
        ({"command": "echo", "args": ["agora"]}, "imported", ""),
        ({"type": "sse", "url": "https://example.com/x"}, "refused", "HTTP+SSE"),
        ({"url": "https://example.com/sse/?x=1"}, "refused", "HTTP+SSE"),
        ({"type": "ws", "url": "wss://example.com"}, "refused", "speaks 'ws'"),
        ({"type": "http"}, "refused", "has no url"),
        ({"type": "stdio", "url": "https://example.com"}, "refused", "has no command"),
        ({}, "refused", "neither command nor url"),
        ([], "refused", "neither command nor url"),
        ({"command": 3}, "refused", "neither command nor url"),
        ({"command": "x", "args": "y"}, "refused", "args are no list"),
        ({"command": "x", "args": [{}]}, "refused", "args holds what is no text"),
        ({"command": "x", "args": ["\ud800"]}, "refused", "half a character"),
        ({"command": "x", "args": ["\0"]}, "refused", "zero byte"),
        ({"command": "npx -y thing"}, "refused", "goes into args"),
        ({"command": "x", "env": {"A": ["b"]}}, "refused", "env.A is no text"),
        ({"command": "x", "env": "A=b"}, "refused", "env is no table"),
        ({"command": "x", "env": {"A=": "b"}}, "refused", "no name of a variable"),
        ({"type": "http", "url": "ftp://example.com"}, "refused", "http:// or https://"),
        ({"type": "http", "url": "https://me:hunter2@example.com"}, "refused", "password in its address"),
        ({"type": "http", "url": "http://example.com", "headers": {"Authorization": "Bearer a1"}}, "refused", "unencr"),
        ({"type": "http", "url": "https://example.com", "headers": {"X-A": "a\nb"}}, "refused", "line end"),
        ({"type": "streamable-http", "url": "https://example.com"}, "imported", ""),
        ({"type": "local", "command": "x", "tools": ["*"], "env": {"A": None, "B": True}}, "imported", ""),
    ],
)
def test_what_becomes_of_a_server(tmp_path: Path, server: Any, fate: str, words: str) -> None:
    row = one(tmp_path, server)
    assert row.fate == fate, row
    assert words in row.reason
    assert "hunter2" not in row.reason
    assert "backends[" not in row.reason


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("My Server", "My-Server"),
        ("io.github.x/y", "io.github.x-y"),
        ("a__b___c", "a_b_c"),
        ("-x-", "x"),
        ("café ☕", "caf"),
        ("n" * 80, "n" * 64),
        ("☕", None),
        ("", None),
    ],
)
def test_a_name_that_no_backend_can_have_is_changed_and_said(tmp_path: Path, name: str, becomes: str | None) -> None:
    (row,) = planned(file_of(tmp_path, ".mcp.json", {"mcpServers": {name: {"command": "x"}}})).rows
    if becomes is None:
        assert row.fate == "refused"
    else:
        assert (row.backend, row.remarks) == (becomes, (f"is named {becomes}",))


def test_what_is_there_is_not_added_again(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        ".mcp.json",
        {
            "mcpServers": {
                "a": {"command": "x", "env": {"A": "1"}},
                "A": {"command": "y"},
                "b": {"command": "x", "env": {"A": "1"}},
                "c": {"command": "x", "env": {"A": "2"}},
            }
        },
    )
    done = planned(path)
    assert [(row.name, row.fate) for row in done.rows] == [
        ("a", "imported"),
        ("A", "skipped"),
        ("b", "skipped"),
        ("c", "imported"),
    ]
    assert row_of(done, "A").reason == 'its name is taken: backends[1] "a"'
    assert row_of(done, "b").reason == 'is there already under another name: backends[1] "a"'
    again = planned(path, *read(done, tmp_path / "agora.toml").values())
    assert again.text == ""
    assert {row.fate for row in again.rows} == {"skipped"}
    assert row_of(again, "a").reason.startswith("is there already: backends[1]")


def test_a_name_that_the_file_has_twice_is_told(tmp_path: Path) -> None:
    path = file_of(tmp_path, ".mcp.json", '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}')
    assert imported(path)["a"].command == "y"
    assert "twice" in planned(path).rows[0].remarks[0]


def test_only_the_named_servers_are_taken(tmp_path: Path) -> None:
    path = file_of(tmp_path, ".mcp.json", {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}})
    assert [row.name for row in planned(path, only=("b",)).rows] == ["b"]
    with pytest.raises(NotFound, match="no server 'c'") as caught:
        planned(path, only=("c",))
    assert caught.value.hint == "It has: a, b."


SECRETS = {
    "env": {
        "GITHUB_TOKEN": GITHUB_TOKEN,
        "apiKey": "plain-words-only",
        "DB": "postgres://user:S3cr3t-pw@db.example.com/x",
        "MODE": "fast",
        "USE_TOKEN": "true",
        "AGORA_SECRET": "q8w7e6r5",
    },
    "args": [
        "--api-key",
        "k3y-99ab-77cd-55ef",
        "--header",
        f"Authorization: Bearer {GITHUB_TOKEN}",
        "--token-file",
        "/a/b",
    ],
}
SHOWN = ("plain-words-only", "S3cr3t-pw", "q8w7e6r5", "k3y-99ab-77cd-55ef", GITHUB_TOKEN)


def test_secrets_become_variables_with_a_list_of_what_to_set(tmp_path: Path) -> None:
    path = file_of(tmp_path, ".mcp.json", {"mcpServers": {"my-db": {"command": "x", **SECRETS}}})
    done = planned(path)
    table = read(done, tmp_path / "agora.toml")["my-db"]
    assert not [each for each in SHOWN if each in done.text]
    env = dict(table.env)
    assert {name: text for name, text in env.items() if "${" in text} == {
        name: f"${{{variable}}}"
        for name, variable in {
            "GITHUB_TOKEN": "GITHUB_TOKEN",
            "apiKey": "APIKEY",
            "DB": "DB",
            "AGORA_SECRET": "MCP_AGORA_SECRET",
        }.items()
    }
    assert table.args[4:] == ("--token-file", "/a/b")
    variables = {variable for variable, _, _ in done.wanted}
    assert {"GITHUB_TOKEN", "APIKEY", "MCP_AGORA_SECRET", "MY_DB_API_KEY"} <= variables
    assert {name for text in (*env.values(), *table.args) for name in re.findall(r"\$\{(\w+)\}", text)} == variables
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", each) and not each.startswith("AGORA") for each in variables)


def test_with_secrets_everything_is_copied(tmp_path: Path) -> None:
    path = file_of(tmp_path, ".mcp.json", {"mcpServers": {"db": {"command": "x", **SECRETS}}})
    done = planned(path, with_secrets=True)
    table = read(done, tmp_path / "agora.toml")["db"]
    assert dict(table.env) == SECRETS["env"]
    assert list(table.args) == SECRETS["args"]
    assert done.wanted == []


def test_two_secrets_never_share_a_variable_and_one_secret_has_one(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        ".mcp.json",
        {
            "mcpServers": {
                "a": {"command": "a", "env": {"TOKEN": "first-1"}},
                "b": {"command": "b", "env": {"TOKEN": "second-2"}},
                "c": {"command": "c", "env": {"TOKEN": "first-1"}},
                "d": {"command": "d", "env": {"KEY": "third-3", "X": "${D_USED}"}},
                "e": {"command": "e", "env": {"D_USED": "x", "PAT": "fourth"}},
            }
        },
    )
    there = BackendTable("z", "stdio", command="z", env=(("K", "${KEY}"),))
    found = read(planned(path, there), tmp_path / "agora.toml")
    assert [dict(found[each].env)["TOKEN"] for each in "abc"] == ["${TOKEN}", "${B_TOKEN}", "${TOKEN}"]
    assert dict(found["d"].env)["KEY"] == "${D_KEY}", "what ${KEY} stands for is the other backend's"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "is no JSON: "),
        ("a.json", '{"mcpServers": {"a": {"command": "hunter2"', "line 1"),
        ("a.json", "[1]", "holds no MCP servers"),
        ("a.json", "{}", "holds no MCP servers"),
        ("a.json", '{"mcpServers": []}', "holds no MCP servers"),
        ("a.json", '{"a": ' + "9" * 5000 + "}", "too many digits"),
        ("a.json", "[" * 100_000, "is no JSON"),
        ("a.json", b"\xff\xfe\xff", "is not UTF-8"),
        ("a.json", "/*" * 200_000, "is no JSON"),
        ("a.json", "," * 200_000, "is no JSON"),
        ("a.json", "{" + "," + " " * 200_000, "is no JSON"),
        ("a.json", '"' + "\\" * 100_001, "is no JSON"),
        ("a.toml", "a = ", "is no TOML"),
        ("a.toml", "a = 1", "holds no MCP servers"),
        ("none.json", None, "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, name: str, content: str | bytes | None, words: str) -> None:
    path = tmp_path / name if content is None else file_of(tmp_path, name, content)
    with pytest.raises(InvalidInput, match=words) as caught:
        read_client_file(path)
    assert "hunter2" not in caught.value.message
    assert ".mcp.json" in caught.value.hint


def test_an_empty_list_of_servers_is_no_mistake(tmp_path: Path) -> None:
    assert planned(file_of(tmp_path, ".mcp.json", {"mcpServers": {}})).rows == []


def test_a_file_in_utf_16_is_read(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, ".mcp.json", '{"mcpServers": {"é": {"command": "é"}, "b": {"command": "é"}}}'.encode("utf-16")
    )
    assert imported(path)["b"].command == "é"


def test_a_huge_file_of_servers_is_imported(tmp_path: Path) -> None:
    servers = {f"s{n}": {"command": "x", "args": [str(n), "y" * 5_000]} for n in range(200)}
    path = file_of(tmp_path, ".claude.json", {"mcpServers": servers, "history": ["z" * 100] * 10_000})
    assert len(imported(path)) == 200


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
DOLLARS = st.text("${}:-aB_/ \n\"'\\", max_size=14)
SERVERS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(lambda name: name != "agora"),
    st.fixed_dictionaries(
        {
            "command": st.sampled_from(["npx", "uvx", "/opt/x y/z", "é"]),
            "args": st.lists(st.one_of(TEXT, DOLLARS), max_size=4),
            "env": st.dictionaries(
                st.from_regex(r"[A-Z][A-Z0-9_]{0,6}", fullmatch=True), st.one_of(TEXT, DOLLARS), max_size=3
            ),
        }
    ),
    max_size=4,
)
ENV = {"a": "1", "B": "", "aB": "${a}"}


def claude(text: str) -> str:
    """What Claude Code makes of a text, with `ENV`."""

    def value(match: re.Match[str]) -> str:
        found = ENV.get(match["name"])
        return (found or match["default"][2:]) if match["default"] is not None else ENV.get(match["name"], match[0])

    return re.sub(r"\$\{(?P<name>[A-Za-z_]\w*)(?P<default>:-[^}]*)?\}", value, text)


@pytest.mark.parametrize("name", ["claude_desktop_config.json", ".mcp.json"])
@given(servers=SERVERS)
def test_what_is_imported_and_read_starts_the_same_programs(
    tmp_path_factory: pytest.TempPathFactory, name: str, servers: dict[str, dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    path = file_of(folder, name, {"mcpServers": servers})
    done = planned(path, with_secrets=True)
    value = claude if name == ".mcp.json" else str
    unset = re.compile(r"\$\{(?!(?:a|B|aB)(?::-[^}]*)?\})[A-Za-z_]\w*\}")
    other = re.compile(r"\$\{(?:[A-Za-z]+:(?!-)[^}]+|/)\}")
    if name == ".mcp.json":
        # What is not set is an error here, and what only an editor knows is refused.
        texts = [text for each in servers.values() for text in (*each["args"], *each["env"].values())]
        assume(not any(unset.search(text) or other.search(text) for text in texts))
    found = {row.name: row for row in done.rows}
    tables = read(done, path.parent / "agora.toml")
    assert found.keys() == servers.keys()
    for server, given_ in servers.items():
        if found[server].fate != "imported":
            assert "already" in found[server].reason
            continue
        table = expanded(tables[server], ENV)
        assert table.command == given_["command"]
        assert table.args == tuple(map(value, given_["args"]))
        assert dict(table.env) == {key: value(text) for key, text in given_["env"].items()}


@given(st.one_of(TEXT, DOLLARS))
def test_a_text_that_is_written_literally_comes_back(text: str) -> None:
    assert expand(literal(text), {}, KeyError) == text


@given(
    st.lists(
        st.dictionaries(TEXT, st.one_of(TEXT, st.booleans(), st.integers(), st.lists(TEXT, max_size=3)), max_size=4)
    )
)
def test_what_is_written_is_read_back_as_toml(tables: list[dict[str, Any]]) -> None:
    assert tomllib.loads(rendered("x", tables)).get("x", []) == tables


def test_a_file_that_somebody_else_wrote_meanwhile_is_left_to_them(tmp_path: Path) -> None:
    target = file_of(tmp_path, "agora.toml", b"theirs")
    for old in (b"mine", None):
        with pytest.raises(ConfigError, match="was changed meanwhile"):
            put(target, old, b"new")
    assert target.read_bytes() == b"theirs"
    put(target, b"theirs", b"new")
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["agora.toml"]
