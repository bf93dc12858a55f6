from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.router.scripted import Script, Time

from agora.config.backends import BackendTable
from agora.errors import (
    BackendProtocolError,
    BackendRefused,
    BackendTimeout,
    BackendUnavailable,
    ConfigError,
    OutcomeUnknown,
    RateLimited,
    ToolQuarantined,
)
from agora.ports.backends import SessionForgotten
from agora.router.health import FAILURES, FIRST_PAUSE, LONGEST_PAUSE
from agora.router.link import Answered, Link
from agora.testing import SilentLog

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def gone(message: str = "gone") -> OutcomeUnknown:
    return OutcomeUnknown("b", message)


def away(message: str = "away") -> BackendUnavailable:
    return BackendUnavailable("b", message)


def link(script: Script, time: Time | None = None, **given: Any) -> Link:
    settings: dict[str, Any] = {"transport": "http", "url": "http://b", "retry_delay": 0.0, **given}
    table = BackendTable("b", **settings)
    return Link(table, script, expand=lambda each: each, log=SilentLog(), monotonic=time or Time())


async def ask(to: Link, *, reads: bool = True, seconds: float = 10.0) -> Answered:
    return await to.request("tools/call", {}, reads=reads, seconds=seconds)


async def test_many_first_calls_open_one_session() -> None:
    script = Script()
    script.hold = asyncio.Event()
    to = link(script)
    calls = [asyncio.create_task(ask(to)) for _ in range(10)]
    await asyncio.sleep(0.01)
    script.hold.set()
    await asyncio.gather(*calls)
    assert (script.connected, len(script.asked)) == (1, 10)


async def test_the_first_caller_may_leave_while_others_wait_for_the_start() -> None:
    script = Script()
    script.hold = asyncio.Event()
    to = link(script)
    first, second = asyncio.create_task(ask(to)), asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0.01)
    script.hold.set()
    assert (await second).attempts == 1
    assert script.connected == 1


async def test_a_lost_session_is_opened_again_by_the_next_call() -> None:
    script = Script({"n": 1}, gone(), {"n": 2})
    to = link(script, max_retries=0)
    assert (await ask(to)).result == {"n": 1}
    with pytest.raises(OutcomeUnknown):
        await ask(to)
    assert (await ask(to)).result == {"n": 2}
    assert script.connected == 2


async def test_a_reading_call_that_is_lost_is_made_again() -> None:
    script = Script(gone(), gone(), {"n": 3})
    answered = await ask(link(script))
    assert (answered.result, answered.attempts) == ({"n": 3}, 3)


async def test_a_changing_call_that_is_lost_is_never_made_again() -> None:
    script = Script(gone())
    with pytest.raises(OutcomeUnknown):
        await ask(link(script), reads=False)
    assert len(script.asked) == 1


async def test_a_changing_call_that_was_provably_not_sent_is_made_again() -> None:
    script = Script(away(), {"n": 2})
    answered = await ask(link(script), reads=False)
    assert (answered.result, answered.attempts) == ({"n": 2}, 2)


async def test_a_changing_call_that_got_no_answer_in_time_has_an_unknown_outcome() -> None:
    to = link(Script(BackendTimeout("b", "did not answer")))
    with pytest.raises(OutcomeUnknown, match="did not answer"):
        await ask(to, reads=False)


async def test_a_reading_call_that_got_no_answer_in_time_is_not_made_again() -> None:
    script = Script(BackendTimeout("b", "did not answer"))
    with pytest.raises(BackendTimeout):
        await ask(link(script))
    assert len(script.asked) == 1


async def test_there_are_no_more_tries_than_the_table_says() -> None:
    script = Script(*(away() for _ in range(9)))
    with pytest.raises(BackendUnavailable):
        await ask(link(script, max_retries=1))
    assert len(script.asked) == 2


async def test_a_program_that_does_not_start_is_not_started_again_by_the_same_call() -> None:
    script = Script(starts=[away("no such program")] * 9)
    with pytest.raises(BackendUnavailable, match="no such program"):
        await ask(link(script, transport="stdio", command="x", url=""))
    assert script.connected == 1


async def test_a_server_that_cannot_be_reached_is_tried_again() -> None:
    script = Script({"n": 1}, starts=[away("connection refused")])
    assert (await ask(link(script))).result == {"n": 1}
    assert script.connected == 2


async def test_after_three_failures_it_is_left_alone_then_one_call_tries() -> None:
    time = Time()
    script = Script(*(gone() for _ in range(FAILURES)))
    to = link(script, time, max_retries=0)
    states = []
    for _ in range(FAILURES):
        states.append(to.health.state)
        with pytest.raises(OutcomeUnknown):
            await ask(to)
    assert states == ["healthy", "degraded", "degraded"]
    assert (to.health.state, to.health.breaker) == ("dead", "open")
    with pytest.raises(BackendUnavailable, match="left alone"):
        await ask(to)
    assert len(script.asked) == FAILURES
    time.now += FIRST_PAUSE
    slow = asyncio.Event()
    script.steps = [slow]
    probe = asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    assert to.health.breaker == "half_open"
    with pytest.raises(BackendUnavailable):
        await ask(to)
    slow.set()
    await probe
    assert (to.health.state, to.health.breaker) == ("healthy", "closed")


async def test_calls_that_were_under_way_together_are_one_failure() -> None:
    script = Script(*([gone] * 20))
    to = link(script, max_retries=0, concurrency=20)
    found = await asyncio.gather(*(ask(to) for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in found} == {OutcomeUnknown}
    assert (to.health.state, to.health.breaker) == ("degraded", "closed")
    assert (await ask(to)).attempts == 1
    assert to.health.state == "healthy"


async def test_many_first_calls_of_a_program_that_does_not_start_are_one_failure() -> None:
    script = Script(starts=[away()])
    to = link(script, transport="stdio", command="x", url="", concurrency=20)
    found = await asyncio.gather(*(ask(to) for _ in range(20)), return_exceptions=True)
    assert ({type(each).__base__ for each in found}, script.connected) == ({BackendUnavailable}, 1)
    assert (await ask(to)).attempts == 1


async def test_a_start_that_fails_when_nobody_waits_for_it_any_more_is_a_failure() -> None:
    script = Script(starts=[away()] * FAILURES)
    to = link(script, max_retries=0)
    for _ in range(FAILURES):
        script.hold = asyncio.Event()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await to.ready()
        script.hold.set()
        await asyncio.sleep(0.01)
    assert to.health.state == "dead"
    with pytest.raises(BackendUnavailable, match="left alone"):
        await to.ready()


@pytest.mark.parametrize("transport", [{"transport": "http"}, {"transport": "stdio", "command": "x", "url": ""}])
async def test_a_backend_that_is_lost_while_its_tools_are_listed_was_not_called(transport: dict[str, Any]) -> None:
    script = Script()

    async def opened(_link: Link, _session: Any) -> None:
        raise gone("in the list")

    table = BackendTable("b", **{"url": "http://b", "retry_delay": 0.0, **transport})
    to = Link(table, script, expand=lambda each: each, log=SilentLog(), opened=opened, monotonic=Time())
    with pytest.raises(BackendUnavailable, match="in the list") as told:
        await ask(to, reads=False)
    assert "agora_backends" in told.value.hint
    assert (script.asked, script.closed) == ([], script.connected)


async def test_a_call_of_before_says_nothing_of_the_one_that_tries() -> None:
    hold = asyncio.Event()
    time, earlier = Time(), asyncio.Event()

    script = Script(earlier, gone, gone, gone, hold)
    to = link(script, time, max_retries=0)
    first = asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    for _ in range(FAILURES):
        with pytest.raises(OutcomeUnknown):
            await ask(to)
    time.now += FIRST_PAUSE
    trying = asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    assert to.health.breaker == "half_open"
    # The one of before is taken back while another tries: still nobody else is let through.
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with pytest.raises(BackendUnavailable, match="left alone"):
        await ask(to)
    hold.set()
    await trying
    assert to.health.state == "healthy"


async def test_the_pause_grows_up_to_a_minute_and_tries_never_end() -> None:
    time = Time()
    to = link(Script(*(gone() for _ in range(60))), time, max_retries=0)
    pauses = []
    for _ in range(40):
        with pytest.raises(OutcomeUnknown):
            await ask(to)
        began = time.now
        while to.health.breaker == "open":
            time.now += 0.5
        pauses.append(time.now - began)
    assert pauses[: FAILURES - 1] == [0.0] * (FAILURES - 1)
    assert pauses[FAILURES - 1 :][:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == LONGEST_PAUSE


async def test_an_error_that_the_backend_answers_with_shows_that_it_works() -> None:
    to = link(Script(gone(), gone(), BackendRefused("b", "no", -32602), gone(), gone()), max_retries=0)
    for kind in (OutcomeUnknown, OutcomeUnknown, BackendRefused, OutcomeUnknown, OutcomeUnknown):
        with pytest.raises(kind):
            await ask(to)
    assert to.health.state == "degraded"


async def test_a_backend_that_never_answers_gets_a_new_session_before_it_is_asked_again() -> None:
    time = Time()
    script = Script(*(BackendTimeout("b", "did not answer") for _ in range(FAILURES)), {"n": 1})
    to = link(script, time)
    for _ in range(FAILURES):
        with pytest.raises(BackendTimeout):
            await ask(to)
    assert script.closed == 1
    time.now += FIRST_PAUSE
    assert (await ask(to)).result == {"n": 1}
    assert script.connected == 2


async def test_a_call_that_is_taken_back_says_nothing_of_the_backend() -> None:
    time = Time()
    script = Script(*(gone() for _ in range(FAILURES)))
    to = link(script, time, max_retries=0)
    for _ in range(FAILURES):
        with pytest.raises(OutcomeUnknown):
            await ask(to)
    time.now += FIRST_PAUSE
    script.steps = [asyncio.Event()]
    probe = asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert (await ask(to)).result == {}


async def test_no_more_calls_run_at_once_than_the_table_says() -> None:
    script = Script()
    to = link(script, concurrency=3)
    await asyncio.gather(*(ask(to) for _ in range(30)))
    assert script.most == 3


async def test_calls_of_before_a_change_of_the_table_give_no_places_to_those_after_it() -> None:
    hold = asyncio.Event()
    script = Script(hold, hold)
    to = link(script, concurrency=2)
    earlier = [asyncio.create_task(ask(to)) for _ in range(2)]
    await asyncio.sleep(0.01)
    await to.replace(BackendTable("b", "http", url="http://b", concurrency=1), restart=False)
    hold.set()
    await asyncio.gather(*earlier)
    script.most = 0
    await asyncio.gather(*(ask(to) for _ in range(10)))
    assert script.most == 1


async def test_a_call_that_gets_no_place_in_time_was_not_sent() -> None:
    script = Script(asyncio.Event())
    to = link(script, concurrency=1)
    holder = asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    with pytest.raises(BackendUnavailable, match="places"):
        await ask(to, reads=False, seconds=0.05)
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    assert len(script.asked) == 1
    assert (await ask(to)).attempts == 1


async def test_calls_beyond_the_rate_wait_or_are_refused_if_that_takes_too_long() -> None:
    time = Time()
    to = link(Script(), time, rate=2.0)
    await ask(to)
    await ask(to)
    with pytest.raises(RateLimited) as caught:
        await ask(to, seconds=0.1)
    assert caught.value.retry_after >= 1
    time.now += 0.5
    await ask(to, seconds=0.1)


async def test_a_check_prevents_the_call_before_it_is_sent() -> None:
    script = Script()
    to = link(script)

    async def check() -> None:
        raise ToolQuarantined("it has changed")

    with pytest.raises(ToolQuarantined):
        await to.request("tools/call", {}, reads=True, seconds=1.0, check=check)
    assert script.asked == []
    assert to.health.state == "healthy"


async def test_a_variable_that_is_not_set_is_told_and_counts_as_no_failure() -> None:
    def expand(table: BackendTable) -> BackendTable:
        raise ConfigError(f"{table.name}: env.TOKEN needs the environment variable 'TOKEN'")

    to = Link(BackendTable("b", "stdio", command="x"), Script(), expand=expand, log=SilentLog(), monotonic=Time())
    for _ in range(FAILURES + 1):
        with pytest.raises(ConfigError, match="TOKEN"):
            await ask(to)
    assert to.health.state == "healthy"


async def test_an_answer_that_is_none_is_a_failure_and_not_asked_for_again() -> None:
    script = Script(BackendProtocolError("b", "no result"))
    to = link(script)
    with pytest.raises(BackendProtocolError):
        await ask(to)
    assert (len(script.asked), to.health.state) == (1, "degraded")


async def test_a_closed_way_refuses_and_a_start_under_way_is_ended() -> None:
    script = Script()
    script.hold = asyncio.Event()
    to = link(script)
    waiting = asyncio.create_task(ask(to))
    await asyncio.sleep(0.01)
    await to.close()
    with pytest.raises(BackendUnavailable):
        await waiting
    with pytest.raises(BackendUnavailable):
        await ask(to)


async def test_a_table_that_names_another_program_ends_the_session_and_one_that_does_not_keeps_it() -> None:
    script = Script()
    to = link(script)
    await ask(to)
    await to.replace(BackendTable("b", "http", url="http://b", timeout=1.0), restart=False)
    await ask(to)
    assert script.connected == 1
    await to.replace(BackendTable("b", "http", url="http://elsewhere"), restart=True)
    await ask(to)
    assert [session.backend.url for session in script.sessions] == ["http://b", "http://elsewhere"]


async def test_what_is_to_be_done_with_a_new_session_is_done_before_the_first_call() -> None:
    script = Script()
    order: list[str] = []

    async def opened(_link: Link, session: Any) -> None:
        await session.request("tools/list", {}, seconds=1.0)
        order.append("listed")

    def changed(_link: Link, method: str, _params: Mapping[str, Any]) -> None:
        order.append(method)

    to = Link(
        BackendTable("b", "http", url="http://b"),
        script,
        expand=lambda each: each,
        log=SilentLog(),
        opened=opened,
        changed=changed,
        monotonic=Time(),
    )
    await asyncio.gather(ask(to), ask(to))
    script.sessions[0].told("notifications/tools/list_changed", {})
    assert script.asked == ["tools/list", "tools/call", "tools/call"]
    assert order == ["listed", "notifications/tools/list_changed"]


async def test_a_session_that_the_backend_has_forgotten_is_begun_anew_and_is_no_failure() -> None:
    script = Script({}, SessionForgotten("b", "unknown session"), {"n": 2})
    to = link(script, max_retries=0)
    await ask(to)
    answered = await ask(to, reads=False)
    assert (answered.result, answered.attempts) == ({"n": 2}, 1)
    assert (to.health.state, script.connected) == ("healthy", 2)


async def test_a_backend_that_forgets_every_session_at_once_fails() -> None:
    script = Script(*[SessionForgotten("b", "unknown session")] * 2)
    to = link(script, max_retries=0)
    with pytest.raises(BackendUnavailable, match="unknown session"):
        await ask(to)
    assert (to.health.state, script.connected) == ("degraded", 2)
