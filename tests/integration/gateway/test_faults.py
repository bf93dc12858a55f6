"""What an agent sees of each fault of a backend, over every transport, and how its next call fares."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.gateway.rig import (
    AT_ONCE,
    PATIENCE,
    WAYS,
    Agent,
    agent,
    configure,
    count,
    end_shared,
    error_of,
    eventually,
    table,
    text,
    written,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the backend knows signals alone")

FAULTS = ("die", "junk", "utf8", "late", "big", "ids", "noisy", "refusing", "half", "killed")


@pytest.fixture(scope="module", params=WAYS)
def ann(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent, and a backend for each fault: none suffers for another's."""
    home = tmp_path_factory.mktemp("home")
    configure(
        home,
        *(table(name, **({"timeout": 0.5} if name == "late" else {})) for name in FAULTS),
        table("banner", "banner", "noisy"),
        table("gone", "exit"),
        table("mute", "mute", start_timeout=0.5),
        written("missing", command="no-such-program-of-agora"),
        written("variable", command=sys.executable, args=["${AGORA_TEST_NOT_SET}"]),
    )
    with agent(request.param, home) as connected:
        yield connected
    end_shared(home)


def works(ann: Agent, backend: str) -> None:
    assert text(ann.route(backend, "echo", text="still here")) == "still here"


@pytest.mark.parametrize("how", [{"status": 3}, {"signal": 9}, {"signal": 11}])
def test_a_backend_that_dies_in_a_call_is_told_within_a_second_and_the_next_call_works(
    ann: Agent, how: dict[str, int]
) -> None:
    before = ann.pid("die")
    began = time.monotonic()
    error = ann.fails("die", "die", words="the disk is full", **how)
    assert time.monotonic() - began < AT_ONCE
    assert (error["code"], error["backend"]) == ("outcome_unknown", "die")
    assert "the disk is full" in error["message"], "its last words say why"
    works(ann, "die")
    assert ann.pid("die") != before


def test_half_an_answer_is_none(ann: Agent) -> None:
    assert ann.fails("half", "half")["code"] == "outcome_unknown"
    works(ann, "half")


def test_junk_on_its_output_disturbs_no_call(ann: Agent) -> None:
    before = ann.pid("junk")
    assert text(ann.route("junk", "junk", text="all the same")) == "all the same"
    works(ann, "junk")
    assert ann.pid("junk") == before
    works(ann, "banner")


def test_bytes_that_are_no_utf8_are_replaced(ann: Agent) -> None:
    before = ann.pid("utf8")
    said = text(ann.route("utf8", "invalid_utf8"))
    assert said.startswith("before\ufffd")
    assert said.endswith("after")
    works(ann, "utf8")
    assert ann.pid("utf8") == before


def test_a_reading_call_that_is_late_is_a_timeout_and_the_backend_is_told(ann: Agent) -> None:
    before = ann.pid("late")
    error = ann.fails("late", "late", seconds=100)
    assert (error["code"], error["retryable"]) == ("backend_timeout", True)
    assert "0.5 s" in error["message"]
    assert ann.route("late", "cancelled")["structured"]["ids"]
    works(ann, "late")
    assert ann.pid("late") == before, "one late answer is no reason to end it"


def test_a_changing_call_that_is_late_has_an_unknown_outcome_and_the_backend_is_told(ann: Agent) -> None:
    told = len(ann.route("late", "cancelled")["structured"]["ids"])
    error = ann.fails("late", "never")
    assert (error["code"], error["backend"]) == ("outcome_unknown", "late")
    assert len(ann.route("late", "cancelled")["structured"]["ids"]) == told + 1
    works(ann, "late")


def test_five_megabytes_are_cut_and_every_byte_of_them_can_be_read(ann: Agent) -> None:
    size = 5_000_000
    found = ann.route("big", "big", size=size)
    cut = found["cut"]
    shown = text(found)
    assert (cut["bytes"], cut["shown_bytes"], len(shown)) == (size, len(shown), 50_000)
    pieces, place, reads = [shown], cut["next"], 0
    while place is not None:
        [row] = ann.call("agora_get", ids=[place])["results"]
        assert row["from"] == sum(map(len, pieces))
        pieces.append(row["text"])
        place, reads = row.get("next"), reads + 1
    assert "".join(pieces) == "x" * size
    assert reads == size // 50_000 - 1
    works(ann, "big")


def test_answers_to_nothing_that_was_asked_disturb_no_call(ann: Agent) -> None:
    before = ann.pid("ids")
    assert text(ann.route("ids", "wrong_id", text="the right one")) == "the right one"
    assert text(ann.route("ids", "twice", text="the first")) == "the first"
    assert text(ann.route("ids", "ask", text="asked back", method="roots/list")) == "asked back"
    assert ann.pid("ids") == before
    works(ann, "ids")


def test_noise_on_its_error_output_holds_up_no_call(ann: Agent) -> None:
    before = ann.pid("noisy")
    assert text(ann.route("noisy", "noise", text="loud")) == "loud"
    works(ann, "noisy")
    assert ann.pid("noisy") == before


def test_an_error_of_the_backend_is_passed_on(ann: Agent) -> None:
    error = ann.fails("refusing", "fail", code=-32050)
    assert (error["code"], error["number"], error["data"]) == ("backend_refused", -32050, '{"why": "because"}')
    found = ann.route("refusing", "fail", tool=True)
    assert (found["is_error"], text(found)) == (True, "it did not work")
    assert ann.backends()["refusing"]["health"] == "healthy", "who answers works"


def test_a_backend_that_ends_at_its_start_says_why_and_is_left_alone_after_three_times(ann: Agent) -> None:
    for _ in range(3):
        began = time.monotonic()
        error = ann.fails("gone", "echo")
        assert time.monotonic() - began < AT_ONCE
        assert error["code"] == "backend_unavailable"
        assert "the configuration is missing" in error["message"]
    error = ann.fails("gone", "echo")
    assert "3 times in a row" in error["message"]
    row = ann.backends()["gone"]
    assert (row["health"], row["breaker"], row["state"]) == ("dead", "open", "stopped")


def test_a_backend_that_never_shakes_hands_is_a_timeout_that_names_the_setting(ann: Agent) -> None:
    error = ann.fails("mute", "echo")
    assert error["code"] == "backend_unavailable"
    assert "0.5 s" in error["message"]
    assert "start_timeout" in error["hint"]


def test_a_program_that_is_not_there_is_named(ann: Agent) -> None:
    error = ann.fails("missing", "echo")
    assert error["code"] == "backend_unavailable"
    assert "no-such-program-of-agora" in error["message"]


def test_a_variable_that_is_not_set_is_named_with_its_key_and_others_work(ann: Agent) -> None:
    error = ann.fails("variable", "echo")
    assert error["code"] == "config_error"
    assert "AGORA_TEST_NOT_SET" in error["message"]
    assert "args" in error["message"]
    works(ann, "big")
    row = ann.backends()["variable"]
    assert row["state"] == "stopped"


def test_a_reading_call_whose_backend_is_killed_is_made_again_and_nobody_sees_it(ann: Agent, tmp_path: Path) -> None:
    file, before = tmp_path / "calls", ann.pid("killed")
    pending = ann.begin("killed", "read_marked", path=str(file), then="late", seconds=0.5, text="read")
    eventually(lambda: count(file) == 1, "it is being read")
    os.kill(before, signal.SIGKILL)
    result = pending.result(PATIENCE)
    assert not result.is_error, result
    found = result.structured_content or {}
    assert (text(found), found["attempts"], count(file)) == ("read", 2, 2)
    assert ann.pid("killed") != before


def test_a_changing_call_whose_backend_is_killed_is_made_once(ann: Agent, tmp_path: Path) -> None:
    file, before = tmp_path / "calls", ann.pid("killed")
    pending = ann.begin("killed", "append", path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    began = time.monotonic()
    os.kill(before, signal.SIGKILL)
    error = error_of(pending.result(PATIENCE))
    assert time.monotonic() - began < AT_ONCE
    assert (error["code"], error["backend"]) == ("outcome_unknown", "killed")
    assert "SIGKILL" in error["message"]
    assert "again" in error["hint"]
    works(ann, "killed")
    assert count(file) == 1


@pytest.mark.parametrize(("name", "made"), [("append", 1), ("read_marked", 2)])
def test_many_calls_at_once_whose_backend_is_killed_are_one_failure(
    ann: Agent, tmp_path: Path, name: str, made: int
) -> None:
    files = [tmp_path / f"calls-{number}" for number in range(10)]
    before = ann.pid("killed")
    pending = [ann.begin("killed", name, path=str(file), then="late", seconds=1.0) for file in files]
    eventually(lambda: all(map(count, files)), "all of them are called")
    os.kill(before, signal.SIGKILL)
    results = [each.result(PATIENCE) for each in pending]
    if name == "append":
        assert {error_of(each)["code"] for each in results} == {"outcome_unknown"}
    else:
        assert not [each for each in results if each.is_error], "each is made again by itself"
    # It is not left alone: it has failed once.
    works(ann, "killed")
    assert {count(file) for file in files} == {made}


def test_a_backend_that_was_killed_between_two_calls_is_not_noticed(ann: Agent, tmp_path: Path) -> None:
    before, file = ann.pid("killed"), tmp_path / "calls"
    os.kill(before, signal.SIGKILL)
    eventually(lambda: ann.backends()["killed"]["state"] == "stopped", "its end is known")
    # Also a call that changes something: it was not sent.
    ann.route("killed", "append", path=str(file))
    assert count(file) == 1


def test_a_changing_call_that_outlasts_the_servers_own_limit_has_an_unknown_outcome(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "calls"
    configure(home, table("one"))
    with agent("alone", home, settings={"limits.call_seconds": 2}) as bob:
        # The first call opens the store and starts the backend.
        eventually(lambda: not bob.result("agora_route", {"target": "one", "tool": "echo"}).is_error, "it has started")
        error = bob.fails("one", "append", path=str(file), then="never")
        # Not `deadline_exceeded`, which says that trying again may help.
        assert (error["code"], error["retryable"], count(file)) == ("outcome_unknown", False, 1)
        assert bob.route("one", "cancelled")["structured"]["ids"], "the backend is told"
