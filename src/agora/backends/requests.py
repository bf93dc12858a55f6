from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agora.abridging import abridge
from agora.errors import AgoraError, BackendProtocolError, BackendRefused, OutcomeUnknown
from agora.ports.backends import Progress
from agora.unseen import shown

METHOD_NOT_FOUND = -32601


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[dict[str, Any]]
    progress: Progress | None


class Requests:
    """The requests of one session that are not answered yet. Ids are whole numbers from 1, never used twice."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._last = 0
        self._waiting: dict[int, _Waiting] = {}
        self.strays = 0
        """Answers that came to no request, or to one that nobody waits for any more."""

    def begin(self, progress: Progress | None) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """The id of a new request, and its answer to come."""
        self._last += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        # It may fail when nobody waits any more.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[self._last] = _Waiting(answer, progress)
        return self._last, answer

    def end(self, number: int) -> None:
        """Nobody waits for that one any more; an answer to come is a stray."""
        self._waiting.pop(number, None)

    def take(self, message: Mapping[str, Any]) -> None:
        """Give an answer to whoever waits for it."""
        number = message.get("id")
        known = isinstance(number, int) and not isinstance(number, bool)
        waiting = self._waiting.pop(number, None) if known else None  # type: ignore[arg-type]
        if waiting is None:
            self.strays += 1
        elif not waiting.answer.done():
            outcome = self._outcome(message)
            if isinstance(outcome, AgoraError):
                waiting.answer.set_exception(outcome)
            else:
                waiting.answer.set_result(outcome)

    def told(self, params: Mapping[str, Any]) -> None:
        """Pass progress on to whoever waits for the request that it is about."""
        token, done = params.get("progressToken"), params.get("progress")
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        if waiting is None or waiting.progress is None or not _number(done):
            return
        total, words = params.get("total"), params.get("message")
        waiting.progress(done, total if _number(total) else None, words if isinstance(words, str) else None)  # type: ignore[arg-type]

    def lose(self, reason: str) -> None:
        """Fail all of them: nothing can come any more."""
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if not each.answer.done():
                each.answer.set_exception(OutcomeUnknown(self._backend, f"{reason} before it answered"))

    def _outcome(self, message: Mapping[str, Any]) -> dict[str, Any] | AgoraError:
        if "error" in message:
            return self._refusal(message["error"])
        result = message.get("result")
        if not isinstance(result, dict):
            return BackendProtocolError(self._backend, f"answered with {abridge(result)!r}, which is no result")
        if result.get("resultType") == "input_required":
            return BackendProtocolError(
                self._backend,
                "asks for more input, which Agora cannot give it",
                hint="Give what it needs in the arguments, or connect to it directly.",
            )
        return result

    def _refusal(self, error: object) -> AgoraError:
        if not isinstance(error, dict):
            return BackendProtocolError(self._backend, f"answered with the error {abridge(error)!r}")
        number, message = error.get("code"), error.get("message")
        words = shown(str(abridge(message, 1_000))) if isinstance(message, str) and message else "refused the request"
        return BackendRefused(self._backend, words, number if isinstance(number, int) else 0, error.get("data"))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
