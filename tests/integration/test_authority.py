"""On a terminal a person is the user; in a pipe the same command is an agent, which changes nothing of the user's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.processes import RunAgora, on_a_terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON document of a command that worked."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Terminal:
    """Runs commands as a person at a terminal does."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project = home, project

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Exit status, and what was shown."""
        return on_a_terminal(self.home, self.project, *arguments)


@pytest.fixture
def terminal(home: Path, project: Path) -> Terminal:
    return Terminal(home, project)


def test_a_script_s_value_stands_beside_the_users_and_the_user_settles_it(
    run_agora: RunAgora, terminal: Terminal
) -> None:
    status, shown = terminal("save", "The region is west", "--key", "region")
    assert status == 0
    stands = shown.split()[1]
    done = run_agora("save", "The region is east", "--key", "region")
    beside = done.stdout.split()[1]
    assert done.stdout.startswith(f"contested {beside} in ")
    assert stands in done.stdout
    got = run_agora("get", stands, beside).stdout
    assert f"contested by {beside}" in got
    assert f"contests {stands}" in got
    assert "— agora-cli, user, " in got
    assert "contested: key region" in run_agora("crossref", "region").stdout
    refused = run_agora("forget", stands, "--yes")
    assert refused.stdout.splitlines()[0] == "forgot 0 notes"
    assert f"protected, of higher origin than yours: {stands}" in refused.stdout
    status, shown = terminal("save", "The region is west", "--key", "region")
    assert (status, shown.split()[0]) == (0, "duplicate")
    assert [hit["id"] for hit in said(run_agora("query", "region", "--json"))["results"]] == [stands]


def test_an_option_lowers_the_origin_and_cannot_lift_it(run_agora: RunAgora, terminal: Terminal) -> None:
    assert terminal("save", "What the build printed", "--origin", "tool")[0] == 0
    (hit,) = said(run_agora("query", "build", "--json"))["results"]
    assert hit["origin"] == "tool"
    refused = run_agora("save", "I am the user", "--origin", "user", "--json")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["code"] == "authority_required"
    assert run_agora("save", "x", "--origin", "root").returncode == 2


def test_only_a_person_pins(run_agora: RunAgora, terminal: Terminal) -> None:
    note = terminal("save", "Deploy on mondays", "--expires-in", "1h")[1].split()[1]
    theirs = run_agora("save", "An agent's text").stdout.split()[1]
    for command in ("pin", "unpin"):
        refused = run_agora(command, note)
        assert refused.returncode == 1
        assert "only the user can" in refused.stderr
    status, shown = terminal("pin", note, theirs)
    assert status == 0
    assert f"pinned: {note}\n" in shown
    assert f"save the text yourself first: {theirs}" in shown
    (got,) = said(run_agora("get", note, "--json"))["notes"]
    assert "pinned_at" in got
    assert "expires_at" not in got
    assert f"unpinned: {note}" in terminal("unpin", note)[1]


def test_a_script_purges_nothing_of_the_users(run_agora: RunAgora, terminal: Terminal) -> None:
    users = terminal("save", "The user's text")[1].split()[1]
    agents = run_agora("save", "An agent's text").stdout.split()[1]
    assert terminal("forget", users, agents, "--yes")[0] == 0
    assert f"protected, forgotten by a higher origin than yours: {agents}" in run_agora("restore", agents).stdout
    purged = said(run_agora("purge", "--yes", "--json"))
    assert (purged["notes"], purged["protected"]) == (1, [users])
    assert said(run_agora("get", users, agents, "--json"))["forgotten"] == [users]
    status, shown = terminal("purge", "--yes")
    assert (status, "purged 1 note" in shown) == (0, True)
