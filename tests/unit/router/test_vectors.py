from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest

from agora.errors import Cancelled
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector
from agora.router.texts import questions
from agora.router.vectors import TextVectors
from agora.testing import FakeEncoder


class Kept:
    """A keeper in memory; implements `agora.ports.tool_vectors.ToolVectors`."""

    def __init__(self) -> None:
        self.held: dict[bytes, Vector] = {}

    def get(self, hashes: Collection[bytes]) -> dict[bytes, Vector]:
        return {each: self.held[each] for each in hashes if each in self.held}

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        self.held |= vectors


class Counting(FakeEncoder):
    """Counts what it encodes and takes the call back after `most` texts."""

    def __init__(self, most: int = 10**9) -> None:
        super().__init__()
        self.encoded: list[str] = []
        self._most = most

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        self.encoded += texts
        if len(self.encoded) > self._most:
            deadline.cancel()
        return super().encode_all(texts, deadline)


def test_rows_stand_in_the_order_of_the_texts() -> None:
    encoder = Counting()
    texts = ["one", "two", "one", "", "\ud800"]
    found = TextVectors(encoder, Kept()).text_vectors(texts, Deadline(20))

    assert np.array_equal(found, np.stack([encoder.encode(text, Deadline(20)) for text in texts]))
    assert sorted(encoder.encoded) == sorted(set(texts))


def test_a_text_is_encoded_once() -> None:
    encoder, kept = Counting(), Kept()
    TextVectors(encoder, kept).text_vectors(["one", "two"], Deadline(20))
    TextVectors(encoder, kept).text_vectors(["two", "three"], Deadline(20))

    assert encoder.encoded == ["one", "two", "three"]


def test_what_was_encoded_before_the_end_is_kept() -> None:
    encoder, kept = Counting(most=100), Kept()
    with pytest.raises(Cancelled):
        TextVectors(encoder, kept).text_vectors([f"text {number}" for number in range(500)], Deadline(20))

    assert len(kept.held) == 64


def test_no_texts_have_no_rows() -> None:
    assert len(TextVectors(Counting(), Kept()).text_vectors([], Deadline(20))) == 0


def test_a_request_has_a_vector_for_each_of_its_questions() -> None:
    intent = "Read the text file. Then open a new issue."

    found = TextVectors(Counting(), Kept()).question_vectors(intent, Deadline(20))

    assert found.shape == (len(questions(intent)), 64)
