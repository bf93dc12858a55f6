from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from tests.unit.router.scripted import Script

from agora.config.backends import BackendTable, identity
from agora.errors import StoreUnavailable
from agora.model.backend import ToolDefinition
from agora.model.deadline import Deadline
from agora.model.pins import Pinned
from agora.router.loop import LoopThread
from agora.router.registry import Registry
from agora.testing import SilentLog

PATIENCE = 20.0


class Written:
    """Tables that a test writes; implements `agora.router.registry.Tables`."""

    trouble: dict[str, Any] | None = None

    def __init__(self, *tables: BackendTable) -> None:
        self.next: tuple[BackendTable, ...] | None = tables

    def write(self, *tables: BackendTable) -> None:
        self.next = tables

    def poll(self) -> tuple[BackendTable, ...] | None:
        found, self.next = self.next, None
        return found


class Remembered:
    """Pins in memory, which `busy` keeps from answering; implements `agora.router.registry.Pins`."""

    def __init__(self) -> None:
        self.busy = False

    def known(self, backend: str, identity: str) -> Pinned | None:
        del backend, identity
        if self.busy:
            raise StoreUnavailable("the store is busy")
        return None

    def seen(self, backend: str, identity: str, definitions: Iterable[ToolDefinition]) -> Pinned:
        del backend, identity
        return Pinned({tool.name: tool for tool in definitions})


class Bench:
    """A registry with its parts."""

    def __init__(self, *tables: BackendTable) -> None:
        self.tables, self.pins, self.script = Written(*tables), Remembered(), Script()
        self.loop = LoopThread("test-backends")
        self.registry = Registry(
            self.tables,
            self.script,
            self.pins,
            self.loop,
            SilentLog(),
            expand=lambda table: table,
            identity=identity,
        )

    def names(self) -> list[str]:
        return [each.table.name for each in self.registry.all()]

    def start(self) -> Mapping[str, Any]:
        """Start all of them; what failed."""
        return self.registry.learn(self.registry.all(), PATIENCE, Deadline(PATIENCE))

    def settle(self) -> None:
        """Return when the event loop has done what it was given before."""

        async def nothing() -> None:
            pass

        self.loop.run(nothing, Deadline(PATIENCE))


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(far("one"), far("two"))
    yield made
    made.loop.close(made.registry.close)


def far(name: str, **given: Any) -> BackendTable:
    return BackendTable(name, "http", url=f"http://127.0.0.1/{name.lower()}", **given)


def test_a_backend_whose_name_is_written_in_another_case_is_ended_and_is_another(bench: Bench) -> None:
    assert bench.start() == {}
    bench.tables.write(far("ONE"), far("two"))
    assert bench.names() == ["ONE", "two"]
    bench.settle()
    assert (bench.script.connected, bench.script.closed) == (2, 1)
    assert bench.start() == {}
    assert [session.backend.name for session in bench.script.sessions if session.alive] == ["two", "ONE"]


def test_a_backend_that_is_taken_out_is_ended_and_the_others_go_on(bench: Bench) -> None:
    bench.start()
    bench.tables.write(far("two"))
    assert bench.names() == ["two"]
    bench.settle()
    assert [session.backend.name for session in bench.script.sessions if session.alive] == ["two"]


def test_tables_that_come_while_the_store_is_busy_are_taken_up_later_and_lose_nothing(bench: Bench) -> None:
    bench.start()
    bench.pins.busy = True
    bench.tables.write(far("three"), far("two"))
    with pytest.raises(StoreUnavailable):
        bench.registry.all()
    bench.pins.busy = False
    assert bench.names() == ["three", "two"]
    bench.settle()
    assert [session.backend.name for session in bench.script.sessions if session.alive] == ["two"]
