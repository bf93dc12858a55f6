"""What a repair makes good, what it leaves alone, and what other processes see of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.stores import moving
from tests.unit.stores.damage import DAMAGE, FATAL, answers, canonical, damage, fill, kept, pin

from agora.app.checking import Row, failures
from agora.app.repairing import Repair, repair
from agora.config.load import load_settings
from agora.errors import Conflict, EncoderUnavailable, ModelMissing, StoreUnavailable
from agora.memory.passages import embed
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.ports.encoder import Vector
from agora.stores.sqlite.alone import alone
from agora.stores.sqlite.repairing import mending
from agora.stores.sqlite.repairing.copying import BEFORE, copy_aside
from agora.stores.sqlite.rules import KINDS
from agora.testing import FakeEncoder

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

Repairing = Callable[..., Repair]


@pytest.fixture
def full(desk: Desk) -> Desk:
    fill(desk)
    pin(desk)
    return desk


def repaired(folder: Path, encoder: FakeEncoder | None = None) -> Repair:
    """What `agora doctor --repair` does, with the encoder that the desks have."""
    return repair(load_settings({"home": str(folder)}), choose=lambda: encoder or FakeEncoder())


def broken(found: Repair) -> list[Row]:
    """What is wrong afterwards; that the model is not the one that is set is so on purpose."""
    return [row for row in failures(found.after) if row["name"] != "model"]


def codes(found: Repair) -> set[str]:
    return {str(row["code"]) for row in broken(found)}


def copies(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"agora.db{BEFORE}*"))


@pytest.mark.parametrize(("code", "statement"), [(code, each) for code, all_ in DAMAGE.items() for each in all_])
def test_a_repair_gives_back_every_answer_with_its_score(
    full: Desk, make_desk: MakeDesk, code: str, statement: str
) -> None:
    told, rows = answers(full), canonical(full.path)
    damage(full.path, statement)
    found = repaired(full.folder)
    assert code in {row.get("code") for row in found.before}
    assert broken(found) == []
    assert found.done
    assert found.left == []
    assert kept(rows, canonical(full.path))
    assert full.problems() == []
    # The process that had the store open all the time, and one that opens it now.
    assert answers(full) == told
    assert answers(make_desk()) == told
    # And it goes on: a text that comes back, a new one, one that goes.
    fresh = full.save("entirely new words after the repair").id
    assert fresh in full.found("entirely new words")
    full.forget(fresh)
    assert full.problems() == []


@pytest.mark.parametrize(("code", "statement"), [(code, each) for code, all_ in FATAL.items() for each in all_])
def test_what_no_row_tells_is_never_made_up(full: Desk, code: str, statement: str) -> None:
    damage(full.path, statement)
    rows = canonical(full.path)
    found = repaired(full.folder)
    assert code in codes(found)
    if code == "schema_damaged":
        (left,) = found.left
        assert "item_tags" in left["message"]
        assert (found.done, found.copy) == ([], None)
    else:
        # What follows from the rows follows from them as they are.
        assert {each for each in codes(found) if KINDS[each].repair is not None} == set()
    assert kept(rows, canonical(full.path))
    hint = next(row["hint"] for row in found.after if row.get("code") == code)
    assert "backup" in hint


def test_damage_to_words_and_vectors_together_is_made_good(full: Desk) -> None:
    told = answers(full)
    for statement in (
        "DELETE FROM fulltext_data",
        "DELETE FROM vectors",
        "DELETE FROM passages",
        "DROP TABLE term_stats",
    ):
        damage(full.path, statement)
    found = repaired(full.folder)
    assert broken(found) == []
    assert answers(full) == told
    (live,) = full.sql("SELECT count(*) FROM items WHERE superseded_by IS NULL AND forgotten_at IS NULL")[0]
    (words,) = full.sql("SELECT count(DISTINCT item_id) FROM passages JOIN fulltext_content USING (id)")[0]
    assert words == live
    assert full.sql("SELECT count(*) FROM passages") == full.sql("SELECT count(*) FROM vectors")


@pytest.mark.parametrize("code", ["journal_broken", "content_hash", "orphan_rows", "metadata_damaged"])
def test_what_follows_from_the_notes_is_made_anew_beside_damage_that_stays(full: Desk, code: str) -> None:
    damage(full.path, FATAL[code][0])
    damage(full.path, "DELETE FROM fulltext")
    damage(full.path, "DELETE FROM vectors WHERE id = 1")
    rows = canonical(full.path)
    found = repaired(full.folder)
    assert code in codes(found)
    assert {each for each in codes(found) if KINDS[each].repair is not None} == set()
    assert found.done
    assert kept(rows, canonical(full.path))


def test_a_whole_store_is_left_alone(full: Desk) -> None:
    before = full.sql("SELECT max(sequence) FROM journal")
    found = repaired(full.folder)
    assert broken(found) == []
    assert (found.done, found.left, found.copy) == ([], [], None)
    assert full.sql("SELECT max(sequence) FROM journal") == before
    assert copies(full.folder) == []


def test_a_repair_of_a_store_that_is_not_there_makes_none(tmp_path: Path) -> None:
    assert broken(repaired(tmp_path / "nothing")) == []
    assert not (tmp_path / "nothing").exists()


def test_the_store_as_it_was_lies_beside_it_whole_and_for_its_owner_alone(full: Desk) -> None:
    damage(full.path, "DELETE FROM vectors")
    rows = canonical(full.path)
    found = repaired(full.folder)
    assert copies(full.folder) == [found.copy]
    assert found.copy is not None
    if hasattr(found.copy, "owner"):
        assert found.copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(found.copy)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert canonical(found.copy) == rows
    damage(full.path, "DELETE FROM vectors")
    repaired(full.folder)
    assert len(copies(full.folder)) == 2


def test_two_copies_of_one_second_have_names_of_their_own(full: Desk) -> None:
    now = full.clock.now()
    assert len({copy_aside(full.path, now) for _ in range(3)}) == 3


def test_the_journal_tells_of_a_repair_and_stays_whole(full: Desk) -> None:
    damage(full.path, "DELETE FROM fulltext")
    found = repaired(full.folder)
    operation, subject, after = full.sql(
        "SELECT operation, subject, after FROM journal JOIN journal_payload USING (sequence)"
        " WHERE sequence = (SELECT max(sequence) FROM journal)"
    )[0]
    assert (operation, subject) == ("repair", None)
    assert found.done[0] in after


def test_an_answer_from_before_the_repair_is_not_given_from_the_cache(full: Desk) -> None:
    def known_by(desk: Desk) -> str:
        with desk.store.read(Deadline(5)) as reading:
            return reading.state(("p",)).store

    before = known_by(full)
    damage(full.path, "DELETE FROM fulltext WHERE rowid = 3")
    assert known_by(full) == before
    repaired(full.folder)
    assert known_by(full) != before


def test_a_process_that_has_the_index_in_memory_notices_new_vectors_without_any_other_change(
    full: Desk, make_desk: MakeDesk
) -> None:
    told = answers(full)
    damage(full.path, "DELETE FROM vectors WHERE id = 3")
    running = make_desk()
    assert answers(running) != told
    # Without new index files, which would be noticed by themselves.
    batch = [
        (note, embed(FakeEncoder(), note.title, note.content, Deadline(5)))
        for note in mending.next_lacking(full.path, 0, 10)
    ]
    assert mending.fill(full.path, batch, to_micros(full.clock.now())) == 1
    assert answers(running) == told


class Gone(FakeEncoder):
    def verify(self) -> None:
        raise ModelMissing("the model is not there", hint="Install it.")


class Tired(FakeEncoder):
    """Answers a few times."""

    left = 3

    def encode(self, text: str, deadline: Deadline) -> Vector:
        self.left -= 1
        if self.left < 0:
            raise EncoderUnavailable("the server does not answer", hint="Start it.")
        return super().encode(text, deadline)


def test_without_its_model_a_store_gets_everything_but_vectors_and_is_told_so(full: Desk) -> None:
    told = answers(full)
    damage(full.path, "DELETE FROM fulltext")
    damage(full.path, "DELETE FROM passages WHERE item_id = 4")
    damage(full.path, "UPDATE vectors SET vector = zeroblob(12) WHERE id = 3")
    found = repaired(full.folder, Gone())
    assert codes(found) == {"passage_without_vector"}
    (left,) = found.left
    assert left["code"] == "model_missing"
    assert left["message"].startswith("vectors were not made: ")
    assert left["hint"] == "Install it. Then run `agora doctor --repair` again."
    # By words even the note is found that has no passage of its own yet.
    assert full.found("many words", mode="lexical")
    assert broken(repaired(full.folder)) == []
    assert answers(full) == told


def test_another_model_makes_no_vectors_for_a_store(full: Desk) -> None:
    damage(full.path, "DELETE FROM vectors WHERE id = 3")
    found = repaired(full.folder, FakeEncoder(name="another"))
    assert codes(found) == {"passage_without_vector"}
    assert [row["code"] for row in found.left] == ["embedding_mismatch"]


def test_what_was_made_stays_when_the_model_goes_and_the_next_repair_goes_on(full: Desk) -> None:
    told = answers(full)
    damage(full.path, "DELETE FROM vectors")
    found = repaired(full.folder, Tired())
    assert [row["code"] for row in found.left] == ["encoder_unavailable"]
    assert broken(repaired(full.folder)) == []
    assert answers(full) == told


def test_a_store_without_any_encoder_gets_the_one_that_is_set(full: Desk) -> None:
    told = answers(full)
    # Vectors of nobody knows whom: whole, and those of other texts.
    damage(full.path, "UPDATE vectors SET vector = (SELECT vector FROM vectors WHERE id = 1)")
    for statement in ("DELETE FROM encoders", "DELETE FROM sqlite_sequence WHERE name = 'encoders'"):
        damage(full.path, statement)
    found = repaired(full.folder)
    assert broken(found) == []
    assert answers(full) == told


def test_one_repair_at_a_time(full: Desk) -> None:
    damage(full.path, "DELETE FROM vectors")
    for name in ("repair.lock", "reembed.lock"):
        with alone(full.folder / name, "it"), pytest.raises(Conflict, match="under way"):
            repaired(full.folder)
    assert broken(repaired(full.folder)) == []


def test_a_damaged_cache_is_deleted_and_nothing_else_done(full: Desk) -> None:
    cache = full.folder / "cache.db"
    cache.write_bytes(b"SQLite format 3\0" + b"\xff" * 8192)
    found = repaired(full.folder)
    assert "cache_damaged" in {row.get("code") for row in found.before}
    assert broken(found) == []
    assert not cache.exists()
    assert found.copy is None


def test_no_room_for_a_copy_is_told_before_anything_is_changed(full: Desk, tmp_path: Path) -> None:
    damage(full.path, "DELETE FROM vectors")
    # A sparse file takes no room and claims all there is.
    huge = tmp_path / "huge" / "agora.db"
    huge.parent.mkdir()
    with huge.open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(StoreUnavailable, match=r"needs [\d,]+ bytes beside it") as caught:
        copy_aside(huge, full.clock.now())
    assert "Nothing was changed" in caught.value.hint
    assert [each.name for each in huge.parent.iterdir()] == ["agora.db"]


def test_a_move_to_another_encoder_goes_on_after_a_repair(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "moved")
    moving.fill(desk)
    steps: list[str] = []

    def stop(step: str) -> None:
        steps.append(step)
        if "cut_anew" in steps and steps.count("keep") > 4:
            raise moving.Stopped

    mover = make_desk(tmp_path / "moved", encoder=FakeEncoder(**moving.SHORT))
    with pytest.raises(moving.Stopped):
        moving.move(mover, stop)
    assert desk.sql("SELECT count(*) > 0 FROM fulltext_spare") == [(1,)]
    for what in (
        "DELETE FROM fulltext",
        "DELETE FROM fulltext_spare",
        "DELETE FROM term_stats_spare",
        "DELETE FROM vectors WHERE encoder_id = 1 AND id % 2",
    ):
        damage(desk.path, what)
    assert broken(repaired(desk.folder)) == []
    moving.move(mover)
    assert mover.problems() == []
    fresh = make_desk(tmp_path / "fresh", encoder=FakeEncoder(**moving.SHORT))
    moving.fill(fresh)
    assert moving.answers(mover) == moving.answers(fresh)


def test_vectors_made_for_a_note_are_not_given_to_another_with_its_number(desk: Desk) -> None:
    saved = desk.save("the same text", title="One title")
    damage(desk.path, "DELETE FROM vectors")
    path, encoder = desk.path, desk.encoder
    (note,) = mending.next_lacking(path, 0, 10)
    made = embed(encoder, note.title, note.content, Deadline(20))
    # As it is once a backup was put back and something else was saved.
    desk.sql("UPDATE texts SET title = 'Another title'")
    assert mending.fill(path, [(note, made)], to_micros(desk.clock.now())) == 0
    (note,) = mending.next_lacking(path, 0, 10)
    assert note.title == "Another title"
    assert mending.fill(path, [(note, made)], to_micros(desk.clock.now())) == 1
    assert desk.found("the same text", mode="semantic") == [saved.id]
