"""What `agora doctor` says of the words in a store: secrets of old, and what looks like instructions to an agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agora.config.settings import Settings
from agora.errors import AgoraError
from agora.memory.suspects import strings
from agora.redaction.redactor import Redactor
from agora.stores.sqlite.wording import Words, words_of_notes
from agora.suspicion.flags import reasons

Row = dict[str, Any]

_NAMED = 20
"""Notes that a message names; the row has the ids of the first hundred."""
_LISTED = 100
_FOLDED = frozenset({"tags"})
_SECRETS = "secrets in notes"
_HINT = (
    "Look at them with `agora get ID`. Replace each real secret where it is used, save the note again without it, then"
    " `agora forget ID --yes` and `agora purge ID` take it out of every byte. What is none, redaction.allow lets pass."
)


def review(settings: Settings, store: Path) -> list[Row]:
    """How many notes hold what looks like a secret, and how many look like instructions to an agent, and which ones.

    No row has a word of them. Secrets are looked for in every note that is not purged, if they are looked for at all;
    instructions in current notes. It takes a millisecond for 2,000 characters.
    """
    if not store.exists():
        return []
    redactor = None if settings.redaction.mode == "off" else Redactor(settings.redaction.allow)
    seen, secrets, kinds, flagged = Counter[bool](), list[str](), Counter[str](), list[str]()
    try:
        for words in words_of_notes(store):
            seen[words.current] += 1
            if redactor is not None and (counts := redactor.data(words.texts, _FOLDED).counts):
                secrets.append(words.id)
                kinds.update(counts.keys())
            if words.current and reasons(_judged(words)):
                flagged.append(words.id)
    except AgoraError as error:
        # What is wrong with the store, other checks say.
        message = f"the notes cannot be looked through: {error.message}"
        return [{"name": _SECRETS, "ok": True, "warning": True, "message": message, "hint": error.hint}]
    told = [] if redactor is None else [_of_secrets(secrets, kinds, seen.total())]
    return [*told, _of_orders(flagged, seen[True])]


def _of_secrets(found: Sequence[str], kinds: Counter[str], seen: int) -> Row:
    if not found:
        return {"name": _SECRETS, "ok": True, "message": f"none found in {_notes(seen)}"}
    said = f"{len(found):,} of {_notes(seen)} hold what looks like a secret ({', '.join(sorted(kinds))})"
    return {"name": _SECRETS, "ok": True, "warning": True, "message": said + _ids(found), "hint": _HINT} | _listed(
        found
    )


def _of_orders(found: Sequence[str], seen: int) -> Row:
    # No warning: of notes about attacks some are flagged too.
    count = f"{len(found):,}" if found else "none"
    said = f"{_notes(seen)} looked at, {count} like instructions to an agent"
    return {"name": "suspicious notes", "ok": True, "message": said + _ids(found)} | _listed(found)


def _judged(words: Words) -> str:
    """As `agora.memory.suspects` takes a note."""
    texts = words.texts
    named = [texts[name] for name in ("title", "content", "key") if texts.get(name)]
    savers = [saver[name] for saver in texts["savers"] for name in ("agent", "session", "client")]
    return "\n".join([*named, *texts["tags"], *strings(texts["metadata"]), *dict.fromkeys(savers)])


def _notes(count: int) -> str:
    return f"{count:,} note{'' if count == 1 else 's'}"


def _ids(found: Sequence[str]) -> str:
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    return f": {', '.join(found[:_NAMED])}{more}" if found else ""


def _listed(found: Sequence[str]) -> Row:
    return {"count": len(found), "ids": list(found[:_LISTED])} if found else {}
