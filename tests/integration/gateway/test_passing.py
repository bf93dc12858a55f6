"""Progress, cancellation and many calls at the same time, over every transport and in both eras of the protocol."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.integration.clients import PATIENCE, Era
from tests.integration.gateway.rig import (
    WAYS,
    Agent,
    Way,
    agent,
    configure,
    count,
    end_shared,
    eventually,
    table,
    text,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the backend knows signals alone")

CALLS = 20


@pytest.fixture(scope="module", params=[f"{way}-{era}" for way in WAYS for era in ("auto", "legacy")])
def ann(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent with one backend."""
    way, era = request.param.split("-")
    home = tmp_path_factory.mktemp("home")
    configure(home, table("one", concurrency=CALLS))
    with agent(cast("Way", way), home, cast("Era", era)) as connected:
        yield connected
    end_shared(home)


def test_progress_of_a_backend_reaches_the_client_in_its_order_before_the_answer(ann: Agent) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None = None, message: str | None = None) -> None:
        if message and message.startswith("step"):
            told.append((progress, total, message))

    # The answer comes right after the last step: often enough for one to overtake the other.
    for _ in range(10):
        told.clear()
        given = {"target": "one", "tool": "progress", "arguments": {"text": "done"}}
        result = ann.portal.call(ann.client.call_tool, "agora_route", given, PATIENCE, on_progress)
        assert not result.is_error, result
        assert told == [(step, 3, f"step {step}") for step in (1, 2, 3)]


def test_a_flood_of_progress_holds_up_nobody_and_ends_with_the_last(ann: Agent) -> None:
    told: list[float] = []

    async def on_progress(progress: float, total: float | None = None, message: str | None = None) -> None:
        del total
        if message and message.startswith("step"):
            told.append(progress)

    steps = 5_000
    given = {"target": "one", "tool": "progress", "arguments": {"text": "done", "steps": steps}}
    pending = ann.portal.start_task_soon(ann.client.call_tool, "agora_route", given, PATIENCE, on_progress)
    assert ann.backends()["one"]["state"] == "running"
    assert not pending.result(PATIENCE).is_error
    assert told == sorted(told)
    assert (told[-1], len(set(told))) == (steps, len(told))


@pytest.mark.parametrize("name", ["append", "read_marked"])
def test_a_call_that_its_client_takes_back_is_taken_back_from_the_backend(
    ann: Agent, tmp_path: Path, name: str
) -> None:
    file, before = tmp_path / "calls", ann.pid("one")
    told = len(ann.route("one", "cancelled")["structured"]["ids"])
    pending = ann.begin("one", name, path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    assert pending.cancel()
    eventually(lambda: len(ann.route("one", "cancelled")["structured"]["ids"]) == told + 1, "the backend is told")
    assert ann.backends()["one"]["health"] == "healthy"
    assert text(ann.route("one", "echo", text="next")) == "next"
    assert (ann.pid("one"), count(file)) == (before, 1)


def test_twenty_calls_of_one_client_run_at_the_same_time(ann: Agent) -> None:
    # The backend answers none of them before all are there.
    pending = [ann.begin("one", "together", wanted=CALLS) for _ in range(CALLS)]
    for each in pending:
        found = each.result(PATIENCE).structured_content
        assert isinstance(found, dict)
        assert found["structured"]["most"] == CALLS
