"""What a file brings changes nothing of higher origin, and contested and pinned notes go through files as they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.exchange.ferry import NOON, end_of, foreign, send, take, version, versions_of, write

from agora.model.caller import Origin
from agora.ports.transfer import Replaced
from agora.text.identity import content_hash

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk


def fill(desk: Desk) -> None:
    """Contested, settled in both ways, pinned, forgotten; and fields of two origins."""
    desk.save("the region is west", key="region", origin="user")
    desk.save("the region is east", key="region")
    desk.save("the region is south", key="region", origin="web", tags=("page",))
    desk.save("the zone is one", key="zone", origin="user")
    desk.save("the zone is two", key="zone")
    desk.save("the zone is one", key="zone", origin="user")
    desk.save("the port is one", key="port", origin="user")
    desk.save("the port is two", "bob", key="port", tags=("bob",))
    desk.save("the port is two", key="port", origin="user", tags=("mine",))
    gone = desk.save("the host is one", key="host", origin="user").id
    desk.save("the host is two", key="host")
    desk.forget(gone, origin="user")
    pinned = desk.save("deploy on mondays", origin="user", metadata={"a": 1}).id
    desk.save("deploy on mondays", "bob", tags=("bob",), metadata={"b": 2})
    desk.pin(pinned)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_store_with_contested_and_pinned_notes_is_the_same_after_a_round_trip(
    make_desk: MakeDesk, tmp_path: Path, backwards: bool
) -> None:
    one, other = make_desk(tmp_path / "one"), make_desk(tmp_path / "other")
    fill(one)
    lines = send(one, tmp_path / "one.jsonl")
    report = take(other, tmp_path / "one.jsonl", importer="user", dry_run=True)
    real = take(other, tmp_path / "one.jsonl", importer="user")
    assert report.counts == real.counts
    assert real.counts["contested"] == 4
    assert other.problems() == []
    assert versions_of(send(other, tmp_path / "other.jsonl")) == versions_of(lines)
    target, file = (one, "other.jsonl") if backwards else (other, "one.jsonl")
    head = target.sql("SELECT max(sequence) FROM journal")
    assert set(take(target, tmp_path / file).counts) == {"duplicate"}
    assert target.sql("SELECT max(sequence) FROM journal") == head
    assert set(one.found("region zone port host deploy")) == set(other.found("region zone port host deploy"))


def test_who_is_not_the_user_brings_no_pin_in(make_desk: MakeDesk, tmp_path: Path) -> None:
    one, other = make_desk(tmp_path / "one"), make_desk(tmp_path / "other")
    one.pin(one.save("deploy on mondays", origin="user").id)
    send(one, tmp_path / "x.jsonl")
    take(other, tmp_path / "x.jsonl", importer="agent")
    assert other.sql("SELECT count(*) FROM pins") == [(0,)]
    assert other.problems() == []


@pytest.mark.parametrize("importer", ["user", "agent"])
@pytest.mark.parametrize("origin", ["agent", "tool", "web"])
def test_a_value_of_lower_origin_that_claims_to_replace_is_contested(
    desk: Desk, tmp_path: Path, importer: Origin, origin: Origin
) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    made = version(1, "the region is east", key="region", version=2, supersedes=stands,
                   replaces=(Replaced(stands, content_hash("the region is west")),))  # fmt: skip
    made = replace(made, savers=tuple(replace(giver, origin=origin) for giver in made.savers))
    report = take(desk, write(tmp_path / "x.jsonl", [made]), importer=importer)
    assert dict(report.counts) == {"contested": 1}
    assert report.as_data()["counts"]["contested"] == 1
    assert desk.note(stands).contested_by == (made.id,)
    assert sorted(desk.found("region")) == sorted([stands, made.id])
    assert desk.problems() == []


@pytest.mark.parametrize(
    "state",
    [
        {"forgotten_at": NOON},
        {"superseded_at": NOON, "superseded_by": "n_01J00000000000000000000009"},
        {"content": None, "purged_at": NOON, "savers": ()},
    ],
    ids=["forgotten", "superseded", "purged"],
)
def test_a_version_that_is_gone_hides_no_value_of_higher_origin(
    desk: Desk, tmp_path: Path, state: dict[str, object]
) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    made = version(1, "the region is east", key="region", version=2, supersedes=stands,
                   replaces=(Replaced(stands, content_hash("the region is west")),))  # fmt: skip
    report = take(desk, write(tmp_path / "x.jsonl", [replace(made, **state)]), importer="agent")  # type: ignore[arg-type]
    assert dict(report.counts) == {"conflict": 1}
    assert desk.found("region") == [stands]
    assert desk.note(stands).superseded_by is None
    assert desk.problems() == []


def test_an_older_value_of_the_users_is_no_history_of_an_agents(desk: Desk, tmp_path: Path) -> None:
    agents = version(2, "the region is east", key="region", version=3)
    take(desk, write(tmp_path / "x.jsonl", [agents]))
    made = version(1, "the region is west", key="region", created_at=NOON - timedelta(days=9))
    made = replace(made, savers=tuple(replace(giver, origin="user") for giver in made.savers))
    report = take(desk, write(tmp_path / "x.jsonl", [made]), importer="user")
    assert dict(report.counts) == {"conflict": 1}
    assert "lower authority" in report.conflicts[0]["reason"]
    assert desk.found("region") == [agents.id]


@pytest.mark.parametrize("same_id", [False, True])
def test_the_same_text_from_a_file_of_lower_origin_changes_no_field(desk: Desk, tmp_path: Path, same_id: bool) -> None:
    saved = desk.save("one text", origin="user", metadata={"a": 1}, tags=("mine",), lives=100).id
    before = desk.note(saved)
    made = version(1, "one text", metadata={"b": 2}, confidence=0.9)
    made = replace(made, savers=tuple(replace(giver, tags=("theirs",)) for giver in made.savers))
    if same_id:
        made = replace(made, id=saved)
    for _ in range(2):
        take(desk, write(tmp_path / "x.jsonl", [made]), importer="agent")
        after = desk.note(saved)
        for name in ("metadata", "tags", "confidence", "expires_at", "origin"):
            assert getattr(after, name) == getattr(before, name)
        assert [(saver.agent, saver.tags) for saver in after.savers] == [("ann", ()), ("eve", ("theirs",))]
    assert desk.sql("SELECT count(*) FROM journal") == [(2,)]
    assert desk.problems() == []


@pytest.mark.parametrize("same_id", [False, True])
def test_the_same_text_from_a_file_of_higher_origin_lifts_the_row(desk: Desk, tmp_path: Path, same_id: bool) -> None:
    saved = desk.save("one text", metadata={"a": 1}, tags=("theirs",), lives=100).id
    made = version(1, "one text", metadata={"b": 2})
    made = replace(made, savers=tuple(replace(giver, origin="user", tags=("mine",)) for giver in made.savers))
    if same_id:
        made = replace(made, id=saved)
    take(desk, write(tmp_path / "x.jsonl", [made]), importer="user")
    note = desk.note(saved)
    assert (note.origin, note.metadata, note.tags, note.expires_at) == ("user", {"b": 2}, ("mine",), None)
    assert [(saver.agent, saver.tags) for saver in note.savers] == [("eve", ()), ("ann", ("theirs",))]
    assert desk.problems() == []


def test_a_text_of_another_tool_comes_beside_the_users_value(desk: Desk, tmp_path: Path) -> None:
    stands = desk.save("The port is one.", key="AGENTS.md#Ports", origin="user").id
    rules = "# Ports\n\nThe port is two.\n"
    for fate in ("contested", "duplicate"):
        report = take(desk, foreign(tmp_path, "AGENTS.md", rules), importer="user")
        assert dict(report.counts) == {fate: 1}
        (beside,) = desk.note(stands).contested_by
        assert sorted(desk.found("port")) == sorted([stands, beside])
    assert take(desk, foreign(tmp_path, "AGENTS.md", rules.replace("two", "three"))).counts["contested"] == 1
    assert desk.note(beside).superseded_by in desk.note(stands).contested_by
    assert desk.problems() == []


def test_a_contested_line_without_a_key_is_broken(desk: Desk, tmp_path: Path) -> None:
    made = version(1, "one text", contests="n_01J00000000000000000000009")
    report = take(desk, write(tmp_path / "x.jsonl", [made]))
    assert dict(report.counts) == {"broken": 1}
    assert report.broken[0]["reason"] == "contests: needs a key"


def test_what_a_contested_version_stands_beside_may_come_later_or_never(make_desk: MakeDesk, tmp_path: Path) -> None:
    one, other = make_desk(tmp_path / "one"), make_desk(tmp_path / "other")
    stands = one.save("the region is west", key="region", origin="user").id
    beside = one.save("the region is east", key="region").id
    lines = send(one, tmp_path / "one.jsonl")
    header, first, second = lines[0], lines[1], lines[2]
    part = tmp_path / "part.jsonl"
    part.write_bytes(b"".join([header, second, end_of([header, second])]))
    take(other, part, importer="user")
    assert other.note(beside).contests == "unknown"
    assert other.found("region") == [beside]
    assert other.problems() == []
    assert versions_of(send(other, tmp_path / "again.jsonl")) != [second]
    third = make_desk(tmp_path / "third")
    take(third, tmp_path / "again.jsonl", importer="user")
    assert third.note(beside).contests == "unknown"
    part.write_bytes(b"".join([header, first, end_of([header, first])]))
    take(other, part, importer="user")
    assert sorted(other.found("region")) == sorted([stands, beside])
    assert other.note(beside).contests == stands
    assert other.problems() == []


def test_a_file_again_leaves_what_became_contested_here_as_it_is(desk: Desk, tmp_path: Path) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    desk.save("the region is north", key="region", origin="web")
    made = version(1, "the region is east", key="region", version=2, supersedes=stands,
                   replaces=(Replaced(stands, content_hash("the region is west")),))  # fmt: skip
    file = write(tmp_path / "x.jsonl", [made])
    assert dict(take(desk, file, importer="agent").counts) == {"contested": 1}
    assert desk.note(made.id).version == 3
    head = desk.sql("SELECT max(sequence) FROM journal")
    assert dict(take(desk, file, importer="agent").counts) == {"duplicate": 1}
    assert desk.sql("SELECT max(sequence) FROM journal") == head


def test_a_contested_text_that_was_forgotten_here_does_not_come_back_under_another_id(
    desk: Desk, tmp_path: Path
) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    beside = desk.save("the region is east", key="region").id
    made = version(1, "the region is east", key="region", version=2, contests=stands)
    file = write(tmp_path / "x.jsonl", [made])
    assert dict(take(desk, file, importer="agent").counts) == {"duplicate": 1}
    desk.forget(beside)
    assert dict(take(desk, file, importer="agent").counts) == {"duplicate": 1}
    assert desk.found("region") == [stands]
    assert desk.problems() == []
