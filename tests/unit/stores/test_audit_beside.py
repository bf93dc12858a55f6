"""A revert and what else goes on with a store: a move to another encoder, purges, compactions, writers."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import PATIENCE
from tests.unit.stores.moving import BOTH, LONG, MODES, SHORT, Counted, move, soon
from tests.unit.stores.test_audit import live, planned, reverted, savers, sound

from agora.errors import StoreVersion
from agora.model.audit import Wanted, Writer
from agora.model.deadline import Deadline
from agora.model.purge import Unwanted
from agora.model.selection import Selection
from agora.stores.sqlite.audit import entries, verify
from agora.stores.sqlite.audit_history import MOVING

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk


def harmed(desk: Desk) -> dict[str, str]:
    """Notes of ann and harm that mal did, of every kind; ids by a word of each."""
    ids = {
        "first": desk.save("first port is goodvalue", key="port").id,
        "long": desk.save(LONG, key="long", title="A Tallheading").id,
        "shared": desk.save("shared words of both").id,
        "titled": desk.save("titled words of both", "mal", title="Evilheading").id,
        "hidden": desk.save("hidden by mal").id,
    }
    desk.save("titled words of both")
    desk.save("shared words of both", "mal", tags=("evil",), metadata={"evil": True})
    ids["poison"] = desk.save("poison port is badvalue", "mal", key="port").id
    desk.save("poison instead of a long text", "mal", key="long")
    ids["junk"] = desk.save("junkwords " * 30, "mal").id
    desk.notes.forget(Selection(("p",), (ids["hidden"],)), desk.caller("mal"), Deadline(PATIENCE), dry_run=False)
    return ids


def healed(desk: Desk, ids: dict[str, str]) -> None:
    """Whether everything is as it was without mal, in every way of asking."""
    assert [text for _, _, text in live(desk)] == [
        *("hidden by mal", "shared words of both", "titled words of both", LONG, "first port is goodvalue"),
    ]
    for mode in MODES:
        found = {hit.note.content for hit in desk.query("port words long zebra crossing hidden", mode=mode).hits}
        assert found == {text for _, _, text in live(desk)}
    assert desk.found("evilheading junkwords badvalue poison", mode="lexical") == []
    assert desk.found("tallheading", mode="lexical") == desk.found("zebra", mode="lexical") != []
    for name in ("shared", "titled"):
        assert savers(desk, ids[name]) == [("ann", "s1")]
    sound(desk)
    assert reverted(desk, agent="mal").done == ()


@BOTH
def test_a_store_that_moved_to_another_encoder_is_reverted_with_the_vectors_of_that_one(
    make_desk: MakeDesk, kind: dict[str, Any]
) -> None:
    old = make_desk()
    ids = harmed(old)
    moved = make_desk(encoder=Counted(**kind))
    move(moved)
    reverted(moved, agent="mal")
    healed(moved, ids)


@BOTH
def test_a_revert_while_a_store_moves_leaves_titles_alone_until_it_has_moved(
    make_desk: MakeDesk, kind: dict[str, Any]
) -> None:
    old = make_desk()
    ids = harmed(old)
    moved = make_desk(encoder=Counted(**kind))
    steps: Counter[str] = Counter()

    def step(name: str) -> None:
        steps[name] += 1
        if (name, steps[name]) == ("keep", 2):
            assert [(each.id, each.reason) for each in planned(old, agent="mal").left] == [(ids["titled"], MOVING)]
            done = reverted(old, agent="mal")
            assert [each.id for each in done.left] == [ids["titled"]]
            assert Counter(each.undoing for each in done.done) == {
                "withdraw": 1,
                "forget": 1,
                "take back": 2,
                "restore": 1,
            }

    move(moved, step)
    assert steps["keep"] > 2
    assert moved.problems() == []
    assert [step.undoing for step in reverted(moved, agent="mal").done] == ["withdraw"]
    healed(moved, ids)


def test_a_move_begun_after_a_revert_or_before_its_batches_changes_nothing_of_what_comes_of_it(
    make_desk: MakeDesk,
) -> None:
    old = make_desk()
    ids = harmed(old)
    reverted(old, agent="mal")
    healed(old, ids)
    moved = make_desk(encoder=Counted(**SHORT))
    move(moved)
    healed(moved, ids)


def test_a_store_whose_words_are_of_a_later_release_is_not_reverted_by_this_one(desk: Desk) -> None:
    harmed(desk)
    desk.sql("UPDATE meta SET value = '99' WHERE key = 'analysis'")
    before = desk.sql("SELECT max(sequence) FROM journal")
    with pytest.raises(StoreVersion, match="built by a newer release"):
        reverted(desk, agent="mal")
    assert desk.sql("SELECT max(sequence) FROM journal") == before


def purged(desk: Desk) -> int:
    """How many notes a purge of everything forgotten took."""
    purging = desk.store.purging()
    condemned = purging.condemn(Unwanted(("p",)), desk.clock.now(), soon())
    return purging.erase(condemned, desk.caller("root"), desk.clock.now(), soon())[0]


def test_what_was_reverted_can_be_purged_and_the_record_stays_whole(desk: Desk) -> None:
    ids = harmed(desk)
    kept = verify(desk.path).head
    reverted(desk, agent="mal")
    assert purged(desk) > 0
    assert verify(desk.path, kept).broken is None
    healed(desk, ids)
    listed = entries(desk.path, Wanted(Writer(agent="mal"))).rows
    assert {each.id: each.purged for each in listed}[ids["junk"]]
    assert not {each.id: each.purged for each in listed}[ids["shared"]]
    # What was purged cannot come back: nothing is found to undo.
    undone = reverted(desk, session="s-eve")
    assert {each.undoing for each in undone.done} <= {"give back", "forget"}
    sound(desk)


def test_what_is_purged_before_a_revert_is_passed_over(desk: Desk) -> None:
    ids = harmed(desk)
    desk.forget(ids["junk"])
    desk.forget(ids["poison"])
    purged(desk)
    done = reverted(desk, agent="mal")
    assert not {ids["junk"], ids["poison"]} & {each.id for each in done.done}
    assert "first port is goodvalue" not in [text for _, _, text in live(desk)]
    sound(desk)


def test_an_index_in_files_follows_a_revert_and_is_compacted_after_it(make_desk: MakeDesk) -> None:
    desk, server = make_desk(), make_desk()
    ids = harmed(desk)
    desk.store.compact(force=True)
    assert server.found("badvalue", mode="semantic")
    reverted(desk, agent="mal")
    healed(server, ids)
    desk.store.compact(force=True)
    healed(desk, ids)
    healed(server, ids)


def test_writers_go_on_beside_a_revert_and_nothing_of_theirs_is_lost(make_desk: MakeDesk) -> None:
    desk, ann, mal = make_desk(), make_desk(), make_desk()
    for number in range(40):
        ann.save(f"value {number}", key=f"k{number}")
        mal.save(f"poison {number}", "mal", key=f"k{number}")
    stop = threading.Event()
    failures: list[BaseException] = []
    written: dict[str, list[str]] = {"ann": [], "mal": []}

    def write(who: Desk, agent: str) -> None:
        try:
            for number in range(10_000):
                if stop.is_set():
                    return
                if number % 3 == 0:
                    # Keys that the revert is about to take back.
                    text = f"later of {agent} {number}"
                    who.save(text, agent, key=f"k{39 - number // 3 % 40}")
                else:
                    text = f"free of {agent} {number}"
                    who.save(text, agent)
                    who.save(f"shared {number}", agent)
                written[agent].append(text)
        except BaseException as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    threads = [threading.Thread(target=write, args=pair) for pair in ((ann, "ann"), (mal, "mal"))]
    for each in threads:
        each.start()
    for _ in range(3):
        reverted(desk, 5, agent="mal")
    stop.set()
    for each in threads:
        each.join(PATIENCE)
    assert failures == []
    assert all(len(texts) > 3 for texts in written.values())
    sound(desk)
    # The last run, with nobody beside it, ends it.
    reverted(desk, agent="mal")
    assert reverted(desk, agent="mal").done == ()
    now = {text for _, _, text in live(desk)}
    assert not {text for text in now if "poison" in text or "of mal" in text}
    assert {text for text in written["ann"] if text.startswith("free")} <= now
    agents = desk.sql(
        "SELECT DISTINCT a.name FROM savers s JOIN agents a ON a.id = s.agent_id JOIN items i ON i.id = s.item_id"
        " WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
    )
    assert agents == [("ann",)]
    sound(desk)
