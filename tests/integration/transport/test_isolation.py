"""Nothing but protocol reaches the protocol's stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.integration.transport.conftest import RawClient


def test_whatever_prints_goes_to_stderr(client: RawClient) -> None:
    client.initialize()
    client.call(1, "noisy")
    assert client.answer(1)["result"]["isError"] is False
    client.end_input()
    assert client.wait() == 0
    for source in (
        "printed before the streams were claimed",
        "from sys.stdout",
        "from sys.__stdout__",
        "from fd 1",
        "from a warning",
        "from a child",
    ):
        assert source in client.log()
    assert len(client.lines) == 2


def test_an_exception_shows_no_text_to_the_client(client: RawClient) -> None:
    client.initialize()
    client.call(1, "broken")
    assert client.answer(1)["error"] == {"code": -32603, "message": "Internal error"}


def test_a_result_that_is_not_text_is_an_internal_error(client: RawClient) -> None:
    client.initialize()
    client.call(1, "not_json")
    assert client.answer(1)["error"] == {"code": -32603, "message": "Internal error"}
    client.ping()


def test_no_content_is_logged_at_info(start: Callable[..., RawClient]) -> None:
    client = start(log="INFO")
    client.initialize()
    client.call(1, "echo", text="a secret")
    client.answer(1)
    client.send(b'{"jsonrpc": "2.0", "id": 2, "method": 7, "params": "a secret"}')
    client.answer(2)
    assert "secret" not in client.log()
