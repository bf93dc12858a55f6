"""What kind of file system a folder is on, told from what each platform says of its mounts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agora.stores.sqlite.environment import FileSystem, file_system, from_mount, from_mountinfo

LINUX = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /proc rw - proc proc rw
41 22 0:40 / /home rw,relatime shared:9 - nfs4 server:/home rw,vers=4.2
42 41 0:41 / /home/you/local\040disk rw - xfs /dev/sdb1 rw
43 22 0:42 / /mnt/c rw - 9p drvfs rw
44 22 0:43 / /srv/share rw - cifs //server/share rw
45 44 0:44 / /srv/share rw - tmpfs tmpfs rw
46 22 0:45 / /media/ssh rw,user_id=1000 - fuse.sshfs ann@server: rw
47 22 0:46 / /media/usb rw - fuseblk /dev/sdc1 rw
48 22 0:47 / /homestead rw - ext4 /dev/sdd1 rw
"""

MAC = """
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
devfs on /dev (devfs, local, nobrowse)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse, protect)
map auto_home on /System/Volumes/Data/home (autofs, automounted, nobrowse)
//ann@server/share on /Volumes/My Share (smbfs, nodev, nosuid, mounted by ann)
server:/export on /Volumes/nfs (nfs, nodev, nosuid, mounted by ann)
/dev/disk4s1 on /Volumes/USB (msdos, local, nodev, nosuid, noowners)
"""


@pytest.mark.parametrize(
    ("path", "kind", "reach"),
    [
        ("/var/lib", "ext4", "local"),
        ("/home/you/.local/share/agora", "nfs4", "network"),
        ("/home", "nfs4", "network"),
        ("/homestead/x", "ext4", "local"),
        ("/home/you/local disk/agora", "xfs", "local"),
        ("/mnt/c/Users/you", "9p", "guest"),
        ("/srv/share/agora", "tmpfs", "local"),
        ("/media/ssh", "fuse.sshfs", "network"),
        ("/media/usb/x", "fuseblk", "local"),
    ],
)
def test_on_linux_the_innermost_mount_decides(path: str, kind: str, reach: str) -> None:
    found = from_mountinfo(LINUX, path)
    assert found is not None
    assert (found.kind, found.reach) == (kind, reach)


def test_a_system_that_is_wholly_on_a_shared_file_system_has_it_for_itself() -> None:
    assert from_mountinfo("1 0 0:1 / / rw - 9p none rw", "/root") == FileSystem("9p", "/", "local")
    found = from_mountinfo("1 0 0:1 / / rw - nfs server:/x rw", "/root")
    assert found == FileSystem("nfs", "/", "network")


@pytest.mark.parametrize(
    ("path", "kind", "reach"),
    [
        ("/Users/you", "apfs", "local"),
        ("/Volumes/My Share/agora", "smbfs", "network"),
        ("/Volumes/nfs/agora", "nfs", "network"),
        ("/Volumes/USB", "msdos", "local"),
        ("/System/Volumes/Data/home/you", "autofs", "local"),
    ],
)
def test_on_macos_what_is_not_local_is_on_the_network(path: str, kind: str, reach: str) -> None:
    found = from_mount(MAC, path)
    assert found is not None
    assert (found.kind, found.reach) == (kind, reach)


@pytest.mark.parametrize("table", ["", "nonsense\n\n - \n", "1 2 3 - ext4"])
def test_a_table_that_tells_nothing_says_nothing(table: str) -> None:
    assert from_mountinfo(table, "/home") is None
    assert from_mount(table, "/home") is None


def test_this_machine_knows_its_own_and_that_of_a_folder_to_come(tmp_path: Path) -> None:
    found = file_system(tmp_path)
    if sys.platform in {"linux", "darwin", "win32"}:
        assert found is not None
        assert found.kind
    assert file_system(tmp_path / "not" / "yet" / "there") == found
