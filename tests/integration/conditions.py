"""What can happen to a data folder, made to happen: mounts where this user may mount, else permissions and limits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def mounts() -> bool:
    """Whether this process may mount file systems."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("mount") or not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


can_mount = pytest.mark.skipif(not mounts(), reason="needs the right to mount file systems")


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """An empty disk of that size at `folder`."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        _unmount(folder)


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", folder], check=True)


def _set(modes: dict[Path, int]) -> None:
    for path, mode in modes.items():
        path.chmod(mode)


def fill_up(folder: Path) -> Path:
    """A file that takes every byte that is left on the disk of `folder`."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    return ballast


Release = Callable[[], None]


@contextmanager
def read_only(folder: Path) -> Iterator[Release]:
    """Nobody who runs as this user can write into `folder` or its files; the yielded function ends that early."""
    if os.name != "posix":
        pytest.skip("permissions work otherwise there")
    undo: list[Release] = []
    if os.geteuid() == 0:
        if not mounts():
            pytest.skip("nothing is forbidden to root, and it may not mount")
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        undo.append(lambda: _unmount(folder))
    else:
        modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
        for path in sorted(modes, reverse=True):
            path.chmod(modes[path] & ~0o222)
        undo.append(lambda: _set(modes))

    def release() -> None:
        while undo:
            undo.pop()()

    try:
        yield release
    finally:
        release()
