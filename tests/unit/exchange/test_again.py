"""The same file again changes nothing, whatever the store held before the first time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Desk, MakeDesk
from tests.sentinels import looked_for
from tests.unit.exchange.ferry import NOON, chain, contents, foreign, purge, send, take, version, write

from agora.exchange.report import Report
from agora.ports.transfer import Version


def settled(desk: Desk, file: Path) -> Report:
    """What the first import of `file` did; a dry run said the same, and a second import changes nothing."""
    foreseen = take(desk, file, dry_run=True)
    done = take(desk, file)
    assert foreseen.counts == done.counts
    sequence, rows = desk.sql("SELECT max(sequence) FROM journal"), desk.sql("SELECT count(*) FROM items")
    again = take(desk, file)
    assert set(again.counts) <= {"duplicate", "conflict"}
    assert again.counts["conflict"] == done.counts["conflict"]
    assert desk.sql("SELECT max(sequence) FROM journal") == sequence
    assert desk.sql("SELECT count(*) FROM items") == rows
    assert desk.problems() == []
    return done


def test_a_version_whose_place_only_its_successor_tells_comes_in_the_first_time(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    one, two = make_desk(tmp_path / "a"), make_desk(tmp_path / "b")
    one.save("porta", key="k")
    for text in ("the port is 5432", "porta", "the port is 5432"):
        two.save(text, key="k")
    send(two, tmp_path / "x.jsonl")
    assert settled(one, tmp_path / "x.jsonl").counts == {"conflict": 1, "history": 1, "updated": 1}
    assert contents(one) == [(1, "porta", 0), (2, "porta", 0), (3, "the port is 5432", 1)]


def test_a_long_past_comes_in_at_once_behind_the_version_that_fits(desk: Desk, tmp_path: Path) -> None:
    desk.save("same", "ann", key="k")
    theirs = chain(*(f"theirs {n}" for n in range(1, 300)), "same", "new")
    report = settled(desk, write(tmp_path / "x.jsonl", theirs))
    # The first one has the number of the one that is here, and another text.
    assert report.counts == {"conflict": 1, "history": 299, "updated": 1}
    assert [number for number, _, _ in contents(desk)] == [1, *range(2, 302)]
    assert contents(desk)[-1] == (301, "new", 1)


@pytest.mark.parametrize("order", [(2, 0, 1), (2, 1, 0), (1, 2, 0), (1, 0, 2), (0, 2, 1)])
@pytest.mark.parametrize("texts", [("one", "two", "three"), ("one", "two", "one")])
@pytest.mark.parametrize("mine", [None, "one"])
def test_in_whatever_order_a_file_has_the_versions_of_a_key_they_come_in_whole(
    desk: Desk, tmp_path: Path, order: tuple[int, ...], texts: tuple[str, ...], mine: str | None
) -> None:
    if mine is not None:
        desk.save(mine, key="k")
    versions = chain(*texts)
    report = settled(desk, write(tmp_path / "x.jsonl", [versions[n] for n in order]))
    assert report.counts["conflict"] == 0
    assert contents(desk) == [(1, texts[0], 0), (2, texts[1], 0), (3, texts[2], 1)]
    assert desk.found(texts[2], mode="lexical") == [versions[2].id]


def test_a_history_that_went_on_comes_in_from_a_store_that_has_its_past_after_its_present(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    one, two, three = (make_desk(tmp_path / name) for name in "abc")
    one.save("first", key="k")
    send(one, tmp_path / "first.jsonl")
    take(three, tmp_path / "first.jsonl")
    one.save("second", key="k")
    last = one.save("third", key="k").id
    send(one, tmp_path / "live.jsonl", live_only=True)
    send(one, tmp_path / "all.jsonl")
    take(two, tmp_path / "live.jsonl")
    take(two, tmp_path / "all.jsonl")
    send(two, tmp_path / "x.jsonl")
    assert settled(three, tmp_path / "x.jsonl").counts["conflict"] == 0
    assert contents(three) == [(1, "first", 0), (2, "second", 0), (3, "third", 1)]
    assert three.found("third", mode="lexical") == [last]


def test_a_text_without_a_key_is_not_lost_when_the_one_it_equals_is_superseded_by_the_same_file(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    one, two = make_desk(tmp_path / "a"), make_desk(tmp_path / "b")
    first = one.save("same text", key="k").id
    send(one, tmp_path / "x.jsonl")
    take(two, tmp_path / "x.jsonl")
    one.forget(first)
    plain = one.save("same text").id
    one.save("new", key="k")
    send(one, tmp_path / "y.jsonl")
    assert settled(two, tmp_path / "y.jsonl").counts == {"duplicate": 1, "updated": 1, "created": 1}
    assert two.found("same text", mode="lexical") == [plain]


def contradicting(keys: int) -> list[Version]:
    """Histories of several keys, none of which begins as the store's do."""
    return [each for n in range(keys) for each in chain("theirs", "theirs 2", key=f"k{n}", first=1 + 10 * n)]


def test_conflicts_beyond_what_waits_in_memory_are_decided_and_said(desk: Desk, tmp_path: Path) -> None:
    for n in range(120):
        desk.save("mine", key=f"k{n}")
    file = write(tmp_path / "x.jsonl", contradicting(120))
    assert take(desk, file, dry_run=True).whole
    report = take(desk, file, put_off=1000)
    assert report.counts == {"conflict": 240}
    assert not report.whole
    [problem] = report.problems
    assert problem.startswith("the place of 200 versions was decided before the rest of the file was read")
    assert take(desk, file).counts == report.counts


def kept_out(desk: Desk, file: Path) -> None:
    """`file`, which was imported before, changes nothing now, though the store has changed since."""
    sequence, rows = desk.sql("SELECT max(sequence) FROM journal"), desk.sql("SELECT count(*) FROM items")
    foreseen = take(desk, file, dry_run=True)
    done = take(desk, file)
    assert foreseen.counts == done.counts
    assert set(done.counts) <= {"duplicate", "conflict"}
    assert desk.sql("SELECT max(sequence) FROM journal") == sequence
    assert desk.sql("SELECT count(*) FROM items") == rows
    assert desk.problems() == []


def test_a_text_that_joined_one_of_another_id_stays_forgotten_with_it(desk: Desk, tmp_path: Path) -> None:
    mine = desk.save("same text").id
    file = write(tmp_path / "x.jsonl", [version(1, "same text")])
    assert take(desk, file).counts == {"duplicate": 1}
    desk.forget(mine)
    kept_out(desk, file)
    assert take(desk, file).duplicates[0]["reason"] == "it was forgotten here, and stays so"
    desk.restore(mine)
    kept_out(desk, file)
    assert desk.found("same text") == [mine]


def test_a_text_of_another_tool_that_joined_a_note_stays_forgotten_with_it(desk: Desk, tmp_path: Path) -> None:
    mine = desk.save("Ann: likes tea").id
    entity = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    file = foreign(tmp_path, "memory.jsonl", json.dumps(entity))
    assert take(desk, file).counts == {"duplicate": 1}
    desk.forget(mine)
    kept_out(desk, file)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_text_that_joined_one_of_another_id_stays_purged_with_it(desk: Desk, tmp_path: Path, key: str | None) -> None:
    mine = desk.save("zephyrine", key=key).id
    file = write(tmp_path / "x.jsonl", [version(1, "zephyrine", key=key)])
    assert take(desk, file).counts == {"duplicate": 1}
    desk.forget(mine)
    purge(desk)
    kept_out(desk, file)
    assert take(desk, file).duplicates[0]["reason"] == "it was purged here, and stays purged"
    file.unlink()
    assert looked_for(desk.folder, {"text": b"zephyrine"}) == {}


def test_a_text_that_joined_one_with_a_key_is_superseded_with_it(desk: Desk, tmp_path: Path) -> None:
    desk.save("old value", key="k")
    file = write(tmp_path / "x.jsonl", [version(1, "old value")])
    assert take(desk, file).counts == {"duplicate": 1}
    new = desk.save("new value", key="k").id
    kept_out(desk, file)
    assert desk.found("value", mode="lexical") == [new]


def test_a_version_that_joined_one_of_another_number_goes_on_with_it(desk: Desk, tmp_path: Path) -> None:
    [older] = chain("value", first=-2000)
    take(desk, write(tmp_path / "x.jsonl", chain("value", start=3)))
    file = write(tmp_path / "y.jsonl", [older])
    assert take(desk, file).counts == {"duplicate": 1}
    new = desk.save("new value", key="k").id
    kept_out(desk, file)
    assert desk.found("value", mode="lexical") == [new]


def test_a_text_that_the_clock_has_ended_since_is_still_the_one_that_it_joined(desk: Desk, tmp_path: Path) -> None:
    desk.save("same text", lives=5)
    file = write(tmp_path / "x.jsonl", [version(1, "same text", expires_at=desk.clock.now() + timedelta(seconds=3))])
    assert take(desk, file).counts == {"duplicate": 1}
    desk.clock.advance(seconds=5)
    kept_out(desk, file)


def test_a_text_that_was_saved_anew_after_the_clock_had_ended_it_does_not_get_what_a_file_gave_before(
    desk: Desk, tmp_path: Path
) -> None:
    desk.save("same text", lives=5)
    file = write(tmp_path / "x.jsonl", [version(1, "same text", expires_at=desk.clock.now() + timedelta(seconds=3))])
    assert take(desk, file).counts == {"duplicate": 1}
    desk.clock.advance(seconds=5)
    new = desk.save("same text").id
    kept_out(desk, file)
    assert [saver.agent for saver in desk.note(new).savers] == ["ann"]


def test_a_file_that_somebody_with_less_authority_brings_again_adds_no_second_saver(
    make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk = make_desk(tmp_path / "a")
    note = version(1, "same text")
    giver = replace(note.savers[0], origin="user", times=2, tags=("a",))
    file = write(tmp_path / "x.jsonl", [replace(note, savers=(giver, replace(giver, origin="agent", tags=("b",))))])
    take(desk, file, importer="user")
    before = send(desk, tmp_path / "before.jsonl")
    report = take(desk, file, importer="agent")
    assert (report.counts, report.lowered) == ({"duplicate": 1}, 1)
    assert send(desk, tmp_path / "after.jsonl") == before


@pytest.mark.parametrize("change", [{"times": 9}, {"tags": ("c",)}, {"last_at": NOON + timedelta(days=1)}])
def test_what_a_lowered_saver_did_since_is_added_under_the_lower_origin(
    desk: Desk, tmp_path: Path, change: dict[str, Any]
) -> None:
    note = version(1, "same text")
    giver = replace(note.savers[0], origin="user", tags=("a",))
    take(desk, write(tmp_path / "x.jsonl", [replace(note, savers=(giver,))]), importer="user")
    file = write(tmp_path / "y.jsonl", [replace(note, savers=(replace(giver, **change),))])
    take(desk, file, importer="agent")
    assert [saver.origin for saver in desk.note(note.id).savers] == ["user", "agent"]
    before = send(desk, tmp_path / "before.jsonl")
    take(desk, file, importer="agent")
    assert send(desk, tmp_path / "after.jsonl") == before


def test_a_heading_that_is_written_like_a_second_one_of_its_name_has_a_key_of_its_own(
    desk: Desk, tmp_path: Path
) -> None:
    file = foreign(tmp_path, "AGENTS.md", "# Stil\u00e9\none\n# Stile\u0301\ntwo\n# Stil\u00e9 (2)\nthree\n")
    assert take(desk, file).counts == {"created": 3}
    kept_out(desk, file)
