"""One call of one tool: may it be made, is its answer known, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agora.config.backends import account
from agora.errors import AgoraError, DeadlineExceeded, OutcomeUnknown, PayloadTooLarge
from agora.model.backend import ToolDefinition
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.route import Access, Called, Match, ToolResult
from agora.ports.backend_cache import BackendCache
from agora.ports.clock import Clock
from agora.ports.kept_results import KeptResult
from agora.router import arguments as checking
from agora.router import results
from agora.router.loop import LoopThread
from agora.router.plain import plain
from agora.router.policy import Verdict, refusal, verdict
from agora.router.registry import Backend, Registry

Cleaned = tuple[str, Mapping[str, int]]
"""A text without its secrets, and how many there were of which kind."""


@dataclass(frozen=True, slots=True)
class CallMade:
    """What the record of calls is told: everything but arguments and result. `outcome`: ok, tool_error or a code."""

    backend: str
    tool: str
    access: Access
    rule: str
    matched_by: Match
    arguments: bytes
    """The arguments as canonical JSON, of which a keyed hash is kept."""
    outcome: str = "ok"
    seconds: float = 0.0
    cached: bool = False


class Keeping(Protocol):
    """What is kept of calls, and where. Thread-safe, blocking."""

    def record(self, call: CallMade, caller: Caller, deadline: Deadline) -> None:
        """Write the call into the record of calls; on disk before this returns."""
        ...

    def keep(self, backend: str, tool: str, content: bytes, caller: Caller, deadline: Deadline) -> Mapping[str, Any]:
        """Keep a long result for agora_get: its `id`, `bytes` and `expires_at`, or `error` if it could not be kept."""
        ...

    def save(self, backend: str, tool: str, content: str, caller: Caller, deadline: Deadline) -> Mapping[str, Any]:
        """Save a result as a note of origin `tool`: its `id` and `status`, or `error` if it could not be saved."""
        ...

    def fetch(self, id_: str, caller: Caller, deadline: Deadline) -> KeptResult | None:
        """The long result of that id, if it is still kept where the caller may read."""
        ...

    def clean(self, text: str) -> Cleaned:
        """The text as it may be kept."""
        ...


class Dispatcher:
    """Makes calls, in the caller's own thread; thread-safe."""

    def __init__(
        self,
        registry: Registry,
        loop: LoopThread,
        keeping: Keeping,
        cache: BackendCache | None,
        clock: Clock,
        *,
        result_bytes: int,
    ) -> None:
        self._registry = registry
        self._loop = loop
        self._keeping = keeping
        self._cache = cache
        self._clock = clock
        self.result_bytes = result_bytes
        self._run = secrets.token_hex(16).encode()

    def call(
        self,
        backend: Backend,
        tool: ToolDefinition,
        given: Mapping[str, Any],
        caller: Caller,
        deadline: Deadline,
        *,
        matched_by: Match,
    ) -> Called:
        """What the tool answers, from the backend or from the cache; the record of calls has it before this returns.

        Raises: InvalidInput for arguments that do not meet the tool's schema; AccessDenied and ReadOnlyBackend by
        policy; ToolQuarantined; what `Link.request` raises.
        """
        decided = verdict(tool, backend.table)
        made = CallMade(
            *(backend.table.name, tool.name, decided.access, decided.rule, matched_by),
            arguments=_canonical(given),
        )
        began = time.monotonic()
        try:
            unchecked = self._admitted(backend, tool, given, decided)
            called = self._answered(backend, tool, given, made, deadline)
        except AgoraError as error:
            self._record(replace(made, outcome=error.code, seconds=time.monotonic() - began), caller, deadline)
            raise
        if unchecked is not None:
            called = replace(called, warnings=(*called.warnings, unchecked))
        outcome = "tool_error" if called.result.is_error else "ok"
        cached = called.cached is not None
        self._record(replace(made, outcome=outcome, seconds=called.seconds, cached=cached), caller, deadline)
        return self._kept(backend, called, caller, deadline)

    def ask(
        self, backend: Backend, method: str, params: Mapping[str, Any], caller: Caller, deadline: Deadline
    ) -> Mapping[str, Any]:
        """What the backend answers to a method that reads; the record of calls has it before this returns.

        Raises: PayloadTooLarge for more text than one answer may have, with where all of it is kept, or for more
        than 4 MB of anything else; what `Link.request` raises.
        """
        name = backend.table.name
        made = CallMade(name, method, "read", "method", "backend", _canonical(params))
        began = time.monotonic()
        try:
            answered = self._loop.run(
                lambda: backend.link.request(
                    method, params, reads=True, seconds=deadline.remaining(), progress=deadline.progress
                ),
                deadline,
            )
        except AgoraError as error:
            self._record(replace(made, outcome=error.code, seconds=time.monotonic() - began), caller, deadline)
            raise
        self._record(replace(made, seconds=answered.seconds), caller, deadline)
        texts, words, files = results.weighed(answered.result)
        if files > results.MEDIA_BYTES:
            raise PayloadTooLarge(
                method, f"{name} answers {files} bytes, and at most {results.MEDIA_BYTES} are passed on", files
            )
        if words > self.result_bytes:
            content = "\n\n".join(texts).encode("utf-8", "backslashreplace").decode("utf-8")
            clean = self._keeping.clean(content)[0].encode("utf-8")
            kept = self._keeping.keep(name, method, clean, caller, deadline)
            where = f"agora_get with the id {kept['id']} reads it, a piece at a time." if "id" in kept else None
            raise PayloadTooLarge(
                method,
                f"{name} answers {words} bytes, and at most {self.result_bytes} are passed on",
                words,
                hint=where,
            )
        return answered.result

    def refused(  # noqa: PLR0913, PLR0917 - what a call is made of
        self,
        backend: Backend,
        name: str,
        given: Mapping[str, Any],
        caller: Caller,
        deadline: Deadline,
        matched_by: Match,
        error: AgoraError,
    ) -> None:
        """Record a call of a tool that may not even be looked at: it counts as writing."""
        made = CallMade(backend.table.name, name, "write", "name", matched_by, _canonical(given), outcome=error.code)
        self._record(made, caller, deadline)

    @staticmethod
    def _admitted(backend: Backend, tool: ToolDefinition, given: Mapping[str, Any], decided: Verdict) -> str | None:
        if not decided.allowed:
            raise refusal(tool, backend.table, decided)
        return checking.check(tool, given)

    def _answered(
        self, backend: Backend, tool: ToolDefinition, given: Mapping[str, Any], made: CallMade, deadline: Deadline
    ) -> Called:
        table, reads = backend.table, made.access == "read"
        cache = self._cache if reads and table.cache_seconds > 0 else None
        key = b"" if cache is None else self._key(backend, tool, made.arguments)
        if cache is not None:
            now, began = self._clock.now(), time.monotonic()
            if (kept := cache.get(key, now)) is not None:
                if backend.relisting is not None:
                    self._loop.run(lambda: self._registry.settled(backend, tool), deadline)
                age = (now - kept.made_at).total_seconds()
                return Called(
                    *(table.name, tool.name, made.access, made.rule, results.read(kept.result)),
                    seconds=time.monotonic() - began,
                    attempts=0,
                    cached=kept.level,
                    age=age,
                )
        request = {"name": tool.name, "arguments": dict(given)}
        # Looked at before: a call whose time is up was not made.
        deadline.check()
        try:
            answered = self._loop.run(
                lambda: backend.link.request(
                    "tools/call",
                    request,
                    reads=reads,
                    seconds=deadline.remaining(),
                    progress=deadline.progress,
                    check=lambda: self._registry.settled(backend, tool),
                ),
                deadline,
            )
        except DeadlineExceeded as late:
            if reads:
                raise
            # It says that trying again may help: not for what may have happened.
            raise OutcomeUnknown(table.name, late.message) from late
        given_back = plain(answered.result)
        result = results.read(given_back)
        if cache is not None and not result.is_error and self._is_clean(given_back):
            cache.put(key, given_back, self._clock.now(), table.cache_seconds)
        return Called(
            *(table.name, tool.name, made.access, made.rule, result),
            seconds=answered.seconds,
            attempts=answered.attempts,
        )

    def _key(self, backend: Backend, tool: ToolDefinition, arguments: bytes) -> bytes:
        """What a result is kept by: two accounts at one address are two backends, a changed tool is another tool."""
        whose, by_variables = account(backend.table)
        # What variables stand for is known in this process alone: the next one may have another's.
        run = self._run if by_variables else b""
        parts = (backend.identity.encode(), whose.encode(), run, tool.digest().encode(), arguments)
        return hashlib.sha256(b"\0".join(parts)).digest()

    def _is_clean(self, result: Mapping[str, Any]) -> bool:
        """Whether there is no secret in a result: one that holds a secret is answered, and kept nowhere."""
        return not self._keeping.clean(json.dumps(result, ensure_ascii=False))[1]

    def _kept(self, backend: Backend, called: Called, caller: Caller, deadline: Deadline) -> Called:
        """The same call with what is kept of its result: as a note where that is wanted, the whole of a long one."""
        result, table = called.result, backend.table
        if table.save_results and called.access == "read" and called.cached is None and not result.is_error:
            text = results.whole(ToolResult(result.content, result.structured, result.is_error)).decode("utf-8")
            if text.strip():
                called = replace(called, note=self._keeping.save(table.name, called.tool, text, caller, deadline))
        if results.size(result) <= self.result_bytes and not results.is_too_much(result):
            return called
        clean, found = self._keeping.clean(results.whole(result).decode("utf-8"))
        content = clean.encode("utf-8")
        kept = dict(self._keeping.keep(table.name, called.tool, content, caller, deadline))
        if found:
            # What is shown of it is the beginning of what is kept, so that the rest follows on it.
            kept["redacted"] = dict(sorted(found.items()))
        return replace(called, result=results.shortened(result, content, self.result_bytes, kept))

    def _record(self, made: CallMade, caller: Caller, deadline: Deadline) -> None:
        # A call whose time is up, or that was taken back, has been made all the same.
        self._keeping.record(made, caller, deadline if deadline.remaining() else Deadline(_RECORD_SECONDS))


_RECORD_SECONDS = 5.0


def _canonical(given: Mapping[str, Any]) -> bytes:
    return json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
