from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agora.memory.duplicates import collapse
from agora.model.query import Hit

if TYPE_CHECKING:
    from tests.conftest import Desk

SENTENCE = "the payment service retries every failed call three times before it gives up on the queue"


def test_near_copies_are_folded_into_the_best_and_stay_visible(desk: Desk) -> None:
    best = desk.save(SENTENCE).id
    copies = [desk.save(SENTENCE + end).id for end in (".", " !", "\n")]
    other = desk.save("the queue of the payment service is drained every night").id
    hits = desk.query(SENTENCE).hits
    assert [hit.note.id for hit in hits] == [best, other]
    assert set(hits[0].similar) == set(copies)


def test_folded_copies_make_room_for_others_however_many_they_are(desk: Desk) -> None:
    for end in itertools.product(" .!", repeat=4):
        desk.save(SENTENCE + "".join(end))
    other = desk.save("the payment service fails every call to the queue").id
    answer = desk.query(SENTENCE, top_k=2)
    assert [hit.note.id for hit in answer.hits][1:] == [other]
    assert len(answer.hits[0].similar) == 80
    assert answer.omitted == 0


def test_texts_that_differ_in_a_number_an_id_or_a_negation_are_kept_apart(desk: Desk) -> None:
    texts = [
        "ticket OPS-00001 is about the payment service and its queue",
        "ticket OPS-00002 is about the payment service and its queue",
        "ticket OPS-00002 is not about the payment service and its queue",
    ]
    ids = {desk.save(text).id for text in texts}
    assert set(desk.found(texts[0])) == ids


def test_notes_with_different_keys_or_titles_are_kept_apart(desk: Desk) -> None:
    keyed = {desk.save(SENTENCE, key=key).id for key in ("one", "two")}
    titled = {desk.save(SENTENCE + end, title=title).id for end, title in ((".", "production"), ("!", "staging"))}
    hits = desk.query(SENTENCE).hits
    for hit in hits:
        together = {hit.note.id, *hit.similar}
        assert not keyed <= together
        # Not even when both are like a third one that has no title.
        assert not titled <= together


def test_no_more_hits_are_read_than_are_needed(desk: Desk) -> None:
    for number in range(10):
        desk.save(f"note number {number} about the queue")
    hits = desk.query("queue").hits
    read: list[str] = []

    def reading() -> Iterator[Hit]:
        for hit in hits:
            read.append(hit.note.id)
            yield hit

    assert len(collapse(reading(), 3)) == 3
    assert len(read) == 4


def test_nothing_collapses_to_nothing() -> None:
    assert collapse([], 5) == []
