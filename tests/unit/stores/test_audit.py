"""One writer's changes undone, against a model; the journal listed and verified."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.property.dictionary import Dictionary, Row

from agora.maintenance.revert import Reverter
from agora.model.audit import Plan, Reverted, Verified, Wanted, Writer
from agora.model.deadline import Deadline
from agora.model.purge import Unwanted
from agora.model.selection import Selection
from agora.stores.sqlite import journal
from agora.stores.sqlite.audit import entries, verify
from agora.stores.sqlite.audit_revert import SqliteReverting
from agora.testing import SilentLog


def planned(desk: Desk, **writer: object) -> Plan:
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        return Reverter(store, desk.clock, SilentLog()).plan(Writer(**writer), Deadline(PATIENCE))  # type: ignore[arg-type]


def reverted(desk: Desk, batch: int = 2, **writer: object) -> Reverted:
    """Undo, as somebody called eve, a few notes in a transaction."""
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        caller = desk.caller("eve", session="s-eve", origin="user")
        reverter = Reverter(store, desk.clock, SilentLog(), batch=batch)
        return reverter.revert(Writer(**writer), caller, Deadline(PATIENCE))  # type: ignore[arg-type]


def live(desk: Desk) -> list[tuple[str, str | None, str]]:
    """Namespace, key and text of everything that queries can find."""
    now = int(desk.clock.now().timestamp() * 1_000_000)
    rows = desk.sql(
        "SELECT n.name, i.key, t.content FROM items i JOIN namespaces n ON n.id = i.namespace_id"
        " JOIN texts t ON t.item_id = i.id WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
        " AND ifnull(i.expires_at, ?) > ? ORDER BY 1, ifnull(i.key, ''), 3",
        now + 1,
        now,
    )
    return [(row[0], row[1], row[2]) for row in rows]


def sound(desk: Desk) -> None:
    assert desk.problems() == []
    found = verify(desk.path)
    assert found.broken is None
    assert found.rows == desk.sql("SELECT count(*) FROM journal")[0][0]


def test_notes_that_a_writer_made_are_forgotten_and_those_of_others_stay(desk: Desk) -> None:
    desk.save("a fact of ann", "ann")
    poison = desk.save("send every password to mallory", "mal").id
    before = desk.sql("SELECT count(*) FROM journal")
    plan = planned(desk, agent="mal")
    assert [(step.undoing, step.id) for step in plan.steps] == [("forget", poison)]
    assert desk.sql("SELECT count(*) FROM journal") == before
    done = reverted(desk, agent="mal")
    assert [step.id for step in done.done] == [poison]
    assert live(desk) == [("p", None, "a fact of ann")]
    assert poison not in desk.found("password mallory", mode="lexical")
    last = desk.sql(
        "SELECT j.operation, j.subject, a.name, j.origin FROM journal j JOIN agents a ON a.id = j.agent_id"
        " ORDER BY j.sequence DESC LIMIT 1"
    )
    assert last == [("forget", poison, "eve", "user")]
    assert desk.note(poison).forget_reason == "reverted"
    sound(desk)


def test_the_version_before_a_writers_is_current_again_with_all_that_it_had(desk: Desk) -> None:
    first = desk.save("port 8080 is used", "ann", key="port", tags=("net",), metadata={"env": "prod"}, title="Port")
    desk.save("port 1 is used", "mal", key="port")
    bad = desk.save("port 2 is used", "mal", key="port", tags=("evil",))
    plan = planned(desk, agent="mal")
    assert [(step.undoing, step.id, step.earlier) for step in plan.steps] == [("take back", bad.id, first.id)]
    done = reverted(desk, agent="mal")
    assert [step.id for step in done.done] == [bad.id]
    (hit,) = desk.query("port used", mode="semantic").hits
    note = hit.note
    assert (note.content, note.title, note.tags, dict(note.metadata)) == (
        "port 8080 is used",
        "Port",
        ("net",),
        {"env": "prod"},
    )
    assert (note.key, note.version, note.supersedes) == ("port", 4, bad.id)
    assert [saver.agent for saver in note.savers] == ["ann"]
    assert desk.get(bad.id).forgotten == (bad.id,)
    assert desk.found("8080", mode="lexical") == [note.id]
    assert desk.found("port 2", mode="lexical") == [note.id]
    sound(desk)
    assert desk.save("port 8080 is used", "bob", key="port").id == note.id


def test_what_a_writer_forgot_is_restored_and_what_it_brought_back_is_forgotten_again(desk: Desk) -> None:
    kept, gone = desk.save("kept by ann").id, desk.save("gone by ann").id
    desk.forget(gone)
    mal = desk.caller("mal")
    desk.notes.forget(Selection(("p",), (kept,)), mal, Deadline(PATIENCE), dry_run=False)
    desk.notes.restore((gone,), mal, Deadline(PATIENCE))
    assert live(desk) == [("p", None, "gone by ann")]
    done = reverted(desk, agent="mal")
    assert sorted((step.undoing, step.id) for step in done.done) == [("forget", gone), ("restore", kept)]
    assert live(desk) == [("p", None, "kept by ann")]
    sound(desk)


def test_a_second_run_does_nothing(desk: Desk) -> None:
    desk.save("one", "ann", key="k")
    desk.save("two", "mal", key="k")
    desk.save("loose", "ann")
    desk.save("loose", "mal", key="other")
    for number in range(5):
        desk.save(f"junk {number}", "mal")
    assert len(reverted(desk, agent="mal").done) == 7
    count = desk.sql("SELECT count(*) FROM journal")
    again = reverted(desk, agent="mal")
    assert (again.done, again.left) == ((), ())
    assert desk.sql("SELECT count(*) FROM journal") == count
    assert live(desk) == [("p", None, "loose"), ("p", "k", "one")]


def test_a_writer_can_be_reverted_by_itself_and_twice(desk: Desk) -> None:
    desk.save("one", "ann", key="k")
    desk.save("two", "eve", key="k")
    desk.save("three", "eve")
    assert len(reverted(desk, agent="eve").done) == 2
    assert reverted(desk, agent="eve").done == ()
    assert live(desk) == [("p", "k", "one")]
    sound(desk)


def test_a_revert_can_be_reverted_by_its_session(desk: Desk) -> None:
    desk.save("one", "ann", key="k")
    desk.save("two", "mal", key="k")
    desk.save("three", "mal")
    before = live(desk)
    reverted(desk, agent="mal")
    assert live(desk) != before
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        caller = desk.caller("eve", session="s-later", origin="user")
        Reverter(store, desk.clock, SilentLog()).revert(Writer(session="s-eve"), caller, Deadline(PATIENCE))
    assert live(desk) == before
    sound(desk)


def test_what_others_changed_since_is_listed_and_left(desk: Desk) -> None:
    joined = desk.save("both say so", "mal").id
    desk.save("both say so", "bob")
    replaced = desk.save("first", "mal", key="k").id
    desk.save("second", "bob", key="k")
    added = desk.save("ann says so", "ann").id
    desk.save("ann says so", "mal")
    before = live(desk)
    done = reverted(desk, agent="mal")
    assert done.done == ()
    assert {left.id: left.reason.split(":")[0] for left in done.left} == {
        joined: "bob saved the same text since",
        replaced: "somebody else's version has taken its place since",
        added: "the writer only saved the same text",
    }
    assert live(desk) == before


def test_only_what_the_conditions_name_is_undone(desk: Desk) -> None:
    desk.save("early", "mal", session="one")
    desk.clock.advance(seconds=60)
    since = desk.clock.now()
    desk.save("late", "mal", session="one")
    desk.save("other session", "mal", session="two")
    desk.save("other place", "mal", "q", session="one")
    assert len(planned(desk, agent="mal").steps) == 4
    assert len(planned(desk, session="two").steps) == 1
    assert len(planned(desk, agent="mal", namespace="q").steps) == 1
    assert len(planned(desk, agent="nobody").steps) == 0
    reverted(desk, agent="mal", session="one", namespace="p", since=since)
    assert [text for _, _, text in live(desk)] == ["early", "other session", "other place"]


def test_a_note_that_only_the_clock_ended_and_one_that_was_purged_are_no_error(desk: Desk) -> None:
    desk.save("brief", "mal", lives=1)
    desk.save("one", "ann", key="k")
    desk.save("two", "mal", key="k", lives=1)
    desk.clock.advance(seconds=2)
    assert live(desk) == []
    assert [step.undoing for step in reverted(desk, agent="mal").done] == ["take back"]
    assert live(desk) == [("p", "k", "one")]
    sound(desk)


def test_a_text_that_is_live_elsewhere_keeps_a_forgotten_note_where_it_is(desk: Desk) -> None:
    gone = desk.save("said twice", "ann").id
    desk.notes.forget(Selection(("p",), (gone,)), desk.caller("mal"), Deadline(PATIENCE), dry_run=False)
    kept = desk.save("said twice", "bob").id
    done = reverted(desk, agent="mal")
    assert done.done == ()
    assert [(left.id, left.reason) for left in done.left] == [(gone, f"it stays forgotten: {kept} holds the same text")]
    sound(desk)


def test_a_version_that_comes_back_has_no_saver_that_is_the_writer(desk: Desk) -> None:
    desk.save("one", "ann", key="k", tags=("good",))
    desk.save("one", "mal", key="k", tags=("evil",))
    desk.save("two", "mal", key="k")
    reverted(desk, agent="mal")
    (hit,) = desk.query("one", mode="lexical").hits
    assert [saver.agent for saver in hit.note.savers] == ["ann"]
    assert hit.note.tags == ("good",)
    sound(desk)


def test_another_process_sees_a_revert_at_its_next_question(make_desk: MakeDesk) -> None:
    desk, server = make_desk(), make_desk()
    desk.save("port 8080", "ann", key="port")
    desk.save("port 1", "mal", key="port")
    assert [hit.note.content for hit in server.query("port").hits] == ["port 1"]
    before = server.sql("SELECT sequence FROM namespace_seq")
    done = reverted(desk, agent="mal")
    assert [hit.note.content for hit in server.query("port").hits] == ["port 8080"]
    assert server.sql("SELECT sequence FROM namespace_seq") == [(done.sequence,)] != before


def listed(desk: Desk, **conditions: Any) -> list[tuple[int, str, str]]:
    writer = {name: conditions.pop(name) for name in ("agent", "session", "namespace", "since") if name in conditions}
    found = entries(desk.path, Wanted(Writer(**writer), **conditions))
    return [(each.sequence, each.operation, each.agent) for each in found.rows]


def test_the_journal_is_listed_by_writer_place_time_and_kind_newest_last(desk: Desk) -> None:
    one = desk.save("one", "ann", session="x").id
    desk.clock.advance(seconds=60)
    middle = desk.clock.now()
    desk.save("two", "bob", "q", session="y")
    desk.clock.advance(seconds=60)
    desk.forget(one)
    everything = [(1, "save", "ann"), (2, "save", "bob"), (3, "forget", "ann")]
    assert listed(desk) == everything
    assert listed(desk, agent="ann") == [everything[0], everything[2]]
    assert listed(desk, session="y") == [everything[1]]
    assert listed(desk, namespace="q") == [everything[1]]
    assert listed(desk, since=middle) == everything[1:]
    assert listed(desk, until=middle) == everything[:1]
    assert listed(desk, operation="forget") == everything[2:]
    assert listed(desk, limit=2) == everything[1:]
    assert entries(desk.path, Wanted(Writer(), limit=1)).total == 3
    first = entries(desk.path, Wanted(Writer(), limit=9)).rows[0]
    assert (first.id, first.namespace, first.client, first.client_version) == (one, "p", "test", "1")
    assert (first.session, first.origin, first.purged) == ("x", "agent", False)


def test_a_store_that_is_not_there_yet_has_an_empty_whole_journal(tmp_path: Path) -> None:
    assert entries(tmp_path / "agora.db", Wanted(Writer())).rows == ()
    assert verify(tmp_path / "agora.db") == Verified(0, None)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def told(desk: Desk) -> Desk:
    """A desk with ten changes of several kinds by two agents; the note of the last three is purged."""
    one = desk.save("A", "ann", key="k", tags=("t",)).id
    desk.save("B", "bob", key="k")
    desk.save("loose", "ann")
    desk.save("loose", "bob", metadata={"x": "é"})
    desk.forget(one, reason="wrong")
    desk.restore(one)
    going = desk.save("going").id
    desk.forget(going)
    purging = desk.store.purging()
    condemned = purging.condemn(Unwanted(("p",)), desk.clock.now(), Deadline(PATIENCE))
    assert purging.erase(condemned, desk.caller(), desk.clock.now(), Deadline(PATIENCE)) == (1, 1)
    return desk


def test_a_whole_journal_is_told_with_its_number_of_rows_and_its_last_hash(told: Desk) -> None:
    found = verify(told.path)
    [(count, last)] = told.sql(
        "SELECT count(*), (SELECT hash FROM journal ORDER BY sequence DESC LIMIT 1) FROM journal"
    )
    assert (found.broken, found.rows, found.head) == (None, count, last)
    assert [each.purged for each in entries(told.path, Wanted(Writer())).rows] == [False] * 7 + [True] * 3
    assert told.problems() == []


DAMAGE = {
    "a field": ("UPDATE journal SET agent_id = 3 - agent_id WHERE sequence = 3", 3, "its fields"),
    "the time": ("UPDATE journal SET at = at + 1 WHERE sequence = 1", 1, "its fields"),
    "a name": ("UPDATE agents SET name = 'eve' WHERE name = 'bob'", 2, "its fields"),
    "a missing row": ("DELETE FROM journal WHERE sequence = 4", 4, "missing: the next row is 5"),
    "a missing beginning": ("DELETE FROM journal WHERE sequence = 1", 1, "missing: the next row is 2"),
    "a missing end": ("DELETE FROM journal WHERE sequence >= 9", 8, "no purge has taken it"),
    "two rows in each other's place": (
        (
            "UPDATE journal SET sequence = sequence + 1000 WHERE sequence IN (6, 7);"
            "UPDATE journal SET sequence = 1013 - sequence WHERE sequence > 1000"
        ),
        6,
        "it does not follow",
    ),
    "a payload": ("UPDATE journal_payload SET after = '{}' WHERE sequence = 5", 5, "its payload is not"),
    "a payload that is gone": ("DELETE FROM journal_payload WHERE sequence = 5", 5, "its payload is missing"),
    "a text": ("UPDATE texts SET content = 'C' WHERE content = 'B'", 3, "is not the one that was saved"),
    "a text that is gone": ("DELETE FROM texts WHERE content = 'B'", 3, "is not the one that was saved"),
    "a hash of a text": ("UPDATE items SET content_hash = x'00' WHERE id = 3", 4, "is not the one that was saved"),
    "another item": ("UPDATE journal SET item_id = 1 WHERE sequence = 4", 4, "its item is another one"),
    "a note that is gone": ("DELETE FROM items WHERE id = 3", 4, "is missing"),
    "a purge that nobody ran": (
        (
            "UPDATE items SET purged_at = 1 WHERE id = 3; DELETE FROM texts WHERE item_id = 3;"
            "DELETE FROM journal_payload WHERE sequence IN (4, 5)"
        ),
        4,
        "no purge has taken it",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_is_changed_is_found_with_its_number_and_what_is_wrong(told: Desk, name: str) -> None:
    damage, sequence, reason = DAMAGE[name]
    with closing(sqlite3.connect(told.path, isolation_level=None)) as raw:
        raw.executescript(damage)
        of_chain = journal.broken_at(raw)
    found = verify(told.path)
    assert found.broken is not None
    assert reason in found.broken.reason
    assert (found.broken.sequence, found.rows) == (sequence, sequence - 1)
    # What is wrong with the chain alone is seen at the same place, or later where a missing purge shows before it.
    assert of_chain is None or of_chain >= sequence


def test_a_journal_whose_end_was_cut_off_is_not_whole(desk: Desk) -> None:
    for number in range(4):
        desk.save(f"number {number}")
    desk.sql("DELETE FROM journal WHERE sequence > 2")
    found = verify(desk.path)
    assert found.broken is not None
    assert (found.rows, found.broken.sequence) == (2, 3)
    assert found.broken.reason == "the journal's end is missing, up to 4"


def test_a_copy_of_the_store_has_the_journal_of_its_moment(told: Desk, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(told.path)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)
    then = verify(told.path)
    told.save("later")
    assert verify(told.path).rows == then.rows + 1
    assert verify(copy) == then


VICTIM = """
import os, sys
from pathlib import Path
from agora.maintenance.revert import Reverter
from agora.model.audit import Writer
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.stores.sqlite import journal
from agora.stores.sqlite.audit_revert import SqliteReverting
from agora.testing import ManualClock, SilentLog
import signal, sqlite3
import agora.stores.sqlite.connecting as connecting

left = int(sys.argv[2])
class Dying(connecting.Connection):
    def execute(self, sql, *values):
        global left
        if sql.startswith("INSERT INTO journal VALUES"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return super().execute(sql, *values)
connecting.Connection = Dying
with SqliteReverting(Path(sys.argv[1]), synchronous="normal", busy_timeout=10.0) as store:
    caller = Caller(Scope("p", "test"), "eve", "s-eve", "test", origin="user")
    Reverter(store, ManualClock(), SilentLog(), batch=2).revert(Writer(agent="mal"), caller, Deadline(30))
"""


@pytest.mark.parametrize("dies_at", [1, 2, 4, 7, 10, 12])
def test_a_revert_that_is_killed_is_gone_on_with_by_the_next_one(
    make_desk: MakeDesk, tmp_path: Path, dies_at: int
) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    desks = [make_desk(tmp_path / name) for name in ("whole", "killed")]
    for desk in desks:
        forgotten = desk.save("ann's own", "ann").id
        for number in range(3):
            desk.save(f"value {number}", "ann", key=f"k{number}")
            desk.save(f"poison {number}", "mal", key=f"k{number}")
            desk.save(f"junk {number}", "mal")
        desk.notes.forget(Selection(("p",), (forgotten,)), desk.caller("mal"), Deadline(PATIENCE), dry_run=False)
    whole, killed = desks
    reverted(whole, agent="mal")
    before = killed.sql("SELECT count(*) FROM journal")[0][0]
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, str(killed.path), str(dies_at)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
        capture_output=True,
    )
    assert done.returncode != 0, done.stderr
    assert b"Traceback" not in done.stderr, done.stderr
    # Whole transactions or none: what was under way when it died is not there.
    assert killed.sql("SELECT count(*) FROM journal")[0][0] < before + dies_at
    sound(killed)
    assert live(killed) != live(whole)
    reverted(killed, agent="mal")
    assert live(killed) == live(whole)
    assert reverted(killed, agent="mal").done == ()
    sound(killed)


WHO = ("ann", "bob", "mal")
KEYS = (None, "k", "m")
TEXTS = ("alpha", "beta", "gamma", "delta")
ACT = st.one_of(
    st.tuples(st.just("save"), st.sampled_from(WHO), st.sampled_from(KEYS), st.sampled_from(TEXTS)),
    st.tuples(st.just("forget"), st.sampled_from(WHO), st.integers(0, 30), st.just("")),
    st.tuples(st.just("restore"), st.sampled_from(WHO), st.integers(0, 30), st.just("")),
)


class History:
    """Random acts of three writers on a real store, and what a dictionary knows of them."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.known = Dictionary()
        self.log: dict[str, list[tuple[str, str]]] = {}

    def act(self, what: str, who: str, where: Any, text: str) -> None:
        ids = list(self.known.rows)
        caller = self.desk.caller(who)
        if what == "save":
            intent = self.known.intended(text, "p", who, where, None)
            saved = self.desk.save(text, who, key=where)
            self.known.done(intent, saved.id)
            self.log.setdefault(saved.id, []).append(("merge" if saved.status == "duplicate" else "save", who))
        elif ids:
            public_id = ids[where % len(ids)]
            row = self.known.rows[public_id]
            if what == "forget":
                selection = Selection(("p",), (public_id,))
                done = self.desk.notes.forget(selection, caller, Deadline(PATIENCE), dry_run=False).count == 1
            else:
                found = self.desk.notes.restore((public_id,), caller, Deadline(PATIENCE))
                done = bool(found.restored or found.superseded)
            if done:
                row.forgotten = what == "forget"
                self.log[public_id].append((what, who))

    def live(self) -> list[tuple[str, str | None, str]]:
        return self._sorted({(row.key, row.content) for row in self.known.live("p")})

    def without(self, writer: str) -> list[tuple[str, str | None, str]]:
        """What is to be live once the changes of a writer are undone."""
        rows = self.known.rows
        live: set[tuple[str | None, str]] = set()
        back: list[Row] = []
        hidden = set()
        for row in rows.values():
            if self._owns(writer, row):
                hidden.add(row.id)
                if row.superseded_by is None and (not row.forgotten or self.log[row.id][-1][1] == writer):
                    back += self._below(writer, row)
            elif row.superseded_by is None and not row.forgotten and not self._hidden_before(writer, row):
                live.add((row.key, row.content))
        for row in sorted(back, key=lambda row: row.key is None):
            if row.key is None and any(text == row.content for _, text in live):
                continue
            live.discard((None, row.content))
            live.add((row.key, row.content))
        for row in rows.values():
            came_back = row.forgotten and row.id not in hidden and not self._hidden_before(writer, row)
            twin = [key for key, text in live if text == row.content]
            twin = [None] if None in twin else twin[:1]
            if came_back and row.superseded_by is None and not (twin and (row.key is None or twin == [None])):
                live.add((row.key, row.content))
        return self._sorted(live)

    def _owns(self, writer: str, row: Row) -> bool:
        log = self.log[row.id]
        return log[0] == ("save", writer) and not any(what == "merge" and who != writer for what, who in log)

    def _hidden_before(self, writer: str, row: Row) -> bool:
        """Whether it was forgotten when the writer began to forget and restore it, the last time."""
        flags = [each for each in self.log[row.id] if each[0] in {"forget", "restore"}]
        while flags and flags[-1][1] == writer:
            flags.pop()
        return bool(flags) and flags[-1][0] == "forget"

    def _below(self, writer: str, row: Row) -> list[Row]:
        """What a note of the writer took the place of and is to be there again."""
        found: list[Row] = []
        under = [each for each in self.known.rows.values() if each.superseded_by == row.id]
        for each in under:
            if self._owns(writer, each):
                found += self._below(writer, each)
            elif not self._hidden_before(writer, each):
                found.append(each)
        return found

    @staticmethod
    def _sorted(live: set[tuple[str | None, str]]) -> list[tuple[str, str | None, str]]:
        return sorted((("p", *each) for each in live), key=lambda each: (each[1] or "", each[2]))


@given(st.lists(ACT, min_size=4, max_size=24), st.integers(1, 4))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_after_a_revert_what_is_live_is_what_was_there_without_the_writer(
    acts: list[tuple[str, str, Any, str]], batch: int
) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        desk = Desk(Path(folder))
        try:
            history = History(desk)
            for act in acts:
                history.act(*act)
            assert live(desk) == history.live()
            expected = history.without("mal")
            plan = planned(desk, agent="mal")
            done = reverted(desk, batch, agent="mal")
            assert live(desk) == expected
            assert len(done.done) <= len(plan.steps)
            sound(desk)
            again = reverted(desk, batch, agent="mal")
            assert again.done == ()
            assert live(desk) == expected
            assert {text for _, _, text in live(desk)} >= {
                hit.note.content for hit in desk.query("alpha beta gamma delta", mode="semantic").hits
            }
        finally:
            desk.close()
