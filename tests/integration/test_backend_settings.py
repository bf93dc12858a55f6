"""What the command line shows of backends: where they are, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.processes import RunAgora

SECRET = "ghp_" + "x7Kq" * 9

FILE = f"""\
[[backends]]
name = "web"
url = "https://mcp.example.com/s/{SECRET}/mcp?key={SECRET}"
bearer_token = "{SECRET}"
headers = {{ X-Api-Key = "{SECRET}" }}

[[backends]]
name = "child"
command = "no-such-program"
args = ["--token", "{SECRET}"]
[backends.env]
TOKEN = "{SECRET}"

[[backends]]
name = "later"
url = "${{URL_THAT_IS_NOT_SET}}/{SECRET}"
"""


@pytest.fixture
def file(home: Path) -> Path:
    home.mkdir(mode=0o700, exist_ok=True)
    path = home / "agora.toml"
    path.write_text(FILE, "utf-8")
    return path


def test_config_shows_each_backend_and_no_secret(run_agora: RunAgora, file: Path) -> None:
    told = run_agora("config")
    assert told.returncode == 0, told.stderr
    assert "backend web: http, https://mcp.example.com  (agora.toml:1)" in told.stdout
    assert "backend child: stdio, no-such-program  (agora.toml:7)" in told.stdout
    assert "backend later: http, ${…}  (agora.toml:14)" in told.stdout
    data = run_agora("config", "--json")
    assert json.loads(data.stdout)["backends"] == [
        {"name": "web", "transport": "http", "host": "https://mcp.example.com", "place": "agora.toml:1"},
        {"name": "child", "transport": "stdio", "command": "no-such-program", "place": "agora.toml:7"},
        {"name": "later", "transport": "http", "host": "${…}", "place": "agora.toml:14"},
    ]
    assert SECRET in file.read_text("utf-8")
    assert SECRET not in told.stdout + told.stderr + data.stdout + data.stderr
