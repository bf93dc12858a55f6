"""Lexical search: the full-text table brings passages that match, Agora scores them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from agora.ports.text_index import Matches
from agora.ports.vector_index import Among
from agora.stores.sqlite.rows import blocks, numbers, places
from agora.stores.sqlite.weighing import NOTHING, Scale, Scored, weigh
from agora.text.analysis import Group

Ints = NDArray[np.int64]

_POSTINGS = 4000
"""Passages gathered per query before commoner words stop bringing new ones: from then they only score."""

_SPARE = 16
"""Items scored beyond those wanted, since they are chosen before their term counts and lengths are known."""

_PIECES = 32
"""Passages of one item that are scored, most promising first: a book must not take all the time."""

_STATISTICS = "note"
"""Type whose statistics weigh the words; documents will bring their own."""


@dataclass(slots=True)
class _Question:
    """A query's words with what is known of them so far."""

    groups: Sequence[Group]
    among: Among
    scale: Scale
    waiting: list[int]
    """Numbers of words that could bring more passages, the commonest first."""
    narrow: bool
    """Whether most of the store is out of scope. Where it is not, asking each list of passages for the scope too costs
    more than leaving out afterwards what does not belong."""
    gathered: dict[int, Ints] = field(default_factory=dict)
    """Word number to the ascending passages, of the rows asked for, that hold it. Other words are looked for in the
    texts."""

    def is_that(self, groups: Sequence[Group], among: Among) -> bool:
        """Whether it is the same question, among the same rows."""
        known = self.among
        return self.groups == groups and known.namespaces == among.namespaces and known.rows is among.rows

    def sums(self) -> tuple[Ints, NDArray[np.float64]]:
        """Every gathered passage, ascending, with the rarity of its gathered words."""
        if not self.gathered:
            return np.empty(0, np.int64), np.empty(0)
        weights = [
            np.full(len(found), self.scale.weights[number].idf) for number, found in sorted(self.gathered.items())
        ]
        every = np.concatenate([found for _, found in sorted(self.gathered.items())])
        passages, place = np.unique(every, return_inverse=True)
        return passages.astype(np.int64), np.bincount(place, np.concatenate(weights), len(passages)).astype(np.float64)


_Piece = tuple[int, int, int]
"""A passage, its item, and its number in that item."""


class FullTextView:
    """The full-text index in one read transaction; implements `agora.ports.text_index.TextView`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._last: _Question | None = None

    def matching(self, groups: Sequence[Group], among: Among, limit: int) -> Matches:
        """As `TextView.matching`: rarest words first bring the candidates, all words score them.

        A function word alone brings no candidate unless the query is made of nothing else.
        """
        question = self._question(groups, among)
        wanted = limit + _SPARE
        while True:
            # One round is enough unless most of what it found has expired.
            self._gather(question, wanted)
            pieces = self._choose(question, among, wanted)
            if len(pieces) >= wanted or not question.waiting:
                break
        best = self._best(question, [piece for each in pieces.values() for piece in each])
        found = _matches(np.array(sorted(best), dtype=np.int64), best)
        order = np.lexsort((found.rows, -found.bm25))[:limit]
        return Matches(
            found.rows[order],
            found.coverage[order],
            found.bm25[order],
            found.passages[order],
            tuple(found.words[place] for place in order.tolist()),
        )

    def matches(self, groups: Sequence[Group], among: Among, rows: Ints) -> Matches:
        """As `TextView.matches`."""
        if among.rows is not None and not np.isin(rows, among.rows).all():
            # What was gathered tells nothing of rows beside those it was gathered from.
            self._last = None
        question = self._question(groups, among)
        pieces: list[_Piece] = []
        for block in blocks(rows.tolist()):
            pieces += self._connection.execute(
                f"SELECT id, item_id, n FROM passages WHERE item_id IN ({places(block)})"
                " AND layout = (SELECT layout FROM encoders WHERE state = 'active' LIMIT 1) ORDER BY item_id, n",
                tuple(block),
            )
        return _matches(rows, self._best(question, self._most_promising(question, pieces)))

    def _question(self, groups: Sequence[Group], among: Among) -> _Question:
        """What the searched namespaces know of the words of the query; asked again, what is known already."""
        if self._last and self._last.is_that(groups, among):
            return self._last
        inside = f"namespace_id IN ({places(among.namespaces)}) AND type = ?"
        total, words, everywhere = self._connection.execute(
            f"SELECT coalesce(sum(passages), 0), coalesce(sum(words), 0),"
            f" (SELECT coalesce(sum(passages), 0) FROM namespace_stats) FROM namespace_stats WHERE {inside}",
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
        weights = weigh(groups, counts, total)
        waiting = [number for number, weight in enumerate(weights) if weight.tells]
        waiting.sort(key=lambda number: (-weights[number].passages, groups[number].text))
        scale = Scale(weights, words / total if total else 1.0)
        self._last = _Question(groups, among, scale, waiting, narrow=2 * total < everywhere)
        return self._last

    def _gather(self, question: _Question, wanted: int) -> None:
        """Find the passages of the next words, rarest first: of one at least, of all while they are few."""
        weights = question.scale.weights
        budget, most = _POSTINGS, 0
        while question.waiting:
            number = question.waiting[-1]
            if budget < _POSTINGS and weights[number].passages > budget:
                return
            question.waiting.pop()
            found = question.gathered[number] = self._postings(weights[number].present, question)
            # Of what is out of scope some may be among them: it must move no answer, not even by a candidate.
            held = weights[number].passages if question.among.rows is None else len(found)
            budget, most = budget - held, max(most, held)
            rest = sum(weights[other].idf for other in question.waiting)
            if most >= wanted and rest < weights[number].idf:
                # All that is left together is worth less than the least that each of these has.
                return

    def _postings(self, terms: Sequence[str], question: _Question) -> Ints:
        """Every passage that holds one of `terms`, ascending; some may be out of scope."""
        among = question.among
        match = f"{{title body}} : ({' OR '.join(_quoted(terms))})"
        if question.narrow:
            match += f" AND scope : ({' OR '.join(f'n{namespace}' for namespace in among.namespaces)})"
        if among.rows is None:
            found = self._connection.execute(
                "SELECT group_concat(rowid, ' ') FROM fulltext WHERE fulltext MATCH ?", (match,)
            )
            return np.sort(numbers(found)[0])
        passages, items = numbers(
            self._connection.execute(
                "SELECT group_concat(f.rowid, ' '), group_concat(p.item_id, ' ') FROM fulltext f"
                " JOIN passages p ON p.id = f.rowid WHERE fulltext MATCH ?",
                (match,),
            )
        )
        return np.sort(passages[np.isin(items, among.rows)])

    def _choose(self, question: _Question, among: Among, wanted: int) -> dict[int, list[_Piece]]:
        """The `wanted` live items with the rarest words, each with its most promising passages."""
        passages, sums = question.sums()
        ranked = passages[np.lexsort((passages, -sums))].tolist()
        chosen: dict[int, list[_Piece]] = {}
        # Counted in passages that may be found: how many others lie between them must not show.
        for seen, piece in enumerate(self._live_in_order(ranked, among, wanted), 1):
            kept = chosen.get(piece[1])
            if kept is None:
                if len(chosen) < wanted:
                    chosen[piece[1]] = [piece]
            elif len(kept) < _PIECES:
                kept.append(piece)
            if len(chosen) == wanted and not seen % wanted:
                # What these items have further down holds rarer words in no passage.
                break
        return chosen

    def _live_in_order(self, passages: Sequence[int], among: Among, step: int) -> Iterator[_Piece]:
        """As `_live`, in the order of `passages`, looked up `step` at a time as they are asked for."""
        for block in blocks(passages, step):
            live = {piece[0]: piece for piece in self._live(block, among)}
            yield from filter(None, map(live.get, block))

    def _live(self, passages: Sequence[int], among: Among) -> Iterable[_Piece]:
        """Those of `passages` whose items are in scope and current."""
        # Expiry only the clock knows. The index drops superseded and forgotten rows in their own transaction, but a
        # damaged one must not bring them back.
        return self._connection.execute(
            # A cross join keeps this order: a plan that begins with the namespace's items reads all of them.
            "SELECT p.id, p.item_id, p.n FROM passages p CROSS JOIN items i ON i.id = p.item_id"
            f" WHERE p.id IN ({places(passages)}) AND (i.expires_at IS NULL OR i.expires_at > ?)"
            " AND i.superseded_by IS NULL AND i.forgotten_at IS NULL"
            f" AND i.namespace_id IN ({places(among.namespaces)})",
            (*passages, among.now, *among.namespaces),
        )

    def _most_promising(self, question: _Question, pieces: list[_Piece]) -> list[_Piece]:
        """At most `_PIECES` passages of each item."""
        by_item: dict[int, list[_Piece]] = {}
        for piece in pieces:
            by_item.setdefault(piece[1], []).append(piece)
        if all(len(each) <= _PIECES for each in by_item.values()):
            return pieces
        if not question.gathered:
            self._gather(question, len(pieces))
        passages, sums = question.sums()
        worth = dict(zip(passages.tolist(), sums.tolist(), strict=True))
        return [
            piece
            for each in by_item.values()
            for piece in sorted(each, key=lambda piece: (-worth.get(piece[0], 0.0), piece[2]))[:_PIECES]
        ]

    def _best(self, question: _Question, pieces: list[_Piece]) -> dict[int, tuple[Scored, int]]:
        """The score of each item that matches, and the number of the passage that earned it."""
        ids = np.array([piece[0] for piece in pieces], dtype=np.int64)
        words: list[list[int]] = [[] for _ in pieces]
        telling = np.zeros(len(pieces), dtype=np.bool_)
        for number, weight in enumerate(question.scale.weights):
            if number in question.gathered:
                held = _held(question.gathered[number], ids)
                telling |= held
                for place in np.flatnonzero(held).tolist():
                    words[place].append(number)
            elif weight.present:
                telling |= weight.tells
                for each in words:
                    each.append(number)
        possible = [(pieces[place], words[place]) for place in np.flatnonzero(telling).tolist()]
        texts = self._texts([piece[0] for piece, _ in possible])
        score = question.scale.score
        best: dict[int, tuple[Scored, int]] = {}
        for (passage, item, n), known_words in possible:
            if (text := texts.get(passage)) is not None and (scored := score(*text, known_words)).words:
                known = best.get(item)
                if known is None or (*scored[:2], -n) > (*known[0][:2], -known[1]):
                    best[item] = (scored, n)
        return best

    def _texts(self, passages: Sequence[int]) -> dict[int, tuple[str, str, int]]:
        """Title, body and number of words of each passage that the index holds."""
        found: dict[int, tuple[str, str, int]] = {}
        for block in blocks(passages):
            # From the table beneath the full-text table: the same row, without the way through the module.
            rows = self._connection.execute(
                f"SELECT id, c1, c2, c3 FROM fulltext_content WHERE id IN ({places(block)})", tuple(block)
            )
            found |= {row[0]: row[1:] for row in rows}
        return found


def _held(holders: Ints, passages: Ints) -> NDArray[np.bool_]:
    """Which of `passages` are among `holders`, which are ascending."""
    if not len(holders):
        return np.zeros(len(passages), dtype=np.bool_)
    place = np.minimum(np.searchsorted(holders, passages), len(holders) - 1)
    return cast("NDArray[np.bool_]", holders[place] == passages)


def _matches(rows: Ints, best: dict[int, tuple[Scored, int]]) -> Matches:
    found = [best.get(row, (NOTHING, 0)) for row in rows.tolist()]
    return Matches(
        rows,
        np.array([scored.coverage for scored, _ in found], dtype=np.float64),
        np.array([scored.bm25 for scored, _ in found], dtype=np.float64),
        np.array([n for _, n in found], dtype=np.int64),
        tuple(scored.words for scored, _ in found),
    )


def _quoted(terms: Iterable[str]) -> list[str]:
    return ['"' + term.replace('"', '""') + '"' for term in terms]
