"""Secrets in notes that are in the store already: saved before they were looked for, or by older rules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from agora.config.settings import Settings
from agora.errors import AgoraError
from agora.redaction.redactor import Redactor
from agora.stores.sqlite.wording import words_of_notes

_NAMED = 20
"""Notes that the message names; the row has the ids of the first hundred."""
_LISTED = 100
_FOLDED = frozenset({"tags"})
_HINT = (
    "Look at them with `agora get ID`. Replace each real secret where it is used, save the note again without it, then"
    " `agora forget ID --yes` and `agora purge ID` take it out of every byte. What is none, redaction.allow lets pass."
)


def old_secrets(settings: Settings, store: Path) -> dict[str, Any] | None:
    """A row of `agora doctor` that says how many notes hold what looks like a secret, which ones, and of which kinds.

    It has no word of them. None where there is no store yet, or where secrets are not looked for. It takes half a
    millisecond for 2,000 characters.
    """
    if settings.redaction.mode == "off" or not store.exists():
        return None
    name, redactor = "secrets in notes", Redactor(settings.redaction.allow)
    seen, found, kinds = 0, [], Counter[str]()
    try:
        for public_id, words in words_of_notes(store):
            seen += 1
            if counts := redactor.data(words, _FOLDED).counts:
                found.append(public_id)
                kinds.update(counts.keys())
    except AgoraError as error:
        # What is wrong with the store, other checks say.
        message = f"the notes cannot be looked through: {error.message}"
        return {"name": name, "ok": True, "warning": True, "message": message, "hint": error.hint}
    if not found:
        return {"name": name, "ok": True, "message": f"none found in {seen:,} note{'' if seen == 1 else 's'}"}
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    said = f"{len(found):,} of {seen:,} hold what looks like a secret ({', '.join(sorted(kinds))})"
    return {
        "name": name,
        "ok": True,
        "warning": True,
        "message": f"{said}: {', '.join(found[:_NAMED])}{more}",
        "hint": _HINT,
        "count": len(found),
        "ids": found[:_LISTED],
    }
