from __future__ import annotations

import itertools
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr
from tests.integration.embedding_server import (
    Answer,
    EmbeddingServer,
    data,
    drip,
    dropped,
    hang,
    raw,
    shuffled,
    status,
    truncated,
)

from agora.cache.embeddings import CachedEncoder
from agora.embedding.choose import settle
from agora.embedding.remote import RemoteEncoder, RemoteModel
from agora.errors import AgoraError, Cancelled, ConfigError, EmbeddingError, EncoderUnavailable
from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.testing import ManualClock

KEY = "sk-very-secret-0123456789"
PATIENCE = 30.0

Make = Callable[..., RemoteEncoder]


class Events:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []

    def debug(self, event: str, **values: Any) -> None:
        self.seen.append((event, values))

    info = warning = debug

    def names(self) -> list[str]:
        return [event for event, _ in self.seen]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as found:
        yield found


@pytest.fixture
def log() -> Events:
    return Events()


@pytest.fixture
def make(server: EmbeddingServer, log: Events) -> Iterator[Make]:
    encoders: list[RemoteEncoder] = []

    def made(**wanted: Any) -> RemoteEncoder:
        usual: dict[str, Any] = {"model": "words", "url": server.url, "key": SecretStr(KEY), "dimension": 64}
        encoders.append(RemoteEncoder(RemoteModel(**usual | wanted), log))
        return encoders[-1]

    yield made
    for encoder in encoders:
        encoder.close()


def soon() -> Deadline:
    return Deadline(PATIENCE)


def refused(encoder: RemoteEncoder, deadline: Deadline | None = None) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        encoder.encode("a text", deadline or soon())
    error = caught.value
    assert error.hint
    cause: BaseException | None = error
    while cause is not None:
        assert KEY not in f"{cause!r} {cause} {vars(cause)}"
        cause = cause.__cause__ or cause.__context__
    return error


def state(encoder: RemoteEncoder) -> str:
    """The state now: mypy takes a property for a constant."""
    return encoder.state


def no_request_runs() -> None:
    """Return once no thread of a request is left."""
    ends = time.monotonic() + PATIENCE
    while running := [thread for thread in threading.enumerate() if thread.name == "agora-encoder"]:
        assert time.monotonic() < ends
        running[0].join(0.1)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# What goes over the wire


def test_the_request_is_what_an_openai_compatible_server_reads(server: EmbeddingServer, make: Make) -> None:
    make().encode("Grüße, 世界", soon())
    [asked] = server.requests
    assert asked.path == "/v1/embeddings"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "words", "input": ["Grüße, 世界"], "encoding_format": "float"}


def test_without_a_key_no_authorization_is_sent(server: EmbeddingServer, make: Make) -> None:
    for key in (None, SecretStr("")):
        make(key=key).encode("a", soon())
    assert all("authorization" not in asked.headers for asked in server.requests)


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/embeddings"])
def test_an_address_leads_to_the_same_place_however_much_of_it_is_given(
    server: EmbeddingServer, make: Make, end: str
) -> None:
    make(url=f"http://127.0.0.1:{server.port}{end}").encode("a", soon())
    assert server.requests[0].path == "/v1/embeddings"


def test_a_longer_path_is_kept(server: EmbeddingServer, make: Make) -> None:
    make(url=f"http://127.0.0.1:{server.port}/proxy/openai/v1").encode("a", soon())
    assert server.requests[0].path == "/proxy/openai/v1/embeddings"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434/v1",
        "ftp://a/v1",
        "http:///v1",
        "http://u:p@a/v1",
        "http://a/v1?key=s",
        "http://a/#f",
        "http://a:b/",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RemoteEncoder(RemoteModel("m", url))
    assert url not in caught.value.message


@pytest.mark.parametrize("key", ["sk-1\n", "two words", "schlüssel", '"sk-1" '])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(make: Make, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(key=SecretStr(key))
    assert key not in str(caught.value.details())


def test_a_connection_is_used_again(server: EmbeddingServer, make: Make) -> None:
    encoder = make()
    for _ in range(3):
        encoder.encode("a", soon())
    assert len({asked.client for asked in server.requests}) == 1


# Vectors


def test_vectors_come_back_normalised_in_the_order_of_the_texts(server: EmbeddingServer, make: Make) -> None:
    texts = [f"text number {number}" for number in range(7)]
    expected = [server.encoder.encode(text, soon()) for text in texts]
    server.then(shuffled, shuffled, shuffled)
    found = make(batch=3).encode_all(texts, soon())
    assert [len(asked.texts) for asked in server.requests] == [3, 3, 1]
    assert [text for asked in server.requests for text in asked.texts] == texts
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float32
        assert not one.flags.writeable
        assert abs(float(np.linalg.norm(one.astype(np.float64))) - 1) < 1e-6
        assert np.allclose(one, other, atol=1e-6)


def test_rows_without_an_index_count_in_their_order(server: EmbeddingServer, make: Make) -> None:
    server.then(data(lambda rows: [{"embedding": row["embedding"]} for row in rows]))
    one, two = make().encode_all(["one", "two"], soon())
    assert np.allclose(one, server.encoder.encode("one", soon()), atol=1e-6)
    assert np.allclose(two, server.encoder.encode("two", soon()), atol=1e-6)


def test_no_text_makes_no_request(server: EmbeddingServer, make: Make) -> None:
    assert make().encode_all([], soon()) == []
    assert server.requests == []


def test_questions_and_documents_get_their_own_prefix(server: EmbeddingServer, make: Make) -> None:
    encoder = make(query_prefix="query: ", document_prefix="passage: ")
    encoder.encode("a", soon())
    encoder.encode_all(["b", "c"], soon())
    encoder.encode_question("d", soon())
    assert [asked.texts for asked in server.requests] == [["passage: a"], ["passage: b", "passage: c"], ["query: d"]]


def test_what_servers_refuse_is_never_sent(server: EmbeddingServer, make: Make) -> None:
    make().encode_all(["", " \n", "lone \ud800"], soon())
    assert server.requests[0].texts == [".", ".", "lone \N{REPLACEMENT CHARACTER}"]


def test_vectors_of_1536_dimensions_come_whole(make: Make) -> None:
    with EmbeddingServer(1536) as wide:
        assert make(url=wide.url, dimension=1536).encode("a", soon()).shape == (1536,)


# The profile


def test_the_fingerprint_holds_server_model_prefixes_and_dimension(server: EmbeddingServer, make: Make) -> None:
    usual = make().fingerprint
    assert usual.name == f"openai:words@127.0.0.1:{server.port}"
    others = [
        make(model="other"),
        make(dimension=65),
        make(query_prefix="q: "),
        make(document_prefix="q: "),
        make(query_prefix="q: ", document_prefix="q: "),
        make(url=f"http://localhost:{server.port}/v1"),
    ]
    assert len({usual.digest(), *(other.fingerprint.digest() for other in others)}) == 7
    same = [make(key=None), make(batch=1), make(max_tokens=500), make(timeout=1, retries=0), make(url=server.url + "/")]
    assert {other.fingerprint.digest() for other in same} == {usual.digest()}


def test_the_dimension_is_asked_for_once_if_nobody_names_it(server: EmbeddingServer, make: Make) -> None:
    encoder = make(dimension=None)
    with pytest.raises(EncoderUnavailable, match="how long"):
        _ = encoder.fingerprint
    settle(encoder, soon())
    settle(encoder, soon())
    assert encoder.fingerprint.dimension == 64
    assert encoder.fingerprint == make().fingerprint
    assert len(server.requests) == 1


def test_a_dimension_that_a_store_knows_is_not_asked_for_and_never_beats_the_setting(
    server: EmbeddingServer, make: Make
) -> None:
    told, named = make(dimension=None), make(dimension=64)
    told.assume(64)
    named.assume(32)
    settle(told, soon())
    assert (told.dimension, named.dimension) == (64, 64)
    assert server.requests == []


def test_warming_up_asks_for_an_unknown_dimension_and_for_nothing_else(server: EmbeddingServer, make: Make) -> None:
    make().warm_up()
    unknown = make(dimension=None)
    unknown.warm_up()
    unknown.warm_up()
    server.arrived.get(timeout=PATIENCE)
    ends = time.monotonic() + PATIENCE
    while unknown.dimension is None:
        assert time.monotonic() < ends
    assert len(server.requests) == 1


# What goes wrong


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(
            data(lambda rows: [{**row, "embedding": row["embedding"][:-1]} for row in rows]), "63", id="short"
        ),
        pytest.param(data(lambda rows: rows[:-1]), "0 vectors for 1", id="too few"),
        pytest.param(data(lambda rows: [*rows, {**rows[0], "index": 1}]), "2 vectors for 1", id="too many"),
        pytest.param(data(lambda rows: [{**row, "index": 5} for row in rows]), "without vectors", id="wrong index"),
        pytest.param(data(lambda _: None), "without vectors", id="no data"),
        pytest.param(data(lambda _: [7]), "without vectors", id="numbers for rows"),
        pytest.param(data(lambda rows: [{**row, "embedding": [0.0] * 64} for row in rows]), "zero", id="zero"),
        pytest.param(
            data(lambda rows: [{**row, "embedding": [float("nan")] * 64} for row in rows]), "finite", id="NaN"
        ),
        pytest.param(data(lambda rows: [{**row, "embedding": [1e300] * 64} for row in rows]), "finite", id="overflow"),
        pytest.param(data(lambda rows: [{**row, "embedding": [10**400] * 64} for row in rows]), "finite", id="huge"),
        pytest.param(data(lambda rows: [{**row, "embedding": "AAAA"} for row in rows]), "no list", id="base64"),
        pytest.param(data(lambda rows: [{**row, "embedding": [True] * 64} for row in rows]), "no list", id="booleans"),
        pytest.param(data(lambda rows: [{**row, "embedding": []} for row in rows]), "0 dimensions", id="empty"),
        pytest.param(raw(b"{"), "without vectors", id="no JSON"),
        pytest.param(raw(b"[" * 100_000), "without vectors", id="deep JSON"),
        pytest.param(raw(b"\xff\xfe\x00"), "without vectors", id="bytes"),
        pytest.param(raw(b"[]"), "without vectors", id="a list"),
        pytest.param(raw(b"<html>hi</html>", "text/html"), "text/html", id="web page"),
        pytest.param(raw(b"{}", "text/plain"), "text/plain", id="plain text"),
        pytest.param(raw(b"", ""), "without a type", id="nothing"),
        pytest.param(status(400, {"error": {"message": f"no model {KEY}"}}), "status 400: no model \\*", id="400"),
        pytest.param(status(401, {"error": {"message": f"bad {KEY[:9]}"}}), "refuses the key .status 401.$", id="401"),
        pytest.param(status(403), "refuses the key", id="403"),
        pytest.param(status(404, b"<html/>", "text/html"), "status 404 with a web page", id="404"),
        pytest.param(status(404, {"error": "model not found, pull it"}), "pull it", id="error as text"),
        pytest.param(status(422, {"detail": "too long"}), "too long", id="422"),
        pytest.param(status(501), "status 501", id="501"),
        pytest.param(status(429, {"error": {"code": "insufficient_quota", "message": "pay"}}), "quota", id="quota"),
    ],
)
def test_an_answer_that_is_not_right_is_an_error_at_once(
    server: EmbeddingServer, make: Make, answer: Answer, says: str
) -> None:
    server.then(answer)
    encoder = make()
    with pytest.raises(EmbeddingError, match=says):
        raise refused(encoder)
    assert len(server.requests) == 1
    assert state(encoder) == "failed"
    # The next call asks again.
    encoder.encode("a text", soon())
    assert state(encoder) == "ready"
    assert "error" not in encoder.details()


def test_without_a_key_a_server_that_wants_one_is_said_to_ask_for_it(server: EmbeddingServer, make: Make) -> None:
    server.then(status(401))
    assert "asks for a key" in refused(make(key=None)).message


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: EmbeddingServer, make: Make, number: int) -> None:
    with EmbeddingServer() as other:
        server.then(status(number, b"", Location=f"{other.url}/embeddings"))
        assert f"status {number}" in refused(make()).message
        assert other.requests == []
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [*(pytest.param(status(number), id=str(number)) for number in (429, 500, 502, 503, 504)), dropped, truncated],
)
def test_a_busy_server_or_a_broken_connection_is_asked_again(
    server: EmbeddingServer, make: Make, answer: Answer
) -> None:
    server.then(answer, answer)
    found = make().encode("a text", soon())
    assert np.allclose(found, server.encoder.encode("a text", soon()), atol=1e-6)
    assert len(server.requests) == 3


def test_a_server_that_always_fails_is_asked_as_often_as_the_setting_says(server: EmbeddingServer, make: Make) -> None:
    server.usual = status(500, {"error": {"message": "out of memory"}})
    error = refused(make(retries=2))
    assert isinstance(error, EncoderUnavailable)
    assert "status 500: out of memory" in error.message
    assert len(server.requests) == 3


def test_half_an_answer_is_never_taken_for_a_whole_one(server: EmbeddingServer, make: Make) -> None:
    server.usual = truncated
    error = refused(make(retries=1))
    assert isinstance(error, EncoderUnavailable)
    assert len(server.requests) == 2


def test_the_time_that_a_server_asks_for_is_waited(server: EmbeddingServer, make: Make) -> None:
    server.then(status(429, Retry_After="0.4"))
    began = time.monotonic()
    make().encode("a", soon())
    assert 0.4 <= time.monotonic() - began < 3


def test_more_time_than_there_is_makes_the_error_come_at_once(server: EmbeddingServer, make: Make) -> None:
    server.then(status(429, Retry_After="3600"), status(503, Retry_After="Wed, 21 Oct 2099 07:28:00 GMT"))
    for _ in range(2):
        began = time.monotonic()
        assert isinstance(refused(make()), EncoderUnavailable)
        assert time.monotonic() - began < 3
    assert len(server.requests) == 2


def test_nothing_goes_on_after_the_deadline(server: EmbeddingServer, make: Make) -> None:
    server.usual = status(500)
    began = time.monotonic()
    assert isinstance(refused(make(retries=20), Deadline(0.7)), EncoderUnavailable)
    assert time.monotonic() - began < 2
    asked = len(server.requests)
    with pytest.raises(EncoderUnavailable):
        make().encode("late", Deadline(0))
    assert len(server.requests) == asked


def test_a_server_that_is_not_there_is_named_with_what_to_do(make: Make) -> None:
    port = free_port()
    error = refused(make(url=f"http://127.0.0.1:{port}/v1", retries=1))
    assert isinstance(error, EncoderUnavailable)
    assert f"127.0.0.1:{port} cannot be reached" in error.message
    assert error.retryable


@pytest.mark.parametrize("answer", [hang, drip])
def test_a_server_that_gives_no_answer_is_left_after_the_timeout_and_not_asked_again(
    server: EmbeddingServer, make: Make, answer: Answer
) -> None:
    server.usual = answer
    began = time.monotonic()
    error = refused(make(timeout=0.4))
    assert 0.35 < time.monotonic() - began < 2
    assert "within 0.4 s" in error.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [hang, drip])
def test_the_deadline_of_the_call_ends_it_before_the_timeout(
    server: EmbeddingServer, make: Make, answer: Answer
) -> None:
    server.usual = answer
    began = time.monotonic()
    assert "0.3 s of this call" in refused(make(timeout=20), Deadline(0.3)).message
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("answer", [hang, drip, status(503, Retry_After="20")], ids=["hangs", "drips", "asks to wait"])
def test_a_cancelled_call_returns_within_half_a_second(server: EmbeddingServer, make: Make, answer: Answer) -> None:
    server.usual = answer
    encoder, deadline = make(timeout=20), Deadline(60)
    ended: list[tuple[float, AgoraError]] = []

    def work() -> None:
        try:
            encoder.encode("a", deadline)
        except AgoraError as error:
            ended.append((time.monotonic(), error))

    thread = threading.Thread(target=work)
    thread.start()
    server.arrived.get(timeout=PATIENCE)
    if answer not in {hang, drip}:
        # The answer is read, and the call waits to ask again.
        no_request_runs()
    cancelled = time.monotonic()
    deadline.cancel()
    thread.join(PATIENCE)
    [(at, error)] = ended
    assert isinstance(error, Cancelled)
    assert at - cancelled < 0.5
    # Nothing is wrong with the server.
    assert encoder.state != "failed"


def test_threads_that_give_up_leave_no_thread_behind(server: EmbeddingServer, make: Make) -> None:
    server.usual = drip
    with pytest.raises(EncoderUnavailable):
        make(timeout=20).encode("a", Deadline(0.2))
    no_request_runs()


# What is told


def test_no_log_and_no_status_shows_the_key_or_a_text(
    server: EmbeddingServer, make: Make, log: Events, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.then(status(400, {"error": {"message": f"{KEY} a text"}}), status(400))
    encoder = make()
    refused(encoder)
    refused(encoder)
    encoder.encode("a text", soon())
    assert log.names() == ["encoder fails", "encoder answers"]
    told = json.dumps([log.seen, encoder.details(), caplog.text], default=str)
    assert KEY not in told
    assert "a text" not in str(log.seen)
    assert KEY not in repr(encoder._wanted) + repr(vars(encoder._endpoint))


def test_the_status_shows_server_state_and_last_error(server: EmbeddingServer, make: Make) -> None:
    encoder = make()
    before = encoder.details()
    assert (before["state"], before["dimension"], before["url"]) == ("cold", 64, f"{server.url}/embeddings")
    server.then(status(404))
    refused(encoder)
    assert "status 404" in encoder.details()["error"]
    assert make(dimension=None).details()["fingerprint"] is None


# Passages


@pytest.mark.parametrize("limit", [16, 100, 256, 512, 8192])
@pytest.mark.parametrize(
    "unit", ["word and another ", "x", "数据库连接超时", "Ошибка при оплате. ", "👩‍👩‍👧‍👦 ", "1234567890 ", "{[(;)]} "]
)
def test_passages_keep_below_the_limit_by_a_rather_high_estimate(make: Make, unit: str, limit: int) -> None:
    text = unit * (20_000 // len(unit))
    spans = make(max_tokens=limit).split(text, soon())
    assert (spans[0].start, spans[-1].stop) == (0, len(text))
    for before, after in itertools.pairwise(spans):
        assert before.start < after.start <= before.stop < after.stop
    for span in spans:
        passage = text[span.start : span.stop]
        letters = sum(mark.isascii() and mark.isalpha() for mark in passage)
        others = sum(1 + (mark >= "\u2e80") for mark in passage if not mark.isspace()) - letters
        assert letters / 3 + others <= limit


def test_a_larger_limit_makes_fewer_passages(make: Make) -> None:
    text = "A sentence of a few words. " * 1500
    counts = [len(make(max_tokens=limit).split(text, soon())) for limit in (64, 256, 512, 2048)]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4
    assert make().split("short", soon()) == (Span(0, 5),)


def test_a_long_prefix_leaves_less_room(make: Make) -> None:
    text = "word " * 400
    assert len(make(document_prefix="as " * 100).split(text, soon())) > len(make().split(text, soon()))


def test_the_cache_never_takes_a_question_for_a_text(server: EmbeddingServer, make: Make) -> None:
    cached = CachedEncoder(make(query_prefix="query: "), ManualClock(), None, entries=8, disk_seconds=60)
    for _ in range(2):
        assert not np.array_equal(cached.encode("a", soon()), cached.encode_question("a", soon()))
    assert [asked.texts for asked in server.requests] == [["a"], ["query: a"]]
