from __future__ import annotations

from typing import Any, Protocol


class Log(Protocol):
    """Where a service tells what it did: an event and its values, never the contents of a note or a question."""

    def debug(self, event: str, **values: Any) -> object:  # noqa: ANN401 - any loggable value
        """For somebody who looks into one call."""
        ...

    def info(self, event: str, **values: Any) -> object:  # noqa: ANN401 - any loggable value
        """For somebody who reads the log of a day."""
        ...

    def warning(self, event: str, **values: Any) -> object:  # noqa: ANN401 - any loggable value
        """Something that a person should look at."""
        ...
