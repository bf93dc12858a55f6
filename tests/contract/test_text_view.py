"""What every full-text index does, against the same scores in plain Python."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.profile import Span
from agora.model.query import Filter
from agora.ports.records import Embedded
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock
from agora.text.analysis import Group, analyse, analyse_query

if TYPE_CHECKING:
    from agora.ports.text_index import Matches

ENCODER = FakeEncoder(8, piece=60)
K1, B, FUNCTION_WORD = 1.2, 0.75, 0.3


def soon() -> Deadline:
    return Deadline(20)


Score = tuple[float, float, int, tuple[str, ...]]


@dataclass
class Passage:
    """The counts of its terms, and how many words it has."""

    counts: Counter[str]
    length: int

    def saturated(self, term: str, mean: float) -> float:
        """What BM25 makes of how often a term stands here."""
        count = self.counts[term]
        return count * (K1 + 1) / (count + K1 * (1 - B + B * self.length / mean))


@dataclass
class Word:
    """A word of a query and what each of its forms is worth among some passages."""

    group: Group
    worths: dict[str, float]
    mass: float

    @classmethod
    def of(cls, group: Group, passages: Sequence[Passage]) -> Word:
        def idf(seen: int) -> float:
            share = FUNCTION_WORD if group.common else 1.0
            return share * math.log(1 + (max(len(passages), seen) - seen + 0.5) / (seen + 0.5))

        worths: dict[str, float] = {}
        for term in group.alternatives:
            if seen := sum(term in passage.counts for passage in passages):
                worths[term] = min([idf(seen), *worths.values()])
        return cls(group, worths, max(worths.values()) if worths else idf(0))

    def held_by(self, passage: Passage) -> str | None:
        """The most exact form that a passage holds."""
        return next((term for term in self.worths if passage.counts[term]), None)


@dataclass
class Library:
    """A store and the same notes as lists of passages."""

    store: SqliteStore
    clock: ManualClock
    rows: dict[int, tuple[str, list[Passage]]] = field(default_factory=dict)
    """Row to namespace and passages."""
    ids: dict[int, str] = field(default_factory=dict)
    tagged: set[int] = field(default_factory=set)

    def add(self, text: str, namespace: str = "p", title: str | None = None, **fields: Any) -> int:
        """Save a note and say which row it is."""
        spans = ENCODER.split(text, soon())
        vector = ENCODER.encode(text, soon())
        embedded = Embedded(ENCODER.fingerprint, spans, (vector,) * len(spans))
        caller = Caller(Scope(namespace, "test"), "ann", "s", "c")
        draft = Draft(text, namespace, title=title, **fields)
        saved = self.store.save(draft, caller, embedded, self.clock.now(), soon())
        with self.store.read(soon()) as reading:
            row = reading.by_id([saved.id], [namespace])[saved.id][0]
        head = analyse(title or "")
        bodies = [analyse(text[span.start : span.stop]) for span in spans]
        passages = [Passage(Counter([*head.terms, *body.terms]), head.length + body.length) for body in bodies]
        self.rows[row] = (namespace, passages)
        self.ids[row] = saved.id
        if fields.get("tags"):
            self.tagged.add(row)
        return row

    def by_hand(self, groups: Sequence[Group], namespaces: Sequence[str]) -> dict[int, Score]:
        """Coverage, BM25, passage and words of every row that matches."""
        inside = {row: passages for row, (name, passages) in self.rows.items() if name in namespaces}
        every = [passage for passages in inside.values() for passage in passages]
        mean = max(1.0, sum(passage.length for passage in every) / len(every)) if every else 1.0
        words = [Word.of(group, every) for group in groups]
        telling = [bool(word.worths) and not word.group.common for word in words]
        if not any(telling):
            telling = [bool(word.worths) for word in words]
        mass = sum(word.mass for word in words) or 1.0
        best: dict[int, Score] = {}
        for row, passages in inside.items():
            for number, passage in enumerate(passages):
                held = [(word, term) for word in words if (term := word.held_by(passage)) is not None]
                if not any(tells for tells, word in zip(telling, words, strict=True) if word.held_by(passage)):
                    continue
                coverage = min(1.0, sum(word.worths[term] for word, term in held) / mass)
                bm25 = sum(word.worths[term] * passage.saturated(term, mean) for word, term in held)
                score = (coverage, bm25, number, tuple(word.group.text for word, _ in held))
                if row not in best or score[:2] > best[row][:2]:
                    best[row] = score
        return best


def library(folder: Path) -> Library:
    clock = ManualClock()
    return Library(SqliteStore(folder / "agora.db", ENCODER.fingerprint, clock), clock)


@pytest.fixture
def shelf(tmp_path: Path) -> Any:
    found = library(tmp_path)
    yield found
    found.store.close()


def agrees(found: Matches, expected: list[tuple[int, Score]]) -> None:
    assert found.rows.tolist() == [row for row, _ in expected]
    assert found.coverage.tolist() == pytest.approx([each[0] for _, each in expected], abs=1e-9)
    assert found.bm25.tolist() == pytest.approx([each[1] for _, each in expected], abs=1e-9)
    assert found.passages.tolist() == [each[2] for _, each in expected]
    assert list(found.words) == [each[3] for _, each in expected]
    assert [str(each.dtype) for each in (found.rows, found.coverage, found.passages)] == ["int64", "float64", "int64"]


def check(shelf: Library, text: str, namespaces: Sequence[str] = ("p",), limit: int = 1000) -> None:
    """`matching` and `matches` against the scores by hand."""
    groups = analyse_query(text)
    expected = shelf.by_hand(groups, namespaces)
    ordered = sorted(expected.items(), key=lambda each: (-round(each[1][1], 9), each[0]))
    nothing: Score = (0.0, 0.0, 0, ())
    with shelf.store.read(soon()) as reading:
        where = reading.among(Filter(tuple(namespaces)))
        agrees(reading.text.matching(groups, where, limit), ordered[:limit])
        rows = [row for row, (name, *_) in shelf.rows.items() if name in namespaces]
        asked = np.array([*reversed(rows), 99_999], dtype=np.int64)
        known = [(int(row), expected.get(int(row), nothing)) for row in asked]
        agrees(reading.text.matches(groups, where, asked), known)
    with shelf.store.read(soon()) as reading:
        # The same rows, asked of a view that has gathered nothing before.
        where = reading.among(Filter(tuple(namespaces)))
        agrees(reading.text.matches(groups, where, asked), known)


WORDS = [
    *("the", "a", "to", "of", "is", "not", "retry", "retries", "retried", "payment", "payments", "queue", "deploy"),
    *("token", "OPS-00001", "OPS-00002", "v1.2.3", "src/agora/app.py", "getUserName", "get_user_name", "don't"),
    *("café", "cafe", "naïve", "ошибка", "ошибки", "数据库", "数据", "连接", "เวลา", "नमस्ते", "🚀", "C++", '"quoted"'),
    *("AND", "OR", "NOT", "NEAR", "n1", "n2", "*", "(", ")", "{", "}", "^", ":", "-", "foo_bar", "FOO", "ﬁle", "x1"),
    *("2026-01-15", "10%", "$5", "@ann", "#12"),
]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
titles = st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(texts, st.sampled_from("pq"), titles), min_size=1, max_size=12, unique_by=lambda each: each[:2]),
    st.lists(texts, min_size=1, max_size=4),
    st.sampled_from([("p",), ("q",), ("p", "q"), ("nowhere",), ("p", "nowhere")]),
    st.integers(1, 20),
)
def test_any_corpus_scores_as_it_does_by_hand(
    notes: list[tuple[str, str, str | None]], questions: list[str], namespaces: tuple[str, ...], limit: int
) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shelf = library(Path(folder))
        for text, namespace, title in notes:
            shelf.add(text, namespace, title)
        for question in questions:
            check(shelf, question, namespaces, limit)
        shelf.store.close()


def test_a_word_that_stands_twice_in_a_row_counts_twice(shelf: Library) -> None:
    once, twice = shelf.add("queue full"), shelf.add("queue queue")
    check(shelf, "queue")
    with shelf.store.read(soon()) as reading:
        found = reading.text.matching(analyse_query("queue"), reading.among(Filter(("p",))), 5)
    assert found.rows.tolist() == [twice, once]


def test_a_word_that_is_all_there_is_covered_whole_however_rare_its_other_forms_are(shelf: Library) -> None:
    for number in range(8):
        shelf.add(f"the queue number {number}")
    # The French stem of the word, written out.
    shelf.add("queu")
    with shelf.store.read(soon()) as reading:
        found = reading.text.matching(analyse_query("queue"), reading.among(Filter(("p",))), 20)
    assert found.coverage.tolist() == [1.0] * 9
    check(shelf, "queue number")


def test_function_words_find_nothing_by_themselves_unless_nothing_else_is_asked(shelf: Library) -> None:
    both = shelf.add("the queue is full")
    shelf.add("the deploy is done")
    for text in ("the queue", "is the queue the one"):
        check(shelf, text)
        with shelf.store.read(soon()) as reading:
            assert reading.text.matching(analyse_query(text), reading.among(Filter(("p",))), 5).rows.tolist() == [both]
    check(shelf, "the is")
    check(shelf, "the unheard-of")


def test_another_namespace_moves_no_score(shelf: Library) -> None:
    for text in ("the queue is full", "deploy the queue", "payments"):
        shelf.add(text, "p")
    groups = analyse_query("deploy the queue of payments")

    def scores() -> list[list[float]]:
        with shelf.store.read(soon()) as reading:
            found = reading.text.matching(groups, reading.among(Filter(("p",))), 10)
            return [found.rows.tolist(), found.coverage.tolist(), found.bm25.tolist()]

    before = scores()
    for number in range(30):
        shelf.add(f"queue queue deploy payments number {number}", "q")
        shelf.add(f"n1 the queue {number}", "n1")
    assert scores() == before


def test_forgotten_superseded_and_restored_notes_move_the_statistics_as_they_should(shelf: Library) -> None:
    from agora.model.selection import Selection  # noqa: PLC0415 - used here alone

    keep = shelf.add("queue of payments")
    gone = shelf.add("queue of deploys " * 20)
    caller = Caller(Scope("p", "test"), "ann", "s", "c")
    removed = shelf.rows.pop(gone)
    shelf.store.forget(Selection(("p",), (shelf.ids[gone],)), caller, shelf.clock.now(), soon(), dry_run=False)
    check(shelf, "queue of payments and deploys")
    shelf.rows[gone] = removed
    shelf.store.restore((shelf.ids[gone],), caller, shelf.clock.now(), soon())
    check(shelf, "queue of payments and deploys")
    old = shelf.add("port eighty", key="k")
    shelf.add("port of the queue", key="k")
    del shelf.rows[old]
    check(shelf, "port eighty queue payments")
    assert keep in shelf.rows


def test_only_rows_that_meet_the_filter_are_found(shelf: Library) -> None:
    for number in range(50):
        shelf.add(f"queue queue of payments {number}")
    tagged = [shelf.add(f"one queue among very many other words in here {number}", tags=("t",)) for number in range(3)]
    groups = analyse_query("queue of payments")
    with shelf.store.read(soon()) as reading:
        where = reading.among(Filter(("p",), tags=("t",)))
        assert reading.text.matching(groups, where, 1).rows.tolist() == tagged[:1]
        assert sorted(reading.text.matching(groups, where, 10).rows.tolist()) == tagged
        assert reading.text.matching(groups, reading.among(Filter(("p",), tags=("none",))), 10).rows.tolist() == []
        # How given rows match is another question than which are to be found.
        assert reading.text.matches(groups, where, np.array([1, tagged[0]])).coverage.min() > 0
        assert len(reading.text.matching(groups, where, 10).rows) == 3
        assert len(reading.text.matching(groups, reading.among(Filter(("p",))), 100).rows) == 53


def test_one_long_note_does_not_take_the_places_of_others(shelf: Library) -> None:
    shelf.add("the queue of payments is full and so it goes. " * 400)
    others = {shelf.add(f"a queue {number}") for number in range(10)}
    groups = analyse_query("queue payments full")
    with shelf.store.read(soon()) as reading:
        found = reading.text.matching(groups, reading.among(Filter(("p",))), 20)
    assert len(found.rows) == 11
    assert others < set(found.rows.tolist())


def test_of_a_long_note_the_most_promising_passages_are_scored(shelf: Library) -> None:
    """More passages than are scored: those with the rarest words are not left out."""
    row = shelf.add("the queue is full and so it goes. " * 300 + "zebra queue")
    for number in range(5):
        shelf.add(f"queue {number}")
    groups = analyse_query("zebra queue")
    with shelf.store.read(soon()) as reading:
        where = reading.among(Filter(("p",)))
        found = reading.text.matching(groups, where, 20)
        place = found.rows.tolist().index(row)
        assert found.coverage[place] == 1.0
        again = reading.text.matches(groups, where, np.array([row]))
        assert (again.coverage[0], again.passages[0]) == (1.0, found.passages[place])
    with shelf.store.read(soon()) as reading:
        alone = reading.text.matches(groups, where, np.array([row]))
    assert (alone.coverage[0], alone.passages[0]) == (1.0, found.passages[place])


def test_the_passage_that_matches_best_is_named(shelf: Library) -> None:
    text = "nothing of interest in here. " * 40 + "the zebra crosses at noon"
    row = shelf.add(text)
    groups = analyse_query("zebra noon")
    with shelf.store.read(soon()) as reading:
        found = reading.text.matching(groups, reading.among(Filter(("p",))), 5)
        span = reading.span(row, int(found.passages[0]))
    assert isinstance(span, Span)
    assert "zebra" in text[span.start : span.stop]


def test_words_without_a_question_find_nothing(shelf: Library) -> None:
    row = shelf.add("queue")
    with shelf.store.read(soon()) as reading:
        where = reading.among(Filter(("p",)))
        assert reading.text.matching((), where, 5).rows.tolist() == []
        assert reading.text.matches((), where, np.array([row])).coverage.tolist() == [0.0]
        groups = analyse_query("queue")
        assert reading.text.matches(groups, where, np.array([], dtype=np.int64)).rows.tolist() == []


def test_two_questions_to_one_view_do_not_mix(shelf: Library) -> None:
    one, two = shelf.add("queue of payments"), shelf.add("deploy of tokens", "q")
    with shelf.store.read(soon()) as reading:
        p, q = reading.among(Filter(("p",))), reading.among(Filter(("q",)))
        for _ in range(2):
            assert reading.text.matching(analyse_query("queue"), p, 5).rows.tolist() == [one]
            assert reading.text.matching(analyse_query("deploy"), p, 5).rows.tolist() == []
            assert reading.text.matching(analyse_query("deploy"), q, 5).rows.tolist() == [two]
            assert reading.text.matches(analyse_query("deploy"), p, np.array([one])).coverage.tolist() == [0.0]
