"""Which tools of other servers a session sees is its own setting, on a server that it shares."""

from __future__ import annotations

from pathlib import Path

from tests.integration.processes import Serve, Served
from tests.integration.shared.conftest import eventually, server_of
from tests.protocol.others import GIVING, table


def shown(session: Served) -> set[str]:
    """Of which backends the session sees tools."""
    listed = session.request("tools/list")["result"]["tools"]
    return {tool["name"].partition("__")[0] for tool in listed if "__" in tool["name"]}


def test_each_session_sees_the_tools_that_its_own_setting_names(session: Serve, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "agora.toml").write_text(table("one", GIVING) + table("two", GIVING), "utf-8")
    plain = session()
    first = session(env={"AGORA_GATEWAY_EXPOSE": "one"})
    both = session(env={"AGORA_GATEWAY_EXPOSE": "TWO,one,none-of-these"})
    eventually(lambda: shown(both) == {"one", "two"}, "the tools of both are known")
    assert shown(first) == {"one"}
    assert shown(plain) == set()
    assert server_of(home)["pid"], "all on one server"
    answered = first.request("tools/call", {"name": "one__search_text", "arguments": {}})["result"]
    assert answered["_meta"]["agora/call"]["backend"] == "one"
    refused = first.request("tools/call", {"name": "two__search_text", "arguments": {}})
    assert refused["error"]["code"] == -32602
