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
        "Call a tool of another MCP server (a backend): issues, browsers, files, databases, … Name the backend or the"
        " tool as target, or say in words what you want done: the best tool is called if it is clearly ahead, else"
        " nothing is called and `candidates` has the best five with scores and input schemas: call again with target"
        " and tool. Arguments are checked against the tool's schema first. Returns matched_by, backend, tool, content,"
        " structured, is_error (the tool failed), cached with its age, seconds. `cut`: the result is longer, agora_get"
        " reads on. Changing calls are never repeated: outcome_unknown says that one may have happened. Limits: 50 kB"
        " of text at once, 60 s.",
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
            not_searched=ROWS,
            degraded=STRINGS,
            dry_run=_BOOLEAN,
        ),
        open_world=True,
        recalled=("content", "structured", "candidates"),
        verbatim=("arguments",),
    ),
    Tool(
        "agora_broadcast",
        "Ask many MCP servers",
        "Call one tool of every backend that has it, all at once. For reading tools; a changing one is called only"
        " where its backend's configuration allows it. Returns one row a backend: its result, or its error, and the"
        " seconds it took; a slow or broken one delays the others no longer than its own timeout. Limits: 50 kB of"
        " text in all.",
        arguments(
            ("tool",),
            tool=text("The name of the tool.", pattern=NOT_BLANK, maxLength=256),
            arguments=_ARGUMENTS | {"description": "Its arguments, the same for all."},
            backends=array("Only these.", _BACKEND, minItems=1, maxItems=64),
        ),
        out(results=ROWS, not_asked=ROWS, seconds=_NUMBER),
        open_world=True,
        recalled=("results",),
        verbatim=("arguments",),
    ),
    Tool(
        "agora_backends",
        "List MCP servers",
        "Which other MCP servers can be reached and how they are: state, health, latency, number of tools, last error,"
        " quarantined tools (a person has to approve what they changed). With a query, the tools that fit it best, each"
        " with the tokens its schema costs; agora_route with dry_run shows a schema.",
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
