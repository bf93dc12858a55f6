"""A store moves to another encoder, stops anywhere, goes on, and ends as if it had been built with it."""

from __future__ import annotations

import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.stores.moving import (
    ALIKE,
    BOTH,
    LONG,
    SHORT,
    Counted,
    Stopped,
    answers,
    fill,
    move,
    soon,
    told_of,
)

from agora.errors import (
    Conflict,
    EmbeddingError,
    EmbeddingMismatch,
    EncoderUnavailable,
)
from agora.maintenance.reembed import Reembed
from agora.ports.transfer import Extract
from agora.stores.sqlite.alone import alone
from agora.stores.sqlite.audit_chain import verified
from agora.testing import FakeEncoder, SilentLog

if TYPE_CHECKING:
    from tests.conftest import MakeDesk


@BOTH
def test_a_moved_store_is_as_if_it_had_been_built_with_the_encoder(
    make_desk: MakeDesk, kind: dict[str, Any], tmp_path: Path
) -> None:
    old = make_desk()
    ids = fill(old)
    moved = make_desk(encoder=Counted(**kind))
    done = move(moved)
    assert done.cut_anew is (kind is SHORT)
    assert done.switched is not None
    assert done.switched.passages == done.encoded == sum(moved.encoder.texts.values())  # type: ignore[attr-defined]
    built = make_desk(tmp_path / "built", encoder=FakeEncoder(**kind))
    twins = fill(built)
    assert answers(moved) == answers(built)
    assert moved.store.mismatch is None
    # What was hidden at the switch comes back with its vectors and its words.
    for desk, known in ((moved, ids), (built, twins)):
        desk.restore(known["gone"])
        desk.save("port is newervalue", key="port")
    assert answers(moved, "gonewords") == answers(built, "gonewords")
    assert moved.found("gonewords", mode="semantic")[0] == ids["gone"]
    assert moved.found("gonewords", mode="lexical") == [ids["gone"]]
    assert [note.content for note in moved.get(ids["new"]).history[ids["new"]]][:2] == [
        "port was oldvalue",
        "port is newvalue",
    ]
    assert moved.problems() == []
    assert told_of(moved) == []


@BOTH
def test_every_invariant_holds_after_each_step_and_others_go_on_with_the_old_encoder(
    make_desk: MakeDesk, kind: dict[str, Any]
) -> None:
    old = make_desk()
    ids = fill(old)
    moved = make_desk(encoder=Counted(**kind))
    before = answers(old)
    steps: Counter[str] = Counter()

    def step(name: str) -> None:
        steps[name] += 1
        assert moved.problems() == []
        if name in {"switch", "clean"} and steps["switch"]:
            assert moved.found("thing3", mode="semantic")[0] == ids["plain3"]
            with pytest.raises(EmbeddingMismatch):
                old.query("thing3", mode="semantic")
        else:
            assert answers(old) == before
            with pytest.raises(EmbeddingMismatch):
                moved.query("thing3", mode="semantic")
        assert ("on its way to" in " ".join(told_of(moved))) is (name not in {"switch", "clean"})
        assert ("left over" in " ".join(told_of(moved))) is (name == "switch")

    move(moved, step)
    assert steps["keep"] > 5
    assert steps["switch"] == steps["clean"] == 1
    assert steps["cut_anew"] == (kind is SHORT)


@BOTH
@pytest.mark.parametrize("at", range(1, 12))
def test_a_move_that_was_stopped_anywhere_goes_on_without_doing_finished_work_again(
    make_desk: MakeDesk, kind: dict[str, Any], at: int
) -> None:
    old = make_desk()
    ids = fill(old)
    count, kept = 0, Counter[str]()

    def stop(name: str) -> None:
        nonlocal count
        count += 1
        if count == at:
            raise Stopped(name)

    first = Counted(**kind)
    moved = make_desk(encoder=first)
    with pytest.raises(Stopped):
        move(moved, stop)
    kept.update(first.texts)
    assert moved.problems() == []
    committed = moved.sql("SELECT count(*) FROM vectors v JOIN encoders e ON e.id = v.encoder_id AND e.name <> 'fake'")
    second = Counted(**kind)
    said: list[str] = []
    done = move(make_desk(encoder=second), say=said.append)
    switched_before = not done.begun.needed
    assert said[:1] == ([] if switched_before else ["goes on where it was stopped"])
    # Steps come after what they are called after: nothing that was encoded was lost, so nothing is encoded twice.
    assert sum(first.texts.values()) == committed[0][0]
    assert not (first.texts & second.texts)
    last = make_desk(encoder=FakeEncoder(**kind))
    assert last.found("zebra crossing", mode="semantic")[0] == ids["long"]
    assert last.problems() == []
    assert told_of(last) == []


def test_vectors_made_before_texts_had_to_be_cut_anew_are_kept(make_desk: MakeDesk) -> None:
    old = make_desk()
    for number in range(20):
        old.save(f"short note number {number}")
    old.save(LONG)
    moved = make_desk(encoder=Counted(**SHORT))
    said: list[str] = []
    done = move(moved, say=said.append)
    assert said[0].startswith("the model cuts long texts in other places")
    assert done.cut_anew
    assert set(moved.encoder.texts.values()) == {1}  # type: ignore[attr-defined]
    assert moved.sql("SELECT DISTINCT layout FROM passages") == [(2,)]
    assert moved.problems() == []


def test_a_third_encoder_gives_the_half_built_one_up(make_desk: MakeDesk) -> None:
    old = make_desk()
    fill(old)
    half = make_desk(encoder=Counted(**SHORT))
    keeps = 0

    def stop(name: str) -> None:
        nonlocal keeps
        keeps += name == "keep"
        if keeps == 9:
            raise Stopped

    with pytest.raises(Stopped):
        move(half, stop)
    assert half.sql("SELECT count(*) FROM fulltext_spare")[0][0] > 0
    third = make_desk(encoder=Counted(dimension=24, name="third"))
    said: list[str] = []
    done = move(third, say=said.append)
    assert said[0] == "gave up the unfinished move to short: its vectors are deleted"
    assert done.begun.abandoned == "short"
    assert done.begun.deleted > 0
    assert third.sql("SELECT name, state FROM encoders WHERE state <> 'retired'") == [("third", "active")]
    assert third.sql("SELECT count(*) FROM fulltext_spare") == [(0,)]
    assert third.sql("SELECT DISTINCT length(vector) FROM vectors") == [(4 * 24,)]
    assert third.problems() == []
    # And back to one that was there before.
    again = make_desk(encoder=Counted(**SHORT))
    assert move(again).cut_anew
    assert again.problems() == []


def test_moving_to_the_encoder_that_is_there_changes_nothing_and_gives_up_what_was_begun(make_desk: MakeDesk) -> None:
    old = make_desk()
    fill(old)
    head = old.sql("SELECT max(sequence) FROM journal")
    done = move(old)
    assert not done.begun.needed
    assert done.switched is None
    assert old.sql("SELECT max(sequence) FROM journal") == head

    def stop(name: str) -> None:
        if name == "keep":
            raise Stopped

    with pytest.raises(Stopped):
        move(make_desk(encoder=Counted(**ALIKE)), stop)
    assert "on its way to alike" in told_of(old)[0]
    done = move(old)
    assert (done.begun.needed, done.begun.abandoned, done.deleted) == (False, "alike", 3)
    assert told_of(old) == []
    assert old.problems() == []


def test_old_vectors_are_gone_from_the_bytes_of_the_file_and_the_space_is_given_back(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    old = make_desk(encoder=FakeEncoder(512))
    for number in range(300):
        old.save(f"note {number} of thing{number}")
    vectors: list[bytes] = []
    later = 300

    def step(name: str) -> None:
        nonlocal later
        # New and old vectors on the same pages.
        if name == "keep" and later < 320:
            later += 1
            old.save(f"note {later} of thing{later}")
        if name == "left":
            vectors[:] = [bytes(row[0]) for row in old.sql("SELECT vector FROM vectors WHERE encoder_id = 1")]

    small = make_desk(encoder=Counted(dimension=8, name="small"))
    done = move(small, step)
    assert done.deleted == len(vectors) == later == 320
    assert all(len(each) == 2048 for each in vectors)
    assert small.sql("PRAGMA freelist_count") == [(0,)]
    size = old.path.stat().st_size
    built = make_desk(tmp_path / "built", encoder=FakeEncoder(8, name="small"))
    for number in range(320):
        built.save(f"note {number} of thing{number}")
    for desk in (old, small, built):
        desk.close()
    content = old.path.read_bytes()
    assert not [each for each in vectors if each[:64] in content or each[-64:] in content]
    assert size < built.path.stat().st_size + 100_000, "the old vectors alone had 600,000 bytes"
    log = old.path.with_name("agora.db-wal")
    assert not log.exists() or log.stat().st_size == 0


def test_the_old_index_goes_with_its_encoder(make_desk: MakeDesk) -> None:
    old = make_desk()
    fill(old)
    old.store.compact(force=True)
    files = {path.name for path in (old.folder / "index").iterdir()}
    assert old.sql("SELECT DISTINCT encoder_id FROM segments") == [(1,)]
    moved = make_desk(encoder=Counted(**SHORT))
    move(moved)
    assert moved.sql("SELECT count(*) FROM segments") == moved.sql("SELECT count(*) FROM generations") == [(0,)]
    assert moved.found("zebra crossing", mode="semantic")
    moved.store.compact(force=True)
    assert moved.sql("SELECT DISTINCT encoder_id FROM segments") == [(2,)]
    old.close()
    left = {row[0] for row in moved.sql("SELECT file FROM segments UNION SELECT state FROM generations")}
    assert not left & files
    assert moved.problems() == []


def test_the_move_is_on_the_record_and_stands_in_nobodys_way(make_desk: MakeDesk) -> None:
    old = make_desk()
    kept = old.save("words to keep").id
    moved = make_desk(encoder=Counted(**ALIKE))
    done = move(moved)
    assert done.switched is not None
    assert moved.sql(
        "SELECT j.sequence, j.operation, j.namespace_id, j.subject, j.item_id, a.name, p.before, p.after"
        " FROM journal j JOIN agents a ON a.id = j.agent_id JOIN journal_payload p USING (sequence)"
        " ORDER BY sequence DESC LIMIT 1"
    ) == [
        (
            *(done.switched.sequence, "reembed", None, None, None, "mover"),
            '{"encoder": "fake"}',
            f'{{"digest": "{moved.encoder.fingerprint.digest()}", "encoder": "alike"}}',
        )
    ]
    with closing(sqlite3.connect(moved.path)) as connection:
        assert verified(connection).broken is None
    head, events = moved.store.events(done.switched.sequence - 1, 10, soon())
    assert (head, [(each.operation, each.id, each.namespace) for each in events]) == (
        done.switched.sequence,
        [("reembed", None, None)],
    )
    with moved.store.transfer().outgoing(Extract(("p",)), moved.clock.now(), soon()) as outgoing:
        assert [version.id for version in outgoing.versions()] == [kept]
    assert moved.found("words", mode="semantic") == [kept]


def test_an_encoder_that_fails_stops_the_move_and_leaves_what_is_done(make_desk: MakeDesk) -> None:
    old = make_desk()
    fill(old)
    calls = 0

    def fail(_: Sequence[str]) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise EncoderUnavailable("the server is gone")

    first = Counted(fail, **ALIKE)
    moved = make_desk(encoder=first)
    with pytest.raises(EncoderUnavailable):
        move(moved)
    assert moved.problems() == []
    second = Counted(**ALIKE)
    move(make_desk(encoder=second))
    assert sum(first.texts.values()) > 0
    assert not (first.texts & second.texts)


def test_a_text_that_the_model_refuses_is_named_and_the_others_are_done(make_desk: MakeDesk) -> None:
    old = make_desk()
    ids = fill(old)

    def refuse(texts: Sequence[str]) -> None:
        if any("thing2" in text for text in texts):
            raise EmbeddingError("400: I do not like it")

    moved = make_desk(encoder=Counted(refuse, **ALIKE))
    with pytest.raises(EmbeddingError) as caught:
        move(moved)
    assert caught.value.message == f"note {ids['plain2']}: 400: I do not like it"
    assert "forget and purge" in caught.value.hint
    assert moved.problems() == []


def test_a_new_store_has_nothing_to_move_but_its_encoder(make_desk: MakeDesk) -> None:
    make_desk()
    moved = make_desk(encoder=Counted(**SHORT))
    done = move(moved)
    assert done.switched is not None
    assert done.switched.passages == 0
    kept = moved.save("the first note").id
    assert moved.found("first note", mode="semantic") == [kept]
    assert moved.problems() == []


def test_vectors_on_the_disk_are_little_endian_and_of_length_one(make_desk: MakeDesk) -> None:
    make_desk().save("some words")
    moved = make_desk(encoder=Counted(**ALIKE))
    move(moved)
    [(blob,)] = moved.sql("SELECT vector FROM vectors")
    made = moved.encoder.encode("some words", soon()).tolist()
    assert list(struct.unpack("<32f", blob)) == pytest.approx(made)


def test_progress_is_told_in_notes_up_to_the_end(make_desk: MakeDesk) -> None:
    old = make_desk()
    fill(old)
    moved = make_desk(encoder=Counted(**ALIKE))
    seen: list[tuple[int, int]] = []
    work = Reembed(moved.store.reembedding(), moved.encoder, moved.clock, SilentLog(), batch=3, model_seconds=20)
    work.run(moved.caller(), soon(), lambda done, total: seen.append((done, total)), print)
    assert seen[0] == (0, 14)
    assert seen[-1] == (14, 14)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_other_settings_of_one_model_are_named(make_desk: MakeDesk) -> None:
    make_desk().save("words")
    error = make_desk(encoder=FakeEncoder(64, piece=99)).store.mismatch
    assert error is not None
    assert "other settings of 'fake': max_tokens 400 and not 99" in error.message
    assert "`agora reembed`" in error.hint


@pytest.mark.skipif(sys.platform == "darwin", reason="its locks tell processes apart, not two holders in one")
def test_one_process_at_a_time(make_desk: MakeDesk) -> None:
    desk = make_desk()
    path = desk.folder / "reembed.lock"
    with (
        alone(path, "a reembed"),
        pytest.raises(Conflict, match=r"a reembed is under way already, in process \d+"),
        alone(path, "a reembed"),
    ):
        raise AssertionError
    with alone(path, "a reembed"):
        assert path.exists()
