"""What is read of a server, of a tool and of a request when a request looks for its tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agora.model.backend import ToolDefinition

PER_BACKEND: Final = 2
PER_TOOL: Final = 2
"""Texts of a backend and of each of its tools whose vectors are averaged."""

PARTS: Final = 6
"""Parts of a request that are looked for on their own: each one costs a vector."""

_READ = 2_000
"""Characters of a description that are read: a model reads fewer, and a backend must not make words without end."""

_NAME = 200
_HEADLINE = 300
_PROPERTIES = 60
_INTENT = 4_000

_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n\s*\n")
_NAME_JOINERS = re.compile(r"[\s_\-./:@]+")
_PART_ENDS = re.compile(
    r"(?<=[.!?;])\s+|(?<=[。！？；，])|\n+|,\s+"
    r"|,?\s+(?:and\s+then|and|then|also|e\s+poi|e|ed|poi|quindi|anche|и|а\s+затем|затем|потом|также)\s+"
    r"|然后|接着|并且",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[^\S\n]+")
_BREAKS = re.compile(r" ?\n[ \n]*")
_ENUMERATION = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FEWEST_WORDS, _FEWEST_UNSPACED = 3, 4
"""A part with less says too little to be looked for on its own."""


def spoken(name: str) -> str:
    """A name as words, for a model that reads sentences: `github__search_issues` is `github search issues`."""
    return _NAME_JOINERS.sub(" ", name[:_NAME]).strip()


def headline(description: str) -> str:
    """The first sentence or paragraph of a description, at most 300 characters."""
    return _SENTENCE_END.split(_BLANKS.sub(" ", description[:_READ]).strip(), maxsplit=1)[0][:_HEADLINE].strip()


def texts_of(name: str, description: str, tools: Sequence[ToolDefinition]) -> tuple[str, ...]:
    """The texts whose vectors `Catalogue.with_backend` wants, in its order: `PER_BACKEND`, then `PER_TOOL` a tool.

    A tool's first text is all that it says, its second the first sentence alone: the rest is often parameters and
    examples, which pull its vector away from what it is for.
    """
    called = spoken(name)
    offers = ", ".join(spoken(tool.name) for tool in tools)
    found = [f"{called}: {description[:_READ]}", f"{called}: {offers}"[:_READ]]
    for tool in tools:
        said = (tool.description or tool.title or "")[:_READ]
        found += [f"{spoken(tool.name)}: {said}", f"{spoken(tool.name)}: {headline(said)}"]
    return tuple(found)


def words_of(tool: ToolDefinition) -> tuple[tuple[str, float], ...]:
    """What the word index reads of a tool, each with the weight of one of its words."""
    return (
        (tool.name[:_NAME], 2.0),
        ((tool.title or "")[:_NAME], 1.0),
        (tool.description[:_READ], 1.0),
        (" ".join(_properties(tool.input)), 1.0),
    )


def questions(intent: str) -> tuple[str, ...]:
    """A request, and its parts if it has several: sentences, steps and clauses, at most `PARTS`, in order.

    A request that asks for three things names three tools; its vector lies between them and near to none.
    """
    whole = intent[:_INTENT].strip()
    parts = [part for part in dict.fromkeys(_parts(whole)) if part != whole]
    return (whole, *parts[:PARTS]) if len(parts) > 1 else (whole,)


def _parts(text: str) -> Iterator[str]:
    # Without long runs of blanks, over which the pattern for the ends of parts would go again and again.
    for piece in _PART_ENDS.split(_BREAKS.sub("\n", _BLANKS.sub(" ", text))):
        part = _ENUMERATION.sub("", piece).strip(" \t,.;:，。；")
        if len(_WORD.findall(part)) >= _FEWEST_WORDS or len(_UNSPACED.findall(part)) >= _FEWEST_UNSPACED:
            yield part


def _properties(schema: Mapping[str, Any]) -> list[str]:
    given = schema.get("properties")
    return (
        [name[:_NAME] for name in list(given)[:_PROPERTIES] if isinstance(name, str)] if isinstance(given, dict) else []
    )
