"""Which vector index stands beside the rows."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

from agora.config.settings import IndexSettings
from agora.errors import ConfigError
from agora.ports.log import Log
from agora.ports.vector_index import VectorIndex
from agora.stores.sqlite.store import INDEX_FOLDER

CHROMA_FOLDER = "chroma"
"""Name of Chroma's folder in the data folder, if `index.url` names none."""

_CHROMA = re.compile(r"chroma:/{2}(.*)", re.IGNORECASE | re.DOTALL)


def choose_index(settings: IndexSettings, home: Path, log: Log) -> VectorIndex | None:
    """The index at `index.url`; None for the store's own.

    Raises: ConfigError for a scheme that there is no adapter for, or a folder that is not Agora's; MissingExtra for an
    adapter that is not installed.
    """
    if (place := chroma_place(settings, home)) is None:
        return None
    folder, owned = place
    from agora.stores.chroma.client import missing  # noqa: PLC0415 - whoever has the default need not read it
    from agora.stores.chroma.index import ChromaIndex  # noqa: PLC0415 - as above

    if importlib.util.find_spec("chromadb") is None:
        raise missing()
    return ChromaIndex(folder, owned=owned, dead=settings.compact_dead, log=log)


def chroma_place(settings: IndexSettings, home: Path) -> tuple[Path, bool] | None:
    """Chroma's folder, and whether nobody else has business there; None for the store's own index.

    Raises: ConfigError as `choose_index`.
    """
    url = settings.url
    if url == "sqlite":
        return None
    if (found := _CHROMA.fullmatch(url)) is None:
        raise ConfigError(
            f"index.url: there is no adapter for {url!r}", hint="Write `sqlite`, or `chroma://` and a folder."
        )
    folder = chroma_folder(found[1])
    return folder or home / CHROMA_FOLDER, folder is None


def unused_folders(settings: IndexSettings, home: Path) -> list[Path]:
    """Folders in the data folder that an index other than the one at `index.url` may have left there.

    Raises: ConfigError.
    """
    if settings.url == "sqlite":
        used = home / INDEX_FOLDER
    else:
        used = chroma_folder(settings.url.partition("://")[2]) or home / CHROMA_FOLDER
    return [folder for folder in (home / INDEX_FOLDER, home / CHROMA_FOLDER) if folder != used]


def chroma_folder(place: str) -> Path | None:
    """The folder that `place`, what follows `chroma://`, names; None for the one in the data folder.

    Raises: ConfigError for anything but an absolute path, a drive of Windows, or `~`.
    """
    if not place or place == "/":
        return None
    # What stands before the path of a URL is no part of it on Windows, where a path begins with its drive.
    plain = place.removeprefix("/") if os.name == "nt" or place.startswith("/~") else place
    if "\0" not in plain:
        folder = Path(plain)
        if folder.is_absolute():
            return folder
        if plain.startswith("~/"):
            return folder.expanduser()
    raise ConfigError(
        f"index.url: `chroma://` takes a folder of this machine, and {place!r} is a host or a relative path",
        hint="Chroma runs inside Agora; its server cannot be used. Write `chroma://` for a folder in the data folder,"
        " or a whole path with three slashes, as in `chroma:///srv/agora/chroma`.",
    )
