from __future__ import annotations

from pathlib import Path

import pytest

from agora.config.load import Loaded, load_settings
from agora.errors import ConfigError


def load(tmp_path: Path, text: str = "", **env: str) -> Loaded:
    (tmp_path / "agora.toml").write_text(text, encoding="utf-8")
    return load_settings(env={"AGORA_HOME": str(tmp_path)} | env)


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ('[http]\nhosts = ["Agora.LAN", "b.lan:99"]', {}),
        ('[http]\nhosts = "Agora.LAN, b.lan:99"', {}),
        ("", {"AGORA_HTTP_HOSTS": " agora.lan ,,b.lan:99 "}),
    ],
)
def test_names_are_a_list_or_a_text_with_commas(tmp_path: Path, text: str, env: dict[str, str]) -> None:
    loaded = load(tmp_path, text, **env)
    assert loaded.settings.http.hosts == ("agora.lan", "b.lan:99")
    assert {row.key: row.value for row in loaded.rows()}["http.hosts"] == "agora.lan, b.lan:99"


def test_without_names_there_are_none(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert (loaded.settings.http.hosts, loaded.settings.http.origins) == ((), ())
    assert {row.key: row.value for row in loaded.rows()}["http.origins"] is None


@pytest.mark.parametrize("host", ["http://agora.lan", "agora.lan/mcp", "a b", "*", "*.agora.lan", "fd00::1", "h:port"])
def test_what_is_no_host_is_refused_and_named(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f'[http]\nhosts = ["good.lan", "{host}"]')
    assert "http.hosts" in caught.value.message
    assert host in caught.value.message


@pytest.mark.parametrize("origin", ["app.example.com", "https://app.example.com/", "https://", "*", "https://*.a.b"])
def test_what_is_no_origin_is_refused_and_named(tmp_path: Path, origin: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, AGORA_HTTP_ORIGINS=origin)
    assert "http.origins" in caught.value.message


@pytest.mark.parametrize(
    ("key", "value"), [("sessions", "0"), ("sessions", "true"), ("idle_seconds", "0"), ("idle_seconds", "inf")]
)
def test_bounds_that_make_no_sense_are_refused(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"http.{key}"):
        load(tmp_path, f"[http]\n{key} = {value}")
