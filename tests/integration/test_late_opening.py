"""A server answers its client's first messages before it opens the store, and tells what stands against that."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from tests.integration.processes import RunAgora, Serve, environment


def test_what_a_server_needs_to_be_spoken_to_imports_neither_numpy_nor_the_adapters_nor_structlog(home: Path) -> None:
    program = (
        "import sys, agora.cli.quick, agora.cli.serve_stdio, agora.app.agora, agora.protocol.server,"
        " agora.transport.serve, agora.config.logs, agora.config.load\n"
        "loaded = agora.config.load.load_settings()\n"
        "agora.config.logs.configure_logging(loaded.settings)\n"
        "opened = agora.app.agora.Agora(loaded, late=True)\n"
        "opened.services()\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('numpy', 'structlog', 'onnxruntime', 'typer')"
        " or name.startswith(('agora.stores', 'agora.embedding'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(home), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_store_that_cannot_be_opened_fails_every_call_with_the_reason_and_works_once_it_is_put_right(
    serve: Serve, home: Path, run_agora: RunAgora
) -> None:
    kept = home.parent / "kept.db"
    assert run_agora("save", "The kettle in the lab needs a new fuse.").returncode == 0
    shutil.copy(home / "agora.db", kept)
    for log in home.glob("agora.db-*"):
        log.unlink()
    (home / "agora.db").unlink()
    with closing(sqlite3.connect(home / "agora.db")) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.commit()

    server = serve()
    refused = server.refused("agora_query", query="kettle")
    assert (refused["code"], "not a store of Agora" in refused["message"]) == ("store_corrupt", True)
    assert refused["hint"]
    status = server.call("agora_status")
    assert status["health"] == "degraded"
    assert [problem["code"] for problem in status["problems"]] == ["store_corrupt"]
    server.wait_for_log("the store is not open")

    shutil.copy(kept, home / "agora.db")
    found = server.call("agora_query", query="kettle fuse")
    assert [hit["content"] for hit in found["results"]] == ["The kettle in the lab needs a new fuse."]
    assert server.end_input()[0] == 0


def test_a_server_opens_its_store_by_itself_though_no_call_needs_it_yet(serve: Serve) -> None:
    server = serve()
    assert server.request("tools/list")["result"]["tools"]
    server.wait_for_log("ready")
    assert server.call("agora_status")["health"] == "ok"


def test_a_client_that_goes_at_whatever_moment_of_the_opening_leaves_no_process(serve: Serve) -> None:
    pause = threading.Event()
    for number in range(12):
        server = serve()
        # From before the opening, through the imports, to after the load of the model.
        pause.wait(0.05 * number)
        status, seconds = server.end_input()
        assert (status, seconds < 5) == (0, True), number
