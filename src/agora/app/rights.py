"""What `agora access` shows: what the access tables come to for somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.app.files import STORE_FILE
from agora.app.guarding import guard_of
from agora.config.access import RIGHTS, names_of
from agora.config.load import Loaded
from agora.errors import ConfigError
from agora.model.access import Door, Policy
from agora.protocol.context import Connection, namespace_argument
from agora.stores.sqlite.listed import namespaces_in
from agora.transport.auth import TOKEN_FILE, Tokens, load_tokens


@dataclass(frozen=True, slots=True)
class Somebody:
    """Whose rights are asked for: a session in `folder`, or over `http` with the token of that name, if it has one.

    `client` is what its program calls itself.
    """

    folder: Path
    http: bool = False
    token: str = ""
    client: str = ""


def rights_of(loaded: Loaded, who: Somebody, asked: Sequence[str]) -> dict[str, Any]:
    """Which tables apply to somebody, and the rights that come of them in the namespaces `asked`, as plain data.

    Without `asked`: in its own project, in `shared` and in every namespace of the store.

    Raises: ConfigError for a token that there is not; InvalidNamespace; StoreUnavailable, StoreCorrupt.
    """
    settings = loaded.settings
    tokens = load_tokens(settings.home) if (settings.home / TOKEN_FILE).exists() else Tokens(())
    connection = _connection(loaded, who, tokens)
    caller = connection.caller(who.client)
    grants = caller.scope.grants
    names = tuple(map(namespace_argument, asked)) or dict.fromkeys(
        (connection.namespace, "shared", *sorted(grants.named()), *namespaces_in(settings.home / STORE_FILE))
    )
    return {
        "project": connection.namespace,
        "project_rule": connection.rule,
        "tables": len(settings.access),
        "access": grants.details(),
        "namespaces": [
            {
                "namespace": name,
                "rights": RIGHTS[level - 1] if (level := grants.level(name)) else None,
                "named_first": level > 0 and name not in caller.scope.visible(),
            }
            for name in names
        ],
        "backends": [each.name for each in settings.backends if grants.may_call(each.name)],
        "unknown_tokens": sorted(names_of(settings.access) - tokens.names()),
    }


def _connection(loaded: Loaded, who: Somebody, tokens: Tokens) -> Connection:
    settings, namespace = loaded.settings, loaded.settings.namespace.default
    door: Door = "http" if who.http or who.token else "local"
    if who.token:
        if who.token not in tokens.names():
            names = ", ".join(sorted(tokens.names())) or "none yet"
            raise ConfigError(f"there is no token named {who.token!r}", hint=f"There are: {names}.")
        namespace = tokens.named(who.token).namespace or namespace
    return Connection(
        at_ms=0,
        namespace=namespace,
        folder=who.folder if door == "local" else None,
        token=who.token,
        door=door,
        policy=Policy(settings.access),
        guard=guard_of(settings),
    )
