from __future__ import annotations

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings


def config(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Show every setting, its value and its source."""
    with errors_as_status(json_wanted=json_wanted):
        loaded = settings(home, config)
    rows = loaded.rows()
    if json_wanted:
        output.as_json(
            {
                "file": str(loaded.file) if loaded.file else None,
                "settings": {row.key: {"value": row.value, "source": row.source, "help": row.help} for row in rows},
            }
        )
        return
    output.configuration(rows, str(loaded.file or "none"))
