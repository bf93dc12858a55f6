"""The invariants that one query each can check: tables against each other."""

from __future__ import annotations

from typing import NamedTuple

RESTORE = "Stop every process that uses the store and put a backup of agora.db back."
DERIVED = f"The notes themselves are whole, but queries may miss some. {RESTORE}"
TRUST = "Something other than Agora wrote to the store: compare it with a backup before you trust it."


class Rule(NamedTuple):
    """A code, what is wrong where it is broken, what to do, and where it is."""

    code: str
    what: str
    hint: str
    broken: str
    """A query for everything that breaks the rule."""


_LAYOUT = "(SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)"
RULES = (
    Rule(
        "no_profile",
        "store without an active encoder",
        DERIVED,
        "SELECT 'profile' WHERE NOT EXISTS (SELECT 1 FROM encoders WHERE state = 'active')",
    ),
    Rule(
        "item_without_text",
        "notes without their text",
        RESTORE,
        "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM texts)",
    ),
    Rule(
        "item_without_saver",
        "notes without provenance",
        RESTORE,
        "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM savers WHERE n = 0)",
    ),
    Rule(
        "item_without_passage",
        "notes without a passage",
        DERIVED,
        "SELECT public_id FROM items WHERE purged_at IS NULL"
        f" AND id NOT IN (SELECT item_id FROM passages WHERE layout = {_LAYOUT} AND n = 0)",
    ),
    Rule(
        "item_without_journal",
        "notes of whose saving the journal does not tell",
        TRUST,
        "SELECT public_id FROM items WHERE id NOT IN"
        " (SELECT item_id FROM journal WHERE operation = 'save' AND item_id IS NOT NULL)",
    ),
    Rule(
        "broken_succession",
        "notes whose place among their versions is wrong",
        RESTORE,
        "SELECT i.public_id FROM items i LEFT JOIN items after ON after.id = i.superseded_by"
        " LEFT JOIN items before ON before.id = i.supersedes"
        # 0 is no row: an import brought a version whose successor it did not bring. Keys and numbers, not the order of
        # rows, keep a succession from running in a circle: an import may bring the past after the present.
        " WHERE (i.superseded_by <> 0 AND (after.key IS NULL OR after.key <> ifnull(i.key, after.key)"
        "  OR (i.key IS NOT NULL AND after.version <= i.version) OR after.namespace_id <> i.namespace_id))"
        " OR (i.superseded_by IS NOT NULL AND i.superseded_at IS NULL)"
        " OR (i.supersedes IS NOT NULL AND before.superseded_by IS NOT i.id)",
    ),
    Rule(
        "orphan_tag",
        "tags that no saver gave",
        RESTORE,
        "SELECT tag FROM item_tags t"
        " WHERE NOT EXISTS (SELECT 1 FROM savers s WHERE s.item_id = t.item_id AND s.n = t.saver)",
    ),
    Rule(
        "passage_without_vector",
        "passages without a vector",
        DERIVED,
        "SELECT p.id FROM passages p JOIN encoders e ON e.state = 'active' AND e.layout = p.layout"
        " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.encoder_id = e.id)",
    ),
    Rule(
        "wrong_vector",
        "vectors of the wrong length",
        DERIVED,
        "SELECT v.id FROM vectors v JOIN encoders e ON e.id = v.encoder_id WHERE length(v.vector) <> 4 * e.dimension",
    ),
    Rule(
        "missing_fulltext",
        "passages that the full text lacks",
        DERIVED,
        "SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id"
        f" WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL AND p.layout = {_LAYOUT}"
        " AND p.id NOT IN (SELECT id FROM fulltext_content)",
    ),
    Rule(
        "stray_fulltext",
        "passages that the full text should not have, or has in another namespace",
        DERIVED,
        "SELECT f.id FROM fulltext_content f LEFT JOIN passages p ON p.id = f.id"
        " LEFT JOIN items i ON i.id = p.item_id WHERE i.id IS NULL OR i.superseded_by IS NOT NULL"
        " OR i.forgotten_at IS NOT NULL OR f.c0 <> 'n' || i.namespace_id",
    ),
    Rule(
        "namespace_sequence",
        "namespaces whose last change is not the journal's",
        DERIVED,
        "SELECT n.name FROM namespaces n LEFT JOIN namespace_seq s ON s.namespace_id = n.id"
        " WHERE s.sequence IS NOT (SELECT max(sequence) FROM journal j WHERE j.namespace_id = n.id)",
    ),
    Rule(
        "orphan_payload",
        "payloads of changes that the journal does not hold",
        TRUST,
        "SELECT sequence FROM journal_payload WHERE sequence NOT IN (SELECT sequence FROM journal)",
    ),
)
