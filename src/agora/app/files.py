"""Names of the files in the data folder."""

from __future__ import annotations

STORE_FILE = "agora.db"
"""The canonical store."""

CACHE_FILE = "cache.db"
"""The cache on disk; it may be deleted at any time."""
