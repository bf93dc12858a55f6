"""Which pieces a summary is made of: those that together say most for what they cost."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agora.llm.extractive_lines import CUT, HEADS, quote_line
from agora.llm.extractive_pieces import Section, Source
from agora.llm.extractive_terms import Term
from agora.llm.extractive_weighing import Candidate

SEEN = 0.08
"""What a term counts that the summary already has: a repetition is worth little, and is not forbidden."""

CENTRAL = 0.25
"""How much more the most central piece counts than one beside the subject."""

STEEP = 0.9
"""Power of a piece's cost by which its gain is divided: 1 takes the densest pieces, 0 the longest."""

_OVERHEAD_WORDS = 2
_OVERHEAD_SIZE = len("\n-  (#, )") + 2 * len(CUT.encode())


@dataclass(slots=True)
class Budget:
    """Words and bytes that are left."""

    words: int
    size: int

    def holds(self, words: int, size: int) -> bool:
        """Whether so much more fits."""
        return words <= self.words and size <= self.size

    def spend(self, words: int, size: int) -> None:
        """Take it."""
        self.words -= words
        self.size -= size


@dataclass(slots=True)
class Chosen:
    """The pieces taken so far, by source and place."""

    by_place: dict[tuple[int, int], Candidate] = field(default_factory=dict)
    seen: set[Term] = field(default_factory=set)
    headed: set[Section] = field(default_factory=set)


class Choice:
    """Takes pieces greedily, the one with the most gain for its cost first, until the budget is spent."""

    def __init__(self, sources: Sequence[Source], worth: Mapping[Term, float], whole: Budget, left: Budget) -> None:
        """Of the `whole` budget so much is `left`; costs are counted in shares of the whole."""
        self._sources = sources
        self._worth = worth
        self._whole = Budget(max(1, whole.words), max(1, whole.size))
        self._left = left
        self.chosen = Chosen()

    @property
    def taken(self) -> Iterable[Candidate]:
        """What was taken."""
        return self.chosen.by_place.values()

    def take(self, among: Iterable[Candidate], share: float) -> None:
        """The best of `among`, for at most this share of the whole budget."""
        room = Budget(
            min(int(share * self._whole.words), self._left.words), min(int(share * self._whole.size), self._left.size)
        )
        taken = self.chosen.by_place
        by_place = {one.where: one for one in among if one.where not in taken}
        # Gains fall as terms are covered: the first of the heap that still has its gain is the best. They rise only
        # for the neighbours of a piece that was taken, which join its line; those are put in anew.
        heap = [(-self._gain(one), one.order, one) for one in by_place.values()]
        heapq.heapify(heap)
        while heap:
            _, order, one = heapq.heappop(heap)
            if one.where in taken or (gain := self._gain(one)) <= 0:
                continue
            if heap and -gain > heap[0][0]:
                heapq.heappush(heap, (-gain, order, one))
                continue
            cost = self._cost(one)
            if not room.holds(*cost):
                continue
            room.spend(*cost)
            self._left.spend(*cost)
            taken[one.where] = one
            self.chosen.seen |= one.bag
            self.chosen.headed.add(one.section)
            for place in (one.piece.place - 1, one.piece.place + 1):
                if (near := by_place.get((one.source, place))) is not None and near.where not in taken:
                    heapq.heappush(heap, (-self._gain(near), near.order, near))

    def _gain(self, one: Candidate) -> float:
        seen = self.chosen.seen
        value = sum(self._worth[term] * (SEEN if term in seen else 1.0) for term in one.terms)
        words, size = self._cost(one)
        cost = max(words / self._whole.words, size / self._whole.size)
        return one.weight * value * (1 + CENTRAL * one.central) / math.pow(cost or 1.0, STEEP)

    def _cost(self, one: Candidate) -> tuple[int, int]:
        """Words and bytes of its line, and of its heading if it is the first there; less where it joins a line."""
        source = self._sources[one.source]
        if (gap := self._gap(one, source)) is not None:
            return one.words, one.size + gap
        words, size = one.words, one.size
        if source.seq is None:
            words, size = words + 1, size + 3 + 2 * len(CUT.encode())
        else:
            who = source.who or ""
            words += _OVERHEAD_WORDS + len(who.split())
            size += _OVERHEAD_SIZE + len(str(source.seq)) + len(who.encode())
        if one.section not in self.chosen.headed:
            words, size = words + 1, size + 1 + len(HEADS[one.section])
        return words, size

    def _gap(self, one: Candidate, source: Source) -> int | None:
        """Bytes between it and the piece that it would stand on one line with; None if there is no such piece."""
        for place in (one.piece.place - 1, one.piece.place + 1):
            near = self.chosen.by_place.get((one.source, place))
            later = max((one.piece, near.piece), key=lambda piece: piece.place) if near else None
            if near is not None and later is not None and later.follows and near.section == one.section:
                first = min((one.piece, near.piece), key=lambda piece: piece.place)
                return len(source.text[first.stop : later.start].encode())
        return None


def lines(sources: Sequence[Source], chosen: Iterable[Candidate]) -> dict[Section, list[str]]:
    """The quotes by section, in the order of the conversation; neighbours on one line."""
    found: dict[Section, list[str]] = {}
    run: list[Candidate] = []
    for one in sorted(chosen, key=lambda each: each.order):
        if run and not _continues(run[-1], one):
            _write(sources, run, found)
            run = []
        run.append(one)
    if run:
        _write(sources, run, found)
    return found


def _continues(before: Candidate, after: Candidate) -> bool:
    return (
        before.source == after.source
        and before.piece.place + 1 == after.piece.place
        and after.piece.follows
        and before.section == after.section
    )


def _write(sources: Sequence[Source], run: Sequence[Candidate], found: dict[Section, list[str]]) -> None:
    source, first, last = sources[run[0].source], run[0].piece, run[-1].piece
    # A line that stands for a part of a sentence still does where its end is kept.
    left = not first.opens or (source.cut_left and first.start == 0)
    right = not last.closes or (source.cut_right and last.stop == len(source.text))
    line = quote_line(source.text[first.start : last.stop], source, cut_left=left, cut_right=right)
    found.setdefault(run[0].section, []).append(line)
