"""What a server gets from the process that starts it, which may be any client's child."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agora.shim import places
from agora.shim.starting import BREAKAWAY, breaking_away

SOURCE = Path(places.__file__).parents[2]

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks and signals")

SERVER = """
import json, os, signal, sys
open_ones = []
for name in os.listdir("/dev/fd"):
    try:
        open_ones.append([int(name), os.fstat(int(name)).st_ino])
    except OSError:
        pass  # the one of the list itself
ignored = [int(n) for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN]
blocked = [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
standard = [os.fstat(fd).st_ino for fd in range(3)]
found = {"open": open_ones, "ignored": ignored, "blocked": blocked, "standard": standard, "sid": os.getsid(0)}
found |= {"arguments": sys.argv[1:], "env": {k: v for k, v in os.environ.items() if k.startswith("AGORA_")}}
with open(os.environ["TOLD"] + ".new", "w") as file:
    json.dump(found, file)
os.rename(os.environ["TOLD"] + ".new", os.environ["TOLD"])
"""
"""Stands in for the interpreter: writes down what it got and ends."""


def started(tmp_path: Path, before: str = "", call: str = "start(HOME, {})", **given: Any) -> dict[str, Any]:
    """What a server found that was started by a process which has run `before`; its own words are under `said`."""
    stand_in = tmp_path / "stand-in"
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    stand_in.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "server.py"} "$@"\n', "utf-8")
    stand_in.chmod(0o700)
    home = tmp_path / "home"
    program = (
        "import os, signal, sys, threading, time\n"
        f"sys.path.insert(0, {str(SOURCE)!r})\n"
        "from agora.shim.starting import start\n"
        f"HOME = {str(home)!r}\n"
        f"{textwrap.dedent(before)}\n"
        f"sys.executable = {str(stand_in)!r}\n"
        f"said = {call}\n"
        "until = time.monotonic() + 20\n"
        "while not os.path.exists(os.environ['TOLD']) and time.monotonic() < until: time.sleep(0.01)\n"
        f"open({str(tmp_path / 'said')!r}, 'w').write(repr(said))\n"
    )
    given.setdefault("stderr", subprocess.PIPE)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TOLD": str(tmp_path / "told"), "AGORA_AGENT": "shell"},
        check=False,
        timeout=60,
        **given,
    )
    log = home / "run" / "server.log"
    words = f"{done.stderr!r} {log.read_text('utf-8') if log.exists() else ''}"
    assert done.returncode == 0, words
    assert (tmp_path / "told").exists(), words
    found: dict[str, Any] = json.loads((tmp_path / "told").read_text("utf-8"))
    return {**found, "said": (tmp_path / "said").read_text("utf-8"), "log": log, "home": home}


def check(found: dict[str, Any]) -> None:
    """It has its three standard files, its lock, and nothing else."""
    assert found["said"] == "True"
    log, nothing = found["log"].stat().st_ino, Path(os.devnull).stat().st_ino
    assert found["standard"] == [nothing, log, log]
    lock = (found["home"] / "run" / "server.lock").stat().st_ino
    given = int(found["arguments"][found["arguments"].index("--lock") + 1])
    assert given > 2
    assert [pair for pair in found["open"] if pair[0] > 2] == [[given, lock]]


@posix
def test_a_server_has_its_log_and_its_lock_and_nothing_else_of_whoever_started_it(tmp_path: Path) -> None:
    found = started(
        tmp_path,
        """
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 5000), hard))
        for number in (5, 900, 1500, 2900):
            os.dup2(0, number, inheritable=True)
        """,
    )
    check(found)
    assert found["sid"] != os.getsid(0)


@posix
@pytest.mark.parametrize("closed", [[2], [1], [0], [0, 1, 2], [0, 2]])
def test_whoever_started_it_may_have_standard_files_that_are_closed(closed: list[int], tmp_path: Path) -> None:
    check(started(tmp_path, f"for fd in {closed}: os.close(fd)", stdin=subprocess.DEVNULL, stderr=None))


@posix
def test_signals_that_are_ignored_or_blocked_where_it_is_started_are_not_in_the_server(tmp_path: Path) -> None:
    found = started(
        tmp_path,
        """
        for name in ("SIGCHLD", "SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2, signal.SIGALRM})
        """,
    )
    check(found)
    # Python ignores these two itself.
    assert {*found["ignored"]} <= {13, 25}
    assert found["blocked"] == []


@posix
def test_it_is_started_by_another_thread_than_the_first_too_and_the_starter_keeps_its_own_signals(
    tmp_path: Path,
) -> None:
    found = started(
        tmp_path,
        """
        def in_thread():
            found = []
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            def work():
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
                found.append(start(HOME, {}))
                assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == {signal.SIGUSR2}
                assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
                found.append("kept")
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            return found == [True, "kept"]
        """,
        "in_thread()",
    )
    check(found)
    assert {*found["ignored"]} <= {13, 25}


@posix
def test_a_server_gets_the_environment_that_is_meant_for_it(tmp_path: Path) -> None:
    assert started(tmp_path)["env"] == {"AGORA_AGENT": "shell"}
    (tmp_path / "told").unlink()
    found = started(tmp_path, call="start(HOME, {}, {**os.environ, 'AGORA_AGENT': 'before'})")
    assert found["env"] == {"AGORA_AGENT": "before"}


@posix
def test_a_server_whose_program_is_gone_leaves_a_word_in_its_log(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
        "from agora.shim.starting import start\n"
        f"sys.executable = '/nowhere/python'; start({str(tmp_path)!r}, {{}})\n"
        f"import time; until = time.monotonic() + 20\n"
        f"while not open({str(tmp_path / 'run' / 'server.log')!r}).read() and time.monotonic() < until: pass\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    words = (tmp_path / "run" / "server.log").read_text("utf-8")
    assert "/nowhere/python cannot be started" in words


@pytest.mark.parametrize("allowed", [True, False])
def test_on_windows_a_server_leaves_the_job_of_its_client_if_it_may(allowed: bool) -> None:
    tried = []

    def begin(flags: int) -> None:
        tried.append(flags)
        if flags & BREAKAWAY and not allowed:
            raise PermissionError(5, "Access is denied")

    breaking_away(begin, 8)
    assert tried == ([8 | BREAKAWAY] if allowed else [8 | BREAKAWAY, 8])
