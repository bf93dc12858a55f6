"""What the command line shows of backends: where they are, and no secret."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.integration.processes import RunAgora

from agora.app.checking_backends import backend_rows
from agora.config.load import load_settings

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


def test_the_doctor_warns_of_backends_that_cannot_be_used_and_shows_no_secret(run_agora: RunAgora, file: Path) -> None:
    done = run_agora("doctor", "--json")
    rows = {row["name"]: row for row in json.loads(done.stdout)["checks"]}
    assert rows["backend web"]["message"] == "http, https://mcp.example.com; it was not called"
    assert "warning" not in rows["backend web"]
    child = rows["backend child"]
    assert child["warning"] is True
    assert child["message"].startswith('agora.toml:7: backends[2] "child": the command no-such-program is on no folder')
    later = rows["backend later"]
    assert later["message"].startswith('agora.toml:14: backends[3] "later": url needs the environment variable ')
    assert "'URL_THAT_IS_NOT_SET'" in later["message"]
    assert "This is what this shell has" in later["hint"]
    assert done.returncode == 0, "the memory is whole"
    told = run_agora("doctor")
    assert "warn  backend child: " in told.stdout
    assert SECRET in file.read_text("utf-8")
    assert SECRET not in told.stdout + told.stderr + done.stdout + done.stderr


def test_the_doctor_warns_of_a_backend_that_is_exposed_and_is_none(run_agora: RunAgora, file: Path) -> None:
    assert file.exists()
    done = run_agora("doctor", "--json", env={"AGORA_GATEWAY_EXPOSE": "WEB,nobody"})
    rows = [row for row in json.loads(done.stdout)["checks"] if row["name"] == "gateway.expose"]
    assert [row["message"] for row in rows] == ["no backend is called 'nobody': nothing of it is shown"]
    assert rows[0]["warning"] is True


def test_the_doctor_looks_where_the_child_would(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    name = Path(sys.executable).name
    folder = str(Path(sys.executable).parent)
    lines = [f"name = 'own-path'\ncommand = '{name}'\nenv = {{ PATH = '{folder}' }}"]
    lines += [f"name = 'path'\ncommand = '{name}'"]
    lines += [f"name = 'whole'\ncommand = '{sys.executable}'\ncwd = '{tmp_path}'"]
    lines += [f"name = 'gone'\ncommand = '{tmp_path / 'gone'}'"]
    lines += [f"name = 'nowhere'\ncommand = '{sys.executable}'\ncwd = '{tmp_path / 'gone'}'"]
    (home / "agora.toml").write_text("".join(f"[[backends]]\n{each}\n" for each in lines), "utf-8")
    tables = load_settings({}, {"AGORA_HOME": str(home)}).settings.backends
    rows = {row["name"].split()[1]: row for row in backend_rows(tables, {"PATH": str(tmp_path)})}
    assert rows["own-path"]["message"].startswith(f"stdio, {folder}{os.sep}")
    assert "is on no folder of the PATH" in rows["path"]["message"]
    assert "warning" not in rows["whole"]
    assert "is no program that can be run" in rows["gone"]["message"]
    assert "cwd is no folder" in rows["nowhere"]["message"]
    assert "warning" not in backend_rows(tables, {"PATH": folder})[1]
