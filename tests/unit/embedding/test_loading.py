from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.errors import AgoraError, Cancelled, EmbeddingError, ModelTampered, WarmingUp
from agora.model.deadline import Deadline


class Events:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, dict[str, Any]]] = []

    def debug(self, event: str, **values: Any) -> None:
        self.kept.append((event, values))

    info = warning = debug

    def names(self) -> list[str]:
        return [event for event, _ in self.kept]


def state(encoder: OnnxEncoder) -> str:
    """The state now; a type checker takes a property for a constant."""
    return encoder.state


def run_python(code: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False)


@pytest.fixture
def slow(folder: Path) -> Iterator[tuple[OnnxEncoder, Callable[[], None]]]:
    """An encoder whose model file is a pipe, and the way to let the bytes flow: until then it loads."""
    if sys.platform == "win32":
        pytest.skip("Windows has no named pipes in folders")
    model = folder / "model.onnx"
    data = model.read_bytes()
    model.unlink()
    os.mkfifo(model)
    released = threading.Event()

    def release() -> None:
        if not released.is_set():
            released.set()
            model.write_bytes(data)

    encoder = OnnxEncoder(folder)
    encoder.warm_up()
    yield encoder, release
    release()
    encoder.encode("done", Deadline(60))


def collect(calls: list[Callable[[], object]]) -> list[object]:
    """What each call gives or raises, all started at once."""
    found: list[object] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def call(number: int) -> None:
        start.wait(60)
        try:
            found[number] = calls[number]()
        except AgoraError as error:
            found[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return found


def test_making_an_encoder_imports_no_runtime() -> None:
    done = run_python(
        "import sys\n"
        "from agora.embedding.onnx import OnnxEncoder, packaged_model\n"
        "encoder = OnnxEncoder(packaged_model())\n"
        "encoder.verify()\n"
        "assert encoder.details()['state'] == 'cold'\n"
        "print(sorted({'onnxruntime', 'tokenizers', 'onnx', 'huggingface_hub'} & set(sys.modules)))\n"
    )
    assert (done.returncode, done.stdout.strip()) == (0, b"[]"), done.stderr.decode()


def test_loading_and_encoding_print_nothing() -> None:
    done = run_python(
        "from agora.embedding.onnx import OnnxEncoder, packaged_model\n"
        "from agora.model.deadline import Deadline\n"
        "encoder = OnnxEncoder(packaged_model())\n"
        "encoder.encode('text', Deadline(60))\n"
        "encoder.split('word ' * 1000, Deadline(60))\n"
    )
    assert (done.returncode, done.stdout) == (0, b""), done.stderr.decode()


def test_a_failed_load_prints_nothing_to_stdout(folder: Path, declare: Callable[..., None]) -> None:
    (folder / "model.onnx").write_bytes(b"not a graph")
    declare("model.onnx")
    done = run_python(
        "from pathlib import Path\n"
        "from agora.embedding.onnx import OnnxEncoder\n"
        "from agora.errors import EmbeddingError\n"
        "from agora.model.deadline import Deadline\n"
        "try:\n"
        f"    OnnxEncoder(Path({str(folder)!r})).encode('text', Deadline(60))\n"
        "except EmbeddingError:\n"
        "    raise SystemExit(7)\n"
    )
    assert (done.returncode, done.stdout) == (7, b""), done.stderr.decode()


def test_the_first_call_loads_and_the_state_tells(folder: Path) -> None:
    log = Events()
    encoder = OnnxEncoder(folder, log=log)
    assert state(encoder) == "cold"
    assert encoder.details() == {
        "model": "all-MiniLM-L6-v2-int8",
        "fingerprint": encoder.fingerprint.digest()[:12],
        "state": "cold",
        "dimension": 384,
        "load_seconds": None,
    }
    encoder.encode("text", Deadline(60))
    assert state(encoder) == "ready"
    assert 0 < encoder.details()["load_seconds"] < 60
    assert log.names() == ["model ready"]


def test_eight_first_calls_at_once_load_once() -> None:
    log = Events()
    encoder = OnnxEncoder(packaged_model(), log=log)
    found = collect([lambda: encoder.encode("text", Deadline(60)).tobytes()] * 8)
    assert isinstance(found[0], bytes)
    assert found == [found[0]] * 8
    assert log.names() == ["model ready"]


def test_warm_up_returns_while_the_model_loads(slow: tuple[OnnxEncoder, Callable[[], None]]) -> None:
    encoder, release = slow
    assert state(encoder) == "loading"
    encoder.warm_up()
    release()
    encoder.encode("text", Deadline(60))
    assert state(encoder) == "ready"


@pytest.mark.parametrize("seconds", [0, 0.2])
def test_a_call_without_the_time_to_load_is_told_to_try_again(
    slow: tuple[OnnxEncoder, Callable[[], None]], seconds: float
) -> None:
    encoder, _ = slow
    found = collect(
        [lambda: encoder.encode("text", Deadline(seconds)), lambda: encoder.split("text", Deadline(seconds))] * 2
    )
    assert [type(error) for error in found] == [WarmingUp] * 4
    assert all(isinstance(error, WarmingUp) and error.retryable and error.hint for error in found)


def test_a_call_that_waits_gets_its_answer_when_the_model_is_there(
    slow: tuple[OnnxEncoder, Callable[[], None]],
) -> None:
    encoder, release = slow
    found = collect([lambda: len(encoder.encode("text", Deadline(60))), release])
    assert found[0] == 384


def test_a_call_that_is_cancelled_stops_waiting(slow: tuple[OnnxEncoder, Callable[[], None]]) -> None:
    encoder, _ = slow
    deadline = Deadline(3600)
    found = collect([lambda: encoder.encode("text", deadline), deadline.cancel])
    assert isinstance(found[0], Cancelled)
    assert state(encoder) == "loading"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_load_that_fails_is_told_to_every_waiter_and_to_the_status(
    folder: Path, declare: Callable[..., None], name: str
) -> None:
    # Cut in the middle, with a manifest that agrees: the hash is right and the content is not.
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    declare(name)
    log = Events()
    encoder = OnnxEncoder(folder, log=log)
    encoder.verify()
    found = collect([lambda: encoder.encode("text", Deadline(60)), lambda: encoder.split("text", Deadline(60))] * 3)
    found += collect([lambda: encoder.encode("later", Deadline(60))])
    assert [type(error) for error in found] == [EmbeddingError] * 7
    assert len({id(error) for error in found}) == 7
    for error in found:
        assert isinstance(error, EmbeddingError)
        assert "could not be loaded" in error.message
        assert error.__cause__ is not None
        assert str(error.__cause__) in error.message
        assert error.hint
    assert state(encoder) == "failed"
    assert encoder.details()["error"] == str(found[0])
    assert log.names() == ["model not loaded"]


def test_a_graph_of_another_dimension_than_promised_is_refused(folder: Path, declare: Callable[..., None]) -> None:
    declare(dimension=512)
    with pytest.raises(EmbeddingError, match="512"):
        OnnxEncoder(folder).encode("text", Deadline(60))


def test_what_is_loaded_is_what_was_hashed(folder: Path) -> None:
    encoder = OnnxEncoder(folder)
    encoder.verify()
    # Swapped after the check and before the load.
    (folder / "model.onnx").write_bytes(b"something else")
    with pytest.raises(ModelTampered):
        encoder.encode("text", Deadline(60))


@pytest.mark.parametrize(
    "work",
    [
        pytest.param("encoder.warm_up()\nwait(%s)", id="while it loads"),
        pytest.param(
            "encoder.encode('a', Deadline(60))\n"
            "threading.Thread(target=forever, daemon=True).start()\nstarted.wait(60)\nwait(%s)",
            id="while it encodes",
        ),
    ],
)
@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.15, 0.2])
def test_a_process_that_ends_beside_a_working_thread_ends_with_its_exit_code(work: str, seconds: float) -> None:
    code = (
        "import contextlib, threading\n"
        "from agora.embedding.onnx import OnnxEncoder, packaged_model\n"
        "from agora.errors import Cancelled\n"
        "from agora.model.deadline import Deadline\n"
        "wait, started = threading.Event().wait, threading.Event()\n"
        "encoder = OnnxEncoder(packaged_model())\n"
        "def forever():\n"
        "    started.set()\n"
        "    with contextlib.suppress(Cancelled):\n"
        "        while True:\n"
        "            encoder.encode('word ' * 200, Deadline(60))\n"
        f"{work % seconds}\n"
        "raise SystemExit(7)\n"
    )
    done = run_python(code)
    assert (done.returncode, done.stdout) == (7, b""), done.stderr.decode()


def test_the_manifest_names_the_tools_that_built_the_model() -> None:
    built = json.loads((packaged_model() / "manifest.json").read_text("utf-8"))["built_with"]
    assert set(built) == {"script", "onnx", "onnxruntime", "numpy"}
