"""Language models in the whole program: who writes summaries, who finds facts, and what is said when one fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.embedding_server import Asked, EmbeddingServer, Handler, status
from tests.integration.model_wire import KEY, SPENT, WIRES, Wire
from tests.integration.processes import RunAgora, Serve, Served

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
SUMMARY = "They looked at parts of the pump and left them."
FACT: dict[str, Any] = {"subject": None, "key": "city", "value": "Rome", "quote": "I live in Rome"}
FACT |= {"ended": False, "multi": False}


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    found: Wire = request.param
    return found


@pytest.fixture
def server(wire: Wire) -> Iterator[EmbeddingServer]:
    """Writes one summary, and finds one fact in whatever names its quote."""

    def answer(handler: Handler, asked: Asked) -> None:
        text = json.dumps(asked.body)
        if '"facts"' not in text:
            return wire.says(SUMMARY)(handler, asked)
        return wire.says(json.dumps({"facts": [FACT] if FACT["quote"] in text else []}))(handler, asked)

    with EmbeddingServer() as found:
        found.usual = answer
        yield found


Configured = Callable[..., Mapping[str, str]]


@pytest.fixture
def configured(wire: Wire, server: EmbeddingServer) -> Configured:
    """Settings, as variables, with which that server's model is asked."""

    def made(**more: str) -> Mapping[str, str]:
        usual = {"adapter": wire.name, "url": server.url, "key": KEY, "retries": "0", "timeout": "20"}
        usual |= {"summary_model": "words", "extraction_model": "words", "extract_from_conversations": "true"}
        return {f"AGORA_MODEL_{name.upper()}": value for name, value in (usual | more).items() if value}

    return made


def ready(serve: Serve, env: Mapping[str, str]) -> Served:
    """A server whose model for vectors is loaded: until then each message would have that to say too."""
    found = serve(name="claude-code", env=env)
    found.call("agora_save", content="something")
    return found


def talk(server: Served, count: int) -> list[Any]:
    """So many turns; what each append answered."""
    return [
        server.call("session_append", session="talk", role="assistant", content=f"We looked at part {n} of the pump")
        for n in range(1, count + 1)
    ]


def test_a_model_writes_summaries_and_finds_facts_and_the_status_counts_what_it_cost(
    serve: Serve, configured: Configured, server: EmbeddingServer, wire: Wire
) -> None:
    agora = ready(serve, configured())
    assert server.requests == []
    done = agora.call("session_append", session="talk", role="user", content="I live in Rome", speaker="Ann")
    (fact,) = done["remembered"]
    assert (fact["subject"], fact["key"], fact["value"], fact["quote"]) == ("Ann", "city", "Rome", "I live in Rome")
    assert [each["value"] for each in agora.call("recall", subject="ann")["facts"]] == ["Rome"]
    *_, done = talk(agora, 12)
    assert "folded" in done
    # What a model wrote is not offered to be written better.
    assert "summary_due" not in done
    assert "problems" not in done
    found = agora.call("session_context", session="talk", form="parts")
    name = f"{wire.name}:words@127.0.0.1:{server.port}"
    assert (found["summary"]["text"], found["summary"]["written_by"]) == (SUMMARY, name)
    gathered = agora.call("remember_from", text="I live in Rome")
    assert (gathered["extracted_by"], [each["value"] for each in gathered["remembered"]]) == (name, ["Rome"])
    status_ = agora.call("agora_status")
    # One model for both kinds of work is one object.
    (told,) = status_["language_models"]
    assert (told["model"], told["used_for"], told["last_error"]) == (name, ["summaries", "facts"], None)
    assert (told["calls"], told["failures"]) == (3, 0)
    assert (told["input_tokens"], told["output_tokens"]) == (3 * SPENT[0], 3 * SPENT[1])
    assert status_["health"] == "ok"
    assert KEY not in json.dumps(status_) + agora.log()
    assert agora.end_input()[0] == 0


def test_where_the_model_fails_the_rules_do_the_work_and_the_answer_the_status_and_the_log_say_so(
    serve: Serve, configured: Configured, server: EmbeddingServer
) -> None:
    server.usual = status(503)
    agora = ready(serve, configured())
    done = agora.call("session_append", session="talk", role="user", content="I prefer tea.", speaker="Ann")
    assert [each["code"] for each in done["problems"]] == ["facts_by_rules"]
    assert [each["value"] for each in done["remembered"]] == ["tea"]
    *_, done = talk(agora, 12)
    (problem,) = done["problems"]
    assert problem["code"] == "summary_by_rules"
    assert "503" in problem["message"]
    assert done["summary_due"]["range"][0] == 1
    found = agora.call("session_context", session="talk", form="parts")
    assert found["summary"]["written_by"] == "extractive"
    gathered = agora.call("remember_from", text="I prefer tea.")
    assert gathered["problem"]
    assert gathered["extracted_by"] == "patterns"
    told = agora.call("agora_status")
    assert told["health"] == "degraded"
    assert "language_model_failed" in [each["code"] for each in told["problems"]]
    assert told["language_models"][0]["failures"] == 3
    agora.wait_for_log("summary made by rules, not by the model")
    agora.wait_for_log("facts found by rules, not by the model")
    assert "I prefer tea" not in agora.log()


def test_what_the_model_makes_up_is_not_believed(
    serve: Serve, configured: Configured, server: EmbeddingServer, wire: Wire
) -> None:
    server.usual = wire.says("They looked at 4711 parts.")
    agora = ready(serve, configured(extraction_model="", extract_from_conversations="false"))
    *_, done = talk(agora, 13)
    (problem,) = done["problems"]
    assert "4711" in problem["message"]
    assert "remembered" not in done
    (told,) = agora.call("agora_status")["language_models"]
    # The server answered; that its answer was of no use is told where it would have stood.
    assert (told["used_for"], told["calls"], told["failures"]) == (["summaries"], 1, 0)


def test_secrets_do_not_leave_even_where_they_are_kept(
    serve: Serve, configured: Configured, server: EmbeddingServer
) -> None:
    agora = ready(serve, configured())
    agora.call("session_append", session="talk", role="user", content=f"The key is {TOKEN}, I live in Rome")
    talk(agora, 12)
    assert len(server.requests) == 2
    sent = json.dumps([each.body for each in server.requests])
    assert TOKEN not in sent
    assert "[REDACTED:" in sent


def test_settings_that_make_no_sense_are_told_and_nothing_is_kept(run_agora: RunAgora, home: Path) -> None:
    for env, words in (
        ({"AGORA_MODEL_SUMMARY_MODEL": "words"}, "model.adapter = 'none' asks no model"),
        ({"AGORA_MODEL_ADAPTER": "openai", "AGORA_MODEL_SUMMARY_MODEL": "words"}, "needs model.url"),
    ):
        done = run_agora("session", "append", "talk", "user", "Hello", env=env)
        assert done.returncode == 2
        assert words in done.stderr
    assert not (home / "agora.db").exists()


def test_doctor_asks_the_model_for_a_word(
    run_agora: RunAgora, configured: Configured, server: EmbeddingServer, wire: Wire
) -> None:
    name = f"{wire.name}:words@127.0.0.1:{server.port}"
    done = run_agora("doctor", env=configured())
    assert f"ok    language model: {name} answers" in done.stdout
    assert len(server.requests) == 1
    server.usual = status(500)
    done = run_agora("doctor", env=configured())
    assert done.returncode == 1
    assert "FAIL  language model:" in done.stdout
    assert KEY not in done.stdout + done.stderr
    plain = run_agora("doctor")
    assert "ok    language model: none: summaries and facts by rules" in plain.stdout
    shown = run_agora("status", env=configured())
    assert f"language    {name} for summaries and facts" in shown.stdout
