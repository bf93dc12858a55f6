"""How much each piece of a conversation says: what it names, how central it is there, who says it, its cues."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from agora.llm import extractive_cues as cues
from agora.llm.extractive_pieces import Piece, Section, Source, pieces, prose
from agora.llm.extractive_terms import Term, terms

CLASSES = {"file": 2.0, "number": 2.0, "date": 1.8, "name": 1.6, "near": 0.8, "word": 0.5}
"""What a term is worth by its class: what cannot be guessed from the rest counts most."""

ROLES = {"user": 1.0, "assistant": 0.28, "tool": 0.28, "system": 0.25}
KINDS = {"prose": 1.0, "error": 1.0, "command": 0.6}
SECTIONS: dict[Section, float] = {"decisions": 1.6, "open": 1.3, "facts": 1.0}

QUESTION, DULL, FAULT = 0.45, 0.2, 1.2
"""Of a question, of what assistants say to everything, and of an error."""

HALF = 400
"""Messages after which an older line has lost a quarter of its weight; it never loses more than half."""

GAP = 3600.0
"""Seconds of silence that begin a segment."""

WINDOW, SHARED, LEAST = 3, 0.04, 4
"""A segment begins where the messages before and after share less than `SHARED` of their words, `LEAST` at a time."""

_FAULTS = frozenset(
    {"error", "except", "bug", "crash", "crashe", "failed", "fail", "failur", "fatal", "panic", "traceb"}
)
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÞА-ЯЁ][^\W\d_]+")


@dataclass(slots=True)
class Candidate:
    """A piece with all that is known of it. `seq`: 0 for a line of no message; such lines are the oldest.

    `terms`, each once, and in order: a sum over `bag`, their set, would be another in another process.
    """

    source: int
    piece: Piece
    text: str
    seq: int
    section: Section
    terms: tuple[Term, ...]
    words: int
    size: int
    weight: float = 1.0
    central: float = 0.0
    bag: frozenset[Term] = field(default_factory=frozenset)

    @property
    def order(self) -> tuple[int, int, int]:
        """Place in the conversation; ties break by it."""
        return self.seq, self.source, self.piece.place

    @property
    def where(self) -> tuple[int, int]:
        """Source and place: no two have the same."""
        return self.source, self.piece.place


@dataclass(frozen=True, slots=True)
class Weighed:
    """All candidates, and what each term of them is worth."""

    candidates: list[Candidate]
    worth: dict[Term, float]


def weigh(sources: Sequence[Source], old: int, last: int, check: Callable[[], None]) -> Weighed:
    """Every piece of the sources that says something; the first `old` sources are lines of the summary before."""
    known = frozenset(name.casefold() for source in sources for name in _NAME.findall(source.text[:8_000]))
    found: list[Candidate] = []
    for n, source in enumerate(sources):
        if n % 16 == 0:
            check()
        for piece in prose(source.text) if n < old else pieces(source.text):
            text = source.text[piece.start : piece.stop]
            if (one := _candidate(n, source, piece, text, known)) is not None:
                one.weight *= _age(one.seq, last) if n < old else 1.0
                if text.endswith(("?", "？")) and n == len(sources) - 1 and one.section == "facts":
                    # Nobody has said anything after it.
                    one.section, one.weight = "open", one.weight / QUESTION
                found.append(one)
    speakers: set[Term] = {("name", part.casefold()) for source in sources for part in (source.who or "").split()}
    worth = _worth(found, len(sources))
    for term in speakers & worth.keys():
        worth[term] = CLASSES["word"]
    _add_centrality(found, worth, _segments(sources, found, old))
    return Weighed(found, worth)


def _candidate(n: int, source: Source, piece: Piece, text: str, known: frozenset[str]) -> Candidate | None:
    if not _quotable(text):
        return None
    opens = piece.opens and not source.cut_left
    bag = tuple(dict.fromkeys(terms(text, opens=opens, known=known)))
    if not bag or not any(character.isalnum() for character in text):
        return None
    section = _section(source, text, piece)
    if opens and section == "facts" and _is_courtesy(text, bag):
        return None
    weight = ROLES[source.role] * KINDS[piece.kind] * SECTIONS[section]
    if text.endswith(("?", "？")):
        weight *= QUESTION
    if _FAULTS.intersection(word for _, word in bag):
        weight *= FAULT
    if source.role == "assistant" and opens and cues.BOILERPLATE.match(text):
        weight *= DULL
    words, size = len(text.split()), len(text.encode())
    return Candidate(n, piece, text, source.seq or 0, section, bag, words, size, weight, bag=frozenset(bag))


def _quotable(text: str) -> bool:
    # Half a surrogate pair has no bytes, so nothing could count it or store it.
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _is_courtesy(text: str, bag: Sequence[Term]) -> bool:
    """Whether it greets, thanks or applauds and says nothing more: "Thanks, Anna!", but not "Hi, I'm Anna"."""
    found = cues.COURTESY.fullmatch(text)
    if found is None:
        return False
    rest = len(_WORD.findall(found["rest"]))
    tells = any(kind in {"number", "date", "file"} for kind, _ in bag)
    named = any(kind == "name" for kind, _ in bag)
    return not tells and (rest == 0 or not (cues.ASSENT.match(text) or (named and rest > 1)))


def _section(source: Source, text: str, piece: Piece) -> Section:
    if source.section is not None:
        # What was asked last when the summary before was made has been followed by something since.
        return "facts" if source.section == "open" and text.endswith(("?", "？")) else source.section
    if piece.kind != "prose" or text.endswith(("?", "？")):
        return "facts"
    lower = text.lower()
    if (cues.DECISION if source.role == "user" else cues.FIRM_DECISION).search(lower):
        return "open" if cues.UNDECIDED.search(lower) else "decisions"
    pattern = cues.OPEN if source.role == "user" else cues.FIRM_OPEN
    return "open" if pattern.search(lower) else "facts"


def _age(seq: int, last: int) -> float:
    return 0.5 + 0.5 * math.exp2(-max(0, last - seq) / HALF)


def _worth(found: Iterable[Candidate], sources: int) -> dict[Term, float]:
    """Each term's class times its rarity, in 0..1, by the number of sources that have it."""
    having: Counter[Term] = Counter()
    seen: dict[int, set[Term]] = {}
    for one in found:
        new = one.bag - seen.setdefault(one.source, set())
        seen[one.source] |= new
        having.update(new)
    whole = math.log(1 + sources)
    return {term: CLASSES[term[0]] * math.log(1 + sources / n) / whole for term, n in having.items()}


def _segments(sources: Sequence[Source], found: Iterable[Candidate], old: int) -> list[int]:
    """The number of the segment that each source lies in; the summary before is one of its own."""
    said: list[set[Term]] = [set() for _ in sources]
    for one in found:
        said[one.source] |= {term for term in one.bag if term[0] in {"word", "name"}}
    number, began = 1, old
    numbers = [0] * min(old, len(sources))
    for n in range(old, len(sources)):
        if n > old and (_paused(sources[n - 1], sources[n]) or (n - began >= LEAST and _turns(said, n, began))):
            number, began = number + 1, n
        numbers.append(number)
    return numbers


def _paused(before: Source, after: Source) -> bool:
    return before.at is not None and after.at is not None and abs((after.at - before.at).total_seconds()) > GAP


def _turns(said: Sequence[set[Term]], n: int, began: int) -> bool:
    left = set().union(*said[max(began, n - WINDOW) : n])
    right = set().union(*said[n : n + WINDOW])
    return bool(left and right) and len(left & right) < SHARED * min(len(left), len(right))


def _add_centrality(found: Iterable[Candidate], worth: dict[Term, float], segments: Sequence[int]) -> None:
    """The cosine of each piece's weighted terms with those of its segment, all pieces together."""
    middles: dict[int, dict[Term, float]] = {}
    for one in found:
        middle = middles.setdefault(segments[one.source], {})
        for term in one.terms:
            middle[term] = middle.get(term, 0.0) + worth[term]
    lengths = {n: math.sqrt(sum(value * value for value in middle.values())) for n, middle in middles.items()}
    for one in found:
        middle = middles[segments[one.source]]
        own = math.sqrt(sum(worth[term] ** 2 for term in one.terms))
        one.central = sum(worth[term] * middle[term] for term in one.terms) / (
            own * lengths[segments[one.source]] or 1.0
        )
