"""From a checked call to the memory and back to plain data, one function a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agora.errors import AgoraError, NotFound, PayloadTooLarge, StoreError
from agora.memory.access import shown_status
from agora.memory.authority import lowered
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.ports.clock import Clock
from agora.protocol import arguments, schemas
from agora.protocol.context import Calling, Connection
from agora.protocol.redacting import Checked, Guard
from agora.protocol.tools import crossref, shapes
from agora.protocol.tools.conversations import ConversationTools
from agora.protocol.tools.facts import FactTools
from agora.protocol.tools.gateway import GatewayTools
from agora.protocol.tools.table import CALLABLE
from agora.protocol.tools.tool import Tool

if TYPE_CHECKING:
    from agora.memory.notes import Notes

Arguments = Mapping[str, Any]

KEPT = "r_"
"""How ids of long results of backends begin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may ask for, from the settings."""

    content_bytes: int
    query_chars: int
    call_seconds: float


class Tools:
    """Calls tools by name. Blocking: run it in a worker thread.

    The command line and the server go through here alike, so both check and answer the same.
    """

    def __init__(  # noqa: PLR0913 - what there is to call, each by its name
        self,
        notes: Notes,
        clock: Clock,
        limits: Limits,
        about: Callable[[], dict[str, Any]],
        guard: Guard | None = None,
        *,
        gateway: GatewayTools | None = None,
        facts: FactTools | None = None,
        conversations: ConversationTools | None = None,
        language_models: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
    ) -> None:
        """`about` tells of the process for the status: version, paths, transport. By default secrets are replaced.

        Without a `gateway` the tools that reach other servers are not there, without `facts` not those of facts,
        without `conversations` not theirs. `language_models` tells of those that are asked, for the status.
        """
        self._language_models = language_models
        self._notes = notes
        self._guard = guard or Guard()
        self._clock = clock
        self._about = about
        self.limits = limits
        # What the store refused last, of reads and of writes, until one works again: no failure is silent.
        self._troubles: dict[bool, dict[str, Any]] = {}
        self._handlers: dict[str, Callable[[Arguments, Caller, Deadline], dict[str, Any]]] = {
            "agora_save": self._save,
            "agora_query": self._query,
            "agora_get": self._get,
            "agora_crossref": self._crossref,
            "agora_forget": self._forget,
            "agora_restore": self._restore,
            "agora_pin": self._pin,
            "agora_status": self._status,
        }
        self._facts = facts
        if facts is not None:
            self._handlers |= {
                "remember": facts.remember,
                "recall": facts.recall,
                "remember_from": facts.remember_from,
            }
        if conversations is not None:
            self._handlers |= {
                "session_append": conversations.append,
                "session_context": conversations.context,
                "session_summarize": conversations.summarize,
            }
        self._gateway = gateway
        if gateway is not None:
            self._handlers |= {
                "agora_route": gateway.route,
                "agora_broadcast": gateway.broadcast,
                "agora_backends": gateway.backends,
            }

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
        """The structured result of one call.

        Raises: NotFound for an unknown tool, InvalidInput and SecretRefused before anything runs, and what the memory
        raises.
        """
        tool, checked = self._checked(name, given)
        return self._run(tool, checked, connection, client, version, deadline)

    def _checked(self, name: str, given: Arguments) -> tuple[Tool, Checked]:
        """The tool and its arguments, without secrets before anything else looks at them: no error shows one."""
        tool = CALLABLE.get(name)
        if tool is None:
            raise NotFound(f"unknown tool: {name}")
        return tool, check(tool, given, self._guard, self.limits)

    def _run(
        self, tool: Tool, checked: Checked, connection: Connection, client: str, version: str, deadline: Deadline
    ) -> dict[str, Any]:
        name, given = tool.name, checked.value
        handler = self._handlers.get(name)
        if handler is None:
            raise NotFound(f"unknown tool: {name}", hint="What it needs is not reached from here.")
        caller = lowered(_caller(tool, given, connection, client, version), given.get("origin"))
        try:
            result = handler(given, caller, deadline)
        except StoreError as error:
            self._troubles[tool.read_only] = error.details()
            raise
        if name != "agora_status":
            self._troubles.pop(tool.read_only, None)
        elif connection.lifecycle is not None:
            result["connection"] = connection.lifecycle.details()
        if checked.replaced:
            result["redacted"] = dict(sorted(checked.replaced.items()))
        return result | {"namespace": caller.scope.own, "namespace_rule": caller.scope.source}

    def answer(self, name: str, given: Arguments, calling: Calling) -> dict[str, Any]:
        """As `call`, for a request that knows who makes it."""
        return self.call(
            name,
            given,
            calling.connection,
            client=calling.client,
            version=calling.version,
            deadline=calling.deadline,
        )

    def _save(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        now = self._clock.now()
        draft = arguments.draft(given, caller.scope.own, now, self.limits.content_bytes)
        return shapes.saved(self._notes.save(draft, caller, deadline))

    def _query(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        query = arguments.query(given, _searched(given, caller), self._clock.now(), self.limits.query_chars)
        found = self._notes.query(query, caller, deadline)
        return shapes.answer(found, explain=given.get("explain", False), now=self._clock.now())

    def _get(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        ids = [each for each in given["ids"] if not each.startswith(KEPT)]
        got = self._notes.get(ids, caller, deadline)
        found = shapes.got(got, self._clock.now())
        if self._facts is not None:
            self._facts.add_history(got.notes, found["notes"], caller, deadline)
        if len(ids) < len(given["ids"]):
            self._add_rest([each for each in given["ids"] if each.startswith(KEPT)], found, caller, deadline)
        return found

    def _add_rest(self, ids: list[str], found: dict[str, Any], caller: Caller, deadline: Deadline) -> None:
        """Put the pieces of long results of backends beside the notes."""
        pieces = {} if self._gateway is None else {id_: self._gateway.rest(id_, caller, deadline) for id_ in ids}
        found["results"] = [piece for piece in pieces.values() if piece is not None]
        found["unknown"] = found.get("unknown", []) + [id_ for id_ in ids if pieces.get(id_) is None]

    def _crossref(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        topic = arguments.topic(given, _searched(given, caller), self._clock.now(), self.limits.query_chars)
        return crossref.answer(self._notes.crossref(topic, caller, deadline))

    def _forget(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        # Ids say exactly what is meant; conditions without a namespace stay in the caller's own project.
        wide = given.get("ids") and not given.get("namespace")
        namespaces = caller.scope.visible() if wide else (caller.scope.own,)
        selection = arguments.selection(given, namespaces, self._clock.now())
        return shapes.forgotten(self._notes.forget(selection, caller, deadline, dry_run=given.get("dry_run", True)))

    def _restore(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        return shapes.restored(self._notes.restore(given["ids"], caller, deadline))

    def _pin(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        return shapes.pinned(self._notes.pin(given["ids"], caller, deadline, pinned=given.get("pinned", True)))

    def _status(self, given: Arguments, caller: Caller, deadline: Deadline) -> dict[str, Any]:
        del given
        try:
            found = self._notes.status(caller, deadline)
            problems = found.pop("problems")
        except AgoraError as error:
            # A status that fails tells less than one that says why.
            found, problems = {}, [error.details()]
        problems += [trouble for trouble in self._troubles.copy().values() if trouble not in problems]
        if self._gateway is not None:
            found["backends"], amiss = self._gateway.summary(caller)
            problems += amiss
        if models := [dict(each) for each in self._language_models()]:
            found["language_models"] = models
            problems += [_failing(each) for each in models if each["last_error"] is not None]
        if self._facts is not None and "notes" in found:
            found["facts"] = self._facts.summary(caller, deadline)
        health = "ok" if not problems else "degraded"
        told = {
            "health": health,
            "problems": problems,
            **self._about(),
            **found,
            "redaction": self._guard.details(),
            "session": caller.session,
        }
        return shapes.status(shown_status(caller, told))


def check(tool: Tool, given: Arguments, guard: Guard, limits: Limits) -> Checked:
    """Arguments without secrets that meet the tool's schema.

    Raises: InvalidInput, SecretRefused; PayloadTooLarge.
    """
    raw = {name: given[name] for name in tool.verbatim if name in given}
    checked = guard.arguments({name: value for name, value in given.items() if name not in raw})
    checked = replace(checked, value=schemas.check(tool.input, checked.value | raw, tool.nulls))
    if checked.too_much:
        content, query, text = (checked.value.get(name, "") for name in ("content", "query", "text"))
        # Else the tool refuses it, with the limit and the size.
        if max(len(content), len(text)) <= limits.content_bytes and len(query) <= limits.query_chars:
            raise PayloadTooLarge("arguments", "hold too much text together")
    return checked if tool.pair is None else _paired(checked, tool.pair, guard)


def _paired(checked: Checked, pair: tuple[str, str], guard: Guard) -> Checked:
    """`checked`, in which one argument is the name of another: as in `{"password": "…"}`, it may call it a secret."""
    name, value = (checked.value[each] for each in pair)
    found = guard.fields({name: value})
    (clean,) = found.value.values()
    return replace(checked, value=checked.value | {pair[1]: clean}, replaced=checked.replaced + found.replaced)


def _caller(tool: Tool, given: Arguments, connection: Connection, client: str, version: str) -> Caller:
    claims = {claim: arguments.name(given.get(claim)) for claim in tool.claims}
    return connection.caller(client, version, namespace=tool.place(given), **claims)


def _failing(model: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "code": "language_model_failed",
        "message": f"{model['model']}: {model['last_error']}. Rules make {' and '.join(model['used_for'])} meanwhile",
        "hint": "docs/models.md says what helps; `agora doctor` asks the model for a word.",
    }


def _searched(given: Arguments, caller: Caller) -> tuple[str, ...]:
    if given.get("namespace"):
        return (caller.scope.own,)
    return caller.scope.searched()
