"""Who finds facts in texts, as the settings say, in the memory that a program opens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.embedding_server import EmbeddingServer
from tests.integration.model_wire import WIRES, Wire

from agora import Memory
from agora.errors import ConfigError

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
TEXT = f"The zebra of the harbour is called Otto. I prefer tea. The token is {TOKEN}."


def opened(home: Path, model: str) -> Memory:
    home.mkdir()
    (home / "agora.toml").write_text(f"[model]\n{model}", "utf-8")
    return Memory(home, "acme/shop")


def settings(wire: Wire, url: str) -> str:
    return f'adapter = "{wire.name}"\nextraction_model = "words"\nurl = "{url}"\nkey = "k"\nretries = 0\n'


def test_without_a_model_the_patterns_find_them(tmp_path: Path) -> None:
    with Memory(tmp_path / "home", "acme/shop") as memory:
        found = memory.remember_from(TEXT)
    assert found.extracted_by == "patterns"
    assert found.problem is None
    assert ("preference", "tea") in [(each.key, each.value) for each, _ in found.remembered]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_model_of_the_settings_finds_them_and_gets_no_secret(wire: Wire, tmp_path: Path) -> None:
    told = {"subject": "harbour", "key": "zebra", "value": "Otto", "ended": False, "multi": False}
    quote = {"quote": "The zebra of the harbour is called Otto."}
    with EmbeddingServer() as server:
        server.usual = wire.says(json.dumps({"facts": [told | quote]}))
        with opened(tmp_path / "home", settings(wire, server.url)) as memory:
            found = memory.remember_from(TEXT)
            assert [(each.subject, each.key, each.value) for each, _ in found.remembered] == [
                ("harbour", "zebra", "Otto")
            ]
            assert found.extracted_by.startswith(f"{wire.name}:words")
            assert [each.fact.quote for each in memory.recall("harbour").facts] == [quote["quote"]]
        (asked,) = server.requests
        assert TOKEN not in json.dumps(asked.body)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_where_the_model_fails_the_patterns_find_them_and_the_result_says_why(wire: Wire, tmp_path: Path) -> None:
    with EmbeddingServer() as server:
        server.usual = wire.fails(500)
        with opened(tmp_path / "home", settings(wire, server.url)) as memory:
            found = memory.remember_from(TEXT)
    assert found.extracted_by == "patterns"
    assert found.problem
    assert ("preference", "tea") in [(each.key, each.value) for each, _ in found.remembered]


def test_settings_that_make_no_sense_are_told_when_the_memory_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="extraction_model"):
        opened(tmp_path / "home", 'adapter = "none"\nextraction_model = "words"\n')
