from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agora.daemon.lock import take
from agora.daemon.place import Place, listen, listen_loopback, persist, run_folder
from agora.errors import StoreUnavailable
from agora.shim.places import ADDRESS, LOCK, RUN, socket_of
from agora.shim.reaching import dial, dial_loopback

posix = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and permissions")


@pytest.fixture
def loopback(tmp_path: Path) -> Iterator[Place]:
    place = listen_loopback(tmp_path)
    yield place
    place.close()


def test_over_loopback_a_client_that_reads_the_file_is_let_in_and_one_that_guesses_is_not(
    loopback: Place, tmp_path: Path
) -> None:
    dialled = dial_loopback(str(tmp_path))
    assert dialled is not None
    sock, token = dialled
    with loopback.sock.accept()[0] as theirs:
        assert loopback.admits(theirs, token)
        for wrong in ("", token[:-1], token.upper(), token + "0", "é"):
            assert not loopback.admits(theirs, wrong)
    sock.close()
    assert loopback.sock.getsockname()[0] == "127.0.0.1"
    assert len(token) == 64


def test_two_servers_over_loopback_have_two_tokens(tmp_path: Path) -> None:
    tokens = []
    for name in ("a", "b"):
        place = listen_loopback(tmp_path / name)
        dialled = dial_loopback(str(tmp_path / name))
        assert dialled is not None
        tokens.append(dialled[1])
        dialled[0].close()
        place.close()
    assert tokens[0] != tokens[1]


@posix
def test_the_file_with_the_token_is_for_its_user_alone_and_goes_with_the_server(
    loopback: Place, tmp_path: Path
) -> None:
    file = tmp_path / RUN / ADDRESS
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    loopback.close()
    assert not file.exists()
    assert dial_loopback(str(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "nonsense", "80", "x y", "\xff\xfe", "99999 token"])
def test_a_file_that_names_no_server_is_as_good_as_none(text: str, tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / ADDRESS).write_bytes(text.encode("latin-1"))
    assert dial_loopback(str(tmp_path)) is None


@posix
def test_a_server_takes_its_own_socket_away_and_not_that_of_the_next_one(tmp_path: Path) -> None:
    first = listen(tmp_path)
    second = listen(tmp_path)
    first.close()
    dialled = dial(str(tmp_path))
    assert dialled is not None
    theirs, _ = second.sock.accept()
    assert second.admits(theirs, "")
    theirs.close()
    dialled[0].close()
    second.close()
    assert not Path(socket_of(str(tmp_path))).exists()


@posix
def test_the_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    os.umask(os.umask(0o022))
    place = listen(tmp_path)
    file = Path(socket_of(str(tmp_path)))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    place.close()


@posix
@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_run_folder_that_others_can_enter_is_refused_with_what_to_do(mode: int, tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN).chmod(mode)
    with pytest.raises(StoreUnavailable) as caught:
        run_folder(tmp_path)
    assert "chmod 700" in (caught.value.hint or "")


@posix
def test_a_run_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / RUN).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable):
        run_folder(tmp_path)


def test_one_lock_at_a_time(tmp_path: Path) -> None:
    first = take(tmp_path / LOCK)
    with pytest.raises(StoreUnavailable):
        take(tmp_path / LOCK)
    first.release()
    first.release()
    take(tmp_path / LOCK).release()


@posix
def test_a_lock_that_was_taken_for_this_process_is_its_own_and_is_inherited_no_further(tmp_path: Path) -> None:
    fd = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(fd, True)  # noqa: FBT003 - as the system has it
    lock = take(tmp_path / LOCK, fd)
    assert not os.get_inheritable(fd)
    with pytest.raises(StoreUnavailable):
        take(tmp_path / LOCK)
    lock.release()
    take(tmp_path / LOCK).release()


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_file_that_somebody_reads_at_this_moment_is_replaced_a_moment_later(times: int) -> None:
    tried = []

    def replace() -> None:
        tried.append(1)
        if len(tried) <= times:
            raise PermissionError

    persist(replace)
    assert len(tried) == times + 1


def test_a_file_that_cannot_be_replaced_is_told_after_a_while() -> None:
    def replace() -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        persist(replace, 0.05)


@posix
@pytest.mark.parametrize("way", ["deleted", "moved", "replaced", "folder moved"])
def test_a_lock_and_a_socket_that_the_next_server_would_not_find_are_noticed(way: str, tmp_path: Path) -> None:
    place, lock = listen(tmp_path), take(tmp_path / RUN / LOCK)
    assert place.is_there()
    assert lock.is_there()
    if way == "folder moved":
        (tmp_path / RUN).rename(tmp_path / "elsewhere")
    else:
        for file in (place.file, lock.path):
            if way == "deleted":
                file.unlink()
            else:
                file.rename(file.with_name("elsewhere"))
                if way == "replaced":
                    file.touch()
    assert not place.is_there()
    assert not lock.is_there()
    lock.release()
    place.close()
    assert (tmp_path / RUN / LOCK).exists() == (way == "replaced")
