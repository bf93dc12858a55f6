"""The tools that reach other MCP servers, as rows of the table. They are offered where there are any such servers."""

from __future__ import annotations

from agora.protocol.schemas import NOT_BLANK, arguments, array, text
from agora.protocol.tools.tool import INTEGER, OBJECT, ROWS, STRING, STRINGS, Tool, out

_BACKEND = {"type": "string", "pattern": NOT_BLANK, "maxLength": 64}
_ARGUMENTS = {"type": "object", "maxProperties": 256}
_NUMBER = {"type": "number"}
_BOOLEAN = {"type": "boolean"}

GATEWAY: tuple[Tool, ...] = (
    Tool(
        "agora_route",
        "Use another MCP server",
        "Call a tool of another MCP server (a backend), when you need issues, browsers, files, databases, … Name"
        " backend and tool, or say what you want done: a tool that is clearly ahead is called, else none, and"
        " `candidates` has the best five with their schemas to call again with. Returns backend, tool, matched_by,"
        " content, structured, is_error, cached. `cut`: agora_get reads on. A changing call is never repeated:"
        " outcome_unknown means that it may have happened. Limits: 50 kB of text at once, 60 s.",
        arguments(
            ("target",),
            target=text("A backend, a tool, or what you want done.", pattern=NOT_BLANK, maxLength=2_000),
            tool=text("Which tool of the backend.", pattern=NOT_BLANK, maxLength=256),
            arguments=_ARGUMENTS | {"description": "The tool's arguments."},
            intent=text("What you want done, where target does not say it.", pattern=NOT_BLANK, maxLength=2_000),
            dry_run={"type": "boolean", "default": False, "description": "true: choose and check, call nothing."},
        ),
        out(
            routed=_BOOLEAN,
            matched_by={"enum": ["backend", "tool", "intent", "none"]},
            backend=STRING,
            tool=STRING,
            access={"enum": ["read", "write"]},
            rule=STRING,
            score=_NUMBER,
            margin=_NUMBER,
            content=ROWS,
            structured=OBJECT,
            is_error=_BOOLEAN,
            cut=OBJECT,
            cached={"enum": [None, "L1", "L2"]},
            age_seconds=_NUMBER,
            seconds=_NUMBER,
            attempts=INTEGER,
            note=OBJECT,
            candidates=ROWS,
            more_candidates=INTEGER,
            not_searched=ROWS,
            degraded=STRINGS,
            dry_run=_BOOLEAN,
        ),
        destructive=True,
        open_world=True,
        recalled=("content", "structured", "candidates"),
        verbatim=("arguments",),
    ),
    Tool(
        "agora_broadcast",
        "Ask many MCP servers",
        "Call one tool of every backend that has it, all at once, when the same question goes to many. Changing tools"
        " are left out unless the operator allows them. Returns a row a backend: its result or its error, and its"
        " seconds; a slow one delays the others no longer than its own timeout. Limits: 50 kB of text from each, 60 s.",
        arguments(
            ("tool",),
            tool=text("The name of the tool.", pattern=NOT_BLANK, maxLength=256),
            arguments=_ARGUMENTS | {"description": "Its arguments, the same for all."},
            backends=array("Only these.", _BACKEND, minItems=1, maxItems=64),
        ),
        out(results=ROWS, not_asked=ROWS, seconds=_NUMBER),
        destructive=True,
        open_world=True,
        recalled=("results",),
        verbatim=("arguments",),
    ),
    Tool(
        "agora_backends",
        "List MCP servers",
        "Which other MCP servers can be reached, and how they are. Use it when a call of one fails, or to find a tool."
        " Returns state, health, latency, number of tools, last error and quarantined tools (a person has to approve"
        " what changed in them); with a query the tools that fit best, with the tokens that their schemas cost:"
        " agora_route with dry_run shows a schema. Limit: 10 tools.",
        arguments(
            (),
            query=text("What a tool should do.", pattern=NOT_BLANK, maxLength=2_000),
        ),
        out(backends=ROWS, tools=ROWS, configuration=OBJECT, not_searched=ROWS, degraded=STRINGS),
        read_only=True,
        idempotent=True,
        open_world=True,
        recalled=("backends", "tools"),
    ),
)
