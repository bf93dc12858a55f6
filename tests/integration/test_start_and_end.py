"""How a server refuses to start, and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from tests.integration.processes import RunAgora, Serve, Served
from tests.integration.processes import environment as real_environment

from agora.embedding.onnx import packaged_model

MODEL = "all-MiniLM-L6-v2-int8"
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")


def bad_toml(home: Path) -> dict[str, str]:
    home.mkdir()
    (home / "agora.toml").write_text("[store\n", encoding="utf-8")
    return {}


def unknown_key(home: Path) -> dict[str, str]:
    home.mkdir()
    (home / "agora.toml").write_text("[store]\nsyncronous = 'full'\n", encoding="utf-8")
    return {}


def file_for_home(home: Path) -> dict[str, str]:
    home.write_text("I am no folder", encoding="utf-8")
    return {}


def file_for_home_and_no_log(home: Path) -> dict[str, str]:
    return file_for_home(home) | {"AGORA_LOG_FILE": "false"}


def read_only_home(home: Path) -> dict[str, str]:
    home.mkdir()
    home.chmod(0o500)
    return {"AGORA_LOG_FILE": "false"}


def foreign_store(home: Path) -> dict[str, str]:
    home.mkdir()
    (home / "agora.db").write_bytes(b"not a database at all" * 500)
    return {}


def store_of_another_program(home: Path) -> dict[str, str]:
    home.mkdir()
    with closing(sqlite3.connect(home / "agora.db")) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.commit()
    return {}


def tampered_model(home: Path) -> dict[str, str]:
    folder = home.parent / MODEL
    shutil.copytree(packaged_model(MODEL), folder)
    model = folder / "model.onnx"
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    model.write_bytes(data)
    return {"AGORA_EMBEDDING_MODEL": str(folder)}


def missing_model(home: Path) -> dict[str, str]:
    return {"AGORA_EMBEDDING_MODEL": str(home.parent / "nowhere")}


def environment(**given: str) -> Callable[[Path], dict[str, str]]:
    return lambda _home: given


START_ERRORS: dict[str, tuple[Callable[[Path], dict[str, str]], int, str, str]] = {
    "a file that is no TOML": (bad_toml, 2, "agora.toml:1: is no valid TOML", "quotes"),
    "a key that does not exist": (unknown_key, 2, "agora.toml:2: unknown setting", "Did you mean store.synchronous?"),
    "a variable that does not exist": (
        environment(AGORA_LOG_LEVL="debug"),
        2,
        "unknown environment variable AGORA_LOG_LEVL",
        "Did you mean AGORA_LOG_LEVEL?",
    ),
    "a value that cannot be": (
        environment(AGORA_STORE_READERS="many"),
        2,
        "AGORA_STORE_READERS: store.readers cannot be 'many'",
        "agora config",
    ),
    "a configuration file that is not there": (
        environment(AGORA_CONFIG="/nowhere/agora.toml"),
        2,
        "cannot be read",
        "AGORA_CONFIG",
    ),
    "a file in place of the data folder": (file_for_home, 2, "cannot be made", "AGORA_HOME"),
    "a file in place of the data folder, without a log": (
        file_for_home_and_no_log,
        1,
        "data folder",
        "AGORA_HOME",
    ),
    "a data folder that cannot be written": (read_only_home, 1, "cannot be used", "writable"),
    "a store that is no database": (foreign_store, 1, "agora.db", ""),
    "a database of another program": (store_of_another_program, 1, "not a store of Agora", "AGORA_HOME"),
    "a model file that somebody changed": (tampered_model, 1, "model.onnx", ""),
    "a model that is not there": (missing_model, 1, "nowhere", ""),
}


@pytest.mark.parametrize("name", START_ERRORS)
def test_a_start_that_cannot_work_ends_with_one_clear_line(run_agora: RunAgora, home: Path, name: str) -> None:
    prepare, status, words, hint = START_ERRORS[name]
    if prepare is read_only_home and (sys.platform == "win32" or os.geteuid() == 0):
        pytest.skip("for this user every folder can be written")
    done = run_agora("serve", env=prepare(home))
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("agora: ")
    assert words in lines[0]
    assert len(lines) <= 2, lines
    assert hint in "".join(lines[1:])
    assert hint or len(lines) == 2, "every error says what to do"


def test_an_invalid_option_of_serve_leaves_stdout_to_the_protocol(run_agora: RunAgora) -> None:
    for given in (["--namespace", "two words"], ["--nmespace", "x"]):
        done = run_agora("serve", *given)
        assert (done.returncode, done.stdout) == (2, "")
        assert "namespace" in done.stderr


def acknowledged(server: Served, count: int = 3) -> list[str]:
    return [server.call("agora_save", content=f"kept {n}")["id"] for n in range(count)]


def stored(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "agora.db")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {row[0] for row in store.execute("SELECT public_id FROM items")}


def test_the_end_of_input_ends_the_process_and_nothing_acknowledged_is_lost(serve: Serve, home: Path) -> None:
    server = serve()
    ids = acknowledged(server)
    status, seconds = server.end_input()
    assert status == 0
    assert seconds < 2
    assert set(ids) <= stored(home)
    assert "Traceback" not in server.log()


@needs_signals
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_process_and_nothing_acknowledged_is_lost(serve: Serve, home: Path, name: str) -> None:
    server = serve()
    ids = acknowledged(server)
    status, seconds = server.signal(getattr(signal, name))
    assert status == 0
    assert seconds < 2
    assert set(ids) <= stored(home)
    assert "Traceback" not in server.log()


def test_saves_that_were_on_their_way_at_the_end_are_answered_if_they_are_there(serve: Serve, home: Path) -> None:
    server = serve()
    acknowledged(server, 1)
    posted = [server.post_call("agora_save", content=f"on its way {n}") for n in range(10)]
    status, seconds = server.end_input()
    assert (status, seconds < 2) == (0, True)
    answered = set()
    for request in posted:
        answer = server.answer(request)
        if "result" in answer and not answer["result"]["isError"]:
            answered.add(answer["result"]["structuredContent"]["id"])
    assert answered <= stored(home)
    assert len(answered) == 10, "ten saves fit into the drain"


def test_an_empty_input_ends_a_server_at_once_with_status_0(run_agora: RunAgora) -> None:
    done = run_agora("serve", env={"AGORA_LOG_LEVEL": "warning"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


CLIENT = """
import subprocess, sys, time
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
server = subprocess.Popen([sys.executable, "-m", "agora", "serve"], **pipes)
server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n')
server.stdin.flush()
server.stdout.readline()
print(server.pid, flush=True)
time.sleep(60)
"""


@needs_signals
def test_a_server_does_not_outlive_its_killed_client(home: Path, project: Path) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT],
        stdout=subprocess.PIPE,
        cwd=project,
        env=real_environment(home),
        stderr=subprocess.DEVNULL,
    )
    assert client.stdout is not None
    with client.stdout:
        server = psutil.Process(int(client.stdout.readline()))
        client.kill()
        client.wait()
        server.wait(5)
    assert not server.is_running()
