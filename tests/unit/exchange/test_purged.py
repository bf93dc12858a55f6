"""Exports of a store in which notes were purged, and imports into stores that have them still, or no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.sentinels import looked_for
from tests.unit.exchange.ferry import NOON, purge, send, take, version, versions_of, write

from agora.model.deadline import Deadline


def well_used(desk: Desk) -> dict[str, str]:
    """Ids of a note that was purged whole, of one version that was purged alone, and of what stays."""
    desk.save("zephyrine one", tags=("ytagged",))
    ids = {"whole, old": desk.save("zephyrine one", key="wolframite", tags=("xtag",)).id}
    ids["whole, new"] = desk.save("zephyrine two", key="wolframite", metadata={"mfield": 1}).id
    for number in (1, 2, 3):
        ids[f"part {number}"] = desk.save(f"version {number}", key="k").id
    ids["plain"] = desk.save("plain text").id
    desk.forget(ids["whole, new"], ids["part 2"], reason="oreasoned")
    assert not purge(desk).unfinished
    return ids


def test_an_export_holds_skeletons_and_comes_back_the_same(make_desk: MakeDesk, tmp_path: Path) -> None:
    one, two = make_desk(tmp_path / "one"), make_desk(tmp_path / "two")
    ids = well_used(one)
    lines = versions_of(send(one, tmp_path / "x.jsonl"))
    words = {word: word.encode() for word in ("zephyrine", "ytagged", "xtag", "wolframite", "mfield", "oreasoned")}
    assert not [word for word in words.values() if word in b"".join(lines)]
    purged = [json.loads(line) for line in lines if "purged_at" in json.loads(line)]
    assert len(purged) == 4
    assert all(record["kind"] == "purged" and record["savers"] == [] for record in purged)
    report = take(two, tmp_path / "x.jsonl")
    assert (report.whole, report.broken, report.conflicts) == (True, [], [])
    assert versions_of(send(two, tmp_path / "y.jsonl")) == lines
    assert two.problems() == []
    assert two.get(ids["whole, old"], ids["whole, new"], ids["part 2"]).purged == tuple(
        ids[name] for name in ("whole, old", "whole, new", "part 2")
    )
    history = two.get(ids["part 3"]).history[ids["part 3"]]
    assert [note.content for note in history] == ["version 1", "version 3"]


def test_an_export_of_what_is_live_has_no_skeletons(desk: Desk, tmp_path: Path) -> None:
    ids = well_used(desk)
    lines = versions_of(send(desk, tmp_path / "x.jsonl", live_only=True))
    assert [json.loads(line)["id"] for line in lines] == [ids["part 3"], ids["plain"]]


def test_what_was_purged_here_is_not_brought_back_by_an_export_from_before(desk: Desk, tmp_path: Path) -> None:
    gone = desk.save("zephyrine", key="k", tags=("ytagged",))
    send(desk, tmp_path / "before.jsonl")
    desk.forget(gone.id)
    purge(desk)
    report = take(desk, tmp_path / "before.jsonl")
    assert [each["reason"] for each in report.duplicates] == ["it was purged here, and stays purged"]
    assert desk.get(gone.id).purged == (gone.id,)
    (tmp_path / "before.jsonl").unlink()
    assert looked_for(desk.folder, {"text": b"zephyrine", "tag": b"ytagged"}) == {}
    assert desk.problems() == []


def test_what_was_purged_elsewhere_stays_here_and_is_said_so(make_desk: MakeDesk, tmp_path: Path) -> None:
    one, two = make_desk(tmp_path / "one"), make_desk(tmp_path / "two")
    first = one.save("one", key="k")
    second = one.save("two", key="k", kind="decision")
    send(one, tmp_path / "x.jsonl")
    take(two, tmp_path / "x.jsonl")
    one.forget(second.id)
    purge(one)
    send(one, tmp_path / "y.jsonl")
    report = take(two, tmp_path / "y.jsonl")
    assert [each["reason"] for each in report.duplicates] == ["it was purged there, not here"] * 2
    assert two.found("two")[0] == second.id
    assert [note.id for note in two.get(second.id).history[second.id]] == [first.id, second.id]


def test_a_file_brings_of_a_purged_note_no_more_than_its_skeleton(desk: Desk, tmp_path: Path) -> None:
    """Whatever somebody wrote into it: no later purge would look for it."""
    full = version(1, "text", key="k")
    fields: dict[str, Any] = {"kind": "wkind", "metadata": {"vfield": "u"}, "session": "tsession"}
    gone = replace(full, content=None, purged_at=NOON, title="ztitled", forget_reason="jreason", **fields)
    gone = replace(gone, savers=(replace(gone.savers[0], agent="qagent", given={"title": "ygiven"}, tags=("xtag",)),))
    words = ["wkind", "vfield", "tsession", "jreason", "ztitled", "ygiven", "xtag", "qagent"]
    file = write(tmp_path / "x.jsonl", [gone])
    assert take(desk, file).counts == {"created": 1}
    file.unlink()
    assert looked_for(desk.folder, {word: word.encode() for word in words}) == {}
    assert desk.problems() == []
    assert desk.store.purging().remains(Deadline(PATIENCE)) == {}
    # It holds its place all the same: a save under its key is the next version.
    saved = desk.save("a new text", key="k")
    assert (saved.status, desk.found("new text"), desk.problems()) == ("updated", [saved.id], [])
