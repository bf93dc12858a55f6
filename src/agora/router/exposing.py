"""What a session sees of backends in its own lists, as its setting `gateway.expose` wants it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agora.model.backend import ToolDefinition
from agora.router.naming import Owned, table_of
from agora.router.offering import Offered
from agora.router.policy import Verdict, verdict
from agora.router.registry import Allowed, Backend, Registry


@dataclass(frozen=True, slots=True)
class Shown:
    """One tool under the name that clients see. `trusted`: that what it says of itself is believed."""

    name: str
    tool: ToolDefinition
    verdict: Verdict
    trusted: bool


def exposed(registry: Registry, names: Sequence[str], allowed: Allowed) -> list[Backend]:
    """The backends of these names, in any case and in their order, that there are and that may be used."""
    if not names:
        return []
    there = {each.table.name.casefold(): each for each in registry.glance() if allowed(each.table.name)}
    wanted = dict.fromkeys(name.strip().casefold() for name in names)
    return [there[name] for name in wanted if name in there]


def tools_mark(backends: Sequence[Backend]) -> object:
    """Something that is equal as long as the tools of these backends are shown alike."""
    return tuple((each.table, each.tools.approved) for each in backends if each.tools is not None)


def offers_mark(backends: Sequence[Backend], kind: Offered) -> object:
    """Something that is equal as long as the resources or prompts of these backends are shown alike."""
    return tuple((each.table.name, each.offers.versions[kind]) for each in backends)


def shown_tools(backends: Sequence[Backend], taken: Collection[str]) -> list[Shown]:
    """The tools of these backends as clients see them, by backend and name; none that is not to be called.

    `taken`: names that are somebody else's. What is quarantined, and what the policy lets nobody call, is not shown.
    """
    found: dict[Owned, Shown] = {}
    for each in backends:
        for name, tool in sorted(({} if each.tools is None else each.tools.approved).items()):
            decided = verdict(tool, each.table)
            if decided.allowed:
                found[each.table.name, name] = Shown("", tool, decided, each.table.trusted)
    named: Mapping[Owned, str] = {pair: name for name, pair in table_of(found, taken).items()}
    return [Shown(named[pair], row.tool, row.verdict, row.trusted) for pair, row in found.items()]
