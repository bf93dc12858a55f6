"""The official libraries of those who serve models, each an extra of its own."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from types import ModuleType

from agora.errors import ConfigError, MissingExtra


def require(name: str) -> None:
    """Return if the library `name` is installed; it is not imported.

    Raises: MissingExtra.
    """
    if not _is_installed(name):
        raise MissingExtra(
            f"model.adapter = {name!r} needs the library of that name, which is not installed",
            hint=f"Run: pip install 'agora-memory[{name}]'",
        )


def load(name: str) -> ModuleType:
    """The library `name`, imported at the first use: that takes up to a second.

    Raises: MissingExtra, ConfigError if it cannot be imported.
    """
    require(name)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        hint = f"Run: pip install 'agora-memory[{name}]'"
        raise ConfigError(f"the library {name!r} is installed in part only: {error}", hint=hint) from error
    # Its debug lines hold whole requests, and a variable of its own turns them on.
    for own in (name, "httpx2"):
        logging.getLogger(own).setLevel(max(logging.WARNING, logging.getLogger(own).level))
    return module


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        # Somebody has put something in its place that was not imported.
        return False
