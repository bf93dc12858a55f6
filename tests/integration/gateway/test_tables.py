"""A file of backends that changes while a server serves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.backends.heard import alive
from tests.integration.gateway.rig import Agent, agent, configure, count, eventually, table, text, written

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the backend knows signals alone")


@pytest.fixture(params=["alone", "shared"])
def ann(request: pytest.FixtureRequest, home: Path) -> Iterator[Agent]:
    """An agent whose server has one backend to begin with."""
    configure(home, table("one"))
    with agent(request.param, home) as connected:
        yield connected


def test_a_file_that_changes_is_taken_up_by_the_next_call(ann: Agent, home: Path, tmp_path: Path) -> None:
    first = ann.pid("one")
    # Added.
    configure(home, table("one"), table("two"))
    second = ann.pid("two")
    assert ann.pid("one") == first, "whose table is the same goes on"
    # Another setting of the same program: nothing is started anew for it.
    file = tmp_path / "calls"
    ann.route("one", "append", path=str(file))
    configure(home, table("one", read_only=True), table("two"))
    error = ann.fails("one", "append", path=str(file))
    assert (error["code"], count(file)) == ("read_only_backend", 1)
    assert (ann.backends()["one"]["read_only"], ann.pid("one")) == (True, first)
    configure(home, table("one"), table("two"))
    ann.route("one", "append", path=str(file))
    assert (ann.pid("one"), count(file)) == (first, 2)
    # Removed: its process ends.
    configure(home, table("one"))
    assert list(ann.backends()) == ["one"]
    eventually(lambda: not alive([second]), "the process of what was taken out")
    assert ann.fails("two", "echo")["code"] == "backend_not_found"
    # Another program.
    configure(home, table("one", "banner"))
    assert ann.pid("one") != first
    eventually(lambda: not alive([first]), "the process of the program before")


def test_a_broken_file_changes_nothing_and_is_told(ann: Agent, home: Path) -> None:
    first = ann.pid("one")
    for broken in (
        '[[backends]\nname = "one"',
        table("two") + table("two"),
        written("three", command="x", transprot="stdio"),
        '[[backends]]\nname = "four"\n',
    ):
        configure(home, broken)
        found = ann.call("agora_backends")
        assert found["configuration"]["code"] in {"config_error", "unknown_key"}
        assert "agora.toml" in found["configuration"]["message"]
        assert [row["name"] for row in found["backends"]] == ["one"]
        assert found["configuration"] in ann.call("agora_status")["problems"]
        assert ann.pid("one") == first
    configure(home, table("one"), table("two"))
    found = ann.call("agora_backends")
    assert "configuration" not in found
    assert [row["name"] for row in found["backends"]] == ["one", "two"]
    assert ann.call("agora_status")["problems"] == []
    assert ann.pid("one") == first


def test_a_file_that_is_deleted_changes_nothing_is_told_and_may_come_back_empty(ann: Agent, home: Path) -> None:
    first = ann.pid("one")
    (home / "agora.toml").unlink()
    found = ann.call("agora_backends")
    assert [row["name"] for row in found["backends"]] == ["one"]
    assert "cannot be read" in found["configuration"]["message"]
    assert ann.pid("one") == first
    configure(home)
    found = ann.call("agora_backends")
    assert (found["backends"], "configuration" in found) == ([], False)
    eventually(lambda: not alive([first]), "the process")
    assert ann.fails("one", "echo")["code"] == "backend_not_found"
    configure(home, table("one"))
    assert text(ann.route("one", "echo", text="back")) == "back"


def test_a_backend_that_is_taken_out_while_it_is_called_ends_the_call(ann: Agent, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "calls"
    pending = ann.begin("one", "append", path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    configure(home, table("two"))
    assert list(ann.backends()) == ["two"]
    result = pending.result(20)
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["error"]["code"] == "outcome_unknown"
    assert count(file) == 1


def test_a_read_under_way_is_made_again_by_the_program_that_takes_its_place(
    ann: Agent, home: Path, tmp_path: Path
) -> None:
    file, before = tmp_path / "calls", ann.pid("one")
    pending = ann.begin("one", "read_marked", path=str(file), then="late", seconds=0.5, text="read")
    eventually(lambda: count(file) == 1, "it is being read")
    configure(home, table("one", "banner"))
    assert ann.backends()["one"]["name"] == "one"
    result = pending.result(20)
    assert isinstance(result.structured_content, dict)
    assert text(result.structured_content) == "read"
    assert count(file) == 2
    assert ann.pid("one") != before


def test_a_variable_is_that_of_the_server_and_each_backend_gets_its_own_alone(ann: Agent, home: Path) -> None:
    configure(
        home,
        table("one", env={"WHO": "one of ${AGORA_TEST_MISSING:-them}"}),
        table("two", env={"PATH_OF_ANN": "${PATH}"}),
        table("three", env={"TOKEN": "${AGORA_TEST_MISSING}"}),
    )
    one = ann.route("one", "surroundings")["structured"]["env"]
    two = ann.route("two", "surroundings")["structured"]["env"]
    assert (one["WHO"], two["PATH_OF_ANN"]) == ("one of them", os.environ["PATH"])
    assert not {name for name in (*one, *two) if name.startswith("AGORA_")}
    error = ann.fails("three", "echo")
    assert error["code"] == "config_error"
    assert "env" in error["message"]
    assert "AGORA_TEST_MISSING" in error["message"]
