from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from agora.config.served import checked_key
from agora.embedding.folder import joined
from agora.embedding.gathering import Gathering
from agora.embedding.loading import readable
from agora.embedding.remote_address import read_address
from agora.embedding.remote_answer import vectors_of
from agora.embedding.remote_http import Endpoint
from agora.embedding.remote_pieces import pieces
from agora.embedding.splitting import split
from agora.errors import AgoraError, EmbeddingError, EncoderUnavailable
from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint, Span
from agora.ports.encoder import EncoderState, Vector
from agora.ports.log import Log

MAX_TOKENS = 256
"""Tokens of a passage at most unless the settings say more; every embedding model in use reads that many."""

_BLANK = "."
"""Sent for a text without any character: servers refuse an empty one."""


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model that a server has, and how to ask for it; every field is a setting of the same name."""

    model: str
    url: str
    key: SecretStr | None = None
    dimension: int | None = None
    timeout: float = 10.0
    retries: int = 3
    batch: int = 32
    query_prefix: str = ""
    document_prefix: str = ""
    languages: tuple[str, ...] = ()
    max_tokens: int = MAX_TOKENS


class RemoteEncoder:
    """Vectors from an OpenAI-compatible `POST /v1/embeddings`; implements `agora.ports.encoder.Encoder`.

    Making one connects to nothing. There is no other server and no other model if this one fails: every
    call says so, and the next call asks again. Long texts are split by an estimate of their tokens.

    Raises: ConfigError, when it is made, about address and key.
    """

    def __init__(self, wanted: RemoteModel, log: Log | None = None) -> None:
        self._wanted = wanted
        self._log = log
        self._address = read_address(wanted.url)
        self._key = checked_key("embedding", wanted.key)
        self._endpoint = Endpoint(self._address, self._key, timeout=wanted.timeout, retries=wanted.retries)
        self._offsets, self._room = pieces(wanted.max_tokens)
        self._questions = Gathering(self._ask, wanted.batch)
        self._lock = threading.Lock()
        self._dimension = wanted.dimension
        self._state: EncoderState = "cold"
        self._error: EmbeddingError | None = None

    @property
    def name(self) -> str:
        """Model and server, as the fingerprint names them."""
        return f"openai:{self._wanted.model}@{self._address.host}"

    @property
    def fingerprint(self) -> Fingerprint:
        """Model, server, prefixes and dimension: all that can be known of weights which lie elsewhere.

        Raises: EncoderUnavailable while nobody has said the dimension.
        """
        if self._dimension is None:
            why = self._error.message if self._error else f"the embedding server {self._address.host} was not asked yet"
            raise EncoderUnavailable(
                f"nobody has said yet how long the vectors of {self.name} are: {why}",
                hint="Try again when the server answers, or set embedding.dimension.",
            )
        prefix = joined(self._wanted.query_prefix, self._wanted.document_prefix)
        identity = json.dumps([self._address.host, self._wanted.model, prefix])
        return Fingerprint(
            name=self.name,
            sha256=hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest(),
            dimension=self._dimension,
            pooling="server",
            prefix=prefix,
            normalised=True,
            # How texts are split is ours and may change; where the model cuts is the server's.
            max_tokens=0,
        )

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while nobody has said it."""
        return self._dimension

    @property
    def languages(self) -> tuple[str, ...]:
        """As the settings say."""
        return self._wanted.languages

    @property
    def state(self) -> EncoderState:
        """`cold` before the first request, then `ready` or `failed` after the last one."""
        return self._state

    def verify(self) -> None:
        """There are no files here."""

    def assume(self, dimension: int) -> None:
        """Take the dimension from a store that this model built, unless the settings name one."""
        with self._lock:
            self._dimension = self._dimension or dimension

    def warm_up(self) -> None:
        """Prepare the client in the background, and ask for the dimension if nobody knows it; never for more.

        A request costs money with some servers, so that a start makes none that is not needed.
        """
        with self._lock:
            if self._state != "cold":
                return
            self._state = "loading"
        threading.Thread(target=self._prepare, name="agora-encoder-warm-up", daemon=True).start()

    def split(self, text: str, deadline: Deadline) -> tuple[Span, ...]:
        """Passages of at most `max_tokens` tokens by an estimate that is rather too high; they overlap.

        Raises: DeadlineExceeded, Cancelled.
        """
        room = self._room - len(self._offsets(self._wanted.document_prefix))
        return split(readable(text), self._offsets, max(1, room), deadline)

    def encode(self, text: str, deadline: Deadline) -> Vector:
        """The vector of `text` after the prefix of documents: float32, unit length, read-only.

        Raises: EncoderUnavailable, EmbeddingError, Cancelled.
        """
        return self.encode_all([text], deadline)[0]

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        """What `encode` gives for each, in as few requests as `batch` allows.

        Raises: as `encode`.
        """
        return self._ask([self._wanted.document_prefix + text for text in texts], deadline)

    def encode_question(self, text: str, deadline: Deadline) -> Vector:
        """The vector of `text` after the prefix of questions; those of all agents that wait go in one request.

        Raises: as `encode`.
        """
        return self._questions(self._wanted.query_prefix + text, deadline)

    def details(self) -> dict[str, Any]:
        """Model and server, state, fingerprint and dimension if they are known, and the last request's error."""
        known = self._dimension is not None
        found: dict[str, Any] = {
            "model": self.name,
            "fingerprint": self.fingerprint.digest()[:12] if known else None,
            "state": self._state,
            "dimension": self._dimension,
            "url": self._address.url,
            "load_seconds": None,
        }
        if (error := self._error) is not None:
            found["error"] = error.message
        return found

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _ask(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        try:
            vectors: list[Vector] = []
            for start in range(0, len(texts), self._wanted.batch):
                vectors += self._batch(texts[start : start + self._wanted.batch], deadline)
        except EmbeddingError as error:
            self._settle(error)
            raise
        self._settle(None)
        return vectors

    def _batch(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        request = {
            "model": self._wanted.model,
            "input": [readable(text) if text.strip() else _BLANK for text in texts],
            "encoding_format": "float",
        }
        reply = self._endpoint.post(json.dumps(request).encode(), deadline)
        vectors = vectors_of(reply.body, reply.kind, len(texts), self._dimension, self._address.host)
        with self._lock:
            # Two first calls at the same time: the later answer must agree with the earlier.
            first = self._dimension = self._dimension or len(vectors[0])
        return vectors if len(vectors[0]) == first else vectors_of(reply.body, reply.kind, len(texts), first, self.name)

    def _settle(self, error: EmbeddingError | None) -> None:
        """Remember how the last request went, and log a change; the server's own words may hold texts."""
        state: EncoderState = "ready" if error is None else "failed"
        with self._lock:
            changed, self._state, self._error = self._state != state, state, error
        if self._log is None or not changed:
            return
        if error is None:
            self._log.info("encoder answers", model=self.name)
        else:
            self._log.warning("encoder fails", model=self.name, code=error.code)

    def _prepare(self) -> None:
        """Body of the thread of `warm_up`."""
        self._endpoint.prepare()
        try:
            if self._dimension is None:
                self.encode("dimension", Deadline(self._wanted.timeout))
        except AgoraError:
            # Remembered: status shows it, and every call says it for itself.
            return
        with self._lock:
            if self._state == "loading":
                self._state = "cold"
