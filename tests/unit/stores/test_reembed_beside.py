"""A store moves to another encoder while others write it, ask it, purge it, repair it."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.stores.moving import (
    ALIKE,
    BOTH,
    LONG,
    MODES,
    SHORT,
    Beside,
    Counted,
    Stopped,
    fill,
    move,
    nothing,
    soon,
)

from agora.cache.results import TwoLevelCache
from agora.errors import (
    EmbeddingMismatch,
    EncoderUnavailable,
    StoreUnavailable,
)
from agora.maintenance.purge import Purger
from agora.maintenance.reembed import Reembed
from agora.memory.notes import Notes
from agora.memory.passages import embed
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.model.purge import Unwanted
from agora.model.query import Filter, Query
from agora.ports.encoder import Vector
from agora.ports.transfer import Arrival, Extract
from agora.testing import FakeEncoder, SilentLog

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk


class Others:
    """What other processes do to a store, a step at a time."""

    def __init__(self, desk: Desk, ids: dict[str, str]) -> None:
        self.desk = desk
        self.ids = ids
        self.saved: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.turn = 0

    def __call__(self, name: str) -> None:
        if name in {"keep", "left", "cut_anew"} and self.turn < 40:
            self.act(self.turn)
            self.turn += 1
            assert spare_is_right(self.desk)

    def act(self, turn: int) -> None:
        desk, saved, hidden = self.desk, self.saved, self.hidden
        word = f"meanwhile{turn}"
        saved[word] = desk.save(f"{word} {LONG if turn % 5 == 0 else 'a short one'}").id
        if turn % 4 == 1:
            saved["version"] = desk.save(f"version number{turn} of it", key="version").id
        if turn % 4 == 2:
            hidden.add(saved[f"meanwhile{turn - 2}"])
            desk.forget(saved[f"meanwhile{turn - 2}"])
        if turn % 4 == 3:
            # What was moved already, too.
            desk.forget(self.ids["plain2"])
            assert desk.restore(self.ids["plain2"]).restored == (self.ids["plain2"],)
            desk.save(f"port is {turn}", key="port")
            desk.forget(self.ids["plain3"])
        if turn % 8 == 7:
            back = hidden.pop()
            assert desk.restore(back).restored == (back,)
        if turn == 9:
            assert desk.restore(self.ids["gone"]).restored == (self.ids["gone"],)
            desk.forget(self.ids["plain1"])
        if turn == 12:
            arrive(desk, "imported words from elsewhere", saved)


@BOTH
def test_what_others_do_meanwhile_is_found_afterwards(make_desk: MakeDesk, kind: dict[str, Any]) -> None:
    old = make_desk()
    ids = fill(old)
    moved = make_desk(encoder=Counted(**kind))
    others = Others(old, ids)
    move(moved, others)
    assert others.turn > 13
    assert moved.problems() == []
    asked = {"imported": "imported words from elsewhere", "version": "version number"}
    for word, public_id in others.saved.items():
        for mode in MODES:
            found = moved.found(asked.get(word, word), mode=mode)
            assert (public_id in found) is (public_id not in others.hidden), (word, mode)
    assert moved.found("gonewords", mode="semantic")[0] == ids["gone"]
    assert ids["plain1"] not in moved.found("thing1", mode="lexical")
    moved.restore(ids["plain1"])
    assert moved.found("thing1", mode="semantic")[0] == ids["plain1"]
    assert moved.problems() == []


def spare_is_right(desk: Desk) -> bool:
    """Whether the full text to come holds the passages of findable items that were cut for it, and no others."""
    [(layout, own)] = desk.sql(
        "SELECT layout, layout <> (SELECT layout FROM encoders WHERE state = 'active') FROM encoders"
        " WHERE state = 'building'"
    ) or [(0, 0)]
    expected = desk.sql(
        "SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id WHERE p.layout = ?"
        " AND i.superseded_by IS NULL AND i.forgotten_at IS NULL ORDER BY p.id",
        layout,
    )
    held = desk.sql("SELECT id FROM fulltext_spare_content ORDER BY id")
    sizes = desk.sql("SELECT coalesce(sum(passages), 0) FROM namespace_stats_spare")
    words = desk.sql("SELECT term, sum(passages) FROM term_stats_spare GROUP BY term")
    counted = Counter(
        term
        for title, body in desk.sql("SELECT c1, c2 FROM fulltext_spare_content")
        for term in {*title.split(), *body.split()}
    )
    return not own or (held == expected and sizes == [(len(held),)] and Counter(dict(words)) == counted)


def arrive(desk: Desk, content: str, saved: dict[str, str]) -> None:
    """Import a version, as `agora import` does."""
    transfer = desk.store.transfer()
    source = desk.save(f"{content} to be copied").id
    with transfer.outgoing(Extract(("p",), vectors=True), desk.clock.now(), soon()) as outgoing:
        # A file carries vectors only if it is asked to, and then those of the encoder that queries use.
        assert outgoing.profile.name == desk.encoder.fingerprint.name
        version = next(each for each in outgoing.versions() if each.id == source)
        assert {len(vector) for _, vector in version.passages} == {desk.encoder.fingerprint.dimension}
    desk.forget(source)
    copy = replace(version, id=f"n_{'0' * 25}1", content=content, passages=())
    embedded = embed(desk.encoder, copy.title, content, soon())
    [outcome] = transfer.add([Arrival(copy, embedded)], desk.caller(), {"file": "x"}, desk.clock.now(), soon())
    assert outcome.fate == "created"
    saved["imported"] = outcome.id


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "semantic"])
def test_no_cache_answers_with_what_another_encoder_found(make_desk: MakeDesk, mode: str) -> None:
    old = make_desk()
    kept = old.save("cold cache words").id
    moved = make_desk(encoder=Counted(**ALIKE))
    caches = {desk: TwoLevelCache(desk.clock, None, entries=9, seconds=900, disk_seconds=900) for desk in (old, moved)}
    notes = {
        desk: Notes(desk.store, desk.encoder, desk.clock, SilentLog(), model_seconds=9, cache=cache)
        for desk, cache in caches.items()
    }

    def ask(desk: Desk) -> Any:
        asked = Query("cold words", Filter(("p",)), 5, mode, None, 1000)  # type: ignore[arg-type]
        return notes[desk].query(asked, desk.caller(), soon())

    def refused(desk: Desk) -> None:
        if mode == "lexical":
            assert ask(desk).cached is None
        else:
            with pytest.raises(EmbeddingMismatch):
                ask(desk)

    assert [ask(old).cached, ask(old).cached] == [None, "L1"]
    move(moved)
    refused(old)
    first = ask(moved)
    assert (first.cached, [hit.note.id for hit in first.hits]) == (None, [kept])
    assert ask(moved).cached == "L1"
    # And back: what either remembers is of another time.
    move(old)
    refused(moved)
    assert ask(old).cached is None
    assert ask(old).cached == "L1"


def test_a_process_that_has_the_old_encoder_is_told_where_the_store_went(make_desk: MakeDesk) -> None:
    old = make_desk()
    kept = old.save("first words").id
    assert old.store.mismatch is None
    moved = make_desk(encoder=Counted(**ALIKE))
    ahead = moved.store.mismatch
    assert ahead is not None
    assert "built with the embedding model 'fake', not with 'alike'" in ahead.message
    assert "set embedding.model to 'fake'" in ahead.hint
    assert "`agora reembed --model alike`" in ahead.hint

    def stop(name: str) -> None:
        if name == "keep":
            raise Stopped

    with pytest.raises(Stopped):
        move(moved, stop)
    under_way = moved.store.mismatch
    assert under_way is not None
    assert "on its way from 'fake' to 'alike'" in under_way.message
    assert "run it again if it was stopped" in under_way.hint
    move(moved)
    made = embed(old.encoder, None, "third words", soon())
    for refused in (
        # With a vector that was made just before the switch.
        lambda: old.store.save(old.draft("third words"), old.caller(), made, old.clock.now(), soon()),
        lambda: old.save("second words"),
        lambda: old.save("first words", "bob"),
        lambda: old.query("first", mode="semantic"),
        lambda: old.query("first"),
    ):
        with pytest.raises(EmbeddingMismatch) as caught:
            refused()
        assert "moved from the embedding model 'fake' to 'alike'" in caught.value.message
        assert "Set embedding.model to 'alike', and start this process again" in caught.value.hint
        assert "`agora reembed --model fake`" in caught.value.hint
    with old.store.transfer().outgoing(Extract(("p",)), old.clock.now(), soon()) as outgoing:
        [version] = outgoing.versions()
    arrival = Arrival(replace(version, id=f"n_{'0' * 25}1", content="third words"), made)
    with pytest.raises(EmbeddingMismatch, match="moved from the embedding model 'fake' to 'alike'"):
        old.store.transfer().add([arrival], old.caller(), {}, old.clock.now(), soon())
    assert old.found("first", mode="lexical") == [kept]
    status = old.notes.status(old.caller(), soon())
    assert "embedding_mismatch" in [problem["code"] for problem in status["problems"]]
    assert old.sql("SELECT count(*) FROM items") == [(1,)]


def test_a_text_that_lost_a_vector_is_not_found_twice(make_desk: MakeDesk) -> None:
    old = make_desk()
    several = old.save("one two three four five six seven eight nine ten " * 20).id
    old.save(LONG)

    class Choosy(Counted):
        def split(self, text: str, deadline: Deadline) -> tuple[Span, ...]:
            # The first text as it is cut, the other one not.
            return super().split(text, deadline) if "zebra" not in text else FakeEncoder(piece=90).split(text, deadline)

    moved = make_desk(encoder=Choosy(dimension=16, name="other"))

    def step(name: str) -> None:
        if name == "cut_anew":
            assert old.sql("DELETE FROM vectors WHERE encoder_id = 2 AND passage_id = 2 RETURNING id")
        if name == "switch":
            [counted] = moved.sql(
                "SELECT count(*), count(DISTINCT p.n) FROM vectors v JOIN passages p ON p.id = v.passage_id"
                " JOIN items i ON i.id = p.item_id AND i.public_id = ? WHERE v.encoder_id = 2",
                several,
            )
            assert counted[0] == counted[1] > 1
            assert moved.problems() == []

    assert move(moved, step).cut_anew


class Slow(Counted):
    """Takes a hundredth of a second for each passage."""

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        for _ in texts:
            threading.Event().wait(0.01)
            deadline.check()
        return super().encode_all(texts, deadline)


def test_a_store_that_is_written_faster_than_it_is_encoded_converges_all_the_same(make_desk: MakeDesk) -> None:
    old = make_desk()
    saved = [old.save(f"early words{number}").id for number in range(30)]
    moved = make_desk(encoder=Slow(**ALIKE))
    steps: Counter[str] = Counter()

    def step(name: str) -> None:
        steps[name] += 1
        # In every pause as many as it encodes in one, and more while it encodes without a lock.
        if name in {"keep", "left"} and not steps["switch"]:
            saved.extend(old.save(f"late words{len(saved)} {each}").id for each in range(4))

    done = move(moved, step)
    assert steps["not switched"] > 0
    assert done.switched is not None
    assert done.switched.held < 1
    assert moved.problems() == []
    assert sorted(moved.found("words", mode="lexical", top_k=50)) <= sorted(saved)
    assert moved.sql("SELECT count(*) FROM vectors") == [(len(saved),)]


def test_an_encoder_too_slow_for_a_lock_gets_its_time_without_one(make_desk: MakeDesk) -> None:
    old = make_desk()
    old.save("first words")
    late: list[str] = []

    class OutOfBreath(Counted):
        def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
            if deadline.remaining() < 2:
                raise EncoderUnavailable("no answer in time")
            return super().encode_all(texts, deadline)

    moved = make_desk(encoder=OutOfBreath(**ALIKE))
    # The tail that the switch meets is what comes after the last look.
    work = moved.store.reembedding()
    looks = 0

    class Late(Beside):
        def left(self, deadline: Deadline) -> int:
            nonlocal looks
            found = super().left(deadline)
            looks += 1
            if looks in {2, 4}:
                late.append(old.save(f"late words{looks}").id)
            return found

    run = Reembed(Late(work, nothing), moved.encoder, moved.clock, SilentLog(), batch=3, model_seconds=20)
    assert run.run(moved.caller(), soon(), nothing, print).switched is not None
    assert len(late) == 2
    assert set(late) <= set(moved.found("late words2 words4", mode="semantic"))


def test_a_purge_in_the_middle_leaves_nothing_that_would_come_back(make_desk: MakeDesk) -> None:
    old = make_desk()
    ids = fill(old)
    moved = make_desk(encoder=Counted(**SHORT))
    steps: Counter[str] = Counter()

    def step(name: str) -> None:
        steps[name] += 1
        if name == "keep" and steps["keep"] in {3, 7}:
            doomed = ids["gone"] if steps["keep"] == 7 else ids["plain6"]
            if doomed == ids["plain6"]:
                old.forget(doomed)
            purger = Purger(old.store.purging(), old.folder, (), old.clock, SilentLog(), wait=20)
            purged = purger.purge(purger.condemn(Unwanted(("p",), (doomed,)), soon()), old.caller(), soon())
            assert purged.versions == 1

    move(moved, step)
    assert steps["keep"] > 7
    assert moved.problems() == []
    content = old.path.read_bytes() + old.path.with_name("agora.db-wal").read_bytes()
    assert b"gonewords" not in content
    assert b"thing6" not in content


DAMAGE = {
    "vectors are deleted": "DELETE FROM vectors WHERE encoder_id = 2 AND id % 3 = 0",
    "a note loses its passages to come": "DELETE FROM vectors WHERE passage_id IN"
    " (SELECT id FROM passages WHERE layout = 2 AND item_id = 3)",
    "words are deleted": "DELETE FROM fulltext_spare WHERE rowid % 2 = 0",
    "words are counted wrong": "UPDATE namespace_stats_spare SET words = words + 1",
    "a stray passage": "INSERT INTO fulltext_spare (rowid, scope, title, body, words) VALUES (9999, 'n1', '', 's', 1)",
    "another release began it": "UPDATE meta SET value = '0' WHERE key = 'analysis_spare'",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_in_the_middle_is_made_good_before_the_switch(make_desk: MakeDesk, statement: str) -> None:
    old = make_desk()
    ids = fill(old)
    first = Counted(**SHORT)
    keeps = 0

    def stop(name: str) -> None:
        nonlocal keeps
        keeps += name == "keep"
        if keeps == 8:
            keeps += 1
            with closing(sqlite3.connect(old.path, isolation_level=None)) as connection:
                assert connection.execute(statement).rowcount != 0
            if "analysis" in statement:
                raise Stopped

    moved = make_desk(encoder=first)
    if "analysis" in statement:
        with pytest.raises(Stopped):
            move(moved, stop)
    move(moved, stop)
    assert moved.problems() == []
    assert moved.found("zebra crossing", mode="semantic")[0] == ids["long"]
    assert moved.found("zebra", mode="lexical") == [ids["long"]]
    if "vectors" not in statement:
        assert set(first.texts.values()) == {1}, "words alone need no encoding"


def test_the_store_may_not_be_replaced_under_a_move(make_desk: MakeDesk) -> None:
    old = make_desk()
    fill(old)
    moved = make_desk(encoder=Counted(**ALIKE))

    def step(name: str) -> None:
        if name == "keep":
            old.sql("UPDATE encoders SET state = 'retired' WHERE state = 'building'")

    with pytest.raises(StoreUnavailable, match="replaced"):
        move(moved, step)
