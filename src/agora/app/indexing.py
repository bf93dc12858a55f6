"""Which vector index stands beside the rows."""

from __future__ import annotations

from pathlib import Path

from agora.config.settings import IndexSettings
from agora.errors import ConfigError
from agora.ports.vector_index import VectorIndex


def choose_index(settings: IndexSettings, home: Path) -> VectorIndex | None:
    """The index at `index.url`; None for the store's own.

    Raises: ConfigError for a scheme that there is no adapter for, MissingExtra for one that is not installed.
    """
    del home
    if settings.url == "sqlite":
        return None
    raise ConfigError(
        f"index.url: there is no adapter for {settings.url!r}", hint="Write `sqlite`, or `chroma://` and a folder."
    )
