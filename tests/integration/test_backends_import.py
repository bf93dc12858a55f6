"""`agora backends import`: what is written, what is left as it is, and what is said."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.processes import RunAgora

TOKEN = "ghp_" + "b7Lw3" * 7 + "Z"

SERVERS = {
    "github": {"type": "http", "url": "https://api.example.com/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}},
    "files": {"command": "npx", "args": ["-y", "files", "\x1b[31m\u202e"], "env": {"MODE": "fast"}},
    "agora": {"command": "agora", "args": ["serve"]},
    "old": {"type": "sse", "url": "https://example.com/sse"},
}

OLD = '# mine\r\nagent   = "me"  # spaces stay\r\n\r\n[log]\r\nlevel="error"'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": SERVERS}), "utf-8")
    return path


def said(done: Any) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_file_that_is_not_there_is_made_for_its_user_alone(run_agora: RunAgora, home: Path, file: Path) -> None:
    done = run_agora("backends", "import", str(file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "imported  github  http (agora.toml:1)",
        "imported  files   stdio (agora.toml:6)",
        "skipped   agora   is Agora itself",
        "refused   old     speaks HTTP+SSE, which the protocol has given up: ask it for its Streamable HTTP address",
        "set these where Agora starts:",
        "  GITHUB_TOKEN  for headers.Authorization of github",
        f"written to {home / 'agora.toml'}",
    ]
    target = home / "agora.toml"
    text = target.read_text("utf-8")
    assert TOKEN not in text
    assert '"\\u001B[31m\\u202E"' in text
    if sys.platform != "win32":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert [path.name for path in home.iterdir()] == ["agora.toml"]
    shown = said(run_agora("config", "--json"))["backends"]
    assert [each["name"] for each in shown] == ["github", "files"]
    again = said(run_agora("backends", "import", str(file), "--json"))
    assert {row["fate"] for row in again["servers"]} == {"skipped", "refused"}
    assert target.read_text("utf-8") == text


@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf"])
def test_what_the_file_holds_stays_byte_for_byte(run_agora: RunAgora, home: Path, file: Path, begin: bytes) -> None:
    home.mkdir(mode=0o700)
    target = home / "agora.toml"
    old = begin + OLD.encode()
    target.write_bytes(old)
    done = said(run_agora("backends", "import", str(file), "--json"))
    new = target.read_bytes()
    assert new.startswith(old + b"\r\n\r\n[[backends]]\r\n")
    assert new.count(b"\n") == new.count(b"\r\n")
    assert done["servers"][0] == {
        "name": "github",
        "fate": "imported",
        "backend": "github",
        "transport": "http",
        "place": "agora.toml:7",
    }
    assert done["set"] == [{"variable": "GITHUB_TOKEN", "backend": "github", "key": "headers.Authorization"}]
    assert said(run_agora("config", "--json"))["settings"]["agent"]["value"] == "me"


def test_a_dry_run_shows_the_text_and_writes_nothing(run_agora: RunAgora, home: Path, file: Path) -> None:
    done = run_agora("backends", "import", str(file), "--dry-run")
    assert "would import  github" in done.stdout
    assert "  [[backends]]" in done.stdout.splitlines()
    assert "nothing was written" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert not home.exists()
    data = said(run_agora("backends", "import", str(file), "--dry-run", "--json"))
    assert data["dry_run"] is True
    assert data["text"].startswith("\n[[backends]]\n")
    assert not home.exists()


def test_only_what_is_named_is_imported_and_secrets_are_copied_where_that_is_asked_for(
    run_agora: RunAgora, home: Path, file: Path
) -> None:
    data = said(run_agora("backends", "import", str(file), "--only", "github", "--with-secrets", "--json"))
    assert [row["name"] for row in data["servers"]] == ["github"]
    assert data["set"] == []
    assert f'bearer_token = "{TOKEN}"' in (home / "agora.toml").read_text("utf-8")
    assert TOKEN not in json.dumps(data)
    none = run_agora("backends", "import", str(file), "--only", "githib")
    assert none.returncode == 1
    assert "It has: github, files, agora, old." in none.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_stays_one_and_a_file_that_was_open_to_others_is_closed(
    run_agora: RunAgora, home: Path, file: Path, tmp_path: Path
) -> None:
    home.mkdir(mode=0o700)
    real = tmp_path / "dotfiles.toml"
    real.write_text("agent = 'me'\n", "utf-8")
    real.chmod(0o644)
    (home / "agora.toml").symlink_to(real)
    assert run_agora("backends", "import", str(file)).returncode == 0
    assert (home / "agora.toml").is_symlink()
    assert real.read_text("utf-8").startswith("agent = 'me'\n\n[[backends]]\n")
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("backends = [{ name = 'a', command = 'x' }]\n", "no table can be added at its end"),
        ("agent = \n", "is no valid TOML"),
        ("agnt = 'x'\n", "unknown setting 'agnt'"),
    ],
)
def test_nothing_is_written_if_the_result_would_not_load(
    run_agora: RunAgora, home: Path, file: Path, old: str, words: str
) -> None:
    home.mkdir(mode=0o700)
    target = home / "agora.toml"
    target.write_text(old, "utf-8")
    done = run_agora("backends", "import", str(file))
    assert done.returncode == 2
    assert words in done.stderr
    assert target.read_text("utf-8") == old
    assert [path.name for path in home.iterdir()] == ["agora.toml"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_folder_that_cannot_be_written_is_told(run_agora: RunAgora, home: Path, file: Path) -> None:
    home.mkdir(mode=0o500)
    done = run_agora("backends", "import", str(file))
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_a_file_that_is_none_is_told(run_agora: RunAgora, tmp_path: Path) -> None:
    done = run_agora("backends", "import", str(tmp_path / "none.json"), "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["param"]) == ("invalid_input", "file")


def test_another_configuration_file_can_be_named(run_agora: RunAgora, home: Path, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("", "utf-8")
    assert run_agora("backends", "import", str(file), "--config", str(other)).returncode == 0
    assert other.read_text("utf-8").startswith("[[backends]]\n")
    assert not home.exists()
