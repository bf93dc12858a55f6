"""What is in the data folder is for its user alone, whatever the shell allows for new files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.processes import AGORA, PATIENCE, RunAgora, environment
from tests.integration.shared.conftest import SHARED

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="rights there are the user profile's")


def run_open(home: Path, project: Path, *arguments: str) -> None:
    """Run a command in a shell in which new files are everybody's."""
    extra = {**SHARED, "AGORA_LOG_LEVEL": "debug"}
    subprocess.run(
        ["sh", "-c", 'umask 0; exec "$@"', "sh", *AGORA, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(home, extra),
        cwd=project,
        timeout=2 * PATIENCE,
        check=True,
    )


def test_nothing_that_any_command_makes_is_open_to_others(home: Path, project: Path, tmp_path: Path) -> None:
    copy, dump = tmp_path / "copy.db", tmp_path / "dump.jsonl"
    for command in (
        ("save", "the gateway needs port 8080"),
        ("query", "which port?"),
        ("serve", "--in-process"),
        ("serve",),
        ("backup", str(copy)),
        ("export", str(dump)),
        ("reindex",),
        ("server", "stop"),
    ):
        run_open(home, project, *command)
    made = [home, *home.rglob("*"), copy, dump]
    assert {path.name for path in made} >= {"agora.db", "cache.db", "run", "server.log", "logs"}
    assert [path for path in made if path.lstat().st_mode & 0o077] == []


def test_the_doctor_warns_of_a_folder_and_of_files_that_others_can_use(
    home: Path, run_agora: RunAgora, tmp_path: Path
) -> None:
    run_agora("save", "the gateway needs port 8080")
    assert "other users" not in run_agora("doctor").stdout
    link = home / "elsewhere"
    link.symlink_to(tmp_path)
    for path, mode in ((home, 0o755), (home / "agora.db", 0o604)):
        path.chmod(mode)
        done = run_agora("doctor", "--json")
        [row] = [row for row in json.loads(done.stdout)["checks"] if row.get("code") == "open_to_others"]
        assert (done.returncode, row["warning"]) == (0, True)
        assert str(path) in row["message"]
        # What the hint says.
        subprocess.run(["chmod", "-R", "go=", str(home)], check=True)
        assert "other users" not in run_agora("doctor").stdout
    assert os.path.lexists(link)
