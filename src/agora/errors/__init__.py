"""Every error that Agora raises on purpose.

    AgoraError
      InvalidInput            PayloadTooLarge, InvalidNamespace, SecretRefused
      NotFound                NoteNotFound, SessionNotFound, BackendNotFound, ToolNotFound
      Conflict                SummaryOutdated
      AccessDenied            NamespaceDenied, AuthorityRequired, ReadOnlyBackend, ToolQuarantined
      LimitReached            RateLimited, QuotaExceeded
      BackendError            BackendUnavailable, BackendTimeout, BackendRefused, BackendProtocolError, OutcomeUnknown
      StoreError              StoreUnavailable, StoreCorrupt, StoreVersion, JournalCorrupt, IndexUnavailable
      EmbeddingError          ModelMissing, ModelTampered, EmbeddingMismatch, EncoderUnavailable, WarmingUp
      LanguageModelError      ModelUnavailable, ModelAnswerUnusable
      ConfigError             UnknownKey, MissingExtra
      ListenError
      DeadlineExceeded, Cancelled

`code` is stable and may be matched by programs. Numbers of HTTP or JSON-RPC do not appear here:
`agora.protocol.errors` is the only place that maps codes to a wire.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agora.abridging import abridge
from agora.errors.backend import (
    BackendError as BackendError,
)
from agora.errors.backend import (
    BackendProtocolError as BackendProtocolError,
)
from agora.errors.backend import (
    BackendRefused as BackendRefused,
)
from agora.errors.backend import (
    BackendTimeout as BackendTimeout,
)
from agora.errors.backend import (
    BackendUnavailable as BackendUnavailable,
)
from agora.errors.backend import (
    OutcomeUnknown as OutcomeUnknown,
)
from agora.errors.base import AgoraError as AgoraError


class InvalidInput(AgoraError):
    """An argument cannot be used: `param` names it, `reason` says why, `received` shows what came."""

    code = "invalid_input"

    def __init__(self, param: str, reason: str, received: object = None, *, hint: str | None = None) -> None:
        shown = abridge(received)
        super().__init__(f"{param}: {reason} (received {shown!r})", hint=hint)
        self.param = param
        self.reason = reason
        self.received = shown

    def details(self) -> dict[str, Any]:
        """As `AgoraError.details`, with `param`, `reason` and `received` (abridged to 200 characters)."""
        return super().details() | {"param": self.param, "reason": self.reason, "received": self.received}


class PayloadTooLarge(InvalidInput):
    """A text or a request is larger than the documented limit."""

    code = "payload_too_large"


class InvalidNamespace(InvalidInput):
    """A namespace name cannot be used."""

    code = "invalid_namespace"


class SecretRefused(InvalidInput):
    """A text holds what looks like a secret, and `redaction.mode` is `refuse`; `found` names places and kinds."""

    code = "secret_refused"
    default_hint = (
        "Send it without the secret; say where it is kept instead. If it is none, `redaction.allow` can let it pass."
    )

    def __init__(self, found: Mapping[str, Sequence[str]]) -> None:
        param = next(iter(found))
        said = "; ".join(f"{place} ({', '.join(kinds)})" for place, kinds in found.items())
        super().__init__(param, f"holds what looks like a secret: {said}")
        self.message = f"there is what looks like a secret in {said}"
        self.args = (self.message,)
        self.found = {place: list(kinds) for place, kinds in found.items()}

    def details(self) -> dict[str, Any]:
        """As `InvalidInput.details`, without what was received and with `found`: place to kinds."""
        shown = {name: value for name, value in super().details().items() if name != "received"}
        return shown | {"found": self.found}


class NotFound(AgoraError):
    """Nothing with that name is visible to the caller."""

    code = "not_found"


class NoteNotFound(NotFound):
    """No note with that id is visible to the caller."""

    code = "note_not_found"


class SessionNotFound(NotFound):
    """No conversation with that name is visible to the caller."""

    code = "session_not_found"


class BackendNotFound(NotFound):
    """There is no backend of that name."""

    code = "backend_not_found"


class ToolNotFound(NotFound):
    """The backend has no tool of that name."""

    code = "tool_not_found"


class Conflict(AgoraError):
    """The change contradicts what is stored."""

    code = "conflict"


class SummaryOutdated(Conflict):
    """The summary was changed since the token was given out: it stays as it is."""

    code = "summary_outdated"
    default_hint = "session_context gives the summary as it is now, and a new token if one is due."


class AccessDenied(AgoraError):
    """The caller may not do this."""

    code = "access_denied"


class NamespaceDenied(AccessDenied):
    """The caller may not use this namespace."""

    code = "namespace_denied"


class AuthorityRequired(AccessDenied):
    """Only a caller of higher origin may do this; nothing was changed."""

    code = "authority_required"


class ReadOnlyBackend(AccessDenied):
    """The call may change something, or nothing says that it does not, and here only reading is allowed."""

    code = "read_only_backend"


class ToolQuarantined(AccessDenied):
    """The backend has changed what this tool says of itself; until a person approves that, it is not called."""

    code = "tool_quarantined"
    default_hint = "A person has to approve it first: `agora backends diff` shows what changed."


class LimitReached(AgoraError):
    """An agent or a namespace has used up what it may; nothing was written."""

    code = "limit_reached"


class RateLimited(LimitReached):
    """Too much was saved in too short a time: `retry_after` says in how many seconds there is room again."""

    code = "rate_limited"
    retryable = True

    def __init__(self, message: str, retry_after: float, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = max(1, math.ceil(retry_after))

    def details(self) -> dict[str, Any]:
        """As `AgoraError.details`, with `retry_after` in whole seconds."""
        return super().details() | {"retry_after": self.retry_after}


class QuotaExceeded(LimitReached):
    """There is no room left for what an agent or a namespace may keep."""

    code = "quota_exceeded"


class StoreError(AgoraError):
    """The store could not do its work."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """The store cannot be opened or is locked; nothing was written."""

    code = "store_unavailable"
    retryable = True


class StoreCorrupt(StoreError):
    """The store's file is damaged."""

    code = "store_corrupt"
    default_hint = "Run `agora doctor` to see what is damaged."


class StoreVersion(StoreError):
    """The store was written by another release whose schema this one does not know."""

    code = "store_version"


class JournalCorrupt(StoreCorrupt):
    """The journal of changes has a gap or a changed row."""

    code = "journal_corrupt"


class IndexUnavailable(StoreError):
    """The vector index cannot be used now; the notes themselves can, and lexical queries work."""

    code = "index_unavailable"
    retryable = True


class EmbeddingError(AgoraError):
    """A text could not be turned into a vector."""

    code = "embedding_error"


class ModelMissing(EmbeddingError):
    """A model file that the profile needs is not there."""

    code = "model_missing"


class ModelTampered(EmbeddingError):
    """A model file does not have the SHA-256 it must have; it is not loaded."""

    code = "model_tampered"


class EmbeddingMismatch(EmbeddingError):
    """The store was built with another embedding profile; mixed vectors would give silent bad results."""

    code = "embedding_mismatch"


class EncoderUnavailable(EmbeddingError):
    """The server that makes the vectors did not answer, or asks to wait; nothing was written."""

    code = "encoder_unavailable"
    retryable = True


class WarmingUp(EmbeddingError):
    """The model was not ready before the deadline; nothing was written."""

    code = "warming_up"
    default_hint = "Try again in a few seconds."
    retryable = True


class LanguageModelError(AgoraError):
    """The language model of the settings could not do what it was asked."""

    code = "language_model_error"


class ModelUnavailable(LanguageModelError):
    """The language model cannot be reached, refused the request, or did not answer in time."""

    code = "model_unavailable"
    default_hint = "agora_status names the model and its last error; `[model]` in agora.toml says where it is."
    retryable = True

    def __init__(self, message: str, *, hint: str | None = None, retryable: bool = True) -> None:
        super().__init__(message, hint=hint)
        # A key that is refused today is refused tomorrow.
        self.retryable = retryable


class ModelAnswerUnusable(LanguageModelError):
    """The language model's answer was cut off, empty, or not what was asked for."""

    code = "model_answer_unusable"
    default_hint = "Nothing of it was used. A larger model, or a higher limit of tokens, may answer better."


class ConfigError(AgoraError):
    """A setting is wrong."""

    code = "config_error"


class UnknownKey(ConfigError):
    """A configuration key does not exist; the hint names the nearest one that does."""

    code = "unknown_key"


class MissingExtra(ConfigError):
    """An optional part is not installed; the hint names the extra to install."""

    code = "missing_extra"


class ListenError(AgoraError):
    """The server cannot listen at the address that it was given."""

    code = "cannot_listen"


class DeadlineExceeded(AgoraError):
    """The call took longer than its deadline and was stopped."""

    code = "deadline_exceeded"
    retryable = True


class Cancelled(AgoraError):
    """The caller took the call back."""

    code = "cancelled"
