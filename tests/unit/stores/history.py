"""A history for the tests of the journal and of what is read from it."""

from __future__ import annotations

from tests.conftest import Desk


def tell(desk: Desk) -> None:
    """Seven changes of several kinds by two agents: saves, a supersession, a second saver, a forget, a restore."""
    one = desk.save("A", "ann", key="k", tags=("t",)).id
    desk.save("B", "bob", key="k")
    desk.save("loose", "ann")
    desk.save("loose", "bob", metadata={"x": "é"})
    desk.forget(one, reason="wrong")
    desk.restore(one)
