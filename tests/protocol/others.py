"""Other MCP servers for a server under test: tables in its file, which may come and go."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.integration.backends.heard import NAUGHTY
from tests.protocol.links import Link

__all__ = ["GIVING", "NAUGHTY", "table", "there_are"]

GIVING = NAUGHTY.with_name("giving.py")


def table(name: str, program: Path = NAUGHTY, *habits: str, **given: object) -> str:
    """A table of a backend that is one of our programs."""
    values = {"name": name, "command": sys.executable, "args": [str(program), *habits], **given}
    # JSON's texts, lists, numbers and booleans are TOML's too.
    return "\n".join(["[[backends]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""])


def there_are(link: Link, *tables: str) -> None:
    """Let these be the backends from now on."""
    (link.site.place.home / "agora.toml").write_text("\n".join(tables), "utf-8")
