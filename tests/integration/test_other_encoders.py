"""Stores whose vectors come from a server or from somebody else's graph: real processes, real HTTP."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.embedding_server import EmbeddingServer, hang, status
from tests.integration.processes import RunAgora, Serve

from agora.app.agora import opened
from agora.app.checking import diagnose
from agora.config.load import Loaded, load_settings
from agora.errors import EmbeddingMismatch
from agora.model.deadline import Deadline

TINY = Path(__file__).resolve().parents[1] / "data" / "embedding" / "tiny"
KEY = "sk-very-secret-0123456789"
NOTE = "the checkout charged twice because the webhook came again"
QUESTION = "webhook charged twice"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(1536) as found:
        yield found


def using(server: EmbeddingServer, **more: str) -> dict[str, str]:
    """The environment of a process whose vectors come from `server`."""
    return {
        "AGORA_EMBEDDING_MODEL": "openai:words",
        "AGORA_EMBEDDING_URL": server.url,
        "AGORA_EMBEDDING_KEY": KEY,
        "AGORA_EMBEDDING_RETRIES": "0",
        **more,
    }


def profile(home: Path) -> tuple[str, int]:
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        name, dimension = connection.execute("SELECT name, dimension FROM encoders").fetchone()
        return name, dimension


def settings(home: Path, env: Mapping[str, str]) -> Loaded:
    return load_settings(env={"AGORA_HOME": str(home), **env})


def call(home: Path, env: Mapping[str, str], tool: str, **arguments: object) -> dict[str, Any]:
    """What a tool answers in an Agora that is opened and closed for it, as a command does."""
    with opened(settings(home, env)) as agora:
        connection = agora.connection(origin="user")
        return agora.tools.call(tool, arguments, connection, client="test", deadline=Deadline(30))


def down(server: EmbeddingServer) -> None:
    """Nobody listens there any more."""
    server.__exit__(None, None, None)


def test_a_store_of_1536_dimensions_is_saved_to_asked_and_found_again_by_another_process(
    server: EmbeddingServer, home: Path, serve: Serve
) -> None:
    first = serve(env=using(server))
    saved = first.call("agora_save", content=NOTE)
    first.call("agora_save", content="the river boat is late")
    [hit] = first.call("agora_query", query=QUESTION, mode="semantic", top_k=1)["results"]
    assert hit["id"] == saved["id"]
    model = first.call("agora_status")["model"]
    name = f"openai:words@127.0.0.1:{server.port}"
    assert (model["model"], model["dimension"], model["state"]) == (name, 1536, "ready")
    assert first.end_input()[0] == 0
    assert profile(home) == (name, 1536)
    asked = len(server.requests)
    second = serve(env=using(server))
    [hit] = second.call("agora_query", query="twice charged webhook", mode="semantic", top_k=1)["results"]
    assert hit["id"] == saved["id"]
    # The store knows the dimension; the question is all that was asked.
    assert [each.texts for each in server.requests[asked:]] == [["twice charged webhook"]]


def test_with_the_server_down_a_query_and_a_save_are_errors_and_words_are_still_found(
    server: EmbeddingServer, home: Path, serve: Serve
) -> None:
    client = serve(env=using(server, AGORA_LOG_LEVEL="debug"))
    saved = client.call("agora_save", content=NOTE)
    down(server)
    for tool, arguments in (
        ("agora_query", {"query": "another question"}),
        ("agora_save", {"content": "another note"}),
    ):
        error = client.refused(tool, **arguments)
        assert (error["code"], error["retryable"]) == ("encoder_unavailable", True)
        assert f"127.0.0.1:{server.port} cannot be reached" in error["message"]
        assert "Lexical queries" in error["hint"]
    [hit] = client.call("agora_query", query=QUESTION, mode="lexical")["results"]
    assert hit["id"] == saved["id"]
    found = client.call("agora_status")
    assert found["health"] == "degraded"
    assert "cannot be reached" in found["problems"][0]["message"]
    # Nothing of the failed save is there: no row that nobody can find by meaning.
    assert found["notes"]["live"] == 1
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (1,)


def test_a_server_that_is_down_lets_agora_start_and_each_call_says_so_until_it_is_back(
    server: EmbeddingServer, home: Path, serve: Serve
) -> None:
    down(server)
    client = serve(env=using(server))
    assert client.request("tools/list")["result"]["tools"]
    for _ in range(2):
        error = client.refused("agora_save", content=NOTE)
        assert error["code"] == "encoder_unavailable"
        assert "cannot be reached" in error["message"]
    assert client.refused("agora_query", query="x", mode="lexical")["code"] == "encoder_unavailable"
    assert client.refused("agora_save", content="")["code"] == "invalid_input"
    found = client.call("agora_status")
    assert (found["health"], found["problems"][0]["code"]) == ("degraded", "encoder_unavailable")
    assert not (home / "agora.db").exists()
    with EmbeddingServer(24, port=server.port):
        saved = client.call("agora_save", content=NOTE)
        [hit] = client.call("agora_query", query=QUESTION)["results"]
        assert hit["id"] == saved["id"]
        assert client.call("agora_status")["health"] == "ok"
    assert client.end_input()[0] == 0
    assert profile(home)[1] == 24


def test_a_server_that_hangs_keeps_nobody_from_ending(server: EmbeddingServer, serve: Serve) -> None:
    server.usual = hang
    client = serve(env=using(server, AGORA_EMBEDDING_TIMEOUT="60"))
    client.post_call("agora_save", content=NOTE)
    server.arrived.get(timeout=30)
    code, seconds = client.end_input()
    assert seconds < 3
    assert code == 0


def test_a_long_note_goes_out_in_few_requests_and_its_end_is_found(server: EmbeddingServer, serve: Serve) -> None:
    client = serve(env=using(server, AGORA_EMBEDDING_BATCH="8", AGORA_EMBEDDING_DIMENSION="1536"))
    text = "the boat on the river is late and the fish sleeps. " * 200 + "A zebra crosses at noon."
    saved = client.call("agora_save", content=text)
    client.call("agora_save", content="a warm roof for the cat")
    [hit] = client.call("agora_query", query="zebra crosses noon", mode="semantic", top_k=1)["results"]
    assert hit["id"] == saved["id"]
    # The last two are the other note and the question.
    *note, _, _ = (len(asked.texts) for asked in server.requests)
    assert len(note) > 3
    assert all(size == 8 for size in note[:-1])


def test_prefixes_of_questions_and_documents_reach_the_server(server: EmbeddingServer, home: Path) -> None:
    home.mkdir()
    (home / "agora.toml").write_text(
        "[embedding]\n"
        f"model = 'openai:words'\nurl = '{server.url}'\nkey = '${{WORDS_KEY}}'\n"
        "query_prefix = 'query: '\ndocument_prefix = 'passage: '\ndimension = 1536\n",
        "utf-8",
    )
    env = {"WORDS_KEY": KEY}
    call(home, env, "agora_save", content=NOTE)
    call(home, env, "agora_query", query=QUESTION)
    assert [asked.texts for asked in server.requests] == [[f"passage: {NOTE}"], [f"query: {QUESTION}"]]
    assert {asked.headers["authorization"] for asked in server.requests} == {f"Bearer {KEY}"}
    # The vector of a question is remembered: another process asks nobody.
    call(home, env, "agora_query", query=QUESTION, top_k=2)
    assert len(server.requests) == 2


def test_a_store_built_with_another_model_is_refused_with_the_command_that_migrates(
    server: EmbeddingServer, home: Path, serve: Serve
) -> None:
    local = {"AGORA_EMBEDDING_MODEL": str(TINY / "sentence.onnx")}
    call(home, local, "agora_save", content=NOTE, namespace="shared")
    # Whether that server answers or not.
    down(server)
    client = serve(env=using(server))
    for tool, arguments in (("agora_query", {"query": QUESTION}), ("agora_save", {"content": "another note"})):
        error = client.refused(tool, **arguments)
        assert error["code"] == "embedding_mismatch"
        assert "agora reembed" in error["hint"]
    assert len(client.call("agora_query", query=QUESTION, mode="lexical")["results"]) == 1
    assert client.call("agora_status")["problems"][0]["code"] == "embedding_mismatch"
    assert server.requests == []


def test_a_folder_with_a_graph_and_its_tokenizer_serves_a_store_by_one_line(
    tmp_path: Path, home: Path, serve: Serve
) -> None:
    folder = tmp_path / "my encoder"
    (folder / "onnx").mkdir(parents=True)
    shutil.copyfile(TINY / "sentence.onnx", folder / "onnx" / "model.onnx")
    shutil.copyfile(TINY / "tokenizer.json", folder / "tokenizer.json")
    home.mkdir()
    (home / "agora.toml").write_text(f"embedding.model = {json.dumps(str(folder))}\n", "utf-8")
    client = serve()
    for text in ("the deploy failed because the token expired", "the river boat is late"):
        client.call("agora_save", content=text, namespace="shared")
    [hit] = client.call("agora_query", query="why is the boat late", mode="semantic", top_k=1)["results"]
    assert hit["content"] == "the river boat is late"
    assert client.call("agora_status")["model"]["folder"] == str(folder)
    assert client.end_input()[0] == 0
    assert profile(home)[1] == 16
    assert all(check["ok"] for check in diagnose(settings(home, {})))
    # Moved, it is the same model; changed, it is another.
    moved = folder.rename(tmp_path / "moved")
    env = {"AGORA_EMBEDDING_MODEL": str(moved)}
    assert call(home, env, "agora_query", query="late boat", namespace="shared")["results"]
    with (moved / "tokenizer.json").open("a") as file:
        file.write("\n")
    with pytest.raises(EmbeddingMismatch) as caught:
        call(home, env, "agora_query", query="late boat again")
    assert "agora reembed" in caught.value.hint


def test_the_doctor_tries_the_server(server: EmbeddingServer, home: Path, run_agora: RunAgora) -> None:
    def model() -> dict[str, Any]:
        return next(check for check in diagnose(settings(home, using(server))) if check["name"] == "model")

    assert "answers with 1536 dimensions" in model()["message"]
    server.then(status(401))
    assert "refuses the key" in model()["message"]
    down(server)
    found = model()
    assert (found["ok"], found["code"]) == (False, "encoder_unavailable")
    assert not home.exists()
    done = run_agora("doctor", env=using(server))
    assert done.returncode == 1
    assert "cannot be reached" in done.stdout


def test_no_output_and_no_log_shows_the_key(
    server: EmbeddingServer, home: Path, serve: Serve, run_agora: RunAgora
) -> None:
    env = using(server, AGORA_LOG_LEVEL="debug")
    said: list[str] = []
    client = serve(env=env)
    client.call("agora_save", content=NOTE)
    for answer in (
        status(400, {"error": {"message": f"what is {KEY}?"}}),
        status(401, {"error": {"message": f"wrong: {KEY}"}}),
        status(500, f"{KEY} broke it".encode(), "text/plain"),
        status(302, b"", Location=f"http://127.0.0.1:{server.port}/{KEY}"),
    ):
        server.then(answer)
        said.append(json.dumps(client.refused("agora_query", query=f"question {len(said)}")))
        said.append(json.dumps(client.call("agora_status")))
    client.end_input()
    done = run_agora("config", env=env)
    said += [done.stdout, done.stderr, str(settings(home, env).rows()), str(diagnose(settings(home, env)))]
    # With a line end in it the HTTP library would show it.
    done = run_agora("save", "x", env={**env, "AGORA_EMBEDDING_KEY": f"{KEY}\nx"})
    assert done.returncode == 2
    said += [done.stdout, done.stderr, client.log()]
    logs = [path.read_text("utf-8") for path in (home / "logs").iterdir()]
    assert any("encoder fails" in log for log in logs)
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in server.requests)
    assert not [text for text in (*said, *logs) if KEY in text]
