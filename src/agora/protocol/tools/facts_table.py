"""The tools of facts, as rows of the table."""

from __future__ import annotations

from typing import Any

from agora.protocol.schemas import NOT_BLANK, Schema, arguments, text, whole
from agora.protocol.tools.tool import INTEGER, OBJECT, ROWS, STRING, STRINGS, Tool, out

NAME = 200
"""Characters of a subject or a key."""

BUDGET = 4_000
"""Tokens of what a `recall` tells, unless the caller says otherwise."""

FACTS = 50
"""Facts that a `recall` tells, unless the caller says otherwise."""

_TIME = "ISO 8601 (local time), today, yesterday, or an age: 7d"
_NAMED: dict[str, Any] = {"pattern": NOT_BLANK, "maxLength": NAME}
_ALIAS = text("As subject.", **_NAMED)
_NAMESPACE = text("Scope. Default: this project.", minLength=1, maxLength=256)
_AGENT = text("Who says so.", pattern=NOT_BLANK, maxLength=128)
_SESSION = text("Conversation.", pattern=NOT_BLANK, maxLength=256)
_VALUE: Schema = {
    "type": ["string", "number", "boolean", "array", "object"],
    "description": "What it is.",
}

FACT_TOOLS: tuple[Tool, ...] = (
    Tool(
        "remember",
        "Remember a fact",
        "Keep what holds of somebody or something: key -> value, as a preference, name, port, deadline. Use it when one"
        " current value matters; agora_save is for texts. Saying it anew replaces the value; history keeps the old one."
        " Returns id and status: stored; corroborated (`count` say so); superseded (`replaced` held until now);"
        " contested (`stands`, of higher origin, remains the value, yours stands beside it); added (one of several:"
        " multi). `late`: a newer one begins at `until`. An equal value with valid_to in the past ends. Limits: value"
        " 16 kB, names 200 characters.",
        arguments(
            ("key", "value"),
            key=text("As editor, database port.", **_NAMED),
            value=_VALUE,
            subject=text("Who or what it is about. Default: `user`, who talks to you.", **_NAMED),
            userId=_ALIAS,
            namespace=_NAMESPACE,
            valid_from=text("Since when it holds. Default: now. " + _TIME, maxLength=64),
            valid_to=text("When it ceases to hold: as valid_from.", maxLength=64),
            expires_in={
                "type": ["integer", "string"],
                "maxLength": 32,
                "description": "Lifetime: seconds, or 15m, 12h, 30d, 2w.",
            },
            multi={"type": "boolean", "description": "true: the key has several values. Default: as before."},
            agent=_AGENT,
            session=_SESSION,
        ),
        out(
            id=STRING,
            status={"enum": ["stored", "corroborated", "superseded", "contested", "added"]},
            subject=STRING,
            key=STRING,
            value={},
            count=INTEGER,
            replaced=ROWS,
            stands=OBJECT,
            late={"type": "boolean"},
            until=STRING,
            sequence=INTEGER,
        ),
        claims=("agent", "session"),
        recalled=("replaced", "stands"),
        nulls={
            "value": "To say that it holds no more, give the old value with valid_to; agora_forget takes a fact back."
        },
        pair=("key", "value"),
    ),
    Tool(
        "recall",
        "Recall facts",
        "What holds of somebody or something, now or `as_of` then. Use it when a conversation begins, and before you"
        " ask what was told already. Returns facts, pinned and best founded first; `profile`, the same in lines for a"
        " system prompt, without what tools and websites said or what looks like instructions; with include_history"
        " what held before (state: superseded, ended, expired, contested, upcoming, retracted). `omitted` did not fit;"
        " a long value is `cut`: agora_get has the whole. Limits: 50 facts, 4,000 tokens by default.",
        arguments(
            (),
            subject=text("Who or what. Default: everybody.", **_NAMED),
            userId=_ALIAS,
            key=text("Only this key.", **_NAMED),
            namespace=text("Scope. Default: this project and `shared`.", minLength=1, maxLength=256),
            as_of=text("What held then: " + _TIME, maxLength=64),
            known_at=text("By what was known then: as as_of.", maxLength=64),
            include_history={"type": "boolean", "default": False, "description": "Add what held before."},
            max_tokens=whole("Hard limit, in tokens of 4 bytes.", 100, 100_000, BUDGET),
            limit=whole("Most facts to return.", 1, 500, FACTS),
        ),
        out(
            profile=STRING,
            facts=ROWS,
            history=ROWS,
            omitted=INTEGER,
            history_omitted=INTEGER,
            as_of=STRING,
            known_at=STRING,
            namespaces=STRINGS,
            sequence=INTEGER,
        ),
        read_only=True,
        idempotent=True,
        recalled=("profile", "facts", "history"),
    ),
    Tool(
        "remember_from",
        "Remember facts from a text",
        "Keep the facts that a text states plainly, not what it asks, guesses or gives as an example. Use it when"
        " somebody tells you several at once; often there are none. Returns `remembered`, as remember does, with the"
        " quote of each, and `skipped` with reasons. Limit: 128 kB.",
        arguments(
            ("text",),
            text=text("What was said, word for word.", pattern=NOT_BLANK),
            subject=text("Who speaks. Default: `user`.", **_NAMED),
            userId=_ALIAS,
            namespace=_NAMESPACE,
            occurred_at=text("When it was said: " + _TIME, maxLength=64),
            agent=_AGENT,
            session=_SESSION,
        ),
        out(remembered=ROWS, skipped=ROWS, extracted_by=STRING, problem=STRING, sequence=INTEGER),
        claims=("agent", "session"),
        recalled=("remembered", "skipped"),
    ),
)
