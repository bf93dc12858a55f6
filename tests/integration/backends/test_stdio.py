"""The channel to a process: what comes through, and what a child cannot do to it."""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.integration.backends.conftest import Connect
from tests.integration.backends.heard import PATIENCE, Heard, gone, script, table

from agora.backends.guard import Guard
from agora.errors import BackendUnavailable, OutcomeUnknown

pytestmark = pytest.mark.anyio
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups")


async def test_a_call_is_answered_and_closing_ends_the_process_at_once(connect: Connect) -> None:
    heard = await connect()
    seen = [heard.channel.alive]
    assert (await heard.call("echo", text="hé ✓ \ud800"))["text"] == "hé ✓ \ud800"
    pid = heard.channel.pid
    assert pid is not None
    async with asyncio.timeout(2.0):
        await heard.channel.close()
        await heard.channel.close()
    await gone([pid], 0.0)
    assert heard.lost == ["it was closed"]
    assert [*seen, heard.channel.alive] == [True, False]
    with pytest.raises(BackendUnavailable, match="it was closed"):
        await heard.post("echo")


async def test_answers_come_while_others_take_longer(connect: Connect) -> None:
    heard = await connect()
    late = await heard.post("late", seconds=0.5, text="late")
    assert (await heard.call("echo", text="quick"))["text"] == "quick"
    assert [message["id"] for message in heard.messages] == [late + 1]
    assert (await heard.answer(late))["result"]["structuredContent"]["text"] == "late"


async def test_a_death_in_a_call_is_told_within_a_second_with_status_and_words(connect: Connect) -> None:
    heard = await connect()
    await heard.post("die", words="no disk left", status=7)
    assert await heard.reason(1.0) == "its process ended with exit status 7 (last words: no disk left)"
    assert heard.channel.last_words == "no disk left"
    with pytest.raises(BackendUnavailable, match="exit status 7"):
        await heard.post("echo")


@posix
async def test_a_kill_in_a_call_is_told_within_a_second_by_the_name_of_the_signal(connect: Connect) -> None:
    heard = await connect()
    await heard.post("die", signal=9)
    assert await heard.reason(1.0) == "its process was ended by SIGKILL (last words: something broke)"


async def test_the_end_is_told_once_and_after_everything_that_came(connect: Connect) -> None:
    heard = await connect()
    number = await heard.post("leave")
    await heard.reason()
    assert [message["id"] for message in heard.messages] == [number]
    await heard.channel.close()
    assert len(heard.lost) == 1


async def test_an_end_at_the_start_is_told_with_its_words(connect: Connect) -> None:
    heard = await connect("exit")
    assert "the configuration is missing" in await heard.reason()


async def test_what_stands_between_messages_is_skipped_and_counted(connect: Connect) -> None:
    heard = await connect("banner")
    assert (await heard.call("junk", text="after junk"))["text"] == "after junk"
    assert heard.channel.skipped == 8
    assert heard.channel.last_words == (
        "[8 lines on its standard output that are no message; the last: red \\u0000\\u0007 and the end of the junk]"
    )
    assert len(heard.messages) == 1


async def test_what_is_no_utf8_is_replaced_and_the_answer_read(connect: Connect) -> None:
    heard = await connect()
    assert (await heard.call("invalid_utf8"))["text"] == "before\ufffd\ufffdafter"
    assert (await heard.call("echo", text="still here"))["text"] == "still here"


async def test_a_batch_is_delivered_one_by_one_and_nan_becomes_null(connect: Connect) -> None:
    heard = await connect()
    await heard.call("batch", text="x")
    assert [message.get("method") for message in heard.messages] == ["notifications/message", None]
    assert (await heard.call("nan"))["value"] is None


@pytest.mark.parametrize("id_last", [False, True])
async def test_an_answer_above_the_limit_fails_its_request_and_takes_no_memory(
    connect: Connect, *, id_last: bool
) -> None:
    heard = await connect(line_bytes=1_000_000)
    answer = await heard.answer(await heard.post("huge", size=3_000_000, id_last=id_last))
    assert answer["error"]["message"] == "its answer is longer than 1,000,000 bytes"
    assert (await heard.call("echo", text="next"))["text"] == "next"


async def test_an_answer_that_is_no_json_fails_its_request_at_once(connect: Connect) -> None:
    heard = await connect()
    answer = await heard.answer(await heard.post("not_json"))
    assert answer["error"] == {"code": -32700, "message": "its answer is not JSON"}


async def test_five_megabytes_come_whole_and_before_what_was_sent_after_them(connect: Connect) -> None:
    heard = await connect()
    big = await heard.post("big", size=5_000_000)
    small = await heard.post("echo", text="after")
    await heard.answer(small)
    assert [message["id"] for message in heard.messages] == [big, small]
    assert len(heard.messages[0]["result"]["content"][0]["text"]) == 5_000_000


async def test_a_program_that_is_not_there_or_may_not_run_is_named_with_what_to_do(
    guard: Guard, tmp_path: Path
) -> None:
    plain = tmp_path / "server"
    plain.write_text("#!/nowhere/at/all\n", "utf-8")
    for given, words, hint in (
        ({"command": "no-such-program-at-all"}, "there is no program no-such-program-at-all", "PATH"),
        ({"command": "server", "env": (("PATH", str(tmp_path)),)}, "there is no program server", "PATH"),
        ({"command": str(tmp_path / "none")}, "there is no program", "whole path"),
        ({"cwd": str(tmp_path / "nowhere")}, "nowhere does not exist", "cwd"),
        ({"command": ""}, "names no command", "command"),
        ({"args": ("a\0b",)}, "cannot be started", "args"),
    ):
        heard = Heard(table(**given), guard)
        with pytest.raises(BackendUnavailable) as caught:
            await heard.open()
        assert words in caught.value.message
        assert hint in caught.value.hint
        assert not heard.channel.alive
        with pytest.raises(BackendUnavailable, match="was not started"):
            await heard.post("echo")
        await heard.channel.close()
        assert heard.lost == []


@posix
async def test_a_file_that_is_no_program_is_named_with_what_to_do(guard: Guard, tmp_path: Path) -> None:
    plain = tmp_path / "server"
    plain.write_text("#!/nowhere/at/all\n", "utf-8")
    backend = table(command="./server", cwd=str(tmp_path))
    with pytest.raises(BackendUnavailable, match="is not executable") as caught:
        await Heard(backend, guard).open()
    assert "chmod +x" in caught.value.hint
    plain.chmod(0o700)
    with pytest.raises(BackendUnavailable, match="cannot be started") as caught:
        await Heard(backend, guard).open()
    assert "first line" in caught.value.hint


async def test_a_child_that_stops_reading_holds_up_nobody_but_who_writes_to_it(connect: Connect) -> None:
    heard, other = await connect("stubborn"), await connect()
    await heard.call("stop_reading")
    writing = asyncio.create_task(heard.post("echo", text="x" * 1_000_000))
    waiting = asyncio.create_task(heard.post("echo"))
    assert (await other.call("echo", text="meanwhile"))["text"] == "meanwhile"
    assert not writing.done()
    assert heard.channel.alive
    writing.cancel()
    assert await heard.reason() == "it did not read a message to its end"
    with pytest.raises(asyncio.CancelledError):
        await writing
    with pytest.raises(BackendUnavailable):
        await waiting


async def test_who_waits_to_write_and_is_cancelled_breaks_nothing(connect: Connect) -> None:
    heard = await connect()
    late = asyncio.create_task(heard.post("late", seconds=0.2, text="x" * 3_000_000))
    waiting = asyncio.create_task(heard.post("echo"))
    await asyncio.sleep(0)
    waiting.cancel()
    answer = await heard.answer(await late)
    assert len(answer["result"]["structuredContent"]["text"]) == 3_000_000
    assert (await heard.call("echo", text="on"))["text"] == "on"
    assert heard.lost == []


async def test_of_a_message_that_was_half_written_the_outcome_is_unknown_and_the_next_was_not_sent(
    connect: Connect,
) -> None:
    heard = await connect()
    await heard.call("stop_reading")
    writing = asyncio.create_task(heard.post("echo", text="x" * 1_000_000))
    waiting = asyncio.create_task(heard.post("echo"))
    await asyncio.sleep(0.05)
    assert heard.channel.pid is not None
    psutil.Process(heard.channel.pid).kill()
    with pytest.raises(OutcomeUnknown):
        await writing
    with pytest.raises(BackendUnavailable):
        await waiting
    await heard.reason(1.0)


@posix
async def test_a_message_under_way_fails_before_the_end_is_told_though_somebody_holds_the_pipe_open(
    connect: Connect,
) -> None:
    heard = await connect()
    await heard.call("grandchildren", hold=True)
    await heard.call("stop_reading")
    writing = asyncio.create_task(heard.post("echo", text="x" * 1_000_000))
    await asyncio.sleep(0.05)
    assert heard.channel.pid is not None
    psutil.Process(heard.channel.pid).kill()
    assert await heard.reason(2.0) == "its process was ended by SIGKILL"
    assert writing.done()
    assert isinstance(writing.exception(), OutcomeUnknown)


async def test_many_large_messages_at_once_come_back_whole_and_the_pipes_do_not_block_each_other(
    connect: Connect,
) -> None:
    heard = await connect()
    numbers = await asyncio.gather(*(heard.post("echo", text=str(n) * 300_000) for n in range(8)))
    for n, number in enumerate(numbers):
        answer = await heard.answer(number)
        text = answer["result"]["structuredContent"]["text"]
        # Not compared as texts: a difference would be megabytes to show.
        assert (text[:5], len(text), len(set(text))) == (str(n) * 5, 300_000, 1)


async def test_a_child_that_closes_its_output_is_lost_though_it_lives(connect: Connect) -> None:
    heard = await connect()
    pid = (await heard.call("surroundings"))["pid"]
    await heard.post("close_output")
    assert await heard.reason(1.0) == "it has closed its standard output"
    await gone([pid], 4.0)


async def test_a_message_to_a_child_that_closed_its_input_was_not_sent_and_it_is_lost(connect: Connect) -> None:
    heard = await connect()
    await heard.call("close_input")
    with pytest.raises(BackendUnavailable, match="closed its standard input"):
        await heard.post("echo")
    assert await heard.reason() == "it has closed its standard input"


async def test_ten_megabytes_on_standard_error_take_no_memory_and_hold_up_nothing(connect: Connect) -> None:
    heard = await connect("noisy")
    await heard.call("echo")
    own = psutil.Process()
    before = own.memory_info().rss
    assert (await heard.call("noise", text="answered"))["text"] == "answered"
    assert own.memory_info().rss - before < 4_000_000
    await heard.until(lambda: heard.channel.last_words.endswith("the last of the noise"))
    assert len(heard.channel.last_words) <= 2_000


async def test_a_line_of_seventy_megabytes_is_not_kept(connect: Connect) -> None:
    heard = await connect()
    await heard.call("echo")
    own = psutil.Process()
    before = own.memory_info().rss
    answer = await heard.answer(await heard.post("huge"))
    assert "longer than 67,108,864 bytes" in answer["error"]["message"]
    # What the allocator holds on to differs; the line and its text would be 140 MB.
    assert own.memory_info().rss - before < 100_000_000


async def test_no_secret_that_a_child_prints_is_shown(connect: Connect) -> None:
    backend = table(env=(("SHOP_TOKEN", "hunter2-hunter2"), ("LEVEL", "debugging")))
    heard = await connect(backend=backend)
    key = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fX2kLm"[:36]
    await heard.call("words", words=f"\x1b[31mlevel\x1b[0m debugging, token hunter2-hunter2, {key}\x07")
    await heard.post("die", words="hunter2-hunter2 was refused")
    reason = await heard.reason()
    told = reason + heard.channel.last_words
    assert "level debugging, token [REDACTED:secret], [REDACTED:" in told
    assert "\\u0007" in told
    assert "hunter2" not in told
    assert key not in told
    assert "\x1b" not in told


async def test_whatever_a_server_sends_on_its_own_or_with_a_wrong_id_is_delivered(connect: Connect) -> None:
    heard = await connect()
    number = await heard.post("change_tools")
    await heard.answer(number)
    assert heard.messages[0] == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    await heard.call("ask", method="roots/list")
    assert [message["method"] for message in heard.messages if "method" in message and "id" in message] == [
        "roots/list"
    ]
    await heard.call("wrong_id")
    assert {"n": [message.get("id") for message in heard.messages].count(10_000)} == {"n": 1}


async def test_an_open_that_is_cancelled_leaves_nothing_running(guard: Guard) -> None:
    own = psutil.Process()
    # Other tests of this process may have children that stay.
    there = {child.pid for child in own.children()} | {guard.pid}
    for turns in range(0, 12, 2):
        heard = Heard(table(), guard)
        opening = asyncio.create_task(heard.open())
        for _ in range(turns):
            await asyncio.sleep(0.002)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await opening
        await heard.channel.close()
        assert [child.pid for child in own.children() if child.pid not in {*there, guard.pid}] == []
        assert not heard.channel.alive


async def test_closing_without_opening_does_nothing(guard: Guard) -> None:
    heard = Heard(table(), guard)
    await heard.channel.close()
    assert heard.lost == []


async def test_what_was_written_before_the_end_comes_however_long_it_takes_to_read(connect: Connect) -> None:
    """A large answer waits to be read when the rest stands in the pipe and the child is gone."""
    program = (
        "import sys, threading; text = 'x' * 60_000\n"
        'print(\'{"jsonrpc": "2.0", "id": 1, "result": {"text": "\' + text + \'"}}\', flush=True)\n'
        "threading.Event().wait(0.3)\n"
        'print(\'{"jsonrpc": "2.0", "id": 2, "result": {}}\', flush=True)\n'
    )
    with ThreadPoolExecutor(1) as only_thread:
        heard = await connect(backend=script(program))
        asyncio.get_running_loop().set_default_executor(only_thread)
        busy = threading.Event()
        only_thread.submit(busy.wait, PATIENCE)
        assert heard.channel.pid is not None
        await gone([heard.channel.pid], PATIENCE)
        await asyncio.sleep(0.6)
        assert heard.messages == []
        busy.set()
        await heard.reason()
    assert [message["id"] for message in heard.messages] == [1, 2]
