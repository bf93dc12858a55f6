"""What a caller's origin lets it do, before anything is asked of the store."""

from __future__ import annotations

from dataclasses import replace

from agora.errors import AuthorityRequired
from agora.model.caller import Caller, Origin, rank


def lowered(caller: Caller, wanted: Origin | None) -> Caller:
    """The caller as one of the origin that it says its text has, which can only be lower than its own.

    Raises: AuthorityRequired if it is higher.
    """
    if wanted is None or wanted == caller.origin:
        return caller
    if rank(wanted) < rank(caller.origin):
        raise AuthorityRequired(
            f"this connection is of origin `{caller.origin}`: its texts cannot be of origin `{wanted}`",
            hint="Nothing was saved. Leave `origin` out, or give a lower one: user > agent > tool > web.",
        )
    return replace(caller, origin=wanted)


def require_user(caller: Caller, act: str) -> None:
    """Return if the caller is the user.

    Raises: AuthorityRequired.
    """
    if caller.origin != "user":
        raise AuthorityRequired(
            f"only the user can {act}; this connection is of origin `{caller.origin}`",
            hint=f"Nothing was changed. Ask the user to {act}: `agora pin` and `agora unpin` on a terminal.",
        )
