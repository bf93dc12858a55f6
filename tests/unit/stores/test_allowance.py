"""What agents and namespaces may save, counted by all processes together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PATIENCE, Desk

from agora.app.opening import allowances
from agora.config.bounds import QuotaSettings
from agora.errors import QuotaExceeded, RateLimited
from agora.memory.notes import Notes
from agora.memory.passages import embed
from agora.model.allowance import Allowance, Allowances
from agora.model.deadline import Deadline
from agora.model.purge import Unwanted
from agora.ports.encoder import Vector
from agora.ports.transfer import Arrival, Extract
from agora.stores.sqlite.allowance import Owner, charge
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog


class Bounded(Desk):
    """A process whose store has allowances."""

    def __init__(self, folder: Path, clock: ManualClock, wanted: Allowances | None) -> None:
        self.folder, self.path, self.clock, self.encoder = folder, folder / "agora.db", clock, FakeEncoder()
        self.store = SqliteStore(self.path, self.encoder.fingerprint, clock, allowances=wanted)
        self.notes = Notes(self.store, self.encoder, clock, SilentLog(), model_seconds=PATIENCE)


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[Any]:
    """Makes processes on one folder, each with these allowances: of an agent, of a namespace."""
    clock, made = ManualClock(), list[Desk]()

    def make(agent: Allowance | None = None, namespace: Allowance | None = None) -> Desk:
        wanted = Allowances(agent or Allowance(), namespace or Allowance())
        made.append(Bounded(tmp_path, clock, wanted))
        return made[-1]

    yield make
    for each in made:
        each.close()


def refused(desk: Desk, text: str, *who: str) -> RateLimited | QuotaExceeded:
    """How a save is refused, which leaves nothing behind."""
    before = desk.sql("SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM journal), * FROM meta")
    with pytest.raises((RateLimited, QuotaExceeded)) as caught:
        desk.save(text, *who)
    assert desk.sql("SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM journal), * FROM meta") == before
    assert isinstance(caught.value, RateLimited | QuotaExceeded)
    return caught.value


def test_an_agent_that_saves_too_fast_is_told_when_there_is_room_and_others_go_on(bounded: Any) -> None:
    one, two = bounded(Allowance(saves=10)), bounded(Allowance(saves=10))
    for number in range(5):
        # The same text again counts too, and both processes share the count.
        one.save("again and again", "mal")
        two.save(f"junk {number}", "mal")
    error = refused(one, "one more", "mal")
    assert (error.code, error.retryable) == ("rate_limited", True)
    assert error.details()["retry_after"] == 360
    assert "quota.agent_saves" in error.hint
    refused(two, "again and again", "mal")
    two.save("of somebody else", "ann")
    one.clock.advance(seconds=359)
    refused(one, "one more", "mal")
    one.clock.advance(seconds=1)
    one.save("one more", "mal")
    refused(one, "yet one", "mal")
    one.clock.advance(seconds=3600)
    for number in range(10):
        two.save(f"later {number}", "mal")
    refused(two, "yet one", "mal")
    assert two.problems() == []


class Asked(FakeEncoder):
    """Knows how often it was asked."""

    times = 0

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        self.times += 1
        return super().encode_all(texts, deadline)


@pytest.mark.parametrize("limits", [(Allowance(saves=2), None), (None, Allowance(saves=2)), (Allowance(size=10), None)])
def test_a_save_that_will_be_refused_costs_the_model_nothing(bounded: Any, limits: Any) -> None:
    desk, encoder = bounded(*limits), Asked()
    desk.notes = Notes(desk.store, encoder, desk.clock, SilentLog(), model_seconds=PATIENCE)
    desk.save("one", "mal")
    desk.save("two", "mal")
    assert encoder.times == 2
    for number in range(5):
        refused(desk, f"junk {number}", "mal")
    assert encoder.times == 2


def test_many_names_in_one_namespace_share_what_it_may(bounded: Any) -> None:
    desk = bounded(Allowance(saves=100), Allowance(saves=4))
    for number in range(4):
        desk.save(f"junk {number}", f"forged{number}")
    error = refused(desk, "more", "forged9")
    assert error.message.startswith("the namespace 'p' has made 4 saves")
    desk.save("elsewhere", "forged9", "q")


def test_many_names_that_come_with_one_token_share_what_one_agent_may(bounded: Any) -> None:
    desk = bounded(Allowance(saves=4, size=1_000))

    def save(text: str, agent: str, token: str) -> None:
        desk.notes.save(desk.draft(text), replace(desk.caller(agent), token=token), Deadline(PATIENCE))

    for number in range(4):
        save(f"junk {number}", f"forged{number}", "mallory")
    with pytest.raises(RateLimited, match="the token 'mallory' has made 4 saves") as fast:
        save("more", "forged4", "mallory")
    assert "quota.agent_saves" in fast.value.hint
    save("a fact of ann", "forged4", "ann")
    desk.clock.advance(seconds=3600)
    save("a" * 600, "forged5", "mallory")
    with pytest.raises(QuotaExceeded, match="the token 'mallory' keeps"):
        save("b" * 600, "forged6", "mallory")
    save("b" * 600, "ann", "ann")


def test_a_clock_that_was_ahead_locks_nobody_out(bounded: Any) -> None:
    desk = bounded(Allowance(saves=2))
    desk.clock.advance(seconds=30 * 86_400)
    desk.save("of the future", "mal")
    desk.clock.advance(seconds=-30 * 86_400)
    desk.save("now", "mal")
    desk.save("now, too", "mal")
    refused(desk, "no more", "mal")


def test_saves_of_threads_and_processes_at_once_are_all_counted(bounded: Any) -> None:
    desks = [bounded(Allowance(saves=30)) for _ in range(3)]
    outcomes: list[bool] = []

    def work(desk: Desk, place: int) -> None:
        for number in range(20):
            try:
                desk.save(f"junk {place} {number}", "mal")
            except RateLimited:
                outcomes.append(False)
            else:
                outcomes.append(True)

    threads = [threading.Thread(target=work, args=(desk, place)) for place, desk in enumerate(desks)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert (len(outcomes), outcomes.count(True)) == (60, 30)
    assert desks[0].sql("SELECT count(*) FROM items") == [(30,)]


def purge(desk: Desk) -> None:
    purging = desk.store.purging()
    condemned = purging.condemn(Unwanted(("p",)), desk.clock.now(), Deadline(PATIENCE))
    purging.erase(condemned, desk.caller(), desk.clock.now(), Deadline(PATIENCE))


def test_a_full_agent_is_refused_until_something_of_its_is_purged(bounded: Any) -> None:
    desk = bounded(Allowance(size=1000))
    first = desk.save("a" * 600, "mal").id
    error = refused(desk, "b" * 500, "mal")
    assert (error.code, error.retryable) == ("quota_exceeded", False)
    assert "quota.agent_mb" in error.hint
    # What is there already takes no room, nor does what others save.
    desk.save("a" * 600, "mal")
    desk.save("b" * 500, "ann")
    desk.save("c" * 300, "mal")
    desk.forget(first)
    desk.clock.advance(seconds=61)
    refused(desk, "d" * 500, "mal")
    purge(desk)
    desk.clock.advance(seconds=61)
    desk.save("d" * 500, "mal")
    refused(desk, "e" * 500, "mal")
    assert desk.problems() == []


def test_title_and_metadata_take_room_too_and_a_namespace_has_its_own(bounded: Any) -> None:
    desk = bounded(namespace=Allowance(size=1000))
    desk.save("short", "ann", title="t" * 400, metadata={"m": "é" * 200})
    assert refused(desk, "x" * 300, "bob").message.startswith("the namespace 'p' keeps")
    desk.save("x" * 300, "bob", "q")
    assert desk.sql("SELECT value FROM meta WHERE key = 'used/namespace/1'")[0][0].endswith(f":{5 + 400 + 408}")


def test_what_was_there_before_the_limit_counts_and_what_was_saved_without_one(bounded: Any) -> None:
    free = bounded()
    free.save("a" * 600, "mal")
    assert {value.split(":")[1] for key, value in free.sql("SELECT * FROM meta") if key.startswith("used/")} == {"-1"}
    refused(bounded(Allowance(size=1000)), "b" * 500, "mal")
    refused(bounded(namespace=Allowance(size=1000)), "b" * 500, "ann")


def test_what_an_import_brings_is_counted_and_never_refused(bounded: Any) -> None:
    desk = bounded(Allowance(size=1000), Allowance(size=1000))
    desk.save("here", "mal")
    transfer = desk.store.transfer()
    with transfer.outgoing(Extract(("p",), vectors=True), desk.clock.now(), Deadline(PATIENCE)) as outgoing:
        [version] = outgoing.versions()
    for number in range(3):
        text = str(number) * 600
        brought = replace(version, id=f"n_{'0' * 25}{number}", content=text, passages=())
        arrival = Arrival(brought, embed(desk.encoder, None, text, Deadline(PATIENCE)))
        transfer.add([arrival], desk.caller("importer"), {}, desk.clock.now(), Deadline(PATIENCE))
    assert {value.split(":")[1] for key, value in desk.sql("SELECT * FROM meta") if key.startswith("used/")} == {
        str(4 + 2 + 3 * 602)
    }
    refused(desk, "more", "mal")
    refused(desk, "more", "ann")


def test_a_save_is_counted_in_a_few_microseconds(bounded: Any) -> None:
    desk = bounded()
    allowance, rounds = Allowance(10_000_000, 10**12), 2000

    def work(connection: Any) -> float:
        began = time.process_time()
        for number in range(rounds):
            charge(connection, Owner("agent", 1, "x"), allowance, 100, number)
            charge(connection, Owner("namespace", 1, "x"), allowance, 100, number)
        return (time.process_time() - began) / rounds

    # It must stay below 50 on a quiet machine; this one may be busy.
    assert desk.store._database.write(work, Deadline(PATIENCE)) < 150e-6


def test_the_settings_are_generous_and_zero_is_no_limit() -> None:
    usual = allowances(QuotaSettings())
    assert usual == Allowances(Allowance(20_000, 1_024_000_000), Allowance(100_000, 4_096_000_000))
    none = allowances(QuotaSettings(agent_saves=0, namespace_saves=0, agent_mb=0, namespace_mb=0))
    assert none == Allowances()


def test_who_takes_the_name_of_an_agent_with_another_token_uses_up_its_own_and_learns_nothing(bounded: Any) -> None:
    desk = bounded(Allowance(saves=3, size=1000))

    def save(token: str, text: str) -> None:
        caller = replace(desk.caller("alice"), token=token)
        desk.notes.save(desk.draft(text), caller, Deadline(PATIENCE))

    save("desk", "a" * 900)
    # Neither how much it has saved, nor that it has saved at all.
    for number in range(3):
        save("mallory", f"junk {number}")
    with pytest.raises(RateLimited):
        save("mallory", "more junk")
    desk.clock.advance(seconds=3601)
    with pytest.raises(QuotaExceeded):
        save("desk", "b" * 200)
    save("mallory", "c" * 200)
    save("desk", "d" * 50)
    desk.save("without a token: " + "e" * 900, "alice")
    assert desk.problems() == []
