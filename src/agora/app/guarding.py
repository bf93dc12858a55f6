from __future__ import annotations

from agora.config.settings import Settings
from agora.protocol.redacting import Guard


def guard_of(settings: Settings) -> Guard:
    """The guard that the settings want."""
    limits = settings.limits
    # Beside content and query no argument of any tool takes more than a quarter of this.
    most = limits.content_bytes + limits.query_chars + 65_536
    return Guard(settings.redaction.mode, settings.redaction.allow, most=most)
