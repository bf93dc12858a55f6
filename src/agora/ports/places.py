"""Every place that holds what a note says, as data: a purge empties each, checks look into each.

A table or a file that is not named here holds none of it. Tests compare this list with the schema and with a data
folder, so that nothing new can hold content without being purged.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """One place: what of a note it holds, how a purge empties it, how that is checked.

    `tables` are those of the store that are this place; what one of their rows says is of the item that the row
    belongs to. `files` are patterns of files in the data folder, for a look at their raw bytes. `locked`: SQLite holds
    locks on these files, which POSIX lets go when a process closes any descriptor of them.
    """

    name: str
    holds: str
    emptied: str
    checked: str
    tables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    locked: bool = False


_DELETED = "its rows are deleted"
_NO_ROW = "no row belongs to a purged item"
_BYTES = "samples of what was purged are looked for in the bytes"

ROWS = Place(
    "rows",
    "key, kind, session, confidence, expiry, reason for forgetting, hashes of the text",
    "the row stays as a skeleton: id, namespace, times, and its place among versions that stay",
    "no field of a skeleton holds anything",
    ("items",),
)
TEXTS = Place("texts", "text, title, metadata", _DELETED, _NO_ROW, ("texts",))
SAVERS = Place("savers", "what each saver gave; who they were stays in the journal", _DELETED, _NO_ROW, ("savers",))
TAGS = Place("tags", "tags", _DELETED, _NO_ROW, ("item_tags",))
METADATA = Place("metadata", "keys of the metadata and hashes of its values", _DELETED, _NO_ROW, ("item_metadata",))
PASSAGES = Place("passages", "where the passages of a text begin and end", _DELETED, _NO_ROW, ("passages",))
VECTORS = Place("vectors", "a vector for each passage and encoder", _DELETED, _NO_ROW, ("vectors",))
FULL_TEXT = Place(
    "full text",
    "the words of title and text; of deleted rows until segments are merged",
    "its rows are deleted, then all segments are merged into one",
    _NO_ROW,
    tuple(
        f"{table}{part}"
        for table in ("fulltext", "fulltext_spare")
        for part in ("", "_config", "_content", "_data", "_docsize", "_idx")
    ),
)
STATISTICS = Place(
    "statistics",
    "how many passages hold each word",
    "words of no passage go",
    "no word without a passage",
    ("term_stats", "term_stats_spare"),
)
READS = Place("reads", "which session was given the note", _DELETED, _NO_ROW, ("reads",))
FACTS = Place(
    "facts",
    "the value of a statement, what it is compared by, its end and its expiry",
    "value, sameness and ends go; its beginning and whose word it was stay while anything is said of the same key",
    "no purged statement holds anything",
    ("facts",),
)
SLOTS = Place(
    "fact slots",
    "subjects and keys of facts",
    "the row goes with the last statement of it",
    "no row without a statement that was not purged",
    ("fact_slots",),
)
CONVERSATIONS = Place(
    "conversations",
    "the name of a conversation, how its context is made, the number of its last message",
    "the row goes with the last message of the conversation",
    "no row without a message",
    ("conversations",),
)
SUMMARIES = Place("summaries", "which messages a summary covers, who wrote it", _DELETED, _NO_ROW, ("summaries",))
JOURNAL = Place(
    "journal",
    "images of metadata, tags and reasons, the hash of the text and the nonce that binds them to the chain",
    "the payloads are deleted; the chain of changes stays whole",
    "no payload says anything of a purged item",
    ("journal_payload",),
)
KEPT = Place(
    "kept results",
    "long results of other servers' tools, any of which may say what the note says",
    "every row is deleted",
    "no row is older than the purge",
    ("kept_results",),
)
CALLS = Place(
    "calls",
    "hashes of the arguments of calls, and the nonces that bind them to the chain",
    "the nonces are deleted; the chain of calls stays whole, and no guess can be tested",
    "no nonce is older than the purge",
    ("calls",),
)
FILE = Place(
    "database file",
    "what was deleted or overwritten, in free pages and between rows",
    "the file is written anew from its rows",
    _BYTES,
    files=("agora.db",),
    locked=True,
)
LOG = Place(
    "write-ahead log",
    "pages as they were before a change",
    "it is written back and cut to nothing, once nobody reads an older state",
    _BYTES,
    files=("agora.db-wal",),
)
INDEX = Place(
    "vector index",
    "vectors and codes made of them, in files beside the store or in another program",
    "the index drops the rows and the files that held them",
    _BYTES,
    files=("index/**/*", "chroma/**/*"),
    locked=True,
)
UNUSED_INDEX = Place(
    "unused index",
    "vectors in the folder of an index that the settings name no longer",
    "the folder is deleted: it can be built anew at any time",
    "the folder is gone",
)
CACHE = Place(
    "cache",
    "answers that showed the note, vectors of questions",
    "every entry is deleted and the file written anew",
    _BYTES,
    files=("cache.db", "cache.db-wal"),
    locked=True,
)
LOGS = Place(
    "logs",
    "nothing: ids, names of namespaces, counts and kinds of errors alone",
    "there is nothing to empty",
    _BYTES,
    files=("logs/*",),
)

PLACES = (
    *(ROWS, TEXTS, SAVERS, TAGS, METADATA, PASSAGES, VECTORS, FULL_TEXT, STATISTICS, READS),
    *(FACTS, SLOTS, CONVERSATIONS, SUMMARIES, JOURNAL),
    *(KEPT, CALLS, FILE, LOG, UNUSED_INDEX, INDEX, CACHE, LOGS),
)
"""In the order in which a purge empties them."""

WITHOUT_CONTENT = {
    "meta": "the store's id, and whether a purge is unfinished",
    "namespaces": "names of namespaces, which the journal's chain is made of",
    "agents": "names of agents, as above",
    "clients": "names and versions of programs, as above",
    "encoders": "models",
    "aliases": "ids of notes of other stores",
    "journal": "who changed which id when; commitments that nothing can be tested against",
    "namespace_seq": "numbers",
    "namespace_stats": "numbers",
    "namespace_stats_spare": "numbers",
    "tool_pins": "what tools of other servers say of themselves",
    "tool_vectors": "vectors of that",
    "read_marks": "who read up to which change",
    "pins": "which notes are pinned, and since when",
    "generations": "names and numbers of index files",
    "segments": "as above",
    "sqlite_sequence": "numbers",
    "sqlite_stat1": "numbers",
}
"""Tables that hold nothing that a note says, and what they hold."""
