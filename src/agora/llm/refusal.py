"""What a server's refusal means, in words that say what to do."""

from __future__ import annotations

import email.utils
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr

from agora.errors import LanguageModelError, ModelUnavailable

_SHOWN = 200
"""Characters of the server's own words at most."""

_BUSY = frozenset({408, 429, 500, 502, 503, 504, 529})
_USED_UP = ("insufficient_quota", "billing_error")

_HINTS = {
    400: "Look at model.summary_model, model.extraction_model, and at what docs/models.md says of this kind of server.",
    402: "Look at the account's billing.",
    404: "Look at model.url, and at model.summary_model and model.extraction_model: the server may not have them yet.",
    413: "The text is too long for this server: take another model for it.",
    422: "Look at model.summary_model and model.extraction_model.",
    429: "The server limits requests: try again later, or raise model.retries.",
}
_NAMED = {
    "temperature": 'Set model.temperature = "default": this model lets nobody choose.',
    "max_completion_tokens": 'Set model.token_parameter = "max_completion_tokens".',
    "max_tokens": "Lower model.max_tokens, or look at model.token_parameter.",
    "response_format": 'Set model.json_mode = "object" if this server knows no JSON schema.',
    "json_schema": 'Set model.json_mode = "object" if this server knows no JSON schema.',
}
"""What servers name in a refusal, and the setting that it is about."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that came to nothing: the error, the same `brief` without any word of the server, whether to repeat."""

    error: LanguageModelError
    brief: str
    again: bool = False
    wait: float | None = None


def refusal(
    who: str, status: int, headers: Mapping[str, str], body: bytes, key: SecretStr | None, now: datetime
) -> Failure:
    """What an answer with a status of failure comes to. `wait`: seconds that the server asks for, if it does."""
    brief = f"{who} answers with status {status}"
    if status in {401, 403}:
        # Not its words: some servers repeat a part of the key.
        brief = f"{who} refuses the key (status {status})" if key else f"{who} asks for a key (status {status})"
        return _final(brief, "", "Set model.key, best as ${VARIABLE}, to a key that may use the model.")
    if 300 <= status < 400:
        brief = f"{who} sends to another address (status {status}), which is not followed: texts and key would go there"
        return _final(brief, "", "Set model.url to the final address, if you trust it.")
    code, said = ("", "") if "html" in headers.get("content-type", "").lower() else _words(body, key)
    if code in _USED_UP:
        return _final(f"{who} says that the quota is used up", said, _HINTS[402])
    if status not in _BUSY and status < 500:
        named = next((hint for word, hint in _NAMED.items() if word in said), None)
        return _final(brief, said, named or _HINTS.get(status, _HINTS[400]))
    hint = _HINTS.get(status, "Look at the server's own log.")
    error = ModelUnavailable(f"{brief}: {said}" if said else brief, hint=hint)
    return Failure(error, brief, again=status in _BUSY, wait=_wait(headers, now))


def out_of_reach(who: str, reason: str, key: SecretStr | None) -> Failure:
    """A connection that could not be made, or that broke."""
    brief = f"{who} cannot be reached"
    error = ModelUnavailable(f"{brief}: {plain(reason, key)}", hint="Start it, or look at model.url.")
    return Failure(error, brief, again=True)


def _final(brief: str, said: str, hint: str) -> Failure:
    return Failure(ModelUnavailable(f"{brief}: {said}" if said else brief, hint=hint, retryable=False), brief)


def _words(body: bytes, key: SecretStr | None) -> tuple[str, str]:
    """Code and message in an error's body, in one of the forms that servers use."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "", plain(body[: 4 * _SHOWN].decode("utf-8", "replace"), key)
    error = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return "", plain(str(error), key)
    said = error.get("message") or error.get("detail") or ""
    return str(error.get("code") or error.get("type") or ""), plain(str(said), key)


def plain(text: str, key: SecretStr | None) -> str:
    """`text` on one line, short, printable, and without the key."""
    if key is not None:
        # Before it is cut: half a key is a secret too.
        text = text.replace(key.get_secret_value(), "********")
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or as a date; None without one that can be read."""
    for name, share in (("retry-after-ms", 1_000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / share)
        except (KeyError, ValueError):
            continue
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())
