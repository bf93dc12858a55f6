from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agora.errors import EmbeddingMismatch
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.ports.encoder import Vector
from agora.ports.records import Embedded
from agora.testing import FakeEncoder

if TYPE_CHECKING:
    from tests.conftest import MakeDesk


@pytest.fixture
def laid() -> bool:
    """The store makes its own files: how it does so is tested here."""
    return False


class Unused(FakeEncoder):
    """Fails the test when a text reaches it."""

    def encode(self, text: str, deadline: Deadline) -> Vector:
        raise AssertionError((text, deadline))


@pytest.mark.parametrize("other", [Unused(32), Unused(name="another"), Unused(piece=99)])
def test_another_profile_saves_nothing_and_finds_words_alone(make_desk: MakeDesk, other: FakeEncoder) -> None:
    first = make_desk()
    kept = first.save("the cache is cold").id
    second = make_desk(encoder=other)
    assert second.store.mismatch is not None
    before = first.sql("SELECT max(sequence) FROM journal")
    with pytest.raises(EmbeddingMismatch) as caught:
        second.save("a new text")
    assert "agora reembed" in caught.value.hint
    # A duplicate needs no vector, but a store that cannot be searched must not be filled either.
    with pytest.raises(EmbeddingMismatch):
        second.save("the cache is cold", "bob")
    # The store itself refuses it too, inside the transaction: the file may be another one since it was opened.
    with pytest.raises(EmbeddingMismatch):
        second.store.save(second.draft("the cache is cold"), second.caller(), None, second.clock.now(), Deadline(5))
    assert first.sql("SELECT max(sequence) FROM journal") == before
    assert second.found("cache", mode="lexical") == [kept]
    assert second.get(kept).notes[0].content == "the cache is cold"
    second.forget(kept)
    assert second.restore(kept).restored == (kept,)
    status = second.notes.status(second.caller(), Deadline(5))
    assert [problem["code"] for problem in status["problems"]] == ["embedding_mismatch"]
    assert first.store.mismatch is None


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_another_profile_asks_by_meaning_in_vain(make_desk: MakeDesk, mode: str) -> None:
    make_desk().save("the cache is cold")
    second = make_desk(encoder=FakeEncoder(32))
    with pytest.raises(EmbeddingMismatch):
        second.query("the cache", mode=mode)  # type: ignore[arg-type]


def test_vectors_of_another_encoder_are_refused(make_desk: MakeDesk) -> None:
    desk = make_desk()
    foreign = FakeEncoder(64, name="another")
    text = "words"
    embedded = Embedded(foreign.fingerprint, (Span(0, 5),), (foreign.encode(text, Deadline(5)),))
    with pytest.raises(EmbeddingMismatch):
        desk.store.save(desk.draft(text), desk.caller(), embedded, desk.clock.now(), Deadline(5))
    assert desk.sql("SELECT count(*) FROM journal") == [(0,)]


def test_the_first_opener_of_a_folder_fixes_the_profile(make_desk: MakeDesk) -> None:
    first, second = make_desk(), make_desk(encoder=FakeEncoder(32))
    assert first.store.mismatch is None
    assert second.store.mismatch is not None
    assert first.sql("SELECT name, dimension, state FROM encoders") == [("fake", 64, "active")]
