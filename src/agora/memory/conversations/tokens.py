"""The token that names a summary to be replaced. It is no permission: rights are asked for all the same."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from agora.errors import InvalidInput

_PREFIX = "v1."
_LONGEST = 4_000
_HINT = "Pass the token exactly as `summary_due` gave it."


@dataclass(frozen=True, slots=True)
class Ticket:
    """Which version of which summary is meant, and the messages that it covers."""

    namespace: str
    session: str
    version: int
    first: int
    last: int


def written(ticket: Ticket) -> str:
    """The ticket as an opaque text of letters, digits, `-` and `_`."""
    fields = [ticket.namespace, ticket.session, ticket.version, ticket.first, ticket.last]
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return _PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(token: str) -> Ticket:
    """The ticket that `written` made this of.

    Raises: InvalidInput.
    """
    try:
        if not token.startswith(_PREFIX) or len(token) > _LONGEST:
            raise ValueError  # noqa: TRY301 - one way out for everything that is no token
        body = token.removeprefix(_PREFIX)
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        namespace, session, *numbers = json.loads(raw)
        ticket = Ticket(namespace, session, *numbers)
        # JSON can write half a surrogate pair, which no store can be asked for.
        f"{namespace}{session}".encode()
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise InvalidInput("token", "is no token of summary_due", token, hint=_HINT) from None
    whole = all(type(number) is int for number in (ticket.version, ticket.first, ticket.last))
    named = isinstance(ticket.namespace, str) and isinstance(ticket.session, str)
    if not (whole and named and ticket.version > 0 and 0 < ticket.first <= ticket.last < 1 << 62):
        raise InvalidInput("token", "is no token of summary_due", token, hint=_HINT)
    return ticket
