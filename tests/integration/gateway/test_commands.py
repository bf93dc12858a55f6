"""The commands about other servers, as a person types them: with the shared server and without one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.backends.heard import NAUGHTY
from tests.integration.clients import PATIENCE, environment

from agora.daemon import control


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder with two backends, one of which does not start."""
    folder = tmp_path / "home"
    folder.mkdir()
    tables = [
        ("naughty", "args", [str(NAUGHTY)]),
        ("broken", "args", [str(NAUGHTY), "exit"]),
    ]
    text = "".join(
        f'[[backends]]\nname = "{name}"\ncommand = {json.dumps(sys.executable)}\n{key} = {json.dumps(value)}\n\n'
        for name, key, value in tables
    )
    (folder / "agora.toml").write_text(text, encoding="utf-8")
    yield folder
    control.stop(folder)


def agora(home: Path, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "agora", *arguments],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        env=environment(home, {}) | {"AGORA_SERVER_SHARED": "true"},
        cwd=home,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.mark.parametrize("shared", [False, True])
def test_a_tool_is_called_from_the_command_line(home: Path, shared: bool) -> None:
    if shared:
        agora(home, "server", "start")
    done = agora(home, "route", "naughty", "--tool", "echo", "--args", '{"text": "ключ"}')
    assert done.stdout == "ключ\n"
    assert "naughty: echo, found by backend" in done.stderr
    found = json.loads(agora(home, "route", "naughty__echo", "--args", '{"text": "x"}', "--json").stdout)
    assert (found["matched_by"], found["content"][0]["text"]) == ("tool", "x")
    listed = agora(home, "backends", "list").stdout
    assert ("naughty  stdio, running, healthy" if shared else "naughty  stdio, stopped, healthy") in listed
    if shared:
        # What the server knows is what the command shows.
        agora(home, "route", "broken", "--tool", "echo", status=1)
        assert "the configuration is missing, nothing works" in agora(home, "backends", "list").stdout
    assert "2 configured" in agora(home, "status").stdout
    assert agora(home, "audit", "--calls").stdout.count("echo of naughty") == 2


def test_what_goes_wrong_is_said_and_in_the_exit_status(home: Path) -> None:
    assert "is no JSON" in agora(home, "route", "naughty", "--tool", "echo", "--args", "{", status=2).stderr
    assert "a JSON object" in agora(home, "route", "naughty", "--tool", "echo", "--args", "[1]", status=2).stderr
    assert "Did you mean naughty?" in agora(home, "route", "naugthy", "--tool", "echo", status=1).stderr
    assert "nothing works" in agora(home, "route", "broken", "--tool", "echo", status=1).stderr
    assert agora(home, "route", "naughty", "--tool", "fail", "--args", '{"tool": true}', status=1).stdout
    assert "was not asked" in agora(home, "broadcast", "echo", "--args", '{"text": "x"}').stdout


def test_nothing_waits_for_approval_at_first_and_nobody_but_a_person_approves(home: Path) -> None:
    agora(home, "route", "naughty", "--tool", "echo")
    assert agora(home, "backends", "diff").stdout == "no tool waits for approval\n"
    assert "only the user" in agora(home, "backends", "approve", "naughty", status=1).stderr
    assert "there is no backend" in agora(home, "backends", "diff", "nobody", status=1).stderr
