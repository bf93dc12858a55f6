from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings

if TYPE_CHECKING:
    from agora.config.backends import BackendTable


def config(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Show every setting, its value and its source."""
    with errors_as_status(json_wanted=json_wanted):
        loaded = settings(home, config)
    rows = loaded.rows()
    backends = [_backend(table) for table in loaded.settings.backends]
    if json_wanted:
        output.as_json(
            {
                "file": str(loaded.file) if loaded.file else None,
                "settings": {row.key: {"value": row.value, "source": row.source, "help": row.help} for row in rows},
                "backends": backends,
            }
        )
        return
    output.configuration(rows, backends, str(loaded.file or "none"))


def _backend(table: BackendTable) -> dict[str, Any]:
    """What may be seen of a backend: arguments, variables, headers and most of an address may be secrets."""
    found = {"name": table.name, "transport": table.transport}
    found |= {"command": table.command} if table.transport == "stdio" else {"host": host_of(table.url)}
    return found | {"place": table.place}


def host_of(url: str) -> str:
    """Scheme and host of an address, without a path or a query, which may hold a key."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    # Before variables are put in it may be anything.
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "${…}"
