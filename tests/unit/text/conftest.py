from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence

import pytest

from agora.text.analysis import analyse, analyse_query

TOKENIZER = "unicode61 remove_diacritics 0 tokenchars '_'"

Find = Callable[[Sequence[str], str], list[int]]
Tokenise = Callable[[Sequence[str]], list[str]]


@pytest.fixture(scope="session")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f'CREATE VIRTUAL TABLE ft USING fts5(terms, tokenize="{TOKENIZER}")')
    connection.execute("CREATE VIRTUAL TABLE seen USING fts5vocab(ft, 'instance')")
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def tokenise(database: sqlite3.Connection) -> Tokenise:
    """What SQLite makes of terms that are written one after the other."""

    def run(terms: Sequence[str]) -> list[str]:
        database.execute("DELETE FROM ft")
        database.execute("INSERT INTO ft (rowid, terms) VALUES (1, ?)", (" ".join(terms),))
        return [row[0] for row in database.execute("SELECT term FROM seen ORDER BY doc, offset")]

    return run


@pytest.fixture(scope="session")
def find(database: sqlite3.Connection) -> Find:
    """The numbers of the texts that match every word of a query."""

    def run(texts: Sequence[str], query: str) -> list[int]:
        database.execute("DELETE FROM ft")
        for number, text in enumerate(texts):
            terms = " ".join(analyse(text).terms)
            database.execute("INSERT INTO ft (rowid, terms) VALUES (?, ?)", (number, terms))
        groups = analyse_query(query)
        assert groups, "the query has no words"
        quoted = [[f'"{term}"' for term in group.alternatives] for group in groups]
        match = " AND ".join(f"({' OR '.join(terms)})" for terms in quoted)
        return [row[0] for row in database.execute("SELECT rowid FROM ft WHERE ft MATCH ? ORDER BY rowid", (match,))]

    return run
