"""Every error that Agora raises on purpose.

    AgoraError
      InvalidInput            PayloadTooLarge, InvalidNamespace, SecretRefused
      NotFound                NoteNotFound, BackendNotFound, ToolNotFound
      Conflict
      AccessDenied            NamespaceDenied, AuthorityRequired, ReadOnlyBackend, ToolQuarantined
      LimitReached            RateLimited, QuotaExceeded
      BackendError            BackendUnavailable, BackendTimeout, BackendRefused, BackendProtocolError, OutcomeUnknown
      StoreError              StoreUnavailable, StoreCorrupt, StoreVersion, JournalCorrupt, IndexUnavailable
      EmbeddingError          ModelMissing, ModelTampered, EmbeddingMismatch, EncoderUnavailable, WarmingUp
      ConfigError             UnknownKey, MissingExtra
      ListenError
      DeadlineExceeded, Cancelled

`code` is stable and may be matched by programs. Numbers of HTTP or JSON-RPC do not appear here:
`agora.protocol.errors` is the only place that maps codes to a wire.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class AgoraError(Exception):
    """What went wrong, a stable `code`, a `hint` that says what to do, and whether a retry may help."""

    code: ClassVar[str] = "error"
    default_hint: ClassVar[str] = ""
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    def details(self) -> dict[str, Any]:
        """The error as plain data, the same on every interface."""
        found: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        return found | ({"hint": self.hint} if self.hint else {})


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


class BackendNotFound(NotFound):
    """There is no backend of that name."""

    code = "backend_not_found"


class ToolNotFound(NotFound):
    """The backend has no tool of that name."""

    code = "tool_not_found"


class Conflict(AgoraError):
    """The change contradicts what is stored."""

    code = "conflict"


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


class BackendError(AgoraError):
    """Another MCP server did not do what it was asked; `backend` names it."""

    code = "backend_error"

    def __init__(self, backend: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{backend}: {message}", hint=hint)
        # The reason is the message without the name, for whoever tells it on.
        self.backend, self.reason = backend, message

    def details(self) -> dict[str, Any]:
        """As `AgoraError.details`, with `backend`."""
        return super().details() | {"backend": self.backend}


class BackendUnavailable(BackendError):
    """The backend cannot be reached or started; the call was not sent."""

    code = "backend_unavailable"
    default_hint = "agora_backends shows its state and its last error."
    retryable = True

    def __init__(self, backend: str, message: str, *, hint: str | None = None, retry_after: float = 0.0) -> None:
        super().__init__(backend, message, hint=hint)
        self.retry_after = math.ceil(retry_after) or None

    def details(self) -> dict[str, Any]:
        """As `BackendError.details`, with `retry_after` in whole seconds where the backend asks for it."""
        found = super().details()
        return found if self.retry_after is None else found | {"retry_after": self.retry_after}


class BackendTimeout(BackendError):
    """The backend did not answer in time, and was told that nobody waits any more."""

    code = "backend_timeout"
    default_hint = "Try again, or have `timeout` in its table raised if it needs longer."
    retryable = True


class BackendRefused(BackendError):
    """The backend answered with an error of the protocol; `number` is its code, `data` what came with it."""

    code = "backend_refused"
    default_hint = "The message is the backend's own; agora_route with dry_run shows what the tool takes."

    def __init__(
        self, backend: str, message: str, number: int, data: object = None, *, hint: str | None = None
    ) -> None:
        super().__init__(backend, message, hint=hint)
        self.number = number
        self.data = data

    def details(self) -> dict[str, Any]:
        """As `BackendError.details`, with `number`, and `data` where there is any."""
        found = super().details() | {"number": self.number}
        return found if self.data is None else found | {"data": abridge(self.data)}


class BackendProtocolError(BackendError):
    """What the backend sends is not what the protocol asks for."""

    code = "backend_protocol_error"
    default_hint = "Its authors should know: calling again is of no use."


class OutcomeUnknown(BackendError):
    """The call was sent and its answer never came: the change that it asks for may have happened."""

    code = "outcome_unknown"
    default_hint = "Look what became of it before you call again: a second call may do it twice."


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


def abridge(value: object, limit: int = 200) -> object:
    """`value` itself when it is small and plain, else its text (lists and objects as JSON) cut to `limit` characters.

    The result can always be written as JSON and as UTF-8.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    # A lone surrogate cannot leave the process as UTF-8.
    text = _text(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


_EXACT = 2**53
"""The largest whole number that every JSON reader takes as it is."""


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else repr(value)
    except (TypeError, ValueError, RecursionError):
        # Nested too deep, or nothing that JSON has.
        return f"a {type(value).__name__}"
