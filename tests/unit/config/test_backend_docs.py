"""docs/gateway.md and the examples say what tables hold, and nothing that they do not."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from agora.config.backend_expanding import expanded
from agora.config.backend_reading import BOUNDS, COMMON_KEYS, HTTP_KEYS, LONGEST_DESCRIPTION, STDIO_KEYS, read_tables
from agora.config.backends import BackendTable

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "gateway.md").read_text("utf-8")
EXAMPLES = [(DOCS / "examples" / "backends.toml").read_text("utf-8")]
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS = {
    key: (default, said) for key, default, said in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
}


def test_every_key_has_a_row_with_its_default() -> None:
    assert sorted(ROWS) == sorted((*COMMON_KEYS, *STDIO_KEYS, *HTTP_KEYS))
    said = {"transport": "by `command` or `url`", "cwd": "the server's", "rate": "no limit"}
    for field in dataclasses.fields(BackendTable):
        if field.name not in ROWS:
            continue
        default = "required" if field.default is dataclasses.MISSING else field.default
        text = {True: "true", False: "false"}[default] if isinstance(default, bool) else f"{default}"
        if isinstance(default, float):
            text = f"{default:g}"
        expected = said.get(field.name, "none" if default in {"", None, ()} else text)
        assert ROWS[field.name][0] == expected, field.name


def test_every_bound_and_every_transport_is_in_its_row() -> None:
    for key, bounds in BOUNDS.items():
        written = (
            f"above {bounds.least}, at most {bounds.most:,}" if bounds.above else f"{bounds.least} to {bounds.most:,}"
        )
        assert written in ROWS[key][1], key
    for keys, transport in ((STDIO_KEYS, "stdio"), (HTTP_KEYS, "http")):
        assert all(ROWS[key][1].startswith(f"{transport}: ") for key in keys)
    assert f"{LONGEST_DESCRIPTION:,} characters" in ROWS["description"][1]


@pytest.mark.parametrize("text", [text for text in (*BLOCKS, *EXAMPLES) if "[[backends]]" in text])
def test_every_example_can_be_used_once_its_variables_are_set(text: str, tmp_path: Path) -> None:
    tables = read_tables(tmp_path / "agora.toml", text, tomllib.loads(text)["backends"])
    assert tables
    env = {"GITHUB_TOKEN": "t", "HOME": str(tmp_path), "WEATHER_KEY": "k"}
    for table in tables:
        assert expanded(table, env).name == table.name


def test_the_examples_are_those_that_the_page_promises() -> None:
    tables = {table["name"]: table for table in tomllib.loads(EXAMPLES[0])["backends"]}
    assert list(tables) == ["github", "playwright", "filesystem", "fetch"]
    assert all(table["description"] for table in tables.values())


def test_the_error_that_the_page_shows_is_the_one_that_comes(tmp_path: Path) -> None:
    shown = re.findall(r"^```text\n(.*?)\n```", PAGE, re.MULTILINE | re.DOTALL)
    text = (
        f"{'#' * 3}\n" * 5
        + '[[backends]]\nname = "a"\ncommand = "x"\n\n\n\n[[backends]]\nname = "github"\nurl = "https://x"\n'
    )
    text += 'bearer_token = "${GITHUB_TOKEN}"\n'
    table = read_tables(tmp_path / "agora.toml", text, tomllib.loads(text)["backends"])[1]
    with pytest.raises(Exception, match="GITHUB_TOKEN") as caught:
        expanded(table, {})
    assert str(caught.value) == shown[0]
