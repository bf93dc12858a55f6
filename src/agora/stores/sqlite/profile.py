from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from agora.model.profile import Fingerprint


def profile_of(path: Path) -> Fingerprint | None:
    """The fingerprint that the store at `path` was built with; None if there is no store, or none that can be read.

    Changes nothing. What is wrong with a store is told when it is opened, not here.
    """
    if not path.exists():
        return None
    with contextlib.suppress(sqlite3.Error, ValueError, TypeError):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            found = connection.execute("SELECT fingerprint FROM encoders WHERE state = 'active'").fetchone()
        finally:
            connection.close()
        return None if found is None else Fingerprint(**json.loads(found[0]))
    return None
