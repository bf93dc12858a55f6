from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from tests.conftest import PATIENCE, Desk, MakeDesk

from agora.config.access import AccessTable
from agora.errors import NamespaceDenied, PayloadTooLarge
from agora.memory.access import GuardedResults
from agora.model.access import Policy
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.ports.kept_results import KeptResult
from agora.stores.sqlite.gateway.kept import SqliteKeptResults
from agora.stores.sqlite.gateway.vectors import SqliteToolVectors
from agora.testing import FakeEncoder


def soon() -> Deadline:
    return Deadline(PATIENCE)


def result(desk: Desk, id_: str, size: int = 10, *, hours: float = 24) -> KeptResult:
    now = desk.clock.now()
    return KeptResult(id_, "p", "files", "get_file", now, now + timedelta(hours=hours), id_.encode().ljust(size, b"."))


def held(desk: Desk) -> list[str]:
    return [row[0] for row in desk.sql("SELECT id FROM kept_results ORDER BY created_at, rowid")]


def test_what_is_kept_is_found_word_for_word_by_every_process(make_desk: MakeDesk) -> None:
    desk, other = make_desk(), make_desk()
    wanted = result(desk, "r_1", 3_000_000)
    desk.store.kept_results().keep(wanted, soon())
    assert other.store.kept_results().fetch("r_1", desk.clock.now(), soon()) == wanted
    assert other.store.kept_results().fetch("r_2", desk.clock.now(), soon()) is None


def test_what_has_expired_is_not_found_and_goes_with_the_next_sweep_or_the_next_result(desk: Desk) -> None:
    kept = desk.store.kept_results()
    kept.keep(result(desk, "r_short", hours=1), soon())
    kept.keep(result(desk, "r_long", hours=24), soon())
    desk.clock.advance(hours=1)
    assert kept.fetch("r_short", desk.clock.now(), soon()) is None
    assert (kept.sweep(desk.clock.now(), soon()), held(desk)) == (1, ["r_long"])
    assert kept.sweep(desk.clock.now(), soon()) == 0
    desk.clock.advance(hours=23)
    kept.keep(result(desk, "r_next"), soon())
    assert held(desk) == ["r_next"]


def test_beyond_the_bound_the_oldest_go_first(desk: Desk) -> None:
    kept = SqliteKeptResults(desk.store._database, most=100, largest=60)
    for number in range(4):
        kept.keep(result(desk, f"r_{number}", 40), soon())
        desk.clock.advance(seconds=1)
    assert held(desk) == ["r_2", "r_3"]
    kept.keep(result(desk, "r_big", 60), soon())
    assert held(desk) == ["r_3", "r_big"]
    with pytest.raises(PayloadTooLarge):
        kept.keep(result(desk, "r_too_big", 61), soon())
    assert held(desk) == ["r_3", "r_big"]


def test_of_one_moment_the_first_goes_first(desk: Desk) -> None:
    kept = SqliteKeptResults(desk.store._database, most=100)
    for number in range(4):
        kept.keep(result(desk, f"r_{number}", 40), soon())
    assert held(desk) == ["r_2", "r_3"]


def scoped(*tables: AccessTable, own: str, also: tuple[str, ...] = ()) -> Caller:
    grants = Policy(tables).grants("http", "tok", (), own)
    return Caller(Scope(own, "test", frozenset(also), grants), "ann", "s1", "test", token="tok")  # noqa: S106 - a name


def test_whoever_may_read_the_namespace_may_read_the_result_and_nobody_else(desk: Desk) -> None:
    guarded = GuardedResults(lambda _: desk.store.kept_results())
    now = desk.clock.now()
    kept = guarded.keep(b"long", "files", "get_file", desk.caller(), now, soon(), hours=1)
    assert (kept.namespace, kept.id[:2], kept.expires_at - now) == ("p", "r_", timedelta(hours=1))
    assert guarded.fetch(kept.id, desk.caller("bob"), now, soon()) == kept
    assert guarded.fetch(kept.id, desk.caller("bob", "q", also=("p",)), now, soon()) == kept
    assert guarded.fetch(kept.id, desk.caller("bob", "q"), now, soon()) is None
    reads = AccessTable(tokens=("tok",), namespaces=("p",), rights="read")
    other = AccessTable(tokens=("tok",), namespaces=("q",), rights="admin")
    assert guarded.fetch(kept.id, scoped(reads, own="p"), now, soon()) == kept
    assert guarded.fetch(kept.id, scoped(other, own="p"), now, soon()) is None
    assert guarded.fetch(kept.id, scoped(other, own="q", also=("p",)), now, soon()) is None
    for id_ in ("", "r_", "n_" + kept.id[2:], kept.id.lower(), "r_' OR 1"):
        assert guarded.fetch(id_, desk.caller(), now, soon()) is None
    with pytest.raises(NamespaceDenied):
        guarded.keep(b"long", "files", "get_file", scoped(other, own="p"), now, soon(), hours=1)


def test_kept_results_leave_notes_and_numbers_alone(desk: Desk) -> None:
    desk.save("text")
    head, _ = desk.store.events(None, 0, soon())
    desk.store.kept_results().keep(result(desk, "r_1"), soon())
    assert desk.store.events(head, 10, soon()) == (head, ())
    assert desk.problems() == []


def test_vectors_of_tools_come_back_to_the_same_encoder_alone(make_desk: MakeDesk) -> None:
    desk = make_desk()
    keys = {bytes([number % 256, number // 256]) + bytes(30): np.full(64, number, np.float32) for number in range(1000)}
    vectors = desk.store.tool_vectors()
    vectors.put(keys)
    vectors.put({})
    found = make_desk().store.tool_vectors().get([*keys, bytes(32)[::-1] + b"x"])
    assert found.keys() == keys.keys()
    assert all(np.array_equal(found[key], keys[key]) and found[key].dtype == np.float32 for key in keys)
    assert vectors.get(()) == {}
    other = FakeEncoder(32, name="other").fingerprint
    assert SqliteToolVectors(desk.store._database, other).get(keys) == {}
    desk.sql("UPDATE tool_vectors SET vector = x'00'")
    assert vectors.get(keys) == {}
    assert desk.problems() == []


def test_vectors_of_tools_are_bounded_and_those_of_other_encoders_go_first(desk: Desk) -> None:
    def some(*numbers: int) -> dict[bytes, np.ndarray]:
        return {bytes([number]) * 32: np.ones(64, np.float32) for number in numbers}

    mine = SqliteToolVectors(desk.store._database, desk.encoder.fingerprint, most=4)
    theirs = SqliteToolVectors(desk.store._database, FakeEncoder(64, name="other").fingerprint, most=4)
    theirs.put(some(1, 2))
    mine.put(some(1, 2))
    mine.put(some(3))
    assert (len(mine.get(some(1, 2, 3))), theirs.get(some(1, 2))) == (3, {})
    mine.put(some(4, 5))
    assert mine.get(some(1, 2, 3, 4, 5)).keys() == some(4, 5).keys()
