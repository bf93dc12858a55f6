"""A purge leaves no byte of what was forgotten in any file, and everything else as it was."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sentinels import files_below, looked_for
from tests.unit.stores.damage import call

from agora.errors import Conflict, NoteNotFound
from agora.maintenance.purge import Outside, Purger
from agora.model.deadline import Deadline
from agora.model.purge import Condemned, Purged, Unwanted
from agora.model.query import Mode
from agora.ports import places
from agora.stores.sqlite.audit_chain import verified
from agora.stores.sqlite.examine import remarks
from agora.testing import SilentLog
from agora.text.analysis import analyse

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

STORE = {"agora.db", "agora.db-wal"}
SEGMENT = "index/"
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "lexical")


def soon() -> Deadline:
    return Deadline(20)


def purger(desk: Desk, *outside: Outside, wait: float = 20.0) -> Purger:
    return Purger(desk.store.purging(), desk.folder, outside, desk.clock, SilentLog(), wait=wait)


def condemned(desk: Desk, *ids: str, namespaces: Sequence[str] = ("p",), **conditions: object) -> Condemned:
    return purger(desk).condemn(Unwanted(tuple(namespaces), ids, **conditions), soon())  # type: ignore[arg-type]


def purge(desk: Desk, *ids: str, namespaces: Sequence[str] = ("p",), **conditions: object) -> Purged:
    doomed = condemned(desk, *ids, namespaces=namespaces, **conditions)
    return purger(desk).purge(doomed, desk.caller("root"), soon())


def taken(desk: Desk, doomed: Condemned) -> list[set[str]]:
    """Ids of the rows of each group."""
    return [
        {str(desk.sql("SELECT public_id FROM items WHERE id = ?", row)[0][0]) for row in group}
        for group in doomed.groups
    ]


def clean(done: Purged) -> bool:
    assert [each for each in done.places if each.problem is not None] == []
    return not done.unfinished


def copied(source: Path, target: Path) -> None:
    """Have one database hold what the other does, as a restored backup has it."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target, timeout=30)) as other:
        one.backup(other)


@contextmanager
def old_reader(desk: Desk) -> Iterator[None]:
    """Somebody who looks at the store as it is now, for as long as the block lasts."""
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM items").fetchone()
        yield


def vectors_of(desk: Desk, public_id: str) -> dict[str, bytes]:
    """The beginning of each vector of a note."""
    found = desk.sql(
        "SELECT substr(v.vector, 1, 32) FROM vectors v JOIN passages p ON p.id = v.passage_id"
        " JOIN items i ON i.id = p.item_id WHERE i.public_id = ?",
        public_id,
    )
    return {f"vector {number} of {public_id}": bytes(row[0]) for number, row in enumerate(found)}


@dataclass
class Secret:
    """What the tests must not find afterwards: each name with bytes that nothing else holds."""

    ids: list[str]
    needles: dict[str, bytes]


def well_kept(desk: Desk) -> Secret:
    """A note of three versions with everything that a note can have, forgotten; and what gives each part away."""
    nfd = unicodedata.normalize("NFD", "ÄQUIVOK")
    words = {
        "old text": "wolframite",
        "text": "ZEPHYRINE",
        "long text": "xylographic",
        "tag": "vtagged",
        "merged tag": "jmerged",
        "key": "ukeyed",
        "title": "Ytitled",
        "merged title": "Ktitled",
        "metadata key": "mfield",
        "metadata value": "qvalue",
        "merged metadata": "hgiven",
        "reason": "oreasoned",
        "kind": "nkind",
        "session": "isession",
        "keyless tag": "gkeyless",
    }
    desk.save("the same wolframite text", tags=(words["keyless tag"],))
    first = desk.save("the same wolframite text", key=words["key"], tags=(words["tag"],), session=words["session"])
    second = desk.save(f"what {words['text']} says, {nfd}", key=words["key"], metadata={words["metadata key"]: 1})
    long = " ".join(f"word{number}" for number in range(300)) + f" {words['long text']} " + "tail " * 100
    third = desk.save(
        long,
        key=words["key"],
        title=words["title"],
        kind=words["kind"],
        metadata={"m": words["metadata value"]},
        session=words["session"],
        tags=("keep",),
    )
    desk.save(
        long,
        "bob",
        key=words["key"],
        title=words["merged title"],
        metadata={"g": words["merged metadata"]},
        tags=(words["merged tag"],),
    )
    # The session stays in the chain of the journal, and the kind is a word that others use: both are looked at apart.
    del words["session"], words["kind"]
    needles = {name: word.encode() for name, word in words.items()}
    needles |= {"NFD": nfd.encode(), "NFC": unicodedata.normalize("NFC", nfd).encode()}
    terms = {term for text in ("ZEPHYRINE", nfd, "xylographic") for term in analyse(text).terms}
    # A term is kept without the letters that it shares with the one before it.
    needles |= {f"term {term}": term[1:].encode() for term in terms if term.encode() not in needles.values()}
    needles |= {name: vector for each in (first, second, third) for name, vector in vectors_of(desk, each.id).items()}
    needles["hash"] = bytes(desk.sql("SELECT content_hash FROM items WHERE public_id = ?", third.id)[0][0])
    desk.store.compact(force=True)
    desk.forget(third.id, reason=words["reason"])
    desk.restore(third.id)
    desk.forget(third.id, reason=words["reason"])
    return Secret([first.id, second.id, third.id], needles)


def crowd(desk: Desk, number: int) -> list[str]:
    """Ids of notes that share words with each other."""
    chance = random.Random(7)  # noqa: S311 - repeatable
    words = [f"common{number}" for number in range(200)]
    return [desk.save(f"{' '.join(chance.choices(words, k=12))} n{n}", tags=("keep",)).id for n in range(number)]


def test_no_byte_of_a_purged_note_is_left_in_any_file(desk: Desk) -> None:
    crowd(desk, 60)
    secret = well_kept(desk)
    found = looked_for(desk.folder, secret.needles)
    missing = secret.needles.keys() - found.keys()
    # Composed letters are nowhere but in the index, where they are folded: nobody wrote them.
    assert missing == {"NFC"}
    for name, files in found.items():
        assert set(files) & STORE, name
        # Only the current version's vectors are in the index, whose files were made while it was live.
        assert (f"of {secret.ids[2]}" in name) == any(file.startswith(SEGMENT) for file in files), name
    done = purge(desk)
    assert (done.notes, done.versions, done.samples > 0, clean(done)) == (1, 4, True, True)
    assert looked_for(desk.folder, secret.needles) == {}
    assert desk.problems() == []


def test_what_stays_of_a_purged_version_is_id_namespace_and_times(desk: Desk) -> None:
    secret = well_kept(desk)
    purge(desk)
    columns = [column[1] for column in desk.sql("PRAGMA table_info(items)")]
    rows = [dict(zip(columns, row, strict=True)) for row in desk.sql("SELECT * FROM items ORDER BY id")]
    assert {row["public_id"] for row in rows} > set(secret.ids)
    for row in rows:
        kept = {name for name, value in row.items() if value not in {None, 0}}
        times = {"created_at", "updated_at", "effective_at", "forgotten_at", "purged_at"}
        assert kept - {"superseded_at"} == times | {"id", "public_id", "type", "namespace_id", "kind", "version"}
        assert (row["kind"], row["version"], row["effective_at"]) == ("purged", 1, row["created_at"])
    for place in places.PLACES:
        for table in place.tables:
            if table in {"items", "journal_payload", "calls"} or table.startswith("fulltext"):
                continue
            assert desk.sql(f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608 - a name of the schema
    payloads = desk.sql("SELECT content, before, after FROM journal_payload")
    assert set(payloads) == {(b"", None, None)}


def test_everything_else_is_still_there_and_found_with_the_same_scores(desk: Desk) -> None:
    others = crowd(desk, 2000)
    secret = well_kept(desk)
    questions = ["common1 common2", "common50 n7", "n1999", "wolframite zephyrine", "keep common9"]

    def answers() -> list[list[tuple[str, float]]]:
        return [
            [(hit.note.id, hit.score) for hit in desk.query(question, mode=mode).hits]
            for question in questions
            for mode in MODES
        ]

    before, tables = (
        answers(),
        {
            table: desk.sql(f"SELECT * FROM {table} WHERE item_id NOT IN (SELECT id FROM items WHERE forgotten_at > 0)")  # noqa: S608 - names from the schema
            for table in ("texts", "item_tags", "savers", "passages")
        },
    )
    statistics = desk.sql("SELECT * FROM term_stats"), desk.sql("SELECT * FROM namespace_stats")
    assert clean(purge(desk))
    assert answers() == before
    assert (desk.sql("SELECT * FROM term_stats"), desk.sql("SELECT * FROM namespace_stats")) == statistics
    live = "SELECT id FROM items WHERE purged_at IS NULL"
    kept = {table: desk.sql(f"SELECT * FROM {table} WHERE item_id IN ({live})") for table in tables}  # noqa: S608 - names from the schema
    superseded_twin = {row[0] for row in desk.sql("SELECT id FROM items WHERE purged_at > 0")}
    assert kept == {name: [row for row in rows if row[0] not in superseded_twin] for name, rows in tables.items()} | {
        "passages": [row for row in tables["passages"] if row[1] not in superseded_twin]
    }
    assert set(desk.found("keep", tags=("keep",), top_k=50)) <= set(others)
    assert len(desk.get(*others[:100]).notes) == 100
    assert desk.problems() == []
    assert not set(secret.ids) & {public_id for answer in answers() for public_id, _ in answer}


def test_the_words_of_deleted_rows_stay_in_full_text_segments_until_they_are_merged(desk: Desk) -> None:
    """What makes the merge necessary: without it, writing the file anew is not enough."""
    secret = desk.save("ZEPHYRINE").id
    crowd(desk, 30)
    desk.forget(secret)
    # The stem comes first; of what follows it only the ending is kept.
    needles = {"term": b"ephyrin"}
    store = desk.store.purging()
    store.erase(condemned(desk), desk.caller(), desk.clock.now(), soon())
    store.empty(places.FILE.name, soon())
    assert set(looked_for(desk.folder, needles)) == {"term"}
    store.empty(places.FULL_TEXT.name, soon())
    store.empty(places.FILE.name, soon())
    assert looked_for(desk.folder, needles) == {}


def test_copies_that_earlier_changes_left_in_the_file_go_too(desk: Desk) -> None:
    """What makes it necessary to write the file anew: some builds of SQLite leave what they delete where it was."""
    crowd(desk, 30)
    public_id = desk.save("the zephyrine plan").id
    desk.forget(public_id)
    with closing(sqlite3.connect(desk.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        for text in ("the zephyrine plan, in a longer version that takes another place", "the zephyrine plan"):
            connection.execute("UPDATE texts SET content = ? WHERE content LIKE '%zephyrine%'", (text,))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    needles = {"text": b"the zephyrine plan"}
    store = desk.store.purging()
    store.erase(condemned(desk), desk.caller(), desk.clock.now(), soon())
    store.empty(places.FULL_TEXT.name, soon())
    store.empty(places.LOG.name, soon())
    assert looked_for(desk.folder, needles) == {"text": ["agora.db"]}
    store.empty(places.FILE.name, soon())
    assert looked_for(desk.folder, needles) == {}


def test_every_table_of_the_schema_is_a_place_or_known_to_hold_nothing(desk: Desk) -> None:
    tables = {name for (name,) in desk.sql("SELECT name FROM sqlite_master WHERE type = 'table'")}
    registered = [table for place in places.PLACES for table in place.tables]
    assert len(registered) == len(set(registered))
    assert not set(registered) & places.WITHOUT_CONTENT.keys()
    optional = {"sqlite_stat1"}
    assert tables - optional == {*registered, *places.WITHOUT_CONTENT} - optional


def test_every_file_of_a_store_is_of_a_place_or_holds_locks_alone(desk: Desk) -> None:
    crowd(desk, 10)
    desk.store.compact(force=True)
    locks = {"agora.lock", "agora.db-shm", "index/compact.lock"}
    patterns = [pattern for place in places.PLACES for pattern in place.files]
    for name in files_below(desk.folder) - locks:
        assert any((desk.folder / name) in set(desk.folder.glob(pattern)) for pattern in patterns), name


LEFT = {
    "rows": "UPDATE items SET forget_reason = 'why' WHERE id = {row}",
    "texts": "INSERT INTO texts VALUES ({row}, NULL, 'left', '{{}}')",
    "savers": "INSERT INTO savers VALUES ({row}, 0, 1, 1, 's', 'agent', 1, 1, 1, '{{}}')",
    "tags": "INSERT INTO item_tags VALUES ({row}, 'left', 0)",
    "metadata": "INSERT INTO item_metadata VALUES ({row}, 'left', x'00')",
    "passages": "INSERT INTO passages (item_id, layout, n, start, stop) VALUES ({row}, 1, 0, 0, 1)",
    "vectors": "INSERT INTO vectors (passage_id, encoder_id, vector) VALUES (999, 1, x'00')",
    "full text": "INSERT INTO fulltext (rowid, scope, title, body, words) VALUES (999, 'n1', '', 'left', 1)",
    "statistics": "INSERT INTO term_stats VALUES (1, 'note', 'left', 0)",
    "reads": "INSERT INTO reads (session, agent, item_id, sequence, at) VALUES ('s', 'a', {row}, 1, 1)",
    "conversations": "INSERT INTO conversations VALUES (1, 'left', NULL, 1)",
    "summaries": "INSERT INTO summaries VALUES ({row}, 1, 1, 'left')",
    "kept results": "INSERT INTO kept_results VALUES ('r_1', 'p', 'b', 't', 1, 99, 4, CAST('left' AS BLOB))",
    "calls": "UPDATE calls SET nonce = CAST('left' AS BLOB)",
    "facts": "INSERT INTO facts (item_id, slot_id, value, multi, quoted, valid_from)"
    " VALUES ({row}, 1, 'left', 0, 0, 1)",
    "fact slots": "INSERT INTO fact_slots VALUES (9, 1, 'left', 'left', 'left', 'left')",
    "journal": "UPDATE journal_payload SET content = x'00' WHERE sequence = (SELECT max(sequence) FROM journal)",
}


@pytest.mark.parametrize("place", LEFT)
def test_a_row_that_is_left_is_told_of_by_its_place_and_goes_with_the_next_purge(desk: Desk, place: str) -> None:
    desk.forget(desk.save("text").id)
    call(desk)
    assert clean(purge(desk))
    assert desk.store.purging().remains(soon()) == {}
    (row,) = desk.sql("SELECT id FROM items")[0]
    desk.sql(LEFT[place].format(row=row))
    assert desk.store.purging().remains(soon()) == {place: 1}
    assert clean(purger(desk).purge(Condemned(()), desk.caller(), soon()))
    assert looked_for(desk.folder, {"left": b"left"}) == {}
    assert desk.problems() == []


def test_every_place_with_tables_is_looked_at(desk: Desk) -> None:
    assert {place.name for place in places.PLACES if place.tables} == LEFT.keys()
    assert desk.store.purging().remains(soon()) == {}


def test_a_file_that_still_holds_a_sample_is_told_of_unless_a_row_explains_it(desk: Desk) -> None:
    logs = desk.folder / "logs"
    logs.mkdir()
    text = "a sentence that is long enough to be known again"
    desk.forget(desk.save(text).id)
    (logs / "agora-1.log").write_text(f"somebody wrote: {text}", encoding="utf-8")
    done = purge(desk)
    assert [each.place for each in done.places if each.problem] == ["logs"]
    assert done.unfinished
    assert "logs/agora-1.log" in str(done.places[-1].problem)
    (logs / "agora-1.log").unlink()
    assert clean(purger(desk).purge(Condemned(()), desk.caller(), soon()))
    # The same text in a note that stays is no residue.
    desk.forget(desk.save(text).id)
    desk.save(f"{text}, and more")
    desk.save(text, namespace="q")
    assert clean(purge(desk))


def test_the_journal_stays_whole_and_tells_of_each_version_that_went(desk: Desk) -> None:
    secret = well_kept(desk)
    desk.save("another")
    before = desk.sql("SELECT sequence, hash FROM journal ORDER BY sequence")
    purge(desk)
    after = desk.sql("SELECT sequence, hash FROM journal ORDER BY sequence")
    assert after[: len(before)] == before
    with closing(sqlite3.connect(desk.path)) as connection:
        assert verified(connection).broken is None
    told = desk.sql(
        "SELECT j.subject, a.name FROM journal j JOIN agents a ON a.id = j.agent_id"
        " WHERE operation = 'purge' ORDER BY sequence"
    )
    assert {subject for subject, _ in told} > set(secret.ids)
    assert (len(told), {agent for _, agent in told}) == (4, {"root"})
    assert desk.note(desk.found("another")[0]).content == "another"


def test_a_forgotten_head_takes_all_older_versions_with_it(desk: Desk) -> None:
    first = desk.save("one", key="k")
    second = desk.save("two", key="k")
    desk.save("other", key="other")
    desk.forget(second.id)
    assert taken(desk, condemned(desk)) == [{first.id, second.id}]
    assert taken(desk, condemned(desk, second.id)) == [{first.id, second.id}]
    purge(desk)
    assert desk.get(first.id, second.id).purged == (first.id, second.id)
    assert desk.sql("SELECT count(*) FROM items WHERE key = 'k'") == [(0,)]
    again = desk.save("three", key="k")
    assert (again.status, again.version, again.supersedes) == ("created", 1, None)
    assert [note.content for note in desk.get(again.id).history[again.id]] == ["three"]
    assert desk.found("one two three", mode="lexical") == [again.id]
    assert desk.problems() == []


def test_a_forgotten_version_goes_alone_while_a_newer_one_lives(desk: Desk) -> None:
    ids = [desk.save(text, key="k").id for text in ("one", "two", "three")]
    desk.forget(ids[1])
    assert taken(desk, condemned(desk)) == [{ids[1]}]
    purge(desk)
    history = desk.get(ids[2]).history[ids[2]]
    assert [(note.content, note.version) for note in history] == [("one", 1), ("three", 3)]
    assert desk.get(ids[1]).purged == (ids[1],)
    assert desk.note(ids[2]).supersedes == ids[1]
    assert desk.problems() == []
    # With the last version that stays the key goes too, and what tells of the succession.
    desk.forget(ids[2])
    purge(desk)
    assert desk.sql("SELECT DISTINCT key, supersedes, superseded_by FROM items ORDER BY 3") == [
        (None, None, None),
        (None, None, 0),
    ]
    assert desk.problems() == []


def test_purging_the_current_version_never_revives_an_older_one(desk: Desk) -> None:
    old = desk.save("old value", key="k")
    new = desk.save("new value", key="k")
    desk.forget(old.id)
    purge(desk)
    desk.forget(new.id)
    purge(desk)
    assert desk.found("old new value") == []
    assert (desk.counts()["notes"]["live"], desk.counts()["notes"]["purged"]) == (0, 2)


def test_only_what_is_forgotten_is_purged(desk: Desk) -> None:
    live, gone, elsewhere = desk.save("live"), desk.save("gone"), desk.save("elsewhere", namespace="q")
    desk.forget(gone.id)
    desk.forget(elsewhere.id, namespace="q")
    with pytest.raises(Conflict, match=live.id) as refused:
        condemned(desk, gone.id, live.id)
    assert f"agora forget {live.id}" in refused.value.hint
    with pytest.raises(NoteNotFound, match=elsewhere.id):
        condemned(desk, gone.id, elsewhere.id)
    assert taken(desk, condemned(desk)) == [{gone.id}]
    assert taken(desk, condemned(desk, namespaces=("p", "q"))) == [{gone.id}, {elsewhere.id}]
    purge(desk)
    assert condemned(desk, gone.id) == Condemned((), gone=(gone.id,))
    assert desk.found("live") == [live.id]
    assert desk.get(elsewhere.id, namespace="q").forgotten == (elsewhere.id,)


def test_what_has_expired_is_purged_if_that_is_asked_for(desk: Desk) -> None:
    brief = desk.save("brief", lives=10)
    past = desk.save("also brief", lives=10, key="k")
    desk.save("now for ever", key="k")
    desk.clock.advance(seconds=20)
    # The same text again takes the place of what only the clock has ended.
    later = desk.save("brief")
    with pytest.raises(Conflict, match="expired") as refused:
        condemned(desk, brief.id)
    assert "--expired" in refused.value.hint
    assert condemned(desk).groups == ()
    assert taken(desk, condemned(desk, expired=True)) == [{brief.id}]
    other = desk.save("goes soon", lives=5)
    desk.clock.advance(seconds=20)
    assert taken(desk, condemned(desk, expired=True)) == [{brief.id}, {other.id}]
    assert clean(purge(desk, expired=True))
    assert looked_for(desk.folder, {"term": b"goe soon", "text": b"goes soon"}) == {}
    assert desk.get(brief.id, other.id, past.id).purged == (brief.id, other.id)
    assert desk.found("brief")[0] == later.id
    assert desk.problems() == []


def test_before_compares_when_it_was_forgotten(desk: Desk) -> None:
    first, second = desk.save("one"), desk.save("two")
    desk.forget(first.id)
    desk.clock.advance(days=40)
    desk.forget(second.id)
    limit = desk.clock.now() - timedelta(days=30)
    assert taken(desk, condemned(desk, before=limit)) == [{first.id}]
    assert taken(desk, condemned(desk, first.id, second.id, before=limit)) == [{first.id}]


def test_what_is_restored_between_the_look_and_the_deed_is_kept(desk: Desk) -> None:
    back, gone = desk.save("comes back"), desk.save("goes")
    desk.forget(back.id, gone.id)
    doomed = condemned(desk)
    desk.restore(back.id)
    done = purger(desk).purge(doomed, desk.caller(), soon())
    assert (done.notes, done.versions, done.kept) == (1, 1, 1)
    assert desk.found("comes back") == [back.id]


def test_a_version_saved_between_the_look_and_the_deed_keeps_its_history(desk: Desk) -> None:
    first, second = desk.save("one", key="k"), desk.save("two", key="k")
    desk.forget(second.id)
    doomed = condemned(desk)
    third = desk.save("three", key="k")
    done = purger(desk).purge(doomed, desk.caller(), soon())
    assert (done.notes, done.versions) == (1, 1)
    assert [note.id for note in desk.get(third.id).history[third.id]] == [first.id, third.id]
    assert desk.problems() == []


def test_a_purged_note_is_told_of_by_its_id_and_cannot_be_restored(desk: Desk) -> None:
    gone = desk.save("text", tags=("a",))
    desk.forget(gone.id)
    purge(desk)
    assert desk.get(gone.id).purged == (gone.id,)
    assert desk.get(gone.id, namespace="q", also=()).unknown == (gone.id,)
    assert desk.restore(gone.id).purged == (gone.id,)
    assert desk.forget(gone.id).already == (gone.id,)
    again = desk.save("text")
    assert (again.status, again.related) == ("created", ())
    assert desk.found("text") == [again.id]


def test_the_counts_tell_purged_notes_apart(desk: Desk) -> None:
    desk.save("one", key="k")
    desk.forget(desk.save("two", key="k").id)
    desk.forget(desk.save("three").id)
    desk.save("four", lives=1)
    desk.save("five")
    desk.clock.advance(seconds=5)
    purge(desk)
    counted = desk.counts()["notes"]
    assert counted == {"live": 1, "superseded": 0, "forgotten": 0, "expired": 1, "purged": 3, "rows": 5}


def test_notes_that_repeat_a_purged_one_are_named_and_stay(desk: Desk) -> None:
    text = "the deploy key of the staging cluster lives in the vault under infra"
    gone = desk.save(text)
    desk.found("deploy key")
    desk.store.settle_reads(soon())
    echo = desk.save(f"As I read: {text}.", "ann", session="s1", namespace="q")
    desk.notes.get([gone.id], desk.caller("bob", session="s2"), soon())
    desk.store.settle_reads(soon())
    repeated = desk.save(f"{text}, says ann", "bob", session="s2")
    spaced = desk.save(text.replace(" ", "  "), "cem", session="s3", namespace="q")
    desk.forget(gone.id)
    doomed = condemned(desk)
    assert set(doomed.repeated_by) == {repeated.id, spaced.id} | ({echo.id} if echo_of(desk, echo.id) else set())
    purge(desk)
    # That it was repeated stays known: an echo does not become a source of its own.
    assert echo_of(desk, repeated.id) == gone.id
    assert desk.problems() == []


def echo_of(desk: Desk, public_id: str) -> str | None:
    (given,) = desk.sql(
        "SELECT s.given FROM savers s JOIN items i ON i.id = s.item_id WHERE i.public_id = ?", public_id
    )[0]
    found: str | None = json.loads(given).get("echo_of")
    return found


def test_a_reader_of_an_older_state_makes_the_purge_say_that_it_is_not_clean(desk: Desk) -> None:
    crowd(desk, 20)
    secret = well_kept(desk)
    with old_reader(desk):
        done = purger(desk, wait=0.5).purge(condemned(desk), desk.caller(), soon())
        unclean = {each.place: each.problem for each in done.places if each.problem}
        assert unclean.keys() == {"database file", "write-ahead log"}
        assert all("purge` again" in str(problem) for problem in unclean.values())
        assert done.unfinished
        assert looked_for(desk.folder, secret.needles) != {}
        assert desk.problems() == []
        status = desk.notes.status(desk.caller(), soon())
        assert [problem["code"] for problem in status["problems"]] == ["purge_unfinished"]
    again = purger(desk)
    assert again.unfinished(soon()) is not None
    assert clean(again.purge(condemned(desk), desk.caller(), soon()))
    assert again.unfinished(soon()) is None
    assert looked_for(desk.folder, secret.needles) == {}
    assert desk.notes.status(desk.caller(), soon())["problems"] == []


def test_others_write_while_a_purge_waits_for_a_reader(make_desk: MakeDesk) -> None:
    desk, other = make_desk(), make_desk()
    desk.forget(desk.save("text").id)
    doomed = condemned(desk)
    waits: list[float] = []
    ended = threading.Event()

    def save() -> None:
        while not ended.wait(0.05):
            began = time.monotonic()
            other.save(f"while a purge waits {len(waits)}")
            waits.append(time.monotonic() - began)

    saving = threading.Thread(target=save)
    saving.start()
    with old_reader(desk):
        done = purger(desk, wait=3.0).purge(doomed, desk.caller(), soon())
    ended.set()
    saving.join(20)
    assert done.unfinished
    assert len(waits) > 5
    # A checkpoint that waits for as long as a connection may would make them wait for ten seconds.
    assert max(waits) < 2.5
    assert clean(purger(desk).purge(Condemned(()), desk.caller(), soon()))


def test_an_unfinished_purge_is_finished_by_whoever_looks_twice(make_desk: MakeDesk) -> None:
    desk, server = make_desk(), make_desk()
    secret = well_kept(desk)
    upkeep = purger(server)
    assert upkeep.finish_left() is None
    desk.store.purging().erase(condemned(desk), desk.caller(), desk.clock.now(), soon())
    desk.close()
    # At the first look, whoever purges may still be at it.
    assert upkeep.finish_left() is None
    assert looked_for(desk.folder, secret.needles) != {}
    assert upkeep.finish_left() == {"unclean": []}
    assert upkeep.finish_left() is None
    assert looked_for(desk.folder, secret.needles) == {}


def test_a_mark_stays_if_another_purge_has_begun_since(desk: Desk) -> None:
    desk.forget(desk.save("one").id, desk.save("two").id)
    store = desk.store.purging()
    store.erase(Condemned(condemned(desk).groups[:1]), desk.caller(), desk.clock.now(), soon())
    mark = store.unfinished(soon())
    assert mark is not None
    store.erase(condemned(desk), desk.caller(), desk.clock.now(), soon())
    store.finished(mark, soon())
    assert store.unfinished(soon()) not in {None, mark}


def test_a_place_that_cannot_be_emptied_is_told_of_and_the_others_are_emptied(desk: Desk) -> None:
    secret = well_kept(desk)

    def refuse() -> None:
        raise Conflict("the cache is on fire", hint="Put it out.")

    done = purger(desk, Outside(places.CACHE, refuse)).purge(condemned(desk), desk.caller(), soon())
    assert {each.place: each.problem for each in done.places if each.problem} == {
        "cache": "the cache is on fire. Put it out."
    }
    assert looked_for(desk.folder, secret.needles) == {}
    assert purger(desk).unfinished(soon()) is not None


def test_many_notes_go_in_batches_of_whole_notes(desk: Desk) -> None:
    ids = []
    for number in range(130):
        desk.save(f"first of {number}", key=f"k{number}")
        ids.append(desk.save(f"second of {number}", key=f"k{number}").id)
    stays = desk.save("stays").id
    desk.forget(*ids)
    done = purge(desk)
    assert (done.notes, done.versions, clean(done)) == (130, 260, True)
    assert done.bytes_after < done.bytes_before
    assert desk.found("stays") == [stays]
    assert desk.problems() == []


def test_a_read_that_is_logged_late_leaves_nothing_of_a_purged_note(desk: Desk) -> None:
    gone = desk.save("text")
    desk.get(gone.id)
    desk.forget(gone.id)
    store = desk.store.purging()
    desk.notes.get([gone.id], desk.caller("bob"), soon())
    assert clean(purge(desk))
    desk.store.settle_reads(soon())
    assert store.remains(soon()) == {}


def test_a_second_process_answers_without_the_note_at_once(make_desk: MakeDesk) -> None:
    one, other = make_desk(), make_desk()
    ids = crowd(one, 50)
    gone = one.save("the zephyrine plan").id
    assert other.found("zephyrine")[0] == gone
    one.forget(gone)
    assert clean(purge(one))
    assert gone not in other.found("zephyrine")
    assert set(other.found("common1", top_k=50)) <= set(ids)
    assert other.save("the zephyrine plan").status == "created"
    assert one.problems() == []


def test_a_folder_can_be_purged_that_lies_elsewhere(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = make_desk(tmp_path / "an other folder")
    secret = well_kept(desk)
    assert clean(purge(desk))
    assert looked_for(tmp_path, secret.needles) == {}


def test_the_doctor_says_that_a_purge_is_unfinished_and_calls_it_no_damage(desk: Desk) -> None:
    desk.forget(desk.save("text").id)
    assert remarks(desk.path) == []
    desk.store.purging().erase(condemned(desk), desk.caller(), desk.clock.now(), soon())
    assert ["agora purge" in each for each in remarks(desk.path)] == [True]
    assert desk.problems() == []
    assert clean(purger(desk).purge(Condemned(()), desk.caller(), soon()))
    assert remarks(desk.path) == []


def test_rows_that_were_chosen_before_a_backup_was_put_back_are_not_taken_for_others(
    desk: Desk, tmp_path: Path
) -> None:
    desk.save("kept by the backup")
    copied(desk.path, tmp_path / "backup.db")
    unwanted = desk.save("not wanted any more").id
    desk.forget(unwanted)
    doomed = condemned(desk)
    copied(tmp_path / "backup.db", desk.path)
    # It gets the same row number, and may be wanted back.
    other = desk.save("hidden for now").id
    desk.forget(other)
    assert taken(desk, doomed) == [{other}]
    with pytest.raises(Conflict, match="a backup was put") as caught:
        purger(desk).purge(doomed, desk.caller("root"), soon())
    assert "agora purge" in caught.value.hint
    assert desk.restore(other).restored == (other,)
    assert desk.problems() == []


def test_a_note_that_another_process_purged_meanwhile_is_no_error(desk: Desk, make_desk: MakeDesk) -> None:
    gone, more = desk.save("zephyrine words of ours").id, desk.save("more words").id
    desk.forget(gone, more)
    doomed = condemned(desk)
    assert clean(purge(make_desk(), gone))
    done = purger(desk).purge(doomed, desk.caller("root"), soon())
    assert clean(done)
    assert (done.notes, done.kept) == (1, 1)
    assert desk.get(gone).purged == (gone,)
    assert looked_for(desk.folder, {"text": b"zephyrine"}) == {}
