from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from agora.errors import DeadlineExceeded, EmbeddingError
from agora.model.deadline import Deadline
from agora.model.message import Message

if TYPE_CHECKING:
    from agora.ports.encoder import Encoder, Vector
    from agora.ports.log import Log

_VECTORS = 4_000
_AT_ONCE = 64
"""Vectors of messages that were kept without: remembered at most, and made for one question at most."""

_SHARE = 0.5
"""Of the time that a call has left: a slow model must not keep what words find."""


class LateVectors:
    """Vectors of messages that the store has none of, by encoder and id. Thread-safe; the longest unused go first."""

    def __init__(self, encoder: Encoder, log: Log, seconds: float) -> None:
        """`seconds`: that one of them may take."""
        self._encoder = encoder
        self._log = log
        self._seconds = seconds
        self._known: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = Lock()

    def of(self, messages: Sequence[Message], vectors: Mapping[int, Vector], deadline: Deadline) -> dict[int, Vector]:
        """Those of `messages` that have none in `vectors`, by row: the newest of them made now, and remembered.

        As many as there is time for.

        Raises: DeadlineExceeded, Cancelled of the call's own deadline.
        """
        profile = self._encoder.fingerprint.digest()
        found: dict[int, Vector] = {}
        waiting = [message for message in messages if message.row not in vectors]
        made = 0
        limit = deadline.within(_SHARE * deadline.remaining())
        try:
            for message in reversed(waiting):
                known = self._get(profile, message.id)
                if known is None:
                    if made >= _AT_ONCE:
                        continue
                    made += 1
                    # Its beginning: what the model reads at once.
                    known = self._encoder.encode(message.content, limit.within(self._seconds))
                    self._put(profile, message.id, known)
                found[message.row] = known
        except (EmbeddingError, DeadlineExceeded) as error:
            deadline.check()
            self._log.warning("messages stay without vectors", code=error.code)
        return found

    def _get(self, profile: str, id_: str) -> Vector | None:
        with self._lock:
            found = self._known.get((profile, id_))
            if found is not None:
                self._known.move_to_end((profile, id_))
            return found

    def _put(self, profile: str, id_: str, vector: Vector) -> None:
        with self._lock:
            self._known[profile, id_] = vector
            if len(self._known) > _VECTORS:
                self._known.popitem(last=False)
