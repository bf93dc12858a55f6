"""Lexical search: the full-text table brings passages that match, Agora scores them."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agora.ports.text_index import Matches
from agora.ports.vector_index import Among
from agora.stores.sqlite.rows import blocks, places
from agora.text.analysis import Group

K1, B = 1.2, 0.75
"""Okapi BM25 with the constants of Robertson and Zaragoza (2009), section 3.5."""

_POSTINGS = 4000
"""Passages gathered per query before the commonest words stop bringing new ones: from then they only score."""

_FUNCTION_WORD = 0.3
"""Weight of a function word: in a store of ten notes "the" may be as rare as a name."""

_STATISTICS = "note"
"""Type whose statistics weigh the words; documents will bring their own."""


class FullTextView:
    """The full-text index in one read transaction; implements `agora.ports.text_index.TextView`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def matching(self, groups: Sequence[Group], among: Among, limit: int) -> Matches:
        """As `TextView.matching`: rarest words first bring the candidates, all words score them."""
        weights, mean = self._weights(groups, among)
        gathered: dict[int, float] = {}
        items: dict[int, int] = {}
        allowed = None if among.rows is None else set(among.rows.tolist())
        budget = _POSTINGS
        for weight in sorted(weights, key=lambda w: (w.passages, w.group.text)):
            if not weight.present or (gathered and budget <= 0):
                continue
            postings = self._postings(weight.present, among)
            budget -= len(postings)
            for passage, item in postings:
                if allowed is None or item in allowed:
                    items[passage] = item
                    gathered[passage] = gathered.get(passage, 0.0) + weight.idf
        best = sorted(gathered, key=lambda passage: (-gathered[passage], items[passage], passage))[: 2 * limit]
        scored = _Scores(weights, mean, self._texts(best), items)
        live = self._live(sorted({items[passage] for passage in best}), among)
        found = scored.of(np.array(live, dtype=np.int64))
        order = np.lexsort((found.rows, -found.bm25))[:limit]
        return Matches(
            found.rows[order],
            found.coverage[order],
            found.bm25[order],
            found.passages[order],
            tuple(found.words[place] for place in order),
        )

    def matches(self, groups: Sequence[Group], among: Among, rows: NDArray[np.int64]) -> Matches:
        """As `TextView.matches`."""
        weights, mean = self._weights(groups, among)
        items: dict[int, int] = {}
        for block in blocks(rows.tolist()):
            items |= dict(
                self._connection.execute(
                    f"SELECT id, item_id FROM passages WHERE item_id IN ({places(block)})",
                    tuple(block),
                )
            )
        return _Scores(weights, mean, self._texts(list(items)), items).of(rows)

    def _weights(self, groups: Sequence[Group], among: Among) -> tuple[list[_Weight], float]:
        """What each word of the query is worth in the searched namespaces; the mean length of a passage there."""
        inside = f"namespace_id IN ({places(among.namespaces)}) AND type = ?"
        total, words = self._connection.execute(
            f"SELECT coalesce(sum(passages), 0), coalesce(sum(words), 0) FROM namespace_stats WHERE {inside}",
            (*among.namespaces, _STATISTICS),
        ).fetchone()
        counts: dict[str, int] = {}
        for block in blocks(sorted({term for group in groups for term in group.alternatives})):
            counts |= dict(
                self._connection.execute(
                    f"SELECT term, sum(passages) FROM term_stats WHERE {inside}"
                    f" AND term IN ({places(block)}) GROUP BY term",
                    (*among.namespaces, _STATISTICS, *block),
                )
            )
        return [_Weight.of(group, counts, total) for group in groups], words / total if total else 1.0

    def _postings(self, terms: Sequence[str], among: Among) -> list[tuple[int, int]]:
        """Passage and item of every passage in scope that holds one of `terms`."""
        scope = " OR ".join(f"n{namespace}" for namespace in among.namespaces)
        match = f"scope : ({scope}) AND {{title body}} : ({' OR '.join(_quoted(terms))})"
        return self._connection.execute(
            "SELECT f.rowid, p.item_id FROM fulltext f JOIN passages p ON p.id = f.rowid WHERE fulltext MATCH ?",
            (match,),
        ).fetchall()

    def _live(self, rows: Sequence[int], among: Among) -> list[int]:
        # The index drops superseded and forgotten rows in their own transaction; expiry only the clock knows.
        kept: list[int] = []
        for block in blocks(rows):
            kept += [
                row[0]
                for row in self._connection.execute(
                    f"SELECT id FROM items WHERE id IN ({places(block)})"
                    " AND (expires_at IS NULL OR expires_at > ?) ORDER BY id",
                    (*block, among.now),
                )
            ]
        return kept

    def _texts(self, passages: Sequence[int]) -> dict[int, tuple[str, int]]:
        found = {}
        for block in blocks(passages):
            for passage, title, body, words in self._connection.execute(
                f"SELECT rowid, title, body, words FROM fulltext WHERE rowid IN ({places(block)})",
                tuple(block),
            ):
                # Framed by blanks so that a term is found whole by substring search, which is C speed.
                found[passage] = (f" {title} {body} ", words)
        return found


class _Scores:
    """Scores passages, and gives each item the best of its passages."""

    def __init__(
        self,
        weights: Sequence[_Weight],
        mean: float,
        texts: dict[int, tuple[str, int]],
        items: dict[int, int],
    ) -> None:
        self._weights = weights
        self._mean = max(mean, 1.0)
        self._mass = sum(weight.idf for weight in weights) or 1.0
        self._of_item: dict[int, tuple[float, float, int, tuple[str, ...]]] = {}
        for passage in sorted(texts):
            coverage, bm25, words = self._score(*texts[passage])
            best = self._of_item.get(items[passage])
            if best is None or (coverage, bm25) > best[:2]:
                self._of_item[items[passage]] = (coverage, bm25, passage, words)

    def of(self, rows: NDArray[np.int64]) -> Matches:
        """The scores of `rows`, in their order."""
        found = [self._of_item.get(row, (0.0, 0.0, 0, ())) for row in rows.tolist()]
        return Matches(
            rows,
            np.array([each[0] for each in found], dtype=np.float64),
            np.array([each[1] for each in found], dtype=np.float64),
            np.array([each[2] for each in found], dtype=np.int64),
            tuple(each[3] for each in found),
        )

    def _score(self, text: str, length: int) -> tuple[float, float, tuple[str, ...]]:
        # Constant beside every word: how long the passage is against the mean.
        norm = K1 * (1 - B + B * length / self._mean)
        coverage, bm25, words = 0.0, 0.0, []
        for weight in self._weights:
            count, worth = weight.found_in(text)
            if count:
                words.append(weight.group.text)
                coverage += worth
                bm25 += worth * count * (K1 + 1) / (count + norm)
        return min(1.0, coverage / self._mass), bm25, tuple(words)


@dataclass(frozen=True, slots=True)
class _Weight:
    group: Group
    present: tuple[str, ...]
    """The alternatives that occur in the searched namespaces, the word itself first."""
    worths: tuple[float, ...]
    """Of each of `present`: a stem is worth what a word as frequent as it is."""
    passages: int
    idf: float

    @classmethod
    def of(cls, group: Group, counts: dict[str, int], total: int) -> _Weight:
        present = tuple(term for term in group.alternatives if counts.get(term))
        share = _FUNCTION_WORD if group.common else 1.0
        worths = tuple(share * _idf(counts[term], total) for term in present)
        # A word nobody used weighs as much as the rarest: a note that lacks it covers less of the query.
        idf = max(worths) if worths else share * _idf(0, total)
        return cls(group, present, worths, sum(counts[term] for term in present), idf)

    def found_in(self, text: str) -> tuple[int, float]:
        for term, worth in zip(self.present, self.worths, strict=True):
            if count := text.count(f" {term} "):
                return count, worth
        return 0, 0.0


def _idf(passages: int, total: int) -> float:
    return math.log(1 + (max(total, passages) - passages + 0.5) / (passages + 0.5))


def _quoted(terms: Iterable[str]) -> list[str]:
    return ['"' + term.replace('"', '""') + '"' for term in terms]
