from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from agora.config.project import canonical_namespace, namespace_of_path, project_namespace
from agora.errors import InvalidNamespace
from agora.model.access import Door, Policy, Program
from agora.model.caller import SHARED, Caller, Origin, Scope
from agora.model.deadline import Deadline
from agora.protocol.lifecycle import Lifecycle
from agora.protocol.redacting import Guard
from agora.text.ids import new_id

NAMED = 1_000
"""Namespaces that a connection reaches because its calls have named them, those named last: each costs every call a
little, and whoever makes up names must not fill the memory."""


class Connection:
    """What the server knows of one client: who it is, which project it works in, what it has named.

    A connection reaches its project's namespace, `shared`, what the access tables name for it, and every namespace that
    one of its calls has named; of these it sees what the tables allow. Thread-safe.
    """

    def __init__(  # noqa: PLR0913 - what there is to know of a client, each by its name
        self,
        *,
        at_ms: int,
        origin: Origin = "agent",
        folder: Path | None = None,
        namespace: str | None = None,
        rule: str = "setting namespace.default",
        agent: str | None = None,
        session: str | None = None,
        token: str = "",
        lifecycle: Lifecycle | None = None,
        door: Door = "local",
        policy: Policy | None = None,
        guard: Guard | None = None,
        near: bool = True,
        expose: tuple[str, ...] = (),
    ) -> None:
        """What is known when a client connects.

        `namespace` is the default that was given, `rule` says by what, `folder` is the client's working folder and
        `token` the name of the token it showed, if there are any. `door` is how it came in, `policy` the access tables.
        `guard` takes secrets out of every name. `near`: the client's folders are this machine's. `expose` names the
        backends whose tools the client sees as this server's.
        """
        self._project_of = project_namespace if near else namespace_of_path
        self.expose = expose
        self.session = session or new_id("h", at_ms)
        self._guard = guard or Guard()
        self._origin = origin
        self._agent = agent
        self._token = token
        self.lifecycle = lifecycle
        self._lock = threading.Lock()
        # In the order in which they were named last.
        self._named: dict[str, None] = {}
        self._programs: frozenset[Program] = frozenset()
        self._door: Door = door
        self._policy = policy or Policy()
        if namespace is not None:
            self._own, self._rule, self._fixed = namespace, rule, True
        elif folder is not None:
            self._own, self._rule = self._of(folder)
            self._fixed = False
        else:
            self._own, self._rule, self._fixed = "default", "no project folder is known", False
        # What `{own}` stands for in the access tables.
        self._project = self._own

    def root(self, folder: Path) -> None:
        """Take the project of a root that the client declared; a configured namespace stays."""
        if not self._fixed:
            self._own, rule = self._of(folder)
            self._rule = f"client root, {rule}"
            if self._door == "local":
                # Over HTTP the client may be anybody's: what it says of its folders gives it no rights.
                self._project = self._own

    def _of(self, folder: Path) -> tuple[str, str]:
        name, rule = self._project_of(folder)
        return self._guard.namespace(name), rule

    @property
    def namespace(self) -> str:
        """The namespace that calls get when they name none."""
        return self._own

    @property
    def rule(self) -> str:
        """Which rule found the namespace that calls get when they name none."""
        return self._rule

    def caller(
        self,
        client: str,
        version: str = "",
        *,
        namespace: str | None = None,
        agent: str | None = None,
        session: str | None = None,
    ) -> Caller:
        """Who makes a call with these arguments, and what it may see.

        Raises: InvalidNamespace.
        """
        own, rule = self._own, self._rule
        clean = self._guard.name
        client = _client_name(clean(client[:_LONG]))
        default = clean(self._agent) if self._agent else client
        known = self._policy.known((client,))
        grants = self._policy.granted(self._door, self._token, known, self._project)
        if namespace is not None:
            own, rule = namespace_argument(clean(namespace)), "argument"
        with self._lock:
            self._programs |= known
            # What may not be read stays unnamed, also for a program of another name on the same connection.
            if namespace is not None and grants.may("read", own):
                self._named.pop(own, None)
                self._named[own] = None
                if len(self._named) > NAMED:
                    del self._named[next(iter(self._named))]
            also = frozenset({SHARED, self._own, *self._named}) | grants.named()
        return Caller(
            scope=Scope(own, rule, also, grants),
            agent=clean(agent) if agent else default,
            session=clean(session) if session else self.session,
            client=client,
            client_version=_one_line(clean(version[:_LONG]))[:64],
            token=clean(self._token),
            origin=self._origin,
            reads_as=(self.session, default),
        )

    def listener(self) -> Caller:
        """Who hears of changes on this connection: with what all programs may see alike that have called on it."""
        with self._lock:
            programs, named = self._programs, frozenset(self._named)
        grants = self._policy.granted(self._door, self._token, programs, self._project)
        also = frozenset({SHARED, self._own}) | named | grants.named()
        return Caller(Scope(self._own, self._rule, also, grants), "", self.session, "", token=self._token)


_LONG = 2_000
"""Of what a program calls itself, more is not even looked at."""


@dataclass(frozen=True, slots=True)
class Calling:
    """One request: on which connection, by which program, and how long it may take."""

    connection: Connection
    client: str
    version: str
    deadline: Deadline

    def caller(self, namespace: str | None = None) -> Caller:
        """As `Connection.caller`."""
        return self.connection.caller(self.client, self.version, namespace=namespace)


def _client_name(given: str) -> str:
    """What a program calls itself, as it may stand in a row: one line, nothing unprintable, at most 128 characters."""
    return _one_line(given)[:128].rstrip() or "unknown"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def namespace_argument(name: str) -> str:
    """The canonical form of a namespace that a caller named.

    Raises: InvalidNamespace, about the argument `namespace`.
    """
    try:
        return canonical_namespace(name)
    except InvalidNamespace as error:
        raise InvalidNamespace("namespace", error.reason, name, hint=error.hint) from None
