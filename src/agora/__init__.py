"""Agora: the one MCP server that all your agents share.

Importing this package costs nothing: no dependency is loaded before it is used. `Memory` is Agora in this process, for
programs that are agents themselves; what it raises is an `AgoraError`.
"""

__version__ = "0.1.0"

_PLACES = {"AgoraError": "agora.errors", "Memory": "agora.app.memory"}

__all__ = ["AgoraError", "Memory", "__version__"]


def __getattr__(name: str) -> object:
    """What the package offers beside its version, imported at its first use. Their types are in `__init__.pyi`."""
    if name in _PLACES:
        from importlib import import_module  # noqa: PLC0415 - a session's own process has no use for it

        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
