"""The choke point: what the services of the memory reach, they reach through it."""

from __future__ import annotations

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conftest import PATIENCE, Desk

import agora
from agora.config.access import AccessTable
from agora.errors import NamespaceDenied
from agora.memory.access import Guarded, Tail, require
from agora.memory.keys import key_of
from agora.model.access import Grants, Policy
from agora.model.browse import Event, Listing
from agora.model.caller import Caller, Scope
from agora.model.crossref import Topic
from agora.model.deadline import Deadline
from agora.model.query import Filter, Query
from agora.ports.records import Reading, Records, State

SOURCE = Path(agora.__file__).parent


def grants(*namespaces: str, rights: str = "read") -> Grants:
    return Policy([AccessTable(namespaces, rights, any=True)]).grants("http", "ci", (), "p")


def caller(*namespaces: str, rights: str = "read", also: tuple[str, ...] = ("shared",)) -> Caller:
    return Caller(Scope("p", "test", frozenset(also), grants(*namespaces, rights=rights)), "ann", "s", "c")


def test_every_method_of_a_reading_that_takes_namespaces_refuses_those_of_others(desk: Desk) -> None:
    note = desk.note(desk.save("theirs", namespace="vault").id, "vault")
    draft = desk.draft("theirs", "vault")
    with Guarded(lambda _: desk.store).read(caller("p"), Deadline(PATIENCE)) as reading:
        for ask in (
            lambda: reading.state(["vault"]),
            lambda: reading.among(Filter(("p", "vault"))),
            lambda: reading.same_text(draft),
            lambda: reading.by_id([note.id], ["vault"]),
            lambda: reading.purged([note.id], ["vault"]),
            lambda: reading.history(note),
            lambda: reading.changes(Topic(("vault",)), caller("p"), 5),
            lambda: reading.page(Listing(("vault",))),
            lambda: reading.names("agents", "", ["vault"], 5),
            lambda: reading.counts(["vault"]),
        ):
            with pytest.raises(NamespaceDenied):
                ask()


def test_notes_are_pinned_only_where_the_caller_may_administer(desk: Desk) -> None:
    note = desk.save("the user's", origin="user").id
    store, now = Guarded(lambda _: desk.store), desk.clock.now()
    for pinned in (True, False):
        with pytest.raises(NamespaceDenied):
            store.pin([note], caller("p", rights="write"), now, Deadline(PATIENCE), pinned=pinned)
        hidden = store.pin([note], caller("shared", rights="admin"), now, Deadline(PATIENCE), pinned=pinned)
        assert (hidden.unknown, hidden.changed) == ((note,), ())
        done = store.pin([note], caller("p", rights="admin"), now, Deadline(PATIENCE), pinned=pinned)
        assert done.changed == (note,)


def test_the_row_of_a_namespace_that_may_not_be_read_does_not_exist(desk: Desk) -> None:
    mine, theirs = desk.save("mine"), desk.save("theirs", namespace="vault")
    rows = {public_id: row for row, public_id in desk.sql("SELECT id, public_id FROM items")}
    with Guarded(lambda _: desk.store).read(caller("p"), Deadline(PATIENCE)) as reading:
        found = reading.by_row([rows[mine.id], rows[theirs.id]])
    assert [note.id for note in found.values()] == [mine.id]


def test_a_reading_has_no_method_that_the_choke_point_does_not_know(desk: Desk) -> None:
    with Guarded(lambda _: desk.store).read(caller("p"), Deadline(PATIENCE)) as reading:
        known = {name for name in vars(type(reading)) if not name.startswith("_")}
    assert known == {name for name in vars(Reading) if not name.startswith("_")}


def test_what_changes_the_store_is_known_to_the_choke_point_too() -> None:
    left_out = {"close"}
    """Who opened a store closes it."""
    assert {name for name in vars(Records) if not name.startswith("_")} - left_out <= set(vars(Guarded))


def test_the_right_to_read_is_not_the_right_to_write() -> None:
    require(caller("p"), ("p",))
    for right in ("write", "admin"):
        with pytest.raises(NamespaceDenied, match=f"takes the right '{right}'"):
            require(caller("p"), ("p",), right)
    require(caller("p", rights="write"), ("p",), "write")


def test_no_namespace_at_all_is_refused() -> None:
    with pytest.raises(NamespaceDenied):
        require(caller("p"), ())


def test_what_is_allowed_and_was_not_named_is_not_reached() -> None:
    with pytest.raises(NamespaceDenied, match="outside what this caller may see"):
        require(caller("*"), ("team-a",))
    require(caller("*", also=("team-a",)), ("team-a",))


def test_only_events_of_what_is_seen_are_told() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    events = [Event(n, at, "save", "n", name, "a", "s") for n, name in enumerate(("p", "vault", "shared", None))]
    tail = Tail(7, events)
    assert (tail.head, tail.last, len(tail)) == (7, 3, 4)
    assert [event.sequence for event in tail.of(caller("p", "vault"))] == [0, 3]
    assert tail.of(caller("vault")) == ()
    assert Tail(7, ()).last == 7


def test_the_tail_of_the_journal_is_for_each_its_own(desk: Desk) -> None:
    desk.save("mine")
    desk.save("theirs", namespace="vault")
    tail = Guarded(lambda _: desk.store).events(0, 10, Deadline(PATIENCE))
    assert len(tail) == 2
    assert [event.namespace for event in tail.of(caller("p"))] == ["p"]
    assert tail.of(caller("shared")) == ()


def test_an_answer_is_kept_for_those_with_the_same_rights() -> None:
    state = State("s", (), datetime(2026, 1, 1, tzinfo=UTC), None)
    query = Query("q", Filter(("p",)))
    keys = {key_of(query, state, "model", rights.mark) for rights in (grants("p"), grants("*"), grants("p", "q"))}
    assert len(keys) == 3
    assert key_of(query, state, "model", grants("p").mark) in keys


def test_nothing_in_memory_and_protocol_reaches_a_store_but_through_the_choke_point() -> None:
    """Where a service holds records it wraps them at once, and `.read(` is called with a caller."""
    wrong = []
    for path in sorted((SOURCE / "memory").glob("*.py")) + sorted((SOURCE / "protocol").rglob("*.py")):
        if path.name == "access.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("_records.read"):
                wrong += [f"{path.name}:{node.lineno}"] if ast.unparse(node.args[0]) != "caller" else []
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self._records":
                guarded = ast.unparse(node.value).startswith("Guarded(")
                wrong += [] if guarded else [f"{path.name}:{node.lineno}"]
    assert wrong == []
