"""Failures that users of other gateways have reported, with real backends behind a real server."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from tests.integration.processes import Serve, runs
from tests.scenarios.stage import Stage, ended, naughty, over_http, said, table, text, until

READS = {"readOnlyHint": True}


def test_a_child_that_dies_in_a_call_costs_one_error_at_once_and_the_next_calls_work(crowd: Stage) -> None:
    crowd.configure(naughty("shaky", trusted=True))
    assert said(crowd.route("shaky", "echo", text="before")) == "before"
    began = time.monotonic()
    error = crowd.refused("shaky", "die", signal=int(signal.SIGKILL))
    assert time.monotonic() - began < 1.0
    assert (error["code"], error["retryable"]) == ("outcome_unknown", False)
    for number in range(3):
        assert said(crowd.route("shaky", "echo", text=f"after {number}")) == f"after {number}"


def test_a_dead_child_is_told_as_dead_and_never_as_an_empty_result(crowd: Stage) -> None:
    crowd.configure(naughty("gone"))
    crowd.route("gone", "echo", text="x")
    for number in range(2):
        error = crowd.refused("gone", "die", words=f"disk {number} is full")
        assert f"disk {number} is full" in error["message"]
        row = crowd.backend("gone")
        assert (row["state"], row["health"]) == ("stopped", "degraded")
        assert f"disk {number} is full" in row["last_error"]
        found = crowd.route("gone", "echo", text="back")
        assert (found["is_error"], said(found)) == (False, "back")
        assert crowd.backend("gone")["health"] == "healthy"


def test_a_hundred_first_calls_at_once_start_one_child_and_are_all_answered(crowd: Stage) -> None:
    busy = crowd.puppet("busy").plays("count")
    crowd.configure(busy.table(concurrency=100))
    served = crowd.served
    numbers = [served.post_call("agora_route", target="busy", tool="count", arguments={"n": n}) for n in range(100)]
    answers = [said(served.result(number)) for number in numbers]
    assert answers == [json.dumps({"n": n}) for n in range(100)]
    assert len(busy.pids) == 1
    assert len(busy.told("initialize")) == 1


def test_calls_of_one_backend_ask_another_for_nothing_and_shake_hands_once(crowd: Stage) -> None:
    one, other = crowd.puppet("one").plays("alpha"), crowd.puppet("other").plays("beta")
    crowd.configure(one.table(), other.table())
    for number in range(5):
        assert said(crowd.route("one", "alpha", n=number)) == json.dumps({"n": number})
    assert [row["method"] for row in other.told()] == []
    assert [row["method"] for row in one.told()][:3] == ["initialize", "notifications/initialized", "tools/list"]
    assert len(one.told("initialize")) == len(one.told("tools/list")) == 1
    assert len(one.told("tools/call")) == 5


def test_a_cancelled_call_is_cancelled_at_the_backend(crowd: Stage) -> None:
    slow = crowd.puppet("slow").plays("wait", answers={"wait": {"never": True}})
    crowd.configure(slow.table())
    served = crowd.served
    number = served.post_call("agora_route", target="slow", tool="wait")
    until(lambda: slow.told("tools/call"), "the call has not come")
    cancelled = {"requestId": number, "reason": "changed my mind"}
    served.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    told = until(lambda: slow.told("notifications/cancelled"), "the backend was not told")
    assert told[0]["params"]["requestId"] == slow.told("tools/call")[0]["id"]
    slow.plays("wait")
    assert said(crowd.route("slow", "wait", n=1)) == '{"n": 1}'
    assert len(slow.pids) == 1


def test_progress_of_a_backend_reaches_whoever_asked_for_it(crowd: Stage) -> None:
    steps = crowd.puppet("steps").plays("work", answers={"work": {"progress": 3, "result": text("done")}})
    crowd.configure(steps.table())
    served = crowd.served
    before = len(served.lines)
    given = {"target": "steps", "tool": "work"}
    number = served.post("tools/call", {"name": "agora_route", "arguments": given, "_meta": {"progressToken": "mine"}})
    assert said(served.result(number)) == "done"
    frames = [json.loads(line) for line in served.lines[before:]]
    told = [each["params"] for each in frames if each.get("method") == "notifications/progress"]
    assert [each["message"] for each in told if str(each.get("message")).startswith("step")][-1] == "step 3"
    assert {each["progressToken"] for each in told} == {"mine"}


def test_a_tool_that_a_backend_adds_while_it_runs_is_there_for_the_next_call(crowd: Stage) -> None:
    live = crowd.puppet("live").plays("first")
    crowd.configure(live.table())
    crowd.route("live", "first")
    assert crowd.refused("live", "second")["code"] == "tool_not_found"
    live.plays("first", "second", answers={"first": {"changed": True, "echo": True}})
    crowd.route("live", "first")
    until(lambda: len(live.told("tools/list")) == 2, "the list was not read again")
    until(lambda: crowd.backend("live")["tools"] == 2, "the new list is not there")
    assert said(crowd.route("live", "second", n=1)) == '{"n": 1}'
    assert len(live.pids) == 1


def test_a_server_over_http_that_comes_back_without_its_sessions_is_greeted_anew(crowd: Stage) -> None:
    far = crowd.puppet("far").plays({"name": "write_row"})
    with over_http(far) as (process, port):
        crowd.configure(far.table(url=f"http://127.0.0.1:{port}/mcp", max_retries=1))
        assert said(crowd.route("far", "write_row", n=1)) == '{"n": 1}'
        process.kill()
        process.wait()
        began = time.monotonic()
        assert crowd.refused("far", "write_row", n=2)["code"] == "backend_unavailable"
        assert time.monotonic() - began < 3.0
    with over_http(far, port):
        assert said(crowd.route("far", "write_row", n=3)) == '{"n": 3}'
        assert [given["n"] for given in far.arguments] == [1, 3]
    assert len(far.told("initialize")) == 2


def test_a_session_that_a_server_over_http_has_forgotten_is_no_error_for_the_caller(crowd: Stage) -> None:
    far = crowd.puppet("forgets").plays({"name": "write_row"})
    with over_http(far) as (process, port):
        crowd.configure(far.table(url=f"http://127.0.0.1:{port}/mcp"))
        crowd.route("forgets", "write_row", n=1)
        process.kill()
        process.wait()
        with over_http(far, port):
            assert said(crowd.route("forgets", "write_row", n=2)) == '{"n": 2}'
    assert [given["n"] for given in far.arguments] == [1, 2]


def test_forty_calls_leave_one_child(crowd: Stage) -> None:
    few = crowd.puppet("few").plays("work")
    crowd.configure(few.table())
    crowd.route("few", "work")
    agora = psutil.Process(crowd.served.process.pid)
    before = len(agora.children(recursive=True))
    for number in range(40):
        crowd.route("few", "work", n=number)
    assert len(few.pids) == 1
    assert len(agora.children(recursive=True)) <= before


def test_what_a_child_has_started_ends_with_it(crowd: Stage) -> None:
    crowd.configure(naughty("parent"))
    found = crowd.route("parent", "grandchildren", count=3)
    pids = found["structured"]["pids"]
    assert all(map(runs, pids))
    crowd.configure()
    assert crowd.served.call("agora_backends")["backends"] == []
    ended(pids)


def test_nothing_is_left_when_the_server_is_killed_beside_a_stubborn_child(stage: Stage) -> None:
    stage.configure(naughty("stubborn", "stubborn"))
    pids = stage.route("stubborn", "grandchildren", count=1)["structured"]["pids"]
    pids += [child.pid for child in psutil.Process(stage.served.process.pid).children()]
    stage.served.process.kill()
    stage.served.process.wait()
    ended(pids, 6.0)


def test_sessions_of_several_agents_share_one_child(shared: Serve, stage: Stage) -> None:
    one = stage.puppet("single").plays("work", answers={"work": {"calls": True}})
    stage.configure(one.table())
    sessions = [shared(name=f"agent-{number}") for number in range(3)]
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda each: each.call("agora_route", target="single", tool="work"), sessions))
    assert sorted(said(answer).split(" of ")[0] for answer in answers) == ["call 1", "call 2", "call 3"]
    assert len(one.pids) == 1
    for session in sessions:
        session.end_input()


def test_the_time_that_a_call_may_take_is_what_its_table_says(crowd: Stage) -> None:
    slow = {"get_report": {"late": 1.0, "result": text("at last")}}
    short, long = crowd.puppet("short"), crowd.puppet("long")
    crowd.configure(
        short.plays("get_report", answers=slow).table(timeout=0.3, max_retries=0),
        long.plays("get_report", answers=slow).table(timeout=10),
    )
    error = crowd.refused("short", "get_report")
    assert (error["code"], "0.3 s" in error["message"]) == ("backend_timeout", True)
    assert said(crowd.route("long", "get_report")) == "at last"


def test_two_tables_of_one_program_are_two_processes_that_share_nothing(crowd: Stage) -> None:
    mine, yours = crowd.puppet("mine"), crowd.puppet("yours")
    for each in (mine, yours):
        each.plays("add", answers={"add": {"calls": True}})
    crowd.configure(mine.table(), yours.table())
    told = [said(crowd.route(name, "add")) for name in ("mine", "mine", "yours", "mine")]
    assert [words.split(" of ")[0] for words in told] == ["call 1", "call 2", "call 1", "call 3"]


def test_what_a_call_has_left_is_there_for_the_next_one(crowd: Stage, tmp_path: Path) -> None:
    keeper = crowd.puppet("keeper").plays("login", answers={"login": {"calls": True}})
    place = tmp_path / "kept.txt"
    crowd.configure(keeper.table(), naughty("files"))
    assert [said(crowd.route("keeper", "login")).split(" of ")[0] for _ in range(3)] == ["call 1", "call 2", "call 3"]
    for _ in range(2):
        crowd.route("files", "append", path=str(place), text="x")
    assert place.read_text("utf-8").splitlines() == ["called", "called"]


def test_a_list_of_two_thousand_tools_and_megabytes_does_not_hang(crowd: Stage) -> None:
    rows = [{"name": f"get_entry_{n}", "description": f"Entry {n}. " + "More of it. " * 150} for n in range(2_000)]
    large = crowd.puppet("large").plays(*rows)
    assert large.file.stat().st_size > 3_000_000
    crowd.configure(large.table())
    began = time.monotonic()
    assert said(crowd.route("large", "get_entry_1999", n=1)) == '{"n": 1}'
    assert time.monotonic() - began < 10.0
    assert crowd.backend("large")["tools"] == 2_000


def test_a_second_backend_takes_nothing_from_the_first_and_no_name_changes(crowd: Stage) -> None:
    first = crowd.puppet("ha-mcp").plays("turn_on")
    second = crowd.puppet("kubectl-mcp").plays("get_pods")
    crowd.configure(first.table())
    assert said(crowd.route("turn_on", n=1)) == '{"n": 1}'
    crowd.configure(first.table(), second.table())
    assert said(crowd.route("turn_on", n=2)) == '{"n": 2}'
    assert said(crowd.route("get_pods", n=3)) == '{"n": 3}'
    assert [row["name"] for row in crowd.served.call("agora_backends")["backends"]] == ["ha-mcp", "kubectl-mcp"]
    assert {row["params"]["name"] for row in first.told("tools/call")} == {"turn_on"}
    assert len(first.pids) == 1


def test_backends_that_are_down_stop_neither_the_start_nor_the_others(stage: Stage) -> None:
    up = stage.puppet("up").plays("get_time")
    stage.configure(
        table("no-such-program", command="agora-test-no-such-program"),
        naughty("fails", "exit"),
        table("refuses", url="http://127.0.0.1:9/mcp"),
        table("unset", url="http://127.0.0.1:9/mcp", headers={"X": "${AGORA_TEST_NOT_SET}"}),
        naughty("mute", "mute", start_timeout=0.5),
        up.table(),
    )
    began = time.monotonic()
    assert stage.served.call("agora_status")["backends"]["configured"] == 6
    assert said(stage.route("up", "get_time", n=1)) == '{"n": 1}'
    found = stage.served.call("agora_broadcast", tool="get_time")
    assert [row["backend"] for row in found["results"]] == ["up"]
    assert {row["backend"]: row["code"] for row in found["not_asked"]} == {
        "no-such-program": "backend_unavailable",
        "fails": "backend_unavailable",
        "refuses": "backend_unavailable",
        "unset": "config_error",
        "mute": "backend_unavailable",
    }
    assert time.monotonic() - began < 15.0


def test_a_child_that_is_busy_with_a_long_call_is_left_alone(crowd: Stage) -> None:
    browser = crowd.puppet("browser").plays("navigate_page", answers={"navigate_page": {"late": 2.0, "echo": True}})
    crowd.configure(browser.table(timeout=10))
    served = crowd.served
    number = served.post_call("agora_route", target="browser", tool="navigate_page", arguments={"url": "https://x"})
    until(lambda: browser.told("tools/call"), "the call has not come")
    for _ in range(5):
        row = crowd.backend("browser")
        assert (row["state"], row["running_calls"]) == ("running", 1)
    assert said(served.result(number)) == '{"url": "https://x"}'
    assert len(browser.pids) == 1
    assert {row["method"] for row in browser.told()} == {
        *("initialize", "notifications/initialized", "tools/list", "tools/call"),
    }


def test_that_a_tool_calls_itself_read_only_opens_nothing_unless_its_server_is_trusted(crowd: Stage) -> None:
    tool = {"name": "run_command", "annotations": READS}
    liar, friend = crowd.puppet("liar").plays(tool), crowd.puppet("friend").plays(tool)
    crowd.configure(liar.table(read_only=True), friend.table(read_only=True, trusted=True))
    error = crowd.refused("liar", "run_command")
    assert error["code"] == "read_only_backend"
    assert "trusted" in error["hint"]
    assert liar.arguments == []
    assert said(crowd.route("friend", "run_command", n=1)) == '{"n": 1}'
    found = crowd.served.call("agora_broadcast", tool="run_command")
    assert [row["backend"] for row in found["results"]] == ["friend"]


def test_no_separator_in_a_name_gives_a_tool_to_another_backend(crowd: Stage) -> None:
    good = crowd.puppet("evil").plays("real_tool", "foo__real_tool")
    sly = crowd.puppet("sly").plays("evil__real_tool", "evil/real_tool", "_thing", "good__read")
    crowd.configure(good.table(), sly.table())
    crowd.route("evil", "real_tool")
    crowd.route("sly", "_thing")
    for name in ("evil__real_tool", "evil/real_tool"):
        found = crowd.route(name)
        assert found["routed"] is False, found
        rows = [(row["backend"], row["tool"]) for row in found["candidates"]]
        assert rows == [("evil", "real_tool"), ("sly", name)]
        assert said(crowd.route("sly", name)) == "{}"
    assert crowd.route("evil__foo__real_tool")["backend"] == "evil"
    assert crowd.refused("evil__lost")["code"] == "tool_not_found"
    assert crowd.route("good__read")["backend"] == "sly"
    # A table whose name could be read as a backend and a tool is refused, and the ones before stay.
    crowd.configure(good.table(), table("evil__foo", command="true"))
    told = crowd.served.call("agora_backends")
    assert told["configuration"]["code"] == "config_error"
    assert "evil__foo" in told["configuration"]["message"]
    assert [row["name"] for row in told["backends"]] == ["evil", "sly"]


def test_a_write_whose_answer_is_lost_is_sent_once(crowd: Stage) -> None:
    host = crowd.puppet("host").plays("create_website", answers={"create_website": {"dies": True}})
    crowd.configure(host.table(max_retries=5, retry_delay=0.01))
    error = crowd.refused("host", "create_website", order=7)
    assert (error["code"], error["retryable"]) == ("outcome_unknown", False)
    assert host.arguments == [{"order": 7}]
    # A read is asked again, and the tool is found though the program has got it since it was last seen.
    host.plays("get_website", answers={"get_website": {"dies": True}})
    crowd.refused("host", "get_website", order=8)
    assert host.arguments[1:] == [{"order": 8}] * 3, "three failures are enough for now"


def test_an_intent_within_one_backend_finds_no_tool_of_another(crowd: Stage) -> None:
    rail = {"name": "search_trains", "description": "Search train tickets between two cities."}
    maps = {"name": "search_places", "description": "Search places on a map."}
    crowd.configure(crowd.puppet("rail").plays(rail).table(), crowd.puppet("maps").plays(maps).table())
    found = crowd.route("maps", intent="search train tickets between two cities", dry_run=True)
    assert {row["backend"] for row in found["candidates"]} == {"maps"}
    found = crowd.served.call("agora_backends", query="train tickets between two cities")
    assert found["tools"][0]["tool"] == "search_trains"
    denied = crowd.puppet("rail").plays(rail)
    crowd.configure(denied.table(deny=["*"]), crowd.puppet("maps").plays(maps).table())
    assert crowd.refused("train tickets between two cities", n=1)["code"] == "access_denied"
    assert denied.arguments == []
