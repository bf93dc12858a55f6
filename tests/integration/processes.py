"""The real program for tests: `agora serve` behind pipes, and `agora` on the command line."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

SOURCE = Path(__file__).parents[2] / "src"
AGORA = (sys.executable, "-m", "agora")
PATIENCE = 30.0


def environment(home: Path | None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, with the checkout importable and no setting of Agora but the data folder.

    Each server is a process of its own, which its test sees to: `AGORA_SERVER_SHARED` has to ask for a shared one.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGORA_", "PYTHONUNBUFFERED"))}
    kept |= {"PYTHONPATH": str(SOURCE), "AGORA_SERVER_SHARED": "false"}
    if home is not None:
        kept["AGORA_HOME"] = str(home)
    return kept | dict(extra or {})


def runs(pid: int) -> bool:
    """Whether the process has not ended; one that nobody has asked about yet keeps its number."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def on_a_terminal(home: Path, cwd: Path, *arguments: str) -> tuple[int, str]:
    """Exit status of a command that a person at a terminal runs, and what was shown. Not on Windows."""
    ours, theirs = os.openpty()
    shown: list[bytes] = []

    def read() -> None:
        # The end of a terminal is an error on Linux, an empty read elsewhere.
        try:
            while piece := os.read(ours, 65_536):
                shown.append(piece)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = subprocess.run(
            [*AGORA, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(home),
            cwd=cwd,
            check=False,
            timeout=60,
        )
    finally:
        os.close(theirs)
        reader.join(60)
        os.close(ours)
    return done.returncode, b"".join(shown).decode("utf-8").replace("\r\n", "\n")


class Served:
    """One `agora serve` process and its client: raw JSON lines, each checked to be JSON-RPC."""

    def __init__(
        self, home: Path, errors: Path, cwd: Path, *options: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.home = home
        self.errors = errors
        self.lines: list[bytes] = []
        self._frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._early: dict[object, dict[str, Any]] = {}
        self._ids = 0
        self.started = time.monotonic()
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*AGORA, "serve", *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(home, env),
                cwd=cwd,
                bufsize=0,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with os.fdopen(os.dup(self.stdout.fileno()), "rb") as buffered:
            for line in buffered:
                self.lines.append(line)
                # A line that is none stops this thread: the next answer never comes, and `log` shows why.
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
                self._frames.put(message)
        self._frames.put(None)

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        rest = memoryview((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        while rest:
            rest = rest[self.stdin.write(rest) :]

    def post(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request without waiting for its answer; its id."""
        self._ids += 1
        self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": dict(params or {})})
        return self._ids

    def post_call(self, tool: str, /, **arguments: Any) -> int:
        return self.post("tools/call", {"name": tool, "arguments": arguments})

    def answer(self, request_id: object, seconds: float = PATIENCE) -> dict[str, Any]:
        """The whole answer to a request; other answers that come first are kept."""
        ends = time.monotonic() + seconds
        while request_id not in self._early:
            try:
                frame = self._frames.get(timeout=max(0.0, ends - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no answer to {request_id}\n{self.lines[-3:]}\n{self.log()}") from None
            assert frame is not None, f"the end of output instead of an answer to {request_id}\n{self.log()}"
            self._early[frame.get("id")] = frame
        return self._early.pop(request_id)

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.post(method, params))

    def initialize(self, name: str = "raw") -> dict[str, Any]:
        info = {"name": name, "version": "1"}
        given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        answer: dict[str, Any] = self.request("initialize", given)["result"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def result(self, request_id: int) -> dict[str, Any]:
        """The structured result of a call that worked."""
        answer = self.answer(request_id)
        assert "result" in answer, answer
        assert not answer["result"].get("isError"), answer["result"]
        structured: dict[str, Any] = answer["result"]["structuredContent"]
        return structured

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.result(self.post_call(tool, **arguments))

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error of a call that did not work."""
        answer = self.answer(self.post_call(tool, **arguments))["result"]
        assert answer["isError"] is True, answer
        error: dict[str, Any] = answer["structuredContent"]["error"]
        return error

    def end_input(self) -> tuple[int, float]:
        """Close the input; the exit status, and the seconds it took."""
        began = time.monotonic()
        self.stdin.close()
        return self.process.wait(PATIENCE), time.monotonic() - began

    def signal(self, number: int) -> tuple[int, float]:
        """The exit status after a signal, and the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(PATIENCE), time.monotonic() - began

    def log(self) -> str:
        return self.errors.read_text("utf-8", "replace")

    def wait_for_log(self, words: str) -> None:
        ends = time.monotonic() + PATIENCE
        while words not in self.log():
            assert time.monotonic() < ends, self.log()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)

    def dispose(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)
        with suppress(OSError):
            self.stdin.close()
        self.stdout.close()


Serve = Callable[..., Served]
RunAgora = Callable[..., "subprocess.CompletedProcess[str]"]


def run_command(
    arguments: Sequence[str],
    home: Path,
    cwd: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """One command run to its end; both outputs come back as text."""
    done = subprocess.run(
        [*AGORA, *arguments],
        input=stdin,
        capture_output=True,
        env=environment(home, env),
        cwd=cwd,
        timeout=seconds,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")
    # Windows writes line ends of its own.
    texts = [stream.decode("utf-8").replace("\r\n", "\n") for stream in (done.stdout, done.stderr)]
    return subprocess.CompletedProcess(done.args, done.returncode, *texts)


@contextmanager
def serving(home: Path, project: Path, logs: Path) -> Iterator[Serve]:
    """A way to start servers on one data folder: each shakes hands unless `name` is None; killed at the end."""
    started: list[Served] = []

    def start(*options: str, name: str | None = "raw", cwd: Path = project, **given: Any) -> Served:
        served = Served(given.pop("home", home), logs / f"stderr-{len(started)}.log", cwd, *options, **given)
        started.append(served)
        if name is not None:
            served.initialize(name)
        return served

    try:
        yield start
    finally:
        for served in started:
            served.dispose()
