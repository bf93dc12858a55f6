"""The tools of conversations, as rows of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agora.protocol.schemas import NOT_BLANK, arguments, array, text, whole
from agora.protocol.tools.tool import INTEGER, OBJECT, ROWS, STRING, Tool, out

NAME = 200
"""Characters of a conversation's name, and of a speaker's."""

BUDGET = 4_000
"""Tokens of a context, unless the caller says otherwise."""

SUBJECTS = 12
"""Subjects whose facts a context may be asked for."""

_TOKEN = 4_000
_SUMMARY = 100_000
"""Characters; what a summary may have is a setting, in words and tokens, and checked where the summary is."""

_NAMED: dict[str, Any] = {"pattern": NOT_BLANK, "maxLength": NAME}
_NAMESPACE = text("Scope. Default: this project.", minLength=1, maxLength=256)
_STRATEGIES = ["buffer", "summary", "facts", "semantic", "all"]


def _place_of(given: Mapping[str, Any]) -> str | None:
    from agora.memory.conversations.tokens import read  # noqa: PLC0415 - a client's first messages need none

    return read(given["token"]).namespace


CONVERSATION_TOOLS: tuple[Tool, ...] = (
    Tool(
        "session_append",
        "Append a message",
        "Keep a message of a conversation, word for word and in order, under a name that you choose. Use it when a"
        " later session or another agent should know of it. Returns id and number in the conversation (`seq`);"
        " `folded`: messages that went into its rolling summary now; `summary_due`, if rules wrote that: write a"
        " better one of its text, for session_summarize; `remembered`: facts taken from it, if that is set;"
        " `problems`: what was left undone, the message is kept. Limits: 128 kB, names 200 characters.",
        arguments(
            ("session", "role", "content"),
            session=text("Name of the conversation, new or known.", **_NAMED),
            role={
                "type": "string",
                "enum": ["user", "assistant", "system", "tool"],
                "description": "Whose turn it is.",
            },
            content=text("What was said.", pattern=NOT_BLANK),
            speaker=text("Who said it, if several take part.", **_NAMED),
            occurred_at=text("As for agora_save. Default: now.", maxLength=64),
            metadata={"type": "object", "maxProperties": 64, "description": "Your own fields, at most 16 kB."},
            namespace=_NAMESPACE,
            strategy={
                "type": "string",
                "enum": _STRATEGIES,
                "description": "What its contexts have from now on.",
            },
            agent=text("Who appends. Default: the client's name.", pattern=NOT_BLANK, maxLength=128),
        ),
        out(
            id=STRING,
            session=STRING,
            seq=INTEGER,
            folded=OBJECT,
            summary_due=OBJECT,
            remembered=ROWS,
            problems=ROWS,
        ),
        claims=("agent", "session"),
        recalled=("summary_due", "remembered", "problems"),
    ),
    Tool(
        "session_context",
        "Context of a conversation",
        "What the next turn of a conversation needs: the summary of its older part, facts of who speaks, with a query"
        " the older messages that bear on it, the newest verbatim. Use it when a conversation goes on, here or in"
        " another process. Returns `messages`, ready for a model; which messages `relevant` and `last` are (`cut`: in"
        " part); `omitted`: how many are given neither so nor by the summary; summary_due as session_append. Limit:"
        " max_tokens for the messages as JSON, the oldest left out first.",
        arguments(
            ("session",),
            session=text("Name of the conversation.", **_NAMED),
            max_tokens=whole("Hard limit, in tokens of 4 bytes.", 50, 1_000_000, BUDGET),
            query=text("What the next turn is about.", pattern=NOT_BLANK),
            namespace=_NAMESPACE,
            subjects=array(
                "Give facts of these too.",
                {"type": "string", **_NAMED},
                maxItems=SUBJECTS,
            ),
            strategy={"type": "string", "enum": _STRATEGIES, "description": "What to give. Default: as appended."},
            form={
                "type": "string",
                "enum": ["messages", "parts"],
                "default": "messages",
                "description": "parts: texts with ids and times in rows.",
            },
        ),
        out(
            session=STRING,
            strategy=STRING,
            total=INTEGER,
            messages=ROWS,
            tokens=INTEGER,
            omitted=INTEGER,
            facts=STRING,
            summary=OBJECT,
            relevant=ROWS,
            last=ROWS,
            summary_due=OBJECT,
            problems=ROWS,
        ),
        idempotent=True,
        recalled=("messages", "facts", "summary", "relevant", "last", "summary_due", "problems"),
    ),
    Tool(
        "session_summarize",
        "Replace a summary",
        "Put a summary that you wrote in the place of the one that rules made. Use it when a result has summary_due:"
        " summarise its text, in its language, within its max_words and max_tokens. Returns version and range."
        " Refused: numbers, paths and ids that neither the old summary nor the messages have (they are listed), and a"
        " token of a summary that was changed since. Limits: 200 words, 512 tokens by default.",
        arguments(
            ("token", "summary"),
            token=text("As summary_due gave it.", pattern=NOT_BLANK, maxLength=_TOKEN),
            summary=text("The new summary.", pattern=NOT_BLANK, maxLength=_SUMMARY),
        ),
        out(session=STRING, version=INTEGER, range={"type": "array", "items": INTEGER}, written_by=STRING),
        verbatim=("token",),
        place=_place_of,
    ),
)
