"""What an answer of an embedding server other than vectors means, in words that say what to do."""

from __future__ import annotations

import json
from typing import Any

from pydantic import SecretStr

from agora.embedding.remote_address import Address
from agora.errors import EmbeddingError, EncoderUnavailable

_SHOWN = 200
"""Characters of the server's own words at most."""

_HINTS = {
    400: "Look at embedding.model, and lower embedding.max_tokens if texts are too long for it.",
    404: "Look at embedding.url, which ends in /v1, and at embedding.model: the server may not have it yet.",
    413: "Lower embedding.batch.",
    422: "Look at embedding.model, and lower embedding.batch or embedding.max_tokens.",
    429: "The server limits requests: try again later, or lower embedding.batch.",
}


def refusal(address: Address, status: int, kind: str, body: bytes, key: SecretStr | None) -> EmbeddingError:
    """The error for an answer with another status than 200: retryable if the server may answer later."""
    who = f"the embedding server {address.host}"
    if status in {401, 403}:
        # Not its words: some servers repeat a part of the key.
        return EmbeddingError(
            f"{who} refuses the key (status {status})" if key else f"{who} asks for a key (status {status})",
            hint="Set embedding.key, best as ${VARIABLE}, to a key that may ask for embeddings.",
        )
    if 300 <= status < 400:
        return EmbeddingError(
            f"{who} sends to another address (status {status}), which is not followed: texts and key would go there",
            hint="Set embedding.url to the final address, if you trust it.",
        )
    if "html" in kind:
        found: tuple[str, str] = ("", " with a web page")
    else:
        code, words = _words(body, key)
        found = (code, f": {words}" if words else "")
    if found[0] == "insufficient_quota":
        return EmbeddingError(f"{who} says that the quota is used up{found[1]}", hint="Look at the account's billing.")
    made = EncoderUnavailable if status == 429 or status >= 500 else EmbeddingError
    usual = "Look at the server's own log." if status >= 500 else "Look at embedding.url and embedding.model."
    return made(f"{who} answers with status {status}{found[1]}", hint=_HINTS.get(status, usual))


def out_of_reach(address: Address, reason: str, key: SecretStr | None) -> EncoderUnavailable:
    """The error for a connection that could not be made, or that broke."""
    return EncoderUnavailable(
        f"the embedding server {address.host} cannot be reached: {_plain(reason, key)}",
        hint="Start it, or look at embedding.url. Lexical queries work meanwhile.",
    )


def _words(body: bytes, key: SecretStr | None) -> tuple[str, str]:
    """Code and message in an error's body, in one of the forms that servers use."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "", _plain(body[: 4 * _SHOWN].decode("utf-8", "replace"), key)
    error = found.get("error", found) if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return "", _plain(str(error), key)
    said = error.get("message") or error.get("detail") or ""
    return str(error.get("code") or ""), _plain(str(said), key)


def _plain(text: str, key: SecretStr | None) -> str:
    """`text` on one line, short, printable, and without the key."""
    if key is not None:
        # Before it is cut: half a key is a secret too.
        text = text.replace(key.get_secret_value(), "********")
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
