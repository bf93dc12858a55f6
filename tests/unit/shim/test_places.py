from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agora.config.load import load_settings
from agora.daemon import hello as daemon_hello
from agora.errors import AgoraError
from agora.shim import places, reaching
from agora.shim.arguments import parse

posix = pytest.mark.skipif(sys.platform == "win32", reason="the default folder there is the system's to tell")


@posix
@pytest.mark.parametrize(
    ("options", "env"),
    [
        ({}, {}),
        ({}, {"XDG_DATA_HOME": "/srv/data"}),
        ({}, {"XDG_DATA_HOME": "  "}),
        ({}, {"AGORA_HOME": "/srv/agora"}),
        ({}, {"AGORA_HOME": "~/notes"}),
        ({}, {"AGORA_HOME": "notes/../here"}),
        ({}, {"AGORA_HOME": "  "}),
        ({"home": "there"}, {"AGORA_HOME": "/srv/agora"}),
        ({"home": "~"}, {}),
    ],
)
def test_the_data_folder_is_the_one_that_the_settings_have(
    options: dict[str, str], env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [*os.environ]:
        if name.startswith(("AGORA_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert places.home_of(options, dict(os.environ)) == str(load_settings(options).settings.home)


def test_a_file_that_may_name_another_folder_or_switch_sharing_off_is_left_to_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.toml"
    file.write_text("home = 'there'\n", "utf-8")
    with pytest.raises(places.Unclear):
        places.home_of({"config": str(file)}, {})
    assert places.home_of({"config": str(file), "home": str(tmp_path)}, {}) == str(tmp_path)
    (tmp_path / "agora.toml").write_text("[server]\nshared = false\n", "utf-8")
    with pytest.raises(places.Unclear):
        places.home_of({"home": str(tmp_path)}, {})
    # What the environment says goes before the file.
    assert places.home_of({"home": str(tmp_path)}, {"AGORA_SERVER_SHARED": "yes"}) == str(tmp_path)


@pytest.mark.parametrize(
    "value", ["true", "TRUE", "1", "yes", "on", "y", "t", "false", "0", "no", "off", "n", "f", "2"]
)
def test_what_switches_sharing_off_is_what_the_settings_take_for_that(value: str, tmp_path: Path) -> None:
    env = {"AGORA_SERVER_SHARED": value, "AGORA_HOME": str(tmp_path)}
    try:
        wanted = load_settings({}, env).settings.server.shared
    except AgoraError:
        wanted = False
    try:
        found = bool(places.home_of({}, env))
    except places.Unclear:
        found = False
    assert found == wanted


@posix
@pytest.mark.parametrize("descriptors", ["/proc/self/fd", "/nowhere"])
@pytest.mark.parametrize("length", [10, 80, 90, 120, 250])
def test_a_socket_is_reached_by_a_name_that_every_system_takes_however_long_its_path_is(
    length: int, descriptors: str, tmp_path: Path
) -> None:
    folder = tmp_path / ("x" * length)
    folder.mkdir()
    path = str(folder / "server.sock")
    here = Path.cwd()
    names = []

    def use(name: str) -> None:
        names.append(name)
        assert len(os.fsencode(name)) <= places.LONGEST
        Path(name).touch()

    places.by_short_path(path, use, descriptors)
    assert [each.name for each in folder.iterdir()] == ["server.sock"]
    assert Path.cwd() == here
    assert (names == [path]) == (len(os.fsencode(path)) <= places.LONGEST)


@posix
@pytest.mark.parametrize("there", ["/proc/self/fd", "/nowhere"])
@pytest.mark.parametrize("here", ["/proc/self/fd", "/nowhere"])
def test_both_ends_of_a_socket_with_a_long_path_meet_whichever_way_each_reaches_it(
    there: str, here: str, tmp_path: Path
) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    path = str(folder / "server.sock")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        places.by_short_path(path, listening.bind, there)
        listening.listen()
        places.by_short_path(path, client.connect, here)
        client.sendall(b"x")
        theirs, _ = listening.accept()
        with theirs:
            assert theirs.recv(1) == b"x"


@posix
def test_a_long_path_without_its_folder_is_told_as_a_short_one_is(tmp_path: Path) -> None:
    for descriptors in ("/proc/self/fd", "/nowhere"):
        with pytest.raises(FileNotFoundError):
            places.by_short_path(str(tmp_path / ("x" * 200) / "server.sock"), print, descriptors)


@posix
def test_where_the_socket_is_depends_on_the_data_folder_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    home = "/" + "x" * 200
    found = set()
    for value in ("", "/run/user/7", "/elsewhere"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        found.add(places.socket_of(home))
    assert found == {f"{home}/run/server.sock"}


def test_both_sides_speak_the_same_version() -> None:
    assert reaching.PROTOCOL == daemon_hello.PROTOCOL


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ({}, False)),
        (["--in-process"], ({}, True)),
        (["--namespace", "a/b", "--agent=me"], ({"namespace.default": "a/b", "agent": "me"}, False)),
        (
            ["-n", "a", "--home", "/x", "--config=c.toml"],
            ({"namespace.default": "a", "home": "/x", "config": "c.toml"}, False),
        ),
        (["--http", "127.0.0.1:0"], None),
        (["--help"], None),
        (["--namespace"], None),
        (["--agent="], None),
        (["--agent", "a", "--agent", "b"], None),
        (["extra"], None),
        (["-n=a"], None),
    ],
)
def test_the_arguments_of_serve_are_read_or_left_to_the_command_line(
    arguments: list[str], found: tuple[dict[str, str], bool] | None
) -> None:
    assert parse(arguments) == found


def test_a_session_imports_nothing_but_what_it_needs() -> None:
    """The start of every agent's session: see docs/shared-server.md."""
    program = (
        "import os, sys; before = set(sys.modules)\n"
        "import agora.__main__, agora.shim.arguments, agora.shim.session\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(Path(places.__file__).parents[2])!r})\n{program}",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = {name.strip(" '[]\n") for name in done.stdout.split(",")}
    allowed = {"_json", "_signal", "_socket", "__future__"}
    assert {name for name in found if not name.startswith("agora")} <= allowed
    assert {name for name in found if name.startswith("agora") and not name.startswith("agora.shim")} == {
        "agora",
        "agora.__main__",
    }
