from __future__ import annotations

import sqlite3

from agora.stores.sqlite.checks_file import can_be_made, found_objects, numbers
from agora.stores.sqlite.migrations import LATEST, definition, expected


def missing_objects(connection: sqlite3.Connection) -> list[str]:
    """Make indexes and derived tables that are missing or not as the schema has them; their names.

    The full text is left out: whoever builds it anew makes its table too. An index that the rows do not allow is left
    as it is, for then the rows are wrong.
    """
    found = found_objects(connection)
    made = []
    for name, wanted in expected(LATEST).items():
        if found.get(name) == wanted or wanted.table.startswith("fulltext") or not can_be_made(wanted, found):
            continue
        connection.execute("SAVEPOINT object")
        try:
            if name in found:
                connection.execute(f"DROP {wanted.kind} {name}")
            connection.execute(definition(name))
        except sqlite3.IntegrityError:
            connection.execute("ROLLBACK TO object")
        else:
            made.append(name)
        connection.execute("RELEASE object")
    return made


def reindex(connection: sqlite3.Connection) -> bool:
    """Build every SQL index anew; False where the rows do not allow it."""
    connection.execute("SAVEPOINT reindex")
    try:
        connection.execute("REINDEX")
    except sqlite3.IntegrityError:
        connection.execute("ROLLBACK TO reindex")
        return False
    finally:
        connection.execute("RELEASE reindex")
    return True


def next_numbers(connection: sqlite3.Connection) -> list[str]:
    """Set the next number of every table that would give one again; their names."""
    wrong = [(table, last) for table, last, given in numbers(connection) if given < last]
    for table, last in wrong:
        connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))
    return [table for table, _ in wrong]
