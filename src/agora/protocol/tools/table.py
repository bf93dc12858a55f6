"""Every tool as a row of data: what a client sees and what a call is checked against."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from agora.errors import ConfigError
from agora.model.caller import RANKS
from agora.protocol.schemas import ID, KIND, NOT_BLANK, READABLE, arguments, array, text, whole
from agora.protocol.tools.conversations_table import CONVERSATION_TOOLS
from agora.protocol.tools.facts_table import FACT_TOOLS
from agora.protocol.tools.gateway_table import GATEWAY
from agora.protocol.tools.tool import INTEGER, OBJECT, ROWS, STRING, STRINGS, Tool, out

_ID = {"type": "string", "pattern": ID}
_TAG = {"type": "string", "pattern": NOT_BLANK, "maxLength": 64}
_NAME = {"type": "string", "pattern": NOT_BLANK, "maxLength": 128}
_KIND = {"type": "string", "pattern": KIND}
_NAMESPACE = text(
    "Scope: a project as owner/repo, or `shared`. Default: this project.",
    minLength=1,
    maxLength=256,
)
_SEARCHED = text(
    "Search this scope alone. Default: this project and `shared`.",
    minLength=1,
    maxLength=256,
)
_TIME = "ISO 8601 (local time), today, yesterday, or an age: 7d"
_IDS = array("Ids: n_…, f_…", _ID, minItems=1, maxItems=100)
_METADATA = {"type": "object", "maxProperties": 64}


NOTES: tuple[Tool, ...] = (
    Tool(
        "agora_save",
        "Save a note",
        "Save something worth knowing later, by you or any other agent: a decision, a cause, a fix, a convention. One"
        " self-contained text, kept word for word but for secrets. Returns id, status (created; updated: a new version"
        " of `key`; duplicate: the text was there, you are a saver too; contested: `contests`, of higher origin,"
        " remains the value, yours stands beside it) and related notes. On disk before the answer. Limits: 128 kB,"
        " 32 tags.",
        arguments(
            ("content",),
            content=text("The text.", pattern=NOT_BLANK),
            title=text("A short title.", pattern=NOT_BLANK, maxLength=300),
            tags=array("Labels, in any case.", _TAG, maxItems=32),
            namespace=_NAMESPACE,
            kind=text("What it is: note, decision, bug, …", default="note", pattern=KIND),
            metadata=_METADATA | {"description": "Your own fields, at most 16 kB."},
            agent=text("Who saves. Default: the client's name.", pattern=NOT_BLANK, maxLength=128),
            session=text("Conversation. Default: this connection.", pattern=NOT_BLANK, maxLength=256),
            occurred_at=text("When it happened: " + _TIME, maxLength=64),
            confidence={"type": "number", "minimum": 0, "maximum": 1, "description": "How sure you are."},
            expires_in={
                "type": ["integer", "string"],
                "maxLength": 32,
                "description": "Lifetime: seconds, or 15m, 12h, 30d, 2w.",
            },
            key=text(
                "Name of what changes: saving it again adds a version.",
                pattern=NOT_BLANK,
                maxLength=200,
            ),
            origin={
                "type": "string",
                "enum": list(RANKS),
                "description": "Its origin, if lower than yours.",
            },
        ),
        out(
            id=STRING,
            status={"enum": ["created", "updated", "duplicate", "contested"]},
            contests=STRING,
            duplicate_of=STRING,
            supersedes=STRING,
            version=INTEGER,
            related=ROWS,
            sequence=INTEGER,
        ),
        claims=("agent", "session"),
        recalled=("related",),
    ),
    Tool(
        "agora_query",
        "Query the notes",
        "Find what any agent saved, facts too, by meaning and by words. Use it before work and when you meet an error"
        " or a choice. Returns the best notes with score 0..1 (comparable), text, agent, session,"
        " dates, tags; `omitted` counts what did not fit; a long text is `cut` around its best passage, agora_get has"
        " the whole. Forgotten, expired and superseded notes never come back. English is found best."
        " Limits: 10,000 characters, 50 notes, 4,000 tokens by default.",
        arguments(
            ("query",),
            query=text("A question or a few words.", pattern=NOT_BLANK),
            top_k=whole("Most notes to return.", 1, 50, 5),
            namespace=_SEARCHED,
            tags=array("Only notes with all of these.", _TAG, maxItems=32),
            agents=array("Only notes that any of these saved.", _NAME, maxItems=32),
            kinds=array("Only these kinds.", _KIND, maxItems=32),
            metadata=_METADATA | {"description": "Only notes with these top-level values."},
            since=text("Not before: " + _TIME, maxLength=64),
            until=text("Before: as since; a day counts whole.", maxLength=64),
            min_score={"type": "number", "minimum": 0, "maximum": 1, "description": "Leave out what scores less."},
            max_tokens=whole("Hard limit for the texts, in tokens of 4 bytes.", 100, 100_000, 4000),
            mode={
                "type": "string",
                "enum": ["hybrid", "semantic", "lexical"],
                "default": "hybrid",
                "description": "Meaning and words, meaning alone, words alone.",
            },
            explain={"type": "boolean", "default": False, "description": "Add the parts of each score."},
        ),
        out(
            results={
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": STRING,
                        "type": STRING,
                        "title": STRING,
                        "content": STRING,
                        "score": {"type": "number"},
                        "agent": STRING,
                        "session": STRING,
                        "origin": {"enum": ["user", "agent", "tool", "web"]},
                        "suspicious": STRINGS,
                        "created_at": STRING,
                        "tags": STRINGS,
                        "cut": {"type": "boolean"},
                        "tokens": INTEGER,
                    },
                },
            },
            omitted=INTEGER,
            namespaces=STRINGS,
            mode=STRING,
            cached={"enum": [None, "L1", "L2"]},
            sequence=INTEGER,
        ),
        read_only=True,
        idempotent=True,
        recalled=("results",),
    ),
    Tool(
        "agora_get",
        "Get notes by id",
        "Read notes and facts whole by id: when a result was cut, for the history of a key, or on in a backend's long"
        " result (r_…#byte). Returns them; unknown, forgotten, expired and purged ids apart, never an error. Limit: 100"
        " ids.",
        arguments(
            ("ids",), ids=array("As n_…, m_…", {"type": "string", "pattern": READABLE}, minItems=1, maxItems=100)
        ),
        out(
            notes=ROWS,
            results=ROWS,
            unknown=STRINGS,
            forgotten=STRINGS,
            expired=STRINGS,
            purged=STRINGS,
            sequence=INTEGER,
        ),
        read_only=True,
        idempotent=True,
        recalled=("notes", "results"),
    ),
    Tool(
        "agora_crossref",
        "Compare what agents know",
        "Compare what different agents say about a question or a note. Use it when notes may contradict each other,"
        " or to catch up. Returns positions (what each agent said last), timeline (superseded notes too), anchors that"
        " notes share (path, symbol, commit, url, error, issue), verdicts per key or anchor (contested; agree; differ:"
        " the values and whose; superseded; single source; none where the texts do not tell), and changed_by_others"
        " since you last read. Who repeats what it read here is `echo_of` that note and not `independent`."
        " Limits: 50 notes, 30 anchors, 30 verdicts, 20 changes.",
        arguments(
            (),
            query=text("A question or a few words; or give id.", pattern=NOT_BLANK),
            id=text("A note: its key, its anchors and what is near.", pattern=ID),
            agents=array("Only what these agents saved or changed.", _NAME, maxItems=32),
            since=text("Only notes and changes not before: " + _TIME, maxLength=64),
            namespace=_SEARCHED,
        ),
        out(
            notes=INTEGER,
            positions=ROWS,
            positions_omitted=INTEGER,
            timeline=ROWS,
            timeline_omitted=INTEGER,
            anchors=ROWS,
            anchors_omitted=INTEGER,
            verdicts=ROWS,
            verdicts_omitted=INTEGER,
            changed_by_others=OBJECT,
            namespaces=STRINGS,
            sequence=INTEGER,
        ),
        read_only=True,
        idempotent=True,
        recalled=("positions", "timeline", "anchors", "verdicts", "changed_by_others"),
    ),
    Tool(
        "agora_forget",
        "Forget notes",
        "Hide notes that are wrong or no longer wanted from every query, at once. Without dry_run=false it only"
        " previews. Returns the count, at most 20 of the notes, unknown ids, and `protected` ones: of higher origin,"
        " they stay. Conditions add up; without ids they apply to this project unless a namespace is given."
        " agora_restore undoes it. Limit: 100 ids.",
        arguments(
            (),
            ids=_IDS,
            tags=array("Notes with all of these.", _TAG, maxItems=32),
            agent=text("Notes that this agent alone saved.", pattern=NOT_BLANK, maxLength=128),
            namespace=_NAMESPACE,
            before=text("Notes from before: " + _TIME, maxLength=64),
            dry_run={"type": "boolean", "default": True, "description": "false to really forget."},
            reason=text("Why; kept with the note.", maxLength=500),
        ),
        out(
            dry_run={"type": "boolean"},
            count=INTEGER,
            notes=ROWS,
            unknown=STRINGS,
            already_forgotten=STRINGS,
            kept_for_other_savers=INTEGER,
            protected=STRINGS,
            sequence=INTEGER,
        ),
        destructive=True,
        idempotent=True,
        recalled=("notes",),
    ),
    Tool(
        "agora_restore",
        "Restore forgotten notes",
        "Bring forgotten notes back: the undo of agora_forget. Returns what happened to each id: restored,"
        " restored_as_history (a newer version of its key is current), not_forgotten, expired, purged (gone for good),"
        " duplicates (the same text was saved again: that note stays), protected (a higher origin forgot it), unknown;"
        " an error if all are unknown."
        " Limit: 100 ids.",
        arguments(("ids",), ids=_IDS),
        out(
            restored=STRINGS,
            restored_as_history=STRINGS,
            not_forgotten=STRINGS,
            expired=STRINGS,
            purged=STRINGS,
            duplicates=OBJECT,
            protected=STRINGS,
            unknown=STRINGS,
            sequence=INTEGER,
        ),
        idempotent=True,
    ),
    Tool(
        "agora_status",
        "Status",
        "Whether Agora is well, and what it holds. Use it when an answer surprises or a call fails."
        " Returns health, every problem, counts of notes, agents and namespaces, index, model, sizes, paths."
        " Limit: 8 kB.",
        arguments(),
        out(
            health={"enum": ["ok", "degraded"]},
            problems=ROWS,
            notes=OBJECT,
            agents=OBJECT,
            namespaces=OBJECT,
            index=OBJECT,
            store=OBJECT,
            model=OBJECT,
            version=STRING,
        ),
        read_only=True,
        idempotent=True,
        recalled=("agents", "namespaces"),
    ),
)

TABLE = (*NOTES, *FACT_TOOLS, *CONVERSATION_TOOLS)
"""The tools of the memory, which every connection has."""

PIN = Tool(
    "agora_pin",
    "Pin notes",
    "Mark current notes of the user's as pinned, or no longer: a pinned note has no expiry. For connections of"
    " origin user alone; others get the error authority_required. Returns the ids by what became of them. Limit:"
    " 100 ids.",
    arguments(
        ("ids",),
        ids=_IDS,
        pinned={"type": "boolean", "default": True, "description": "false to unpin."},
    ),
    out(
        pinned={"type": "boolean"},
        changed=STRINGS,
        already=STRINGS,
        not_current=STRINGS,
        not_user=STRINGS,
        unknown=STRINGS,
        sequence=INTEGER,
    ),
    idempotent=True,
)
"""For the user's own programs. It is not listed: others have no use for it, and what is listed costs every client."""

BY_NAME = {tool.name: tool for tool in (*TABLE, *GATEWAY)}
"""The tools that a client is told of; those of the gateway where there are backends."""

CALLABLE = BY_NAME | {PIN.name: PIN}

CORE = ("agora_save", "agora_query", "agora_get", "agora_forget", "agora_status")
"""The profile `core`: what an agent needs day by day, in less than 8 kB."""


def offered(profile: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of a profile, in the order of the table: `all`, `core`, or the names of tools.

    Raises: ConfigError for a name that there is not.
    """
    names = {name for word in profile for name in {"all": tuple(BY_NAME), "core": CORE}.get(word, (word,))}
    if unknown := sorted(names - set(BY_NAME)):
        near = difflib.get_close_matches(unknown[0], [*BY_NAME, "all", "core"], 1)
        raise ConfigError(
            f"tools.profile: there is no tool {unknown[0]!r}",
            hint=f"Did you mean {near[0]}?" if near else f"Write all, core, or names: {', '.join(BY_NAME)}.",
        )
    return tuple(tool for tool in BY_NAME.values() if tool.name in names)
