"""What undoing one writer's changes comes to, note by note."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from agora.model.audit import ORDER, Left, Plan, Step, Undoing, Writer
from agora.model.caller import Origin, rank
from agora.stores.sqlite import forgetting
from agora.stores.sqlite.audit_history import ABOVE, ALONE, MOVING, Coming, Event, History
from agora.stores.sqlite.audit_lineage import Item, Lineage
from agora.stores.sqlite.authority import outranking
from agora.stores.sqlite.gateway import called


@dataclass(slots=True)
class Unit:
    """One step with all that it touches.

    `hide`: rows to forget, the writer's older versions of the key after the current one; `made`: they are the writer's,
    and no later revert of somebody else may bring them back. `base`: the version that was current before the writer's.
    `loose`: notes without a key whose text the writer put under one. `savings`: what is to count no more, beside the
    `others`, and whether the title came with it; `coming`: who is to be a saver again.
    """

    undoing: Undoing
    item: Item
    hide: list[Item] = field(default_factory=list)
    made: bool = False
    base: Item | None = None
    loose: list[Item] = field(default_factory=list)
    savings: Sequence[Event] = ()
    others: Sequence[Event] = ()
    titled: bool = False
    coming: Sequence[Coming] = ()

    def step(self) -> Step:
        """As the plan shows it."""
        item = self.item
        earlier = self.base or next(iter(self.loose), None)
        told = None if earlier is None else earlier.public_id
        return Step(self.undoing, item.row, item.public_id, item.namespace, item.title, told)


def plan(connection: sqlite3.Connection, writer: Writer, origin: Origin, now: int) -> Plan:
    """As `agora.ports.audit.Reverting.plan`, in the caller's transaction."""
    lineage = Lineage(connection, writer, now)
    steps: list[Step] = []
    left: list[Left] = []
    for row in lineage.touched():
        units, stays = units_of(lineage, row)
        for unit in units:
            if is_above(connection, unit, origin):
                stays.append(_left(unit.item, ABOVE))
            else:
                steps.append(unit.step())
        left += stays
    return Plan(
        tuple(sorted(steps, key=lambda step: ORDER.index(step.undoing))), tuple(left), called.of(connection, writer)
    )


def is_above(connection: sqlite3.Connection, unit: Unit, origin: Origin) -> bool:
    """Whether a step would change what is of higher origin than who reverts."""
    origins: list[Origin] = [each.origin for each in unit.savings]
    origins += [each for coming in unit.coming for each in coming.origins]
    if any(rank(each) < rank(origin) for each in origins) or outranking(
        connection, (each.row for each in unit.hide), origin
    ):
        return True
    # Whoever hides a note again, or brings it back, decides from then on who may.
    decided = [each for each in unit.hide if each.forgotten_at is not None]
    decided += [unit.item] if unit.undoing == "restore" else []
    return any(forgetting.forgotten_by(connection, each.row) < rank(origin) for each in decided)


def units_of(lineage: Lineage, row: int) -> tuple[list[Unit], list[Left]]:
    """What there is to undo of a note, and what has to be left."""
    item = lineage.item(row)
    if item is None:
        return [], []
    history = lineage.history(row)
    if history.owned:
        return _made(lineage, item)
    units, left = _savers(lineage, item, history)
    flags = lineage.flags(item)
    if flags.bared and not item.superseded_by:
        # Its own writer was reverted while this one had it hidden: what it had replaced could not come back then.
        _, base, loose = _before(lineage, item)
        units += [Unit("take back", item, base=base, loose=loose)] if base is not None or loose else []
    if flags.changed and not lineage.expired(item):
        units.append(Unit("restore", item) if flags.now else Unit("forget", item, [item]))
    return units, left


def _savers(lineage: Lineage, item: Item, history: History) -> tuple[list[Unit], list[Left]]:
    """Of a note that others have saved too: whose names go, and whose come back."""
    leaving, coming = history.leaving, history.coming
    left = [] if history.stuck is None else [_left(item, history.stuck)]
    going = {each.sequence for each in leaving}
    others = [each for each in history.standing if each.sequence not in going]
    if leaving and not others:
        return [], [*left, _left(item, ALONE)]
    turned = going | {sequence for each in coming for sequence in each.sequences}
    if history.titling & turned and lineage.moving():
        return [], [*left, _left(item, MOVING)]
    titled = not history.titling.isdisjoint(going)
    units = [Unit("withdraw", item, savings=leaving, others=others, titled=titled)] if leaving else []
    units += [Unit("give back", item, coming=coming)] if coming else []
    return units, left


def _made(lineage: Lineage, item: Item) -> tuple[list[Unit], list[Left]]:
    """Of a note that the writer made."""
    if item.superseded_by and lineage.owns(item.superseded_by):
        # It goes with its successor.
        return [], []
    hide, base, loose = _before(lineage, item)
    flags = lineage.flags(item)
    # What is history or hidden already is marked too: undoing somebody else later must not bring it back.
    hide = [each for each in hide if not lineage.flags(each).reverted and not lineage.expired(each)]
    forget = [Unit("forget", item, hide, made=True)] if hide else []
    if item.superseded_by:
        return forget, []
    if flags.now and not flags.changed:
        # What it had replaced is for whoever has forgotten it since to decide; a revert has seen to it.
        stays = (base or loose) and not flags.reverted
        return forget, [_left(item, f"{flags.by} has forgotten it since")] if stays else []
    if base is not None or loose:
        return [Unit("take back", item, hide, made=True, base=base, loose=loose)], []
    return forget, []


def _before(lineage: Lineage, item: Item) -> tuple[list[Item], Item | None, list[Item]]:
    """The writer's versions down from `item`; the one before these, and notes without a key, if they are to live.

    Versions of somebody who was reverted before are passed over.
    """
    mine, loose, passed = [item], list[Item](), False
    at: Item | None = item
    while at is not None:
        older, at = list(lineage.replaced(at)), None
        others: list[Item | None] = []
        for each in older:
            made = each.purged_at is None and lineage.owns(each.row)
            if made and not passed:
                mine.append(each)
            flags = lineage.flags(each)
            lives = each.purged_at is None and not flags.before and not lineage.expired(each)
            if each.key is None:
                loose += [each] if lives and not made else []
            elif made or flags.reverted:
                passed = passed or not made
                at = each
            else:
                others.append(each if lives else None)
        if others:
            # Not before all were looked at: a note without a key may have been saved after the version of the key.
            return mine, others[0], loose
    return mine, None, loose


def _left(item: Item, reason: str) -> Left:
    return Left(item.public_id, item.namespace, reason)
