"""What the memory puts into a prompt: notes, comparisons and changes, as text that a model reads as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agora.memory.browsing import Browsing
from agora.model.browse import Listing
from agora.model.crossref import Topic
from agora.protocol.context import Calling
from agora.protocol.tools.handlers import Tools
from agora.protocol.tools.shapes import note as shaped
from agora.protocol.tools.shapes import opening

_TOKENS = 6_000
_RECENT = 20
_CHANGES = 50
_NOTHING = {"en": "(nothing)", "it": "(niente)"}


class Filling:
    """Answers what a template asks of the memory, for one caller. Blocking: run it in a worker thread."""

    def __init__(self, tools: Tools, browsing: Browsing) -> None:
        self._tools = tools
        self._browsing = browsing

    def fill(self, wanted: frozenset[str], topic: str | None, language: str, calling: Calling) -> dict[str, str]:
        """A text for each of the names in `wanted`; what there is nothing of says so.

        Raises: what the memory raises: a prompt is never filled with half of what there is.
        """
        caller, deadline = calling.caller(), calling.deadline
        namespaces = caller.scope.searched()
        found: dict[str, str] = {}
        if "notes" in wanted and topic:
            from agora.memory.crossref import FLOOR  # noqa: PLC0415 - a server that starts has no use for it

            asked = {"query": topic, "top_k": 20, "max_tokens": _TOKENS, "min_score": FLOOR}
            found["notes"] = "\n\n".join(map(_note, self._tools.answer("agora_query", asked, calling)["results"]))
        elif "notes" in wanted:
            page = self._browsing.page(Listing(namespaces, limit=_RECENT), caller, deadline)
            found["notes"] = "\n\n".join(_note(shaped(note, opening(note.content, 600))) for note in page.notes)
        if "verdicts" in wanted and topic:
            verdicts = self._tools.answer("agora_crossref", {"query": topic}, calling)["verdicts"]
            found["verdicts"] = "\n".join(map(_verdict, verdicts))
        if "saved" in wanted:
            mine = Listing(namespaces, session=caller.session, limit=_RECENT)
            page = self._browsing.page(mine, caller, deadline)
            found["saved"] = "\n".join(f"- {note.id}: {note.title or opening(note.content)}" for note in page.notes)
        if "changes" in wanted:
            changes = self._browsing.changes(Topic(namespaces), caller, deadline, _CHANGES)
            found["changes"] = "\n".join(
                f"- {each.operation} {each.id} by {each.agent}: {opening(each.title or '')}" for each in changes.newest
            )
        nothing = _NOTHING.get(language, _NOTHING["en"])
        # A section of verdicts is left out where there are none; the others stand there and say so.
        return {name: text or ("" if name == "verdicts" else nothing) for name, text in found.items()}


def _note(note: Mapping[str, Any]) -> str:
    head = [str(note[name]) for name in ("id", "agent", "created_at", "namespace") if note.get(name)]
    head += [f"{name}={note[name]}" for name in ("key", "version") if note.get(name)]
    title = f"{note['title']}\n" if note.get("title") else ""
    return f"[{' | '.join(head)}]\n{title}{note['content']}"


def _verdict(verdict: Mapping[str, Any]) -> str:
    values: Sequence[Mapping[str, Any]] = verdict.get("values") or ()
    held = "; ".join(
        f"{each.get('attribute') or 'value'} = {each['value']} ({', '.join(each['agents'])})" for each in values
    )
    ids = ", ".join(verdict["ids"])
    return f"- {verdict['kind']} {verdict['value']}: {verdict['verdict']}{': ' + held if held else ''} [{ids}]"
