from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agora.errors import NoteNotFound, WarmingUp
from agora.memory.notes import Notes
from agora.model.deadline import Deadline
from agora.model.query import Mode
from agora.ports.encoder import Vector
from agora.testing import FakeEncoder, SilentLog

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

MODES: tuple[Mode, ...] = ("hybrid", "semantic", "lexical")


@pytest.mark.parametrize("mode", MODES)
def test_hits_come_best_first_with_ties_by_age(desk: Desk, mode: Mode) -> None:
    ids = [desk.save(f"queue number{number}", title=None).id for number in range(6)]
    best = desk.save("queue of payments").id
    found = desk.query("queue of payments", mode=mode).hits
    assert found[0].note.id == best
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    if mode == "lexical":
        assert [hit.note.id for hit in found[1:]] == ids


@pytest.mark.parametrize("mode", MODES)
def test_a_score_floor_leaves_out_what_scores_less_and_counts_it_nowhere(desk: Desk, mode: Mode) -> None:
    for number in range(5):
        desk.save("payments queue " + f"filler{number} " * number)
    every = desk.query("payments queue", mode=mode).hits
    floor = every[2].score
    some = desk.query("payments queue", mode=mode, min_score=floor)
    assert [hit.note.id for hit in some.hits] == [hit.note.id for hit in every if hit.score >= floor]
    assert some.omitted == 0
    assert desk.query("payments queue", mode=mode, min_score=1.0).hits == ()


def test_what_top_k_and_the_budget_cut_is_counted_as_omitted(desk: Desk) -> None:
    for number in range(10):
        desk.save(f"queue number{number} " + "and many other words " * 30)
    assert desk.query("queue", top_k=3).omitted == 7
    narrow = desk.query("queue", top_k=10, max_tokens=400)
    assert 0 < len(narrow.hits) < 10
    assert narrow.omitted == 10 - len(narrow.hits)


@pytest.mark.parametrize("mode", MODES)
def test_the_end_of_a_long_note_is_found_and_shown(make_desk: MakeDesk, mode: Mode) -> None:
    desk = make_desk(encoder=FakeEncoder(256, piece=60))
    kept = desk.save("nothing of interest stands in here. " * 600 + "The zebra crosses at noon.").id
    desk.save("another note about something else")
    (hit, *_) = desk.query("zebra noon", mode=mode, max_tokens=500).hits
    assert hit.note.id == kept
    assert hit.cut
    assert "zebra crosses" in hit.content


def test_a_title_is_found_and_does_not_shift_the_passages(desk: Desk) -> None:
    text = "".join(f"sentence number {number} stands here. " for number in range(100))
    kept = desk.save(text, title="unmistakable headline").id
    assert desk.found("unmistakable", mode="lexical") == [kept]
    with desk.store.read(Deadline(5)) as reading:
        row, note = reading.by_id([kept], ["p"])[kept]
        spans = [reading.span(row, number) for number in range(12)]
    assert spans[0].start == 0
    assert max(span.stop for span in spans) == len(text)
    assert all(0 <= span.start <= span.stop <= len(note.content) for span in spans)


@pytest.mark.parametrize("text", ["?!", "   ", "…", "()", "\u200b"])
@pytest.mark.parametrize("mode", MODES)
def test_a_question_without_words_is_answered_without_an_error(desk: Desk, mode: Mode, text: str) -> None:
    kept = desk.save("some note").id
    found = desk.found(text, mode=mode)
    assert found == ([] if mode == "lexical" else [kept])


@pytest.mark.parametrize(
    "text",
    ['"foo AND (bar*', "NEAR(a b)", "scope : n1", "a OR b NOT c", "^x", "-x", "{title} : x", "x*", "'; DROP", "+"],
)
def test_words_that_are_syntax_elsewhere_are_words_here(desk: Desk, text: str) -> None:
    kept = desk.save(f"about {text} in a note").id
    desk.save("something else", namespace="q")
    assert desk.found(f"about {text}", mode="lexical") == [kept]


def test_get_keeps_the_order_and_says_each_id_once(desk: Desk) -> None:
    one, two = desk.save("one").id, desk.save("two").id
    got = desk.get(two, "n_x", one, two, "n_x")
    assert [note.id for note in got.notes] == [two, one]
    assert got.unknown == ("n_x",)
    assert got.history == {}


def test_get_takes_more_ids_than_one_statement(desk: Desk) -> None:
    ids = [desk.save(f"note {number}").id for number in range(420)]
    assert [note.id for note in desk.get(*ids).notes] == ids


def test_a_restore_of_unknown_ids_alone_is_an_error_and_writes_nothing(desk: Desk) -> None:
    with pytest.raises(NoteNotFound) as caught:
        desk.restore("n_x", "n_y")
    assert "n_x, n_y" in str(caught.value)
    assert desk.sql("SELECT count(*) FROM journal") == [(0,)]


class Cold(FakeEncoder):
    def encode(self, text: str, deadline: Deadline) -> Vector:
        raise WarmingUp(f"{text} {deadline.seconds}")


def test_without_its_model_a_save_writes_nothing_and_words_are_still_found(desk: Desk) -> None:
    kept = desk.save("known words").id
    cold = Notes(desk.store, Cold(), desk.clock, SilentLog(), model_seconds=1)
    before = desk.sql("SELECT max(sequence) FROM journal")
    with pytest.raises(WarmingUp):
        cold.save(desk.draft("new words"), desk.caller(), Deadline(5))
    assert desk.sql("SELECT max(sequence) FROM journal") == before
    # The same text again needs no model.
    assert cold.save(desk.draft("known words"), desk.caller("bob"), Deadline(5)).id == kept


def test_the_same_question_gets_the_same_answer_in_every_process(make_desk: MakeDesk) -> None:
    first = make_desk()
    for number in range(40):
        first.save(f"queue {number % 7} of payments {number % 3}", "ann" if number % 2 else "bob")
    for public_id in first.found("queue", mode="lexical")[::5]:
        first.forget(public_id)
    second = make_desk()
    for mode in MODES:
        one, other = first.query("payments queue 3", mode=mode), second.query("payments queue 3", mode=mode)
        assert [(hit.note.id, hit.score) for hit in one.hits] == [(hit.note.id, hit.score) for hit in other.hits]
