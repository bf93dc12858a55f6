"""Two stages against a search of everything: what is found, in which order, with which score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.unit.stores.index.library import ByHand, Matrix, Rows, same, units

from agora.model.instants import NEVER
from agora.ports.vector_index import Among, Candidates, Passages
from agora.stores.sqlite.index.columns import among as slots_among
from agora.stores.sqlite.index.columns import expanded, spans
from agora.stores.sqlite.index.marks import Marks
from agora.stores.sqlite.index.tail import Tail, loaded
from agora.stores.sqlite.index.view import EXACT_BELOW, IndexView, Part
from agora.stores.sqlite.kernels import choose_kernel

COUNT, DIMENSION = 20_000, 128
SPACES = (1, 2, 3)


@cache
def clustered(count: int = COUNT, dimension: int = DIMENSION, seed: int = 4) -> tuple[Matrix, Matrix]:
    """Vectors around a few hundred centres, as texts are, and questions near some of them."""
    numbers = np.random.default_rng(seed)
    centres = numbers.standard_normal((count // 60, dimension))
    vectors = centres[numbers.integers(0, len(centres), count)] + 0.7 * numbers.standard_normal((count, dimension))
    questions = centres[:40] + 0.7 * numbers.standard_normal((40, dimension))
    found = [(each / np.linalg.norm(each, axis=1)[:, None]).astype(np.float32) for each in (vectors, questions)]
    return found[0], found[1]


def everything(vectors: Matrix, *, each: int = 1) -> Passages:
    """Rows of `each` passages; in three namespaces in turn."""
    count = len(vectors)
    rows = np.repeat(np.arange(count // each, dtype=np.int64) * 2 + 1, each)
    numbers = np.tile(np.arange(each, dtype=np.int64), count // each)
    return Passages(rows, numbers, rows // 2 % 3 + 1, np.full(count, NEVER), vectors)


def by_hand(piece: Passages) -> ByHand:
    return ByHand(piece.rows, piece.numbers, piece.namespaces, piece.expires, piece.vectors)


def cut(piece: Passages, slots: Rows) -> Passages:
    return Passages(
        piece.rows[slots], piece.numbers[slots], piece.namespaces[slots], piece.expires[slots], piece.vectors[slots]
    )


def view(piece: Passages, cuts: Sequence[int] = (), *, exact_below: int = 0, shuffled: int = 0) -> IndexView:
    """An index of `piece` in parts that end at `cuts`; the last `shuffled` rows are in a tail, in another order."""
    bounds = [0, *cuts, len(piece.rows) - shuffled]
    parts = [
        Part(loaded(cut(piece, np.arange(start, stop))), Marks.of(stop - start, None, None))
        for start, stop in pairwise(bounds)
    ]
    tail, order = Tail.empty(piece.vectors.shape[1]), np.random.default_rng(shuffled).permutation(shuffled)
    for block in np.array_split(order + len(piece.rows) - shuffled, 5):
        tail = tail.extended([cut(piece, block)])
    return IndexView([*parts, Part(tail, Marks.of(tail.count, None, None))], choose_kernel(), exact_below)


def recall(found: Candidates, expected: Candidates, at: int) -> float:
    return len(set(found.rows[:at].tolist()) & set(expected.rows[:at].tolist())) / at


@pytest.mark.parametrize("limit", [10, 40, 60])
def test_nearly_all_of_the_nearest_are_found_by_bits(limit: int) -> None:
    vectors, questions = clustered()
    piece = everything(vectors)
    searched, hand = view(piece, (7000, 15_000), shuffled=500), by_hand(piece)
    found = [searched.nearest(asked, Among(SPACES, 0), limit) for asked in questions]
    expected = [hand.nearest(asked, Among(SPACES, 0), limit) for asked in questions]
    assert np.mean([recall(*pair, 10) for pair in zip(found, expected, strict=True)]) >= 0.99
    assert np.mean([recall(*pair, limit) for pair in zip(found, expected, strict=True)]) >= 0.98
    for one, other in zip(found, expected, strict=True):
        # The scores of what is found are exact, whatever was missed.
        scores = dict(zip(other.rows.tolist(), other.scores.tolist(), strict=True))
        for row, score in zip(one.rows.tolist(), one.scores.tolist(), strict=True):
            assert score == pytest.approx(scores.get(row, score), abs=2e-7)
        assert np.all(np.diff(one.scores) <= 0)


@pytest.mark.parametrize("percent", [1, 10, 50])
@pytest.mark.parametrize("exact_below", [EXACT_BELOW, 0])
def test_a_filter_finds_what_a_search_by_hand_finds_within_it(percent: int, exact_below: int) -> None:
    vectors, questions = clustered()
    piece = everything(vectors)
    searched, hand = view(piece, (7000, 15_000), exact_below=exact_below, shuffled=500), by_hand(piece)
    rows = np.sort(np.random.default_rng(percent).choice(np.unique(piece.rows), COUNT * percent // 100, replace=False))
    among = Among(SPACES, 0, rows)
    hits = []
    for asked in questions:
        found, expected = searched.nearest(asked, among, 10), hand.nearest(asked, among, 10)
        assert np.isin(found.rows, rows).all()
        hits.append(recall(found, expected, 10))
        if len(rows) < max(exact_below, 4000):
            same(found, expected)
    assert np.mean(hits) >= 0.99


@pytest.mark.parametrize("spaces", [(1,), (1, 3), (2, 77)])
def test_namespaces_are_kept_apart_by_bits_too(spaces: tuple[int, ...]) -> None:
    vectors, questions = clustered()
    piece = everything(vectors)
    searched, hand = view(piece, (7000, 15_000), shuffled=500), by_hand(piece)
    for asked in questions[:10]:
        found, expected = searched.nearest(asked, Among(spaces, 0), 10), hand.nearest(asked, Among(spaces, 0), 10)
        assert recall(found, expected, 10) >= 0.9
        assert set((found.rows // 2 % 3 + 1).tolist()) <= set(spaces)


@pytest.mark.parametrize("exact_below", [EXACT_BELOW * 9, 0])
def test_the_answer_does_not_depend_on_how_passages_lie_in_files_and_tail(exact_below: int) -> None:
    vectors, questions = clustered()
    # Many vectors are the same: whole crowds tie, in float32 and in bits.
    copies = np.repeat(vectors[:4000], 5, axis=0)
    piece = everything(copies)
    views = [
        view(piece, exact_below=exact_below),
        view(piece, (1, 9000, 9001), exact_below=exact_below),
        view(piece, (6000,), exact_below=exact_below, shuffled=6000),
        view(piece, (10,), exact_below=exact_below, shuffled=17_000),
    ]
    rows = np.unique(piece.rows)[::2]
    for asked in questions[:8]:
        for among in (Among(SPACES, 0), Among((2,), 0), Among(SPACES, 0, rows)):
            for limit in (1, 13, 200):
                first, *others = (each.nearest(asked, among, limit) for each in views)
                for other in others:
                    assert other.rows.tolist() == first.rows.tolist()
                    assert other.scores.tolist() == first.scores.tolist()
                    assert other.passages.tolist() == first.passages.tolist()


def test_rows_of_many_passages_take_one_place_each_and_get_their_best_score() -> None:
    vectors, questions = clustered()
    piece = everything(vectors, each=40)
    searched, hand = view(piece, (4000, 12_000), shuffled=0), by_hand(piece)
    for asked in questions[:10]:
        found, expected = searched.nearest(asked, Among(SPACES, 0), 30), hand.nearest(asked, Among(SPACES, 0), 30)
        assert len(found.rows) == 30
        assert recall(found, expected, 10) >= 0.9
        whole = hand.cosines(asked, found.rows)
        np.testing.assert_allclose(found.scores, whole.scores, atol=2e-7)
        assert found.passages.tolist() == whole.passages.tolist()


def test_the_score_is_that_of_a_row_s_best_passage_even_if_its_bits_are_far() -> None:
    # The passages of a row are near each other, and of some it is not the best one whose bits are near.
    numbers = np.random.default_rng(6)
    vectors = np.repeat(numbers.standard_normal((6000, 64)), 10, axis=0) + 0.6 * numbers.standard_normal((60_000, 64))
    piece = everything((vectors / np.linalg.norm(vectors, axis=1)[:, None]).astype(np.float32), each=10)
    searched, hand = view(piece, (30_000,)), by_hand(piece)
    for asked in units(3, seed=7, dimension=64):
        found = searched.nearest(asked, Among(SPACES, 0), 40)
        whole = hand.cosines(asked, found.rows)
        np.testing.assert_allclose(found.scores, whole.scores, atol=2e-7)
        assert found.passages.tolist() == whole.passages.tolist()
        assert np.all(np.diff(found.scores) <= 0)


def test_a_row_of_thousands_of_near_passages_does_not_crowd_out_the_others() -> None:
    vectors, questions = clustered()
    asked = questions[0]
    near = asked + 0.001 * np.random.default_rng(1).standard_normal((9000, DIMENSION)).astype(np.float32)
    vectors = np.concatenate([vectors[:11_000], near / np.linalg.norm(near, axis=1)[:, None]]).astype(np.float32)
    rows = np.concatenate([np.arange(11_000), np.full(9000, 11_000)]).astype(np.int64)
    numbers = np.concatenate([np.zeros(11_000, dtype=np.int64), np.arange(9000)])
    piece = Passages(rows, numbers, np.ones(COUNT, dtype=np.int64), np.full(COUNT, NEVER), vectors)
    found = view(piece).nearest(asked, Among((1,), 0), 10)
    expected = by_hand(piece).nearest(asked, Among((1,), 0), 10)
    assert found.rows[0] == 11_000
    assert recall(found, expected, 10) >= 0.9


@pytest.mark.parametrize("spread", [1e-1, 1e-2, 1e-3, 3e-4, 1e-5, 0.0])
@pytest.mark.parametrize("dimension", [7, 384, 1024])
def test_the_best_are_exact_where_float32_cannot_tell_them_apart(spread: float, dimension: int) -> None:
    numbers = np.random.default_rng(3)
    centre = numbers.standard_normal(dimension)
    vectors = centre + spread * numbers.standard_normal((3000, dimension))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    matrix = vectors.astype(np.float32)
    asked = (centre / np.linalg.norm(centre)).astype(np.float32)
    piece = everything(matrix)
    exact = np.vecdot(matrix.astype(np.float64), asked.astype(np.float64)).astype(np.float32)
    order = np.lexsort((piece.rows, -exact))
    searched = view(piece, (700, 2000), exact_below=EXACT_BELOW, shuffled=300)
    for limit in (1, 10, 200):
        found = searched.nearest(asked, Among(SPACES, 0), limit)
        assert found.rows.tolist() == piece.rows[order][:limit].tolist()
        assert found.scores.tolist() == exact[order][:limit].tolist()
    some = np.sort(piece.rows[::7])
    inside = order[np.isin(piece.rows[order], some)]
    found = searched.nearest(asked, Among(SPACES, 0, some), 50)
    assert found.rows.tolist() == piece.rows[inside][:50].tolist()


def test_what_is_dead_or_expired_is_not_found_by_bits_either() -> None:
    vectors, questions = clustered()
    piece = everything(vectors)
    alive = np.random.default_rng(2).random(COUNT) < 0.6
    expires = np.where(np.random.default_rng(3).random(COUNT) < 0.3, 500, NEVER)
    part = Part(loaded(piece), Marks.of(COUNT, alive, expires))
    searched = IndexView([part], choose_kernel(), 0)
    assert searched.size() == int(alive.sum())
    for now, left in ((499, alive), (500, alive & (expires > 500))):
        hand = by_hand(cut(piece, np.flatnonzero(left)))
        for asked in questions[:10]:
            found, expected = searched.nearest(asked, Among(SPACES, now), 10), hand.nearest(asked, Among(SPACES, 0), 10)
            assert np.isin(found.rows, piece.rows[left]).all()
            assert recall(found, expected, 10) >= 0.9
    gone = piece.rows[~alive][:5]
    assert searched.cosines(questions[0], gone).scores.tolist() == [-1.0] * 5


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("each", [1, 3])
def test_slots_of_rows_are_the_same_by_bisection_and_by_table(share: float, each: int) -> None:
    numbers = np.random.default_rng(7)
    for gap in (1, 3, 1000):
        held = np.repeat(np.sort(numbers.choice(4000 * gap, 4000, replace=False)), each).astype(np.int64)
        wanted = np.sort(numbers.choice(4000 * gap, max(1, int(4000 * share)), replace=False)).astype(np.int64)
        expected = np.flatnonzero(np.isin(held, wanted))
        assert slots_among(held, wanted, single=each == 1).tolist() == expected.tolist()
        assert expanded(*spans(held, wanted)).tolist() == expected.tolist()
    assert slots_among(held, np.array([-5, 10**9]), single=each == 1).tolist() == []
    assert slots_among(held[:0], wanted, single=each == 1).tolist() == []


def test_both_kernels_give_the_same_answers() -> None:
    vectors, questions = clustered()
    part = Part(loaded(everything(vectors)), Marks.of(COUNT, None, None))
    one, other = (IndexView([part], choose_kernel(name), 0) for name in ("numpy", None))
    for asked in questions[:10]:
        same(one.nearest(asked, Among(SPACES, 0), 25), other.nearest(asked, Among(SPACES, 0), 25))


def test_a_tail_in_which_namespaces_come_up_one_by_one_keeps_each_passage_in_its_own() -> None:
    tail, numbers = Tail.empty(8), np.random.default_rng(5)
    spaces: NDArray[np.int64] = numbers.integers(1, 60, 900)
    vectors = numbers.standard_normal((900, 8)).astype(np.float32)
    none = np.zeros(900, dtype=np.int64)
    for start in range(0, 900, 7):
        at = slice(start, start + 7)
        rows = np.arange(start, min(900, start + 7), dtype=np.int64)
        tail = tail.extended([Passages(rows, none[at], spaces[at], none[at], vectors[at])])
    columns = tail.columns()
    assert columns.namespaces[columns.places].tolist() == spaces.tolist()
    shorter = tail.without(np.arange(0, 900, 2)).columns()
    assert shorter.namespaces[shorter.places].tolist() == spaces[1::2].tolist()
    assert shorter.matrix.tobytes() == vectors[1::2].tobytes()
