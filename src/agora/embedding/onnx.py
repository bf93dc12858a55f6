from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agora.embedding.folder import Given, read_model
from agora.embedding.gate import Gate
from agora.embedding.loading import Loaded, load, readable
from agora.embedding.manifest import packaged_model, read_manifest
from agora.embedding.splitting import split
from agora.errors import DeadlineExceeded, EmbeddingError, WarmingUp
from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint, Span
from agora.ports.encoder import EncoderState, Vector
from agora.ports.log import Log

__all__ = ["OnnxEncoder", "packaged_model"]

_OURS = (
    "The files are as they were built, so look at the installed onnxruntime and tokenizers: "
    "`python -m pip install --force-reinstall onnxruntime tokenizers`."
)
_OWN = "Graph and tokenizer.json must be of one model, and embedding.max_tokens not above what it reads at once."

_SLICE = 0.05
"""Seconds between two looks at the deadline of a call that waits: a cancelled call is gone after that."""

_EXIT = 1.5
"""Seconds that the end of the process waits for native calls; a load takes 0.3, a text at most 0.03."""


class OnnxEncoder:
    """Vectors from a model folder, computed by onnxruntime on the CPU; implements `agora.ports.encoder.Encoder`.

    Making one reads the manifest and nothing else: it costs a millisecond and imports neither onnxruntime
    nor tokenizers. With `given`, what the settings say about the model, the folder may lack a manifest; then its
    files are hashed. `threads` is what onnxruntime may use for one text. Calls from several threads run side by side.

    Raises: ModelMissing, ModelTampered, EmbeddingError, ConfigError, when it is made, about the files and settings.
    """

    def __init__(self, folder: Path, *, threads: int = 1, log: Log | None = None, given: Given | None = None) -> None:
        self._manifest = read_manifest(folder) if given is None else read_model(folder, given)
        self._threads = threads
        self._log = log
        self._gate = Gate()
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._state: EncoderState = "cold"
        self._model: Loaded | None = None
        self._error: EmbeddingError | None = None

    @property
    def fingerprint(self) -> Fingerprint:
        """As the manifest says; `verify` and loading hold the files to it."""
        return self._manifest.fingerprint

    @property
    def languages(self) -> tuple[str, ...]:
        """As the manifest says."""
        return self._manifest.languages

    @property
    def state(self) -> EncoderState:
        """`cold`, `loading`, `ready` or `failed`."""
        return self._state

    def verify(self) -> None:
        """Return if the files have the SHA-256 of the manifest; reads 24 MB, loads nothing.

        Raises: ModelMissing, ModelTampered.
        """
        self._manifest.verify()

    def warm_up(self) -> None:
        """Start loading in the background, once, and return at once."""
        with self._lock:
            if self._state != "cold":
                return
            atexit.register(self._gate.close, _EXIT)
            threading.Thread(target=self._load, name="agora-model", daemon=True).start()
            self._state = "loading"

    def split(self, text: str, deadline: Deadline) -> tuple[Span, ...]:
        """Passages of at most 148 word pieces; a text that has no more is one.

        They overlap by about 20 to 40 pieces and end at the end of a paragraph, line, sentence or word
        where there is one. Spans count code points.

        Raises: WarmingUp, EmbeddingError, DeadlineExceeded, Cancelled.
        """
        model = self._ready(deadline)
        room = model.room - len(model.offsets(self._manifest.document_prefix))
        return split(readable(text), model.offsets, max(1, room), deadline)

    def encode(self, text: str, deadline: Deadline) -> Vector:
        """The vector of the first 254 word pieces of `text`: float32, shape (384,), unit length, read-only.

        The same text gives the same bytes in one process, whatever else is encoded at the time. An empty
        text has a vector too.

        Raises: WarmingUp, EmbeddingError, DeadlineExceeded, Cancelled.
        """
        return self._encode(self._manifest.document_prefix + text, deadline)

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        """One after the other: an int8 vector depends on its batch mates (ADR 2).

        Raises: WarmingUp, EmbeddingError, DeadlineExceeded, Cancelled.
        """
        return [self.encode(text, deadline) for text in texts]

    def encode_question(self, text: str, deadline: Deadline) -> Vector:
        """As `encode`, with the prefix of questions.

        Raises: WarmingUp, EmbeddingError, DeadlineExceeded, Cancelled.
        """
        return self._encode(self._manifest.question_prefix + text, deadline)

    def _encode(self, text: str, deadline: Deadline) -> Vector:
        model = self._ready(deadline)
        ids = model.ids(text)
        deadline.check()
        return model.vector(ids)

    def details(self) -> dict[str, Any]:
        """Name, state, first 12 digits of the fingerprint, dimension, seconds of the load, and its error."""
        found: dict[str, Any] = {
            "model": self.fingerprint.name,
            "fingerprint": self.fingerprint.digest()[:12],
            "state": self._state,
            "dimension": self.fingerprint.dimension,
            "load_seconds": None if self._model is None else round(self._model.seconds, 3),
        }
        if self._manifest.graph is not None:
            found |= {"pooling": self.fingerprint.pooling, "folder": str(self._manifest.folder)}
        if self._error is not None:
            found["error"] = self._error.message
        return found

    def close(self) -> None:
        """There are no connections; the model stays."""

    def _ready(self, deadline: Deadline) -> Loaded:
        self.warm_up()
        while not self._settled.wait(min(_SLICE, deadline.remaining())):
            try:
                deadline.check()
            except DeadlineExceeded as error:
                raise WarmingUp(
                    f"the model {self.fingerprint.name} was still loading after the {deadline.seconds:g} s of this call"
                ) from error
        if self._model is None:
            raise self._failure()
        return self._model

    def _failure(self) -> EmbeddingError:
        """The error of the load, made anew: one exception raised in many threads would mix their tracebacks."""
        first = self._error
        assert first is not None, "a settled load has a model or an error"
        again = type(first)(first.message, hint=first.hint)
        again.__cause__ = first.__cause__
        return again

    def _load(self) -> None:
        """Body of the loading thread: leaves a model or an error, and always wakes who waits."""
        try:
            model = load(self._manifest, self._threads, self._gate)
        except EmbeddingError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - outermost frame of the thread; every waiter gets the cause
            failure = EmbeddingError(
                f"the model {self.fingerprint.name} could not be loaded: {type(error).__name__}: {error}",
                hint=_OWN if self._manifest.graph else _OURS,
            )
            failure.__cause__ = error
            self._fail(failure)
        else:
            with self._lock:
                self._model, self._state = model, "ready"
            if self._log is not None:
                self._log.info("model ready", model=self.fingerprint.name, seconds=round(model.seconds, 3))
        finally:
            self._settled.set()

    def _fail(self, error: EmbeddingError) -> None:
        with self._lock:
            self._error, self._state = error, "failed"
        if self._log is not None:
            self._log.warning("model not loaded", model=self.fingerprint.name, error=error.message)
