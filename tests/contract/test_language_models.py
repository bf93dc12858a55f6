"""What every adapter of a language model must do, over real HTTP on loopback."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.embedding_server import Answer, EmbeddingServer, drip, dropped, hang, raw, status
from tests.integration.model_wire import ANTHROPIC, KEY, OPENAI, SPENT, WIRES, Wire, half

from agora.errors import (
    AgoraError,
    Cancelled,
    ConfigError,
    DeadlineExceeded,
    MissingExtra,
    ModelAnswerUnusable,
    ModelUnavailable,
)
from agora.llm.served import ServedModel
from agora.model.deadline import Deadline
from agora.ports.language_model import Asked, LanguageModel

PATIENCE = 30.0
PLAIN = Asked("Do as you are told.", "the text of somebody", 500)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
AS_JSON = Asked("Do as you are told.", "the text of somebody", 500, SCHEMA)

Make = Callable[..., ServedModel]


class Events:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []

    def debug(self, event: str, **values: Any) -> None:
        self.seen.append((event, values))

    info = warning = debug


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    found: Wire = request.param
    return found


@pytest.fixture
def server(wire: Wire) -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as found:
        found.usual = wire.says("an answer")
        yield found


@pytest.fixture
def log() -> Events:
    return Events()


@pytest.fixture
def make(wire: Wire, server: EmbeddingServer, log: Events) -> Iterator[Make]:
    models: list[ServedModel] = []

    def made(**wanted: Any) -> ServedModel:
        models.append(wire.model(wanted.pop("url", server.url), log, **wanted))
        return models[-1]

    yield made
    for model in models:
        model.close()


def soon() -> Deadline:
    return Deadline(PATIENCE)


def unavailable(model: LanguageModel, asked: Asked = PLAIN) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        model.complete(asked, soon())
    examine(caught.value, model)
    return caught.value


def unusable(model: LanguageModel, asked: Asked = PLAIN) -> ModelAnswerUnusable:
    with pytest.raises(ModelAnswerUnusable) as caught:
        model.complete(asked, soon())
    examine(caught.value, model)
    return caught.value


def examine(error: AgoraError, model: LanguageModel) -> None:
    """Neither an error, nor what led to it, nor the status shows the key."""
    assert error.hint
    assert model.details()["last_error"]
    assert KEY not in f"{model.details()} {error.details()}"
    cause: BaseException | None = error
    while cause is not None:
        assert KEY not in f"{cause!r} {cause} {vars(cause)}"
        cause = cause.__cause__ or cause.__context__


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def no_request_runs() -> None:
    """Return once no thread of a request is left."""
    ends = time.monotonic() + PATIENCE
    while running := [thread for thread in threading.enumerate() if thread.name == "agora-language-model"]:
        assert time.monotonic() < ends
        running[0].join(0.1)


# What goes over the wire


def test_the_request_is_what_the_api_reads_and_holds_nothing_of_this_machine(
    wire: Wire, server: EmbeddingServer, make: Make
) -> None:
    make().complete(PLAIN, soon())
    [asked] = server.requests
    assert asked.path == wire.path
    assert asked.headers[wire.key_header] == wire.key
    known = {"host", "connection", "accept", "accept-encoding", "user-agent", "content-type", "content-length"}
    assert set(asked.headers) - known - {"anthropic-version"} == {wire.key_header}
    if wire is OPENAI:
        told = [
            {"role": "system", "content": "Do as you are told."},
            {"role": "user", "content": "the text of somebody"},
        ]
        assert asked.body == {"model": "words", "messages": told, "max_tokens": 500, "temperature": 0.0}
    else:
        assert asked.body == {
            "model": "words",
            "system": "Do as you are told.",
            "messages": [{"role": "user", "content": "the text of somebody"}],
            "max_tokens": 500,
        }


def test_what_the_libraries_find_in_the_environment_never_leaves(
    wire: Wire, server: EmbeddingServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        *("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    ):
        monkeypatch.setenv(name, "of-the-environment")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "Authorization: Bearer of-the-environment\nX-Own: of-the-environment")
    make(key=None).complete(PLAIN, soon())
    [asked] = server.requests
    assert "of-the-environment" not in f"{asked.headers}"
    assert wire.key_header not in asked.headers


def test_the_least_limit_of_tokens_counts(server: EmbeddingServer, make: Make) -> None:
    model = make(max_tokens=100)
    model.complete(PLAIN, soon())
    model.complete(Asked("a", "b", 50), soon())
    assert [asked.body["max_tokens"] for asked in server.requests] == [100, 50]


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "{path}"])
def test_an_address_leads_to_the_same_place_however_much_of_it_is_given(
    wire: Wire, server: EmbeddingServer, make: Make, end: str
) -> None:
    make(url=f"http://127.0.0.1:{server.port}{end.format(path=wire.path)}").complete(PLAIN, soon())
    assert server.requests[0].path == wire.path


@pytest.mark.parametrize(
    "url", ["localhost:1", "ftp://a/v1", "http://me:pass@a/v1", "http://a/v1?key=pass", "http://[x"]
)
def test_an_address_that_cannot_be_used_is_refused_and_not_shown(make: Make, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(url=url)
    assert "pass" not in f"{caught.value} {caught.value.hint}"


def test_nothing_is_imported_and_nobody_is_asked_before_the_first_call(wire: Wire) -> None:
    code = (
        "import sys\n"
        "from tests.integration.model_wire import WIRES\n"
        f"made = {{wire.name: wire for wire in WIRES}}[{wire.name!r}].model('http://192.0.2.1/v1')\n"
        "assert made.details()['calls'] == 0\n"
        "print(sorted({'openai', 'anthropic', 'httpx2', 'jsonschema'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_missing_library_is_said_with_the_extra_that_brings_it(
    wire: Wire, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, wire.name, None)
    with pytest.raises(MissingExtra) as caught:
        make()
    assert f"agora-memory[{wire.name}]" in caught.value.hint


def test_a_library_that_is_taken_away_or_broken_later_is_a_failure_of_the_model(wire: Wire, tmp_path: Path) -> None:
    (tmp_path / wire.name).mkdir()
    (tmp_path / wire.name / "__init__.py").write_text("import something_that_is_not_there\n", encoding="utf-8")
    code = (
        "from agora.errors import ModelUnavailable\n"
        "from agora.model.deadline import Deadline\n"
        "from agora.ports.language_model import Asked\n"
        "from tests.integration.model_wire import WIRES\n"
        f"made = {{wire.name: wire for wire in WIRES}}[{wire.name!r}].model('http://127.0.0.1:9/v1')\n"
        "try:\n"
        "    made.complete(Asked('a', 'b', 5), Deadline(20))\n"
        "except ModelUnavailable as error:\n"
        "    print(error.retryable, error.hint, error.message)\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.startswith(f"False Run: pip install 'agora-memory[{wire.name}]'"), done.stderr
    assert "something_that_is_not_there" in done.stdout


# Answers


def test_an_answer_comes_with_what_it_cost(make: Make, log: Events) -> None:
    model = make()
    found = model.complete(PLAIN, soon())
    assert (found.text, found.value, found.model) == ("an answer", None, "words-2026-11-01")
    assert (found.input_tokens, found.output_tokens) == SPENT
    model.complete(PLAIN, soon())
    told = model.details()
    assert told["model"] == model.name
    assert (told["calls"], told["failures"], told["retries"]) == (2, 0, 0)
    assert (told["input_tokens"], told["output_tokens"]) == (2 * SPENT[0], 2 * SPENT[1])
    assert told["seconds"] > 0
    assert told["last_error"] is None
    assert log.seen == []


def test_the_name_says_adapter_model_and_server(wire: Wire, server: EmbeddingServer, make: Make) -> None:
    assert make().name == f"{wire.name}:words@127.0.0.1:{server.port}"


def test_a_schema_is_asked_for_and_its_value_comes_back(wire: Wire, server: EmbeddingServer, make: Make) -> None:
    server.then(wire.says('{"facts": ["uno", "два"]}'))
    assert make().complete(AS_JSON, soon()).value == {"facts": ["uno", "два"]}
    assert wire.schema_in(server.requests[0]) == SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        "Here you are: {}",
        '{"facts": [',
        '{"facts": "one"}',
        '{"facts": [1]}',
        '{"facts": [], "more": 1}',
        "[" * 100_000,
        "null",
    ],
)
def test_what_the_schema_does_not_ask_for_is_never_used(
    wire: Wire, server: EmbeddingServer, make: Make, text: str
) -> None:
    server.then(wire.says(text))
    model = make()
    unusable(model, AS_JSON)
    # It was paid for all the same.
    assert model.details()["output_tokens"] == SPENT[1]
    assert len(server.requests) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_does_not_have_is_never_used(
    wire: Wire, server: EmbeddingServer, make: Make, number: str
) -> None:
    server.then(wire.says(f'{{"n": {number}}}'), wire.says('{"n": 1.5}'))
    model = make()
    asked = Asked("a", "b", 50, {"type": "object", "properties": {"n": {"type": "number"}}})
    unusable(model, asked)
    assert model.complete(asked, soon()).value == {"n": 1.5}


@pytest.mark.parametrize(
    ("text", "reason", "word"),
    [
        ("half of", "cut", "cut off"),
        ('{"facts": []}', "cut", "cut off"),
        ("I cannot help.", "refused", "refused"),
        ("", "whole", "empty"),
        (" \n", "whole", "empty"),
    ],
)
@pytest.mark.parametrize("asked", [PLAIN, AS_JSON], ids=["plain", "schema"])
def test_cut_off_refused_and_empty_answers_are_never_used(
    wire: Wire, server: EmbeddingServer, make: Make, text: str, reason: str, word: str, asked: Asked
) -> None:
    server.then(wire.says(text, reason))
    model = make()
    assert word in unusable(model, asked).message
    assert model.details()["failures"] == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"{"),
        raw(b""),
        raw(b"null"),
        raw(b"[]"),
        raw(b"{}"),
        raw(b'{"choices": [], "content": null, "usage": null}'),
        raw(b'{"choices": [{"message": {"content": 5}}], "content": [5], "usage": {}}'),
        raw(b'{"choices": "none", "content": "none", "usage": "none"}'),
        raw(b"<html>welcome</html>", "text/html"),
        raw(b"\xff\xfe", "application/json"),
    ],
)
def test_an_answer_of_another_shape_is_never_used(server: EmbeddingServer, make: Make, answer: Answer) -> None:
    server.then(answer)
    unusable(make())
    assert len(server.requests) == 1


def test_a_huge_answer_is_not_read_to_its_end(wire: Wire, server: EmbeddingServer, make: Make) -> None:
    server.then(wire.says("x" * 9_000_000))
    assert "8 MiB" in unusable(make()).message


def test_a_compressed_answer_is_not_opened(server: EmbeddingServer, make: Make) -> None:
    server.then(status(200, b"\x1f\x8b", Content_Encoding="gzip"))
    assert "compressed" in unusable(make()).message


# Failures


def test_the_time_that_a_server_asks_for_is_waited(wire: Wire, server: EmbeddingServer, make: Make) -> None:
    server.then(wire.fails(429, "rate_limit_error", Retry_After="1"))
    model = make()
    started = time.monotonic()
    assert model.complete(PLAIN, soon()).text == "an answer"
    assert time.monotonic() - started >= 1
    told = model.details()
    assert (told["calls"], told["retries"], told["failures"], told["last_error"]) == (1, 1, 0, None)


def test_more_time_than_there_is_makes_the_error_come_at_once(wire: Wire, server: EmbeddingServer, make: Make) -> None:
    server.then(wire.fails(429, "rate_limit_error", Retry_After="3600"))
    error = unavailable(make())
    assert error.retryable
    assert len(server.requests) == 1


@pytest.mark.parametrize("number", [408, 500, 502, 503, 504, 529])
def test_a_busy_server_is_asked_again(wire: Wire, server: EmbeddingServer, make: Make, number: int) -> None:
    server.then(wire.fails(number))
    assert make().complete(PLAIN, soon()).text == "an answer"
    assert len(server.requests) == 2


def test_a_broken_connection_is_asked_again_and_half_an_answer_never_taken(
    wire: Wire, server: EmbeddingServer, make: Make
) -> None:
    server.then(dropped, half(wire))
    assert make().complete(PLAIN, soon()).text == "an answer"
    assert len(server.requests) == 3


def test_a_server_that_always_fails_is_asked_as_often_as_the_setting_says(
    wire: Wire, server: EmbeddingServer, make: Make, log: Events
) -> None:
    server.usual = wire.fails(500, message="the text of somebody")
    model = make(retries=1)
    assert unavailable(model).retryable
    assert len(server.requests) == 2
    # The server's words may hold texts: the error has them, status and log have not.
    assert "somebody" not in f"{model.details()} {log.seen}"
    assert model.details()["last_error"].endswith("answers with status 500")
    assert [event for event, _ in log.seen] == ["language model fails"]


@pytest.mark.parametrize("number", [401, 403])
def test_a_refused_key_is_said_once_and_without_the_words_of_the_server(
    wire: Wire, server: EmbeddingServer, make: Make, number: int
) -> None:
    server.usual = wire.fails(number, "authentication_error", f"Incorrect API key provided: {KEY[:8]}*****789.")
    error = unavailable(make())
    assert not error.retryable
    assert error.details()["retryable"] is False
    assert "model.key" in error.hint
    assert KEY[:8] not in error.message
    assert len(server.requests) == 1
    assert "asks for a key" in unavailable(make(key=None)).message


@pytest.mark.parametrize("number", [400, 404, 413, 422])
def test_what_no_waiting_cures_is_not_asked_again_and_names_a_setting(
    wire: Wire, server: EmbeddingServer, make: Make, number: int
) -> None:
    server.usual = wire.fails(number, message=f"no model words for {KEY}")
    error = unavailable(make())
    assert not error.retryable
    assert "no model words" in error.message
    assert "model" in error.hint
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ("Unsupported value: 'temperature' does not support 0", "model.temperature"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "model.token_parameter"),
        ("response_format.type must be json_object", "model.json_mode"),
    ],
)
def test_a_parameter_that_a_server_does_not_take_leads_to_its_setting(
    wire: Wire, server: EmbeddingServer, make: Make, said: str, setting: str
) -> None:
    server.then(wire.fails(400, message=said))
    assert setting in unavailable(make()).hint


@pytest.mark.parametrize(("number", "kind"), [(429, "insufficient_quota"), (402, "billing_error")])
def test_a_quota_that_is_used_up_is_not_waited_for(
    wire: Wire, server: EmbeddingServer, make: Make, number: int, kind: str
) -> None:
    server.usual = wire.fails(number, kind)
    error = unavailable(make())
    assert "billing" in error.hint
    assert not error.retryable
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: EmbeddingServer, make: Make) -> None:
    with EmbeddingServer() as other:
        server.then(status(307, b"", Location=other.url))
        assert "model.url" in unavailable(make()).hint
        assert other.requests == []


def test_a_server_that_is_not_there_is_named_with_what_to_do(make: Make) -> None:
    port = free_port()
    model = make(url=f"http://127.0.0.1:{port}/v1", retries=1)
    error = unavailable(model)
    assert f"127.0.0.1:{port}" in error.message
    assert error.retryable
    assert "model.url" in error.hint
    assert model.details()["retries"] == 1


@pytest.mark.parametrize("answer", [hang, drip])
def test_a_server_that_gives_no_answer_in_time_is_left_and_not_asked_again(
    server: EmbeddingServer, make: Make, answer: Answer
) -> None:
    server.usual = answer
    error = unavailable(make(timeout=0.4))
    assert "model.timeout" in error.hint
    assert error.retryable
    assert len(server.requests) == 1
    no_request_runs()


def test_the_deadline_of_the_call_ends_it_before_the_timeout(server: EmbeddingServer, make: Make) -> None:
    model = make()
    model.complete(PLAIN, soon())
    server.usual = drip
    with pytest.raises(DeadlineExceeded):
        model.complete(PLAIN, Deadline(0.4))
    assert "deadline" in model.details()["last_error"]
    assert model.details()["failures"] == 1
    no_request_runs()


@pytest.mark.parametrize("answer", [hang, drip, "busy"])
def test_a_cancelled_call_returns_within_half_a_second(
    wire: Wire, server: EmbeddingServer, make: Make, answer: Answer | str
) -> None:
    server.usual = wire.fails(429, Retry_After="5") if isinstance(answer, str) else answer
    deadline = soon()
    ended: list[tuple[type[BaseException], float]] = []
    model = make()

    def call() -> None:
        try:
            model.complete(PLAIN, deadline)
        except AgoraError as error:
            ended.append((type(error), time.monotonic()))

    thread = threading.Thread(target=call)
    thread.start()
    server.arrived.get(timeout=PATIENCE)
    at = time.monotonic()
    deadline.cancel()
    thread.join(PATIENCE)
    [(kind, when)] = ended
    assert kind is Cancelled
    assert when - at < 0.5
    assert model.details()["failures"] == 0


def test_a_call_without_time_asks_nobody(server: EmbeddingServer, make: Make) -> None:
    with pytest.raises(DeadlineExceeded):
        make().complete(PLAIN, Deadline(0))
    assert server.requests == []


# Sharing, and what is told


def test_threads_share_it_and_every_call_is_counted(server: EmbeddingServer, make: Make) -> None:
    model = make()
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(model.complete(PLAIN, soon()).text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found == ["an answer"] * 8
    assert model.details()["calls"] == len(server.requests) == 8


def test_it_can_be_used_again_after_it_let_its_connections_go(make: Make) -> None:
    model = make()
    for _ in range(2):
        assert model.complete(PLAIN, soon()).text == "an answer"
        model.close()


def test_no_log_at_any_level_shows_the_key_or_a_text(
    wire: Wire, server: EmbeddingServer, make: Make, log: Events, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.then(wire.fails(500, message="the text of somebody"))
    make().complete(PLAIN, soon())
    server.then(wire.fails(400, message="the text of somebody"))
    unavailable(make())
    written = f"{caplog.text} {log.seen}"
    assert KEY not in written
    assert "somebody" not in written


def test_neither_repr_shows_the_key(make: Make) -> None:
    model = make()
    model.complete(PLAIN, soon())
    assert KEY not in f"{model!r} {model} {model._wanted!r} {model._dialect!r}"


def test_the_log_tells_a_change_and_not_every_call(
    wire: Wire, server: EmbeddingServer, make: Make, log: Events
) -> None:
    model = make()
    server.then(wire.fails(400), wire.fails(400))
    unavailable(model)
    unavailable(model)
    model.complete(PLAIN, soon())
    model.complete(PLAIN, soon())
    assert [event for event, _ in log.seen] == ["language model fails", "language model answers"]


# What one of them does alone


def test_a_server_that_knows_no_schema_is_told_it_in_words() -> None:
    with EmbeddingServer() as server:
        server.usual = OPENAI.says('{"facts": []}')
        model = OPENAI.model(server.url, json_mode="object")
        assert model.complete(AS_JSON, soon()).value == {"facts": []}
        model.close()
        [asked] = server.requests
        assert asked.body["response_format"] == {"type": "json_object"}
        assert '"additionalProperties": false' in asked.body["messages"][0]["content"]


def test_what_a_model_thought_before_its_answer_is_no_part_of_it() -> None:
    with EmbeddingServer() as server:
        server.usual = OPENAI.says("<think>\nhm, 42?\n</think>\n\nThe answer.")
        model = OPENAI.model(server.url)
        assert model.complete(PLAIN, soon()).text == "The answer."
        model.close()


def test_a_temperature_that_nobody_may_choose_is_not_sent() -> None:
    with EmbeddingServer() as server:
        server.usual = OPENAI.says("yes")
        model = OPENAI.model(server.url, temperature=None)
        model.complete(PLAIN, soon())
        model.close()
        assert "temperature" not in server.requests[0].body


def test_a_content_filter_counts_as_a_refusal() -> None:
    with EmbeddingServer() as server:
        server.usual = status(200, OPENAI.body("", "content_filter"))
        model = OPENAI.model(server.url)
        assert "refused" in unusable(model).message
        model.close()


@pytest.mark.parametrize("reason", ["pause_turn", "tool_use", None, "model_context_window_exceeded"])
def test_a_message_that_stopped_for_another_reason_is_never_used(reason: str | None) -> None:
    with EmbeddingServer() as server:
        server.usual = status(200, ANTHROPIC.body("half of", "end_turn") | {"stop_reason": reason})
        model = ANTHROPIC.model(server.url)
        unusable(model)
        model.close()
