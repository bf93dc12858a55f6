from __future__ import annotations

from typing import Any, ClassVar


class AgoraError(Exception):
    """What went wrong, a stable `code`, a `hint` that says what to do, and whether a retry may help."""

    code: ClassVar[str] = "error"
    default_hint: ClassVar[str] = ""
    retryable: bool = False
    """Of the class, unless what happened to this one says otherwise."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else hint

    def details(self) -> dict[str, Any]:
        """The error as plain data, the same on every interface."""
        found: dict[str, Any] = {"code": self.code, "message": self.message, "retryable": self.retryable}
        return found | ({"hint": self.hint} if self.hint else {})
