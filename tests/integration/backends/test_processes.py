"""No process outlives its channel, nor Agora."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.integration.backends.conftest import Connect
from tests.integration.backends.heard import NAUGHTY, PATIENCE, Heard, alive, gone, put_down, table
from tests.integration.processes import environment

from agora.backends.guard import Guard
from agora.errors import BackendUnavailable

resource = pytest.importorskip("resource")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups"),
]


async def test_a_stubborn_child_and_its_grandchildren_are_gone_within_three_seconds(
    connect: Connect, guard: Guard
) -> None:
    heard = await connect("stubborn")
    pids = [(await heard.call("surroundings"))["pid"], *(await heard.call("grandchildren"))["pids"]]
    assert alive(pids) == pids
    assert guard.groups == {heard.channel.pid}
    began = time.monotonic()
    await heard.channel.close()
    assert time.monotonic() - began < 3.0
    await gone(pids, 0.2)


@pytest.mark.parametrize("tool", ["leave", "die"])
async def test_grandchildren_go_when_the_child_dies_by_itself(connect: Connect, tool: str) -> None:
    heard = await connect()
    pids = (await heard.call("grandchildren"))["pids"]
    await heard.post(tool)
    await heard.reason()
    await gone(pids, 5.0)


async def test_the_child_leads_a_session_of_its_own_and_inherits_nothing(connect: Connect, tmp_path: Path) -> None:
    with (tmp_path / "server.lock").open("w") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - the system's call
        backend = table(cwd=str(tmp_path), env=(("GIVEN", "yes"), ("LANG", "de_DE.UTF-8")))
        heard = await connect(backend=backend)
        found = await heard.call("surroundings")
    assert found["group"] == found["session"] == found["pid"] == heard.channel.pid
    assert found["open"] == [0, 1, 2]
    assert found["cwd"] == os.path.realpath(tmp_path)  # noqa: ASYNC240 - nothing else runs
    assert found["env"]["GIVEN"] == "yes"
    assert found["env"]["LANG"] == "de_DE.UTF-8"
    assert not {"PYTHONPATH", "PYTEST_CURRENT_TEST", "VIRTUAL_ENV"} & set(found["env"])


async def test_a_hundred_channels_leave_no_process_and_no_descriptor(guard: Guard) -> None:
    async def one() -> None:
        heard = Heard(table(), guard)
        await heard.open()
        await heard.call("echo")
        await heard.channel.close()

    own = psutil.Process()
    await one()
    processes, descriptors, threads = len(own.children(recursive=True)), own.num_fds(), own.num_threads()
    for _ in range(25):
        await asyncio.gather(*(one() for _ in range(4)))
    assert guard.groups == frozenset()
    assert len(own.children(recursive=True)) == processes
    assert own.num_fds() == descriptors
    # The event loop's own threads, for what blocks.
    assert own.num_threads() <= threads + 4


def limit_for(room: int) -> int:
    """The limit under which this process can open `room` more files: the limit is a number, and some may be free."""
    number = 0
    while room or is_open(number):
        room -= not is_open(number)
        number += 1
    return number


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


async def test_too_many_open_files_are_told_as_such_and_leave_nothing(guard: Guard) -> None:
    own = psutil.Process()
    first = Heard(table(), guard)
    await first.open()
    await first.channel.close()
    processes, descriptors = own.children(recursive=True), own.num_fds()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    refused = 0
    for room in range(30):
        starved = Heard(table(), guard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit_for(room), hard))
        try:
            await starved.open()
        except BackendUnavailable as error:
            refused += 1
            assert "Too many open files" in error.message  # noqa: PT017 - with more room it works
            assert "ulimit" in error.hint  # noqa: PT017 - as above
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await starved.channel.close()
        assert (own.children(recursive=True), own.num_fds()) == (processes, descriptors)
        if refused == room:
            break
    assert 3 < refused < 30


async def test_what_has_left_the_group_holds_up_nothing_and_keeps_no_descriptor_of_ours(connect: Connect) -> None:
    own = psutil.Process()
    await (await connect()).channel.close()
    before = own.num_fds()
    heard = await connect()
    pids = (await heard.call("leave", escape=True))["pids"]
    try:
        assert "exit status 0" in await heard.reason(2.0)
        await heard.channel.close()
        await asyncio.sleep(0)
        assert own.num_fds() == before
        assert alive(pids) == pids
    finally:
        put_down(pids)


AGORA = """
import asyncio, sys
from agora.backends.stdio import StdioChannel
from agora.config.backends import BackendTable

async def main():
    channels = []
    for habits in (("stubborn",), ()):
        backend = BackendTable("naughty", "stdio", command=sys.executable, args=(NAUGHTY, *habits))
        channel, answers = StdioChannel(backend), asyncio.Queue()
        channels.append(channel)
        await channel.open(answers.put_nowait, print)
        for tool in ("surroundings", "grandchildren"):
            call = {"name": tool, "arguments": {}}
            await channel.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
            found = (await answers.get())["result"]["structuredContent"]
            print(*(found["pids"] if "pids" in found else [found["pid"]]), flush=True)
    from agora.backends.guard import GUARD
    print(GUARD.pid, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    if "forget" not in sys.argv:
        for channel in channels:
            await channel.close()

asyncio.run(main())
"""


def started(*arguments: str) -> tuple[subprocess.Popen[bytes], list[int], int]:
    """A process that holds channels as Agora does, the processes of its backends, and its guard's."""
    program = f"NAUGHTY = {str(NAUGHTY)!r}\n{AGORA}"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(None),
    )
    assert process.stdout is not None
    rows = [[int(word) for word in process.stdout.readline().split()] for _ in range(5)]
    return process, [pid for row in rows[:4] for pid in row], rows[4][0]


async def test_a_killed_agora_leaves_nothing_after_five_seconds() -> None:
    agora, pids, guard = started()
    try:
        assert alive([*pids, guard]) == [*pids, guard]
        agora.kill()
        agora.wait(PATIENCE)
        await gone([*pids, guard], 5.0)
    finally:
        put_down([agora.pid, *pids, guard])
        agora.communicate()


async def test_an_agora_that_forgets_its_children_leaves_nothing_either() -> None:
    agora, pids, guard = started("forget")
    try:
        agora.communicate(b"", PATIENCE)
        await gone([*pids, guard], 5.0)
    finally:
        put_down([agora.pid, *pids, guard])


async def test_a_guard_that_is_killed_is_started_anew_and_knows_all(guard: Guard) -> None:
    first, second = Heard(table("stubborn"), guard), Heard(table(), guard)
    await first.open()
    pids = (await first.call("grandchildren"))["pids"]
    assert guard.pid is not None
    killed = psutil.Process(guard.pid)
    killed.kill()
    await gone([killed.pid], PATIENCE)
    await second.open()
    await second.call("echo")
    assert guard.pid not in {None, killed.pid}
    try:
        # As the end of Agora would: the end of its input.
        guard.close()
        assert first.channel.pid is not None
        await gone([first.channel.pid, *pids], 5.0)
    finally:
        await first.channel.close()
        await second.channel.close()
