"""Backends that stay though they serve no more: they are ended with all they started, and the next call gets a new one.

That takes 2.4 seconds each: they ignore SIGTERM. The shared server stands for all.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import pytest
from tests.integration.backends.heard import alive, put_down
from tests.integration.gateway.rig import (
    AT_ONCE,
    PATIENCE,
    Agent,
    agent,
    configure,
    end_shared,
    eventually,
    table,
    text,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the backend knows signals alone")


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent, and a backend for each fault."""
    home = tmp_path_factory.mktemp("home")
    configure(home, *(table(name) for name in ("closed", "input", "left")), table("deaf", timeout=1.5))
    with agent("shared", home) as connected:
        yield connected
    end_shared(home)


def works(ann: Agent, backend: str) -> None:
    assert text(ann.route(backend, "echo", text="still here")) == "still here"


def test_a_backend_that_closes_its_output_is_replaced(ann: Agent) -> None:
    before = ann.pid("closed")
    began = time.monotonic()
    assert ann.fails("closed", "close_output")["code"] == "outcome_unknown"
    assert time.monotonic() - began < AT_ONCE
    works(ann, "closed")
    assert ann.pid("closed") != before


def test_a_backend_that_closes_its_input_is_replaced(ann: Agent) -> None:
    before = ann.pid("input")
    ann.route("input", "close_input")
    # Nothing that it reads is sent to it any more: the next call goes to a new one.
    works(ann, "input")
    assert ann.pid("input") != before


def test_a_backend_that_reads_no_more_holds_up_nobody(ann: Agent) -> None:
    ann.route("deaf", "stop_reading")
    big = "y" * 3_000_000
    began = time.monotonic()
    error = ann.fails("deaf", "append", path=os.devnull, text=big)
    assert time.monotonic() - began < PATIENCE
    # Half of it may be in the pipe.
    assert error["code"] == "outcome_unknown"
    works(ann, "deaf")


def test_what_a_backend_started_ends_with_it(ann: Agent) -> None:
    pids = ann.route("left", "grandchildren")["structured"]["pids"]
    try:
        assert ann.fails("left", "die")["code"] == "outcome_unknown"
        # Its children ignore SIGTERM and are killed with its process group.
        eventually(lambda: not alive(pids), f"{pids} are gone")
        works(ann, "left")
    finally:
        put_down(pids)
