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


def tools_meant(
    target: str, catalogue: Catalogue, allowed: frozenset[str] | None = None
) -> tuple[tuple[str, str], ...]:
    """Backend and tool of everything that `target` can be the name of; one alone may be called.

    What begins with the name of a backend and a separator and goes on in one word means a tool of that backend,
    whether it has such a tool or not.
    """
    known = _known(catalogue, allowed)
    found = {(name, target) for name in known if target in catalogue.backends[name].tools}
    claimed = _claimed(target, known)
    found |= {(name, tool) for name, tool in claimed if tool in catalogue.backends[name].tools}
    longest = max((len(name) for name, _ in claimed), default=0)
    found |= {(name, tool) for name, tool in claimed if len(name) == longest and len(tool.split()) == 1}
    return tuple(sorted(found))


def _claimed(target: str, known: list[str]) -> list[tuple[str, str]]:
    """Backends with whose name and a separator `target` begins, and what follows."""
    return [
        (name, target[len(name) + len(separator) :])
        for name in known
        for separator in SEPARATORS
        if _folded(target[: len(name)]) == _folded(name) and target.startswith(separator, len(name))
    ]


def _known(catalogue: Catalogue, allowed: frozenset[str] | None) -> list[str]:
    return [name for name in catalogue.backends if allowed is None or name in allowed]


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
