"""What holds of a key at an instant: a slow and independent account of it, and laws that need none."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.told_slowly import Slow

from agora.model.instants import NEVER
from agora.model.timeline import Statement, outcome, standings

RUNS = int(os.environ.get("MACHINE_RUNS", "1"))
VALUES = (b"a", b"b", b"c")
instants = st.integers(0, 8)


def _said(multi: list[bool]) -> st.SearchStrategy[Any]:
    return st.tuples(
        st.sampled_from(VALUES),
        st.sampled_from(multi),
        instants,
        st.sampled_from([None] * 6 + [0, 1, 3, 5]),
        st.sampled_from([None] * 6 + [3, 7, 11]),
        st.integers(0, 2),
        st.sampled_from(["there"] * 9 + ["retracted", "purged", "reverted"]),
        st.integers(0, 2),
        st.sampled_from([None, None, (0, 2), (0, 9), (1, 5), (3, 0)]),
    )


def histories(most: int = 7) -> st.SearchStrategy[list[Statement]]:
    """Statements of one key, in the order in which they were recorded; so few instants that many coincide."""
    kinds = [st.lists(_said(multi), min_size=1, max_size=most) for multi in ([False], [True], [False, True, True])]
    return st.one_of(kinds).map(_told)


def _told(said: list[Any]) -> list[Statement]:
    recorded, found = 0, []
    for row, (value, multi, start, length, expires, later, state, rank, more) in enumerate(said, start=1):
        recorded += later
        voices = ((rank, recorded), *([] if more is None else [(more[0], max(recorded, more[1]))]))
        same = None if state == "purged" else value
        stop = None if length is None else start + length
        retracted = state in {"retracted", "purged"}
        found.append(
            Statement(row, same, multi, start, stop, expires, recorded, retracted, state == "reverted", voices)
        )
    return found


def law(test: Any) -> Any:
    return settings(max_examples=200 * RUNS, deadline=None)(test)


@law
@given(histories(), instants, st.integers(0, 12), st.integers(0, 12) | st.just(NEVER))
def test_what_holds_is_what_a_slow_account_says(every: list[Statement], at: int, now: int, known: int) -> None:
    slow, found = Slow(every, at, now, known), outcome(every, at, now, known)
    assert found.holding == slow.holding()
    assert found.contested == slow.contested()
    assert set(found.replaced) == slow.replaced()
    assert {*found.holding, *found.contested, *found.behind} == {s.row for s in slow.speaking()}


@law
@given(histories(), instants, st.randoms())
def test_the_order_in_which_it_is_read_makes_no_difference(every: list[Statement], at: int, chance: Any) -> None:
    mixed = list(every)
    chance.shuffle(mixed)
    assert outcome(mixed, at, at) == outcome(every, at, at)


@law
@given(histories(), instants, instants, st.integers(0, 12))
def test_what_was_replaced_does_not_come_back(every: list[Statement], one: int, other: int, now: int) -> None:
    before, after = outcome(every, min(one, other), now), outcome(every, max(one, other), now)
    assert before.replaced.items() <= after.replaced.items()
    assert not {*after.holding, *after.contested, *after.behind} & before.replaced.keys()


@law
@given(histories(), instants, st.integers(0, 12))
def test_what_was_replaced_by_then_may_be_left_out(every: list[Statement], at: int, now: int) -> None:
    gone = outcome(every, at, now).replaced
    few = [each for each in every if each.row not in gone]
    for later in range(at, 10):
        whole, part = outcome(every, later, now), outcome(few, later, now)
        assert (part.holding, part.contested, part.behind) == (whole.holding, whole.contested, whole.behind)
        assert part.replaced.items() == whole.replaced.items() - gone.items()


@law
@given(histories(), instants, st.integers(0, 12))
def test_what_was_taken_back_counts_as_never_said(every: list[Statement], at: int, now: int) -> None:
    without = [each for each in every if not each.reverted]
    assert outcome(every, at, now) == outcome(without, at, now)


@law
@given(histories(), instants, st.integers(0, 12), st.integers(0, 12))
def test_what_was_known_then_is_what_had_been_recorded_then(
    every: list[Statement], at: int, now: int, known: int
) -> None:
    then = [
        each._replace(voices=tuple(voice for voice in each.voices if voice[1] <= known))
        for each in every
        if each.recorded <= known
    ]
    assert outcome(every, at, now, known) == outcome(then, at, now)


@law
@given(histories(), instants, st.integers(0, 12))
def test_lower_authority_never_overrules_higher(every: list[Statement], at: int, now: int) -> None:
    single = [each._replace(multi=False) for each in every]
    found = outcome(single, at, now)
    ranks = {each.row: each.rank(NEVER) for each in single}
    by_row = {each.row: each for each in single}
    highest = [
        each
        for each in single
        if ranks[each.row] == min(ranks.values()) and not each.reverted and each.start <= at and each.speaks(at, now)
    ]
    others = {row for row in found.holding if ranks[row] > min(ranks.values())}
    # Of what is highest only its own equals say that it is over.
    assert not others or all(ranks[found.replaced[each.row]] == ranks[each.row] for each in highest)
    assert len(found.holding) <= 1
    assert all(ranks[row] > ranks[found.holding[0]] for row in found.contested)
    assert all(by_row[row].same == by_row[holder].same for row, holder in found.behind.items())


@law
@given(histories(), histories(1), st.integers(0, 12))
def test_what_arrives_late_never_overrules_what_is_newer(
    every: list[Statement], late: list[Statement], now: int
) -> None:
    before = outcome(every, NEVER, now)
    ranks = {each.row: each.rank(NEVER) for each in every}
    [new] = [each._replace(row=100, recorded=50, voices=((2, 50),), start=each.start - 1) for each in late]
    after = outcome([*every, new], NEVER, now)
    newer = {each.row for each in every if each.start > new.start and ranks[each.row] <= 2}
    assert newer.intersection(before.holding) <= {*after.holding, *after.contested, *after.behind}
    assert newer.isdisjoint(row for row in after.replaced if row not in before.replaced)


@law
@given(histories(), instants, st.integers(0, 12))
def test_every_statement_stands_as_what_holds_says(every: list[Statement], at: int, now: int) -> None:
    found, stand = outcome(every, at, now), standings(every, at, now)
    assert stand.keys() == {each.row for each in every}
    assert sorted(found.holding) == sorted(row for row, each in stand.items() if each.state == "current")
    assert sorted(found.contested) == sorted(row for row, each in stand.items() if each.state == "contested")
    for each in every:
        if stand[each.row].state in {"current", "contested"}:
            until = stand[each.row].until
            assert until is None or until > at
            # It holds or is contested until then, and not at that instant itself.
            if until is not None:
                over = outcome(every, until, now)
                assert each.row not in {*over.holding, *over.contested}
