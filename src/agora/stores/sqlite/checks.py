"""Every invariant of the store, checked: file, schema, tables against each other, hashes, full text, journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from agora.stores.sqlite.audit_chain import verified
from agora.stores.sqlite.checks_content import changed_fields, wrong_contents, wrong_vectors
from agora.stores.sqlite.checks_facts import wrong_facts
from agora.stores.sqlite.checks_file import damage, objects, orphans, used_numbers
from agora.stores.sqlite.checks_fulltext import occurrences, outdated, passages, statistics, unlike_texts
from agora.stores.sqlite.gateway.calls import verified as calls_verified
from agora.stores.sqlite.migrations import version_of
from agora.stores.sqlite.rules import RULES, Problem, Rule, cases, problem

__all__ = ["Problem", "find_problems"]

_Check = Callable[[sqlite3.Connection], Iterable[Problem]]


def find_problems(connection: sqlite3.Connection) -> list[Problem]:
    """Everything that is wrong with the store, worst first; nothing is changed, and a read-only connection will do.

    For a whole answer the caller holds a read transaction, and the schema is one that this release knows. Takes time
    in proportion to the store: a second or two for ten thousand notes.
    """
    problems: list[Problem] = []
    for what, check in _CHECKS:
        try:
            problems += check(connection)
        except Exception as error:  # noqa: BLE001 - what comes out of a damaged page may be anything
            # Any check may fail then; the others still tell something.
            told = error if str(error) else type(error).__name__
            problems.append(problem("unreadable", f"{what} could not be checked: {told}"))
    return problems


def _rule(rule: Rule, connection: sqlite3.Connection) -> Iterator[Problem]:
    if version_of(connection) < rule.since:
        return
    broken = [row[0] for row in connection.execute(rule.broken)]
    if broken:
        yield cases(rule.kind.code, broken)


def _journal(connection: sqlite3.Connection) -> Iterator[Problem]:
    # What of the notes is unlike it is told by checks of their own.
    broken = verified(connection, items=False).broken
    if broken is not None:
        yield problem("journal_broken", f"the journal is whole only before change {broken.sequence}: {broken.reason}")


def _calls(connection: sqlite3.Connection) -> Iterator[Problem]:
    broken = calls_verified(connection).broken
    if broken is not None:
        reason = f"the record of calls is whole only before call {broken.sequence}: {broken.reason}"
        yield problem("calls_broken", reason)


_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("the file", damage),
    ("the schema", objects),
    ("rows without parents", orphans),
    *((rule.kind.what, partial(_rule, rule)) for rule in RULES),
    ("numbers", used_numbers),
    ("texts and metadata", wrong_contents),
    ("what may change of notes", changed_fields),
    ("vectors", wrong_vectors),
    ("facts", wrong_facts),
    ("the journal", _journal),
    ("the record of calls", _calls),
    ("the age of the full text", outdated),
    ("passages in the full text", passages),
    ("terms of the texts", unlike_texts),
    ("statistics", statistics),
    ("the full text", occurrences),
)
