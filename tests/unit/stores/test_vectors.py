from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from agora.errors import StoreCorrupt
from agora.model.deadline import Deadline
from agora.ports.vector_index import Among
from agora.stores.sqlite.instants import NEVER
from agora.stores.sqlite.vectors import _WASTE, ExactIndex, ExactView, _Arrays

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tests.conftest import MakeDesk


def view_of(vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> ExactView:
    count = len(vectors)
    arrays = _Arrays(
        vectors,
        rows,
        np.zeros(count, np.int64),
        np.ones(count, np.int64),
        np.full(count, NEVER),
        np.ones(count, np.bool_),
        count,
    )
    return ExactView(arrays, {int(row): (slot, slot + 1) for slot, row in enumerate(rows)})


@pytest.mark.parametrize("spread", [1e-1, 1e-2, 1e-3, 3e-4, 1e-5, 0.0])
@pytest.mark.parametrize("dimension", [7, 384, 1024])
def test_the_best_are_exact_where_float32_cannot_tell_them_apart(spread: float, dimension: int) -> None:
    numbers = np.random.default_rng(3)
    centre = numbers.standard_normal(dimension)
    vectors = centre + spread * numbers.standard_normal((3000, dimension))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    matrix = vectors.astype(np.float32)
    rows = numbers.permutation(3000).astype(np.int64)
    asked = (centre / np.linalg.norm(centre)).astype(np.float32)
    exact = np.vecdot(matrix.astype(np.float64), asked.astype(np.float64)).astype(np.float32)
    order = np.lexsort((rows, -exact))
    view = view_of(matrix, rows)
    for limit in (1, 10, 200):
        found = view.nearest(asked, Among((1,), 0), limit)
        assert found.rows.tolist() == rows[order][:limit].tolist()
        assert found.scores.tolist() == exact[order][:limit].tolist()
    some = np.sort(rows[::7])
    inside = order[np.isin(rows[order], some)]
    found = view.nearest(asked, Among((1,), 0, some), 50)
    assert found.rows.tolist() == rows[inside][:50].tolist()


def test_versions_that_were_replaced_take_no_room_for_ever(make_desk: MakeDesk) -> None:
    desk = make_desk()
    kept = desk.save("stays").id
    with desk.store.read(Deadline(5)) as reading:
        old = reading.vectors
    for number in range(_WASTE + 60):
        last = desk.save(f"value {number}", key="counter").id
    assert isinstance(desk.store.index, ExactIndex)
    assert desk.store.index._arrays.count < 100
    assert set(desk.found("value stays", mode="semantic")) == {kept, last}
    # A view that was handed out before goes on over what it had.
    assert old.size() == 1


def test_a_vector_of_the_wrong_length_is_damage_and_is_told_as_such(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.save("one")
    second = desk.save("two").id
    desk.sql("UPDATE vectors SET vector = zeroblob(8) WHERE id = 2")
    fresh = make_desk()
    for _ in range(2):
        with pytest.raises(StoreCorrupt) as caught:
            fresh.query("one")
        assert "doctor" in caught.value.hint
    desk.forget(second)
    assert len(fresh.found("one")) == 1


def test_damage_in_a_tail_is_told_until_it_is_mended_and_nothing_is_applied_twice(make_desk: MakeDesk) -> None:
    one, other = make_desk(), make_desk()
    first = one.save("one").id
    assert other.found("one") == [first]
    second = one.save("two").id
    whole = one.sql("SELECT vector FROM vectors WHERE id = 2")[0][0]
    one.sql("UPDATE vectors SET vector = x'00' WHERE id = 2")
    for _ in range(2):
        with pytest.raises(StoreCorrupt):
            other.query("one")
    one.sql("UPDATE vectors SET vector = ? WHERE id = 2", whole)
    assert set(other.found("one two")) == {first, second}
    with other.store.read(Deadline(5)) as reading:
        assert reading.vectors.size() == 2
