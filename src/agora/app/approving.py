"""What a person decides of the tools of other servers, for the command line."""

from __future__ import annotations

from agora.app.agora import Agora
from agora.router.pins import Pins


def pins_of(agora: Agora) -> Pins:
    """What was approved of the tools of backends, in the store of `agora`."""
    return Pins(lambda _: agora.store.tool_pins(), agora.clock)
