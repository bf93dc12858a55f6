from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.unit.exchange.ferry import NOON, chain, contents, send, take, version, versions_of, write

from agora.errors import EmbeddingMismatch, StoreUnavailable
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.ports.encoder import Vector
from agora.ports.records import VectorsNeeded
from agora.ports.transfer import Arrival, Replaced
from agora.testing import FakeEncoder
from agora.text.identity import content_hash


class Silent(FakeEncoder):
    """An encoder that must not be asked."""

    def encode(self, text: str, deadline: Deadline) -> Vector:
        del deadline
        raise AssertionError(text)


def test_what_comes_in_is_found_by_words_and_by_meaning_in_every_process(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk, other = make_desk(), make_desk()
    note = version(1, "the ferry leaves at nine", title="Timetable")
    assert other.found("ferry") == []
    assert take(desk, write(tmp_path / "x.jsonl", [note])).counts == {"created": 1}
    for mode in ("lexical", "semantic", "hybrid"):
        assert other.found("ferry", mode=mode) == [note.id]
    assert other.found("timetable", mode="lexical") == [note.id]


def test_an_import_makes_the_vectors_that_a_save_makes(make_desk: MakeDesk, tmp_path: Path) -> None:
    one, two = make_desk(tmp_path / "a"), make_desk(tmp_path / "b")
    one.save("word " * 300, title="A title that counts too")
    first = send(one, tmp_path / "x.jsonl", vectors=True)
    send(one, tmp_path / "bare.jsonl")
    take(two, tmp_path / "bare.jsonl")
    assert versions_of(send(two, tmp_path / "y.jsonl", vectors=True)) == versions_of(first)


def test_vectors_in_the_file_spare_the_model(make_desk: MakeDesk, tmp_path: Path) -> None:
    one, two = make_desk(tmp_path / "a"), make_desk(tmp_path / "b", encoder=Silent())
    kept = one.save("no model needed").id
    send(one, tmp_path / "x.jsonl", vectors=True)
    assert take(two, tmp_path / "x.jsonl").counts == {"created": 1}
    assert two.found("model", mode="lexical") == [kept]


def test_vectors_of_another_model_are_made_anew(make_desk: MakeDesk, tmp_path: Path) -> None:
    one = make_desk(tmp_path / "a", encoder=FakeEncoder(dimension=32, name="other"))
    two = make_desk(tmp_path / "b")
    kept = one.save("another space").id
    send(one, tmp_path / "x.jsonl", vectors=True)
    assert take(two, tmp_path / "x.jsonl").counts == {"created": 1}
    assert two.found("another space", mode="semantic") == [kept]
    assert two.problems() == []


def test_a_store_of_another_model_takes_nothing_in(make_desk: MakeDesk, tmp_path: Path) -> None:
    make_desk(tmp_path / "a", encoder=FakeEncoder(name="other")).save("first")
    desk = make_desk(tmp_path / "a")
    with pytest.raises(EmbeddingMismatch, match="built with the embedding model 'other', not with 'fake'"):
        take(desk, write(tmp_path / "x.jsonl", [version(1, "text")]))
    assert desk.sql("SELECT count(*) FROM items") == [(1,)]


def test_the_same_file_again_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [version(1, "one"), version(2, "two")])
    take(desk, file)
    before = desk.sql("SELECT max(sequence) FROM journal")
    report = take(desk, file)
    assert report.counts == {"duplicate": 2}
    assert all("kept" not in each for each in report.duplicates)
    assert desk.sql("SELECT max(sequence) FROM journal") == before


def test_the_same_text_under_another_id_joins_its_savers_and_both_ids_are_told(desk: Desk, tmp_path: Path) -> None:
    kept = desk.save("same text", "ann", tags=("a",), metadata={"x": 1}).id
    note = version(1, "same text", metadata={"x": 2, "y": 3}, confidence=0.4)
    note = replace(note, savers=(replace(note.savers[0], tags=("b",)),))
    report = take(desk, write(tmp_path / "x.jsonl", [note]))
    assert report.duplicates == [{"id": note.id, "namespace": "p", "kept": kept}]
    found = desk.note(kept)
    assert [saver.agent for saver in found.savers] == ["ann", "eve"]
    assert found.tags == ("a", "b")
    assert found.metadata == {"x": 1, "y": 3}
    assert found.confidence == 0.4
    assert desk.problems() == []


def test_savers_who_are_new_join_a_note_that_is_here_by_id(desk: Desk, tmp_path: Path) -> None:
    kept = desk.save("text", "ann").id
    note = version(1, "text", id=kept)
    report = take(desk, write(tmp_path / "y.jsonl", [replace(note, savers=(replace(note.savers[0], times=3),))]))
    assert report.counts == {"duplicate": 1}
    assert [saver.agent for saver in desk.note(kept).savers] == ["ann", "eve"]


def test_a_saver_who_is_here_keeps_the_first_and_the_last_time_and_is_not_counted_twice(
    desk: Desk, tmp_path: Path
) -> None:
    note = version(1, "text")
    take(desk, write(tmp_path / "x.jsonl", [note]))
    giver = replace(note.savers[0], first_at=NOON - timedelta(days=1), last_at=NOON + timedelta(days=1), times=3)
    for _ in range(2):
        take(desk, write(tmp_path / "y.jsonl", [replace(note, savers=(giver,))]))
    [saver] = json.loads(versions_of(send(desk, tmp_path / "z.jsonl"))[0])["savers"]
    assert (saver["first_at"][:10], saver["last_at"][:10], saver["times"]) == ("2026-01-09", "2026-01-11", 3)


@pytest.mark.parametrize(
    "change", [{"content": "other"}, {"title": "other"}, {"kind": "other"}, {"namespace": "q"}, {"key": "k"}]
)
def test_another_text_with_an_id_that_is_here_is_a_conflict_and_stays_out(
    desk: Desk, tmp_path: Path, change: dict[str, str]
) -> None:
    kept = desk.save("text").id
    before = send(desk, tmp_path / "before.jsonl")
    note = version(1, "text", id=kept)
    report = take(desk, write(tmp_path / "x.jsonl", [replace(note, **change)]))  # type: ignore[arg-type]  # any field
    assert report.counts == {"conflict": 1}
    assert report.conflicts[0]["id"] == kept
    assert report.conflicts[0]["reason"] == "another text has this id here"
    assert send(desk, tmp_path / "after.jsonl") == before


def test_of_two_texts_under_one_id_the_first_comes_in_and_is_found_by_its_own_words(desk: Desk, tmp_path: Path) -> None:
    note = version(1, "apples")
    report = take(desk, write(tmp_path / "x.jsonl", [note, replace(note, content="pears")]))
    assert report.counts == {"created": 1, "conflict": 1}
    assert desk.found("apples", mode="lexical") == [note.id]
    assert desk.found("pears", mode="lexical") == []
    assert desk.problems() == []


def test_a_key_that_has_another_history_here_is_a_conflict(desk: Desk, tmp_path: Path) -> None:
    mine = desk.save("mine", key="k").id
    report = take(desk, write(tmp_path / "x.jsonl", chain("theirs", "theirs 2")))
    assert report.counts == {"conflict": 2}
    assert {each["kept"] for each in report.conflicts} == {mine}
    assert {each["key"] for each in report.conflicts} == {"k"}
    assert contents(desk) == [(1, "mine", 1)]
    assert desk.found("theirs", mode="lexical") == []


def test_a_history_that_goes_on_from_here_is_followed(desk: Desk, tmp_path: Path) -> None:
    versions = chain("one", "two", "three")
    take(desk, write(tmp_path / "x.jsonl", [replace(versions[0], superseded_by=None, superseded_at=None)]))
    assert desk.found("one", mode="lexical") == [versions[0].id]
    report = take(desk, write(tmp_path / "y.jsonl", versions))
    assert report.counts == {"duplicate": 1, "updated": 1, "created": 1}
    assert contents(desk) == [(1, "one", 0), (2, "two", 0), (3, "three", 1)]
    assert desk.found("one", mode="lexical") == []
    assert desk.found("three", mode="lexical") == [versions[2].id]
    assert desk.problems() == []


def test_a_history_that_goes_on_from_the_same_text_under_another_id_is_followed(desk: Desk, tmp_path: Path) -> None:
    mine = desk.save("one", "ann", key="k").id
    versions = chain("one", "two")
    report = take(desk, write(tmp_path / "x.jsonl", versions))
    assert report.counts == {"duplicate": 1, "updated": 1}
    assert contents(desk) == [(1, "one", 0), (2, "two", 1)]
    assert [saver.agent for saver in desk.note(mine).savers] == ["ann", "eve"]
    assert desk.note(versions[1].id).supersedes == mine
    assert desk.problems() == []


def test_older_versions_come_in_behind_the_one_that_is_here(desk: Desk, tmp_path: Path) -> None:
    versions = chain("one", "two", "three")
    take(desk, write(tmp_path / "x.jsonl", versions[2:]))
    report = take(desk, write(tmp_path / "y.jsonl", versions))
    assert report.counts == {"history": 2, "duplicate": 1}
    assert contents(desk) == [(1, "one", 0), (2, "two", 0), (3, "three", 1)]
    assert [each.content for each in desk.get(versions[2].id).history[versions[2].id]] == ["one", "two", "three"]
    assert desk.note(versions[2].id).supersedes == versions[1].id
    assert desk.note(versions[0].id).superseded_by == versions[1].id
    assert desk.found("one two", mode="lexical") == []
    assert desk.problems() == []


def test_an_older_history_of_somebody_else_comes_in_only_if_it_is_older(desk: Desk, tmp_path: Path) -> None:
    take(desk, write(tmp_path / "x.jsonl", chain("three", start=3, first=30)))
    [older], [between] = chain("one", first=5), chain("two", start=2, first=10)
    younger = replace(between, created_at=NOON + timedelta(hours=1))
    assert take(desk, write(tmp_path / "y.jsonl", [younger])).counts == {"conflict": 1}
    assert take(desk, write(tmp_path / "y.jsonl", [older])).counts == {"history": 1}
    # It does not say that it came after the one that is before it here.
    assert take(desk, write(tmp_path / "y.jsonl", [between])).counts == {"conflict": 1}
    assert contents(desk) == [(1, "one", 0), (3, "three", 1)]
    assert desk.problems() == []


def test_a_text_that_only_the_clock_has_ended_makes_room_for_the_same_text(desk: Desk, tmp_path: Path) -> None:
    old = desk.save("same text", lives=5).id
    desk.clock.advance(seconds=5)
    note = version(1, "same text")
    assert take(desk, write(tmp_path / "x.jsonl", [note])).counts == {"created": 1}
    assert desk.found("same text") == [note.id]
    assert desk.note(old).forget_reason == "expired"
    assert desk.problems() == []


def test_of_two_equal_texts_that_the_clock_has_ended_the_one_that_comes_steps_back(desk: Desk, tmp_path: Path) -> None:
    old = desk.save("same text", lives=5).id
    desk.clock.advance(seconds=5)
    note = version(1, "same text", expires_at=NOON)
    assert take(desk, write(tmp_path / "x.jsonl", [note])).counts == {"created": 1}
    assert (desk.note(old).forgotten_at, desk.note(note.id).forget_reason) == (None, "expired")
    assert desk.problems() == []


def test_an_old_value_is_never_current_because_its_successor_did_not_come(desk: Desk, tmp_path: Path) -> None:
    versions = chain("port 1", "port 2")
    take(desk, write(tmp_path / "x.jsonl", versions[:1]))
    assert desk.found("port", mode="lexical") == []
    assert desk.found("port", mode="semantic") == []
    assert desk.problems() == []
    assert take(desk, write(tmp_path / "y.jsonl", versions)).counts == {"duplicate": 1, "created": 1}
    assert desk.found("port", mode="lexical") == [versions[1].id]
    assert contents(desk) == [(1, "port 1", 0), (2, "port 2", 1)]


def test_a_version_keeps_the_time_at_which_it_was_superseded(desk: Desk, tmp_path: Path) -> None:
    first, second = chain("one", "two")
    first = replace(first, superseded_at=second.created_at + timedelta(seconds=1))
    file = write(tmp_path / "x.jsonl", [first, second])
    take(desk, file)
    assert versions_of(send(desk, tmp_path / "y.jsonl")) == file.read_bytes().splitlines(keepends=True)[1:-1]


def test_a_version_whose_line_was_broken_leaves_a_gap_and_no_conflict(desk: Desk, tmp_path: Path) -> None:
    versions = chain("one", "two", "three")
    assert take(desk, write(tmp_path / "x.jsonl", [versions[0], versions[2]])).counts == {"created": 2}
    assert contents(desk) == [(1, "one", 0), (3, "three", 1)]
    assert take(desk, write(tmp_path / "y.jsonl", versions)).counts == {"duplicate": 2, "history": 1}
    assert contents(desk) == [(1, "one", 0), (2, "two", 0), (3, "three", 1)]
    assert desk.note(versions[2].id).supersedes == versions[1].id
    assert desk.problems() == []


def test_a_key_takes_the_place_of_the_same_text_without_one_and_its_savers_come_along(
    desk: Desk, tmp_path: Path
) -> None:
    mine = desk.save("same text", "ann", tags=("a",), metadata={"m": 1}).id
    [note] = chain("same text")
    report = take(desk, write(tmp_path / "x.jsonl", [note]))
    assert report.counts == {"updated": 1}
    found = desk.note(note.id)
    assert [saver.agent for saver in found.savers] == ["eve", "ann"]
    assert (found.tags, found.metadata) == (("a",), {"m": 1})
    assert desk.note(mine).superseded_by == note.id
    assert desk.found("same text") == [note.id]
    assert desk.problems() == []


def test_what_was_forgotten_here_stays_forgotten_and_is_said_so(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [version(1, "one"), version(2, "two", forgotten_at=NOON, forget_reason="r")])
    take(desk, file)
    desk.forget(*desk.found("one"))
    report = take(desk, file)
    assert [each.get("reason") for each in report.duplicates] == ["it was forgotten here, not there", None]
    assert desk.found("one two", mode="lexical") == []


def test_a_purged_version_keeps_its_place_and_nothing_else(desk: Desk, tmp_path: Path) -> None:
    first, second = chain("secret", "secret too")
    gone = replace(second, content=None, title=None, savers=(), purged_at=NOON)
    gone = replace(gone, replaces=(Replaced(first.id, content_hash("secret")),))
    assert take(desk, write(tmp_path / "x.jsonl", [first, gone])).counts == {"created": 2}
    assert desk.found("secret", mode="lexical") == []
    assert desk.problems() == []
    again = take(desk, write(tmp_path / "y.jsonl", [second]))
    assert again.duplicates[0]["reason"] == "it was purged here, and stays purged"
    assert b"secret too" not in b"".join(send(desk, tmp_path / "z.jsonl"))
    assert json.loads(versions_of(send(desk, tmp_path / "z.jsonl"))[1])["purged_at"] == "2026-01-10T12:00:00.000000Z"


def test_the_journal_names_who_imported_and_where_it_came_from(desk: Desk, tmp_path: Path) -> None:
    note = version(1, "text")
    take(desk, write(tmp_path / "x.jsonl", [note]))
    [(operation, subject, agent, client, session, after)] = desk.sql(
        "SELECT j.operation, j.subject, a.name, c.name, j.session, p.after FROM journal j"
        " JOIN agents a ON a.id = j.agent_id JOIN clients c ON c.id = j.client_id"
        " JOIN journal_payload p ON p.sequence = j.sequence"
    )
    assert (operation, subject, agent, client, session) == ("save", note.id, "imp", "importer", "s9")
    assert json.loads(after)["imported"] == {
        "file": "x.jsonl",
        "format": "agora",
        "store": "s_01KF0000000000000000000000",
    }
    assert [saver.agent for saver in desk.note(note.id).savers] == ["eve"]


@pytest.mark.parametrize(("importer", "kept"), [("user", "user"), ("agent", "agent"), ("tool", "tool"), ("web", "web")])
def test_nobody_gives_a_text_more_authority_than_they_have(
    desk: Desk, tmp_path: Path, importer: Origin, kept: Origin
) -> None:
    note = version(1, "text")
    note = replace(note, savers=(replace(note.savers[0], origin="user"),))
    report = take(desk, write(tmp_path / "x.jsonl", [note]), importer=importer)
    assert [saver.origin for saver in desk.note(note.id).savers] == [kept]
    assert report.lowered == (kept != "user")


def test_savers_that_differ_by_origin_alone_are_one_when_it_is_lowered(desk: Desk, tmp_path: Path) -> None:
    note = version(1, "text")
    low = note.savers[0]
    high = replace(low, origin="user", first_at=NOON - timedelta(days=1), times=2, tags=("t",))
    take(desk, write(tmp_path / "x.jsonl", [replace(note, savers=(low, high))]), importer="agent")
    [saver] = json.loads(versions_of(send(desk, tmp_path / "y.jsonl"))[0])["savers"]
    assert (saver["times"], saver["first_at"][:10], saver["tags"], saver["origin"]) == (3, "2026-01-09", ["t"], "agent")


def test_an_argument_lowers_the_origin_and_never_raises_it(desk: Desk, tmp_path: Path) -> None:
    note = version(1, "text")
    tool = version(2, "tool text")
    tool = replace(tool, savers=(replace(tool.savers[0], origin="web"),))
    take(desk, write(tmp_path / "x.jsonl", [note, tool]), origin="tool")
    assert [desk.note(each.id).savers[0].origin for each in (note, tool)] == ["tool", "web"]


def test_only_the_wanted_namespaces_are_taken_in(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [version(1, "in p"), version(2, "in q", namespace="q")])
    report = take(desk, file, namespaces=("q",))
    assert (report.counts, report.left_out) == ({"created": 1}, {"other namespaces": 1})
    assert desk.sql("SELECT content FROM texts") == [("in q",)]


@pytest.mark.parametrize("name", ["Owner/Repo", "a b", "a//b", "a_b"])
def test_a_namespace_that_is_not_written_as_ours_is_broken(desk: Desk, tmp_path: Path, name: str) -> None:
    report = take(desk, write(tmp_path / "x.jsonl", [version(1, "text", namespace=name), version(2, "good")]))
    assert report.counts == {"broken": 1, "created": 1}
    assert report.broken[0]["place"] == "line 2"
    assert report.broken[0]["reason"].startswith("namespace: ")
    assert not report.whole


def test_a_dry_run_says_what_would_come_and_changes_nothing(desk: Desk, make_desk: MakeDesk, tmp_path: Path) -> None:
    desk.save("same text")
    mine = desk.save("mine", key="k").id
    before = send(desk, tmp_path / "before.jsonl")
    versions = [version(n, f"text {n}") for n in range(1, 300)]
    versions += [version(400, "same text"), version(401, "text 5"), *chain("theirs", first=500)]
    file = write(tmp_path / "x.jsonl", versions)
    report = take(make_desk(encoder=Silent()), file, dry_run=True)
    assert report.counts == {"created": 299, "duplicate": 2, "conflict": 1}
    assert len(report.first) == 20
    assert report.first[0] == {
        "fate": "created",
        "id": versions[0].id,
        "namespace": "p",
        "kind": "note",
        "agent": "eve",
        "at": "2026-01-10T12:00:00Z",
        "opening": "text 1",
    }
    assert report.conflicts[0]["kept"] == mine
    assert send(desk, tmp_path / "after.jsonl") == before
    assert take(desk, file).counts == report.counts


def test_a_batch_that_fails_leaves_nothing_of_itself_and_the_ones_before_whole(desk: Desk, tmp_path: Path) -> None:
    versions = [version(n, f"text {n}") for n in range(250)]
    file = write(tmp_path / "x.jsonl", versions)
    desk.sql(
        "CREATE TRIGGER stop BEFORE INSERT ON texts WHEN new.content = 'text 230' BEGIN SELECT RAISE(FAIL, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        take(desk, file)
    assert desk.sql("SELECT count(*) FROM items") == [(200,)]
    desk.sql("DROP TRIGGER stop")
    assert desk.problems() == []
    assert take(desk, file).counts == {"duplicate": 200, "created": 50}
    assert versions_of(send(desk, tmp_path / "y.jsonl")) == versions_of(file.read_bytes().splitlines(keepends=True))


def test_a_text_that_is_gone_between_the_look_and_the_write_is_embedded_after_all(desk: Desk) -> None:
    transfer, now, patience = desk.store.transfer(), desk.clock.now(), Deadline(PATIENCE)
    kept = desk.save("same text").id
    batch = [Arrival(version(1, "same text"))]
    assert transfer.settled(batch, now, patience) == {batch[0].version.id}
    desk.forget(kept)
    with pytest.raises(VectorsNeeded):
        transfer.add(batch, desk.caller(), {}, now, patience)
    assert desk.sql("SELECT count(*) FROM items") == [(1,)]


def test_a_closed_store_takes_nothing(desk: Desk, tmp_path: Path) -> None:
    file = write(tmp_path / "x.jsonl", [version(1, "text")])
    desk.close()
    with pytest.raises(StoreUnavailable):
        take(desk, file)


def test_passages_must_be_of_the_files_dimension(desk: Desk, tmp_path: Path) -> None:
    vector = desk.encoder.encode("text", Deadline(PATIENCE))
    note = version(1, "text", passages=((Span(0, 4), vector),))
    assert take(desk, write(tmp_path / "x.jsonl", [note], dimension=32)).counts == {"broken": 1}
