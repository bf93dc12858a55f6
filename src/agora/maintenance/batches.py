from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agora.errors import EmbeddingError
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.ports.encoder import Encoder, Vector
from agora.ports.reembedding import Cut, Text
from agora.text.passages import placed, with_title


class UnlikeCut(Exception):
    """The encoder does not cut a text as it is cut for queries: its vectors need passages of their own."""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A text as the encoder cuts it, before it is encoded; no pieces if its vectors are there already."""

    text: Text
    spans: tuple[Span, ...]
    pieces: tuple[str, ...]


class Batches:
    """Texts into passages and vectors, so many passages at a time."""

    def __init__(self, encoder: Encoder, size: int, seconds: float) -> None:
        """`seconds`: what `size` passages may take."""
        self._encoder = encoder
        self._size = size
        self._seconds = seconds
        self._spent = 0.0
        self.encoded = 0

    @property
    def rate(self) -> float:
        """Passages encoded in a second so far; 0 before the first."""
        return self.encoded / self._spent if self._spent else 0.0

    def of(self, texts: Sequence[Text], deadline: Deadline) -> Iterator[list[Cut]]:
        """The texts in groups of about a batch, each encoded when it is asked for.

        Where the encoder refuses a group, its texts come one by one, so that the error names the one that is refused.

        Raises: UnlikeCut; EmbeddingError, EncoderUnavailable, WarmingUp.
        """
        for group in self._gathered(texts, deadline):
            try:
                cuts = self._encoded(group, deadline)
            except EmbeddingError as error:
                # Of its subclasses each is about the model or the server, not about a text.
                if type(error) is not EmbeddingError:
                    raise
                yield from ([self._alone(each, deadline)] for each in group)
            else:
                yield cuts

    def all_of(self, texts: Sequence[Text], deadline: Deadline) -> list[Cut]:
        """All of the texts at once.

        Raises: as `of`, and DeadlineExceeded.
        """
        return self._encoded([self._pieces(text, deadline) for text in texts], deadline)

    def _gathered(self, texts: Sequence[Text], deadline: Deadline) -> Iterator[list[_Pieces]]:
        group: list[_Pieces] = []
        passages = 0
        for text in texts:
            group.append(self._pieces(text, deadline.within(self._seconds)))
            passages += len(group[-1].spans)
            if passages >= self._size:
                yield group
                group, passages = [], 0
        if group:
            yield group

    def _pieces(self, text: Text, deadline: Deadline) -> _Pieces:
        if text.made:
            return _Pieces(text, text.made, ())
        found = self._encoder.split(with_title(text.title, text.content), deadline)
        spans, pieces = placed(text.title, text.content, found)
        if text.shared is not None and spans != text.shared:
            raise UnlikeCut
        return _Pieces(text, spans, tuple(pieces))

    def _encoded(self, group: Sequence[_Pieces], deadline: Deadline) -> list[Cut]:
        pieces = [piece for each in group for piece in each.pieces]
        vectors: list[Vector] = []
        for start in range(0, len(pieces), self._size):
            part = pieces[start : start + self._size]
            began = time.monotonic()
            # A deadline for each: a long text takes as long as it takes, a server that hangs is found out.
            vectors += self._encoder.encode_all(part, deadline.within(self._seconds))
            self._spent += time.monotonic() - began
            self.encoded += len(part)
        made = iter(vectors)
        return [
            Cut(each.text, each.spans, tuple(next(made) for _ in each.pieces) if each.pieces else None)
            for each in group
        ]

    def _alone(self, each: _Pieces, deadline: Deadline) -> Cut:
        try:
            return self._encoded([each], deadline)[0]
        except EmbeddingError as error:
            if type(error) is not EmbeddingError:
                raise
            hint = error.hint or "If this model cannot read the note, forget and purge it."
            raise EmbeddingError(f"note {each.text.id}: {error.message}", hint=hint) from error
