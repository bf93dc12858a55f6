"""What the memory puts into a prompt: notes, comparisons and changes, as text that a model reads as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agora.memory.browsing import Browsing
from agora.model.browse import Listing
from agora.model.crossref import Topic
from agora.protocol.context import Calling
from agora.protocol.fence import closing_line, mark_beside, opening_line
from agora.protocol.tools.crossref import changes as shaped_changes
from agora.protocol.tools.handlers import Tools
from agora.protocol.tools.shapes import note as shaped
from agora.protocol.tools.shapes import opening
from agora.unseen import shown

_TOKENS = 6_000
_RECENT = 20
_CHANGES = 50
_NOTHING = {"en": "(nothing)", "it": "(niente)"}
_LEFT_OUT = {
    "en": "left out, since it looks like instructions ({reasons}); agora_get shows it",
    "it": "omesso, perché somiglia a istruzioni ({reasons}); agora_get lo mostra",
}

Row = Mapping[str, Any]


class Filling:
    """Answers what a template asks of the memory, for one caller. Blocking: run it in a worker thread."""

    def __init__(self, tools: Tools, browsing: Browsing) -> None:
        self._tools = tools
        self._browsing = browsing

    def fill(self, wanted: frozenset[str], topic: str | None, language: str, calling: Calling) -> dict[str, str]:
        """A text for each of the names in `wanted`, between random marks; what there is nothing of says so.

        Nobody has asked for the notes one by one: of one that looks like instructions only its id is there, and why.
        Nothing in a text drives a terminal or is hidden.

        Raises: what the memory raises: a prompt is never filled with half of what there is.
        """
        found = {name: shown(text) for name, text in self._found(wanted, topic, _Words(language), calling).items()}
        mark = mark_beside(*found.values())
        before, after = opening_line(mark, language), closing_line(mark)
        nothing = _NOTHING.get(language, _NOTHING["en"])
        # A section of verdicts is left out where there are none; the others stand there and say so.
        return {
            name: f"{before}\n{text}\n{after}" if text else "" if name == "verdicts" else nothing
            for name, text in found.items()
        }

    def _found(self, wanted: frozenset[str], topic: str | None, words: _Words, calling: Calling) -> dict[str, str]:
        caller, deadline = calling.caller(), calling.deadline
        namespaces = caller.scope.searched()
        found: dict[str, str] = {}
        if "notes" in wanted and topic:
            from agora.memory.crossref import FLOOR  # noqa: PLC0415 - a server that starts has no use for it

            asked = {"query": topic, "top_k": 20, "max_tokens": _TOKENS, "min_score": FLOOR}
            found["notes"] = "\n\n".join(map(words.note, self._tools.answer("agora_query", asked, calling)["results"]))
        elif "notes" in wanted:
            page = self._browsing.page(Listing(namespaces, limit=_RECENT), caller, deadline)
            found["notes"] = "\n\n".join(words.note(shaped(note, opening(note.content, 600))) for note in page.notes)
        if "verdicts" in wanted and topic:
            compared = self._tools.answer("agora_crossref", {"query": topic}, calling)
            flagged = _flagged(compared)
            found["verdicts"] = "\n".join(words.verdict(each, flagged) for each in compared["verdicts"])
        if "saved" in wanted:
            mine = Listing(namespaces, session=caller.session, limit=_RECENT)
            page = self._browsing.page(mine, caller, deadline)
            found["saved"] = "\n".join(words.saved(shaped(note)) for note in page.notes)
        if "changes" in wanted:
            changes = shaped_changes(self._browsing.changes(Topic(namespaces), caller, deadline, _CHANGES))
            found["changes"] = "\n".join(map(words.change, changes["changes"]))
        return found


def _flagged(compared: Row) -> dict[str, Sequence[str]]:
    """The notes of a comparison that look like instructions, and why."""
    notes = [note for position in compared["positions"] for note in position["notes"]]
    return {note["id"]: note["suspicious"] for note in (*notes, *compared["timeline"]) if note.get("suspicious")}


def _of_all(row: Row, flagged: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Why every note that holds a value looks like instructions: nobody else has said it. Empty if one does not."""
    reasons = [flagged.get(each, ()) for each in row["ids"]]
    return tuple(dict.fromkeys(reason for each in reasons for reason in each)) if all(reasons) else ()


class _Words:
    """Rows as a model reads them."""

    def __init__(self, language: str) -> None:
        self._left_out = _LEFT_OUT.get(language, _LEFT_OUT["en"])

    def note(self, note: Row) -> str:
        if reasons := note.get("suspicious"):
            return f"[{note['id']} | {note['origin']} | {note['created_at']}]\n({self._why(reasons)})"
        head = [str(note[name]) for name in ("id", "agent", "origin", "created_at", "namespace") if note.get(name)]
        head += [f"{name}={note[name]}" for name in ("key", "version") if note.get(name)]
        title = f"{note['title']}\n" if note.get("title") else ""
        return f"[{' | '.join(head)}]\n{title}{note['content']}"

    def saved(self, note: Row) -> str:
        reasons = note.get("suspicious")
        words = f"({self._why(reasons)})" if reasons else note.get("title") or opening(note["content"])
        return f"- {note['id']}: {words}"

    def change(self, change: Row) -> str:
        if reasons := change.get("suspicious"):
            return f"- {change['change']} {change['id']} ({change['origin']}): ({self._why(reasons)})"
        saver = f"{change['agent']} ({change['origin']})"
        return f"- {change['change']} {change['id']} by {saver}: {change.get('title', '')}"

    def verdict(self, verdict: Row, flagged: Mapping[str, Sequence[str]]) -> str:
        held = "; ".join(self._held(each, flagged) for each in verdict.get("values") or ())
        reasons = verdict.get("suspicious") or _of_all(verdict, flagged)
        about = f"{verdict['kind']} " + (f"({self._why(reasons)})" if reasons else verdict["value"])
        return f"- {about}: {verdict['verdict']}{': ' + held if held else ''} [{', '.join(verdict['ids'])}]"

    def _held(self, held: Row, flagged: Mapping[str, Sequence[str]]) -> str:
        if reasons := held.get("suspicious") or _of_all(held, flagged):
            return f"({self._why(reasons)}) [{', '.join(held['ids'])}]"
        return f"{held.get('attribute') or 'value'} = {held['value']} ({', '.join(held['agents'])})"

    def _why(self, reasons: Sequence[str]) -> str:
        return self._left_out.format(reasons=", ".join(reasons))
