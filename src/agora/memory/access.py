from __future__ import annotations

from collections.abc import Iterable

from agora.errors import NamespaceDenied
from agora.model.caller import Caller


def require(caller: Caller, namespaces: Iterable[str]) -> None:
    """Return if the caller's scope holds all of `namespaces`; the one place where that is decided.

    Raises: NamespaceDenied.
    """
    visible = set(caller.scope.visible())
    for namespace in namespaces:
        if namespace not in visible:
            raise NamespaceDenied(
                f"namespace {namespace!r} is outside what this caller may see",
                hint=f"Visible here: {', '.join(sorted(visible))}.",
            )
