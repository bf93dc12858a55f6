"""What a backend's process is started with: its program, its folder and its variables."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from agora.config.backends import BackendTable
from agora.errors import BackendUnavailable

_POSIX = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER")
_WINDOWS = (
    *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATH", "PATHEXT"),
    *("PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT"),
    *("TEMP", "TMP", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR"),
)
"""What programs need to find themselves, their user and room for their files. No proxies: they may hold passwords."""


def variables(own: Mapping[str, str], given: Mapping[str, str], *, windows: bool) -> dict[str, str]:
    """The variables of a child: the few of `own` that a program needs to run, and all that are `given` for it.

    On Windows names differ by more than their case, so a `Path` that is given replaces `PATH`.
    """
    if windows:
        kept = {name.upper(): value for name, value in own.items() if name.upper() in _WINDOWS}
        return kept | {name.upper(): value for name, value in given.items()}
    kept = {
        name: value
        for name, value in own.items()
        # A shell's exported functions are programs that others wrote.
        if (name in _POSIX or name.startswith("LC_")) and not value.startswith("()")
    }
    return kept | dict(given)


def command_line(backend: BackendTable, env: Mapping[str, str]) -> list[str]:
    """The program of a backend with its whole path, as its own `PATH` has it, and its arguments.

    On Windows `npx` is `npx.cmd`, which only a search finds.

    Raises: BackendUnavailable, with what to do, where there is no such program or folder.
    """
    name, command = backend.name, backend.command
    folder = None if backend.cwd is None else Path(backend.cwd)
    if folder is not None and not folder.is_dir():
        raise BackendUnavailable(
            name, f"its working folder {backend.cwd} does not exist", hint="Make it, or change `cwd` in its table."
        )
    if not command:
        raise BackendUnavailable(name, "its table names no command", hint="Set `command` in its table.")
    if os.path.dirname(command):  # noqa: PTH120 - a path as it is written: `./server` is one, `server` is not
        # What the system does with a path that is not whole: the child is in its folder already.
        wanted = str((folder or Path()) / command)
        found = shutil.which(wanted)
        if found is None and Path(wanted).is_file():
            raise BackendUnavailable(name, f"{command} is not executable", hint=f"Run `chmod +x {wanted}`.")
    else:
        found = shutil.which(command, path=env.get("PATH", os.defpath))
    if found is None:
        raise BackendUnavailable(
            name,
            f"there is no program {command}",
            hint="Install it, or give its whole path as `command` in its table; programs are searched for in PATH,"
            " which `env` in the table can set.",
        )
    return [str(Path(found).absolute()), *backend.args]


def of_this_system(given: Mapping[str, str], own: Mapping[str, str] | None = None) -> dict[str, str]:
    """As `variables`, of this process and on this system."""
    return variables(os.environ if own is None else own, given, windows=sys.platform == "win32")
