from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agora.errors import ConfigError, EmbeddingError, StoreError
from agora.memory.access import shown_status
from agora.model.deadline import Deadline
from agora.protocol.context import Connection
from agora.protocol.redacting import Guard
from agora.protocol.tools import shapes
from agora.protocol.tools.handlers import Arguments, Limits, Tools


class LateTools(Tools):
    """The tools of a store that is not open yet.

    Each call opens it, within its deadline, and fails with what stands against that: a damaged store, or an encoder's
    server that has not said how long its vectors are. Once it is open, every call goes to the tools of the open
    store. The status tells of the failure instead of failing.
    """

    def __init__(
        self,
        opened: Callable[[Deadline], Tools],
        limits: Limits,
        about: Callable[[], dict[str, Any]],
        guard: Guard | None = None,
    ) -> None:
        self._opened = opened
        self._guard = guard or Guard()
        self._about = about
        self.limits = limits

    def call(
        self,
        name: str,
        given: Arguments,
        connection: Connection,
        *,
        client: str,
        version: str = "",
        deadline: Deadline,
    ) -> dict[str, Any]:
        """As `Tools.call`.

        Raises: EmbeddingError, StoreError and ConfigError too, from every tool but the status.
        """
        tool, checked = self._checked(name, given)
        try:
            tools = self._opened(deadline)
        except (EmbeddingError, StoreError, ConfigError) as error:
            if name != "agora_status":
                raise
            caller = connection.caller(client, version)
            found = {
                "health": "degraded",
                "problems": [error.details()],
                **self._about(),
                "redaction": self._guard.details(),
                "session": caller.session,
            }
            return shapes.status(shown_status(caller, found)) | {
                "namespace": caller.scope.own,
                "namespace_rule": caller.scope.source,
            }
        return tools._run(tool, checked, connection, client, version, deadline)  # noqa: SLF001 - of the same class
