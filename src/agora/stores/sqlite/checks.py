"""Every invariant of the schema, checked: tables against each other, hashes, statistics, index, journal, file."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agora.stores.sqlite import journal
from agora.stores.sqlite.fulltext import Prepared
from agora.stores.sqlite.rows import digest
from agora.text.identity import content_hash, normal_hash

_CANONICAL = "Notes are damaged: put agora.db back from a backup. Save nothing more to this store before."
_DERIVED = "The notes themselves are whole, but queries may miss some: put agora.db back from a backup."
_TRUST = "Somebody or something other than Agora wrote to the store: compare it with a backup before you trust it."
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of damage: a stable `code`, how much of it with examples, and what to do."""

    code: str
    message: str
    hint: str


_LAYOUT = "(SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)"
_CURRENT = "superseded_by IS NULL AND forgotten_at IS NULL"

_RULES: tuple[tuple[str, str, str, str], ...] = (
    # code, what is wrong, hint, rows for which it is
    ("item_without_text", "notes without their text", _CANONICAL,
     "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM texts)"),
    ("item_without_saver", "notes without provenance", _CANONICAL,
     "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM savers WHERE n = 0)"),
    ("item_without_passage", "notes without a passage", _DERIVED,
     "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN"
     f" (SELECT item_id FROM passages WHERE layout = {_LAYOUT} AND n = 0)"),
    ("item_without_journal", "notes of whose saving the journal does not tell", _TRUST,
     "SELECT public_id FROM items WHERE id NOT IN (SELECT item_id FROM journal WHERE operation = 'save')"),
    ("broken_succession", "notes whose place among their versions is wrong", _CANONICAL,
     "SELECT i.public_id FROM items i LEFT JOIN items after ON after.id = i.superseded_by"
     " LEFT JOIN items before ON before.id = i.supersedes"
     " WHERE (i.superseded_by IS NOT NULL AND (after.id IS NULL OR after.id <= i.id"
     "  OR after.namespace_id <> i.namespace_id OR i.superseded_at IS NULL))"
     " OR (i.supersedes IS NOT NULL AND (before.id IS NULL OR before.superseded_by IS NOT i.id))"),
    ("wrong_time", "notes whose times contradict each other", _CANONICAL,
     "SELECT public_id FROM items WHERE effective_at <> coalesce(occurred_at, created_at) OR updated_at < created_at"),
    ("orphan_text", "texts without a note", _CANONICAL, _orphan := "SELECT item_id FROM {} WHERE item_id NOT IN (SELECT id FROM items)"),
    ("orphan_saver", "savers without a note", _CANONICAL, ""),
    ("orphan_tag", "tags without a note or a saver", _CANONICAL,
     "SELECT item_id FROM item_tags t WHERE NOT EXISTS (SELECT 1 FROM savers s WHERE s.item_id = t.item_id AND s.n = t.saver)"),
    ("orphan_metadata", "metadata without a note", _CANONICAL, ""),
    ("orphan_passage", "passages without a note", _DERIVED, ""),
    ("orphan_vector", "vectors without a passage", _DERIVED,
     "SELECT id FROM vectors WHERE passage_id NOT IN (SELECT id FROM passages)"),
    ("passage_without_vector", "passages without a vector", _DERIVED,
     "SELECT p.id FROM passages p JOIN encoders e ON e.state = 'active' AND e.layout = p.layout"
     " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.encoder_id = e.id)"),
    ("wrong_vector", "vectors of the wrong length", _DERIVED,
     "SELECT v.id FROM vectors v JOIN encoders e ON e.id = v.encoder_id WHERE length(v.vector) <> 4 * e.dimension"),
    ("missing_fulltext", "passages that the full text lacks", _DERIVED,
     f"SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id WHERE i.{_CURRENT.replace('AND ', 'AND i.')}"
     f" AND p.layout = {_LAYOUT} AND p.id NOT IN (SELECT id FROM fulltext_content)"),
    ("stray_fulltext", "passages that the full text should not have", _DERIVED,
     "SELECT f.id FROM fulltext_content f LEFT JOIN passages p ON p.id = f.id LEFT JOIN items i ON i.id = p.item_id"
     " WHERE i.id IS NULL OR i.superseded_by IS NOT NULL OR i.forgotten_at IS NOT NULL OR f.c0 <> 'n' || i.namespace_id"),
    ("namespace_sequence", "namespaces whose last change is not the journal's", _DERIVED,
     "SELECT n.name FROM namespaces n LEFT JOIN namespace_seq s ON s.namespace_id = n.id"
     " WHERE s.sequence IS NOT (SELECT max(sequence) FROM journal j WHERE j.namespace_id = n.id)"),
    ("orphan_payload", "payloads of changes that the journal does not know", _TRUST,
     "SELECT sequence FROM journal_payload WHERE sequence NOT IN (SELECT sequence FROM journal)"),
)  # fmt: skip
