"""One question to many backends, of which some do not answer."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway.rig import Agent, agent, configure, eventually, table, text, written

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the backend knows signals alone")

FINE = ("one", "two", "three")


def asked(ann: Agent, **given: Any) -> dict[str, Any]:
    """What a broadcast comes to."""
    result = ann.result("agora_broadcast", given)
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def test_a_broadcast_has_a_row_for_each_that_was_asked_and_a_reason_for_each_that_was_not(home: Path) -> None:
    configure(
        home,
        *(table(name) for name in FINE),
        table("slow", timeout=0.5, allow=["never"]),
        table("dead", "exit"),
        table("killed", max_retries=0),
        table("refusing", trusted=False, read_only=True),
        table("changed"),
        written("missing", command="no-such-program-of-agora"),
    )
    with agent("shared", home) as ann:
        ann.route("changed", "change_tools")
        eventually(lambda: ann.backends()["changed"].get("quarantined") == ["echo"], "the change is known")
        found = asked(ann, tool="echo", arguments={"text": "who is there?"})
        rows = {row["backend"]: row for row in found["results"]}
        assert set(rows) == {*FINE, "slow", "killed"}
        assert {text(row) for row in rows.values()} == {"who is there?"}
        reasons = {row["backend"]: row["code"] for row in found["not_asked"]}
        assert reasons == {
            "dead": "backend_unavailable",
            "missing": "backend_unavailable",
            "refusing": "read_only_backend",
            "changed": "tool_quarantined",
        }
        # One is late beyond its own timeout, one is killed: the others are answered, and are as quick as they are.
        pid = ann.pid("killed")
        pending = ann.portal.start_task_soon(
            lambda: ann.client.call_tool("agora_broadcast", {"tool": "late", "arguments": {"seconds": 0.3}})
        )
        eventually(lambda: ann.backends()["killed"]["running_calls"] == 1, "it is under way")
        os.kill(pid, signal.SIGKILL)
        result = pending.result(20).structured_content
        assert isinstance(result, dict)
        rows = {row["backend"]: row for row in result["results"]}
        assert all("error" not in rows[name] for name in (*FINE, "slow", "changed"))
        assert rows["killed"]["error"]["code"] == "outcome_unknown"

        late = asked(ann, tool="late", arguments={"seconds": 30}, backends=["slow", "dead"])
        [row] = late["results"]
        assert (row["backend"], row["error"]["code"]) == ("slow", "backend_timeout")
        assert row["seconds"] < 15
        assert [row["code"] for row in late["not_asked"]] == ["backend_unavailable"]
        # What may have changed something is not told as if it could be asked for again.
        late = asked(ann, tool="never", arguments={}, backends=["slow"])
        error = late["results"][0]["error"]
        assert (error["code"], error["retryable"]) == ("outcome_unknown", False)
        assert text(ann.route("one", "echo", text="next")) == "next"
