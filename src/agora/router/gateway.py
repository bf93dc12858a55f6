"""Calls of other MCP servers, as agents ask for them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agora.errors import AccessDenied, AgoraError, InvalidInput, ReadOnlyBackend, ToolNotFound, ToolQuarantined
from agora.model.backend import ToolDefinition
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.route import Called, Match, RouteRequest
from agora.ports.kept_results import KeptResult
from agora.router import arguments as checking
from agora.router import results
from agora.router.dispatch import Dispatcher, Keeping
from agora.router.loop import LoopThread
from agora.router.policy import Verdict, refusal, verdict
from agora.router.registry import Backend, Registry, named

LEARN_SECONDS = 10.0
"""Seconds that a search waits for backends which were never seen and have to be started to know their tools."""

CANDIDATES = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that may be meant, with its score from 0 to 1 and its lead over the best of another backend."""

    backend: str
    tool: str
    score: float | None = None
    margin: float | None = None
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What an intent comes to: the best candidates, the one that is clear enough to be called, and what was amiss."""

    candidates: tuple[Candidate, ...]
    chosen: Candidate | None
    degraded: tuple[str, ...] = ()


class Chooser(Protocol):
    """Finds tools by what is wanted. Thread-safe, blocking."""

    def choose(self, intent: str, backends: Sequence[Backend], limit: int, deadline: Deadline) -> Choice:
        """The best backends with their best tools, or the best tools of one alone; others have no influence."""
        ...

    def meant(self, target: str, backends: Sequence[Backend]) -> Sequence[tuple[str, str]]:
        """Backend and tool of everything that `target` can be the name of, with or without its backend before it."""
        ...

    def ranked(self, query: str, backends: Sequence[Backend], limit: int, deadline: Deadline) -> Choice:
        """The best tools, whosever they are; none is chosen."""
        ...

    def close(self) -> None:
        """Do no more work."""
        ...


@dataclass(frozen=True, slots=True)
class Described:
    """A candidate as an agent sees it."""

    candidate: Candidate
    tool: ToolDefinition
    access: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class Routed:
    """What became of a request: `called`, or nothing was called and there are `candidates`."""

    matched_by: Match
    called: Called | None = None
    chosen: Described | None = None
    candidates: tuple[Described, ...] = ()
    not_searched: Mapping[str, AgoraError] | None = None
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Heard:
    """One backend's part in a broadcast: what it answered, or why not."""

    backend: str
    called: Called | None
    error: AgoraError | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Broadcast:
    """What came of a broadcast; `not_asked` says of which backends nothing was asked, and why."""

    heard: tuple[Heard, ...]
    not_asked: Mapping[str, AgoraError]
    seconds: float


@dataclass(frozen=True, slots=True)
class Rest:
    """A piece of a long result; `after` is the byte from which the next one begins, None at its end."""

    kept: KeptResult
    start: int
    text: str
    after: int | None


class Gateway:
    """Routes calls to backends. Thread-safe and blocking: run it in worker threads."""

    def __init__(
        self,
        registry: Registry,
        dispatcher: Dispatcher,
        chooser: Chooser,
        loop: LoopThread,
        keeping: Keeping,
    ) -> None:
        self.registry = registry
        self._keeping = keeping
        self._dispatcher = dispatcher
        self._chooser = chooser
        self._loop = loop

    def route(self, request: RouteRequest, caller: Caller, deadline: Deadline) -> Routed:
        """What the tool that is meant answers, or the candidates if it is not clear which one is meant.

        In this order: the name of a backend, in any case; the name of a tool that one backend alone has; what is
        wanted, in words. Nothing is called by a name that several tools have.

        Raises: what `Dispatcher.call` raises; BackendNotFound, ToolNotFound.
        """
        mine = self.registry.usable(caller.scope.grants.may_call)
        backend = named(request.target, mine)
        if backend is not None:
            return self._at(backend, request, caller, deadline)
        if request.tool is not None:
            # Who names a tool of a backend that there is not must not reach another backend's.
            self.registry.get(request.target, caller.scope.grants.may_call)
        missing = self._learned(mine, deadline)
        name = request.target.strip()
        meant = self._chooser.meant(name, mine)
        if len(meant) == 1:
            found = next(each for each in mine if each.table.name == meant[0][0])
            tool = self._tool(found, meant[0][1], request, caller, deadline, "tool")
            described = describe(found, tool, Candidate(found.table.name, tool.name))
            return self._called("tool", found, described, request, caller, deadline, missing)
        if meant:
            # The name of several is no wish in words: whose tool it is, nobody guesses.
            return Routed("none", candidates=_listed(meant, mine), not_searched=missing)
        for each in mine:
            if each.tools is not None and name in each.tools.quarantined:
                self._tool(each, name, request, caller, deadline, "tool")
        return self._by_intent(mine, request, caller, deadline, missing)

    def call(self, name: str, tool: str, arguments: Mapping[str, Any], caller: Caller, deadline: Deadline) -> Called:
        """What that tool of that backend answers.

        Raises: what `Dispatcher.call` raises; BackendNotFound, ToolNotFound, ToolQuarantined.
        """
        backend = self.registry.get(name, caller.scope.grants.may_call)
        deadline.tell(f"waiting for {backend.table.name}")
        self._know(backend, deadline)
        request = RouteRequest(name, tool, arguments)
        wanted = self._tool(backend, tool, request, caller, deadline, "backend")
        return self._dispatcher.call(backend, wanted, arguments, caller, deadline, matched_by="backend")

    def ask(
        self, name: str, method: str, params: Mapping[str, Any], caller: Caller, deadline: Deadline
    ) -> Mapping[str, Any]:
        """What that backend answers to a request that reads, as the protocol has it.

        Raises: BackendNotFound; what `Dispatcher.ask` raises.
        """
        backend = self.registry.get(name, caller.scope.grants.may_call)
        deadline.tell(f"waiting for {backend.table.name}")
        return self._dispatcher.ask(backend, method, params, caller, deadline)

    def broadcast(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        only: Sequence[str] | None,
        caller: Caller,
        deadline: Deadline,
    ) -> Broadcast:
        """What every backend that has the tool answers to the same arguments, all asked at the same time.

        Raises: BackendNotFound for a name in `only` that there is not; ToolNotFound if nobody has the tool.
        """
        began = time.monotonic()
        allowed = caller.scope.grants.may_call
        if only is None:
            asked = self.registry.usable(allowed)
        else:
            asked = list({id(each): each for each in (self.registry.get(name, allowed) for name in only)}.values())
        not_asked: dict[str, AgoraError] = dict(self._learned(asked, deadline))
        ready: list[tuple[Backend, ToolDefinition]] = []
        for each in asked:
            if each.table.name in not_asked:
                continue
            try:
                definition = each.tool(tool)
            except ToolNotFound as error:
                if only is not None:
                    not_asked[each.table.name] = error
                continue
            except AgoraError as error:
                not_asked[each.table.name] = error
                continue
            found = verdict(definition, each.table)
            if found.in_broadcast:
                ready.append((each, definition))
            else:
                not_asked[each.table.name] = _kept_out(definition, each, found)
        if not ready and not not_asked:
            raise ToolNotFound(f"no backend has a tool {tool[:100]!r}", hint="agora_backends lists what there is.")
        heard = self._asked(ready, arguments, caller, deadline)
        return Broadcast(tuple(heard), not_asked, time.monotonic() - began)

    def search(self, query: str, caller: Caller, deadline: Deadline, limit: int = 10) -> Routed:
        """The tools that fit `query` best; nothing is called."""
        mine = self.registry.usable(caller.scope.grants.may_call)
        missing = self._learned(mine, deadline)
        choice = self._chooser.ranked(query, mine, limit, deadline)
        return Routed("none", None, None, self._described(choice, mine), missing, choice.degraded)

    def rest(self, id_: str, start: int, caller: Caller, deadline: Deadline) -> Rest | None:
        """A piece of a long result from the byte `start` on; None if nothing is kept under that id for the caller."""
        kept = self._keeping.fetch(id_, caller, deadline)
        if kept is None:
            return None
        text = results.beginning(kept.content, self._dispatcher.result_bytes, start)
        after = start + len(text.encode("utf-8"))
        return Rest(kept, start, text, after if after < len(kept.content) else None)

    def close(self) -> None:
        """End every session and the loop."""
        self._chooser.close()
        self._loop.close(self.registry.close)

    def _at(self, backend: Backend, request: RouteRequest, caller: Caller, deadline: Deadline) -> Routed:
        """A request that names its backend."""
        self._know(backend, deadline)
        if request.tool is not None:
            tool = self._tool(backend, request.tool, request, caller, deadline, "backend")
            described = describe(backend, tool, Candidate(backend.table.name, tool.name))
            return self._called("backend", backend, described, request, caller, deadline, {})
        if request.intent is not None:
            within = replace(request, target=request.intent, intent=None)
            routed = self._by_intent([backend], within, caller, deadline, {})
            return replace(routed, matched_by="backend")
        approved = () if backend.tools is None else tuple(backend.tools.approved.values())
        every = tuple(describe(backend, tool, Candidate(backend.table.name, tool.name)) for tool in approved)
        return Routed("backend", candidates=every)

    def _know(self, backend: Backend, deadline: Deadline) -> None:
        """Return once the tools of a backend are known, however long that takes."""
        for error in self.registry.learn([backend], deadline.remaining(), deadline).values():
            raise error

    def _tool(
        self,
        backend: Backend,
        name: str,
        request: RouteRequest,
        caller: Caller,
        deadline: Deadline,
        matched_by: Match,
    ) -> ToolDefinition:
        """The tool of that name; that somebody wanted one that is quarantined is recorded."""
        try:
            return self.registry.newest(backend, name, deadline)
        except ToolQuarantined as error:
            if not request.dry_run:
                self._dispatcher.refused(backend, name, request.arguments, caller, deadline, matched_by, error)
            raise

    def _by_intent(
        self,
        backends: Sequence[Backend],
        request: RouteRequest,
        caller: Caller,
        deadline: Deadline,
        missing: Mapping[str, AgoraError],
    ) -> Routed:
        intent = request.target if request.intent is None else f"{request.target}\n{request.intent}"
        choice = self._chooser.choose(intent, backends, CANDIDATES, deadline)
        described = self._described(choice, backends)
        chosen = next((each for each in described if each.candidate == choice.chosen), None)
        if chosen is None:
            return Routed("none", None, None, described, missing, choice.degraded)
        backend = next(each for each in backends if each.table.name == chosen.candidate.backend)
        routed = self._called("intent", backend, chosen, request, caller, deadline, missing)
        return replace(routed, degraded=choice.degraded)

    def _called(  # noqa: PLR0913, PLR0917 - what a call is made of
        self,
        matched_by: Match,
        backend: Backend,
        described: Described,
        request: RouteRequest,
        caller: Caller,
        deadline: Deadline,
        missing: Mapping[str, AgoraError],
    ) -> Routed:
        tool = described.tool
        if request.dry_run:
            found = verdict(tool, backend.table)
            if not found.allowed:
                raise refusal(tool, backend.table, found)
            if request.arguments:
                checking.check(tool, request.arguments)
            return Routed(matched_by, None, described, (described,), missing)
        deadline.tell(f"waiting for {backend.table.name}")
        try:
            called = self._dispatcher.call(backend, tool, request.arguments, caller, deadline, matched_by=matched_by)
        except InvalidInput as error:
            if matched_by == "backend":
                raise
            # Whoever did not name the tool has to know which one it was.
            hint = f"The tool is {tool.name!r} of {backend.table.name}. {error.hint}"
            raise InvalidInput(error.param, error.reason, error.received, hint=hint) from error
        return Routed(matched_by, called, described, (), missing)

    def _described(self, choice: Choice, backends: Sequence[Backend]) -> tuple[Described, ...]:
        by_name = {each.table.name: each for each in backends}
        return tuple(
            describe(by_name[each.backend], by_name[each.backend].tool(each.tool), each) for each in choice.candidates
        )

    def _learned(self, backends: Sequence[Backend], deadline: Deadline) -> Mapping[str, AgoraError]:
        return self.registry.learn(backends, LEARN_SECONDS, deadline)

    def _asked(
        self,
        ready: Sequence[tuple[Backend, ToolDefinition]],
        arguments: Mapping[str, Any],
        caller: Caller,
        deadline: Deadline,
    ) -> list[Heard]:
        def ask(backend: Backend, tool: ToolDefinition) -> Heard:
            began = time.monotonic()
            try:
                own = deadline.within(backend.table.timeout)
                called = self._dispatcher.call(backend, tool, arguments, caller, own, matched_by="tool")
            except AgoraError as error:
                return Heard(backend.table.name, None, error, time.monotonic() - began)
            return Heard(backend.table.name, called, None, time.monotonic() - began)

        if not ready:
            return []
        with ThreadPoolExecutor(len(ready), "agora-broadcast") as threads:
            return list(threads.map(lambda pair: ask(*pair), ready))


def _kept_out(tool: ToolDefinition, backend: Backend, found: Verdict) -> AccessDenied:
    """Why a broadcast does not call a tool."""
    if not found.allowed:
        return refusal(tool, backend.table, found)
    return ReadOnlyBackend(
        f"{backend.table.name}: {tool.name!r} may change something, and a broadcast calls what reads. {found.words}",
        hint=f"Call it with agora_route, or have `allow` in the table of {backend.table.name} name it.",
    )


def _listed(meant: Sequence[tuple[str, str]], backends: Sequence[Backend]) -> tuple[Described, ...]:
    """The tools of these names, as far as there are any."""
    by_name = {each.table.name: each for each in backends}
    found = []
    for name, tool in meant:
        tools = by_name[name].tools
        if tools is not None and tool in tools.approved:
            found.append(describe(by_name[name], tools.approved[tool], Candidate(name, tool)))
    return tuple(found)


def describe(backend: Backend, tool: ToolDefinition, candidate: Candidate) -> Described:
    """A tool with what may be done with it."""
    found = verdict(tool, backend.table)
    return Described(candidate, tool, found.access, found.allowed)
