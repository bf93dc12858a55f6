from __future__ import annotations

from dataclasses import replace

from agora.model.caller import Origin, lowest, rank
from agora.ports.transfer import Giver, Version


def lowered(version: Version, most: Origin) -> tuple[Version, int]:
    """`version` with no saver of higher authority than `most`, and how many savers that changed.

    A file can say anything: whoever imports it vouches for it, with their own authority and no other's.
    """
    if version.fact is not None and version.fact.rank is not None and version.fact.rank < rank(most):
        version = replace(version, fact=replace(version.fact, rank=rank(most)))
    high = [giver for giver in version.savers if lowest(giver.origin, most) != giver.origin]
    if not high:
        return version, 0
    kept: dict[tuple[str, ...], int] = {}
    savers: list[Giver] = []
    for giver in version.savers:
        origin = lowest(giver.origin, most)
        down = replace(giver, origin=origin, lowered=origin != giver.origin)
        identity = (down.agent, down.client, down.client_version, down.token, down.session, down.origin)
        if identity in kept:
            # Two savers that differed in nothing else are one now.
            other = savers[kept[identity]]
            savers[kept[identity]] = replace(
                other,
                first_at=min(other.first_at, down.first_at),
                last_at=max(other.last_at, down.last_at),
                times=other.times + down.times,
                lowered=True,
                tags=tuple(dict.fromkeys((*other.tags, *down.tags))),
            )
            continue
        kept[identity] = len(savers)
        savers.append(down)
    return replace(version, savers=tuple(savers)), len(high)
