"""Bearer tokens: the file that holds them, and who a request comes from.

    <data folder>/token      one token a line: SECRET [name=NAME] [namespace=NAMESPACE] [origin=ORIGIN]
                             blank lines and lines that begin with # are skipped

The first start writes the file with one secret of 256 bits. Its owner may add lines; a server reads them
when it starts.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from agora.config.project import canonical_namespace
from agora.errors import ConfigError, InvalidNamespace
from agora.model.caller import Origin

TOKEN_FILE = "token"  # noqa: S105 - the name of a file
"""Name of the file in the data folder."""

SECRET_BYTES = 32

# RFC 6750, `b64token`. The length is what `secrets.token_urlsafe` makes of 24 bytes: no guessing that.
_SECRET = re.compile(r"[A-Za-z0-9._~+/-]{32,512}=*")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FIRST_NAME = "default"


@dataclass(frozen=True, slots=True)
class Token:
    """A secret and what holds for everybody who shows it; the secret is in no `repr`.

    `namespace` is where calls go that name none. `origin` is how much the texts count that come with it.
    """

    name: str
    secret: str = field(repr=False)
    namespace: str | None = None
    origin: Origin = "agent"


class Tokens:
    """The tokens that a server takes."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tuple(tokens)

    def names(self) -> frozenset[str]:
        """The name of each."""
        return frozenset(token.name for token in self._tokens)

    def named(self, name: str | None) -> Token:
        """The token with that name; without one, the first.

        Raises: ConfigError if there is none.
        """
        for token in self._tokens:
            if name is None or token.name == name:
                return token
        names = ", ".join(token.name for token in self._tokens)
        raise ConfigError(f"there is no token named {name!r}", hint=f"There are: {names}.")

    def shown(self, authorization: Sequence[bytes]) -> Token | None:
        """The token that the values of a request's `Authorization` headers show, or None."""
        if len(authorization) != 1:
            return None
        scheme, _, given = authorization[0].partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        given = given.strip()
        found: Token | None = None
        for token in self._tokens:
            # All are compared, each in constant time: how long it takes tells nothing about any of them.
            if hmac.compare_digest(token.secret.encode(), given):
                found = token
        return found


def load_tokens(home: Path) -> Tokens:
    """The tokens of the data folder `home`, with a new one if there are none yet.

    The file is made for its owner alone: mode 0600. The standard library knows no access lists, so on Windows
    the file has those of its folder; the platform's per-user data folder lets only the user, administrators
    and the system in. Processes that start at the same time agree on one token.

    Raises: ConfigError if the file cannot be read or made, others can read it, or a line is malformed.
    """
    path = home / TOKEN_FILE
    try:
        if not path.exists():
            _create(path)
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"{path}: the token file cannot be used: {why or problem}",
            hint="Let this user own the file, or delete it: the next start makes a new one.",
        ) from problem
    if os.name == "posix" and mode & 0o077:
        raise ConfigError(f"{path}: others can read the token", hint=f"Run `chmod 600 {path}`.")
    return Tokens(_parsed(path, text))


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{TOKEN_FILE}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link appears whole and never replaces: whoever comes second uses the token of the first.
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _parsed(path: Path, text: str) -> list[Token]:
    found: list[Token] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        problem, token = _token(line, _FIRST_NAME if not found else f"token{number}")
        if token is not None and token.name in {each.name for each in found}:
            problem = f"the name {token.name} is taken"
        if token is not None and token.secret in {each.secret for each in found}:
            problem = "the secret is there twice"
        if problem or token is None:
            # The line itself may hold a secret and is not shown.
            raise ConfigError(f"{path}:{number}: {problem}", hint=_FORM)
        found.append(token)
    if not found:
        raise ConfigError(f"{path}: there is no token in it", hint="Delete the file: the next start makes a new one.")
    return found


_FORM = "A line is SECRET [name=NAME] [namespace=NAMESPACE] [origin=ORIGIN]."


def _token(line: str, name: str) -> tuple[str, Token | None]:
    """What is wrong with a line, or nothing and the token."""
    secret, *parts = line.split()
    given = {key: value for key, mark, value in (part.partition("=") for part in parts) if mark}
    if len(given) != len(parts) or not given.keys() <= {"name", "namespace", "origin"}:
        return "what follows the secret is not understood", None
    if not _SECRET.fullmatch(secret):
        return "a secret has at least 32 characters, letters, digits and . _ ~ + / -", None
    name = given.get("name", name)
    if not _NAME.fullmatch(name):
        return "a name has at most 64 characters, letters, digits and . _ -", None
    origin = given.get("origin", "agent")
    if origin not in get_args(Origin):
        return f"an origin is one of {', '.join(get_args(Origin))}", None
    try:
        namespace = canonical_namespace(given["namespace"]) if "namespace" in given else None
    except InvalidNamespace as error:
        return f"namespace: {error.reason}", None
    return "", Token(name, secret, namespace, cast("Origin", origin))
