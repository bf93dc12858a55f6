"""Questions that wait together go out together, over a real HTTP server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from tests.integration.embedding_server import PATIENCE, EmbeddingServer, hang, status

from agora.embedding.gathering import Gathering
from agora.embedding.remote import RemoteEncoder, RemoteModel
from agora.errors import AgoraError, Cancelled, DeadlineExceeded, EmbeddingError
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector


def in_threads(calls: Sequence[Callable[[], object]]) -> list[object]:
    """What each call returned or raised, all made at the same time."""
    found: list[object] = [None] * len(calls)

    def run(place: int) -> None:
        try:
            found[place] = calls[place]()
        except AgoraError as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return found


class Held:
    """Makes vectors; each request waits until it is let go."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.go = threading.Semaphore(0)
        self.came = threading.Semaphore(0)

    def __call__(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        self.requests.append(list(texts))
        self.came.release()
        assert self.go.acquire(timeout=PATIENCE)
        deadline.check()
        return [np.full(2, len(text), np.float32) for text in texts]


def later(gathering: Gathering, text: str, deadline: Deadline | None = None) -> tuple[threading.Thread, list[object]]:
    found: list[object] = []

    def run() -> None:
        try:
            found.append(gathering(text, deadline or Deadline(PATIENCE))[0])
        except AgoraError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


def until_waiting(gathering: Gathering, count: int) -> None:
    until = time.monotonic() + PATIENCE
    pause = threading.Event()
    while len(gathering._queue) != count:
        assert time.monotonic() < until
        pause.wait(0.005)


def test_what_arrives_during_a_request_goes_out_with_the_next_one_and_each_gets_its_own_vector() -> None:
    held = Held()
    gathering = Gathering(held, 10)
    calls = [later(gathering, "x")]
    assert held.came.acquire(timeout=PATIENCE)
    calls += [later(gathering, text) for text in ("xx", "xxx", "xxxx", "xx")]
    until_waiting(gathering, 4)
    held.go.release(2)
    for thread, _ in calls:
        thread.join(PATIENCE)
    assert [found for _, found in calls] == [[1.0], [2.0], [3.0], [4.0], [2.0]]
    assert held.requests[0] == ["x"]
    assert sorted(held.requests[1]) == ["xx", "xxx", "xxxx"], "the same text is asked for once"
    assert len(held.requests) == 2


def test_a_request_holds_no_more_texts_than_it_may() -> None:
    held = Held()
    gathering = Gathering(held, 2)
    calls = [later(gathering, "x")]
    assert held.came.acquire(timeout=PATIENCE)
    calls += [later(gathering, "x" * length) for length in range(2, 7)]
    until_waiting(gathering, 5)
    held.go.release(10)
    for thread, _ in calls:
        thread.join(PATIENCE)
    assert [len(request) for request in held.requests] == [1, 2, 2, 1]


def test_a_call_that_leaves_takes_nobody_with_it_and_is_not_asked_for() -> None:
    held = Held()
    gathering = Gathering(held, 10)
    first = later(gathering, "x")
    assert held.came.acquire(timeout=PATIENCE)
    gone, short = Deadline(PATIENCE), Deadline(0.05)
    cancelled, late, stays = later(gathering, "xx", gone), later(gathering, "xxx", short), later(gathering, "xxxx")
    until_waiting(gathering, 3)
    gone.cancel()
    for thread, _ in (cancelled, late):
        thread.join(PATIENCE)
    assert isinstance(cancelled[1][0], Cancelled)
    assert isinstance(late[1][0], DeadlineExceeded)
    held.go.release(2)
    for thread, _ in (first, stays):
        thread.join(PATIENCE)
    assert (first[1], stays[1]) == ([1.0], [4.0])
    assert held.requests == [["x"], ["xxxx"]]


def test_the_first_caller_may_leave_while_its_request_goes_on_for_the_others() -> None:
    held = Held()
    gathering = Gathering(held, 10)
    leaves = Deadline(PATIENCE)
    first = later(gathering, "x", leaves)
    assert held.came.acquire(timeout=PATIENCE)
    leaves.cancel()
    first[0].join(PATIENCE)
    assert isinstance(first[1][0], Cancelled)
    second = later(gathering, "xx")
    held.go.release(2)
    second[0].join(PATIENCE)
    assert second[1] == [2.0]


def made(server: EmbeddingServer) -> RemoteEncoder:
    return RemoteEncoder(
        RemoteModel(
            model="m",
            url=server.url,
            key=None,
            dimension=64,
            timeout=5.0,
            retries=0,
            batch=32,
            query_prefix="",
            document_prefix="",
            languages=(),
            max_tokens=256,
        ),
        None,
    )


def test_many_agents_at_once_make_few_requests_and_get_what_each_alone_would_get() -> None:
    with EmbeddingServer() as server:
        encoder = made(server)
        texts = [f"question {number}" for number in range(24)]
        alone = [encoder.encode(text, Deadline(PATIENCE)) for text in texts]
        before = len(server.requests)
        found = in_threads([partial(encoder.encode_question, text, Deadline(PATIENCE)) for text in texts])
        for one, other in zip(alone, found, strict=True):
            assert isinstance(other, np.ndarray)
            assert np.array_equal(one, other)
        assert len(server.requests) - before < len(texts)
        encoder.close()


def test_an_error_of_the_server_reaches_every_call_of_its_request_and_the_next_one_works() -> None:
    with EmbeddingServer() as server:
        encoder = made(server)
        server.then(hang, status(400))
        leaves = Deadline(0.3)
        with pytest.raises(AgoraError):
            encoder.encode_question("first", leaves)
        server.released.set()
        found = in_threads([lambda: encoder.encode_question("second", Deadline(PATIENCE))])
        assert isinstance(found[0], EmbeddingError)
        assert encoder.encode_question("third", Deadline(PATIENCE)).shape == (64,)
        encoder.close()
