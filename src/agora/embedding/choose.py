from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agora.config.settings import EmbeddingSettings
from agora.embedding.folder import Given
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.errors import ConfigError, EncoderUnavailable
from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint
from agora.ports.encoder import Encoder
from agora.ports.log import Log

if TYPE_CHECKING:
    from agora.embedding.remote import RemoteEncoder

SCHEME = "openai:"
"""What `embedding.model` begins with when a server makes the vectors."""

_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:")
"""Two characters at least before the colon: one is a drive of Windows."""


def choose_encoder(
    settings: EmbeddingSettings, log: Log | None = None, built: Callable[[], Fingerprint | None] = lambda: None
) -> Encoder:
    """The one encoder that `embedding.model` names; nothing is loaded and no server is asked.

    `built` gives the profile of the store that it is for, if there is one: it knows how long the vectors are.

    Raises: ConfigError, ModelMissing, ModelTampered, EmbeddingError.
    """
    name = settings.model
    if name.startswith(SCHEME):
        return _remote(settings, log, built)
    if settings.url is not None:
        raise ConfigError(
            f"embedding.url is set, but embedding.model = {name!r} needs no server",
            hint=f"Write embedding.model = '{SCHEME}NAME', or leave embedding.url out.",
        )
    if _OTHER_SCHEME.match(name):
        raise ConfigError(
            f"embedding.model = {name!r} is of a kind that is not known",
            hint=f"Name a model in the package, a folder by its path, or '{SCHEME}NAME' with embedding.url.",
        )
    given = Given(
        settings.query_prefix,
        settings.document_prefix,
        settings.languages,
        settings.max_tokens,
        settings.pooling,
        settings.dimension,
    )
    own = any(mark in name for mark in "/\\")
    folder = Path(name).expanduser() if own else packaged_model(name)
    return OnnxEncoder(folder, threads=settings.threads, log=log, given=given)


def is_settled(encoder: Encoder) -> bool:
    """Whether the fingerprint is known without asking anybody."""
    try:
        return bool(encoder.fingerprint.dimension)
    except EncoderUnavailable:
        return False


def settle(encoder: Encoder, deadline: Deadline) -> None:
    """Return once the fingerprint is known, which may take a question to a server.

    Raises: EncoderUnavailable, EmbeddingError, Cancelled.
    """
    if not is_settled(encoder):
        encoder.encode("dimension", deadline)


def examined(settings: EmbeddingSettings, built: Callable[[], Fingerprint | None] = lambda: None) -> str:
    """What `agora doctor` says of the encoder after trying it: files hashed, or one text sent to the server.

    Raises: as `choose_encoder`, and what the encoder raises.
    """
    encoder = choose_encoder(settings, None, built)
    encoder.verify()
    if not settings.model.startswith(SCHEME):
        return f"{encoder.fingerprint.name}, files whole"
    try:
        encoder.encode("ready", Deadline(settings.deadline))
    finally:
        encoder.close()
    return f"{encoder.fingerprint.name}, answers with {encoder.fingerprint.dimension} dimensions"


def _remote(settings: EmbeddingSettings, log: Log | None, built: Callable[[], Fingerprint | None]) -> RemoteEncoder:
    from agora.embedding.remote import MAX_TOKENS, RemoteEncoder, RemoteModel  # noqa: PLC0415 - most need no server

    model = settings.model.removeprefix(SCHEME)
    if settings.url is None or not model:
        raise ConfigError(
            f"embedding.model = {settings.model!r} needs {'a name after the colon' if not model else 'embedding.url'}",
            hint="As in embedding.model = 'openai:nomic-embed-text', embedding.url = 'http://localhost:11434/v1'.",
        )
    if settings.pooling is not None:
        raise ConfigError("embedding.pooling is for folders; a server pools by itself", hint="Leave it out.")
    encoder = RemoteEncoder(
        RemoteModel(
            model=model,
            url=settings.url,
            key=settings.key,
            dimension=settings.dimension,
            timeout=settings.timeout,
            retries=settings.retries,
            batch=settings.batch,
            query_prefix=settings.query_prefix or "",
            document_prefix=settings.document_prefix or "",
            languages=settings.languages,
            max_tokens=settings.max_tokens or MAX_TOKENS,
        ),
        log,
    )
    if settings.dimension is None and (profile := built()) is not None:
        # Of another model too: that store is refused by its fingerprint, whether the server answers or not.
        encoder.assume(profile.dimension)
    return encoder
