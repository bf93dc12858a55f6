"""Backends and tools that a call names outright."""

from __future__ import annotations

import unicodedata
from typing import Final

from agora.router.catalogue import Catalogue

SEPARATORS: Final = ("__", "/")
"""Between the name of a backend and that of its tool, as in `github__search_issues` and `github/search_issues`."""


def backend_named(target: str, catalogue: Catalogue, allowed: frozenset[str] | None = None) -> str | None:
    """The backend of this name, whatever its capitals; None if there is none, or several and none in these letters."""
    known = _known(catalogue, allowed)
    if target in known:
        return target
    alike = [name for name in known if _folded(name) == _folded(target)]
    return alike[0] if len(alike) == 1 else None


def tool_named(target: str, catalogue: Catalogue, allowed: frozenset[str] | None = None) -> tuple[str, str] | None:
    """Backend and tool that `target` names: a tool that one backend alone has, or one with its backend before it.

    What begins with the name of a backend and a separator belongs to that backend and to no other, to the longest such
    name if there are several: no name that somebody else gave a backend or a tool can claim it. None if nobody has
    such a tool, or if `target` could be read in two ways.
    """
    known = _known(catalogue, allowed)
    bare = [name for name in known if target in catalogue.backends[name].tools]
    claimed = [
        (name, target[len(name) + len(separator) :])
        for name in known
        for separator in SEPARATORS
        if _folded(target[: len(name)]) == _folded(name) and target.startswith(separator, len(name))
    ]
    if not claimed:
        return (bare[0], target) if len(bare) == 1 else None
    longest = max(len(name) for name, _ in claimed)
    owners = [(name, tool) for name, tool in claimed if len(name) == longest]
    readings = {(name, tool) for name, tool in claimed if tool in catalogue.backends[name].tools}
    readings |= {(name, target) for name in bare}
    return owners[0] if len(owners) == 1 and readings == set(owners) else None


def _known(catalogue: Catalogue, allowed: frozenset[str] | None) -> list[str]:
    return [name for name in catalogue.backends if allowed is None or name in allowed]


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
