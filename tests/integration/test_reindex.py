"""`agora reindex` with the index that is the default."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.processes import AGORA, environment, run_command


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with a note."""
    assert run_command(["save", "The deploy key lives in the vault"], tmp_path / "home", tmp_path).returncode == 0
    return tmp_path / "home"


def test_an_index_whose_files_are_gone_is_built_anew_and_finds_the_note(home: Path, tmp_path: Path) -> None:
    shutil.rmtree(home / "index", ignore_errors=True)
    done = run_command(["reindex", "--json"], home, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) | {"seconds": 0} == {"index": "sqlite", "passages": 1, "seconds": 0}
    assert list((home / "index").iterdir())
    found = run_command(["query", "secret for releases", "--mode", "semantic", "--json"], home, tmp_path)
    assert len(json.loads(found.stdout)["results"]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals for a child")
def test_a_terminal_is_shown_a_bar_and_standard_output_the_result_alone(home: Path, tmp_path: Path) -> None:
    import pty  # noqa: PLC0415 - Windows has none

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*AGORA, "reindex"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(home, {"TERM": "xterm"}),
        cwd=tmp_path,
    )
    os.close(theirs)
    out, _ = process.communicate(timeout=60)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        # A terminal whose other end is closed says so in this way.
        pass
    finally:
        os.close(ours)
    assert process.returncode == 0
    assert out.startswith(b"1 passage in the index sqlite")
    assert b"\x1b[" in shown
    assert b"passages" in shown
