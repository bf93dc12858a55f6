from __future__ import annotations

import sqlite3
from pathlib import Path

from agora.stores.sqlite import fulltext
from agora.stores.sqlite.environment import risk
from agora.stores.sqlite.fulltext import LAYOUT
from agora.stores.sqlite.rows import FOUND
from agora.stores.sqlite.rules import KINDS, SURROUNDINGS
from agora.text.analysis import VERSION

MARK = "purge"
"""Row of `meta` that stands while purged rows are gone and their bytes may not be."""

_COUNTS = (
    f"SELECT (SELECT count(*) FROM passages WHERE layout = {LAYOUT}), (SELECT count(*) FROM vectors WHERE encoder_id ="
    " (SELECT id FROM encoders WHERE state = 'active')), (SELECT count(*) FROM fulltext_docsize),"
    " (SELECT ifnull(sum(passages), 0) FROM namespace_stats),"
    f" EXISTS (SELECT 1 FROM items i WHERE superseded_by IS NULL AND forgotten_at IS NULL AND {FOUND})"
)


def conditions(connection: sqlite3.Connection, path: Path, read_only: str | None) -> list[dict[str, str]]:
    """What an open store at `path` has to live with, each as a problem with `code`, `message` and `hint`.

    `read_only`: why it can only be read. What was lost is told by counts alone, in milliseconds; `agora doctor` looks
    at everything.
    """
    found = _counted(connection)
    if read_only is not None:
        found.append(
            {
                "code": "read_only",
                "message": f"the store can only be read: {read_only}",
                "hint": SURROUNDINGS["read_only"].hint,
            }
        )
    if (at_risk := risk(path.parent)) is not None:
        found.append(at_risk)
    if fulltext.built_by(connection) != VERSION:
        kind = KINDS["fulltext_outdated"]
        found.append(
            {
                "code": kind.code,
                "message": f"{kind.what}: queries may miss words",
                "hint": "Run `agora doctor --repair`.",
            }
        )
    return found


def _counted(connection: sqlite3.Connection) -> list[dict[str, str]]:
    passages, vectors, held, counted, findable = connection.execute(_COUNTS).fetchone()
    lost = []
    if vectors != passages:
        lost.append(f"{passages} passages have {vectors} vectors")
    if held != counted or (findable and not held):
        lost.append(f"the full text holds {held} passages, its statistics {counted}")
    if not lost:
        return []
    message = f"queries miss notes: {'; '.join(lost)}"
    return [{"code": "store_damaged", "message": message, "hint": "Run `agora doctor --repair`."}]
