"""What every record store does, asked through the port alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agora.errors import AgoraError, EmbeddingMismatch, StoreUnavailable
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft, Saved
from agora.model.profile import Span
from agora.model.query import Filter
from agora.model.selection import Selection
from agora.ports.records import Embedded, Records, VectorsNeeded
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock

ENCODER = FakeEncoder()
Opener = Callable[[Path, ManualClock], Records]


def sqlite(folder: Path, clock: ManualClock) -> Records:
    return SqliteStore(folder / "agora.db", ENCODER.fingerprint, clock)


@pytest.fixture(params=[sqlite], ids=lambda opener: opener.__name__)
def opener(request: pytest.FixtureRequest) -> Opener:
    found: Opener = request.param
    return found


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def records(opener: Opener, tmp_path: Path, clock: ManualClock) -> Iterator[Records]:
    store = opener(tmp_path, clock)
    yield store
    store.close()


def soon() -> Deadline:
    return Deadline(20)


def caller(agent: str = "ann", namespace: str = "p", **fields: Any) -> Caller:
    return replace(Caller(Scope(namespace, "test"), agent, "s1", "client", "1"), **fields)


def embedded(text: str) -> Embedded:
    spans = ENCODER.split(text, soon())
    return Embedded(ENCODER.fingerprint, spans, tuple(ENCODER.encode(text[s.start : s.stop], soon()) for s in spans))


def save(records: Records, clock: ManualClock, text: str, agent: str = "ann", **fields: Any) -> Saved:
    draft = Draft(text, fields.pop("namespace", "p"), **fields)
    return records.save(draft, caller(agent, draft.namespace), embedded(text), clock.now(), soon())


def test_an_empty_store_has_sequence_zero_and_nothing_in_it(records: Records) -> None:
    with records.read(soon()) as reading:
        assert reading.sequence == 0
        assert reading.vectors.size() == 0
        among = reading.among(Filter(("p",)))
        assert len(reading.vectors.nearest(ENCODER.encode("x", soon()), among, 5).rows) == 0
        assert reading.counts(("p",))["notes"]["rows"] == 0
        assert reading.by_id(["n_x"], ["p"]) == {}
        assert reading.by_row([1, 2]) == {}


def test_every_change_takes_the_next_sequence_and_a_duplicate_is_a_change(records: Records, clock: ManualClock) -> None:
    one = save(records, clock, "a")
    two = save(records, clock, "a", "bob")
    assert (one.sequence, two.sequence) == (1, 2)
    done = records.forget(Selection(("p",), (one.id,)), caller(), clock.now(), soon(), dry_run=False)
    back = records.restore((one.id,), caller(), clock.now(), soon())
    assert (done.sequence, back.sequence) == (3, 4)
    with records.read(soon()) as reading:
        assert reading.sequence == 4


def test_a_preview_takes_no_sequence(records: Records, clock: ManualClock) -> None:
    kept = save(records, clock, "a")
    seen = records.forget(Selection(("p",), (kept.id,)), caller(), clock.now(), soon(), dry_run=True)
    assert (seen.count, seen.dry_run, seen.sequence) == (1, True, 1)


def test_what_was_saved_comes_back_to_the_last_byte_and_microsecond(records: Records, clock: ManualClock) -> None:
    clock.advance(microseconds=123457)
    text = "数据库 🚀 e\u0301 \u200b\r\n\ttab مرحبا"
    fields: dict[str, Any] = {
        "title": "Überschrift 🚀",
        "tags": ("b", "a", "ü"),
        "kind": "fact",
        "metadata": {"k": [1, {"x": None}], "é": 2.5},
        "occurred_at": clock.now() - timedelta(days=1, microseconds=1),
        "confidence": 0.25,
        "expires_at": clock.now() + timedelta(days=1, microseconds=1),
        "key": "a.b",
    }
    kept = save(records, clock, text, **fields)
    with records.read(soon()) as reading:
        note = reading.by_id([kept.id], ["p"])[kept.id][1]
    assert note.content.encode() == text.encode()
    assert (note.title, note.kind, note.key, note.version) == ("Überschrift 🚀", "fact", "a.b", 1)
    assert note.tags == ("a", "b", "ü")
    assert note.metadata == fields["metadata"]
    assert (note.occurred_at, note.expires_at) == (fields["occurred_at"], fields["expires_at"])
    assert note.created_at == note.updated_at == clock.now()
    assert (note.confidence, note.type, note.namespace, note.id) == (0.25, "note", "p", kept.id)
    saver = note.savers[0]
    assert (saver.agent, saver.client, saver.session, saver.origin, saver.at) == (
        "ann",
        "client",
        "s1",
        "agent",
        clock.now(),
    )


def test_provenance_is_that_of_the_caller(records: Records, clock: ManualClock) -> None:
    who = caller("agent-a", session="h_1", client="cli", client_version="2", token="laptop", origin="user")  # noqa: S106 - its name
    kept = records.save(Draft("x", "p"), who, embedded("x"), clock.now(), soon())
    with records.read(soon()) as reading:
        (saver,) = reading.by_id([kept.id], ["p"])[kept.id][1].savers
    assert (saver.agent, saver.client, saver.session, saver.origin) == ("agent-a", "cli", "h_1", "user")


def test_a_new_text_without_vectors_is_refused_and_a_known_one_is_not(records: Records, clock: ManualClock) -> None:
    with pytest.raises(VectorsNeeded):
        records.save(Draft("x", "p"), caller(), None, clock.now(), soon())
    kept = save(records, clock, "x")
    again = records.save(Draft("x", "p"), caller("bob"), None, clock.now(), soon())
    assert (again.id, again.duplicate_of, again.status) == (kept.id, kept.id, "duplicate")


def test_vectors_of_another_profile_are_refused(records: Records, clock: ManualClock) -> None:
    foreign = replace(embedded("x"), fingerprint=FakeEncoder(name="other").fingerprint)
    with pytest.raises(EmbeddingMismatch):
        records.save(Draft("x", "p"), caller(), foreign, clock.now(), soon())
    assert records.mismatch is None


def test_same_text_foretells_whether_a_save_only_adds_a_saver(records: Records, clock: ManualClock) -> None:
    brief = clock.now() + timedelta(seconds=1)
    save(records, clock, "loose")
    save(records, clock, "keyed", key="k")
    save(records, clock, "brief", expires_at=brief)
    expected = [
        (Draft("loose", "p"), True),
        (Draft("loose", "q"), False),
        (Draft("other", "p"), False),
        (Draft("keyed", "p"), True),
        (Draft("keyed", "p", key="k"), True),
        (Draft("keyed", "p", key="l"), False),
        (Draft("loose", "p", key="k"), False),
        (Draft("brief", "p"), True),
    ]
    with records.read(soon()) as reading:
        assert [(draft, reading.same_text(draft)) for draft, _ in expected] == expected
    clock.advance(seconds=1)
    with records.read(soon()) as reading:
        assert not reading.same_text(Draft("brief", "p"))


def test_a_reading_stays_at_its_snapshot_whatever_is_written_meanwhile(records: Records, clock: ManualClock) -> None:
    first = save(records, clock, "first words")
    vector = ENCODER.encode("words", soon())
    with records.read(soon()) as reading:
        among = reading.among(Filter(("p",)))
        before = reading.vectors.nearest(vector, among, 10).rows.tolist()
        second = save(records, clock, "second words")
        records.forget(Selection(("p",), (first.id,)), caller(), clock.now(), soon(), dry_run=False)
        # Another reading, in step with the changes, must not move this one.
        with records.read(soon()) as newer:
            assert newer.sequence == 3
            rows = newer.vectors.nearest(vector, newer.among(Filter(("p",))), 10).rows.tolist()
            assert [note.id for note in newer.by_row(rows).values()] == [second.id]
        assert reading.sequence == 1
        assert reading.vectors.nearest(vector, among, 10).rows.tolist() == before
        assert reading.by_row(before)[before[0]].forgotten_at is None
        assert reading.by_id([second.id], ["p"]) == {}
        assert reading.counts(("p",))["notes"]["live"] == 1


def test_rows_stay_and_are_never_given_to_another_note(records: Records, clock: ManualClock) -> None:
    seen: dict[int, str] = {}
    for number in range(6):
        kept = save(records, clock, f"text {number}")
        with records.read(soon()) as reading:
            row, note = reading.by_id([kept.id], ["p"])[kept.id]
        assert row not in seen
        seen[row] = note.id
        records.forget(Selection(("p",), (kept.id,)), caller(), clock.now(), soon(), dry_run=False)
    with records.read(soon()) as reading:
        assert {row: note.id for row, note in reading.by_row([*seen, 999]).items()} == seen


def test_spans_are_those_that_were_given(records: Records, clock: ManualClock) -> None:
    text = "0123456789" * 100
    kept = save(records, clock, text)
    with records.read(soon()) as reading:
        row = reading.by_id([kept.id], ["p"])[kept.id][0]
        expected = ENCODER.split(text, soon())
        assert tuple(reading.span(row, number) for number in range(len(expected))) == expected
        assert isinstance(reading.span(row, 999), Span)


def test_history_is_every_version_oldest_first_and_a_loose_note_is_its_own(
    records: Records, clock: ManualClock
) -> None:
    ids = [save(records, clock, text, key="k").id for text in ("A", "B", "A")]
    loose = save(records, clock, "loose").id
    save(records, clock, "elsewhere", key="k", namespace="q")
    with records.read(soon()) as reading:
        notes = {public_id: note for public_id, (_, note) in reading.by_id([*ids, loose], ["p"]).items()}
        for public_id in ids:
            assert [note.id for note in reading.history(notes[public_id])] == ids
        assert reading.history(notes[loose]) == (notes[loose],)


def test_ids_and_counts_are_bounded_by_the_namespaces_asked_for(records: Records, clock: ManualClock) -> None:
    ours, theirs = save(records, clock, "x").id, save(records, clock, "x", namespace="q").id
    with records.read(soon()) as reading:
        assert set(reading.by_id([ours, theirs], ["p"])) == {ours}
        assert set(reading.by_id([ours, theirs, ours], ["p", "q"])) == {ours, theirs}
        assert reading.counts(["p"])["notes"]["rows"] == 1
        assert reading.counts(["p", "q"])["notes"]["rows"] == 2


def test_what_one_store_object_wrote_the_other_reads_next(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    one, other = opener(tmp_path, clock), opener(tmp_path, clock)
    try:
        vector = ENCODER.encode("words", soon())
        for number in range(30):
            writer, reader = (one, other) if number % 2 else (other, one)
            kept = save(writer, clock, f"words {number}")
            with reader.read(soon()) as reading:
                assert reading.sequence == number + 1
                rows = reading.vectors.nearest(vector, reading.among(Filter(("p",))), 100).rows.tolist()
                assert kept.id in {note.id for note in reading.by_row(rows).values()}
    finally:
        one.close()
        other.close()


def test_it_is_all_there_after_a_restart(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    first = opener(tmp_path, clock)
    kept = save(first, clock, "kept words", tags=("t",))
    first.close()
    second = opener(tmp_path, clock)
    try:
        with second.read(soon()) as reading:
            assert reading.sequence == 1
            assert reading.by_id([kept.id], ["p"])[kept.id][1].tags == ("t",)
    finally:
        second.close()


def test_many_threads_use_one_store_at_once(records: Records, clock: ManualClock) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            start.wait()
            for step in range(8):
                kept = save(records, clock, f"words {number} {step}", f"agent{number}")
                with records.read(soon()) as reading:
                    assert kept.id in reading.by_id([kept.id], ["p"])
                if step % 2:
                    records.forget(Selection(("p",), (kept.id,)), caller(), clock.now(), soon(), dry_run=False)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with records.read(soon()) as reading:
        assert reading.counts(("p",))["notes"] == {
            "live": 32,
            "superseded": 0,
            "forgotten": 32,
            "expired": 0,
            "purged": 0,
            "rows": 64,
        }
        assert reading.sequence == 96


def test_a_closed_store_says_so(opener: Opener, tmp_path: Path, clock: ManualClock) -> None:
    store = opener(tmp_path, clock)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable):
        save(store, clock, "x")
    with pytest.raises(StoreUnavailable), store.read(soon()):
        pass


def test_a_call_that_is_over_raises_an_error_of_agora_and_writes_nothing(records: Records, clock: ManualClock) -> None:
    over = Deadline(0)
    with pytest.raises(AgoraError):
        records.save(Draft("x", "p"), caller(), embedded("x"), clock.now(), over)
    with pytest.raises(AgoraError), records.read(over):
        pass
    with records.read(soon()) as reading:
        assert reading.sequence == 0


def test_details_are_plain_data(records: Records, clock: ManualClock) -> None:
    save(records, clock, "x")
    assert records.details()["sequence"] == 1
