from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agora.backends.environment import command_line, variables
from agora.config.backends import BackendTable
from agora.errors import BackendUnavailable

OWN = {
    "PATH": "/bin",
    "HOME": "/home/ann",
    "LC_ALL": "C",
    "TMPDIR": "/scratch/ann",
    "AGORA_HOME": "/data",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "HTTPS_PROXY": "http://user:password@proxy",
    "PYTHONPATH": "/code",
    "LANG": "() { :; }; echo vulnerable",
}


def test_a_child_gets_what_a_program_needs_to_run_and_what_it_is_given() -> None:
    found = variables(OWN, {"GITHUB_TOKEN": "t", "HOME": "/srv"}, windows=False)
    assert found == {"PATH": "/bin", "HOME": "/srv", "LC_ALL": "C", "TMPDIR": "/scratch/ann", "GITHUB_TOKEN": "t"}


def test_on_windows_names_are_the_same_in_any_case() -> None:
    own = {"Path": "C:\\bin", "SystemRoot": "C:\\Windows", "Secret": "s", "ProgramFiles(x86)": "C:\\P"}
    found = variables(own, {"path": "D:\\node", "Token": "t"}, windows=True)
    assert found == {"PATH": "D:\\node", "SYSTEMROOT": "C:\\Windows", "PROGRAMFILES(X86)": "C:\\P", "TOKEN": "t"}


def program(folder: Path, name: str) -> Path:
    path = folder / (f"{name}.cmd" if sys.platform == "win32" else name)
    path.write_text("#!/bin/sh\n", "utf-8")
    path.chmod(0o700)
    return path


def test_a_program_is_searched_for_in_the_path_of_the_child(tmp_path: Path) -> None:
    found = program(tmp_path, "npx-of-mine")
    backend = BackendTable("b", "stdio", command="npx-of-mine", args=("-y", "server"))
    assert command_line(backend, {"PATH": str(tmp_path)}) == [str(found), "-y", "server"]
    with pytest.raises(BackendUnavailable, match="there is no program npx-of-mine"):
        command_line(backend, {"PATH": os.defpath})


def test_a_path_that_is_not_whole_is_looked_for_in_the_working_folder(tmp_path: Path) -> None:
    found = program(tmp_path, "server")
    relative = os.path.join(".", found.name)  # noqa: PTH118 - pathlib leaves out the dot
    backend = BackendTable("b", "stdio", command=relative, cwd=str(tmp_path))
    assert [Path(part) for part in command_line(backend, {})] == [found]
