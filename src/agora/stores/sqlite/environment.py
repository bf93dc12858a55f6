"""What kind of file system a folder is on.

Processes on one store share memory through the file beside its log, which works on one machine alone. SQLite's own
word: WAL does not work over a network file system. Two machines that write to one store damage it.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal, NamedTuple

from agora.errors import ConfigError
from agora.stores.sqlite.rules import SURROUNDINGS

CODE = "network_file_system"

Reach = Literal["local", "guest", "network"]
"""Who may have the files open: this machine, the host of this virtual machine or container too, other machines."""

_TABLE = Path("/proc/self/mountinfo")
_MOUNT = "/sbin/mount"
_PATIENCE = 2.0
_REMOTE_DRIVE = 4
"""DRIVE_REMOTE of the Windows function GetDriveType."""

NETWORK = frozenset(
    {
        *("nfs", "nfs3", "nfs4", "cifs", "smb2", "smb3", "smbfs", "afs", "afpfs", "ncpfs", "coda", "webdav", "davfs"),
        *("ceph", "lustre", "gfs2", "ocfs2", "gpfs", "beegfs", "orangefs", "pvfs2", "panfs", "glusterfs", "moosefs"),
        *("fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.goofys", "fuse.blobfuse", "fuse.blobfuse2"),
        *("fuse.davfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse", "fuse.mfs", "fuse.juicefs", "fuse.seaweedfs"),
        *(
            "fuse.cifs",
            "fuse.smbnetfs",
            "fuse.afp",
            "fuse.mount-s3",
            "fuse.weed",
            "fuse.curlftpfs",
            "fuse.google-drive",
        ),
    }
)
GUEST = frozenset(
    {"9p", "virtiofs", "vboxsf", "vmhgfs", "fuse.vmhgfs-fuse", "prl_fs", "drvfs", "fakeowner", "fuse.grpcfuse"}
)


class FileSystem(NamedTuple):
    """Its name as the system has it, where it begins, and who may have its files open."""

    kind: str
    place: str
    reach: Reach


def file_system(folder: Path) -> FileSystem | None:
    """The file system that `folder` is on, or will be on once it is made; None where the platform does not tell."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "win32":
            return _on_windows(folder)
        whole = str(_nearest(folder).resolve())
        if sys.platform == "darwin":
            told = subprocess.run([_MOUNT], capture_output=True, text=True, timeout=_PATIENCE, check=True)  # noqa: S603 - no input
            return from_mount(told.stdout, whole)
        return from_mountinfo(_TABLE.read_text("utf-8", "surrogateescape"), whole)
    return None


def risk(folder: Path) -> dict[str, str] | None:
    """Why a store in `folder` is at risk, as a problem with a code; None on a disk of this machine."""
    found = file_system(folder)
    if found is None or found.reach == "local":
        return None
    whose = "is a network file system" if found.reach == "network" else "is shared with the host of this machine"
    return {
        "code": CODE,
        "message": f"{folder} is on {found.kind}, which {whose}: a store that two machines use at a time gets damaged",
        "hint": SURROUNDINGS[CODE].hint,
    }


def require_own_disk(folder: Path) -> None:
    """Return unless `folder` is on a network file system.

    Raises: ConfigError.
    """
    found = file_system(folder)
    if found is not None and found.reach == "network":
        raise ConfigError(
            f"home: {folder} is on a network file system ({found.kind}), where a store gets damaged as soon as two"
            " machines use it at a time",
            hint="Put the data folder on a local disk: set AGORA_HOME. If only this machine will ever use it, set"
            " store.network_file_system to allow.",
        )


def from_mountinfo(table: str, path: str) -> FileSystem | None:
    """What Linux's table of mounts says of an absolute path without links."""
    found: FileSystem | None = None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) > 4 and kinds[0]:
            place = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
            # Of several mounts on one place the last hides the others.
            if _within(path, place) and (found is None or len(place) >= len(found.place)):
                found = FileSystem(kinds[0], place, _reach(kinds[0], place))
    return found


def from_mount(table: str, path: str) -> FileSystem | None:
    """What the output of macOS's `mount` says of an absolute path without links."""
    found: FileSystem | None = None
    for match in re.finditer(r"^.* on (/.*) \(([^(),]+)([^()]*)\)$", table, re.MULTILINE):
        place, kind, words = match.groups()
        if _within(path, place) and (found is None or len(place) >= len(found.place)):
            local = "local" in words.split(", ") or kind in {"devfs", "autofs"}
            found = FileSystem(kind, place, "local" if local else "network")
    return found


def _reach(kind: str, place: str) -> Reach:
    if kind in NETWORK:
        return "network"
    # Where the whole system is on such a file system, it is a sandbox with a disk of its own.
    return "guest" if kind in GUEST and place != "/" else "local"


def _within(path: str, place: str) -> bool:
    return place in {"/", path} or path.startswith(place + "/")


def _nearest(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    whole = folder.absolute()
    return next((each for each in (whole, *whole.parents) if each.exists()), whole)


def _on_windows(folder: Path) -> FileSystem | None:
    drive = str(folder.absolute().drive)
    if drive.startswith("\\\\") and not drive.startswith(("\\\\?\\", "\\\\.\\")):
        return FileSystem("network share", drive, "network")
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - only there

        kind = ctypes.windll.kernel32.GetDriveTypeW(drive + "\\")
        return FileSystem("drive", drive, "network" if kind == _REMOTE_DRIVE else "local")
    return None
