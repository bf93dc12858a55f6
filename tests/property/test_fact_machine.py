"""Any run of calls, by two processes' worth of stores and across restarts, against statements in a dictionary.

`MACHINE_RUNS=20` multiplies the number of examples.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from tests.fact_desk import FactDesk, facts_agree
from tests.property.told_slowly import Slow

from agora.model.caller import Origin, rank
from agora.model.instants import NEVER, to_micros
from agora.model.timeline import Statement
from agora.testing import FakeEncoder, ManualClock
from agora.text.sameness import same

RUNS = int(os.environ.get("MACHINE_RUNS", "1"))
KEYS = ("editor", "port")
VALUES = ("vim", "emacs", 80, "8,080")
ORIGINS: tuple[Origin, ...] = ("user", "agent", "agent", "tool")

whens = st.sampled_from([None, None, None, -20, -5, 0, 5, 20])
lengths = st.sampled_from([None, None, None, None, 0, 10, 30])
lives = st.sampled_from([None, None, None, 8, 40])


class FactMachine(RuleBasedStateMachine):
    """What the store recalls is what a slow account of the same statements says; so is what queries may find."""

    ids: Bundle[tuple[str, str]] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="agora-facts-"))
        self.clock = ManualClock()
        self.desks = [self.opened(), self.opened()]
        self.said: dict[str, dict[str, Statement]] = {key: {} for key in KEYS}
        self.values: dict[str, Any] = {}
        self.turn = 0

    def opened(self, clock: ManualClock | None = None) -> FactDesk:
        return FactDesk(self.folder, clock=clock or self.clock, encoder=FakeEncoder(16))

    @property
    def now(self) -> int:
        return to_micros(self.clock.now())

    @rule(
        target=ids,
        key=st.sampled_from(KEYS),
        value=st.sampled_from(VALUES),
        origin=st.sampled_from(ORIGINS),
        when=whens,
        length=lengths,
        lives=lives,
        multi=st.sampled_from([None, None, None, True, False]),
        which=st.integers(0, 1),
    )
    def remember(
        self,
        key: str,
        value: Any,
        origin: Origin,
        when: int | None,
        length: int | None,
        lives: int | None,
        multi: bool | None,
        which: int,
    ) -> Any:
        start = self.clock.now() if when is None else self.clock.now() + timedelta(seconds=when)
        stop = None if length is None else start + timedelta(seconds=length)
        if when is None and stop is not None and stop <= self.clock.now():
            stop = None
        begins = None if when is None else start
        before = Slow(list(self.said[key].values()), to_micros(start), self.now, NEVER)
        held = [each for each in before.speaking() if each.row in before.holding()]
        told = self.desks[which].remember(
            key, value, origin=origin, agent=f"{origin}{which}", lives=lives,
            valid_from=begins, valid_to=stop, multi=multi,
        )  # fmt: skip
        voice = rank(origin), self.now
        expires = None if lives is None else self.now + lives * 1_000_000
        if told.id in self.said[key]:
            assert told.status == "corroborated"
            old = self.said[key][told.id]
            assert old.same == same(value)
            kept = None if None in {old.expires, expires} else max(old.expires or 0, expires or 0)
            self.said[key][told.id] = old._replace(voices=(*old.voices, voice), expires=kept)
            return multiple()
        assert told.status != "corroborated" or any(each.same == same(value) for each in before.speaking())
        heard = [each for each in before.speaking() if each.row in before.holding() or each.rank(NEVER) <= voice[0]]
        several = any(each.multi for each in heard) if multi is None else multi
        self.said[key][told.id] = Statement(
            len(self.values) + 1,
            same(value),
            several,
            to_micros(start),
            None if stop is None else to_micros(stop),
            expires,
            self.now,
            retracted=False,
            reverted=False,
            voices=(voice,),
        )
        self.values[told.id] = value
        after = Slow(list(self.said[key].values()), to_micros(start), self.now, NEVER)
        gone = [each for each in held if each.row in after.replaced() and each.same != same(value)]
        assert len(told.replaced) == (len(gone) if told.status in {"superseded", "contested"} else 0)
        return key, told.id

    @rule(chosen=ids, which=st.integers(0, 1))
    def forget(self, chosen: tuple[str, str], which: int) -> None:
        key, public_id = chosen
        done = self.desks[which].forget(public_id, origin="user")
        if done.count:
            self.said[key][public_id] = self.said[key][public_id]._replace(retracted=True)

    @rule(chosen=ids, which=st.integers(0, 1))
    def restore(self, chosen: tuple[str, str], which: int) -> None:
        key, public_id = chosen
        done = self.desks[which].restore(public_id, origin="user")
        if public_id in {*done.restored, *done.superseded}:
            self.said[key][public_id] = self.said[key][public_id]._replace(retracted=False)

    @rule(seconds=st.sampled_from([1, 3, 5, 10, 20]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule(which=st.integers(0, 1), how=st.sampled_from(["restart", "reindex", "compact"]))
    def upkeep(self, which: int, how: str) -> None:
        if how == "restart":
            self.desks[which].store.close()
            self.desks[which] = self.opened()
        elif how == "reindex":
            self.desks[which].store.reindex()
        else:
            self.desks[which].store.compact(force=True)

    @rule(seconds=st.sampled_from([-30, -10, -1, 0, 1, 10, 30]), key=st.sampled_from(KEYS), which=st.integers(0, 1))
    def recall_as_of(self, seconds: int, key: str, which: int) -> None:
        at = self.clock.now() + timedelta(seconds=seconds)
        self.agree(self.desks[which], key, as_of=at)
        known = self.clock.now() - timedelta(seconds=abs(seconds))
        self.agree(self.desks[which], key, as_of=at, known_at=known)

    @rule(seconds=st.sampled_from([1, 5, 8, 10, 30, 100]))
    def look_from_a_later_instant(self, seconds: int) -> None:
        later = self.opened(ManualClock(self.clock.now() + timedelta(seconds=seconds)))
        facts_agree(later)
        for key in KEYS:
            self.agree(later, key)
        later.store.close()

    @invariant()
    def what_holds_is_what_the_dictionary_says(self) -> None:
        self.turn += 1
        desk = self.desks[self.turn % 2]
        for key in KEYS:
            self.agree(desk, key)
        facts_agree(desk)

    def agree(self, desk: FactDesk, key: str, as_of: datetime | None = None, known_at: datetime | None = None) -> None:
        now = to_micros(desk.clock.now())
        at = now if as_of is None else to_micros(as_of)
        known = NEVER if known_at is None else to_micros(known_at)
        slow = Slow(list(self.said[key].values()), at, now, known)
        ids = {each.row: public_id for public_id, each in self.said[key].items()}
        found = desk.recall(key=key, as_of=as_of, known_at=known_at)
        assert sorted(each.fact.id for each in found.facts) == sorted(ids[row] for row in slow.holding())
        beside = {ids[row] for row in slow.contested()}
        assert all({each.id for each in stands.contested_by} == beside for stands in found.facts)
        whole = desk.recall(key=key, as_of=as_of, known_at=known_at, include_history=True)
        assert [each.fact.id for each in whole.facts] == [each.fact.id for each in found.facts]
        empty = {public_id for public_id, each in self.said[key].items() if each.start == each.stop}
        every = {public_id for public_id, each in self.said[key].items() if each.recorded <= known} - empty
        assert {each.fact.id for each in (*whole.facts, *whole.history)} == every

    def teardown(self) -> None:
        assert self.desks[0].problems() == []
        for desk in self.desks:
            desk.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)


TestFactMachine = FactMachine.TestCase
TestFactMachine.settings = settings(
    max_examples=15 * RUNS, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
