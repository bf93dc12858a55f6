"""What has to hold in a store, as tables of data: each kind of damage by its code, and what may be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agora.stores.sqlite.journal import MAKING, SAVING
from agora.stores.sqlite.rows import FOUND

_EXAMPLES = 3

REPAIR = "Run `agora doctor --repair`: it makes this anew from the notes, which are whole."
RESTORE = "Put a backup back: `agora restore-backup FILE`."
TRUST = "Something other than Agora wrote to the store: compare it with a backup before you trust it."


class Kind(NamedTuple):
    """A kind of damage: its code, what is wrong, what to do, and what a repair does; None where it may do nothing."""

    code: str
    what: str
    hint: str
    repair: str | None = None


class Problem(NamedTuple):
    """One kind of damage as it was found: a stable `code`, a `message` with cases and examples, what to do."""

    code: str
    message: str
    hint: str


class Rule(NamedTuple):
    """A kind of damage that one query finds."""

    kind: Kind
    broken: str
    """A query for everything that breaks the rule."""
    since: int = 1
    """The first schema that has what the query asks for."""


_LAYOUT = "(SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)"
SURPLUS_PASSAGE = "i.purged_at IS NOT NULL OR p.layout NOT IN (SELECT layout FROM encoders)"
SURPLUS_VECTOR = (
    # Vectors of an encoder to come may wait beside passages of the present layout.
    "EXISTS (SELECT 1 FROM passages p JOIN encoders e ON e.layout <> p.layout AND e.state = 'active'"
    " WHERE p.id = v.passage_id AND e.id = v.encoder_id)"
)
SURPLUS_METADATA = (
    "EXISTS (SELECT 1 FROM items i WHERE i.id = m.item_id) AND m.item_id NOT IN (SELECT item_id FROM texts)"
)
_BROUGHT = "(json_type(CASE WHEN json_valid({0}.after) THEN {0}.after ELSE '{{}}' END, '$.imported') IS NOT NULL)"
"""Whether a payload is of a save that an import, or a revert, made: at its top, where nobody's metadata comes."""

_IMPORTED = (
    "EXISTS (SELECT 1 FROM journal j JOIN journal_payload p ON p.sequence = j.sequence WHERE j.item_id = {0}.id"
    " AND j.operation IN ('save', 'merge') AND " + _BROUGHT.replace("{0}", "p") + ")"
)
_SAVED_BY = (
    f"EXISTS (SELECT 1 FROM journal j WHERE j.item_id = {{0}}.id AND j.operation IN {SAVING}"
    # By the changes of the note: those of an agent or a session may be all there are.
    " AND +j.agent_id = s.agent_id AND j.client_id = s.client_id AND +j.session = s.session AND j.origin = s.origin)"
)
_FULLTEXT = "builds the full text and its statistics anew from the texts"
_EMBED = "cuts the texts anew and has the model make the vectors that are missing"
_SURPLUS = "deletes them"
_FILE = (
    "Run `agora doctor --repair`: it makes the file anew if every note in it can still be read, and changes nothing if"
    " one cannot."
)
_INDEX = "builds the vector index anew, as `agora reindex` does"

_SETTLE = "draws the ends of statements anew from all that was said of the same key"

UNUSED_SLOT = (
    # A fact that has lost what it states may be of any of them.
    "SELECT l.id FROM fact_slots l WHERE NOT EXISTS (SELECT 1 FROM facts f JOIN items i ON i.id = f.item_id"
    " WHERE f.slot_id = l.id AND i.purged_at IS NULL) AND NOT EXISTS (SELECT 1 FROM items i"
    " WHERE i.type = 'fact' AND i.purged_at IS NULL AND i.id NOT IN (SELECT item_id FROM facts))"
)

FACTS_SINCE = 7
"""The first schema with facts."""

_FIRST = (
    Kind("unreadable", "a check could not be made", _FILE, "makes the file anew, if every note can be read"),
    Kind("file_damaged", "SQLite finds the file damaged", _FILE, "makes the file anew, if every note can be read"),
    Kind("sql_index_damaged", "indexes that disagree with their tables", REPAIR, "builds these SQL indexes anew"),
    Kind("schema_damaged", "tables or indexes that are missing or changed", RESTORE),
    Kind("schema_incomplete", "indexes or derived tables that are missing or changed", REPAIR, "makes them anew"),
    Kind("schema_foreign", "tables, views or triggers that are not Agora's", TRUST),
    Kind("orphan_rows", "rows that belong to nothing", RESTORE),
    Kind("orphan_derived", "derived rows that belong to nothing", REPAIR, "deletes them"),
)

RULES = (
    Rule(
        Kind("no_profile", "store without an active encoder", REPAIR, "activates the encoder with the most vectors"),
        "SELECT 'profile' WHERE NOT EXISTS (SELECT 1 FROM encoders WHERE state = 'active')",
    ),
    Rule(
        Kind("no_identity", "store without an identity", REPAIR, "gives it a new one"),
        "SELECT 'identity' WHERE NOT EXISTS (SELECT 1 FROM meta WHERE key = 'store')",
    ),
    Rule(
        Kind("item_without_text", "notes without their text", RESTORE),
        "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM texts)",
    ),
    Rule(
        Kind("item_without_saver", "notes without provenance", RESTORE),
        "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM savers WHERE n = 0)",
    ),
    Rule(
        Kind("item_without_passage", "notes without a passage", REPAIR, _EMBED),
        "SELECT i.public_id FROM items i JOIN texts t ON t.item_id = i.id WHERE i.purged_at IS NULL"
        f" AND {FOUND} AND i.id NOT IN (SELECT item_id FROM passages WHERE layout = {_LAYOUT} AND n = 0)",
    ),
    Rule(
        Kind("surplus_passage", "passages of purged notes, or of no encoder", REPAIR, _SURPLUS),
        f"SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id WHERE {SURPLUS_PASSAGE}",
    ),
    Rule(
        Kind("surplus_vector", "vectors of passages that another encoder's texts were cut into", REPAIR, _SURPLUS),
        f"SELECT v.id FROM vectors v WHERE {SURPLUS_VECTOR}",
    ),
    Rule(
        Kind("surplus_metadata", "entries in the index of metadata of notes without a text", REPAIR, _SURPLUS),
        f"SELECT key FROM item_metadata m WHERE {SURPLUS_METADATA}",
    ),
    Rule(
        Kind("item_without_journal", "notes of whose saving the journal does not tell", TRUST),
        "SELECT public_id FROM items WHERE id NOT IN"
        f" (SELECT item_id FROM journal WHERE operation IN {MAKING} AND item_id IS NOT NULL)",
    ),
    Rule(
        Kind("saved_unlike_journal", "notes whose id, namespace or savers are not those of their journal", TRUST),
        "SELECT DISTINCT i.public_id FROM journal j JOIN items i ON i.id = j.item_id"
        f" JOIN journal_payload p ON p.sequence = j.sequence WHERE j.operation IN {SAVING}"
        " AND i.purged_at IS NULL AND (j.subject <> i.public_id OR j.namespace_id <> i.namespace_id"
        # Who brings a file in is no saver of what is in it.
        f" OR (NOT {_BROUGHT.format('p')} AND NOT EXISTS (SELECT 1 FROM savers s WHERE s.item_id = i.id"
        " AND s.agent_id = j.agent_id AND s.client_id = j.client_id AND s.session = j.session"
        " AND s.origin = j.origin)"
        # A revert took the saver away: the change says of which savings.
        " AND NOT EXISTS (SELECT 1 FROM journal w JOIN journal_payload t ON t.sequence = w.sequence,"
        " json_each(CASE WHEN json_valid(t.after) THEN t.after ELSE '{}' END, '$.withdrawn') e"
        " WHERE w.item_id = j.item_id AND w.operation = 'withdraw' AND w.sequence > j.sequence"
        " AND e.value = j.sequence)))"
        # Nobody is a saver who has not saved it, or a row of this text that it took the place of; of files, and of rows
        # that were purged since, there is no trace.
        " UNION SELECT i.public_id FROM items i JOIN (SELECT s.item_id FROM savers s JOIN items i ON i.id = s.item_id"
        " WHERE i.purged_at IS NULL"
        f" AND NOT {_SAVED_BY.format('i')} AND NOT {_IMPORTED.format('i')}"
        " AND NOT EXISTS (SELECT 1 FROM items o WHERE o.namespace_id = i.namespace_id AND o.normal_hash = i.normal_hash"
        " AND o.superseded_by = i.id AND (EXISTS (SELECT 1 FROM savers t WHERE t.item_id = o.id"
        " AND t.agent_id = s.agent_id AND t.client_id = s.client_id AND t.session = s.session AND t.origin = s.origin)"
        f" OR {_SAVED_BY.format('o')} OR {_IMPORTED.format('o')}))"
        # With a limit it is looked for first: what follows takes a walk over the namespace.
        " LIMIT -1) strange ON strange.item_id = i.id"
        " WHERE NOT EXISTS (SELECT 1 FROM items o JOIN journal x ON x.item_id = o.id"
        " AND x.operation IN ('supersede', 'settle') JOIN journal y ON y.item_id = i.id AND y.at = x.at"
        " WHERE o.namespace_id = i.namespace_id AND o.purged_at IS NOT NULL)",
    ),
    Rule(
        Kind("state_unlike_journal", "notes that are forgotten or superseded where the journal says otherwise", TRUST),
        "SELECT i.public_id FROM items i JOIN journal j ON j.sequence = (SELECT max(sequence) FROM journal"
        " WHERE item_id = i.id AND operation IN ('forget', 'expire', 'restore')) WHERE i.purged_at IS NULL"
        " AND (i.forgotten_at IS NULL) <> (j.operation = 'restore')"
        " UNION SELECT i.public_id FROM journal j JOIN items i ON i.id = j.item_id"
        # What ends facts is drawn from all of them, and checked against that.
        " WHERE j.operation IN ('supersede', 'settle') AND i.superseded_by IS NULL AND i.purged_at IS NULL"
        " AND i.type <> 'fact'"
        " UNION SELECT i.public_id FROM items i WHERE i.purged_at IS NULL AND i.forgotten_at IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM journal j WHERE j.item_id = i.id AND j.operation IN ('forget', 'expire'))"
        f" AND NOT {_IMPORTED.format('i')}"
        " UNION SELECT i.public_id FROM items i WHERE i.purged_at IS NULL AND i.superseded_by IS NOT NULL"
        " AND i.type <> 'fact' AND NOT EXISTS"
        " (SELECT 1 FROM journal j WHERE j.item_id = i.id AND j.operation IN ('supersede', 'settle'))"
        f" AND NOT {_IMPORTED.format('i')}",
    ),
    Rule(
        Kind("contest_unlike_journal", "notes that are contested where the journal says otherwise", TRUST),
        "SELECT i.public_id FROM items i JOIN journal j ON j.item_id = i.id AND j.operation = 'save'"
        " JOIN journal_payload p ON p.sequence = j.sequence WHERE i.purged_at IS NULL AND json_valid(p.after)"
        " AND i.type <> 'fact' AND (i.contests IS NULL) <> (json_extract(p.after, '$.contests') IS NULL)",
    ),
    Rule(
        Kind("broken_contest", "contested notes that stand beside nothing of their key", RESTORE),
        "SELECT i.public_id FROM items i LEFT JOIN items o ON o.id = i.contests"
        " WHERE i.contests <> 0 AND i.purged_at IS NULL AND (o.id IS NULL OR o.namespace_id <> i.namespace_id"
        " OR (o.purged_at IS NULL AND o.key IS NOT i.key))",
    ),
    Rule(
        Kind("pin_unlike_journal", "notes that are pinned where the journal says otherwise", TRUST),
        # The last change that says so: a save that brought a pinned note in, or a pin.
        "SELECT i.public_id FROM items i LEFT JOIN pins n ON n.item_id = i.id"
        " JOIN journal_payload p ON p.sequence = (SELECT max(sequence) FROM journal WHERE item_id = i.id"
        " AND operation IN ('save', 'pin', 'unpin')) WHERE i.purged_at IS NULL AND json_valid(p.after)"
        " AND (n.item_id IS NULL) <> (json_extract(p.after, '$.pinned') IS NOT 1)",
        since=4,
    ),
    Rule(
        Kind("pin_without_user", "pinned notes that are not the user's, or that expire", TRUST),
        "SELECT i.public_id FROM pins n JOIN items i ON i.id = n.item_id WHERE i.purged_at IS NOT NULL"
        " OR (i.expires_at IS NOT NULL AND i.type <> 'fact')"
        " OR NOT EXISTS (SELECT 1 FROM savers s WHERE s.item_id = i.id AND s.origin = 'user')",
        since=4,
    ),
    Rule(
        Kind("broken_succession", "notes whose place among their versions is wrong", RESTORE),
        "SELECT i.public_id FROM items i LEFT JOIN items after ON after.id = i.superseded_by"
        " LEFT JOIN items before ON before.id = i.supersedes"
        # 0 is no row: an import brought a version whose successor it did not bring. Keys and numbers, not the order of
        # rows, keep a succession from running in a circle: an import may bring the past after the present.
        # What is contested makes way for what stands, which may be older.
        # A purge takes the key and then the neighbours from a skeleton, in two transactions.
        # Facts have no versions: what takes the place of one is another statement.
        " WHERE (i.type <> 'fact' AND i.superseded_by <> 0 AND (i.key IS NOT NULL OR i.purged_at IS NULL)"
        "  AND (after.key IS NULL OR after.key <> ifnull(i.key, after.key)"
        "  OR (i.key IS NOT NULL AND i.contests IS NULL AND after.version <= i.version)"
        "  OR after.namespace_id <> i.namespace_id))"
        " OR (i.superseded_by IS NOT NULL AND i.superseded_at IS NULL)"
        " OR (i.supersedes IS NOT NULL AND before.superseded_by IS NOT i.id)",
    ),
    Rule(
        Kind("orphan_tag", "tags that no saver gave", RESTORE),
        "SELECT tag FROM item_tags t"
        " WHERE NOT EXISTS (SELECT 1 FROM savers s WHERE s.item_id = t.item_id AND s.n = t.saver)",
    ),
    Rule(
        Kind("purged_text", "purged notes whose text is still there", TRUST),
        "SELECT public_id FROM items WHERE purged_at IS NOT NULL AND id IN (SELECT item_id FROM texts)",
    ),
    Rule(
        Kind("passage_without_vector", "passages without a vector", REPAIR, _EMBED),
        "SELECT p.id FROM passages p JOIN encoders e ON e.state = 'active' AND e.layout = p.layout"
        " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.encoder_id = e.id)",
    ),
    Rule(
        Kind(
            "namespace_sequence",
            "namespaces whose last change is not the journal's",
            REPAIR,
            "takes the numbers from the journal",
        ),
        "SELECT n.name FROM namespaces n LEFT JOIN namespace_seq s ON s.namespace_id = n.id"
        " WHERE s.sequence IS NOT (SELECT max(sequence) FROM journal j WHERE j.namespace_id = n.id)",
    ),
    Rule(
        Kind("fact_without_slot", "facts that are of nothing, or without what they state", RESTORE),
        "SELECT i.public_id FROM items i LEFT JOIN facts f ON f.item_id = i.id"
        " LEFT JOIN fact_slots l ON l.id = f.slot_id WHERE i.type = 'fact' AND i.purged_at IS NULL"
        " AND (f.value IS NULL OR l.id IS NULL OR l.namespace_id <> i.namespace_id)"
        " UNION SELECT i.public_id FROM facts f JOIN items i ON i.id = f.item_id WHERE i.type <> 'fact'",
        since=FACTS_SINCE,
    ),
    Rule(
        Kind("fact_slot_unused", "subjects with keys of which nothing is stated", REPAIR, _SURPLUS),
        UNUSED_SLOT,
        since=FACTS_SINCE,
    ),
    Rule(
        Kind("fact_pinned_expires", "pinned facts that expire", TRUST),
        "SELECT i.public_id FROM pins n JOIN facts f ON f.item_id = n.item_id JOIN items i ON i.id = n.item_id"
        " WHERE f.expires_at IS NOT NULL",
        since=FACTS_SINCE,
    ),
    Rule(
        Kind("orphan_payload", "payloads of changes that the journal does not hold", TRUST),
        "SELECT sequence FROM journal_payload WHERE sequence NOT IN (SELECT sequence FROM journal)",
    ),
)

_LAST = (
    Kind("number_used", "tables whose next row would get a number that was used", REPAIR, "sets the next number"),
    Kind("content_hash", "notes whose text is not the one that was saved", TRUST),
    Kind("fields_unlike_journal", "notes whose metadata, tags, confidence or expiry are not those last saved", TRUST),
    Kind("normal_hash", "notes whose hash for likeness is not that of their text", REPAIR, "makes the hash anew"),
    Kind("metadata_damaged", "notes whose metadata is no JSON object", RESTORE),
    Kind("metadata_index", "notes whose metadata and its index differ", REPAIR, "builds the index of metadata anew"),
    Kind("passage_place", "notes whose passages do not lie in their text one after the other", REPAIR, _EMBED),
    Kind(
        "wrong_vector",
        "vectors of another dimension than their encoder's, or whose length is not 1",
        REPAIR,
        "has the model make them anew",
    ),
    Kind("fact_damaged", "facts whose value cannot be read", RESTORE),
    Kind("fact_sameness", "facts that are compared by something else than their value", REPAIR, "makes it anew"),
    Kind("fact_ends", "facts that queries find longer or shorter than they hold", REPAIR, _SETTLE),
    Kind("journal_broken", "the journal is not whole", TRUST),
    Kind("calls_broken", "the record of calls of other servers' tools is not whole", TRUST),
    Kind("fulltext_outdated", "the full text was built by another release", REPAIR, _FULLTEXT),
    Kind("missing_fulltext", "passages that the full text lacks", REPAIR, _FULLTEXT),
    Kind(
        "stray_fulltext", "passages that the full text should not have, or has in another namespace", REPAIR, _FULLTEXT
    ),
    Kind("fulltext_unlike_text", "passages whose index terms are not those of their text", REPAIR, _FULLTEXT),
    Kind("namespace_statistics", "the sizes of the namespaces are not those of the full text", REPAIR, _FULLTEXT),
    Kind("term_statistics", "terms that are counted wrong", REPAIR, _FULLTEXT),
    Kind("fulltext_damaged", "the full-text index is not that of its passages", REPAIR, _FULLTEXT),
    Kind("index_damaged", "files of the vector index that are missing, cut short or changed", REPAIR, _INDEX),
    Kind("index_stale", "files of the vector index that are of another past of the store", REPAIR, _INDEX),
    Kind("index_differs", "files of the vector index that hold something else than the store", REPAIR, _INDEX),
)

KINDS: dict[str, Kind] = {kind.code: kind for kind in (*_FIRST, *(rule.kind for rule in RULES), *_LAST)}
"""Every kind of damage that a store can have, in the order in which `agora doctor` looks for it."""


SURROUNDINGS: dict[str, Kind] = {
    kind.code: kind
    for kind in (
        Kind(
            "read_only",
            "folder or file that this user cannot write",
            "Queries work, saves do not. Free some space, or make folder and file writable for this user.",
        ),
        Kind(
            "disk_full",
            "less than 16 MiB free on the disk of the data folder",
            "Saves fail when nothing is left. Free some space, or move the data folder: set AGORA_HOME.",
        ),
        Kind(
            "open_to_others",
            "data folder, or file in it, that other users of this machine can enter, read or write; a warning",
            "Run `chmod -R go= FOLDER` with the data folder: notes are for its user alone.",
        ),
        Kind(
            "network_file_system",
            "data folder that other machines, or the host of this one, may use too",
            "Put the data folder on a local disk: set AGORA_HOME. Else see to it that only this machine uses it.",
        ),
        Kind(
            "index_foreign",
            "Chroma database in the index's folder that Agora did not make",
            "Name a folder for Agora alone in `index.url`. If this one is Agora's, delete `chroma.sqlite3` in it.",
        ),
        Kind(
            "index_missing",
            "store with notes and no Chroma collection yet; a warning",
            "The next query by meaning builds it, as far as it has time; `agora reindex` builds it at once.",
        ),
        Kind(
            "index_behind",
            "Chroma collection that is a thousand changes behind the store, or half built; a warning",
            "The next query by meaning catches up, as far as it has time; `agora reindex` builds it anew at once.",
        ),
        Kind(
            "cache_damaged",
            "damaged `cache.db`",
            "Run `agora doctor --repair`, or delete the file: nothing but speed is lost.",
            "deletes the file: it fills again",
        ),
    )
}
"""What can be wrong around the store."""


def problem(code: str, message: str | None = None) -> Problem:
    """A problem of a known kind, in its own words or in these."""
    kind = KINDS[code]
    return Problem(code, kind.what if message is None else message, kind.hint)


def cases(code: str, found: Sequence[object]) -> Problem:
    """A problem of a known kind with the number of cases and a few of them."""
    shown = ", ".join(map(str, found[:_EXAMPLES]))
    more = ", …" if len(found) > _EXAMPLES else ""
    return problem(code, f"{len(found)} {KINDS[code].what}: {shown}{more}")


def kinds_table() -> str:
    """Every kind of damage as a Markdown table; `docs/durability.md` holds it word for word."""
    lines = ["| code | what is wrong | what `--repair` does |", "|---|---|---|"]
    kinds = (*KINDS.values(), *SURROUNDINGS.values())
    lines += [
        f"| `{kind.code}` | {kind.what} | {kind.repair or 'nothing: the hint says what to do'} |" for kind in kinds
    ]
    return "\n".join(lines) + "\n"
